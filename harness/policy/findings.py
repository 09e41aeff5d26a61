"""The kinds of findings and how much each one weighs. An open list: later work adds to it."""

from enum import StrEnum

from harness.domain.outcome import Outcome
from harness.domain.verdict import CellVerdict


class Severity(StrEnum):
    """What a finding does to its cell."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    WARN = "warn"
    INFO = "info"


SEVERITY: dict[str, Severity] = {
    # the model does not get as far as an answer
    "load_error": Severity.FAIL,
    "call_error": Severity.FAIL,
    "out_of_memory": Severity.FAIL,
    "crash": Severity.FAIL,
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
    "load_time": Severity.WARN,
    "first_calls": Severity.WARN,
    "tail": Severity.WARN,
    "throughput": Severity.WARN,
    "memory": Severity.WARN,
    "memory_growth": Severity.WARN,
    "new_shape": Severity.WARN,
    "recompilation": Severity.WARN,
    "replay_time": Severity.WARN,
    "quantity_lost": Severity.WARN,
    # we could not tell
    "export_error": Severity.INCONCLUSIVE,
    "covers": Severity.INCONCLUSIVE,
    "unordered_missing": Severity.INCONCLUSIVE,
    "unstable_baseline": Severity.INCONCLUSIVE,
    "not_decidable": Severity.INCONCLUSIVE,
    "not_measured": Severity.INCONCLUSIVE,
    "not_called": Severity.INCONCLUSIVE,
    "request_fails": Severity.INCONCLUSIVE,
    "protocol_error": Severity.INCONCLUSIVE,
    "latency_undecided": Severity.INCONCLUSIVE,
    "starved": Severity.INCONCLUSIVE,
    # worth telling
    "waiver_expired": Severity.WARN,
    "waiver_exceeded": Severity.WARN,
    "waiver_elsewhere": Severity.WARN,
    "waiver_unused": Severity.WARN,
    "guessed_inputs": Severity.INFO,
    "recompiles": Severity.INFO,
    "stride": Severity.INFO,
    "reordered": Severity.INFO,
    "aliasing": Severity.INFO,
    "changes_inputs": Severity.INFO,
    "shared_generator": Severity.INFO,
    "closer_to_reference": Severity.INFO,
}

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
    "latency_undecided": "ratio",
    "load_time": "ratio",
    "first_calls": "ratio",
    "tail": "ratio",
    "throughput": "ratio",
    "memory": "ratio",
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
