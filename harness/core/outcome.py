"""What happened to a probe, and what we think of a cell."""

from enum import StrEnum


class Outcome(StrEnum):
    """What happened; a fact about one model in one process, never an opinion."""

    COMPLETED = "completed"
    EXPORT_ERROR = "export_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    HANG = "hang"
    STARVED = "starved"
    UNSUPPORTED = "unsupported"
    ENV_UNAVAILABLE = "env_unavailable"
    PROTOCOL_ERROR = "protocol_error"
    NOT_RUN = "not_run"


# No failure: it came through, or its turn never came.
FINE = frozenset({Outcome.COMPLETED, Outcome.NOT_RUN})
# Says nothing about the release: the machine was too busy, or something of ours failed.
UNCLEAR = frozenset({Outcome.STARVED, Outcome.PROTOCOL_ERROR})


class Status(StrEnum):
    """What we think of a cell; decided in ``harness.verdict`` and nowhere else."""

    PASS = "PASS"  # noqa: S105  no password
    FAIL = "FAIL"
    XFAIL = "XFAIL"
    XPASS = "XPASS"
    SAME_FAIL = "SAME_FAIL"
    UNSUPPORTED = "UNSUPPORTED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Decision(StrEnum):
    """The one line that a run ends with."""

    UPGRADE_OK = "UPGRADE OK"
    CELL_OK = "CELL OK"
    OK_WITH_MITIGATION = "OK WITH MITIGATION"
    BLOCKED = "BLOCKED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOTHING_TESTED = "NOTHING TESTED"
