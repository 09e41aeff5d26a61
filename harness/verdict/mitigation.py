"""What a search for settings found, as an answer and an exit code."""

from collections.abc import Iterable

from harness.core.diagnosis import Cure, CureAnswer, Curing, Rewritten
from harness.core.errors import ExitCode
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict

WELL = (Status.PASS, Status.XPASS)


def answer_of(
    cell: CellVerdict | None, cures: Iterable[Cure], *, searched: bool, rewrites: Iterable[Rewritten] = ()
) -> tuple[CureAnswer, str]:
    """Return the answer, and why there was nothing to search for, in words; empty where there was.

    Args:
        cell: the one that was asked about; None: there is none.
        searched: whether it is red, so that settings were tried; ``rewrites``: and these.
    """
    if searched:
        tried = tuple(cures)
        if any(found.cures for found in tried) or any(item.cures for item in rewrites):
            return CureAnswer.CURED, ""
        undecided = any(found.untestable and not found.cures for found in tried) and not _any_told(tried)
        return (CureAnswer.UNDECIDED if undecided else CureAnswer.NOT_FOUND), ""
    if cell is None:
        return CureAnswer.UNDECIDED, "there is no such cell: the model was not tested there"
    if cell.status in WELL:
        return CureAnswer.NOTHING, "it passes"
    if cell.status is Status.SAME_FAIL:
        return CureAnswer.NOTHING, "both releases fail alike, so it is no regression"
    why = "".join(f" ({finding.message})" for finding in cell.findings[:1])
    return CureAnswer.UNDECIDED, f"the cell is {cell.status}: nobody could tell that a symptom is gone{why}"


def _any_told(tried: Iterable[Cure]) -> bool:
    return any(not found.untestable for found in tried)


def exit_code(found: Curing) -> ExitCode:
    """Return 0 for nothing to cure, 1 where something cures (red until that is set), 4 where nothing was found."""
    if found.answer is CureAnswer.NOTHING:
        return ExitCode.COMPATIBLE
    return ExitCode.INCOMPATIBLE if found.answer is CureAnswer.CURED else ExitCode.INCONCLUSIVE
