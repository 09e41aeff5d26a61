"""What a search for settings found, as an answer and an exit code."""

from collections.abc import Iterable

from harness.core.diagnosis import MitigationAnswer, Rewritten
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Mitigation

WELL = (Status.PASS, Status.XPASS)


def answer_of(
    cell: CellVerdict | None, mitigations: Iterable[Mitigation], *, searched: bool, rewrites: Iterable[Rewritten] = ()
) -> tuple[MitigationAnswer, str]:
    """Return the answer, and why there was nothing to search for, in words; empty where there was.

    ``cell``: the one that was asked about; None: there is none; ``searched``: whether it is red, so that settings were
    tried; ``rewrites``: and these.
    """
    if searched:
        tried = tuple(mitigations)
        if any(mitigation.mitigates for mitigation in tried) or any(item.fixes for item in rewrites):
            return MitigationAnswer.FOUND, ""
        undecided = bool(tried) and all(mitigation.untestable for mitigation in tried)
        return (MitigationAnswer.UNDECIDED if undecided else MitigationAnswer.NOT_FOUND), ""
    if cell is None:
        return MitigationAnswer.UNDECIDED, "there is no such cell: the model was not tested there"
    if cell.status in WELL:
        return MitigationAnswer.NOTHING, "it passes"
    if cell.status is Status.SAME_FAIL:
        return MitigationAnswer.NOTHING, "both releases fail alike, so it is no regression"
    why = "".join(f" ({finding.message})" for finding in cell.findings[:1])
    return MitigationAnswer.UNDECIDED, f"the cell is {cell.status}: nobody could tell that a symptom is gone{why}"
