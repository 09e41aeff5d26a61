"""What a machine is, as far as it matters to a run. Facts; ``None`` and empty where the machine does not tell.

What to make of them is for ``harness/apps/doctor/`` to say.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuState:
    """A GPU while it worked, beside a block that is not recorded.

    ``throttle_reasons``: why its clocks were held down, in the driver's words; ``"idle"`` is one of them;
    ``other_processes``: processes with a context on it that are not of the benchmark; 0 also where that is not known.
    """

    name: str
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    other_processes: int = 0
    temperature_c: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """The machine in one round of a benchmark, while models were loaded and blocks ran.

    Attributes:
        cores: to which all processes were pinned; empty: not pinned, ``why_not_pinned`` says why.
        stolen: share of these cores' time that the hypervisor gave to others, 0 to 1; of all cores where not pinned.
        others: share of it that processes other than the benchmark's used, 0 to 1.
        quota_cores: how many cores' worth of time the container may use; None: all that it sees.
        quota_throttled_s: for how long the container was stopped because it had used that up.
        gpu: None on the CPU, and where ``nvidia-smi`` gave no answer.
    """

    cores: tuple[int, ...] = ()
    why_not_pinned: str = ""
    stolen: float = 0.0
    others: float = 0.0
    quota_cores: float | None = None
    quota_throttled_s: float = 0.0
    gpu: GpuState | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """The cores and their time.

    Attributes:
        visible: how many the machine has; ``allowed``: how many this process may use.
        quota: cores' worth of time that the container may use; None: no quota.
        stolen: share of the allowed cores' time that the hypervisor took just now, 0 to 1; None where nobody looked.
    """

    visible: int
    allowed: int
    quota: float | None = None
    stolen: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuCard:
    """One GPU, as ``nvidia-smi`` tells it.

    Attributes:
        capability: ``"9.0"``.
        compute_mode: ``"Default"``, ``"Exclusive_Process"``, ``"Prohibited"``.
        mig: whether it is cut into instances.
        machine_state: its clocks, what holds them down, and how many processes are on it.
        ecc_errors: how often its memory has lost a value since the driver was loaded.
    """

    uuid: str
    capability: str
    machine_state: GpuState
    compute_mode: str = ""
    mig: bool = False
    memory_used_mib: int | None = None
    ecc_errors: int | None = None
    trouble: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpus:
    """What the machine shows of its GPUs.

    Attributes:
        nodes: device files, ``"/dev/nvidia0"``; empty: no GPU here.
        driver: version of the kernel module, ``"550.54.14"``.
        trouble: what ``nvidia-smi`` complained of, or that it did not answer.
        profilers: names of running programs that take the GPU's counters, or read them all the time.
        unlinked: device files without their link in ``/dev/char``.
    """

    nodes: tuple[str, ...] = ()
    driver: str = ""
    trouble: str = ""
    cards: tuple[GpuCard, ...] = ()
    profilers: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()


# What an event touches: times; hangs and crashes; what is raised.
TIMES, ENDS, ERRORS = "times", "ends", "errors"


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineEvent:
    """One thing that happened to the machine in the midst of a run.

    Attributes:
        name: stable, a few words: ``"steal time"``.
        read: what was found; ``so_what``: what that does to this run; ``do_this``: what to do about it.
        touches: verdicts that are to be read with it: some of ``TIMES``, ``ENDS`` and ``ERRORS``.
    """

    name: str
    read: str
    so_what: str
    do_this: str
    touches: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineDuringRun:
    """What happened to the machine during a run, the gravest first.

    ``seconds``: between the two looks; ``stolen`` and ``others``: shares of the time of the allowed cores, 0 to 1; None
    where nobody tells.
    """

    seconds: float
    stolen: float | None = None
    others: float | None = None
    events: tuple[MachineEvent, ...] = ()


class CheckStatus(StrEnum):
    """What a check came to. Only a ``FAIL`` means that an environment cannot be provisioned here."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineCheck:
    """One question about this machine, and its answer.

    Attributes:
        name: stable, a few words: ``"GPU driver"``.
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

    ``environments``: the environments that were asked for; ``wall_s``: how long the doctor took.
    """

    environments: tuple[str, ...]
    checks: tuple[MachineCheck, ...]
    wall_s: float = 0.0

    @property
    def blocked(self) -> tuple[str, ...]:
        """The environments that cannot be provisioned here, in the order in which they were asked for."""
        names = {name for check in self.checks for name in check.blocks}
        return tuple(name for name in self.environments if name in names)
