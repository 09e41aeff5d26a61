"""What became of translation units against other headers; pure."""

from collections.abc import Collection

from harness.core.compiling import CompiledUnit, CompileOutcome


def outcome_of(unit: CompiledUnit) -> CompileOutcome:
    """Return it: errors that the build's own headers bring too are no matter of the upgrade."""
    if unit.why:
        return CompileOutcome.NOT_CHECKED
    if unit.after:
        return CompileOutcome.BREAKS
    if unit.before:
        return CompileOutcome.BROKEN_BEFORE
    return CompileOutcome.COMPILES if unit.needs else CompileOutcome.NEEDS_NOTHING


def all_compile(outcomes: Collection[CompileOutcome]) -> bool:
    """Whether some unit that reads LibTorch compiles, and none is broken or unknown; others prove nothing."""
    return CompileOutcome.COMPILES in outcomes and set(outcomes) <= {
        CompileOutcome.COMPILES,
        CompileOutcome.NEEDS_NOTHING,
    }
