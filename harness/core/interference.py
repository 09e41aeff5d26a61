"""What holds up a process that other processes of the machine disturb."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LEAST_PAUSES = 20
"""Of one kind: fewer tell nothing of who causes them."""
LEVEL = 0.01
"""Of the p-value, which is corrected for the number of tests."""


class Loss(StrEnum):
    """How a process that has something to do does not get on."""

    CPU = "waiting for a CPU"
    BLOCKED = "blocked in the kernel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """One process over the recording, or several short-lived ones with one name and one parent.

    Attributes:
        command: its command line, the name where it has none or it is hidden; ``count``: of processes.
        ran_s, blocked_s: on CPUs, and in uninterruptible waits of its main thread that last 10 ms at least;
            ``meanwhile_s``: on CPUs while the watched process waited for one, each moment by how much of it was lost.
        bursts: how often it became active; ``period_s``: None where they do not recur regularly.
    """

    pid: int
    name: str
    command: str = ""
    count: int = 1
    ran_s: float = 0.0
    meanwhile_s: float = 0.0
    blocked_s: float = 0.0
    bursts: int = 0
    period_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Association:
    """How the activity of one process goes with one kind of the watched one's pauses.

    Attributes:
        beside: of the lost time, the share in which it was active, or up to two looks before; where a CPU is waited
            for, which share of one it had. ``usual``: the same of all time in which the watched process wanted
            anything.
        excess_s: how much longer it was active there than its activity and the pauses would come to by chance.
        score: the distance from the mean of the rotations in their standard deviations.
        p_value: corrected for the number of tests. Where others explain more, it and ``excess_s`` are of the time
            without their activity.
    """

    pid: int
    loss: Loss
    beside: float
    usual: float
    excess_s: float
    score: float
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pauses:
    """Where the watched process did not get on in one way; ``period_s`` as in ``Activity``."""

    count: int
    lost_s: float
    longest_s: float
    period_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Interference:
    """A recording of the whole machine, seen from one process.

    Attributes:
        chosen: nobody named the process: it is the one that waited most.
        seconds: length of the recording; ``interval_s``: between two looks, usually; ``own_share``: of one core that
            looking took.
        pauses: of those kinds that were seen.
        where: kernel function -> seconds that the watched process was blocked in it.
        processes: those that were seen, ``active`` the ones among them that did something, by time on CPUs.
        associations: of what recurs, the largest excess first.
        tested: how many pairs of a process and a kind of pause the p-values are corrected for.
        culprits: PIDs that are named, the likeliest first.
        ended: the watched process ended meanwhile.
        counts_waits: whether the kernel counts how long threads wait for a CPU; ``sees_functions``: whether it tells us
            in which of its functions the watched process was blocked.
    """

    watched: Activity
    chosen: bool
    seconds: float
    interval_s: float
    own_share: float
    pauses: Mapping[Loss, Pauses] = field(default_factory=dict)
    where: Mapping[str, float] = field(default_factory=dict)
    processes: int = 0
    active: tuple[Activity, ...] = ()
    associations: tuple[Association, ...] = ()
    tested: int = 0
    rotations: int = 0
    seed: int = 0
    culprits: tuple[int, ...] = ()
    ended: bool = False
    counts_waits: bool = True
    sees_functions: bool = True
