"""Compares outputs that exist already, by the rules of a run: nothing is loaded or called."""

from collections.abc import Mapping
from pathlib import Path

from harness.apps.golden.review import change_of, compare_records, gravest_first
from harness.artifacts.golden_index import INDEX
from harness.artifacts.golden_records import GoldenStore
from harness.artifacts.output_files import output_files, read_outputs_file
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import leaves
from harness.checks.outputs.tolerances import Precision
from harness.core.errors import GoldenError
from harness.core.golden import RecordChange, RecordDiff, Review
from harness.core.text import counted
from harness.project import Project


def diff(project: Project, old: Path, new: Path, *, tolerance: float | None = None) -> Review:
    """Return how the outputs in ``new`` differ from those in ``old``, model by model, the gravest first.

    Args:
        old, new: a golden folder, a file of outputs, or a folder of such files; two files are of one model, whatever
            their names.
        tolerance: share of the largest magnitude by which a floating output may differ, in place of its dtype's.

    Raises:
        GoldenError: one of them cannot be read.
    """
    before, after = _Side(old), _Side(new)
    one_file = old.is_file() and new.is_file()
    names = [old.stem] if one_file else sorted({*before.names(), *after.names()})
    project.progress.stage("compare", len(names))
    diffs = []
    for name in names:
        pair = before.outputs(name), after.outputs(new.stem if one_file else name)
        diffs.append(_diff(name, pair[0], pair[1], tolerance))
        project.progress.step(name)
    project.progress.finish()
    return Review(old=str(old), new=str(new), diffs=gravest_first(diffs))


class _Side:
    """The outputs of one side, by model."""

    def __init__(self, path: Path) -> None:
        self._store = GoldenStore(path) if (path / INDEX).is_file() else None
        self._files: Mapping[str, Path] = {} if self._store is not None else output_files(path)

    def names(self) -> tuple[str, ...]:
        return self._store.names() if self._store is not None else tuple(self._files)

    def outputs(self, name: str) -> Outputs | None:
        """Return what the model answered, None where this side does not have it."""
        if name not in self.names():
            return None
        return self._store.outputs(name) if self._store is not None else read_outputs_file(self._files[name])


def _diff(name: str, old: Outputs | None, new: Outputs | None, tolerance: Precision) -> RecordDiff:
    kept = new or old
    assert kept is not None
    if old is None or new is None:
        tensors = sum(1 for tree in kept.calls.values() for _ in leaves(tree))
        change = RecordChange.NEW if old is None else RecordChange.GONE
        return RecordDiff(
            model=name, change=change, words=f"{counted(tensors, 'tensor')} in {counted(len(kept.calls), 'call')}"
        )
    try:
        comparison = compare_records(name, old, new, precision=tolerance)
    except DecodeError as error:
        raise GoldenError(f"the outputs of {name} cannot be read: {error}", "record them again") from error
    change, words = change_of(comparison)
    return RecordDiff(model=name, change=change, words=words, comparison=comparison)
