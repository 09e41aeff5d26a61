"""Request files that belong to no artifact are told, with the artifact that may have been meant."""

from pathlib import Path

from harness.models.given import given_models
from tests.unit.builders.archives import torchscript


def write(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def notes(*names: object) -> tuple[str, ...]:
    return given_models([str(name) for name in names]).notes


def test_requests_beside_an_artifact_of_another_name_are_reported(tmp_path: Path) -> None:
    model, orphan = write(tmp_path / "ranker-v2.pt", torchscript()), write(tmp_path / "ranker_v2.inputs.pt")
    said = f"{orphan}: requests of no artifact; those of ranker-v2.pt are called ranker-v2.inputs.pt"
    assert notes(tmp_path) == (said,)
    assert notes(model) == (said,)
    assert notes(f"{tmp_path}/*.pt") == (said,)


def test_requests_that_are_used_or_have_a_file_of_their_name_are_not(tmp_path: Path) -> None:
    write(tmp_path / "a.pt", torchscript())
    write(tmp_path / "a.inputs.npz")
    assert notes(tmp_path) == ()
    assert notes(tmp_path / "a.pt") == ()


def test_version_in_a_name_is_no_suffix(tmp_path: Path) -> None:
    write(tmp_path / "ranker.v2.pt", torchscript())
    write(tmp_path / "ranker.inputs.npz")
    (note,) = notes(tmp_path)
    assert note.endswith("those of ranker.v2.pt are called ranker.v2.inputs.npz")


def test_requests_in_a_folder_of_their_own_are_reported_with_the_place_of_the_artifact(tmp_path: Path) -> None:
    model, orphan = write(tmp_path / "ranker.pt", torchscript()), write(tmp_path / "inputs" / "ranker.inputs.py")
    (note,) = notes(tmp_path)
    assert note.startswith(f"{orphan}: ") and note.endswith(f"are called ranker.inputs.py, beside {model}")


def test_artifact_that_has_requests_is_not_what_was_meant(tmp_path: Path) -> None:
    write(tmp_path / "a.pt", torchscript())
    write(tmp_path / "a.inputs.pt")
    orphan = write(tmp_path / "aa.inputs.pt")
    assert notes(tmp_path) == (f"{orphan}: requests of no artifact",)


def test_manifest_that_names_its_requests_leaves_no_orphan(tmp_path: Path) -> None:
    write(tmp_path / "a.pt", torchscript())
    write(tmp_path / "monday.inputs.pt")
    write(tmp_path / "models.toml", b'[[models]]\npath = "a.pt"\ninputs = "monday.inputs.pt"\n')
    assert notes(tmp_path) == ()


def test_many_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "model.pt", torchscript())
    for index in range(25):
        write(tmp_path / f"x{index:02}.inputs.pt")
    found = notes(tmp_path)
    assert len(found) == 21
    assert found[-1] == "and 5 more files with requests of no artifact"
