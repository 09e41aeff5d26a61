"""The doctor's second look: what happened to the machine between the begin and the end of a run, told in its report."""

import os
from dataclasses import replace

from harness.domain.course import Reading
from harness.domain.plan import Plan
from harness.domain.report import RunReport
from harness.policy.course import course_notes, course_of
from harness.runtime import gpu_survey, host_reading
from harness.runtime.run_dir import RunDir


def look(plan: Plan, run_dir: RunDir) -> Reading:
    """Return what the machine's counters are now; of GPUs only where the run uses them."""
    on_gpu = plan.device == "cuda"
    gpus = gpu_survey.look(visible=os.environ.get("CUDA_VISIBLE_DEVICES")) if on_gpu else None
    return host_reading.read(run_dir.path, gpus=gpus)


def seen_again(report: RunReport, before: Reading, after: Reading) -> RunReport:
    """Return the report with what happened to the machine between two looks, and a note for each thing."""
    course = course_of(before, after)
    notes = course_notes(course, times=any(model.latency is not None for model in report.models))
    return replace(report, course=course, notes=tuple(dict.fromkeys((*report.notes, *notes))))
