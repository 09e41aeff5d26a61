"""The kinds of findings and how much each one weighs. An open list: later work adds to it."""

from collections.abc import Sequence
from enum import StrEnum

from harness.core.outcome import Outcome, Status
from harness.core.text import joined
from harness.core.verdict import CellVerdict, Finding


class Severity(StrEnum):
    """What a finding does to its cell."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NAMED = "named"
    """The cell passes, and the decision's own line names it."""
    WARN = "warn"
    INFO = "info"


SEVERITY: dict[str, Severity] = {
    # the model does not get as far as an answer
    "load_error": Severity.FAIL,
    "call_error": Severity.FAIL,
    "out_of_memory": Severity.FAIL,
    "crash": Severity.FAIL,
    "exit_crash": Severity.FAIL,
    "hang": Severity.FAIL,
    "concurrent_error": Severity.FAIL,
    # the answer is another one
    "structure": Severity.FAIL,
    "dtype": Severity.FAIL,
    "nan_placement": Severity.FAIL,
    "values": Severity.FAIL,
    "late_divergence": Severity.FAIL,
    "error_limit": Severity.FAIL,
    "input_changed": Severity.FAIL,
    "race": Severity.FAIL,
    "graph_replay": Severity.FAIL,
    "capture_error": Severity.FAIL,
    # the answer comes late
    "latency": Severity.FAIL,
    "common_slowdown": Severity.FAIL,
    # something beside it is surely beyond its limit (``harness/core/quantities.py``)
    "load_time": Severity.NAMED,
    "initialization_time": Severity.NAMED,
    "first_calls": Severity.NAMED,
    "tail": Severity.NAMED,
    "throughput": Severity.NAMED,
    "memory": Severity.NAMED,
    "memory_growth": Severity.NAMED,
    "new_shape": Severity.NAMED,
    "recompilation": Severity.NAMED,
    "replay_time": Severity.NAMED,
    "quantity_lost": Severity.NAMED,
    # the run has no such model any more, and its baseline had
    "gone": Severity.NAMED,
    # what lay in the folder of the models, looks like one, and has no verdict
    "unjudged_file": Severity.NAMED,
    "not_confirmed": Severity.WARN,
    # we could not tell
    "export_error": Severity.INCONCLUSIVE,
    "covers": Severity.INCONCLUSIVE,
    "unordered_missing": Severity.INCONCLUSIVE,
    "unstable_old_release": Severity.INCONCLUSIVE,
    "not_decidable": Severity.INCONCLUSIVE,
    "not_measured": Severity.INCONCLUSIVE,
    "not_called": Severity.INCONCLUSIVE,
    "no_value": Severity.INCONCLUSIVE,
    "request_fails": Severity.INCONCLUSIVE,
    "library_missing": Severity.INCONCLUSIVE,
    "damaged_file": Severity.INCONCLUSIVE,
    "broken_since": Severity.INCONCLUSIVE,
    "protocol_error": Severity.INCONCLUSIVE,
    "latency_undecided": Severity.INCONCLUSIVE,
    "starved": Severity.INCONCLUSIVE,
    # worth telling
    "waiver_expired": Severity.WARN,
    "waiver_exceeded": Severity.WARN,
    "waiver_elsewhere": Severity.WARN,
    "waiver_unused": Severity.WARN,
    "changed_operator": Severity.WARN,
    "guessed_inputs": Severity.INFO,
    "untested_method": Severity.INFO,
    "untested_branch": Severity.INFO,
    "rewritten_file": Severity.INFO,
    "recompiles": Severity.INFO,
    "stride": Severity.INFO,
    "reordered": Severity.INFO,
    "aliasing": Severity.INFO,
    "changes_inputs": Severity.INFO,
    "shared_generator": Severity.INFO,
    "shared_state": Severity.INFO,
    "sizes_refused": Severity.INFO,
    "closer_to_reference": Severity.INFO,
}

# Findings of a run and of no single cell: no rule for some models is about them, and no waiver.
OF_THE_RUN = ("common_slowdown", "gone", "unjudged_file")

DISTURBANCE = "disturbance"
"""Of any kind: the ``Disturbance`` that was its reason, where there was one."""
NAN_APPEARED, NAN_GONE = "nan_appeared", "nan_gone"
"""In how many elements, of ``nan_placement``: NaN where a number was, and a number where NaN was."""
# What the size of a finding (``Finding.size``) is, by kind: the largest difference over the largest golden value, or
# the ratio new/old. Kinds that are not here have none: a hang, a NaN in another place.
MEASURES: dict[str, str] = {
    "values": "error",
    "late_divergence": "error",
    "error_limit": "error",
    "race": "error",
    "graph_replay": "error",
    "closer_to_reference": "error",
    "latency": "ratio",
    "common_slowdown": "ratio",
    "latency_undecided": "ratio",
    "load_time": "ratio",
    "initialization_time": "ratio",
    "first_calls": "ratio",
    "tail": "ratio",
    "throughput": "ratio",
    "memory": "ratio",
    "not_confirmed": "ratio",
    "new_shape": "ratio",
    "replay_time": "ratio",
}

OUTCOME_KIND: dict[Outcome, str] = {
    Outcome.EXPORT_ERROR: "export_error",
    Outcome.LOAD_ERROR: "load_error",
    Outcome.RUNTIME_ERROR: "call_error",
    Outcome.OUT_OF_MEMORY: "out_of_memory",
    Outcome.CRASH: "crash",
    Outcome.HANG: "hang",
    Outcome.PROTOCOL_ERROR: "protocol_error",
    Outcome.STARVED: "starved",
    Outcome.NOT_RUN: "not_measured",
    Outcome.ENV_UNAVAILABLE: "not_measured",
    Outcome.UNSUPPORTED: "not_measured",
}


def weight(cell: CellVerdict, kind: str) -> Severity:
    """Return what a finding of ``kind`` does to this cell, under its policy; a kind that nobody knows is FAIL."""
    ruled = next((item.now for item in cell.ruled if item.kind == kind), None)
    return Severity(ruled) if ruled is not None else SEVERITY.get(kind, Severity.FAIL)


# Which status a cell gets from its heaviest finding.
STATUS_OF = {
    Severity.FAIL: Status.FAIL,
    Severity.INCONCLUSIVE: Status.INCONCLUSIVE,
    Severity.NAMED: Status.PASS,
    Severity.WARN: Status.PASS,
    Severity.INFO: Status.PASS,
}


def cell_reason(cell: CellVerdict) -> str:
    """Return why a cell is what it is: its first finding, what to do about it, and its note."""
    first = cell.findings[0] if cell.findings else None
    return joined(first.message if first else "", first.advice if first else "", cell.note)


def status_of(findings: Sequence[Finding]) -> Status:
    """Return FAIL if any finding is one, else INCONCLUSIVE if any, else PASS."""
    statuses = {STATUS_OF[SEVERITY[finding.kind]] for finding in findings}
    for status in (Status.FAIL, Status.INCONCLUSIVE):
        if status in statuses:
            return status
    return Status.PASS


# Worst first: the status of a row is the first of these that one of its deciding cells has.
WORST_FIRST = (
    Status.FAIL,
    Status.INCONCLUSIVE,
    Status.XPASS,
    Status.SAME_FAIL,
    Status.UNSUPPORTED,
    Status.XFAIL,
    Status.PASS,
)
