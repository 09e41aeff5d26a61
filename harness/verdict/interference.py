"""Which of the processes that go with the pauses of another are named, and whether that could be told; pure."""

from harness.core.interference import LEAST_PAUSES, LEVEL, Association, Interference, Loss, Pauses

LEAST_SHARE = 0.1
"""Of the lost time: who explains less is not worth a name, however sure it is."""
HARDLY_SHARE, HARDLY_S = 0.01, 0.05
"""A process that loses less of its time, and never longer at once, is not held up."""


def culprits(result: Interference) -> tuple[int, ...]:
    """Return who is named, the largest share of a kind's lost time first."""
    named = [one for one in result.associations if is_named(one, result)]
    return tuple(dict.fromkeys(one.pid for one in sorted(named, key=lambda one: share(one, result), reverse=True)))


def is_named(one: Association, result: Interference) -> bool:
    """Whether its activity goes with the pauses more often than chance, and explains enough of them."""
    return one.p_value <= LEVEL and share(one, result) >= LEAST_SHARE


def share(one: Association, result: Interference) -> float:
    """Return the share of the lost time that goes with its activity beyond chance."""
    return one.excess_s / result.pauses[one.loss].lost_s


def too_few(result: Interference) -> tuple[Loss, ...]:
    """Return the kinds of pauses that hold the process up, and are too few to tell who causes them."""
    return tuple(loss for loss, seen in result.pauses.items() if seen.count < LEAST_PAUSES and holds_up(seen, result))


def is_well(result: Interference) -> bool:
    """Whether nothing holds the process up, as far as the whole recording shows."""
    complete = result.counts_waits and not result.ended
    return complete and not any(holds_up(seen, result) for seen in result.pauses.values())


def holds_up(seen: Pauses, result: Interference) -> bool:
    """Whether so much is lost that somebody would ask why."""
    return seen.lost_s > HARDLY_SHARE * result.seconds or seen.longest_s > HARDLY_S
