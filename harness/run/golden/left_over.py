"""What nobody needs in the golden folder: found, and removed when somebody says so."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.domain.golden import LeftOver
from harness.domain.models import ModelDeclaration
from harness.errors import ConfigError, GoldenError
from harness.golden import decisions
from harness.golden.decisions import Why
from harness.golden.files import IGNORED, PROPOSED, RECORD, RECORDS, own_record, same_content
from harness.golden.pending import settle
from harness.golden.store import GoldenStore
from harness.run.options import Options, golden_store, known_models, settings_of, shown_path
from harness.system import clock
from harness.system.files import remove, size_of
from harness.system.person import who

NOBODY = "no model is called so any more"


def declared_models(options: Options) -> tuple[ModelDeclaration, ...]:
    """Return the models of the project; none where it declares none, as where they are given on the command line."""
    _, settings = settings_of(options)
    try:
        return known_models(options, settings).models
    except ConfigError:  # the state of the records does not hang on a fixture that cannot be read
        return ()


def left_over(options: Options) -> tuple[LeftOver, ...]:
    """Return what ``gc`` would remove: what no record names, and what belongs to no declared model.

    Raises:
        GoldenError: a record is not what was accepted: nothing is removed from a folder that cannot be trusted.
    """
    store = golden_store(options)
    settle(store.folder)
    declared = {model.name for model in declared_models(options)}
    # Where not one record has its model, this is another project's folder, or the models are given on the command line.
    gone = [name for name in store.names() if name not in declared] if declared & set(store.names()) else []
    return (*_records(store, gone), *_proposals(store, declared))


def collect(options: Options, found: Sequence[LeftOver]) -> None:
    """Remove what was found; the journal keeps that a record was removed, when, by whom and why."""
    store = golden_store(options)
    models = [item.model for item in found if item.model]
    if models:
        why = Why(reason=f"golden gc: {NOBODY}", by=who(options.project), at=clock.utc_now())
        decisions.remove(store, models, why)
    for item in found:
        if not item.model:
            remove(Path(item.path))


def _records(store: GoldenStore, gone: Sequence[str]) -> Iterator[LeftOver]:
    for name in store.names():
        folder = store.record_folder(name)
        if name in gone:  # or removed by another branch, whose journal was not the one to be kept
            yield _item(folder, f"an accepted record, and {NOBODY}", model=name)
        else:
            named = {RECORD, *store.record(name).files}
            yield from (
                _item(path, "the record does not name it") for path in _within(folder) if path.name not in named
            )
    for folder in _within(store.folder / RECORDS):
        if folder.name not in store.names():
            yield _item(folder, "the journal knows of no such record: golden accept --in-place takes it over")


def _within(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _proposals(store: GoldenStore, declared: set[str]) -> Iterator[LeftOver]:
    for folder in _within(store.folder / PROPOSED):
        why = _useless(store, folder, declared)
        if why and folder.name != IGNORED:
            yield _item(folder, why)


def _useless(store: GoldenStore, folder: Path, declared: set[str]) -> str:
    try:
        record, _ = own_record(folder)
    except GoldenError:
        return "no whole proposal"
    if declared and folder.name not in declared:
        return f"a proposal, and {NOBODY}"
    known = store.record(folder.name) if folder.name in store.names() else None
    return "the accepted record says the same" if known is not None and same_content(known, record) else ""


def _item(path: Path, why: str, *, model: str = "") -> LeftOver:
    return LeftOver(path=shown_path(path), why=why, size_bytes=size_of(path), model=model)
