"""What a search has found about one cell of a run, as the run's report tells it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """One search, and one cell that it explains.

    Attributes:
        cell: id of the cell; ``model``: its model.
        by: the command that searched: ``"bisect"``, ``"mitigate"`` or ``"first-bad"``.
        answer: in a few words, e.g. ``"operator aten::mul.Tensor"``; the same for the same cause.
        lines: (label, text) in reading order, for the cell.
        paths: files and folders to look at, relative to the run where they lie in its folder, else whole.
        seconds: what the search took; 0 where nobody measured.
    """

    cell: str
    model: str
    by: str
    answer: str
    lines: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = ()
    seconds: float = 0.0
