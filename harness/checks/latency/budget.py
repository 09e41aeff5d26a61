"""Spends the time of a benchmark where it decides most: which models the next round times, so that it fits."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.core.measurement import RatioEstimate
from harness.core.plan import LatencyBudget

# Seconds for all models together, and for each where that is more: what decides most of them on a usual machine.
TOTAL_S = {"quick": (65.0, 4.1), "thorough": (600.0, 46.0)}
# A slower machine, or larger models, get what their first looks are expected to take and a little more, up to so many
# times as much: without a look nothing is known of a model.
FOR_FIRST_LOOKS = 1.1
MOST = 2.0

# Two lanes need so much of the time of one: callers at the same time are alone, and each lane starts its processes
# (docs/hand-bench.md).
IN_TWO_LANES = 0.67


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A model that another round may time.

    ``cost_s`` is of one round in its lane, without the start of the processes; ``rounds``: until its next look, as
    fewer would tell nothing; ``confirmed_in``: how many more rounds confirm a suspicion; ``is_required``: timed
    whatever is left, as planted slowdowns are; ``decided_in_s``: how much measuring is expected to decide it.
    """

    cost_s: float
    rounds: int
    confirmed_in: int = 0
    is_required: bool = False
    is_suspected: bool = False
    is_new: bool = False
    decided_in_s: float = 0.0


def total_s(budget: LatencyBudget, models: int, lanes: int = 1, *, first_looks_s: float = 0.0) -> float:
    """Return how long the benchmark of so many models may take, in so many lanes."""
    if budget.total_s is not None:
        return budget.total_s
    whole_s, model_s = TOTAL_S.get(budget.budget, TOTAL_S["quick"])
    usual_s = max(whole_s, model_s * models * (IN_TWO_LANES if lanes > 1 else 1.0))
    return min(max(usual_s, FOR_FIRST_LOOKS * first_looks_s), MOST * usual_s)


def next_round(
    candidates: Mapping[str, Candidate], *, start_s: float, left_s: float, lanes: int = 1, needs_one: bool = False
) -> list[str]:
    """Return the models of the next round, in the order of ``candidates``; none when the time is over.

    A model takes part if its rounds until its next look fit beside those of the models that come before it: suspicions
    first, then models without a look, the cheapest first, then whichever is decided soonest. First looks leave the time
    to confirm the most expensive of them: a confirmed slowdown is worth more than one more look. Where that reserve
    would keep every model out, it goes to a model without a look. ``needs_one``: one model is timed in any case, beside
    those that are required.
    """
    chosen = [name for name, candidate in candidates.items() if candidate.is_required]
    others = sorted((name for name in candidates if name not in chosen), key=lambda name: _order(candidates[name]))
    if needs_one and others:
        chosen.append(others.pop(0))
    more: list[str] = []
    for keeps_back in (True, False):
        has_refused, suspected = False, tuple(more)
        for name in others:
            if name in more or (suspected and not candidates[name].is_new):
                continue
            wanted = [candidates[chosen_name] for chosen_name in (*chosen, *more, name)]
            kept_back_s = _confirming_s(wanted, start_s, lanes) if keeps_back else 0.0
            is_first_look = candidates[name].is_new
            # Rounds after a look wait for a model without one, as long as time is kept back that it may get.
            waits = keeps_back and has_refused and not is_first_look and not candidates[name].is_suspected
            if not waits and seconds(wanted, start_s, lanes) + kept_back_s <= left_s:
                more.append(name)
            else:
                has_refused = has_refused or is_first_look
        if not has_refused or not all(candidates[name].is_suspected for name in more):
            break
    return [name for name in candidates if name in {*chosen, *more}]


def seconds(candidates: Sequence[Candidate], start_s: float, lanes: int = 1) -> float:
    rounds = max((candidate.rounds for candidate in candidates), default=0)
    return start_s * rounds + side_by_side([candidate.rounds * candidate.cost_s for candidate in candidates], lanes)


def _confirming_s(candidates: Sequence[Candidate], start_s: float, lanes: int) -> float:
    later = [replace(candidate, rounds=candidate.confirmed_in) for candidate in candidates]
    new = [candidate for candidate in later if candidate.is_new and not candidate.is_required]
    dearest = sorted(new, key=lambda candidate: candidate.rounds * candidate.cost_s)[-1:]
    return seconds([*(candidate for candidate in later if candidate.is_required), *dearest], start_s, lanes)


def side_by_side(costs_s: Collection[float], lanes: int) -> float:
    """Return how long so many lanes need for these costs; a model is never in two lanes at once."""
    return max(math.fsum(costs_s) / lanes, max(costs_s, default=0.0))


def further_rounds(estimate: RatioEstimate | None, limit: float) -> float:
    """Return how many more rounds are expected to put an interval on one side of 1 + ``limit``, if its centre stays."""
    if estimate is None or not math.isfinite(estimate.detectable):
        return math.inf
    away = abs(math.log(estimate.ratio / (1 + limit)))
    half = math.log(estimate.detectable)
    return estimate.pairs * max((half / away) ** 2 - 1, 0.0) if away > 0 else math.inf


def _order(candidate: Candidate) -> tuple[bool, bool, int, float, float]:
    return (
        not candidate.is_suspected,
        not candidate.is_new,
        candidate.rounds if candidate.is_new else 0,
        candidate.decided_in_s,
        candidate.cost_s,
    )
