"""A given artifact with requests, made from a model of the zoo in the old release: what attacks on runs begin with."""

import shutil
from dataclasses import replace
from pathlib import Path

from benchmarks.faults import stored
from harness.machine import clock
from harness.machine.progress import Progress
from harness.run.execute import execute
from harness.run.files import Finished
from harness.run.options import Options
from harness.run.plan import make_plan
from harness.store.run_folder import RunDir
from harness.worker import wire

MODEL = "early_exit"
MANIFEST = f'[[models]]\nname = "{MODEL}"\npath = "{MODEL}.pt"\ninputs = "requests/{wire.TENSORS_INDEX}"\n'
QUICKLY = {"latency": "off", "jobs": 1}


def make_given(project: Path) -> None:
    """Write ``artifacts`` of a project: an artifact, its requests and a manifest."""
    stored.make_project(project)
    zoo = {"fixtures": str(stored.PROJECT / "fixtures" / "zoo")}
    run = _finished(Options(project=project, overrides={**QUICKLY, **zoo}, expression=MODEL, scenarios=("alone",)))
    exported = RunDir(run.folder).baselines()[MODEL].artifact
    folder = project / "artifacts"
    shutil.copytree(exported.inputs_dir, folder / "requests")
    shutil.copy(exported.path, folder / f"{MODEL}.pt")
    (folder / "models.toml").write_text(MANIFEST)
    shutil.rmtree(project / "reports")


def run_given(project: Path, progress: Progress | None = None) -> Finished:
    """Return a finished run of what ``make_given`` has written."""
    artifacts = (str(project / "artifacts"),)
    return _finished(Options(project=project, artifacts=artifacts, overrides=QUICKLY, scenarios=("alone",)), progress)


def _finished(options: Options, progress: Progress | None = None) -> Finished:
    """Return a finished run without planted defects, which would take most of it."""
    plan = replace(make_plan(replace(options, arguments=("compat",))), planted_defects=())
    with RunDir.create(options.reports, "given", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, options, progress or Progress(enabled=False))
