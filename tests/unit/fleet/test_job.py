"""Jobs for engines: what their tasks run, as a shell reads it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.fleet.job import Job, slurm

ASKED = ["-m", "harness", "fleet", "run"]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job whose interpreter says where it is and what it was given; with a space in every path."""
    working_dir = tmp_path / "our project"
    working_dir.mkdir()
    python = tmp_path / "an interpreter"
    python.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([os.getcwd(), *sys.argv[1:]]))\nsys.exit(4)\n"
    )
    python.chmod(0o755)
    return Job(
        folder=working_dir / "fleet",
        shards=3,
        limit_s=3601,
        python=str(python),
        working_dir=working_dir,
    )


def answered(words: list[str], **variables: str) -> list[str]:
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "")  # the engine sees the exit code of the shard
    found: list[str] = json.loads(done.stdout)
    return found


def shard(job: Job, number: int) -> list[str]:
    folder = str(job.folder)
    return [*ASKED, folder, "--shard", f"{number}/3", "--into", f"{folder}/shards/{number}"]


@pytest.mark.parametrize("number", [1, 3])
def test_task_of_an_array_runs_its_shard_in_the_project(job: Job, tmp_path: Path, number: int) -> None:
    script = tmp_path / "job.sh"
    script.write_text(slurm(job))
    assert [line for line in slurm(job).splitlines() if line.startswith("#SBATCH")] == [
        "#SBATCH --job-name=torchscript-fleet",
        "#SBATCH --array=1-3",
        "#SBATCH --time=61",
        "#SBATCH --exclusive",
        "#SBATCH --requeue",
    ]
    assert answered(["bash", str(script)], SLURM_ARRAY_TASK_ID=str(number)) == [
        str(job.working_dir),
        *shard(job, number),
    ]


def test_script_whose_project_is_gone_runs_nothing(job: Job, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(slurm(replace(job, working_dir=tmp_path / "gone")))
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
