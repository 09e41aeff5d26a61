"""The chain of decisions: every byte of journal and index is held by it, and an older journal holds the whole."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.domain.golden import GENESIS, Action, Head, JournalEntry
from harness.errors import ExitCode, GoldenError, RunDirError
from harness.golden import journal
from harness.golden.files import PROPOSED, RECORDS
from harness.golden.journal import INDEX, JOURNAL, Ledger, extended, follows, read_ledger, write_ledger
from harness.golden.store import GoldenStore
from harness.store import codec
from tests.unit.builders.golden_records import AT, accept, cut_off, killed_after, propose, three, why
from tests.unit.builders.requests import float32


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return three(tmp_path).folder


def lines(golden: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (golden / JOURNAL).read_text().splitlines()]


def forged(entry: dict[str, Any]) -> bytes:
    """Return a line that is right in itself: its own hash is made anew."""
    decoded = msgspec.convert({**entry, "sha256": ""}, JournalEntry)
    digest = codec.digest(decoded)
    return codec.canonical(replace(decoded, sha256=digest)) + b"\n"


def refused(golden: Path) -> GoldenError:
    """Every read that a run makes is refused; return the error."""
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


def test_decisions_are_a_chain_from_the_first(golden: Path) -> None:
    found = lines(golden)
    assert [entry["number"] for entry in found] == [1, 2, 3, 4]
    assert [entry["previous"] for entry in found] == [GENESIS, *(entry["sha256"] for entry in found[:-1])]
    assert [(entry["model"], entry["action"]) for entry in found] == [
        ("a", "accepted"),
        ("b", "accepted"),
        ("m", "accepted"),
        ("m", "rejected"),
    ]
    assert {entry["by"] for entry in found} == {"Ann <ann@example.com>"}
    assert {entry["at"] for entry in found} == {"2026-11-22T08:30:00Z"}
    assert [entry["run"] for entry in found] == ["run", "run", "run", "later"]


def test_an_entry_says_what_it_replaced(golden: Path) -> None:
    store = propose(golden.parent, "m", *[[1.0, 2.0, 9.0]])
    before = store.entries()["m"].sha256
    accept(store, "m", reason="agreed")
    last = lines(golden)[-1]
    assert (last["action"], last["replaces"], last["reason"]) == ("accepted", before, "agreed")
    assert last["record"] == store.entries()["m"].sha256 != before


def test_the_index_ends_the_chain(golden: Path) -> None:
    index = json.loads((golden / INDEX).read_text())
    assert index["journal"] == {"entries": 4, "sha256": lines(golden)[-1]["sha256"]}
    assert index["records"]["m"]["entry"] == 3


def test_an_index_of_a_later_version_is_said_to_be_one(golden: Path) -> None:
    text = (golden / INDEX).read_text()
    (golden / INDEX).write_text(text.replace('"schema_version": 2', '"schema_version": 3'))
    assert "from a later version" in refused(golden).message


def test_nothing_is_an_empty_chain(tmp_path: Path) -> None:
    assert read_ledger(tmp_path).head == Head(entries=0, sha256=GENESIS)


@pytest.mark.parametrize("name", [field for field in JournalEntry.__dataclass_fields__])
@pytest.mark.parametrize("number", [0, 3])
def test_any_field_of_any_line_that_was_edited_is_seen(golden: Path, name: str, number: int) -> None:
    found = lines(golden)
    value = found[number][name]
    changed = {"action": "removed", "origin": "in place"}.get(name) or (value + 1 if name == "number" else f"{value}1")
    text = (golden / JOURNAL).read_text().splitlines(keepends=True)
    text[number] = json.dumps({**found[number], name: changed}, separators=(",", ":")) + "\n"
    (golden / JOURNAL).write_text("".join(text))
    assert f"journal.jsonl line {number + 1}" in refused(golden).message


def test_a_field_that_nobody_reads_is_an_edit_too(golden: Path) -> None:
    text = (golden / JOURNAL).read_text()
    (golden / JOURNAL).write_text(text.replace('"change":', '"approved":"by everybody","change":', 1))
    assert "line 1 (a accepted) was changed" in refused(golden).message


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_line_with_a_hash_made_anew_breaks_the_chain(golden: Path, number: int) -> None:
    raw = (golden / JOURNAL).read_bytes().splitlines(keepends=True)
    raw[number] = forged({**lines(golden)[number], "reason": "nobody said so"})
    (golden / JOURNAL).write_bytes(b"".join(raw))
    assert f"line {number + 2} (" in refused(golden).message


def test_a_last_line_with_a_hash_made_anew_is_not_what_the_index_ends_in(golden: Path) -> None:
    raw = (golden / JOURNAL).read_bytes().splitlines(keepends=True)
    raw[-1] = forged({**lines(golden)[-1], "reason": "nobody said so"})
    (golden / JOURNAL).write_bytes(b"".join(raw))
    assert "index.json ends the journal at entry 4" in refused(golden).message


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "cut at its end": lambda raw: raw[:-1],
    "a line taken out": lambda raw: [raw[0], *raw[2:]],
    "two lines in another order": lambda raw: [raw[1], raw[0], *raw[2:]],
    "a line twice": lambda raw: [*raw, raw[-1]],
    "torn": lambda raw: [*raw[:-1], raw[-1][:-9]],
    "an empty line": lambda raw: [*raw, b"\n"],
    "no line": lambda raw: raw[:0],
    "no JSON": lambda raw: [b"{\n", *raw],
    "merge conflict": lambda raw: [raw[0], b"<<<<<<< HEAD\n", raw[1], b"=======\n", raw[2], b">>>>>>> main\n"],
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_lines_that_were_moved_are_seen(golden: Path, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    raw = (golden / JOURNAL).read_bytes().splitlines(keepends=True)
    (golden / JOURNAL).write_bytes(b"".join(edit(raw)))
    assert JOURNAL in refused(golden).message or INDEX in refused(golden).message


def test_a_merge_conflict_says_how_both_branches_are_kept(golden: Path) -> None:
    raw = (golden / JOURNAL).read_bytes().splitlines(keepends=True)
    (golden / JOURNAL).write_bytes(b"".join(EDITS["merge conflict"](raw)))
    error = refused(golden)
    assert "marks of a merge conflict" in error.message
    assert "--in-place" in error.hint


@pytest.mark.parametrize("name", ["sha256", "release", "reason", "accepted", "by", "run", "entry"])
def test_any_field_of_the_index_that_was_edited_is_seen(golden: Path, name: str) -> None:
    index = json.loads((golden / INDEX).read_text())
    other = {"entry": 9, "accepted": "2027-01-01"}.get(name, "another")
    index["records"]["m"][name] = other
    (golden / INDEX).write_bytes(codec.pretty(index))
    assert refused(golden).message.endswith(f"{name} of m is not what the journal says: it was changed")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda index: index["records"].pop("m"), "lacks a record of m"),
        (lambda index: index["records"].update(z=index["records"]["m"]), "names a record of z"),
        (lambda index: index["journal"].update(entries=3), "ends the journal at entry 3"),
        (lambda index: index["journal"].update(sha256="0" * 64), "ends the journal at entry 4 (000000000000)"),
        (lambda index: index.update(approved=True), "something was added to it"),
        (lambda index: index.update(schema_version=1), "is of schema 1"),
        (lambda index: index.update(records=[]), "damaged"),
    ],
)
def test_the_index_says_what_the_journal_says(golden: Path, change: Callable[[Any], object], said: str) -> None:
    index = json.loads((golden / INDEX).read_text())
    change(index)
    (golden / INDEX).write_bytes(codec.pretty(index))
    assert said in refused(golden).message


@pytest.mark.parametrize(("name", "other"), [(INDEX, JOURNAL), (JOURNAL, INDEX)])
def test_one_file_without_the_other_is_seen(golden: Path, name: str, other: str) -> None:
    (golden / name).unlink()
    error = refused(golden)
    assert error.message.endswith(f"{name} is missing, and {other} beside it is not")
    assert "git checkout" in error.hint


def test_a_record_replaces_the_one_before_it(golden: Path) -> None:
    ledger = read_ledger(golden)
    skipped = replace(ledger.entries[0], number=5, previous=ledger.head.sha256, replaces="")
    line = forged(msgspec.to_builtins(skipped))
    (golden / JOURNAL).write_bytes((golden / JOURNAL).read_bytes() + line)
    assert "line 5 replaces another record of a" in refused(golden).message


@pytest.mark.parametrize("name", ["..", ".", "", "x/../../y", "nul\0"])
def test_a_model_whose_folder_would_lie_elsewhere_is_refused(golden: Path, name: str) -> None:
    (golden / JOURNAL).write_bytes(forged({**lines(golden)[0], "model": name}))
    assert "can have no folder" in refused(golden).message


def test_a_chain_written_anew_is_whole_and_does_not_follow_the_old_one(golden: Path, tmp_path: Path) -> None:
    before = shutil.copytree(golden, tmp_path / "before")
    entries = read_ledger(golden).entries
    anew = extended(Ledger(), [entries[0], replace(entries[1], reason="forged"), *entries[2:]])
    write_ledger(golden, anew)
    assert GoldenStore(golden).names() == ("a", "b", "m")
    assert follows(read_ledger(golden), read_ledger(before)) == 2


def test_a_journal_follows_itself_and_any_beginning_of_it(golden: Path, tmp_path: Path) -> None:
    before = read_ledger(shutil.copytree(golden, tmp_path / "before"))
    assert follows(before, before) is None
    store = propose(tmp_path, "c")
    accept(store, "c")
    assert follows(store.ledger(), before) is None
    assert follows(before, store.ledger()) == 5


def test_a_removed_record_leaves_the_index_and_stays_in_the_journal(golden: Path) -> None:
    ledger = read_ledger(golden)
    entry = replace(ledger.entries[0], action=Action.REMOVED, at=f"{AT:%Y-%m-%d}T09:00:00Z")
    write_ledger(golden, extended(ledger, [entry]))
    assert list(read_ledger(golden).records) == ["b", "m"]
    assert read_ledger(golden).entries[-1].replaces == ledger.records["a"].sha256


def test_two_commands_never_write_one_journal(golden: Path) -> None:
    with journal.locked(golden), pytest.raises(GoldenError, match="another command"):
        accept(propose(golden.parent, "c"), "c")


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
    assert "golden status" in caught.value.hint
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


@pytest.mark.parametrize("name", journal.WITHIN)
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
        lambda: store.reject(["x"], why()),
        lambda: journal.settle(store.folder),
    )
    for command in commands:
        with pytest.raises(GoldenError, match=f"{place} is a link"):
            command()
    assert state(outside) == before


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
