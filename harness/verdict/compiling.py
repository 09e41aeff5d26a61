"""What became of translation units against other headers; pure."""

from harness.core.compiling import CompiledUnit, CompileOutcome


def outcome_of(unit: CompiledUnit) -> CompileOutcome:
    """Return it: errors that the build's own headers bring too are no matter of the upgrade."""
    if unit.why:
        return CompileOutcome.NOT_CHECKED
    if unit.after:
        return CompileOutcome.BREAKS
    return CompileOutcome.BROKEN_BEFORE if unit.before else CompileOutcome.COMPILES
