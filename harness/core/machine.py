"""What a machine is, as far as it matters to a run. Facts; ``None`` and empty where the machine does not tell.

What to make of them is for ``harness/apps/doctor/`` to say.
"""

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuState:
    """A GPU while it worked, beside a block that is not recorded.

    Attributes:
        throttle_reasons: why its clocks were held down, in the driver's words; ``"idle"`` is one of them.
        other_processes: processes with a context on it that are not of the benchmark; 0 also where that is not known.
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
class Memory:
    """Memory in bytes: ``usable`` is the smaller of the machine's and the container's."""

    usable: int | None = None
    available: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """The disk of the environments.

    Attributes:
        folder: where environments go, or the nearest folder above that is there.
        writable: whether this user may write there.
        free: bytes that this user may still write; None where nobody can tell.
    """

    folder: str
    writable: bool = True
    free: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What the system lets one user or container have; None: no limit, or nobody tells.

    Attributes:
        tasks: processes and threads together: the smaller of the user's and the control group's.
        open_files: of one process.
    """

    tasks: int | None = None
    open_files: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """The container around this process.

    Attributes:
        kind: ``"docker"``, ``"podman"``, ``"kubernetes"`` or ``"container"``; empty: none was seen.
        group: the control group of this process, as far as it can see it.
    """

    kind: str = ""
    group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuCard:
    """One GPU, as ``nvidia-smi`` tells it.

    Attributes:
        capability: ``"9.0"``.
        compute_mode: ``"Default"``, ``"Exclusive_Process"``, ``"Prohibited"``.
        mig: whether it is cut into instances.
        machine_state: its clocks, what holds them down, and how many processes are on it.
        ecc_errors: how often its memory has lost a value since the driver was loaded.
        trouble: why nothing can use it, in the driver's words.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """What a build of torch asks of a machine.

    Attributes:
        cuda: ``"12.4"``; None: a build without CUDA.
        architectures: ``"sm_90"`` and ``"compute_90"`` of its kernels; empty where nobody knows.
        glibc: the oldest that it runs with, ``"2.28"``; None where nobody knows.
        source: from where this is known.
    """

    cuda: str | None
    architectures: tuple[str, ...] = ()
    glibc: str | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexAnswer:
    """What the package index, or the installer's cache, has of one release.

    Attributes:
        found: None: no answer in time.
        cached: whether the cache alone can build the environment.
        said: the installer's own decisive words, where something was the matter.
        reached: whether an index answered at all.
    """

    found: bool | None = None
    reached: bool = True
    cached: bool = False
    said: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An environment that a run would need.

    Attributes:
        name: ``"torch 2.6.0"``, or the NAME of a ready-made interpreter.
        built: whether it is there already.
        python: the Python that it has or would get; empty where none was found.
        pythons: the Pythons that suit the release, in words; empty for a ready-made interpreter.
        unsuited: whether it would be built with another one, which the configuration names.
        trouble, hint: why there is no Python, or what is wrong with the interpreter.
        wheel: None where nobody knows this build.
        index: None where it need not be asked.
    """

    name: str
    built: bool = False
    python: str = ""
    pythons: str = ""
    unsuited: bool = False
    trouble: str = ""
    hint: str = ""
    wheel: Wheel | None = None
    index: IndexAnswer | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """Programs that a run starts: ``installer`` and ``compiler`` with version; why there is no compiler."""

    installer: str = ""
    compiler: str = ""
    no_compiler: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The machine that a run would take place on; ``glibc`` is empty where it has another C library."""

    cores: Cores
    memory: Memory = field(default_factory=Memory)
    limits: Limits = field(default_factory=Limits)
    container: Container = field(default_factory=Container)
    gpus: Gpus = field(default_factory=Gpus)
    glibc: str = ""


# What an event touches: times; hangs and crashes; what is raised.
TIMES, ENDS, ERRORS = "times", "ends", "errors"


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterReading:
    """The machine at one moment. Counters count from some start of their own; None: nobody tells.

    Attributes:
        at_s: on the monotonic clock; ``slept_s``: for how long the machine was suspended since it was started.
        cores: that this process may use; the three seconds below are summed over them.
        core_s: time that has passed on them; ``busy_s``: in which anyone ran; ``stolen_s``: that the hypervisor took.
        own_s: CPU time of this process and of all that it has started and seen the end of.
        quota_cores: how many cores' worth of time the container may use.
        throttled_s: for how long the container was stopped for want of quota.
        hot: how often a core was slowed down for its heat.
        governors: of the allowed cores, each once.
        oom_kills: processes of this control group that the kernel ended for want of memory; ``machine_oom_kills``: of
            the whole machine.
        tasks_refused: processes and threads that a control group's limit did not let begin.
        swapped_bytes: moved to and from swap, of the whole machine.
        available_bytes: memory that is left, the container's where that is less.
        disk_bytes: left where the run is kept; ``shared_bytes``: left in /dev/shm.
        gpus: None where the run uses none.
    """

    at_s: float
    slept_s: float | None = None
    cores: int = 0
    core_s: float = 0.0
    busy_s: float = 0.0
    stolen_s: float = 0.0
    own_s: float = 0.0
    quota_cores: float | None = None
    throttled_s: float = 0.0
    hot: int | None = None
    governors: tuple[str, ...] = ()
    oom_kills: int | None = None
    machine_oom_kills: int | None = None
    tasks_refused: int | None = None
    swapped_bytes: int | None = None
    available_bytes: int | None = None
    disk_bytes: int | None = None
    shared_bytes: int | None = None
    gpus: Gpus | None = None


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

    Attributes:
        seconds: between the two looks.
        stolen, others: shares of the time of the allowed cores, 0 to 1; None where nobody tells.
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
    checks: tuple[MachineCheck, ...]
    wall_s: float = 0.0

    @property
    def blocked(self) -> tuple[str, ...]:
        """The environments that cannot be provisioned here, in the order in which they were asked for."""
        found = {name for check in self.checks for name in check.blocks}
        return tuple(name for name in self.environments if name in found)
