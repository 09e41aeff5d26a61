"""The composite action, its steps run in the shell of the runner, with a gate that answers as it is told."""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.report import RunReport
from harness.environments.builder import default_environment_root
from harness.machine.gpu import without_asking
from harness.report.json.report import dump_report
from tests.unit.builders.rendered import render_markdown
from harness.store import codec
from tests.unit.builders.reports import blocked, nothing_tested, upgrade_ok
from tests.unit.builders.readers import runner_reads
from tests.unit.builders.stages import declared, planned
from tests.workflows.steps import PROJECT, Job

# What `torchscript-gate` does here: `compat` leaves a prepared run and its exit code, everything else is the real one.
GATE = """#!{python} -I
import json, os, pathlib, shutil, signal, sys, time
sys.path.insert(0, {project!r})
here = pathlib.Path(os.environ["PREPARED"])
if sys.argv[1] != "compat":
    from harness.cli import main
    sys.exit(main(sys.argv[1:]))
(here / "asked.json").write_text(json.dumps(sys.argv[1:]))
if (here / "waits").exists():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(99))
    os.kill(os.getppid(), signal.SIGINT)  # as a runner does: to the shell of the step, and to nobody else
    time.sleep(60)
print((here / "says").read_text())
(out,) = [word.removeprefix("--out=") for word in sys.argv if word.startswith("--out=")]
if (here / "run").is_dir():
    copy = shutil.copytree(here / "run", pathlib.Path(out) / "2026-11-22-2.1.2-to-2.6.0")
    (copy / "report.json").touch()
sys.exit(int((here / "code").read_text()))
"""


# What `gh api` does here: it knows the comments of one pull request, and writes down what it is asked to send.
GH = """#!{python} -I
import json, os, pathlib, subprocess, sys
here = pathlib.Path(os.environ["PREPARED"])
words = sys.argv[1:]
if "--method" not in words:
    comments = json.loads((here / "comments.json").read_text())
    assert words[:2] == ["api", "--paginate"] and "env.mark" in words[4]
    print(*[each["id"] for each in comments if each["body"].startswith(os.environ["mark"])], sep="\\n")
    sys.exit()
body = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
with open(here / "sent.json", "a") as file:
    print(json.dumps([words[words.index("--method") + 1], words[4], body]), file=file)
sys.exit(int(os.environ.get("REFUSED", "0")))
"""


class World:
    """A repository that uses the action, and what the gate will answer there."""

    def __init__(self, tmp_path: Path) -> None:
        self.prepared, self.workspace, tools = tmp_path / "prepared", tmp_path / "repo", tmp_path / "bin"
        for folder in (self.prepared, self.workspace / "harness", tools):
            folder.mkdir(parents=True)
        (self.workspace / "harness" / "__init__.py").write_text("raise SystemExit('a folder of the caller')")
        (tools / "torchscript-gate").write_text(GATE.format(python=sys.executable, project=str(PROJECT)))
        (tools / "torchscript-gate").chmod(0o755)
        (tools / "python").symlink_to(sys.executable)
        self.environ = {"PATH": f"{tools}:{os.environ['PATH']}", "PREPARED": str(self.prepared), "HOME": str(tmp_path)}

    def answers(self, code: int, report: RunReport | None, *, says: str = "") -> None:
        (self.prepared / "code").write_text(str(code))
        (self.prepared / "says").write_text(says)
        if report is None:
            return
        run = self.prepared / "run"
        run.mkdir()
        (run / "report.json").write_bytes(dump_report(report))
        (run / "report.md").write_text(render_markdown(report))
        plan = planned(models=tuple(replace(declared(item.model), package_root="/elsewhere") for item in report.models))
        (run / "plan.json").write_bytes(codec.canonical(plan))

    def serves_comments(self, comments: Sequence[Mapping[str, object]]) -> None:
        """Let ``gh api`` know these comments of one pull request."""
        gh = self.workspace.parent / "bin" / "gh"
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)
        (self.prepared / "comments.json").write_text(json.dumps(comments))

    def sent(self) -> list[list[str]]:
        """Return method, path and body of what was sent by ``gh api``."""
        return [json.loads(line) for line in (self.prepared / "sent.json").read_text().splitlines()]

    def job(self, **inputs: str) -> Job:
        return Job(self.workspace, {name.replace("_", "-"): value for name, value in inputs.items()}, self.environ)

    def asked(self) -> list[str]:
        return [str(word) for word in json.loads((self.prepared / "asked.json").read_text())]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def through(job: Job) -> int:
    """Run the steps that say something and return the exit code of the job."""
    assert job.run("Judge the upgrade") == 0
    if job.known.get("steps.judge.outputs.run"):
        assert job.run("Write the step summary") == 0
        assert job.run("Annotate") == 0
    return job.run("Take the exit code")


@pytest.mark.parametrize(
    ("report", "code", "decision"),
    [
        pytest.param(upgrade_ok(), 0, "UPGRADE OK", id="ok"),
        pytest.param(blocked(), 1, "BLOCKED", id="blocked"),
        pytest.param(nothing_tested(), 4, "NOTHING TESTED", id="nothing tested", marks=pytest.mark.slow),
    ],
)
def test_a_run_is_summed_up_annotated_and_decides_the_job(
    world: World, report: RunReport, code: int, decision: str
) -> None:
    world.answers(code, report)
    job = world.job()
    assert through(job) == code
    assert job.known["steps.judge.outputs.decision"] == decision
    assert job.known["steps.judge.outputs.code"] == str(code)
    summary = (world.workspace / "summary.md").read_text()
    assert summary.startswith(render_markdown(report))
    assert "gh run download 4711 --name upgrade-report --dir .torchscript-gate/reports\n" in summary
    found = [command for command in runner_reads(job.log) if command.name in ("error", "notice")]
    assert found[0].name == ("notice" if code == 0 else "error")
    assert found[0].properties["title"].startswith(decision)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, "the configuration or the command line is wrong"),
        (3, "an environment could not be provisioned"),
        (5, "the gate itself failed"),
        (130, "interrupted"),
        (137, "the gate itself failed"),
    ],
)
def test_a_run_that_came_to_nothing_is_red_with_its_own_exit_code_and_the_page_says_why(
    world: World, code: int, words: str
) -> None:
    world.answers(code, None)
    job = world.job()
    assert through(job) == code
    assert "steps.judge.outputs.run" not in job.known
    (error,) = [command for command in runner_reads(job.log) if command.name == "error"]
    assert error.data.startswith(f"exit code {code}: {words}")
    assert (world.workspace / "summary.md").read_text() == f"{error.data}\n"


def test_a_job_that_is_cancelled_ends_the_gate_in_order_and_says_so(world: World) -> None:
    """Out of time it is cancelled too; the runner signals the shell alone, and kills everything ten seconds later."""
    world.answers(0, None)
    (world.prepared / "waits").touch()
    job = world.job()
    begin = time.monotonic()
    assert through(job) == 130
    assert time.monotonic() - begin < 10
    assert "exit code 130: interrupted: cancelled, or out of time" in (world.workspace / "summary.md").read_text()


def test_each_step_tells_what_an_interrupted_run_has_left(world: World) -> None:
    whole = blocked()
    judgement = replace(whole.judgement, interrupted="timing", exit_code=130)
    world.answers(130, replace(whole, judgement=judgement))
    world.serves_comments([])
    job = world.job(sarif="true")
    job.known["github.event.pull_request.number"] = "17"
    assert through(job) == 130
    assert (job.run("Comment"), job.run("Write SARIF")) == (0, 0)
    assert (world.workspace.parent / "torchscript-gate.sarif").stat().st_size
    ((_, _, body),) = world.sent()
    assert "exit code 130: interrupted during timing" in body
    after = job.job["steps"][[step.get("id") for step in job.job["steps"]].index("judge") + 1 :]
    of_the_run = [step["name"] for step in after if "run" in step and "always()" in step["if"]]
    assert of_the_run == ["Write the step summary", "Annotate", "Comment", "Write SARIF", "Take the exit code"]


def test_a_job_that_never_came_to_the_gate_is_red_and_says_so(world: World) -> None:
    job = world.job()
    assert job.run("Take the exit code") == 1
    assert (
        (world.workspace / "summary.md").read_text().startswith("the gate was not run to its end; there is no report")
    )


def test_what_there_is_of_a_cancelled_job_is_told_and_nothing_of_it_is_kept_for_later_jobs(world: World) -> None:
    conditions = {step["name"]: step.get("if", "") for step in world.job().job["steps"] if "name" in step}
    told = [
        "Write the step summary",
        "Annotate",
        "Comment",
        "Write SARIF",
        "Hand SARIF to code scanning",
        "Keep the run",
    ]
    assert all("always()" in conditions[name] for name in (*told, "Take the exit code"))
    assert all("!cancelled()" in conditions[name] for name in ("Keep the environments", "Make it the baseline"))
    assert "code != '130'" in conditions["Make it the baseline"]  # the report of an interrupted run is no baseline


def test_runners_with_and_without_a_gpu_share_no_environments(world: World) -> None:
    """Their builds differ: what one kept, the other would find and never replace."""
    job = world.job()
    assert job.run("Look for an NVIDIA GPU") == 0
    kind = job.known["steps.machine.outputs.build"]
    assert (kind == "cuda") is bool(without_asking().nodes)
    keys = {}
    for build in ("cpu", "cuda"):
        job.known["steps.machine.outputs.build"] = build
        told = job._filled(job.step("Fetch the environments under test")["with"])
        keys[build] = [told["key"], *told["restore-keys"].split()]
    assert not any(key.startswith(tuple(keys["cuda"])) for key in keys["cpu"])
    assert all(f"-{build}-" in key for build, found in keys.items() for key in found)


def test_an_exit_code_of_0_without_a_report_is_not_green(world: World) -> None:
    """``--list`` among the options judges nothing."""
    world.answers(0, None)
    assert through(world.job(options="--list")) == 4


@pytest.mark.parametrize(("code", "ends"), [(2, 2), (0, 4)], ids=["a typing error", "--list"])
def test_a_run_that_lay_there_before_is_not_taken_for_this_one(world: World, code: int, ends: int) -> None:
    world.answers(0, upgrade_ok())
    first = world.job()
    assert through(first) == 0 and first.known["steps.judge.outputs.decision"] == "UPGRADE OK"
    shutil.rmtree(world.prepared / "run")
    world.answers(code, None)
    job = world.job()
    assert through(job) == ends
    assert not {"steps.judge.outputs.run", "steps.judge.outputs.decision"} & {*job.known}


def test_inputs_become_options_and_none_of_them_is_run(world: World) -> None:
    world.answers(0, upgrade_ok())
    evil = "$(touch pwned); `touch pwned`"
    job = world.job(
        old="2.1.2",
        new=evil,
        policy="ci/policy.toml",
        models="models/*.pt\n\nmy model.pt\n",
        options="--latency=off\n--device=cpu",
    )
    assert job.run("Judge the upgrade") == 0
    assert world.asked() == [
        "compat",
        "--out=.torchscript-gate/reports",
        "--old=2.1.2",
        f"--new={evil}",
        "--policy=ci/policy.toml",
        "--artifacts=models/*.pt",
        "--artifacts=my model.pt",
        "--latency=off",
        "--device=cpu",
    ]
    assert not list(world.workspace.rglob("pwned"))


def test_the_options_that_it_makes_are_options_of_compat(world: World) -> None:
    from harness.cli.parser import parser

    world.answers(0, upgrade_ok())
    job = world.job(old="2.1.2", new="2.6.0", policy="p.toml", models="a.pt\nb.pt")
    assert job.run("Judge the upgrade") == 0
    parsed = parser().parse_args(world.asked())
    assert (parsed.old, parsed.new, parsed.policy, parsed.artifacts) == ("2.1.2", "2.6.0", "p.toml", ["a.pt", "b.pt"])


def test_the_last_run_of_the_default_branch_is_the_baseline(world: World) -> None:
    world.answers(0, upgrade_ok())
    job = world.job()
    assert job.run("Judge the upgrade") == 0
    assert not [word for word in world.asked() if word.startswith("--baseline")]
    assert job.run("Make it the baseline") == 0
    (world.prepared / "run" / "again").touch()
    again = world.job()
    for run in (world.workspace / ".torchscript-gate" / "reports").iterdir():
        run.rename(world.workspace / run.name)
    assert again.run("Judge the upgrade") == 0
    assert f"--baseline={world.workspace}/.torchscript-gate/baseline" in world.asked()


@pytest.mark.parametrize(
    "text",
    ["", pytest.param('{"schema_version": 1}', marks=pytest.mark.slow)],
    ids=["damaged", "of another release"],
)
def test_a_baseline_that_cannot_be_read_does_not_keep_the_gate_from_judging(world: World, text: str) -> None:
    """It would be so for ever: the run that would replace it does not come to a report either."""
    baseline = world.workspace / ".torchscript-gate" / "baseline"
    baseline.mkdir(parents=True)
    (baseline / "report.json").write_text(text)
    world.answers(0, upgrade_ok())
    job = world.job()
    assert job.run("Judge the upgrade") == 0
    assert not [word for word in world.asked() if word.startswith("--baseline")]
    (warning,) = [command for command in runner_reads(job.log) if command.properties.get("title") == "baseline"]
    assert warning.name == "warning"
    assert job.run("Make it the baseline") == 0
    assert (baseline / "report.json").read_bytes() == (world.prepared / "run" / "report.json").read_bytes()


def test_what_the_gate_prints_is_no_command_to_the_runner(world: World) -> None:
    world.answers(1, blocked(), says="::error::planted\n::add-mask::a\n##[warning]planted")
    job = world.job()
    assert through(job) == 1
    stop, rest = job.log.split("::stop-commands::", 1)
    token, rest = rest.split("\n", 1)
    inside, after = rest.split(f"::{token}::\n", 1)
    assert "::error::planted" in inside
    assert "planted" not in stop + after
    assert len(token) == 32


def test_a_project_in_a_folder_is_judged_there(world: World) -> None:
    (world.workspace / "serving").mkdir()
    world.answers(0, upgrade_ok())
    job = world.job(project="serving")
    assert through(job) == 0
    assert (world.workspace / "summary.md").is_file()
    run = job.known["steps.judge.outputs.run"]
    assert (world.workspace / "serving" / run / "report.json").is_file()
    assert (world.workspace / job.known["steps.judge.outputs.report"] / "report.json").is_file()
    kept = job._filled({"path": job.step("Keep the run")["with"]["path"]})["path"].splitlines()
    assert kept[0] == "serving/.torchscript-gate/reports/"


def test_environments_are_kept_of_red_runs_too_and_only_where_both_were_built(world: World) -> None:
    """``actions/cache`` keeps those of green jobs alone, and an upgrade is red for weeks."""
    job = world.job()
    assert not [step for step in job.job["steps"] if str(step.get("uses", "")).startswith("actions/cache@")]
    restore, save = job.step("Fetch the environments under test"), job.step("Keep the environments")
    assert restore["with"]["path"] == save["with"]["path"]
    assert "!cancelled()" in save["if"]
    assert "steps.judge.outputs.run != ''" in save["if"]
    names = [step.get("name") for step in job.job["steps"]]
    assert names.index("Keep the environments") < names.index("Take the exit code") == len(names) - 1


def test_a_job_that_is_run_again_replaces_what_its_first_attempt_has_uploaded(world: World) -> None:
    """Else the upload fails, and with it a run that is green now."""
    assert world.job().step("Keep the run")["with"]["overwrite"] is True


def test_the_baseline_of_one_name_is_not_taken_for_another_that_begins_like_it(world: World) -> None:
    keys = {}
    for name in ("report", "report-gpu"):
        told = world.job(name=name).step("Fetch the last run of the default branch")["with"]
        keys[name] = world.job(name=name)._filled(told)
    assert keys["report"]["key"].startswith(keys["report"]["restore-keys"])
    assert not keys["report-gpu"]["key"].startswith(keys["report"]["restore-keys"])


@pytest.mark.parametrize(
    ("comments", "method", "path"),
    [
        ([{"id": 6, "body": "LGTM"}], "POST", "repos/owner/repository/issues/17/comments"),
        (
            [
                {"id": 7, "body": "<!-- torchscript-gate upgrade-report -->\nold"},
                {"id": 8, "body": "<!-- torchscript-gate another -->\nof another job"},
            ],
            "PATCH",
            "repos/owner/repository/issues/comments/7",
        ),
    ],
    ids=["first", "replaced"],
)
def test_a_pull_request_has_one_comment_of_each_name(
    world: World, comments: list[dict[str, object]], method: str, path: str
) -> None:
    world.serves_comments(comments)
    world.answers(1, blocked())
    job = world.job(page_url="https://ci.example/7/report.html")
    job.known["github.event.pull_request.number"] = "17"
    assert job.run("Judge the upgrade") == 0
    assert job.run("Comment") == 0
    ((sent_method, sent_path, body),) = world.sent()
    assert (sent_method, sent_path) == (method, path)
    assert body.startswith("<!-- torchscript-gate upgrade-report -->\n")
    assert "BLOCKED" in body and "](https://ci.example/7/report.html#cause-1)" in body
    assert "::warning" not in job.log
    job.environ["REFUSED"] = "1"  # a pull request from a fork
    assert job.run("Comment") == 0
    assert job.log.count("::warning title=comment::") == 1


def test_code_scanning_gets_a_result_for_each_cause(world: World) -> None:
    world.answers(1, blocked())
    job = world.job(sarif="true")
    assert job.run("Judge the upgrade") == 0
    assert job.run("Write SARIF") == 0
    (run,) = json.loads((world.workspace.parent / "torchscript-gate.sarif").read_text())["runs"]
    assert run["results"]


@pytest.mark.slow
def test_real_models_are_judged_by_its_steps(world: World) -> None:
    """Nothing stands for the gate here; the environments are those of the tests."""
    (world.workspace.parent / "bin" / "torchscript-gate").write_text(
        f'#!/bin/sh\nPYTHONPATH="{PROJECT}" TORCHSCRIPT_GATE_ENVS="{default_environment_root()}" '
        f'exec "{sys.executable}" -P -m harness "$@"\n'
    )
    for name in ("ranker", "projection"):
        for path in (PROJECT / "examples" / "models").glob(f"{name}.*"):
            shutil.copy(path, world.workspace)
    job = world.job(old="2.1.2", new="2.6.0", models="*.pt", options="--latency=off\n--device=cpu")
    assert through(job) == 1
    assert job.known["steps.judge.outputs.decision"] == "BLOCKED"
    report = world.workspace / job.known["steps.judge.outputs.report"]
    assert {
        row["model"]: row["status"] for row in json.loads((report / "report.json").read_text())["judgement"]["rows"]
    }
    assert "projection" in (world.workspace / "summary.md").read_text()
