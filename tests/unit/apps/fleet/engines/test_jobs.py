"""Jobs for engines: what their tasks run, as a shell reads it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from harness.cli import main
from harness.apps.fleet.engines.jobs import MODULE, Job, Pods, kubernetes, slurm
from harness.report.json.results import dump
from tests.unit.apps.fleet.answers import artifact, plan_of

ASKED = ["-m", "torchscript_gate", "fleet", "run"]


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
        program=(str(python), *MODULE),
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


PODS = Pods(image="registry.example/gate:1", claim="models", cpus=4, memory="16Gi")


def manifest(job: Job, pods: Pods = PODS) -> dict[str, Any]:
    return dict(json.loads(kubernetes(job, pods)))


@pytest.mark.parametrize("version", ["1.31", "1.35"])
def test_kubernetes_takes_the_manifest(job: Job, version: str) -> None:
    for pods in (PODS, replace(PODS, environments="/opt/torch")):
        kubernetes_validate.validate(manifest(job, pods), version, strict=True)


def test_kubernetes_refuses_what_is_no_job(job: Job) -> None:
    wrong = manifest(job)
    wrong["spec"]["podFailurePolicy"]["rules"][0]["onPodCondition"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.31", strict=True)


@pytest.mark.parametrize("index", [0, 2])
def test_pod_of_an_index_runs_its_shard_in_the_project(job: Job, index: int) -> None:
    (container,) = manifest(job)["spec"]["template"]["spec"]["containers"]
    assert answered(container["command"], JOB_COMPLETION_INDEX=str(index)) == [
        str(job.working_dir),
        *shard(job, index + 1),
    ]


def test_eviction_costs_no_try_and_a_wrong_configuration_is_not_tried_again(job: Job) -> None:
    spec = manifest(job)["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (3, 3, 2)
    ignored, failed = spec["podFailurePolicy"]["rules"]
    assert (ignored["action"], ignored["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert (failed["action"], failed["onExitCodes"]["values"]) == ("FailIndex", [2])
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # which a failure policy needs


def test_pods_are_the_user_whose_plan_it_is(job: Job) -> None:
    """Nobody else executes what a plan names."""
    spec = manifest(replace(job, owner=(1000, 2000)))["spec"]["template"]["spec"]
    assert spec["securityContext"] == {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 2000}


def test_pods_write_where_any_user_may_and_use_the_environments_of_the_image(job: Job) -> None:
    for pods, root, names in (
        (PODS, "/environments", ["project", "home", "environments"]),
        (replace(PODS, environments="/opt/torch"), "/opt/torch", ["project", "home"]),
    ):
        spec = manifest(job, pods)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        variables = {item["name"]: item["value"] for item in container["env"]}
        mounted = {item["name"]: item["mountPath"] for item in container["volumeMounts"]}
        assert variables == {"HOME": mounted["home"], "TORCHSCRIPT_GATE_ENVS": root}
        assert [item["name"] for item in spec["volumes"]] == list(mounted) == names


def test_command_prints_a_manifest_and_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "plan.json").write_text(dump(plan_of(artifact("a")).plan))
    monkeypatch.chdir(tmp_path)
    asked = ["fleet", "job", "fleet", "--on", "kubernetes", "--shards", "2"]
    assert main([*asked, "--image", "gate:1", "--claim", "models", "--cpus", "2"]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["completions"], container["image"], container["resources"]["limits"]["cpu"]) == (2, "gate:1", "2")
    assert spec["template"]["spec"]["securityContext"]["runAsUser"] == os.getuid()
    assert (
        f"cd {tmp_path}" in container["command"][2]
        and "python3 -m torchscript_gate fleet run" in container["command"][2]
    )
    assert main([*asked, "--image", "gate:1"]) == 2
    assert "--on kubernetes needs --claim" in capsys.readouterr().err
    (tmp_path / "project").mkdir()
    words = ["--project", str(tmp_path / "project"), *asked, "--image", "gate:1", "--claim", "models"]
    assert main(words) == 2
    assert "does not lie below" in capsys.readouterr().err


def test_a_job_trusts_a_store_where_whoever_made_it_does(job: Job) -> None:
    assert "--trust" not in job.command("1")
    assert " --trust " in replace(job, trust=True).command("1")
