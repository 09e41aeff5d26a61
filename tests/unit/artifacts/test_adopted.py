"""What an adoption has left becomes an artifact, without torch."""

import hashlib
import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.diagnosis import Refusal, RewriteReport, RuleWords
from harness.core.models import Artifact, ArtifactKind, InputSet
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult, ProbeResult
from harness.core.verdict import Fix, Provenance
from harness.artifacts.provenance import NoteBeside
from harness.store.json import from_json
from tests.unit.builders.verdicts import ratio
from harness.artifacts import adopted as artifacts
from harness.artifacts.given import requests_beside
from harness.artifacts.adopted import (
    MOST_BYTES,
    adopted,
    archive_code,
    archive_identity,
    artifact_of,
    inputs_digest,
    keep_rewritten,
    rewrite_report,
    uncovered,
)
from harness.artifacts.file_copies import Kept
from harness.worker import wire
from tests.unit.builders.archives import given, zipped
from tests.unit.builders.requests import declaration, write_archive, write_artifact


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


def test_a_program_keeps_its_kind_and_its_operators_have_the_names_of_torchscript(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    nodes = [{"target": "torch.ops.aten.add.Tensor"}, {"target": "torch.ops.aten.relu.default"}]
    program = {"schema_version": {"major": 8, "minor": 2}, "nodes": nodes}
    path.write_bytes(zipped({"version": "8.2", "serialized_exported_program.json": json.dumps(program)}))
    model = given(path)
    assert model.given is not None
    model = replace(model, given=replace(model.given, kind=ArtifactKind.PROGRAM))
    marks = {"adopted": {"input_sets": [["example", "forward"]], "inputs_note": "its own example inputs"}}
    found = adopted(model, kept(path), adoption(tmp_path / "probe", **marks))
    assert (found.kind, found.operators) == (ArtifactKind.PROGRAM, ("aten::add", "aten::relu"))
    assert found.inputs_note == "its own example inputs"


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


def identity(path: Path) -> str:
    return archive_identity(path)[0]


def test_versions_of_archive_and_operators_are_two_numbers(tmp_path: Path) -> None:
    digest, archive_version, operator_version = archive_identity(write_archive(tmp_path / "a.pt"))
    assert (archive_version, operator_version) == ("3", "10")
    assert len(digest) == 64


def test_archive_without_versions_says_so(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.pt", changes={"version": None, ".data/version": None})
    assert archive_identity(path)[1:] == (None, None)


def test_same_model_under_another_name_has_the_same_identity(tmp_path: Path) -> None:
    one, other = write_archive(tmp_path / "a.pt", "a"), write_archive(tmp_path / "b.pt", "b")
    assert one.read_bytes() != other.read_bytes()
    assert identity(one) == identity(other)


@pytest.mark.parametrize("member", [".data/serialization_id", "code/model.py.debug_pkl"])
def test_members_that_change_with_path_and_process_do_not_count(tmp_path: Path, member: str) -> None:
    one = write_archive(tmp_path / "a.pt")
    assert identity(write_archive(tmp_path / "b.pt", changes={member: "another"})) == identity(one)
    assert identity(write_archive(tmp_path / "c.pt", changes={member: None})) == identity(one)


@pytest.mark.parametrize("member", ["version", ".data/version", "code/model.py", "data.pkl", "constants.pkl"])
def test_every_other_member_counts(tmp_path: Path, member: str) -> None:
    one = write_archive(tmp_path / "a.pt")
    assert identity(write_archive(tmp_path / "b.pt", changes={member: "another"})) != identity(one)


def test_name_of_a_member_counts(tmp_path: Path) -> None:
    one = write_archive(tmp_path / "a.pt", changes={"data/0": "x"})
    assert identity(write_archive(tmp_path / "b.pt", changes={"data/1": "x"})) != identity(one)


def test_order_of_members_does_not_count(tmp_path: Path) -> None:
    one = write_archive(tmp_path / "a.pt")
    with zipfile.ZipFile(one) as source, zipfile.ZipFile(tmp_path / "b.pt", "w") as target:
        for info in reversed(source.infolist()):
            target.writestr(info.filename, source.read(info))
    assert identity(tmp_path / "b.pt") == identity(one)


@pytest.mark.parametrize("merged", ["xdata/1 y", "x6 data/1 1 y", "xdata/1y", "xy"])
def test_two_members_are_not_one_member_that_holds_both(tmp_path: Path, merged: str) -> None:
    one = write_archive(tmp_path / "a.pt", changes={"data/0": "x", "data/1": "y"})
    other = write_archive(tmp_path / "b.pt", changes={"data/0": merged})
    assert identity(one) != identity(other)


def test_archive_below_two_roots_has_no_identity(tmp_path: Path) -> None:
    """Torch reads the first, and a digest that counts by name would be that of the last."""
    path = write_archive(tmp_path / "a.pt", changes={"code/model.py": "def forward(self): return self.planted"})
    with zipfile.ZipFile(write_archive(tmp_path / "b.pt", "good")) as good, zipfile.ZipFile(path, "a") as planted:
        for info in good.infolist():
            planted.writestr(info.filename, good.read(info))
    with pytest.raises(ValueError, match="two members of one name"):
        archive_identity(path)


@pytest.mark.parametrize("keep", [0, 1, 40, -1, -30])
def test_truncated_archive_is_a_value_error_that_names_the_file(tmp_path: Path, keep: int) -> None:
    path = write_archive(tmp_path / "a.pt")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"a\.pt is not a readable TorchScript archive"):
        archive_identity(path)


def test_flipped_byte_of_a_member_is_a_value_error(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.pt")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"pickle", b"pickla"))
    with pytest.raises(ValueError, match="is not a readable TorchScript archive"):
        archive_identity(path)


def test_member_longer_than_the_file_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", "x" * 10)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 20
    data[at : at + 8] = (1_000_000).to_bytes(4, "little") * 2
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is not a readable TorchScript archive"):
        archive_identity(path)


def test_archive_that_unpacks_to_far_more_than_it_is_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MOST_MORE_BYTES", 1 << 20)
    for unpacked_bytes, refused in ((1 << 20, False), (2 << 20, True)):
        path = tmp_path / f"{unpacked_bytes}.pt"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("m/data/0", bytes(unpacked_bytes))
        if refused:
            with pytest.raises(ValueError, match="unpacks to 2097152 bytes"):
                archive_identity(path)
        else:
            assert archive_identity(path)[0]


@pytest.mark.parametrize("name", ["absent.pt", "folder.pt"])
def test_file_that_cannot_be_opened_is_a_value_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(ValueError, match="is not a readable TorchScript archive"):
        archive_identity(tmp_path / name)


def test_export_becomes_an_artifact(tmp_path: Path) -> None:
    write_artifact(tmp_path)
    exported = {"operators": ["aten::add.Tensor"], "input_sets": [["example", "forward"], ["batch 2", "encode"]]}
    export = ProbeResult(
        key="k", side="old", outcome=Outcome.COMPLETED, directory=str(tmp_path), data={"exported": exported}
    )
    found = artifact_of(declaration(reset="reset_state", seed=5), export)
    assert (found.model, found.path, found.inputs_dir) == ("m", str(tmp_path / "m.pt"), str(tmp_path / "inputs"))
    assert (found.archive_version, found.operator_version) == ("3", "10")
    assert found.digest == identity(tmp_path / "m.pt")
    assert found.size_bytes == (tmp_path / "m.pt").stat().st_size
    assert found.input_sets == (InputSet(name="example"), InputSet(name="batch 2", method="encode"))
    assert (found.operators, found.reset, found.seed) == (("aten::add.Tensor",), "reset_state", 5)
    assert found.inputs_digest == inputs_digest(tmp_path / "inputs")


@pytest.mark.parametrize("name", [wire.TENSORS_INDEX, wire.TENSORS_BIN])
def test_identity_of_the_inputs_covers_index_and_bytes(tmp_path: Path, name: str) -> None:
    folder = Path(write_artifact(tmp_path).inputs_dir)
    before = inputs_digest(folder)
    assert inputs_digest(folder) == before
    with (folder / name).open("ab") as stream:
        stream.write(b"x")
    assert inputs_digest(folder) != before


def test_inputs_of_any_size_are_hashed_in_pieces(tmp_path: Path) -> None:
    folder = Path(write_artifact(tmp_path).inputs_dir)
    with (folder / wire.TENSORS_BIN).open("ab") as stream:
        stream.truncate(64 << 20)
    tracemalloc.start()
    try:
        assert inputs_digest(folder)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_promised_operators_that_the_artifact_lacks_are_named(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path, operators=("aten::add.Tensor", "aten::mul.Scalar"))
    covers = ("aten::add", "aten::linear", "aten::mul", "aten::ad")
    assert uncovered(declaration(covers=covers), artifact) == ("aten::linear", "aten::ad")
    assert uncovered(declaration(), artifact) == ()


def archive(path: Path, **texts: str) -> str:
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("m/version", "3")
        for name, text in texts.items():
            stream.writestr(f"m/code/{name}.py", text)
            stream.writestr(f"m/code/{name}.py.debug_pkl", "binary")
    return str(path)


def test_one_file_is_reported_as_it_is(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "a.pt", one="def f():\n  pass\n\n")) == "def f():\n  pass"


def test_several_are_reported_by_name(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "a.pt", b="two", a="one")) == "# code/a.py\none\n\n# code/b.py\ntwo"


def test_what_nobody_would_read_or_nobody_can_is_left_out(tmp_path: Path) -> None:
    assert archive_code(archive(tmp_path / "large.pt", a="x" * (MOST_BYTES + 1))) == ""
    (tmp_path / "none.pt").write_text("no archive")
    assert archive_code(str(tmp_path / "none.pt")) == ""
    assert archive_code(str(tmp_path / "missing.pt")) == ""


def probe(**mark: object) -> ProbeResult:
    data = {"rewritten": mark} if mark else {}
    return ProbeResult(key="k", side="old", outcome=Outcome.COMPLETED, directory="d", data=data)


def test_a_worker_that_said_nothing_has_said_nothing() -> None:
    assert rewrite_report(probe()) == RewriteReport()


def test_what_fits_and_what_refuses_is_read_with_its_words() -> None:
    said = rewrite_report(
        probe(
            fits=[["gelu", [3, 0, 1]]],
            refused=[["attention", [4], "it drops out at random"]],
            rules={"gelu": {"what": "its formula", "needs": ""}},
        )
    )
    assert said.fits == (("gelu", (3, 0, 1)),)
    assert said.refused == (Refusal(rule="attention", address=(4,), why="it drops out at random"),)
    assert said.rules == {"gelu": RuleWords(what="its formula")}


def test_nodes_are_read_as_a_trace_would_tell_them() -> None:
    schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    place = {"address": [3, 0, 1], "operator": "aten::add.Tensor", "schema": schema, "source": "m.py:3"}
    said = rewrite_report(
        probe(nodes=[{"rule": "fence", **place}], found=[{"method": "forward", "branch": 1, **place}])
    )
    (done,), (found,) = said.done, said.found
    assert (done.address, done.kind, done.operator) == ((3, 0, 1), "aten::add", "aten::add.Tensor")
    assert (found.branch_address, found.source) == ((3, 0), "m.py:3")


def test_a_patched_archive_is_kept_with_its_provenance(tmp_path: Path) -> None:
    made = tmp_path / "probe"
    made.mkdir()
    (made / "m.pt").write_bytes(b"archive")
    artifact = Artifact(
        model="m", path=str(made / "m.pt"), digest="0", size_bytes=7, operators=(), inputs_dir="", input_sets=()
    )
    fix = Fix(name="fence", rewrites=True, price=ratio(1.4, 1.6))
    provenance = Provenance(origin="m", from_digest="1", old="torch 2.1.2", new="torch 2.6.0", fix=fix)
    path = keep_rewritten(artifact, tmp_path / "run" / "fence-0", provenance)
    assert path.read_bytes() == b"archive"
    assert from_json(path.with_name("m.provenance.json").read_bytes(), NoteBeside) == NoteBeside(
        sha256=hashlib.sha256(b"archive").hexdigest(), provenance=provenance
    )
    assert requests_beside(str(path)) == ""  # plain data could not hold them
    (made / "m.inputs.pt").write_bytes(b"requests")
    again = keep_rewritten(artifact, tmp_path / "run" / "fence-1", provenance)
    assert Path(requests_beside(str(again))).read_bytes() == b"requests"
