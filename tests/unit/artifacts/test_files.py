"""Which files are looked at, and that none can keep the reader waiting."""

import os
from pathlib import Path

import pytest

from harness.artifacts.archive.limits import CannotRead
from harness.core.errors import SelectionError
from harness.core.models import ArtifactKind
from harness.artifacts.files import FoundFile, find_files, kind_of, opened, others_in
from tests.unit.builders.archives import torchscript, zipped


def paths(*names: object) -> tuple[str, ...]:
    return tuple(file.path for file in find_files(list(map(str, names))))


def test_a_file_is_read_from_an_offset(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    with opened(str(tmp_path / "a")) as source:
        assert (source.size, source.read(2, 3), source.read(8, 100), source.read(99, 1)) == (10, b"234", b"89", b"")
        with pytest.raises(CannotRead):
            source.read(1 << 80, 1)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(CannotRead, match="no plain file"), opened(str(tmp_path / "pipe.pt")):
        pass


@pytest.mark.parametrize("name", ["missing.pt", "folder.pt", "dangling.pt", "a\0b"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.pt").mkdir()
    (tmp_path / "dangling.pt").symlink_to("nowhere")
    with pytest.raises(CannotRead), opened(f"{tmp_path}/{name}"):
        pass


def test_files_patterns_and_folders_are_found_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b.pt", "a.PT", "notes.txt", "sub/c.ptl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = paths(str(tmp_path), f"{tmp_path}/*.pt", f"{tmp_path}/notes.txt")
    assert [str(Path(path).relative_to(tmp_path)) for path in found] == ["a.PT", "b.pt", "sub/c.ptl", "notes.txt"]


def test_what_a_folder_holds_beside_models_and_their_requests_is_known(tmp_path: Path) -> None:
    for name in ("m.pt", "m.inputs.py", "ranker.safetensors", "sub/readme.txt", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert sorted(Path(path).name for path in others_in([str(tmp_path)])) == ["ranker.safetensors", "readme.txt"]
    assert others_in([str(tmp_path / "m.pt"), str(tmp_path / "*.safetensors")]) == []


def test_a_name_with_a_bracket_is_no_pattern_if_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].pt").write_bytes(b"")
    assert paths(f"{tmp_path}/a[1].pt") == (f"{tmp_path}/a[1].pt",)


def test_a_pattern_finds_what_is_below_and_follows_no_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.pt").write_bytes(b"")
    (tmp_path / "sub" / "folder.pt").mkdir()
    for name in ("one", "two"):  # by links, 2 ** 40 ways lead to the file
        (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    assert paths(f"{tmp_path}/**/*.pt") == (f"{tmp_path}/sub/a.pt",)
    assert paths(f"{tmp_path}/one/sub/?.pt") == (f"{tmp_path}/one/sub/a.pt",)


def test_folders_that_begin_with_a_dot_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    """There lie environments and caches, whose artifacts are nobody's models: ``--artifacts .`` in a job of CI."""
    for place in ("models", ".torchscript-gate/reports/run/given"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "a.pt").touch()
    mine, other = (str(tmp_path / place) for place in ("models/a.pt", ".torchscript-gate/reports/run/given/a.pt"))
    assert paths(str(tmp_path)) == (mine,)
    assert paths(str(tmp_path / "**" / "*.pt")) == (mine,)
    assert paths(str(tmp_path / "**" / ".torch*" / "**" / "*.pt")) == (other,)
    assert paths(str(tmp_path / ".torchscript-gate")) == (other,)


def test_what_a_run_has_made_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    """``--artifacts .`` beside ``reports/``: the second run would take the first one's exports, planted defects too."""
    mine, made = tmp_path / "models/probes/a.pt", tmp_path / "reports/first/probes/1f/planted_hang.pt"
    other = tmp_path / "reports/matrix/probes/1f/resnet.pt"  # of many runs, which has no plan
    for path in (mine, made, tmp_path / "reports/first/plan.json", other, tmp_path / "reports/matrix/.lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert paths(str(tmp_path)) == (str(mine),)
    assert paths(str(tmp_path / "**" / "*.pt")) == (str(mine),)
    assert paths(str(tmp_path / "reports/first")) == (str(made),)
    assert paths(str(tmp_path / "reports/first/probes/*/*.pt")) == (str(made),)


def test_a_relative_pattern_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pt").write_bytes(b"")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert paths("../*.pt") == ("../a.pt",)


def test_a_folder_that_nobody_can_look_into_is_no_run_and_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked").mkdir()
    (tmp_path / "a.pt").touch()
    stat = os.stat

    def refuse(path: str, *arguments: object, **named: object) -> os.stat_result:
        if "locked" in Path(path).parts[:-1]:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refuse)
    assert paths(str(tmp_path)) == (f"{tmp_path}/a.pt",)
    assert paths(f"{tmp_path}/**/*.pt") == (f"{tmp_path}/a.pt",)


def test_what_may_not_be_checked_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "lstat", refuse)
    assert paths(str(tmp_path), "/closed/a.pt") == (str(tmp_path), "/closed/a.pt")


def test_hostile_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(SelectionError) as caught:
        find_files([f"{tmp_path}/\x1b[31m\udcff.pt"])
    assert str(caught.value).isprintable()


def test_names_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    names = {
        "no.pt": "does not exist",
        "*.pt": "matches nothing",
        "a**": "matches nothing",
        "empty": "holds no artifact",
    }
    for name, what in {**names, "a" * 300: "does not exist", "a" * 300 + "*": "matches nothing"}.items():
        with pytest.raises(SelectionError, match=what):
            paths(f"{tmp_path}/{name}")


def test_a_link_out_of_the_folder_that_was_named_is_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside.pt", tmp_path / "models"
    outside.write_bytes(b"secret")
    folder.mkdir()
    (folder / "own.pt").write_bytes(b"own")
    (folder / "inside.pt").symlink_to("own.pt")
    (folder / "out.pt").symlink_to(outside)
    inside, out, own = find_files([str(folder)])
    for file in (inside, own, FoundFile(out.path)):
        with opened(*file) as source:
            assert source.size
    with pytest.raises(CannotRead, match="leads out of") as caught, opened(*out):
        pass
    assert caught.value.kind == "leads_out"
    assert find_files([f"{folder}/o*.pt"]) == (out, own)
    assert find_files([str(folder), out.path])[1] == FoundFile(out.path), "a file that is named itself may be a link"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("net.pt2", zipped({"net/archive_format": "pt2", "net/models/model.json": "{}"}), ArtifactKind.PROGRAM),
        ("net.pt", zipped({"version": "8.2", "serialized_exported_program.json": "{}"}), ArtifactKind.PROGRAM),
        ("net.pt2", zipped({"net/data/aotinductor/model/m.so": b"\x7fELF"}), ArtifactKind.PACKAGE),
        ("net.pt2", torchscript(), ArtifactKind.TORCHSCRIPT),
        ("net.pt", torchscript(), ArtifactKind.TORCHSCRIPT),
        ("net.pt2", torchscript()[:100], ArtifactKind.PROGRAM),
        ("net.pt2", b"", ArtifactKind.PROGRAM),
        ("net.pt", b"", ArtifactKind.TORCHSCRIPT),
    ],
)
def test_a_kind_is_in_the_content_and_in_the_name_only_of_what_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, kind: ArtifactKind
) -> None:
    (tmp_path / name).write_bytes(content)
    assert kind_of(str(tmp_path / name)) is kind
    assert paths(tmp_path) == (str(tmp_path / name),)


def test_a_neighbour_that_may_be_meant_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    with pytest.raises(SelectionError) as caught:
        find_files([f"{tmp_path}/modles/"])  # codespell:ignore modles
    assert caught.value.hint.startswith(f'did you mean "{tmp_path}/models/"? ')
