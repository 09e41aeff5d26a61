"""What is wrong with a machine or a file is one clear line, with what to do: migrate, compat and inspect on the real thing."""

import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.outcome import Status
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.integration.gate import PROJECT, compat, harness

pytestmark = [pytest.mark.integration, pytest.mark.slow]
PLANTED = "tests/integration/checks/migration/migrated"
GIVEN = PROJECT / "tests" / "integration" / "artifacts" / "given"
MODEL = "choice_of_values"
SIDES = ("--old", "2.6.0", "--new", "2.11.0")
"""2.11.0 unpacks packages in /tmp, and needs no environment of its own to compile them."""
LOADING = "2.15.0"
"""It unpacks them in the probe's folder: results may lie below /tmp, as those of tests do."""
ELSEWHERE = "/mnt"
"""Where results lie in a namespace in which /tmp is another one."""
AARCH64 = 0xB7
NO_HEADERS = "mount -t tmpfs tmpfs {include}"
FULL, READ_ONLY = "mount -t tmpfs -o size=64k tmpfs /tmp", "mount -t tmpfs -o ro tmpfs /tmp"


def in_namespace(mounts: tuple[str, ...], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m harness`` where these mounts hold, and nowhere else."""
    shell = " && ".join((*mounts, 'exec "$@"'))
    unshare = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))
    env = {**os.environ, ROOT_VARIABLE: str(default_environment_root())}
    command = [*unshare, "bash", "-c", shell, "bash", sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=1200, check=False, env=env)


def migrated(results: Path, *mounts: str) -> tuple[Mapping[str, Any], "subprocess.CompletedProcess[str]"]:
    command = ("migrate", *SIDES, "--fixtures", PLANTED, "-k", MODEL, "--package", "--out", ELSEWHERE)
    done = in_namespace((f"mount --bind {results} {ELSEWHERE}", *mounts), *command)
    assert "Traceback" not in done.stderr
    (model,) = json.loads((results / "migration.json").read_text())["models"]
    return model, done


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def test_headers_of_python_are_not_needed_and_a_full_or_read_only_tmp_is_named_and_asked_again(results: Path) -> None:
    (python,) = default_environment_root().glob("torch-2.11.0-*/bin/python")
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    include = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert (Path(include) / "Python.h").is_file()
    full, done = migrated(results, NO_HEADERS.format(include=include), FULL)
    outcomes = {step["name"]: step["outcome"] for step in full["steps"]}
    assert outcomes["package"] == "completed", done.stdout  # without Python.h
    assert (full["outcome"], full["kind"], done.returncode) == ("not packageable", "no space left", 1)
    assert "make room where the results lie, and in /tmp" in done.stdout
    refused, done = migrated(results, READ_ONLY)
    assert (refused["kind"], done.returncode) == ("no temporary folder", 1)
    assert "let /tmp be writable" in done.stdout
    assert "6 of 7 results were known already" in done.stdout
    well, done = migrated(results)
    assert well["outcome"] == "ready" or well["kind"] == "without serialized loading", done.stdout


def changed(source: Path, target: Path, change: Callable[[str, bytes], bytes]) -> None:
    with zipfile.ZipFile(source) as read, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as written:
        for entry in read.infolist():
            written.writestr(entry, change(entry.filename, read.read(entry)))


def for_another_machine(name: str, content: bytes) -> bytes:
    if name.endswith(".so"):
        return content[:18] + struct.pack("<H", AARCH64) + content[20:]
    return content.replace(b"x86_64", b"aarch64") if name.endswith("_metadata.json") else content


def for_other_instructions(name: str, content: bytes) -> bytes:
    if not name.endswith("_metadata.json"):
        return content
    return json.dumps({**json.loads(content), "AOTI_CPU_ISA": "NEON"}).encode()  # which no x86_64 has


def test_a_package_for_another_machine_or_cpu_is_named_before_and_after_and_its_twin_passes(
    results: Path, tmp_path: Path
) -> None:
    (package,) = results.glob(f"probes/*/{MODEL}.package.pt2")
    folder = tmp_path / "packages"
    folder.mkdir()
    changed(package, folder / "elsewhere.pt2", for_another_machine)
    changed(package, folder / "instructed.pt2", for_other_instructions)
    changed(package, folder / "untouched.pt2", lambda _, content: content)
    requests = "requests = [{ name = 'example', arguments = [{ shape = [4, 3] }] }]\n"
    names = ("elsewhere", "instructed", "untouched")
    (folder / "models.toml").write_text("".join(f'[[models]]\npath = "{name}.pt2"\n{requests}' for name in names))
    read = harness("inspect", str(folder), "--new", LOADING)
    assert "compiled for aarch64, and this machine is x86_64: its library cannot be opened" in words(read.stdout)
    assert "compiled for asimd, which this CPU does not have" in words(read.stdout)
    assert "1 will load, 1 will not load, 1 unknown" in read.stdout
    sides = ("--old", LOADING, "--new", LOADING, "--allow-same-torch", "--scenario", "alone", "--runtime", "python")
    run = compat(tmp_path / "runs", *sides, "--artifacts", str(folder), "--latency", "off", all_planted=False)
    elsewhere = run.row("elsewhere")
    assert elsewhere.status is Status.SAME_FAIL, run.out
    assert "other_machine" in {finding.kind for finding in predicted(run, "elsewhere")}
    assert run.row("untouched").status is Status.PASS, run.out
    assert not predicted(run, "untouched")
    assert {finding.kind for finding in predicted(run, "instructed")} == {"instructions_missing"}


def words(text: str) -> str:
    return " ".join(text.split())


def predicted(run: Any, name: str) -> tuple[Any, ...]:
    (model,) = [model for model in run.report.models if model.model == name]
    return tuple(model.static.sides["new"].verdict.findings)


def test_a_program_of_a_newer_schema_is_named_before_and_after(new_python: str, tmp_path: Path) -> None:
    written, folder = tmp_path / "written", tmp_path / "programs"
    written.mkdir()
    folder.mkdir()
    subprocess.run(
        [new_python, "-s", "-W", "ignore", str(GIVEN / "exported.py"), str(written)], timeout=120, check=True
    )

    def newer(name: str, content: bytes) -> bytes:
        if name != "serialized_exported_program.json":
            return content
        program = json.loads(content)
        program["schema_version"]["major"] += 1
        return json.dumps(program).encode()

    changed(written / "ranker.pt2", folder / "newer.pt2", newer)
    changed(written / "ranker.pt2", folder / "ranker.pt2", lambda _, content: content)
    read = harness("inspect", str(folder), "--new", "2.6.0")
    assert read.returncode == 1, read.stdout
    assert "newer.pt2: a newer schema, 9." in words(read.stdout)
    assert "export it in that release, or in an older one" in words(read.stdout)
    sides = ("--old", "2.6.0", "--new", "2.6.0", "--allow-same-torch", "--scenario", "alone", "--latency", "off")
    run = compat(tmp_path / "runs", *sides, "--artifacts", str(folder), all_planted=False)
    assert (run.row("newer").status, run.row("ranker").status) == (Status.SAME_FAIL, Status.PASS), run.out
    assert {finding.kind for finding in predicted(run, "newer")} == {"schema_version"}


def test_an_artifact_without_requests_is_undecided_and_says_what_to_place_where(
    old_python: str, tmp_path: Path
) -> None:
    written, folder = tmp_path / "written", tmp_path / "models"
    folder.mkdir()
    subprocess.run([old_python, "-s", "-W", "ignore", str(GIVEN / "program.py"), str(written)], timeout=120, check=True)
    (licensed,) = written.rglob("licensed.pt")
    licensed.rename(folder / licensed.name)
    sides = ("--old", "2.6.0", "--new", "2.6.0", "--artifacts", str(folder), "--out", str(tmp_path / "out"))
    done = harness("migrate", *sides)
    (model,) = json.loads((tmp_path / "out" / "migration.json").read_text())["models"]
    assert (model["outcome"], model["kind"], done.returncode) == ("undecided", "no_requests", 4), done.stdout
    assert "place requests beside the file" in words(done.stdout)
    assert "Traceback" not in done.stderr
