"""The workflow of a fleet, its steps run in the shell of the runner, with a gate that answers as it is told."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.unit.builders.readers import runner_reads
from tests.workflows.steps import WORKFLOWS, Job, load

GATE = """#!{python} -I
import json, os, pathlib, sys
here = pathlib.Path(os.environ["PREPARED"])
with open(here / "asked.jsonl", "a") as said:
    said.write(json.dumps([sys.argv[1:], os.environ.get("AWS_ACCESS_KEY_ID", "")]) + "\\n")
print("::error title=hostile::a name")
if sys.argv[2] in ("report", "merge"):
    pathlib.Path(sys.argv[3], "fleet.md").write_text("# Upgrade plan\\n")
sys.exit(int((here / "code").read_text()))
"""
FLEET = ".torchscript-gate/fleet"


class World:
    """A repository that calls the workflow; ``code`` is what the gate will end with."""

    def __init__(self, tmp_path: Path) -> None:
        self.prepared, self.workspace, tools = tmp_path / "prepared", tmp_path / "repo", tmp_path / "bin"
        for folder in (self.prepared, self.workspace / FLEET, tools):
            folder.mkdir(parents=True)
        (tools / "torchscript-gate").write_text(GATE.format(python=sys.executable))
        (tools / "torchscript-gate").chmod(0o755)
        (tools / "python").symlink_to(sys.executable)
        self.environ = {"PATH": f"{tools}:{os.environ['PATH']}", "PREPARED": str(self.prepared), "HOME": str(tmp_path)}
        self.code = 0

    def job(self, name: str, known: dict[str, str] | None = None, **inputs: str) -> Job:
        (self.prepared / "code").write_text(str(self.code))
        asked = {"store": "s3://bucket/models", **inputs}
        return Job(self.workspace, asked, self.environ, "fleet-gate.yml", name, known)

    def asked(self) -> list[list[str]]:
        lines = (self.prepared / "asked.jsonl").read_text().splitlines()
        return [json.loads(line)[0] for line in lines]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_plan_is_made_with_what_was_asked_and_each_machine_has_a_number(world: World) -> None:
    job = world.job("plan", old="2.1.2", new="2.6.0", shards="3", options="--latency=off\n--manifest=a b.toml\n")
    assert job.run("Plan") == 0
    words = [f"--into={FLEET}", "--old=2.1.2", "--new=2.6.0", "--latency=off", "--manifest=a b.toml"]
    assert world.asked() == [["fleet", "plan", "s3://bucket/models", *words]]
    assert json.loads(job.known["steps.plan.outputs.shards"]) == [1, 2, 3]
    stop, rest = job.log.split("::stop-commands::", 1)
    token, rest = rest.split("\n", 1)
    inside, after = rest.split(f"::{token}::\n", 1)
    assert "hostile" in inside and "hostile" not in stop + after and len(token) == 32


def test_a_plan_that_fails_ends_the_job_with_its_exit_code(world: World) -> None:
    world.code = 3
    job = world.job("plan")
    assert job.run("Plan") == 3 and "steps.plan.outputs.shards" not in job.known


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (4, 0), (2, 2), (3, 3), (5, 5)])
def test_a_machine_does_its_part_and_what_has_no_result_is_a_row_of_the_answer(
    world: World, code: int, ends: int
) -> None:
    world.code = code
    job = world.job("run", {"matrix.shard": "2"}, shards="3")
    assert job.run("Run a part") == ends
    assert world.asked() == [["fleet", "run", FLEET, "--shard=2/3", f"--into={FLEET}/shards/2"]]


@pytest.mark.parametrize("code", [0, 1, 4])
def test_the_answer_takes_over_what_was_handed_on_and_decides(world: World, code: int) -> None:
    world.code = code
    for part in ("fleet-part-1", "fleet-part-2"):
        (world.workspace / FLEET / "shards" / part).mkdir(parents=True)
        (world.workspace / FLEET / "shards" / part / "store.json").write_text("{}")
    (world.workspace / FLEET / "shards" / "fleet-part-3").mkdir()  # it had nothing to do
    job = world.job("answer", policy="ci/policy.toml")
    assert job.run("Answer") == 0 and job.run("Take the exit code") == code
    parts = [f"{FLEET}/shards/fleet-part-{number}" for number in (1, 2)]
    assert world.asked() == [["fleet", "merge", FLEET, *parts, "--policy=ci/policy.toml"]]
    assert (world.workspace / "summary.md").read_text() == "# Upgrade plan\n"


def test_where_everything_was_known_the_answer_is_reported_again(world: World) -> None:
    job = world.job("answer")
    assert job.run("Answer") == 0
    assert world.asked() == [["fleet", "report", FLEET]]


def test_credentials_reach_the_gate_by_the_environment_and_are_masked(world: World) -> None:
    job = world.job("plan", {"secrets.environment": "AWS_ACCESS_KEY_ID=planted\nAWS_REGION=eu\n"})
    assert job.run("Take the credentials") == 0
    masked = [command.data for command in runner_reads(job.log) if command.name == "add-mask"]
    assert masked == ["planted", "eu"]
    assert job.run("Plan") == 0
    (line,) = (world.prepared / "asked.jsonl").read_text().splitlines()
    assert json.loads(line)[1] == "planted"


def test_what_one_job_hands_on_the_next_one_takes(world: World) -> None:
    jobs = load(WORKFLOWS / "fleet-gate.yml")["jobs"]
    uploads = {
        step["with"]["name"] for job in jobs.values() for step in job["steps"] if "upload" in step.get("uses", "")
    }
    taken = {
        step["with"].get("name") or step["with"]["pattern"]
        for job in jobs.values()
        for step in job["steps"]
        if "download" in step.get("uses", "")
    }
    assert taken == {"${{ inputs.name }}-plan", "${{ inputs.name }}-part-*"}
    assert {name.replace("${{ matrix.shard }}", "*") for name in uploads} >= taken
