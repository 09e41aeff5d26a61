"""What has to be done with a binary before it runs with another LibTorch; pure."""

from packaging.version import InvalidVersion, Version

from harness.core.linking import LinkCheck, LinkedBinary, LinkOutcome, MissingSymbol, SymbolChange

COMPILES_AGAIN = {SymbolChange.OTHER_ABI, SymbolChange.DECLARED, SymbolChange.ADDED_PARAMETERS}


def compiles_again(missing: MissingSymbol) -> bool:
    """Whether compiling again is all that a missing symbol asks for, unless the compiler says more."""
    return missing.change in COMPILES_AGAIN or missing.in_source is False


def outcome_of(binary: LinkedBinary) -> LinkOutcome:
    """Return the gravest that its symbols and libraries ask for."""
    if not all(map(compiles_again, binary.missing)):
        return LinkOutcome.CHANGE_SOURCE
    if binary.missing:
        return LinkOutcome.RECOMPILE
    if binary.unresolved or binary.absent:
        return LinkOutcome.UNRESOLVED
    return LinkOutcome.LINKS


def is_enough(binary: LinkedBinary, check: LinkCheck) -> bool:
    """Whether a binary that links may run as it is: PyTorch keeps its C interface, and layouts in a minor release."""
    if check.guessed and {_minor(release) for release in binary.fits} != {_minor(check.new)}:
        return binary.stable  # built against any of several
    return binary.stable or _minor(check.old) == _minor(check.new)


def _minor(side: str) -> object:
    try:
        return Version(side).release[:2]
    except InvalidVersion:  # a folder
        return side
