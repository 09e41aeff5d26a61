"""Reproducers of whole archives tell a spoilt release from a sound one, anywhere, and ``git bisect run`` believes them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.search.reproduce.program import reproduce_whole
from harness.search.reproduce.files import script_of
from harness.core.diagnosis import Reproducer, Symptom
from tests.integration.conftest import _interpreter
from tests.integration.search.judging import judged
from tests.integration.search.spoiling import spoilt

pytestmark = pytest.mark.integration

MODELS = Path(__file__).with_name("reproduced")
SYMPTOMS = {"slow": Symptom.LATENCY}


def made(old: str, new: Path, reports: Path, models: str, **settings: Any) -> tuple[dict[str, Reproducer], Path]:
    """Make a reproducer of each of ``models`` in one run; return them by model, and the run's folder."""
    with judged(MODELS, (old, new), reports, models, floor_s=1, calls=2, **settings) as (facts, effects):
        reproducers = {
            model.name: reproduce_whole(model.name, facts, effects, index=index, symptom=SYMPTOMS.get(model.name))
            for index, model in enumerate(facts.plan.models)
        }
        return reproducers, effects.run_dir.path


ALL = ("1.13.1", "2.1.2", "2.6.0", "2.11.0", "2.15.0")


def exercised(python: str, folder: Path) -> str:
    """Return what a release makes of values of every kind, in a reproducer's own code."""
    program = folder / "reproduce.py"
    program.write_text(script_of("program"))
    exercise = MODELS / "exercise.py"
    command = [python, "-W", "ignore", str(exercise), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr[-2000:] * bool(done.returncode)


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def first_bad(interpreters: list[str], folder: Path, repository: Path, *arguments: str) -> str:
    """Return the subject of the commit that ``git bisect run`` blames, in a history of interpreters, oldest first."""
    repository.mkdir()
    git(repository, "init", "--quiet", ".")
    for number, interpreter in enumerate(interpreters):
        (repository / "interpreter").write_text(f"{interpreter}\n")
        (repository / "number").write_text(str(number))
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", f"commit {number}")
    git(repository, "bisect", "start", "HEAD", f"HEAD~{len(interpreters) - 1}")
    program = f'exec "$(cat interpreter)" "{folder}/reproduce.py" {" ".join(arguments)}'
    said = git(repository, "bisect", "run", "sh", "-c", program)
    assert "is the first bad commit" in said
    return git(repository, "show", "--no-patch", "--format=%s", "refs/bisect/bad").strip()


@pytest.mark.slow
def test_reproducers_tell_the_releases_apart_and_git_bisect_finds_the_commit(
    old_python: str, new_python: str, tmp_path: Path
) -> None:
    new = spoilt(new_python, MODELS / "spoilt.py", tmp_path / "spoilt")
    found, folder = made(old_python, new, tmp_path / "runs", "not slow")
    assert {name: item.old.rpartition("(")[2] for name, item in found.items()} == dict.fromkeys(found, "exit code 0)")
    assert {name: item.new.rpartition("(")[2] for name, item in found.items()} == dict.fromkeys(found, "exit code 1)")
    assert {item.note for item in found.values()} == {""}
    assert found["numbers"].new.startswith("call 0 of example: output['wide']: off by ")
    assert "call 0 of example does not return within 1.5 s" in found["hangs"].new
    assert "Unknown builtin op: prim::is_ort" in found["refused"].new
    for item in found.values():
        names = {path.name for path in (folder / item.folder).iterdir()} - {"snippet.py"}
        assert names == {"case.json", "environments.json", "issue.md", "minimal.pt", "reproduce.py", "tensors.bin"}
        for text in ("case.json", "issue.md", "reproduce.py"):
            assert str(tmp_path) not in (folder / item.folder / text).read_text()
    assert "torch.lgamma(" in (folder / found["hangs"].folder / "snippet.py").read_text()

    moved = tmp_path / "elsewhere"
    shutil.move(folder / found["numbers"].folder, moved)
    commits = [old_python, sys.executable, old_python, str(new), str(new)]  # this project's own Python has no torch
    assert first_bad(commits, moved, tmp_path / "one") == "commit 3"
    hangs = folder / found["hangs"].folder
    assert first_bad([old_python, old_python, str(new)], hangs, tmp_path / "two", "--deadline", "1") == "commit 2"


@pytest.mark.slow
def test_values_of_every_kind_are_made_anew_and_compared(old_python: str, new_python: str, tmp_path: Path) -> None:
    assert exercised(old_python, tmp_path) == "exercised\n"
    assert exercised(new_python, tmp_path) == "exercised\n"


@pytest.mark.slow
def test_a_slow_release_is_reported_by_a_reference_in_the_same_process(
    old_python: str, new_python: str, tmp_path: Path
) -> None:
    new = spoilt(new_python, MODELS / "spoilt.py", tmp_path / "spoilt")
    found, _ = made(old_python, new, tmp_path / "runs", "slow", latency="quick", runtime="python")
    assert found["slow"].old.endswith("(exit code 0)")
    assert found["slow"].new.startswith("the call takes ")
    assert found["slow"].new.endswith("(exit code 1)")


@pytest.mark.slow
@pytest.mark.parametrize("release", ALL)
def test_reproducers_run_in_every_release(release: str, old_python: str, tmp_path: Path) -> None:
    python = _interpreter(release)
    assert exercised(python, tmp_path) == "exercised\n"
    folder = tmp_path / "hang"
    folder.mkdir()
    subprocess.run([old_python, str(MODELS / "busy_if_fused.py"), str(folder)], timeout=120, check=True)
    (folder / "reproduce.py").write_text(script_of("program"))
    codes = [
        subprocess.run([python, str(folder / "reproduce.py"), *arguments], timeout=300, check=False).returncode
        for arguments in (["--deadline", "3"], ["--switch", "profiling=off"], ["--switch", "cpu_fusion=off"])
    ]
    assert codes == [1, 0, 0]
