"""From the cells of a version matrix to pairs, an exit code, and what they mean for an upgrade or a rollback."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from harness.core.environment import Fingerprint
from harness.core.errors import ExitCode
from harness.core.outcome import Status
from harness.core.releases import BACKWARD, FORWARD, GIVEN, SAME, Matrix, MatrixCell
from harness.core.text import first_few
from harness.verdict.exit_codes import exit_code

MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """All models of one exporter in one loader.

    Attributes:
        tested: models with an artifact; ``passed``: of those that load and answer the same; ``failed``,
            ``undecided``, ``broken_before``: the others. ``absent``: models that could not be exported.
        status: FAIL, INCONCLUSIVE or PASS: the worst that matters; SAME_FAIL where none passes, since none works where
            it comes from; UNSUPPORTED where there is nothing to load.
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
        if self.failed:
            return Status.FAIL
        if self.undecided:
            return Status.INCONCLUSIVE
        if self.passed:
            return Status.PASS
        return Status.SAME_FAIL if self.broken_before else Status.UNSUPPORTED


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixVerdict:
    """What a matrix amounts to: one row per exporter and loader, sentences for a reader, and all in one."""

    pairs: Mapping[tuple[str, str], Pair] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    outcome: Status

    @property
    def exit_code(self) -> ExitCode:
        return exit_code(self.outcome)


def direction_of(exporter: Fingerprint, loader: Fingerprint) -> str:
    """Return ``SAME`` where both hold the same torch, else ``direction_between`` the two."""
    return SAME if exporter.identity == loader.identity else direction_between(exporter.torch, loader.torch)


def twins(releases: Mapping[str, Fingerprint]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    notes = []
    for name, fingerprint in releases.items():
        other = first.setdefault(fingerprint.identity, name)
        if other != name:
            notes.append(
                f"{name} holds the same torch as {other}, {fingerprint.torch}: no upgrade, so not tested as one"
            )
    return tuple(notes)


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
        pairs=pairs, sentences=tuple(_sentences(matrix, pairs)), outcome=_outcome(matrix.cells, pairs.values())
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


def _outcome(cells: Sequence[MatrixCell], pairs: Iterable[Pair]) -> Status:
    if any(pair.failed for pair in pairs if pair.direction != FORWARD):
        return Status.FAIL
    undecided = any(cell.status is Status.INCONCLUSIVE for cell in cells)
    return Status.PASS if _abroad(pairs) and not undecided else Status.INCONCLUSIVE


def _abroad(pairs: Iterable[Pair]) -> bool:
    """Return whether anything passes in another release than its own: else no upgrade and no rollback was tested."""
    return any(pair.passed for pair in pairs if pair.direction != SAME)


def _nothing_tested(pairs: Collection[Pair]) -> list[str]:
    """Return why nothing was tested; nothing where something was, or where what happened speaks for itself."""
    others = [pair for pair in pairs if pair.direction != SAME]
    if _abroad(pairs) or any(pair.failed or pair.undecided for pair in others):
        return []
    if any(pair.broken_before for pair in others):
        return ["nothing tested: what fails in another release fails where it comes from too"]
    return ["nothing tested: there is nothing to load in another release than its own"]


def _sentences(matrix: Matrix, pairs: Mapping[tuple[str, str], Pair]) -> list[str]:
    ordered = sorted(matrix.releases, key=lambda release: _version(release.torch))
    names = [release.name for release in ordered]
    sentences = _nothing_tested(pairs.values())
    exporters = [name for name in names if name in matrix.exporters]
    older = [name for name in exporters if pairs[name, names[-1]].direction == BACKWARD]
    if older:
        sentences.append(_oldest(older, names[-1], matrix, pairs))
    for name in reversed(exporters):
        before = [pairs[name, other] for other in names if pairs[name, other].direction == FORWARD]
        if before:
            sentences.append(_rollback(name, before, matrix))
    return [*sentences, *_of_given(matrix, pairs)]


def _oldest(older: Sequence[str], newest: str, matrix: Matrix, pairs: Mapping[tuple[str, str], Pair]) -> str:
    works = [name for name in older if _works(pairs[name, newest])]
    if not works:
        return f"no release has artifacts that all load and answer the same in {newest}"
    missing = [name for name in older[older.index(works[0]) :] if name not in works]
    but = f" (but not all of {', '.join(missing)})" if missing else ""
    left_out = "".join(f", {text}" for text in _left_out(pairs[works[0], newest], matrix))
    return f"the oldest release whose artifacts load and answer the same in {newest}: {works[0]}{left_out}{but}"


def _rollback(exporter: str, before: Sequence[Pair], matrix: Matrix) -> str:
    """Return where one can go back to from ``exporter``; ``before`` are its pairs with the earlier releases."""
    if not any(pair.passed or pair.failed or pair.undecided for pair in before):
        return f"whether one can roll back from {exporter} is not known: nothing that works there could be exported"
    back = [pair for pair in before if _works(pair)]
    if not back:
        names = ", ".join(pair.loader for pair in before)
        return f"from {exporter} one can roll back to none of {names}: not with every model as {exporter} exports it"
    return f"from {exporter} one can roll back to {_named(back, matrix)}"


def _of_given(matrix: Matrix, pairs: Mapping[tuple[str, str], Pair]) -> list[str]:
    if not matrix.golden_in:
        return []
    works = [pair for pair in pairs.values() if pair.exporter == GIVEN and pair.direction != SAME and _works(pair)]
    return [
        f"the given artifacts load and answer as in {matrix.golden_in} in: {_named(works, matrix)}"
        if works
        else f"the given artifacts do not all load and answer as in {matrix.golden_in} in any other release"
    ]


def _works(pair: Pair) -> bool:
    return pair.passed > 0 and pair.status is Status.PASS


def _named(pairs: Sequence[Pair], matrix: Matrix) -> str:
    """Return the loaders with what was left out there; once at the end where that is the same for all."""
    notes = [_left_out(pair, matrix) for pair in pairs]
    if all(item == notes[0] for item in notes):
        return ", ".join(pair.loader for pair in pairs) + "".join(f", {text}" for text in notes[0])
    shown = (f" ({', '.join(item)})" if item else "" for item in notes)
    return ", ".join(f"{pair.loader}{text}" for pair, text in zip(pairs, shown, strict=True))


def _left_out(pair: Pair, matrix: Matrix) -> tuple[str, ...]:
    notes = []
    if pair.absent:
        made = "taken over" if pair.exporter == GIVEN else "exported"
        notes.append(f"as far as {made}: {pair.tested} of {pair.tested + pair.absent}")
    if pair.broken_before:
        broken = [cell.model for cell in matrix.cells if _is_broken_before(cell, pair)]
        notes.append(f"{pair.broken_before} that did not work there left out: {first_few(broken, MOST_NAMES)}")
    return tuple(notes)


def _is_broken_before(cell: MatrixCell, pair: Pair) -> bool:
    return (cell.exporter, cell.loader, cell.status) == (pair.exporter, pair.loader, Status.SAME_FAIL)


def _version(torch: str) -> Version:
    try:
        return Version(torch)
    except InvalidVersion:
        return Version("0")
