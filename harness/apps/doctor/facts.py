"""What the doctor looks up: of the machine, of the environments that a run would need, and of both over time. Facts.

``None`` and empty where nobody tells.
"""

from dataclasses import dataclass, field

from harness.core.machine import Cores, Gpus


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

    ``tasks``: processes and threads together: the smaller of the user's and the control group's; ``open_files``: of one
    process.
    """

    tasks: int | None = None
    open_files: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """The container around this process.

    ``kind``: ``"docker"``, ``"podman"``, ``"kubernetes"`` or ``"container"``; empty: none was seen; ``group``: the
    control group of this process, as far as it can see it.
    """

    kind: str = ""
    group: str = ""


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
