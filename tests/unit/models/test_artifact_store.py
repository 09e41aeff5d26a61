"""The identity of an artifact, and what an export left behind."""

import tracemalloc
import zipfile
from pathlib import Path

import pytest

from harness.domain.models import InputSet
from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeResult
from harness.models import artifacts
from harness.models.artifacts import archive_identity, artifact_of, inputs_digest, uncovered
from harness.worker import wire
from tests.unit.builders.requests import declaration, write_archive, write_artifact


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
