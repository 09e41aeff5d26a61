"""``fleet``: a whole store of artifacts, planned, run in shards, merged into one answer and an upgrade plan."""

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_library, add_policy, add_running, add_sides
from harness.cli.terminal import say, shown, width
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.project import Project

FOLDER = "fleet"
LEAST_DAYS = 1
TRUST = "run programs (.pt2, packages, .inputs.py) that a store outside of this machine holds"

HELP = CommandHelp(
    "fleet",
    "plan, run and merge a whole store of artifacts, on one machine or many",
    "Judge a store of artifacts: read all of them without torch, run each content once, a program in full once, on one "
    "machine or in shards on many, and merge it into causes with their owners and an upgrade plan in waves.",
    (
        ("plan models/ --old 2.1.2 --new 2.6.0", "what will run, how long it takes, what reading predicts already"),
        ("plan s3://bucket --old 2.1.2 --new 2.6.0 --within 8h", "of an object store, and on how many machines"),
        ("run fleet", "all of it here; what is known is not run again"),
        ("run fleet --shard 2/8", "the second of eight machines' parts"),
        ("run fleet --more 30min", "thirty more minutes for the latencies that are undecided"),
        ("run fleet --on auto", "all of it on the Ray cluster of this machine"),
        ("job fleet --on slurm --shards 8", "a job array that runs all parts: sbatch"),
        ("merge fleet elsewhere/fleet", "take over what other machines have found, then report"),
        ("report fleet", "causes, owners, waves; --format markdown, json or csv"),
        ("explain fleet ranker", "run one artifact again, asked as in the plan, and search for the cause"),
        ("report fleet --since fleet-2.5", "and what is new, fixed or flaky since that answer"),
        ("store status fleet", "what is kept, and how much it takes; gc removes what was not used"),
        ("store export fleet --to results.parquet", "all results for a warehouse"),
    ),
    "0 compatible, or everything of the shard has a result, 1 incompatible, 3 environment not provisioned, "
    "4 inconclusive, or something has no result",
    "guide/fleet.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import FLEET, FLEET_PLAN

    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    plan = actions.add_parser("plan", help="read a store and say what will run; loads nothing")
    plan.add_argument("store", metavar="STORE", help="a folder, a Triton model repository, or s3://, gs://, https://")
    add_sides(plan)
    plan.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    plan.add_argument(
        "--manifest", metavar="FILE", help="owners, tiers and requests (default: fleet.toml of the store)"
    )
    plan.add_argument("--into", default=FOLDER, metavar="DIR", help="where plan, results and runs lie (default: fleet)")
    plan.add_argument("--within", metavar="TIME", help="how long all may take, such as 8h: on how many machines?")
    plan.add_argument("--latency", choices=("off", "quick", "thorough"), help="of each program that is timed")
    add_running(plan, "--device", "--jobs", "--profile", "--deadline")
    add_library(plan)
    plan.add_argument(
        "--set", dest="assignments", action="append", default=[], metavar="KEY=VALUE", help="a key of [tool.compat]"
    )
    add_format(plan, FLEET_PLAN.names, default="text")
    run = actions.add_parser("run", help="run what is not known yet of a plan, or of one machine's part")
    run.add_argument("plan", metavar="PLAN", help="a plan.json, or the folder in which it lies")
    run.add_argument("--shard", default="1/1", metavar="I/N", help="the I-th of N machines' parts")
    run.add_argument("--into", metavar="DIR", help="where results and runs lie: a folder of each machine's own")
    run.add_argument("--more", metavar="TIME", help="time what a run here left undecided for 90s, 10min, 1h more")
    run.add_argument(
        "--on", metavar="CLUSTER", help="a Ray cluster: auto for that of this machine, HOST:PORT, ray://HOST:PORT"
    )
    run.add_argument("--trust", action="store_true", help=TRUST)
    run.add_argument("--parts", type=int, metavar="N", help="--on: in how many parts it is given out")
    job = actions.add_parser("job", help="print a job that runs every part on an engine that you have")
    job.add_argument("plan", metavar="PLAN", help="a plan.json, or the folder in which it lies")
    job.add_argument("--on", required=True, choices=("slurm", "kubernetes"), help="the engine")
    job.add_argument("--shards", type=int, metavar="N", help="how many parts (default: as many as the plan says)")
    job.add_argument("--trust", action="store_true", help=TRUST)
    job.add_argument("--python", metavar="PYTHON", help="interpreter that has this package there (default: this one)")
    job.add_argument("--image", metavar="IMAGE", help="kubernetes: an image with this package; its python3 by default")
    job.add_argument(
        "--claim", metavar="CLAIM", help="kubernetes: a volume for many nodes, with the project in its root"
    )
    job.add_argument("--environments", default="", metavar="DIR", help="kubernetes: where the image has environments")
    job.add_argument("--cpus", type=int, default=4, metavar="N", help="kubernetes: cores of a pod (4)")
    job.add_argument("--memory", default="16Gi", metavar="SIZE", help="kubernetes: memory of a pod (16Gi)")
    for name, text in (
        ("merge", "take over what other folders know, and report"),
        ("report", "causes, owners and waves, as far as known"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("plan", metavar="PLAN", help="a plan.json, or the folder in which it lies")
        if name == "merge":
            action.add_argument("others", nargs="+", metavar="DIR", help="folders of other machines")
        add_format(action, FLEET.names, "csv: a line per artifact", default="text")
        action.add_argument(
            "--since",
            action="append",
            default=[],
            metavar="FLEET",
            help="an earlier fleet.json, or its folder: what is new or fixed; several, the oldest first, are a trend",
        )
        add_policy(action)
    one = actions.add_parser("explain", help="run one artifact again as the plan asks it, and search for the cause")
    one.add_argument("plan", metavar="PLAN", help="a plan.json, or the folder in which it lies")
    one.add_argument("artifact", metavar="ARTIFACT", help="its name in the report")
    one.add_argument("--trust", action="store_true", help=TRUST)
    store = actions.add_parser("store", help="what is kept, and how much it takes")
    store.add_argument("what", choices=("status", "gc", "export"), help="say what is kept; remove what was not used")
    store.add_argument("plan", metavar="PLAN", help="a plan.json, or the folder in which it lies")
    store.add_argument("--days", type=int, default=90, metavar="N", help="gc: what was not used for N days (90)")
    store.add_argument("--to", default="results.parquet", metavar="FILE", help="export: the file (results.parquet)")
    store.add_argument("--yes", action="store_true", help="gc: remove; without it, only say what would go")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    return ACTIONS[parsed.action](parsed, project)


def _plan(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.plan import plan_fleet
    from harness.apps.fleet.units import times_of
    from harness.config.durations import seconds_of
    from harness.report.formats import FLEET_PLAN, ShownFleetPlan

    within_s = seconds_of(parsed.within, "--within") if parsed.within is not None else None
    planned = plan_fleet(
        project,
        parsed.store,
        into=Path(parsed.into).absolute(),
        manifest=parsed.manifest,
        within_s=within_s,
        progress=project.progress,
    )
    command = project.command("fleet", "run", str(planned.folder))
    shown_plan = ShownFleetPlan(plan=planned.plan, times=times_of(planned.plan), command=command)
    say(FLEET_PLAN.render(parsed.format, shown_plan, shown()))
    return None


def _run(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.plan import in_folder, known_in, load_plan
    from harness.apps.fleet.shard import run_shard
    from harness.apps.fleet.units import read_shard
    from harness.core.outcome import Decision
    from harness.report.documents.fleet import shard_document
    from harness.report.formats import on_terminal

    if parsed.on is not None:
        return _run_on(parsed, project)
    if parsed.parts is not None:
        raise ConfigError("--parts is for --on", "machines without an engine have --shard I/N")
    if parsed.more is not None:
        return _time_more(parsed, project)
    shard = read_shard(parsed.shard)
    planned = load_plan(parsed.plan, to_run=True)
    folder, known_elsewhere = planned.folder, frozenset[str]()
    if parsed.into is not None:
        planned = in_folder(planned, Path(parsed.into).absolute())
        known_elsewhere = known_in(planned.plan, folder, *planned.folder.parent.iterdir())
    done = run_shard(
        project, planned, shard=shard, known_elsewhere=known_elsewhere, trust=parsed.trust, progress=project.progress
    )
    say(on_terminal(shard_document(done, again=_answering(project, folder, planned.folder)), width=width()))
    return Decision.INCONCLUSIVE if done.faults else None


def _answering(project: "Project", folder: Path, part: Path) -> str:
    """Return the command that shows the answer of a fleet in ``folder`` after something was done in ``part``."""
    words = ("report", str(folder)) if part == folder else ("merge", str(folder), str(part))
    return project.command("fleet", *words)


def _run_on(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.engines.on_ray import run_on_ray
    from harness.apps.fleet.plan import load_plan
    from harness.core.outcome import Decision
    from harness.report.documents.fleet import shard_document
    from harness.report.formats import on_terminal

    if parsed.shard != "1/1" or parsed.into is not None:
        raise ConfigError("--on gives all of a plan out by itself", "leave --shard and --into out")
    if parsed.parts is not None and parsed.parts < 1:
        raise ConfigError(f"--parts {parsed.parts}: expected a number from 1", "such as 8")
    planned = load_plan(parsed.plan, to_run=True)
    done = run_on_ray(
        project, planned, address=parsed.on, parts=parsed.parts, trust=parsed.trust, progress=project.progress
    )
    document = shard_document(done, again=_answering(project, planned.folder, planned.folder))
    say(on_terminal(document, width=width()))
    return Decision.INCONCLUSIVE if done.faults else None


def _time_more(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.plan import load_plan
    from harness.apps.fleet.shard import time_more
    from harness.config.durations import seconds_of
    from harness.report.documents.fleet import shard_document
    from harness.report.formats import on_terminal

    if parsed.shard != "1/1":
        raise ConfigError("--more goes on with all runs of a folder", "leave --shard out")
    whole, planned = load_plan(parsed.plan), load_plan(parsed.into or parsed.plan, to_run=True)
    more_s = seconds_of(parsed.more, "--more")
    done = time_more(project, planned, more_s=more_s, trust=parsed.trust, progress=project.progress)
    document = shard_document(done, again=_answering(project, whole.folder, planned.folder), more=True)
    say(on_terminal(document, width=width()))
    return None


def _job(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.engines.jobs import MODULE, SHARDS, Job, Pods, kubernetes, limit_s, slurm
    from harness.apps.fleet.plan import PLAN, load_plan
    from harness.apps.fleet.units import usual_machines
    from harness.project import started_by

    planned = load_plan(parsed.plan)
    shards = parsed.shards if parsed.shards is not None else max(usual_machines(planned.plan), 1)
    if shards < 1:
        raise ConfigError(f"--shards {shards}: expected a number from 1", "such as 8")
    stat = (planned.folder / PLAN).stat()
    is_here = parsed.on == "slurm" and not parsed.python
    job = Job(
        folder=Path(os.path.realpath(planned.folder)),  # as the project: below it, whatever link led here
        shards=shards,
        limit_s=limit_s(planned.plan, shards),
        program=tuple(started_by()) if is_here else (parsed.python or "python3", *MODULE),
        working_dir=project.folder,
        owner=(stat.st_uid, stat.st_gid),
        trust=parsed.trust,
    )
    if parsed.on == "slurm":
        say(slurm(job))
    else:
        for name in ("image", "claim"):
            if not getattr(parsed, name):
                raise ConfigError(f"--on kubernetes needs --{name}", "see docs/guide/fleet.md")
        if not job.folder.is_relative_to(job.working_dir):
            raise ConfigError(
                f"{job.folder} does not lie below {job.working_dir}", "plan with --into below the project"
            )
        pods = Pods(
            image=parsed.image,
            claim=parsed.claim,
            cpus=parsed.cpus,
            memory=parsed.memory,
            environments=parsed.environments,
        )
        say(kubernetes(job, pods))
    merge = project.command("fleet", "merge", str(planned.folder))
    project.progress.note(f"afterwards: {merge} {shlex.quote(str(planned.folder / SHARDS))}/*")
    return None


def _report(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.answer.merge import merge
    from harness.apps.fleet.answer.since import with_since
    from harness.apps.fleet.plan import earlier_answer, load_plan
    from harness.apps.fleet.results import WRITABLE
    from harness.report.formats import FLEET
    from harness.store.codec import write_atomically

    planned = load_plan(parsed.plan)
    others = getattr(parsed, "others", ())
    earlier = [earlier_answer(name) for name in parsed.since]
    merged, absorbed = merge(planned, project, others)
    answer = with_since(merged.answer, earlier)
    if others:
        project.progress.note(f"{absorbed} results taken over")
    where = project.command("fleet", "report", str(planned.folder))
    for name, text in FLEET.rendered_files(answer, shown(where)):
        write_atomically(planned.folder / name, text, hint=WRITABLE)
    say(FLEET.render(parsed.format, answer, shown(where)))
    return answer


def _explain(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.plan import load_plan
    from harness.apps.fleet.shard import explain
    from harness.apps.report.command import show_run

    planned = load_plan(parsed.plan, to_run=True)
    done = explain(project, planned, parsed.artifact, trust=parsed.trust, progress=project.progress)
    return show_run(done, verbose=False)


def _store(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.fleet.keeping import collect, status
    from harness.apps.fleet.plan import load_plan

    del project
    planned = load_plan(parsed.plan)
    if parsed.days < LEAST_DAYS:
        raise ConfigError(f"--days {parsed.days}: expected a number of days from {LEAST_DAYS}", "such as 90")
    if parsed.what == "export":
        from harness.apps.fleet.parquet import export
        from harness.core.text import counted

        say(f"{parsed.to}: {counted(export(planned, Path(parsed.to)), 'result')}\n")
        return None
    say(status(planned) if parsed.what == "status" else collect(planned, parsed.days, remove=parsed.yes))
    return None


ACTIONS: dict[str, Callable[[argparse.Namespace, "Project"], object]] = {
    "plan": _plan,
    "run": _run,
    "job": _job,
    "merge": _report,
    "report": _report,
    "explain": _explain,
    "store": _store,
}
