"""The doctor's second look: what happened to the machine between the begin and the end of a run, told in its report."""

import os
from dataclasses import replace

from harness.doctor import host
from harness.doctor.during_run import during_run_notes, happened_between
from harness.domain.machine import CounterReading
from harness.domain.plan import Plan
from harness.domain.report import RunReport
from harness.store.run_folder import RunDir
from harness.system import gpu


def look(plan: Plan, run_dir: RunDir) -> CounterReading:
    """Return what the machine's counters are now; of GPUs only where the run uses them."""
    on_gpu = plan.device == "cuda"
    gpus = gpu.survey(visible=os.environ.get("CUDA_VISIBLE_DEVICES")) if on_gpu else None
    return host.read_counters(run_dir.path, gpus=gpus)


def with_machine_changes(report: RunReport, before: CounterReading, after: CounterReading) -> RunReport:
    """Return the report with what happened to the machine between two looks, and a note for each thing."""
    during_run = happened_between(before, after)
    notes = during_run_notes(during_run, times=any(model.latency is not None for model in report.models))
    return replace(report, during_run=during_run, notes=tuple(dict.fromkeys((*report.notes, *notes))))
