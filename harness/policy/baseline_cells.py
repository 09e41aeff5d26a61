"""Opinions on one cell in two runs: new, fixed, the same, or of a kind that comes and goes. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from harness.domain.baseline import Change
from harness.domain.measurement import RatioEstimate
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict
from harness.policy.findings import MEASURES, SEVERITY, Severity
from harness.policy.words import joined, times_of

# Sizes of one kind that lie within this factor are told as the same failure.
GROWN = 2.0
ROUNDS_MOST = 200
SAME_ASKED = "the same was asked in the same environments, and the answer is another one: it comes and goes"


class Stand(Enum):
    """What a run says of a cell before waivers and severities: policy may change between two runs, facts do not."""

    RED = "red"
    OPEN = "open"
    QUIET = "quiet"  # open, and it does not matter
    GOOD = "good"
    UNASKED = "unasked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One cell as one run has it; ``steady`` is its model's latency where that was measured."""

    cell: CellVerdict
    steady: RatioEstimate | None = None

    @property
    def stand(self) -> Stand:
        """What the run says of it."""
        status = self.cell.judged or self.cell.status
        if status in (Status.FAIL, Status.XFAIL):
            return Stand.RED
        if status in (Status.PASS, Status.XPASS):
            return Stand.GOOD
        if status is Status.UNSUPPORTED:
            return Stand.UNASKED
        return Stand.OPEN if self.cell.decides else Stand.QUIET

    @property
    def failed(self) -> tuple[int, int]:
        """How many of how many rounds failed; of what is not counted, as of a race, the least that it can be."""
        least = 1 if self.stand is Stand.RED else 0
        return max(self.cell.failed_rounds, least), max(self.cell.rounds, 1)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its failing findings; of all of them where policy has made a failure of something else."""
        failing = {one.kind for one in self.cell.findings if SEVERITY.get(one.kind, Severity.FAIL) is Severity.FAIL}
        return frozenset(failing or {one.kind for one in self.cell.findings})


Told = tuple[Change, str]
# Failures and rounds, those of another run: whether the first clearly fails more often.
MoreOften = Callable[[int, int, int, int], bool]


def change_of(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> Told:
    """Return what became of a cell that both runs have, and why that is said.

    Args:
        same_asked: whether artifact, inputs, settings and environments are surely the same in both runs.
        more_often: the test of rates, of ``harness/numerics/rates.py``.
    """
    stands = (before.stand, now.stand)
    if Stand.UNASKED in stands:
        both = stands == (Stand.UNASKED, Stand.UNASKED)
        return (Change.UNCHANGED, "") if both else (Change.NOT_COMPARABLE, "one of the runs could not ask it")
    if stands == (Stand.RED, Stand.RED):
        return _both_red(before, now, same_asked=same_asked, more_often=more_often)
    if Stand.RED in stands and Stand.GOOD in stands:
        return _turned(before, now, same_asked=same_asked, more_often=more_often)
    if Stand.RED in stands or (Stand.OPEN in stands and Stand.GOOD in stands):
        first = stands[0] in (Stand.OPEN, Stand.QUIET)
        return Change.UNDECIDED, f"{'the other run' if first else 'this run'} does not say whether it fails"
    return Change.UNCHANGED, _other_policy(before, now)


def _both_red(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> Told:
    others = sorted(now.kinds - before.kinds)
    if others:
        how = f"fails otherwise: {', '.join(others)}; before: {', '.join(sorted(before.kinds)) or 'unknown'}"
        return (Change.FLAKY, f"{how}; {SAME_ASKED}") if same_asked else (Change.NEW, how)
    told = [_rates(before, now, more_often), *_sizes(before, now), _other_policy(before, now)]
    return Change.UNCHANGED, joined(*told)


def _turned(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> Told:
    """Return what a cell is that was red and is good, or the other way around."""
    change = Change.NEW if now.stand is Stand.RED else Change.FIXED
    red = now if change is Change.NEW else before
    if "latency" in red.kinds and before.steady is not None and now.steady is not None:
        return _timed(change, before.steady, now.steady)
    if before.cell.rounds or now.cell.rounds:
        return _in_rounds(change, before, now, same_asked=same_asked, more_often=more_often)
    return (Change.FLAKY, SAME_ASKED) if same_asked else (change, "")


def _timed(change: Change, before: RatioEstimate, now: RatioEstimate) -> Told:
    """Return whether a latency has really moved: the intervals of two runs that saw the same overlap."""
    words = f"{now.words}, was {before.words}"
    if before.low <= now.high and now.low <= before.high:
        return Change.FLAKY, f"{words}: the intervals of the two runs overlap"
    return change, words


def _in_rounds(change: Change, before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> Told:
    """Return whether rounds of initialization tell the two runs apart."""
    red, good = (now, before) if change is Change.NEW else (before, now)
    failed, rounds = red.failed
    words = f"fails {_counted(now)}, before {_counted(before)}"
    if more_often(failed, rounds, *good.failed):
        return change, words
    if failed < rounds or same_asked:
        return Change.FLAKY, f"{words}: so few rounds do not tell these apart"
    if change is Change.NEW:
        return change, words
    return Change.UNDECIDED, f"{words}: too few to say that it is gone{_enough(failed, rounds, more_often)}"


def _enough(failed: int, rounds: int, more_often: MoreOften) -> str:
    """Return how many rounds without a failure would say so."""
    needed = next((many for many in range(1, ROUNDS_MOST) if more_often(failed, rounds, 0, many)), None)
    return f", --init-rounds {needed} would be enough" if needed is not None else ""


def _rates(before: Seen, now: Seen, more_often: MoreOften) -> str:
    """Return that a failure has clearly become more or less frequent; empty where the rounds do not say so."""
    if not (before.cell.rounds and now.cell.rounds):
        return ""
    more, less = more_often(*now.failed, *before.failed), more_often(*before.failed, *now.failed)
    how = "more often" if more else "less often" if less else ""
    return f"clearly {how}: {_counted(now)}, before {_counted(before)}" if how else ""


def _sizes(before: Seen, now: Seen) -> list[str]:
    """Return the sizes of findings that have clearly grown or shrunk."""
    sizes = {one.kind: one.size for one in before.cell.findings if one.size is not None}
    told = []
    for one in now.cell.findings:
        was = sizes.get(one.kind)
        if one.size is None or was is None or one.kind not in now.kinds:
            continue
        base = 1.0 if MEASURES.get(one.kind) == "ratio" else 0.0
        new, old = abs(one.size - base), abs(was - base)
        if max(new, old) > GROWN * min(new, old):
            told.append(f"{one.kind} {'grew' if new > old else 'shrank'}: {one.size:.3g}, was {was:.3g}")
    return told


def _other_policy(before: Seen, now: Seen) -> str:
    """Return that only waivers or severities have changed; empty where the status is the same."""
    if before.cell.status is now.cell.status:
        return ""
    if before.stand is now.stand and Stand.QUIET not in (before.stand, now.stand):
        return "the same was found; a waiver or the policy makes another status of it"
    return ""


def _counted(seen: Seen) -> str:
    return f"in {times_of(*seen.failed)}"
