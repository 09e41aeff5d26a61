"""What the reduction of a failing initialization means, in words."""

import math
from collections.abc import Sequence

from harness.domain.attribution import Attribution
from harness.domain.search import Tally

CONFIDENCE = 0.95
_NAMED = 5


def attribution_words(found: Attribution) -> str:
    """Return in one or two sentences what the initialization needs in order to fail, and what stayed open."""
    if not found.reproduced:
        return _not_reproduced(found)
    return f"{_what_it_needs(found)}. Fails in {_of(found.runs.fails, found.runs.judged)}; {_old(found)}."


def rarer_than(clean_runs: int) -> float:
    """Return the largest rate of failing that ``clean_runs`` without a failure leave possible, with 95 % confidence.

    The exact binomial bound: the p with (1 - p)^n = 0.05.
    """
    return 1.0 - (1.0 - CONFIDENCE) ** (1.0 / clean_runs) if clean_runs else 1.0


def _not_reproduced(found: Attribution) -> str:
    whole = f"{_counted(len(found.models), 'model')} in {_counted(found.threads, 'thread')}"
    if found.reproduced is False:
        rate = math.ceil(100 * rarer_than(found.whole.passes))
        return (
            f"Did not fail again in {_counted(found.whole.passes, 'repeat')} with {whole}: "
            f"if it is a race, it shows in at most {rate} % of runs (95 % confidence)."
        )
    if found.budget_ended:
        return (
            f"Not attributed: the budget of {_counted(found.trials, 'run')} ended before it could be seen to fail "
            f"again with {whole}."
        )
    return f"Not attributed: it could not be repeated ({_of(found.whole.untestable, found.whole.runs)} untestable)."


def _what_it_needs(found: Attribution) -> str:
    if found.budget_ended and not found.minimal:
        return _smallest_seen(found)
    clauses = [_one_model(found) if found.one_model_suffices else _several_models(found)]
    if found.needs_concurrency is None:
        clauses.append("whether one thread is enough could not be tested")
    elif not found.minimal:
        clauses.append("whether fewer threads are enough could not be tested")
    return "; ".join(clauses)


def _one_model(found: Attribution) -> str:
    (name,) = found.minimal_models
    if found.needs_concurrency is False:
        return f"{name} fails alone, in one thread: neither another model nor concurrency is needed"
    only = "" if found.needs_concurrency is None else "but only "
    return f"{name} fails with no other model beside it, {only}when {_threads(found)} use it at once"


def _several_models(found: Attribution) -> str:
    models, names = _counted(len(found.minimal_models), "model"), _listed(found.minimal_models)
    if found.unjudged:
        smaller = f"whether it fails without {_listed(found.unjudged, 'or')} could not be tested"
    elif len(found.minimal_models) == 2:
        smaller = "each alone passes"
    else:
        smaller = "without any one of them it passes"
    if found.needs_concurrency is False:
        return f"Needs {models} in one process, but no concurrency: {names}, one after another; {smaller}"
    after = "; one after another they pass" if found.needs_concurrency else ""
    return f"Needs {models} at once in {_threads(found)}, {names}: {smaller}{after}"


def _smallest_seen(found: Attribution) -> str:
    left, models = len(found.minimal_models), _counted(len(found.models), "model")
    count = f"all {models}" if left == len(found.models) else f"{left} of {models}"
    return (
        f"The least that was seen to fail is {count} ({_listed(found.minimal_models)}) in {_threads(found)}; "
        f"the budget of {_counted(found.trials, 'run')} ended before it was known whether less does"
    )


def _old(found: Attribution) -> str:
    old = found.old
    if found.fails_in_old:
        return f"the old release fails too ({_of(old.fails, old.judged)}), so this is no regression"
    if found.fails_in_old is False:
        return f"the old release passes {_of(old.passes, old.judged)}"
    if old.differently:
        return f"the old release fails in another way{_outcomes(old)}"
    if old.untestable and not found.budget_ended:
        return "the old release could not be tested"
    return "whether the old release fails too was not settled before the budget ended"


def _outcomes(tally: Tally) -> str:
    return f" ({', '.join(tally.outcomes)})" if tally.outcomes else ""


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    if len(names) > _NAMED:
        names = (*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def _of(part: int, whole: int) -> str:
    return f"{part} of {_counted(whole, 'run')}"


def _threads(found: Attribution) -> str:
    return _counted(found.minimal_threads, "thread")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
