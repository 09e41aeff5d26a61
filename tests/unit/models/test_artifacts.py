"""What an adoption has left becomes an artifact, without torch."""

import hashlib
from dataclasses import replace
from pathlib import Path

from harness.domain.models import InputSet
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure, ModelResult, ProbeResult
from harness.models.artifacts import adopted
from harness.models.file_copies import Kept
from harness.worker import wire
from tests.unit.builders.requests import write_archive
from tests.unit.builders.given_models import given


def kept(path: Path) -> Kept:
    return Kept(path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def adoption(folder: Path, **marks: object) -> ProbeResult:
    folder.mkdir()
    if marks:
        (folder / "inputs").mkdir()
        for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
            (folder / "inputs" / name).write_bytes(b"")
    model = ModelResult(
        model="m", outcome=Outcome.COMPLETED if marks else Outcome.CRASH, phase="" if marks else "infer"
    )
    return ProbeResult(
        key="k",
        side="old",
        outcome=model.outcome,
        directory=str(folder),
        models=(model,),
        data=marks,
        exit_detail="" if marks else "signal SIGSEGV",
    )


def test_artifact_has_what_the_adoption_and_the_file_say(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    marks = {"adopted": {"input_sets": [["example", "encode"]], "inputs_note": ""}}
    found = adopted(given(path), kept(path), adoption(tmp_path / "probe", **marks))
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.input_sets == (InputSet(name="example", method="encode"),)
    assert (found.path, found.inputs_dir, found.inputs_note) == (str(path), str(tmp_path / "probe" / "inputs"), "")


def test_method_that_was_named_and_given_up_is_reported_with_why(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    model = given(path)
    assert model.given is not None
    named = replace(model, given=replace(model.given, methods=("encode", "rank")))
    mark = {"input_sets": [["guessed", "encode"]], "inputs_note": "guessed", "given_up": [["rank", "rank: no idea"]]}
    found = adopted(named, kept(path), adoption(tmp_path / "probe", adopted=mark))
    assert found.uncalled == ("rank: no idea",)
    assert adopted(model, kept(path), adoption(tmp_path / "again", adopted=mark)).uncalled == ()


def test_file_that_no_reader_understands_is_taken_over_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"PK\x03\x04 torn")
    marks = {"adopted": {"input_sets": [], "inputs_note": "it does not load"}}
    found = adopted(given(path), kept(path), adoption(tmp_path / "probe", **marks))
    assert (found.operators, found.operator_version, found.size_bytes) == ((), None, 9)


def test_adoption_that_ended_badly_leaves_an_artifact_that_is_only_loaded(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    found = adopted(given(path), kept(path), adoption(tmp_path / "probe"))
    assert found.input_sets == ()
    assert "infer" in found.inputs_note and "SIGSEGV" in found.inputs_note
    assert (Path(found.inputs_dir) / wire.TENSORS_INDEX).read_bytes() == b""


def test_error_of_the_adoption_is_quoted(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    failure = Failure(type="RuntimeError", message="Unknown builtin op: a::b", phase="load")
    broken = adoption(tmp_path / "probe")
    model = ModelResult(model="m", outcome=Outcome.LOAD_ERROR, phase="load", failure=failure)
    found = adopted(
        given(path),
        kept(path),
        ProbeResult(key="k", side="old", outcome=Outcome.COMPLETED, directory=broken.directory, models=(model,)),
    )
    assert "Unknown builtin op" in found.inputs_note
