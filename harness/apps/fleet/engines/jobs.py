"""``fleet job``: a job for an engine that you run already, each of whose tasks does one shard of a plan.

Every task has a folder of its own below the plan's, so no two machines write one index, and the same job given again
does only what is missing.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.apps.fleet.units import slowest_s
from harness.core.errors import ExitCode
from harness.core.fleet import FleetPlan
from harness.environments.builder import ROOT_VARIABLE

SHARDS = "shards"
MODULE: Final = ("-m", "torchscript_gate")
"""How an interpreter starts this package where it is installed."""
# A task may take so many times what the longest shard is expected to, and half an hour for environments.
PATIENCE, PROVISIONING_S = 3.0, 1800.0
FAILS_EACH_TIME: Final = (ExitCode.CONFIGURATION,)
"""A task that ends with one of these is not tried again; any other that is not 0 may be better on another machine."""
KUBERNETES_TRIES = 3
HOME, ENVIRONMENTS = "/home/fleet", "/environments"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a job is made of.

    Attributes:
        folder: of the plan; absolute, as every machine sees it.
        program: the words that start this package there.
        working_dir: where the command runs: the project whose configuration the plan was made with.
        owner: user and group whose plan it is: nobody else executes what it names.
        trust: whether programs that a store outside of the machine holds run.
    """

    folder: Path
    shards: int
    limit_s: int
    program: tuple[str, ...]
    working_dir: Path
    owner: tuple[int, int] = (0, 0)
    trust: bool = False

    def command(self, shard: str) -> str:
        words = shlex.join([*self.program, "fleet", "run", str(self.folder)])
        words += " --trust" if self.trust else ""
        return f'{words} --shard "{shard}/{self.shards}" --into {shlex.quote(str(self.folder / SHARDS))}/"{shard}"'

    def script(self, shard: str) -> str:
        there = f"cd {shlex.quote(str(self.working_dir))} || exit {int(ExitCode.CONFIGURATION)}"
        return f"{there}\nexec {self.command(shard)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pods:
    """What a Kubernetes job needs to know of the cluster.

    Attributes:
        image: with an interpreter that has this package, and environments if it has them.
        claim: a volume that many nodes may write, with the project in its root and the plan below.
        cpus: whole cores of a pod; ``memory``: of a pod, as Kubernetes writes it.
        environments: where the image has environments; empty: each pod builds them.
    """

    image: str
    claim: str
    cpus: int
    memory: str
    environments: str = ""


def limit_s(plan: FleetPlan, shards: int) -> int:
    """Return how many seconds one of so many shards may take."""
    return round(PROVISIONING_S + PATIENCE * slowest_s(plan, shards))


def slurm(job: Job) -> str:
    """Return a batch script for an array of tasks, each on a node of its own; one whose node fails is queued again."""
    minutes = -(-job.limit_s // 60)
    return f"""#!/bin/bash
#SBATCH --job-name=torchscript-fleet
#SBATCH --array=1-{job.shards}
#SBATCH --time={minutes}
#SBATCH --exclusive
#SBATCH --requeue
{job.script("$SLURM_ARRAY_TASK_ID")}
"""


def kubernetes(job: Job, pods: Pods) -> str:
    """Return an Indexed Job as JSON, which ``kubectl create -f`` takes: a pod for each shard.

    A pod that is evicted is replaced and costs no try. What fails is tried three times, but for a wrong configuration.
    """
    index = "$((JOB_COMPLETION_INDEX + 1))"
    volumes: dict[str, tuple[str, dict[str, object]]] = {
        "project": (str(job.working_dir), {"persistentVolumeClaim": {"claimName": pods.claim}}),
        "home": (HOME, {"emptyDir": {}}),
    }
    if not pods.environments:
        volumes["environments"] = (ENVIRONMENTS, {"emptyDir": {}})
    container = {
        "name": "shard",
        "image": pods.image,
        "command": ["/bin/sh", "-c", f"shard={index}\n{job.script('$shard')}"],
        "env": [{"name": "HOME", "value": HOME}, {"name": ROOT_VARIABLE, "value": pods.environments or ENVIRONMENTS}],
        "resources": {
            "requests": {"cpu": str(pods.cpus), "memory": pods.memory},
            "limits": {"cpu": str(pods.cpus), "memory": pods.memory},
        },
        "volumeMounts": [{"name": name, "mountPath": path} for name, (path, _) in volumes.items()],
    }
    policy = {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {
                "action": "FailIndex",
                "onExitCodes": {"containerName": "shard", "operator": "In", "values": [*map(int, FAILS_EACH_TIME)]},
            },
        ]
    }
    spec = {
        "completionMode": "Indexed",
        "completions": job.shards,
        "parallelism": job.shards,
        "backoffLimitPerIndex": KUBERNETES_TRIES - 1,
        "maxFailedIndexes": job.shards,
        "podFailurePolicy": policy,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {"runAsUser": job.owner[0], "runAsGroup": job.owner[1], "fsGroup": job.owner[1]},
                "activeDeadlineSeconds": job.limit_s,
                "containers": [container],
                "volumes": [{"name": name, **source} for name, (_, source) in volumes.items()],
            }
        },
    }
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "torchscript-fleet-"}, "spec": spec}
    return json.dumps(made, indent=2) + "\n"
