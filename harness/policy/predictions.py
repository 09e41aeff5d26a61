"""What the static check said against what happened: counted, and which predictions were wrong."""

from collections.abc import Iterable, Sequence

from harness.domain.foretold import Loading
from harness.domain.inspection import Prediction
from harness.domain.matrix import BACKWARD, FORWARD, SAME, Confusion, MatrixCell
from harness.policy.foretold import EXPECTED


def confusion(cells: Iterable[MatrixCell]) -> Confusion:
    """Return how often each prediction met each outcome, over the cells that were predicted."""
    counts = {predicted: dict.fromkeys(Loading, 0) for predicted in Prediction}
    for cell in cells:
        if cell.predicted is not None:
            counts[cell.predicted][cell.happened] += 1
    return counts


def is_wrong(cell: MatrixCell) -> bool:
    """Whether the prediction was another than what happened; ``unknown`` is never wrong, nor is what has no answer."""
    expected = EXPECTED.get(cell.predicted) if cell.predicted is not None else None
    return expected is not None and cell.happened is not Loading.UNKNOWN and cell.happened is not expected


def confusion_by_direction(cells: Sequence[MatrixCell]) -> dict[str, Confusion]:
    """Return the counts over ``"all"`` cells, then those of each direction."""
    parts = {name: [cell for cell in cells if cell.direction == name] for name in (BACKWARD, FORWARD, SAME)}
    return {"all": confusion(cells), **{name: confusion(part) for name, part in parts.items()}}
