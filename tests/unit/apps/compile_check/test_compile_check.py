"""``compile-check``: a real compiler reads real sources against headers of two small LibTorches."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.report.formats import COMPILE_CHECK

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

OLD = "namespace at {{ int kept(); int parse(int); int gone(); struct Tensor {{ int data(); }}; }}\n"
NEW = OLD.replace("int parse(int)", "int parse(double, double)").replace("int gone();", "").replace("data", "data_ptr")
SOURCES = {
    "fine": "int f() { return at::kept(); }",
    "gone": "int f() {\n  return at::gone();\n}",
    "gone_too": "int f() { return at::gone() + at::kept(); }",
    "parameters": "int f() { return at::parse(1); }",
    "member": "int f(at::Tensor t) { return t.data(); }",
    "broken": "int f() { return nonsense; }",
    "both": "int f() { return nonsense; }\nint g() { return at::gone(); }",
    "lost": '#include "c10/util/lost.h"\nint f() { return at::gone(); }',
}


def _libtorch(folder: Path, text: str, *, standard: int = 201703) -> Path:
    for name in ("c10/macros/Macros.h", "torch/torch.h", "ATen/ATen.h", "c10/util/C++17.h"):
        (folder / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "include" / name).write_text("#pragma once\n")
    guard = f"#if __cplusplus < {standard}L\n#error C++ is required\n#endif\n"
    (folder / "include" / "ATen" / "ATen.h").write_text(f"#pragma once\n{guard}{text.format()}")
    return folder


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build with a database, old headers that its flags name, and new ones."""
    _libtorch(tmp_path / "old", OLD)
    _libtorch(tmp_path / "new", NEW)
    (tmp_path / "old" / "include" / "c10" / "util" / "lost.h").write_text("")
    entries: list[dict[str, Any]] = []
    for name, text in SOURCES.items():
        file = tmp_path / f"{name}.cpp"
        file.write_text(f'#include "ATen/ATen.h"\n{text}\n')
        command = f"g++ -std=c++17 -I../old/include -Werror -MD -MF {name}.d -o {name}.o -c {file}"
        entries.append({"directory": str(tmp_path / "build"), "file": str(file), "command": command})
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps(entries))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "cache"))
    return tmp_path / "build"


def _checked(capsys: pytest.CaptureFixture[str], *arguments: object, code: int) -> dict[str, Any]:
    assert main(["compile-check", *map(str, arguments), "--format", "json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_what_the_new_headers_refuse_is_grouped_by_api(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = _checked(capsys, build, "--new", "new", code=1)
    assert {Path(file).stem: outcome for file, outcome in answer["outcomes"].items()} == {
        "fine": "compiles",
        "gone": "breaks",
        "gone_too": "breaks",
        "parameters": "breaks",
        "member": "breaks",
        "broken": "does not compile as it is",
        "both": "breaks",
        "lost": "breaks",
    }
    broken = {
        one["api"]: [(Path(error["file"]).stem, error["line"]) for error in one["errors"]] for one in answer["broken"]
    }
    assert broken == {
        "at::gone": [("gone", 3), ("gone_too", 2), ("both", 3)],
        "at::parse": [("parameters", 2)],
        "at::Tensor::data": [("member", 2)],
        "c10/util/lost.h": [("lost", 2)],
    }
    assert [Path(file).stem for file in answer["stopped"]] == ["lost"]
    assert not list(build.iterdir()) == []
    assert [path.name for path in build.iterdir()] == ["compile_commands.json"]  # nothing is compiled


def test_the_same_headers_break_nothing_and_are_not_read_twice(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = _checked(capsys, build, "--new", "old", code=4)
    assert {outcome for outcome in first["outcomes"].values()} == {"compiles", "does not compile as it is"}
    assert (first["broken"], first["cached"]) == ([], 0)
    assert _checked(capsys, build, "--new", "old", code=4)["cached"] == len(SOURCES)
    (build.parent / "fine.cpp").write_text('#include "ATen/ATen.h"\nint f() { return 1; }\n')
    again = _checked(capsys, build, "--new", "old", code=4)
    assert (again["cached"], again["outcomes"]) == (len(SOURCES) - 1, first["outcomes"])


def test_a_source_that_reads_no_header_of_libtorch_proves_nothing(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = build.parent / "plain.cpp"
    plain.write_text("#include <vector>\n#ifdef NEVER\n#include <ATen/ATen.h>\n#endif\n")
    alone = _checked(capsys, plain, "--new", "new", code=4)
    assert list(alone["outcomes"].values()) == ["includes nothing of LibTorch"]
    fine = build.parent / "fine.cpp"
    beside = _checked(capsys, plain, fine, "--new", "new", "--flags=-I../old/include", code=0)
    assert beside["outcomes"] == {str(plain): "includes nothing of LibTorch", str(fine): "compiles"}
    assert _checked(capsys, plain, "--new", "new", code=4)["cached"] == 1


def test_a_copy_of_the_old_headers_among_the_sources_is_not_the_new_release(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = build.parent / "vendored.cpp"
    copy.write_text('#include "old/include/ATen/ATen.h"\nint f() { return at::gone(); }\n')
    answer = _checked(capsys, copy, "--new", "new", code=4)
    assert [unit["why"] for unit in answer["units"]] == [
        f"it reads another LibTorch's headers: {build.parent / 'old' / 'include'}"
    ]


def test_flags_that_only_preprocess_are_no_check(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = _checked(capsys, "gone.cpp", "--new", "new", "--flags=-I old/include -E", code=1)
    assert list(answer["outcomes"].values()) == ["breaks"]


def test_without_its_own_headers_nothing_is_called_broken(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = _checked(capsys, "broken.cpp", "--new", "new", code=4)
    assert [unit["why"] for unit in answer["units"]] == [
        "its own command does not find ATen/ATen.h: give it with --flags"
    ]
    assert answer["broken"] == []


def test_an_older_language_is_raised_to_what_the_headers_ask_for(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _libtorch(build.parent / "newer", NEW, standard=202002)
    (build.parent / "fine.cpp").write_text('#include "ATen/ATen.h"\nint f() { return at::kept(); }\n')
    answer = _checked(capsys, "fine.cpp", "--new", "newer", "--flags=-std=gnu++14 -Iold/include", code=0)
    assert (answer["standard"], answer["raised"]) == (20, 1)
    assert _checked(capsys, "fine.cpp", "--new", "new", "--flags=-std=c++20 -Iold/include", code=0)["raised"] == 0


@pytest.mark.parametrize("form", COMPILE_CHECK.names)
def test_every_form_names_what_is_gone(form: str, build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile-check", str(build), "--new", "new", "--format", form]) == 1
    assert "at::gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent.cpp", "--new", "new"), "absent.cpp is not there"),
        (("old", "--new", "new"), "old has no compile_commands.json"),
        (("notes.txt", "--new", "new"), "notes.txt is no C++ source"),
        (("bad.json", "--new", "new"), "bad.json is no database of compile commands"),
        (("fine.cpp", "--new", "build"), "build has no headers of LibTorch"),
        (("fine.cpp", "--new", "soon"), "--new soon is no release and no folder"),
    ],
)
def test_what_cannot_be_checked_is_one_line(
    arguments: tuple[str, ...], words: str, build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (build.parent / "notes.txt").write_text("no source")
    (build.parent / "bad.json").write_text('[{"file": "a.cpp"}]')
    assert main(["compile-check", *arguments]) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert "Traceback" not in printed


def test_a_unit_that_cannot_be_read_is_not_green(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        {"directory": str(build), "file": "a.cu", "arguments": ["nvcc", "-c", "a.cu"]},
        {"directory": str(build), "file": str(build.parent / "fine.cpp"), "arguments": ["no-such-compiler", "-c", "x"]},
        {"directory": str(build), "file": str(build.parent / "fine.cpp"), "arguments": ["g++", "-fno-such-option"]},
    ]
    (build / "compile_commands.json").write_text(json.dumps(entries))
    answer = _checked(capsys, build, "--new", "new", code=4)
    why = [unit["why"] for unit in answer["units"]]
    assert why[0] == "nvcc compiles it"
    assert "no-such-compiler" in why[1]
    assert "the compiler refuses its command" in why[2]
    assert os.listdir(build) == ["compile_commands.json"]
