"""Which of the processes that go with the pauses of another are named, and whether that could be told; pure."""

from harness.core.interference import Association, Interference, Loss, Pauses

LEVEL = 0.01
"""Of the p-value, which is corrected for the number of processes."""
LEAST_SHARE = 0.1
"""Of the lost time: who explains less is not worth a name, however sure it is."""
LEAST_PAUSES = 20
"""Of one kind: fewer tell nothing."""
HARDLY_SHARE, HARDLY_S = 0.01, 0.05
"""A process that loses less of its time, and never longer at once, is not held up."""

WALK_MEMORY = ("kcompactd", "kdamond", "khugepaged", "ksmd", "kswapd")
"""Threads of the kernel that move, merge, evict or watch the pages of any process."""


def culprits(result: Interference) -> tuple[int, ...]:
    """Return who is named, the largest share of a kind's lost time first.

    Threads of the kernel work for others, also for the watched process, but for those that walk everybody's memory.
    """
    kernel = {one.pid for one in result.active if one.is_kernel_thread and not one.name.startswith(WALK_MEMORY)}
    named = sorted(
        (one for one in result.associations if is_named(one, result)), key=lambda one: share(one, result), reverse=True
    )
    return tuple(dict.fromkeys(one.pid for one in named if one.pid not in kernel))


def is_named(one: Association, result: Interference) -> bool:
    """Whether its activity goes with the pauses more often than chance, and explains enough of them."""
    return one.p_value <= LEVEL and share(one, result) >= LEAST_SHARE


def share(one: Association, result: Interference) -> float:
    """Return the share of the lost time that goes with its activity beyond chance."""
    return one.excess_s / result.pauses[one.loss].lost_s


def untold(result: Interference) -> tuple[Loss, ...]:
    """Return the kinds of pauses that hold the process up, and are too few to tell who causes them."""
    return tuple(loss for loss, seen in result.pauses.items() if seen.count < LEAST_PAUSES and holds_up(seen, result))


def holds_up(seen: Pauses, result: Interference) -> bool:
    return seen.lost_s > HARDLY_SHARE * result.seconds or seen.longest_s > HARDLY_S
