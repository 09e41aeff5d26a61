"""What the doctor says of a machine before anything is installed: one check per question, and all of them together."""

from dataclasses import dataclass
from enum import StrEnum


class CheckStatus(StrEnum):
    """What a check came to. Only a ``FAIL`` means that an environment cannot be provisioned here."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One question about this machine, and its answer.

    Attributes:
        name: stable, a few words: ``"GPU driver"``.
        area: under which heading it stands.
        about: the environment that it is about; empty: the machine.
        read: what was found.
        so_what: what that does to a run; one sentence, empty where the status is ``OK``.
        do_this: what to do about it; likewise.
        blocks: the environments that cannot be provisioned because of it; empty unless the status is ``FAIL``.
    """

    name: str
    area: str
    read: str
    status: CheckStatus = CheckStatus.OK
    about: str = ""
    so_what: str = ""
    do_this: str = ""
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """All checks, in the order in which they are shown.

    Attributes:
        environments: the environments that were asked for.
        wall_s: how long the doctor took.
    """

    environments: tuple[str, ...]
    checks: tuple[Check, ...]
    wall_s: float = 0.0

    @property
    def blocked(self) -> tuple[str, ...]:
        """The environments that cannot be provisioned here, in the order in which they were asked for."""
        found = {name for check in self.checks for name in check.blocks}
        return tuple(name for name in self.environments if name in found)
