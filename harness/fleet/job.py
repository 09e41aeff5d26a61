"""``fleet job``: a job for an engine that you run already, each of whose tasks does one shard of a plan.

Every task has a folder of its own below the plan's, so no two machines write one index, and the same job given again
does only what is missing.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from harness.domain.fleet import FleetPlan
from harness.errors import ExitCode
from harness.fleet.planning import slowest_s

SHARDS = "shards"
# A task may take so many times what the longest shard is expected to, and half an hour for environments.
PATIENCE, PROVISIONING_S = 3.0, 1800.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a job is made of.

    Attributes:
        folder: of the plan; absolute, as every machine sees it.
        shards: how many tasks there are.
        limit_s: how long one may take.
        python: the interpreter that has this package.
        working_dir: where the command runs: the project whose configuration the plan was made with.
    """

    folder: Path
    shards: int
    limit_s: int
    python: str
    working_dir: Path

    def command(self, shard: str) -> str:
        """Return the shell's words for one shard, whose number the shell knows as ``shard``."""
        words = f"{shlex.quote(self.python)} -m harness fleet run {shlex.quote(str(self.folder))}"
        return f'{words} --shard "{shard}/{self.shards}" --into {shlex.quote(str(self.folder / SHARDS))}/"{shard}"'


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
cd {shlex.quote(str(job.working_dir))} || exit {int(ExitCode.CONFIGURATION)}
exec {job.command("$SLURM_ARRAY_TASK_ID")}
"""
