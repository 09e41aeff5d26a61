"""What happened to the machine while a run went on: two readings, and what is to be said of the difference."""

from dataclasses import dataclass

from harness.domain.host import Gpus

# What an event touches: times; hangs and crashes; what is raised.
TIMES, ENDS, ERRORS = "times", "ends", "errors"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
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
class Event:
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
class Course:
    """What happened to the machine during a run, the gravest first.

    Attributes:
        seconds: between the two looks.
        stolen, others: shares of the time of the allowed cores, 0 to 1; None where nobody tells.
    """

    seconds: float
    stolen: float | None = None
    others: float | None = None
    events: tuple[Event, ...] = ()
