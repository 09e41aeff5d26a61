"""Decisions about golden records: files move, the journal says so, and a decision that fails changes nothing."""

import json
import shutil
from pathlib import Path

import pytest

from harness.domain.golden import Action, Origin
from harness.errors import GoldenError, RunDirError
from harness.golden import journal
from harness.golden.store import Compared
from harness.golden.files import PROPOSED, RECORD, RECORDS, VALUES, content_digest
from harness.golden.journal import INDEX, JOURNAL
from harness.golden.store import GoldenStore
from harness.store import codec
from tests.unit.builders.requests import float32
from tests.unit.builders.golden_records import accept, propose, three, why


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_an_accepted_record_replaces_the_one_before(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7), run="newer", torch="2.6.0")
    store.accept(
        ["m"], why("agreed"), {"m": Compared(record=store.proposal("m")[1], change="beyond tolerance: 1 of 1")}
    )
    entry = store.ledger().entries[-1]
    assert (entry.action, entry.run, entry.release, entry.change) == (
        Action.ACCEPTED,
        "newer",
        "2.6.0",
        "beyond tolerance: 1 of 1",
    )
    assert store.record("m").producer.torch == "2.6.0"
    assert store.proposed() == ()
    assert sorted(path.name for path in (store.folder / RECORDS).iterdir()) == ["a", "b", "m"]
    (trust,) = store.trust(["m", "nobody"])
    assert (trust.reason, trust.by, trust.run) == ("agreed", "Ann <ann@example.com>", "newer")


def test_all_or_nothing_is_accepted(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "b", float32(8))
    (propose(tmp_path, "m", float32(7)).folder / PROPOSED / "m" / VALUES).write_bytes(b"x")
    before = content(store.folder)
    with pytest.raises(GoldenError, match="changed after it was proposed"):
        accept(store, "b", "m")
    assert content(store.folder) == before


def test_a_journal_that_cannot_be_written_puts_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    propose(tmp_path, "z", float32(7))
    before = content(store.folder)

    def full(*_: object) -> None:
        raise RunDirError("the disk is full", "free space")

    monkeypatch.setattr(journal, "write_ledger", full)
    with pytest.raises(RunDirError):
        accept(store, "m", "z")
    assert content(store.folder) == before


def test_a_rejected_proposal_is_gone_and_known_when_it_comes_again(tmp_path: Path) -> None:
    store = three(tmp_path)
    assert store.proposed() == ()
    propose(tmp_path, "m", float32(1, 2, 4), run="again")
    content = content_digest(store.proposal("m")[0])
    found = store.ledger().rejection("m", content)
    assert found is not None and (found.reason, found.action) == ("a regression", Action.REJECTED)
    assert store.ledger().rejection("a", content) is None
    propose(tmp_path, "m", float32(1, 2, 5))
    assert store.ledger().rejection("m", content_digest(store.proposal("m")[0])) is None


def test_rejecting_what_does_not_wait_changes_nothing(tmp_path: Path) -> None:
    store = three(tmp_path)
    before = content(store.folder)
    with pytest.raises(GoldenError, match="there is no proposal for a"):
        store.reject(["a"], why())
    assert content(store.folder) == before


def test_a_removed_record_is_gone_and_the_journal_says_why(tmp_path: Path) -> None:
    store = three(tmp_path)
    store.remove(["a"], why("the model is gone"))
    assert store.names() == ("b", "m")
    assert not store.record_folder("a").exists()
    assert (store.ledger().entries[-1].action, store.ledger().entries[-1].reason) == (
        Action.REMOVED,
        "the model is gone",
    )


def test_records_of_another_branch_are_accepted_in_place(tmp_path: Path) -> None:
    """Two branches accepted a record each; the merge kept one journal and both records."""
    store = three(tmp_path / "ours")
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "ours", theirs)
    accept(propose(tmp_path / "ours", "c"), "c", reason="ours")
    accept(propose(theirs, "d", torch="2.6.0"), "d", reason="theirs")
    accept(propose(theirs, "b", float32(5)), "b", reason="theirs")
    for model in ("b", "d"):
        shutil.copytree(theirs / "golden" / RECORDS / model, store.record_folder(model), dirs_exist_ok=True)
    with pytest.raises(GoldenError, match="changed after it was accepted"):
        store.record("b")
    assert store.accept_in_place(["all"], why("merged")) == ("b", "d")
    assert [store.record(name).model for name in store.names()] == ["a", "b", "c", "d", "m"]
    entry = store.ledger().entries[-1]
    assert (entry.model, entry.origin, entry.reason, entry.release) == ("d", Origin.IN_PLACE, "merged", "2.6.0")


def test_only_a_whole_record_is_accepted_in_place(tmp_path: Path) -> None:
    store = three(tmp_path)
    (store.record_folder("a") / VALUES).write_bytes(b"x")
    with pytest.raises(GoldenError, match="every record is what was accepted"):
        store.accept_in_place(["all"], why())
    with pytest.raises(GoldenError, match="changed after it was recorded"):
        store.accept_in_place(["a"], why())
    with pytest.raises(GoldenError, match="the record of b is what was accepted"):
        store.accept_in_place(["b"], why())


@pytest.fixture
def first(tmp_path: Path) -> GoldenStore:
    """A folder as it was before there was a journal."""
    store = three(tmp_path)
    (store.folder / JOURNAL).unlink()
    index = json.loads((store.folder / INDEX).read_text())
    records = {
        name: {key: entry[key] for key in ("sha256", "release", "reason", "accepted")}
        for name, entry in index["records"].items()
    }
    (store.folder / INDEX).write_bytes(codec.pretty({"schema_version": 1, "records": records}))
    return store


def test_an_index_without_a_journal_says_how_its_records_are_taken_over(first: GoldenStore) -> None:
    with pytest.raises(GoldenError, match="from before golden records had a journal") as caught:
        first.record("a")
    assert "golden accept all --in-place" in caught.value.hint
    assert first.accept_in_place(["all"], why("taken over")) == ("a", "b", "m")
    assert [first.record(name).model for name in first.names()] == ["a", "b", "m"]
    assert {entry.reason for entry in first.ledger().entries} == {"taken over"}


def test_records_of_an_older_index_must_be_what_it_says(first: GoldenStore) -> None:
    shutil.rmtree(first.record_folder("a"))
    shutil.copytree(first.record_folder("b"), first.record_folder("a"))
    with pytest.raises(GoldenError, match="a/record.json was changed after it was accepted"):
        first.accept_in_place(["all"], why())
    with pytest.raises(GoldenError, match="all at once"):
        first.accept_in_place(["b"], why())


@pytest.mark.parametrize("folder", [RECORDS, PROPOSED])
def test_a_record_in_another_models_folder_is_refused(tmp_path: Path, folder: str) -> None:
    store = three(tmp_path)
    propose(tmp_path, "x", float32(3))
    lying = store.folder / folder / "y"
    shutil.copytree(store.folder / PROPOSED / "x", lying)
    with pytest.raises(GoldenError, match="is the record of x, in another model's folder"):
        if folder == RECORDS:
            store.accept_in_place(["y"], why())
        else:
            accept(store, "y")


def test_a_record_names_its_own_files_only(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    path = store.folder / PROPOSED / "x" / RECORD
    told = json.loads(path.read_text())
    told["files"]["../../../secret"] = "0" * 64
    path.write_text(json.dumps(told))
    with pytest.raises(GoldenError, match="names other files than"):
        accept(store, "x")
