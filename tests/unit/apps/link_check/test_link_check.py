"""``link-check``: what users name, and every form of the answer."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli import main
from harness.report.formats import LINK_CHECK

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

# The first is gone since 2.5, the second inline since 2.4, the third there in every release.
SERVER = (
    "namespace at { int* GetPrivateUse1HooksInterface(); } int* serve() { return at::GetPrivateUse1HooksInterface(); }"
)
INLINE = "namespace at::autocast { bool is_enabled(); } bool serve() { return at::autocast::is_enabled(); }"
TWIN = "namespace at { int get_num_threads(); } int serve() { return at::get_num_threads(); }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a server's build: two libraries, a static object, a text."""
    folder = tmp_path_factory.mktemp("build")
    for name, source in (
        ("server.so", SERVER),
        ("inline.so", INLINE),
        ("twin.so", TWIN),
        ("plain.so", "int nothing() { return 0; }"),
    ):
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(folder / name)]
        subprocess.run(command, input=source.encode(), check=True)
    subprocess.run(["g++", "-c", "-x", "c++", "-", "-o", str(folder / "part.o")], input=TWIN.encode(), check=True)
    (folder / "notes.txt").write_text("no binary")
    return folder


def test_a_folder_is_searched_and_the_gravest_stands_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["link-check", str(folder), "--old", "2.1.2", "--new", "2.6.0", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    outcomes = {Path(file).name: outcome for file, outcome in answer["outcomes"].items()}
    assert outcomes == {"server.so": "change the source", "inline.so": "recompile", "twin.so": "links"}
    assert sorted(Path(file).name for file in answer["others"]) == ["part.o", "plain.so"]
    missing = {Path(binary["file"]).name: binary["missing"] for binary in answer["binaries"]}
    assert [(one["text"], one["since"]) for one in missing["inline.so"]] == [("at::autocast::is_enabled()", "2.4.1")]
    assert [(one["text"], one["since"]) for one in missing["server.so"]] == [
        ("at::GetPrivateUse1HooksInterface()", "2.5.1")
    ]
    server = next(binary for binary in answer["binaries"] if binary["file"].endswith("server.so"))
    assert "2.1.2" in server["fits"]
    assert "2.6.0" not in server["fits"]


def test_without_the_old_release_it_is_read_from_the_symbols(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["link-check", str(folder / "server.so"), "--new", "2.6.0", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["old"] in ("2.0.1", "2.1.2")
    assert main(["link-check", str(folder / "twin.so"), "--new", "2.6.0"]) == 4
    assert "which has most of what they need" in capsys.readouterr().out


def test_that_it_links_is_enough_within_a_minor_release_only(folder: Path) -> None:
    """PyTorch promises no layout of its classes between them."""
    twin = ["link-check", str(folder / "twin.so"), "--new", "2.6.0", "--old"]
    assert [main([*twin, old]) for old in ("2.6.0", "2.5.1", "2.1.2")] == [0, 4, 4]


@pytest.mark.parametrize("form", LINK_CHECK.names)
def test_every_form_names_the_symbol_that_is_gone(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["link-check", str(folder / "server.so"), "--new", "2.6.0", "--format", form]) == 1
    assert "at::GetPrivateUse1HooksInterface" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent.so", "--new", "2.6.0"), "absent.so is not there"),
        (("notes.txt", "--new", "2.6.0"), "notes.txt is no whole ELF file"),
        (("part.o", "--new", "2.6.0"), "it has no dynamic section"),
        (("plain.so", "--new", "2.6.0"), "nothing there needs LibTorch"),
        (("twin.so", "--new", "9.9.9"), "9.9.9 is no release whose symbols the gate knows"),
        (("twin.so", "--new", "."), "has no libtorch_cpu.so"),
        (("twin.so", "--new", "notes.txt"), "notes.txt is no wheel"),
        (("twin.so", "--new", "2.6.0", "--image", "notes.txt"), "--image notes.txt is no folder"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    arguments: tuple[str, ...],
    words: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main(["link-check", *arguments]) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert "Traceback" not in printed


def test_a_cut_file_is_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (folder / "server.so").read_bytes()
    for size in (5, 60, 200, len(whole) // 2):
        (tmp_path / "cut.so").write_bytes(whole[:size])
        assert main(["link-check", str(tmp_path / "cut.so"), "--new", "2.6.0"]) == 2
        assert "cut.so is no whole ELF file" in capsys.readouterr().err


@pytest.mark.parametrize(("change", "why"), [("cut", "is no whole ELF file"), ("machine", "it is for AArch64")])
def test_a_binary_of_a_folder_that_cannot_be_read_is_no_green(
    change: str, why: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside one that links; alone, it is refused."""
    shutil.copy(folder / "twin.so", tmp_path)
    check = ["link-check", str(tmp_path), "--old", "2.6.0", "--new", "2.6.0"]
    assert main(check) == 0
    whole = bytearray((folder / "server.so").read_bytes())
    if change == "machine":
        whole[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    (tmp_path / "server.so").write_bytes(whole if change == "machine" else whole[: len(whole) // 2])
    capsys.readouterr()
    assert main([*check, "--format", "json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert [Path(file).name for file in answer["unread"]] == ["server.so"]
    assert why in next(iter(answer["unread"].values()))
    assert main(check) == 4
    assert "1 binary: not read" in capsys.readouterr().out
    assert main(["link-check", str(tmp_path / "server.so"), "--old", "2.6.0", "--new", "2.6.0"]) == 2
