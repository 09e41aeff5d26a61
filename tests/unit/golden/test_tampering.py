"""Records that somebody wrote so that all digests fit: what they say of themselves is held against their bytes."""

import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.domain.golden import Action
from harness.errors import GoldenError
from harness.golden.store import Compared
from harness.golden.files import ARTIFACT, IGNORED, INPUTS, PROPOSED, RECORD, RECORDS, VALUES
from harness.golden.journal import Ledger, extended, write_ledger
from harness.golden.store import GoldenStore
from harness.store import codec
from tests.unit.builders.requests import float32, write_archive
from tests.unit.builders.golden_records import accept, propose, three, why


def nothing(_told: Any) -> None:
    """Leave the record as it is."""


def forged(store: GoldenStore, edit: Callable[[Any], None], files: Mapping[str, bytes] | None = None) -> GoldenStore:
    """Change the record of ``a``; record, journal and index are written so that every digest fits."""
    folder = store.record_folder("a")
    told = json.loads((folder / RECORD).read_text())
    for name, data in (files or {}).items():
        (folder / name).write_bytes(data)
        told["files"][name] = hashlib.sha256(data).hexdigest()
    edit(told)
    (folder / RECORD).write_bytes(codec.canonical(told))
    digest = hashlib.sha256((folder / RECORD).read_bytes()).hexdigest()
    accepted = [entry for entry in store.ledger().entries if entry.action is Action.ACCEPTED]
    entries = [replace(entry, record=digest) if entry.model == "a" else entry for entry in accepted]
    write_ledger(store.folder, extended(Ledger(), entries))
    return GoldenStore(store.folder)


def refused(store: GoldenStore, said: str) -> None:
    with pytest.raises(GoldenError, match=said):
        store.record("a")
    with pytest.raises(GoldenError, match=said):
        store.outputs("a")
    propose(store.folder.parent, "b", float32(5)).accept(["b"], why())  # others stay usable


def spec_of(told: Any) -> Any:
    return told["calls"][0][2][1]


def test_what_fits_in_every_digest_is_read(tmp_path: Path) -> None:
    """Else the tests below could be red for another reason."""
    assert forged(three(tmp_path), nothing).record("a").model == "a"


def test_a_digest_of_other_numbers_than_those_beside_it_is_refused(tmp_path: Path) -> None:
    """A run takes equal digests for equal numbers: this one would call what the new release answers the same bits."""
    digest = hashlib.sha256(float32(9, 9, 9).tobytes()).hexdigest()
    refused(forged(three(tmp_path), lambda told: spec_of(told).update(sha256=digest)), "other numbers than record.json")


def test_other_numbers_under_the_digest_of_those_before_are_refused(tmp_path: Path) -> None:
    """A diff would call them the same bits."""
    packed = gzip.compress(float32(9, 9, 9).tobytes())
    refused(forged(three(tmp_path), nothing, {VALUES: packed}), "values.bin.gz holds other numbers")


def test_another_artifact_under_the_identity_of_the_one_before_is_refused(tmp_path: Path) -> None:
    """It would answer whatever it likes in the new release, and no diff would show that it is another one."""
    archive = write_archive(tmp_path / "other.pt", "a", {"code/model.py": "def forward(self): return self.one"})
    data = archive.read_bytes()
    other = {ARTIFACT: gzip.compress(data)}
    sized = forged(three(tmp_path), lambda told: told["artifact"].update(size_bytes=len(data)), other)
    refused(sized, "holds another artifact than record.json")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    refused(forged(three(tmp_path), nothing, {ARTIFACT: gzip.compress(b"x")}), "not a readable TorchScript archive")


def test_the_same_bytes_in_another_compression_are_the_same(tmp_path: Path) -> None:
    data = gzip.compress(float32(1, 2, 3).tobytes(), 1)
    store = forged(three(tmp_path), nothing, {VALUES: data})
    assert store.record("a").files[VALUES] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", [VALUES, INPUTS, ARTIFACT])
def test_a_file_that_unpacks_to_more_than_the_record_says_is_refused(tmp_path: Path, name: str) -> None:
    refused(forged(three(tmp_path), nothing, {name: gzip.compress(bytes(10_000_000))}), "unpacks to more than the")


@pytest.mark.parametrize("name", [VALUES, INPUTS, ARTIFACT])
def test_a_file_that_is_no_gzip_is_refused(tmp_path: Path, name: str) -> None:
    refused(forged(three(tmp_path), nothing, {name: b"\x1f\x8b\x08"}), "is damaged")


@pytest.mark.parametrize("change", [{"offset": -1}, {"nbytes": "12"}, {"nbytes": None}, {"offset": True}])
def test_a_spec_that_points_elsewhere_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    refused(forged(three(tmp_path), lambda told: spec_of(told).update(change)), "points outside of its files")


def test_a_tree_without_end_is_refused(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    path = store.folder / PROPOSED / "x" / RECORD
    path.write_text(path.read_text().replace('"calls":[', '"calls":[' + "[" * 100_000 + "]" * 100_000 + ","))
    with pytest.raises(GoldenError, match="is damaged"):
        accept(store, "x")


@pytest.mark.parametrize(
    "tree",
    [
        [],
        ["tensor", {"dtype": "float32", "shape": [99], "offset": 0, "nbytes": 12}],
        ["tensor", {"dtype": "float31", "shape": [3], "offset": 0, "nbytes": 12}],
        ["list", 3],
    ],
)
def test_outputs_that_none_can_be_are_refused(tmp_path: Path, tree: Any) -> None:
    def edit(told: Any) -> None:
        told["calls"][0][2] = tree

    refused(forged(three(tmp_path), edit, {VALUES: gzip.compress(b"")}), "outputs that none can be|unpacks to")


@pytest.mark.parametrize("change", [{"release": "2.6.0"}, {"run": "another"}])
def test_a_decision_that_says_something_else_of_its_record_is_refused(tmp_path: Path, change: dict[str, str]) -> None:
    store = three(tmp_path)
    accepted = [entry for entry in store.ledger().entries if entry.action is Action.ACCEPTED]
    entries = [replace(entry, **change) if entry.model == "a" else entry for entry in accepted]  # type: ignore[arg-type]
    write_ledger(store.folder, extended(Ledger(), entries))
    refused(store, "entry 1 of the journal says torch")


@pytest.mark.parametrize("name", [RECORD, VALUES, ""])
@pytest.mark.parametrize("target", ["beside", "/dev/zero"])
def test_a_link_is_no_part_of_a_record(tmp_path: Path, name: str, target: str) -> None:
    """What it leads to is not in git, or has no end."""
    store = three(tmp_path)
    place = store.record_folder("a") / name
    place.rename(tmp_path / "beside")
    place.symlink_to(tmp_path / target)
    with pytest.raises(GoldenError, match="a link or no file"):
        store.record("a")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    store = three(tmp_path)
    path = store.record_folder("a") / VALUES
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GoldenError, match="a link or no file"):
        store.record("a")


def test_a_proposal_that_is_a_link_is_not_accepted_and_is_replaced_by_the_next(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    proposal = store.folder / PROPOSED / "x"
    elsewhere = proposal.rename(tmp_path / "elsewhere")
    proposal.symlink_to(elsewhere)
    with pytest.raises(GoldenError, match="a link or no file"):
        accept(store, "x")
    propose(tmp_path, "x")
    assert (elsewhere / RECORD).exists()
    accept(store, "x")
    assert not store.record_folder("x").is_symlink()


@pytest.mark.parametrize("decide", [GoldenStore.accept, GoldenStore.reject])
def test_a_proposal_that_is_another_one_than_was_compared_is_not_decided_about(tmp_path: Path, decide: Any) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    compared = {"m": Compared(record=store.proposal("m")[1], change="beyond tolerance")}
    propose(tmp_path, "m", float32(8))
    with pytest.raises(GoldenError, match="the proposal for m is another one by now"):
        decide(store, ["m"], why(), compared)
    assert store.proposed() == ("m",)
    assert store.ledger().head.entries == 4


@pytest.mark.parametrize("name", ["../proposed/x", "a/../b", ".", ""])
def test_only_what_lies_in_the_records_is_accepted_in_place(tmp_path: Path, name: str) -> None:
    store = three(tmp_path)
    propose(tmp_path, "x")
    for model in (name, str(store.folder / PROPOSED / "x")):
        with pytest.raises(GoldenError, match="no record of .* lies in"):
            store.accept_in_place([model], why())


def test_what_waits_is_ignored_by_git_wherever_the_folder_lies(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    assert (store.folder / PROPOSED / IGNORED).read_text() == "*\n"
    assert store.proposed() == ("x",)


def test_a_record_in_another_models_place_is_refused(tmp_path: Path) -> None:
    store = three(tmp_path)
    shutil.rmtree(store.folder / RECORDS / "a")
    shutil.copytree(store.folder / RECORDS / "b", store.folder / RECORDS / "a")
    with pytest.raises(GoldenError, match="was changed after it was accepted"):
        store.record("a")
