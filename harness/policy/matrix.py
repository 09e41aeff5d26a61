"""From the cells of a version matrix to pairs, an exit code, and what they mean for an upgrade or a way back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from harness.domain.matrix import BACKWARD, FORWARD, SAME, Matrix, MatrixCell
from harness.domain.outcome import Status
from harness.errors import ExitCode

# No regression of the pair: it works, or it does not work where it comes from either, or cannot be asked for.
HARMLESS = frozenset({Status.PASS, Status.SAME_FAIL, Status.UNSUPPORTED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """All models of one exporter in one loader.

    Attributes:
        tested: models with an artifact; ``passed``: of those that load and answer the same; ``failed``,
            ``undecided``, ``broken_before``: the others. ``absent``: models that could not be exported.
        status: FAIL, INCONCLUSIVE or PASS: the worst that matters; UNSUPPORTED where there is nothing to load.
    """

    exporter: str
    loader: str
    direction: str
    tested: int = 0
    passed: int = 0
    failed: int = 0
    undecided: int = 0
    broken_before: int = 0
    absent: int = 0

    @property
    def status(self) -> Status:
        """The worst that matters."""
        if self.failed:
            return Status.FAIL
        if self.undecided:
            return Status.INCONCLUSIVE
        return Status.PASS if self.tested else Status.UNSUPPORTED


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixVerdict:
    """What a matrix amounts to: one row per exporter and loader, sentences for a reader, an exit code."""

    pairs: Mapping[tuple[str, str], Pair] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    exit_code: ExitCode


def direction_between(exporter: str, loader: str) -> str:
    """Return ``FORWARD`` if torch ``loader`` is the earlier one, else ``BACKWARD``; build suffixes do not count."""
    try:
        earlier = Version(Version(loader).public) < Version(Version(exporter).public)
    except InvalidVersion:
        return BACKWARD
    return FORWARD if earlier else BACKWARD


def judge_matrix(matrix: Matrix) -> MatrixVerdict:
    """Return what the cells amount to: a break of a newer release is exit code 1, of an older one a warning."""
    pairs = {
        (exporter, release.name): _pair(exporter, release.name, matrix)
        for exporter in matrix.exporters
        for release in matrix.releases
    }
    return MatrixVerdict(
        pairs=pairs, sentences=tuple(_sentences(matrix, pairs)), exit_code=_exit_code(matrix.cells, pairs)
    )


def _pair(exporter: str, loader: str, matrix: Matrix) -> Pair:
    cells = [cell for cell in matrix.cells if (cell.exporter, cell.loader) == (exporter, loader)]
    statuses = [cell.status for cell in cells if cell.exported]
    return Pair(
        exporter=exporter,
        loader=loader,
        direction=cells[0].direction if cells else SAME,
        tested=len(statuses),
        passed=statuses.count(Status.PASS),
        failed=statuses.count(Status.FAIL),
        undecided=statuses.count(Status.INCONCLUSIVE),
        broken_before=statuses.count(Status.SAME_FAIL),
        absent=len(cells) - len(statuses),
    )


def _exit_code(cells: Sequence[MatrixCell], pairs: Mapping[tuple[str, str], Pair]) -> ExitCode:
    if any(pair.failed for pair in pairs.values() if pair.direction != FORWARD):
        return ExitCode.INCOMPATIBLE
    undecided = any(cell.status is Status.INCONCLUSIVE for cell in cells)
    tested = any(pair.tested for pair in pairs.values() if pair.direction != SAME)
    return ExitCode.COMPATIBLE if tested and not undecided else ExitCode.INCONCLUSIVE


def _sentences(matrix: Matrix, pairs: Mapping[tuple[str, str], Pair]) -> list[str]:
    """Return what a reader wants to know first: which artifacts the newest takes, and where one can go back to."""
    ordered = sorted(matrix.releases, key=lambda release: _version(release.torch))
    newest = ordered[-1].name
    older = [release.name for release in ordered[:-1] if release.name in matrix.exporters]
    if not older:
        return _of_given(matrix, pairs)
    works = [name for name in older if _works(pairs[name, newest])]
    said = [_oldest(works, older, newest, pairs)]
    for place in range(len(ordered) - 1, 0, -1):
        name, before = ordered[place].name, [release.name for release in ordered[:place]]
        back = [other for other in before if name in matrix.exporters and _works(pairs[name, other])]
        where = ", ".join(back) if back else f"none of {', '.join(before)}: not with every model as {name} exports it"
        said.append(f"from {name} one can roll back to {where}")
    return [*said, *_of_given(matrix, pairs)]


def _oldest(works: Sequence[str], older: Sequence[str], newest: str, pairs: Mapping[tuple[str, str], Pair]) -> str:
    if not works:
        return f"no release has artifacts that all load and answer the same in {newest}"
    missing = [name for name in older[older.index(works[0]) :] if name not in works]
    but = f" (but not all of {', '.join(missing)})" if missing else ""
    broken = pairs[works[0], newest].broken_before
    left_out = f", {broken} that did not work there left out" if broken else ""
    return f"the oldest release whose artifacts load and answer the same in {newest}: {works[0]}{left_out}{but}"


def _of_given(matrix: Matrix, pairs: Mapping[tuple[str, str], Pair]) -> list[str]:
    if not matrix.golden_in:
        return []
    rows = [pair for pair in pairs.values() if pair.exporter not in {release.name for release in matrix.releases}]
    works = [pair.loader for pair in rows if pair.direction != SAME and _works(pair)]
    where = ", ".join(works) or "none of the others"
    return [f"the given artifacts load and answer as in {matrix.golden_in} in: {where}"]


def _works(pair: Pair) -> bool:
    return pair.tested > 0 and pair.status is Status.PASS


def _version(torch: str) -> Version:
    try:
        return Version(torch)
    except InvalidVersion:
        return Version("0")
