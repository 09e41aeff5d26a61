"""What the reduction of a failing initialization means, in words."""

import math
from collections.abc import Sequence

from harness.domain.attribution import Attribution
from harness.domain.search import Tally
from harness.policy.words import counted

CONFIDENCE = 0.95
_NAMED = 5


def attribution_words(found: Attribution, scenario: str = "") -> str:
    """Return in one or two sentences what the initialization needs in order to fail, and what stayed open.

    Args:
        scenario: by name; it decides what several threads do with one model.
    """
    words = _words(found, scenario)
    known = f" Asked without {_listed(found.left_out)}, known to fail before." if found.left_out else ""
    return words + known


def _words(found: Attribution, scenario: str) -> str:
    if found.beside:
        return _beside(found, scenario)
    if not found.reproduced:
        return _not_reproduced(found, scenario)
    fails = f"Fails in {_of(found.runs.fails, found.runs.judged)}"
    if found.as_in:
        return f"{_what_it_needs(found, scenario)}, as in {found.as_in}. {fails}; nothing else was asked again."
    return f"{_what_it_needs(found, scenario)}. {fails}; {_old(found)}."


def unverifiable(found: Attribution) -> str:
    """Return why no switch can be shown to cure this failure; empty where one can."""
    if found.reproduced:
        return ""
    if found.reproduced is False:
        return f"cannot be verified: the failure did not show again in {_repeats(found.whole)}"
    return "cannot be verified: the failure was not seen again"


def _beside(found: Attribution, scenario: str) -> str:
    """For a sick model that fails where others do, and that what was found does not name."""
    others = _listed(found.beside)
    if found.apart.passes:
        whole = _whole(found, scenario)
        return f"Only seen beside {others}: without them it did not fail again in {_repeats(found.apart)} with {whole}."
    before = f" before the {_what_ended(found)} ended" if found.budget_ended else ""
    return f"Fails beside {others}, needed or not: whether it fails without them was not settled{before}."


def rarer_than(clean_runs: int) -> float:
    """Return the largest rate of failing that ``clean_runs`` without a failure leave possible, with 95 % confidence.

    The exact binomial bound: the p with (1 - p)^n = 0.05.
    """
    return 1.0 - (1.0 - CONFIDENCE) ** (1.0 / clean_runs) if clean_runs else 1.0


def _not_reproduced(found: Attribution, scenario: str) -> str:
    whole = _whole(found, scenario)
    if found.reproduced is False:
        rate = math.ceil(100 * rarer_than(found.whole.passes))
        return (
            f"Did not fail again in {_repeats(found.whole)} with {whole}: "
            f"if it is a race, it shows in at most {rate} % of runs (95 % confidence)."
        )
    if found.budget_ended:
        return f"Not attributed: {_ended(found)} before it could be seen to fail again with {whole}."
    if found.whole.differently:
        return (
            f"Not attributed: {_of(found.whole.differently, found.whole.runs)} failed in another way"
            f"{_outcomes(found.whole)}."
        )
    return f"Not attributed: it could not be repeated ({_of(found.whole.untestable, found.whole.runs)} untestable)."


def _what_it_needs(found: Attribution, scenario: str) -> str:
    if found.budget_ended and not found.minimal:
        return _smallest_seen(found, scenario)
    clauses = [_one_model(found, scenario) if found.one_model_suffices else _several_models(found, scenario)]
    if found.as_in:
        return clauses[0]
    if found.needs_concurrency is None:
        clauses.append("whether one thread is enough could not be tested")
    elif not found.minimal:
        clauses.append(f"whether fewer {_things(scenario)} are enough could not be tested")
    return "; ".join(clauses)


def _one_model(found: Attribution, scenario: str) -> str:
    (name,) = found.minimal_models
    if found.needs_concurrency is False:
        return f"{name} fails alone, in one thread: neither another model nor concurrency is needed"
    only = "" if found.needs_concurrency is None else "but only "
    return f"{name} fails with no other model beside it, {only}{_by_itself(found.minimal_threads, scenario)}"


def _by_itself(threads: int, scenario: str) -> str:
    """Return what so many threads of a scenario do with a single model."""
    match scenario:
        case "while_serving":
            serving = max(1, threads // 2)
            return f"while {'another copy' if serving == 1 else f'{serving} other copies'} of it {_verb(serving)}"
        case "processes":
            return f"when {threads} processes bring it up at once"
        case "reinit":
            return f"when {threads} threads bring it up and tear it down again and again"
        case "shared":
            return f"when {threads} threads use it at once"
        case _:
            return f"when {threads} threads bring up a copy of it each at once"


def _verb(serving: int) -> str:
    return "serves" if serving == 1 else "serve"


def _several_models(found: Attribution, scenario: str) -> str:
    models, names = counted(len(found.minimal_models), "model"), _listed(found.minimal_models)
    if found.unjudged:
        smaller = f"whether it fails without {_listed(found.unjudged, 'or')} could not be tested"
    elif len(found.minimal_models) == 2:
        smaller = "each alone passes"
    else:
        smaller = "without any one of them it passes"
    if found.needs_concurrency is False:
        return f"Needs {models} in one process, but no concurrency: {names}, one after another; {smaller}"
    after = "; one after another they pass" if found.needs_concurrency else ""
    return f"Needs {models} at once in {_threads(found.minimal_threads, scenario)}, {names}: {smaller}{after}"


def _smallest_seen(found: Attribution, scenario: str) -> str:
    left, models = len(found.minimal_models), counted(len(found.models), "model")
    count = f"all {models}" if left == len(found.models) else f"{left} of {models}"
    return (
        f"The least that was seen to fail is {count} ({_listed(found.minimal_models)}) in "
        f"{_threads(found.minimal_threads, scenario)}; {_ended(found)} before it was known whether less does"
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
    return f"whether the old release fails too was not settled before the {_what_ended(found)} ended"


def _ended(found: Attribution) -> str:
    if found.time_ended:
        return f"the time for all such searches ended after {counted(found.trials, 'run')},"
    return f"the budget of {counted(found.trials, 'run')} ended"


def _what_ended(found: Attribution) -> str:
    return "time" if found.time_ended else "budget"


def _outcomes(tally: Tally) -> str:
    return f" ({', '.join(tally.outcomes)})" if tally.outcomes else ""


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    if len(names) > _NAMED:
        names = (*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def _of(part: int, whole: int) -> str:
    return f"{part} of {counted(whole, 'run')}"


def _whole(found: Attribution, scenario: str) -> str:
    return f"{counted(len(found.models), 'model')} in {_threads(found.threads, scenario)}"


def _repeats(tally: Tally) -> str:
    return counted(tally.passes, "repeat")


def _threads(number: int, scenario: str) -> str:
    return f"{number} {_things(scenario) if number != 1 else _thing(scenario)}"


def _things(scenario: str) -> str:
    return "processes" if scenario == "processes" else "threads"


def _thing(scenario: str) -> str:
    return "process" if scenario == "processes" else "thread"
