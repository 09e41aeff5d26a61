"""What has to be done with a binary before it runs with another LibTorch; pure."""

from harness.core.linking import LinkedBinary, LinkOutcome, SymbolChange

COMPILES_AGAIN = {SymbolChange.OTHER_ABI, SymbolChange.DECLARED, SymbolChange.ADDED_PARAMETERS}


def outcome_of(binary: LinkedBinary) -> LinkOutcome:
    """Return the gravest that its symbols and libraries ask for."""
    changes = {missing.change for missing in binary.missing}
    if changes - COMPILES_AGAIN:
        return LinkOutcome.CHANGE_SOURCE
    if binary.unresolved or any(note.stops for note in binary.notes):
        return LinkOutcome.UNRESOLVED
    return LinkOutcome.RECOMPILE if changes else LinkOutcome.LINKS
