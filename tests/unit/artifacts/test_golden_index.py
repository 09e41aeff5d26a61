"""The index of golden records: what it may name, what else is refused, and that one write of it is a decision."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ExitCode, GoldenError, RunDirError
from harness.artifacts import golden_index
from harness.artifacts.golden_index import INDEX, PROPOSED, RECORDS
from harness.artifacts.golden_records import GoldenStore
from harness.store import codec
from tests.unit.builders.golden_records import accept, killed_after, propose, three
from tests.unit.builders.requests import float32


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return three(tmp_path).folder


def refused(golden: Path) -> GoldenError:
    """Every read that a run makes is refused in the same words; return the error."""
    errors = []
    reads: tuple[Callable[[GoldenStore], object], ...] = (
        lambda store: store.names(),
        lambda store: store.record("m"),
        lambda store: store.outputs("a"),
    )
    for read in reads:
        with pytest.raises(GoldenError) as caught:
            read(GoldenStore(golden))
        errors.append(caught.value)
    assert len({error.message for error in errors}) == 1
    assert errors[0].exit_code is ExitCode.CONFIGURATION
    assert errors[0].hint
    return errors[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told.update(schema_version=2), "is of schema 2, from an earlier version"),
        (lambda told: told.update(schema_version=4), "is of schema 4, from a later version"),
        (lambda told: told.update(records=[]), "damaged"),
        (lambda told: told["records"]["m"].pop("sha256"), "damaged"),
        (lambda told: told["records"]["m"].update(sha256="../../.."), "sha256 of m is no digest: '../../..'"),
        (lambda told: told["records"]["m"].update(sha256="0" * 63), "sha256 of m is no digest"),
        (lambda told: told["records"]["m"].update(accepted="soon"), "damaged"),
        *(
            (lambda told, name=name: told["records"].update({name: told["records"]["m"]}), "can have no folder")
            for name in ("..", ".", "", "x/../../y", "nul\0", ".part")
        ),
    ],
)
def test_an_index_that_was_edited_by_hand_is_refused_in_one_line(
    golden: Path, change: Callable[[Any], object], said: str
) -> None:
    told = json.loads((golden / INDEX).read_text())
    change(told)
    (golden / INDEX).write_bytes(codec.pretty(told))
    assert said in refused(golden).message


def test_a_merge_conflict_says_how_both_branches_are_kept(golden: Path) -> None:
    text = (golden / INDEX).read_text()
    (golden / INDEX).write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> main\n")
    error = refused(golden)
    assert "marks of a merge conflict" in error.message
    assert "keep the entries of both sides" in error.hint


@pytest.mark.parametrize("field", ["sha256", "release", "run"])
def test_an_entry_that_is_not_of_its_record_is_refused(golden: Path, field: str) -> None:
    told = json.loads((golden / INDEX).read_text())
    told["records"]["m"][field] = "0" * 64
    (golden / INDEX).write_bytes(codec.pretty(told))
    store = GoldenStore(golden)
    with pytest.raises(GoldenError, match=r"record\.json"):
        store.record("m")
    store.record("a")


def test_a_record_that_the_index_does_not_name_judges_nothing(golden: Path) -> None:
    told = json.loads((golden / INDEX).read_text())
    del told["records"]["m"]
    (golden / INDEX).write_bytes(codec.pretty(told))
    assert GoldenStore(golden).names() == ("a", "b")


def test_two_commands_never_write_one_index(golden: Path) -> None:
    with golden_index.locked(golden), pytest.raises(GoldenError, match="another command"):
        accept(propose(golden.parent, "c"), "c")


def state(folder: Path) -> dict[str, bytes]:
    """Every file below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def judging(folder: Path) -> dict[str, bytes]:
    """The index, and every file of the records that it names."""
    store = GoldenStore(folder)
    assert [store.record(name).model for name in store.names()] == list(store.names())
    named = [store.record_folder(name).relative_to(folder) for name in store.names()]
    return {path: data for path, data in state(folder).items() if path == INDEX or Path(path).parent in named}


def accepted(store: GoldenStore) -> None:
    accept(store, "m", "new", reason="agreed")


def removed(store: GoldenStore) -> None:
    store.remove(["a", "m"])


@pytest.mark.parametrize("decision", [accepted, removed])
def test_a_kill_at_any_step_leaves_the_records_of_before_or_of_after(
    tmp_path: Path, decision: Callable[[GoldenStore], None]
) -> None:
    """And a proposal waits until it is accepted, so nobody's work is lost; the same command again ends as it should."""
    three(tmp_path)
    propose(tmp_path, "m", float32(7))
    whole = propose(tmp_path, "new").folder
    before, waiting, after = judging(whole), GoldenStore(whole).proposed(), shutil.copytree(whole, tmp_path / "after")
    decision(GoldenStore(after))
    seen, folder = set(), tmp_path / "killed"
    for steps in range(200):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        was_killed = killed_after(steps, lambda: decision(GoldenStore(folder)))
        assert judging(folder) in (before, judging(after)), steps
        seen.add(is_before := judging(folder) == before)
        if is_before:
            assert GoldenStore(folder).proposed() == waiting
            assert all(GoldenStore(folder).proposal(name) for name in waiting)
            decision(GoldenStore(folder))
            assert judging(folder) == judging(after)
        if not was_killed:
            break
    assert seen == {True, False}
    assert steps > 8
    assert state(folder) == state(after)


@pytest.mark.parametrize("name", [*golden_index.WITHIN, f"{RECORDS}/x"])
def test_no_command_writes_or_removes_where_a_link_leads(tmp_path: Path, name: str) -> None:
    store = propose(tmp_path, "x")
    accept(store, "x")
    propose(tmp_path, "x", float32(7))
    place, outside = store.folder / name, tmp_path / "outside"
    if place.exists():
        place.rename(outside)
    (outside / "x").mkdir(parents=True, exist_ok=True)
    (outside / "x" / "precious").write_text("x")
    place.symlink_to(outside)
    before = state(outside)
    commands: tuple[Callable[[], object], ...] = (
        lambda: propose(tmp_path, "x", float32(8)),
        lambda: accept(store, "x"),
        lambda: store.remove(["x"]),
    )
    for command in commands:
        with pytest.raises(GoldenError, match=f"{place} is a link"):
            command()
    assert state(outside) == before


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    before = judging(store.folder)
    real = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if INDEX in path.name:
            raise OSError(28, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirError, match="disk is full"):
        accept(store, "m")
    monkeypatch.undo()
    assert judging(store.folder) == before
    assert store.proposed() == ("m",)
    accept(store, "m", reason="there is room")
    assert store.entries()["m"].reason == "there is room"


def test_accepting_a_record_again_keeps_its_files(tmp_path: Path) -> None:
    """As after a kill between the index and the removal of the proposal."""
    store = three(tmp_path)
    shutil.copytree(store.record_folder("m"), store.folder / PROPOSED / "m")
    accept(store, "m", reason="once more")
    assert (store.record("m").model, store.entries()["m"].reason, store.proposed()) == ("m", "once more", ())


def test_a_folder_that_cannot_be_written_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    shutil.rmtree(store.folder / RECORDS)
    (store.folder / RECORDS).write_text("a file")
    with pytest.raises(RunDirError, match="cannot be written"):
        accept(store, "m")
