"""A given artifact with requests, made from a model of the zoo in the old release: what attacks on runs begin with."""

import shutil
from dataclasses import replace
from pathlib import Path

from benchmarks.faults import stored
from harness.apps.report.files import Finished
from harness.apps.upgrade.execute import execute
from harness.apps.upgrade.plan import make_plan
from harness.machine import clock
from harness.machine.progress import Progress
from harness.project import Project
from harness.store.run_folder import RunDir
from harness.worker import wire

MODEL = "early_exit"
MANIFEST = f'[[models]]\nname = "{MODEL}"\npath = "{MODEL}.pt"\ninputs = "requests/{wire.TENSORS_INDEX}"\n'
QUICKLY = {"latency": "off", "jobs": 1}
QUIET = Progress(enabled=False)


def make_given(project: Path) -> None:
    """Write ``artifacts`` of a project: an artifact, its requests and a manifest."""
    stored.make_project(project)
    zoo = {"fixtures": str(stored.PROJECT / "fixtures" / "zoo")}
    run = _finished(
        Project(folder=project, overrides={**QUICKLY, **zoo}, expression=MODEL, scenarios=("alone",), progress=QUIET)
    )
    exported = RunDir(run.folder).baselines()[MODEL].artifact
    folder = project / "artifacts"
    shutil.copytree(exported.inputs_dir, folder / "requests")
    shutil.copy(exported.path, folder / f"{MODEL}.pt")
    (folder / "models.toml").write_text(MANIFEST)
    shutil.rmtree(project / "reports")


def run_given(project: Path, progress: Progress = QUIET) -> Finished:
    """Return a finished run of what ``make_given`` has written."""
    artifacts = (str(project / "artifacts"),)
    return _finished(
        Project(folder=project, artifacts=artifacts, overrides=QUICKLY, scenarios=("alone",), progress=progress)
    )


def _finished(options: Project) -> Finished:
    """Return a finished run without planted defects, which would take most of it."""
    plan = replace(make_plan(replace(options, arguments=("compat",))), planted_defects=())
    with RunDir.create(options.reports, "given", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, options)
