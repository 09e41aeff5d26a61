"""A given artifact with requests, made from a model of the zoo in the old release: what attacks on runs begin with."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.run.execute import execute
from harness.run.files import Finished
from harness.run.options import Options
from harness.run.plan import make_plan
from harness.store.run_folder import RunDir
from harness.system import clock
from harness.system.progress import Progress
from harness.worker import wire
from tests.bench.faults import stored

MODEL = "early_exit"
MANIFEST = f'[[models]]\nname = "{MODEL}"\npath = "{MODEL}.pt"\ninputs = "requests/{wire.TENSORS_INDEX}"\n'
QUICK: Sequence[str] = ("--scenario", "alone", "--latency", "off")


def make_given(project: Path) -> str:
    """Write ``artifacts`` of a project: an artifact, its requests and a manifest; return why that failed."""
    stored.make_project(project)
    exporting = ("compat", "--fixtures", str(stored.PROJECT / "fixtures" / "zoo"), "-k", MODEL, *QUICK)
    said = stored.called(project, exporting)
    if said.code:
        return said.err[-500:] or said.out[-500:]
    (run,) = project.glob(stored.RUN)
    exported = RunDir(run).baselines()[MODEL].artifact
    folder = project / "artifacts"
    shutil.copytree(exported.inputs_dir, folder / "requests")
    shutil.copy(exported.path, folder / f"{MODEL}.pt")
    (folder / "models.toml").write_text(MANIFEST)
    shutil.rmtree(project / "reports")
    return ""


def run_given(project: Path, progress: Progress) -> Finished:
    """Return a finished run of what ``make_given`` has written, without planted defects: they would take most of it."""
    options = Options(
        project=project,
        artifacts=(str(project / "artifacts"),),
        scenarios=("alone",),
        overrides={"latency": "off", "jobs": 1},
        arguments=("compat",),
    )
    plan = replace(make_plan(options), planted_defects=())
    with RunDir.create(options.reports, "given", clock.utc_now()) as run_dir:
        run_dir.save_plan(plan)
        return execute(plan, run_dir, options, progress)
