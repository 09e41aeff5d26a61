"""A decision that is cut off at any step: it never began, or the next command finishes it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import GoldenError, RunDirError
from harness.golden import journal
from harness.golden.files import PROPOSED, RECORDS
from harness.golden.journal import INDEX, JOURNAL
from harness.golden.store import GoldenStore
from tests.unit.builders.requests import float32
from tests.unit.builders.golden_records import accept, cut_off, killed_after, propose, three, why

PENDING = Path(PROPOSED) / journal.DECIDING


def state(folder: Path) -> dict[str, bytes]:
    """Every file that a decision is about."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path): (folder / path).read_bytes() for path in files if f"{PROPOSED}/." not in str(path)}


def accepted(store: GoldenStore) -> None:
    accept(store, "m", "new", reason="agreed")


def rejected(store: GoldenStore) -> None:
    store.reject(["m", "new"], why())


def removed(store: GoldenStore) -> None:
    store.remove(["a", "m"], why())


@pytest.mark.parametrize("decision", [accepted, rejected, removed])
def test_a_kill_at_any_step_leaves_the_state_of_before_or_of_after(
    tmp_path: Path, decision: Callable[[GoldenStore], None]
) -> None:
    three(tmp_path)
    propose(tmp_path, "m", float32(7))
    whole = propose(tmp_path, "new").folder
    before, after = state(whole), shutil.copytree(whole, tmp_path / "after")
    decision(GoldenStore(after))
    seen, folder = set(), tmp_path / "killed"
    for steps in range(200):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        was_killed = killed_after(steps, lambda: decision(GoldenStore(folder)))
        journal.settle(folder)
        store = GoldenStore(folder)
        assert [store.record(name).model for name in store.names()] == list(store.names())
        assert state(folder) in (before, state(after)), steps
        seen.add(state(folder) == before)
        if not was_killed:
            break
    assert seen == {True, False}
    assert steps > 8
    assert not (folder / PENDING).exists()


def test_nobody_judges_by_records_that_were_half_exchanged(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    cut_off(store, "m")
    with pytest.raises(GoldenError, match="was cut off") as caught:
        GoldenStore(store.folder).outputs("a")
    assert "python -m harness golden status" in caught.value.hint
    propose(tmp_path, "b", float32(5))
    assert store.ledger().entries[-1].model == "m"
    assert store.proposed() == ("b",)


def test_a_decision_that_does_not_go_on_from_the_journal_is_not_finished(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    cut_off(store, "m")
    written = store.folder / JOURNAL
    written.write_bytes(written.read_bytes().replace(b"checked by hand", b"checked by Bob "))
    before = state(store.folder)
    with pytest.raises(GoldenError, match="expected what goes on from"):
        journal.settle(store.folder)
    assert state(store.folder) == before


def test_nothing_is_moved_from_elsewhere_that_is_not_the_record(tmp_path: Path) -> None:
    """As where somebody put a link into a commit, to a folder that has the name of a model."""
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    cut_off(store, "m")
    (tmp_path / "home" / "m").mkdir(parents=True)
    (tmp_path / "home" / "m" / "precious").write_text("x")
    shutil.rmtree(store.folder / PENDING / RECORDS)
    (store.folder / PENDING / RECORDS).symlink_to(tmp_path / "home")
    with pytest.raises(GoldenError):
        journal.settle(store.folder)
    assert (tmp_path / "home" / "m" / "precious").exists()
    assert (store.record_folder("m") / "record.json").exists()


@pytest.mark.parametrize("name", ["..", "../../elsewhere", "/tmp"])
def test_a_decision_about_a_folder_elsewhere_is_not_finished(tmp_path: Path, name: str) -> None:
    """As one that somebody put into a commit."""
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    cut_off(store, "m")
    text = (store.folder / PENDING / JOURNAL).read_text()
    (store.folder / PENDING / JOURNAL).write_text(text.replace('"model":"m"', f'"model":"{name}"'))
    with pytest.raises(GoldenError):
        journal.settle(store.folder)


@pytest.mark.parametrize("name", [JOURNAL, INDEX])
def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Also where only the second of two files finds no room."""
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    before = state(store.folder)
    real = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if name in path.name:
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirError, match="disk is full"):
        accept(store, "m")
    monkeypatch.undo()
    assert state(store.folder) == before
    accept(store, "m")
    assert store.ledger().entries[-1].model == "m"


def test_a_folder_that_cannot_be_written_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    shutil.rmtree(store.folder / RECORDS)
    (store.folder / RECORDS).write_text("a file")
    with pytest.raises(RunDirError, match="cannot be written"):
        accept(store, "m")
