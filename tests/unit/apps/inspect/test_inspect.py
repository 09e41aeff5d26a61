"""The command without releases: facts, exit codes, formats. ``tests/integration/checks/prediction/test_inspect.py`` has the releases."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.checks.prediction.known_releases import known
from harness.cli import main
from harness.core.models import ArtifactKind
from harness.artifacts.given import given_models
from tests.unit.builders.archives import PROJECT, golden, torchscript, zipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.pt").write_bytes(torchscript())
    return tmp_path


def test_facts_of_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "real.pt").write_bytes(golden("early_exit"))
    assert main(["inspect", str(folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "operators aten::relu" in said
    assert "nothing was loaded or run" in said


EXAMPLES = PROJECT / "examples" / "models"


def test_releases_of_the_table_are_judged_without_any_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "environments"))
    assert main(["inspect", str(EXAMPLES), "--old", "2.1.2", "--new", "2.6.0", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["releases"] == {"old": "2.1.2+cu121", "new": "2.6.0+cu124"}
    predictions = {Path(file["path"]).stem: file["verdicts"]["new"]["prediction"] for file in told["files"]}
    assert predictions == {
        "intent_int8": "will load",
        "projection": "will not load",
        "ranker": "will load",
        "thumbnails": "will load",
        "two_tower": "will load",
        "unpacked": "unknown",
    }
    assert not (tmp_path / "environments").exists()


def test_without_a_release_every_one_of_the_table_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(EXAMPLES / "projection.pt"), str(EXAMPLES / "ranker.pt")]) == 0
    said = capsys.readouterr().out
    newest = known()[-1]
    assert re.search(rf"will not load  torch 2\.\d+\.\d+ to {newest}\n +operator_missing: prim::is_ort", said)
    assert re.search(r"projection\.pt .* 1\.13\.1 to 2\.\d+\.\d+\n", said)
    assert re.search(rf"ranker\.pt .* 1\.13\.1 to {newest}\n", said)


def test_programs_and_packages_of_a_folder_are_read_beside_its_archives(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    below = folder / "exported"
    below.mkdir()
    (below / "net.pt2").write_bytes(zipped({"net/archive_format": "pt2", "net/models/model.json": "{}"}))
    (below / "net.package.pt2").write_bytes(zipped({"net/data/aotinductor/model/m.so": b"\x7fELF"}))
    main(["inspect", str(folder), "--format", "json"])
    told = {Path(file["path"]).name: file for file in json.loads(capsys.readouterr().out)["files"]}
    assert told.keys() == {"net.pt", "net.pt2", "net.package.pt2"}
    found = given_models([str(folder)])
    assert {Path(model.given.path).name: model.kind for model in found.models if model.given is not None} == {
        "net.pt": ArtifactKind.TORCHSCRIPT,
        "net.pt2": ArtifactKind.PROGRAM,
        "net.package.pt2": ArtifactKind.PACKAGE,
    }


def test_a_file_that_cannot_be_read_is_inconclusive_and_the_others_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "cut.pt").write_bytes(torchscript()[:-30])
    (folder / "state.pt").write_bytes(zipped({"s/data.pkl": b"\x80\x02}."}))
    assert main(["inspect", str(folder), "--format", "json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == 4
    assert [bool(file["failure"]) for file in told["files"]] == [True, False, False]
    assert [file["facts"] and file["facts"]["format"] for file in told["files"]] == [None, "torchscript", "torch_save"]


def test_a_link_out_of_the_folder_is_not_read_unless_it_is_named(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    link, target = folder / "link.pt", tmp_path_factory.mktemp("elsewhere") / "net.pt"
    target.write_bytes(torchscript())
    link.symlink_to(target)
    assert main(["inspect", str(folder), "--format", "json"]) == 4
    read, _ = json.loads(capsys.readouterr().out)["files"]
    assert read["failure"] == {"kind": "leads_out", "text": f"is a link that leads out of {folder}"}
    assert (read["facts"], read["advice"]) == (None, "name the file itself")
    assert main(["inspect", str(link)]) == 0


def test_request_files_beside_artifacts_are_not_judged_unless_they_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = folder / "net.inputs.pt"
    requests.write_bytes(zipped({"s/data.pkl": b"\x80\x02}."}))
    assert main(["inspect", str(folder)]) == 0
    assert "net.inputs.pt" not in capsys.readouterr().out
    assert main(["inspect", str(requests)]) == 4


def test_a_reader_that_stops_reading_does_not_change_the_exit_code(folder: Path) -> None:
    command = [sys.executable, "-m", "harness", "inspect", str(folder)]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(command, cwd=PROJECT, stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, b"bug" in done.stderr) == (0, False)


def test_reading_a_file_imports_nothing_that_builds_runs_or_computes(folder: Path) -> None:
    """The first try of a stranger compiles all that it imports: a second for each of these."""
    heavy = (
        "numpy",
        "jinja2",
        "platformdirs",
        *(f"harness.{name}" for name in ("environments.builder", "core.report")),
    )
    told = f"print(*(name for name in {heavy} if name in sys.modules), file=sys.stderr)"
    code = f"import sys, harness.cli; harness.cli.main(['inspect', {str(folder)!r}]); {told}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True
    )
    assert "operators" in done.stdout
    assert done.stderr.splitlines()[-1] == ""


def test_names_that_the_terminal_does_not_know_are_escaped(folder: Path) -> None:
    (folder / "\xe9t\xe9.pt").write_bytes(torchscript())
    command = [sys.executable, "-m", "harness", "inspect", str(folder)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, timeout=60, check=False, env=environment)
    assert (done.returncode, b"\\xe9t\\xe9.pt" in done.stdout) == (0, True)


def test_sarif_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder / "net.pt"), "--format", "sarif"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.pt"], "does not exist"),
        (["net.pt", "--new", "nonsense"], "nonsense"),
        (["net.pt", "--env", "mine=/usr/bin/python3"], "names no side"),
    ],
)
def test_wrong_names_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(folder)
    assert main(["inspect", *arguments]) == 2
    assert said in capsys.readouterr().err
