"""The kinds of findings and how much each one weighs. An open list: later work adds to it."""

from enum import StrEnum

from harness.domain.outcome import Outcome


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
    "guessed_inputs": Severity.INFO,
    "recompiles": Severity.INFO,
    "stride": Severity.INFO,
    "reordered": Severity.INFO,
    "aliasing": Severity.INFO,
    "changes_inputs": Severity.INFO,
    "shared_generator": Severity.INFO,
    "closer_to_reference": Severity.INFO,
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
