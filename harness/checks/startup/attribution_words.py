"""The words for what a search found of the smallest failing initialization."""

import math
from collections.abc import Mapping, Sequence

from harness.checks.startup.rates import Change, change_of, counts_of, rates_words
from harness.core.diagnosis import Attribution, FailureRates, Tally
from harness.core.text import counted
from harness.serving.scenarios import INITIALIZATIONS

CONFIDENCE = 0.95
NAMED = 5


def attribution_words(attribution: Attribution, scenario: str = "") -> str:
    """Return in one or two sentences what the initialization needs in order to fail, and what stayed open."""
    words = _words(attribution, scenario)
    known = f" Asked without {_listed(attribution.left_out)}, known to fail before." if attribution.left_out else ""
    return words + known


def _words(attribution: Attribution, scenario: str) -> str:
    if attribution.beside:
        return f"{_beside(attribution, scenario)}{_releases(attribution)}"
    if (
        attribution.reproduced is None and attribution.rates is not None and not attribution.whole.runs
    ):  # only its rates were asked
        words = _old(attribution.rates)
        return f"{words[0].upper()}{words[1:]}."
    if not attribution.reproduced:
        return f"{_not_reproduced(attribution, scenario)}{_releases(attribution)}"
    as_in = f", as in {attribution.as_in}" if attribution.as_in else ""
    runs = attribution.rates.new if attribution.rates is not None and attribution.rates.new.judged else attribution.runs
    fails = f"Fails in {_of(runs.fails, runs.judged)}"
    old = f"; {_old(attribution.rates)}" if attribution.rates is not None else ""
    return f"{_what_it_needs(attribution, scenario)}{as_in}. {fails}{old}."


def change_words(rates: FailureRates) -> str:
    """Return what the rates say of a regression, with their numbers: a note of the cell."""
    if not rates.new.runs + rates.old.runs:
        return "not decided whether it is a regression: there was no time to ask how often either release fails"
    words = rates_words(*counts_of(rates))
    if not rates.new.runs:  # the old one did not come through once
        return f"in {rates.old.fails} of {counted(rates.old.runs, 'run')} of the old release"
    match change_of(rates):
        case Change.MORE_OFTEN:
            return f"fails clearly more often than before: {words}" if rates.old.fails else ""
        case Change.IN_BOTH:
            return f"not clearly more often than before: {words}"
        case Change.UNDECIDED:
            return f"not decided whether it is a regression: it fails {words}"


def unverifiable(attribution: Attribution) -> str:
    """Return why no switch can be shown to take this failure away; empty where one can."""
    if attribution.reproduced:
        return ""
    if attribution.reproduced is False:
        return f"cannot be verified: the failure did not show again in {_repeats(attribution.whole)}"
    return "cannot be verified: the failure was not seen again"


def _beside(attribution: Attribution, scenario: str) -> str:
    others = _listed(attribution.beside)
    if attribution.apart.passes:
        clean = f"{_repeats(attribution.apart)} with {_whole(attribution, scenario)}"
        return f"Only seen beside {others}: without them it did not fail again in {clean}."
    before = f" before the {_what_ended(attribution)} ended" if attribution.budget_ended else ""
    return f"Fails beside {others}, needed or not: whether it fails without them was not settled{before}."


def rarer_than(clean_runs: int) -> float:
    """Return the rate p of failing with (1 - p)^n = 0.05 (exact binomial bound) for n clean runs."""
    return 1.0 - (1.0 - CONFIDENCE) ** (1.0 / clean_runs) if clean_runs else 1.0


def _not_reproduced(attribution: Attribution, scenario: str) -> str:
    whole = _whole(attribution, scenario)
    if attribution.reproduced is False:
        rate = math.ceil(100 * rarer_than(attribution.whole.passes))
        return (
            f"Did not fail again in {_repeats(attribution.whole)} with {whole}: "
            f"if it is a race, it shows in at most {rate} % of runs (95 % confidence)."
        )
    if attribution.budget_ended:
        return f"Not attributed: {_ended(attribution)} before it could be seen to fail again with {whole}."
    if attribution.whole.differently:
        return (
            f"Not attributed: {_of(attribution.whole.differently, attribution.whole.runs)} failed in another way"
            f"{_outcomes(attribution.whole)}."
        )
    untestable = _of(attribution.whole.untestable, attribution.whole.runs)
    return f"Not attributed: it could not be repeated ({untestable} untestable)."


def _what_it_needs(attribution: Attribution, scenario: str) -> str:
    if attribution.budget_ended and not attribution.minimal:
        return _smallest_seen(attribution, scenario)
    clauses = [
        _one_model(attribution, scenario) if attribution.one_model_suffices else _several_models(attribution, scenario)
    ]
    if attribution.as_in:
        return clauses[0]
    if attribution.needs_concurrency is None:
        clauses.append("whether one thread is enough could not be tested")
    elif not attribution.minimal:
        clauses.append(f"whether fewer {_things(scenario)} are enough could not be tested")
    return "; ".join(clauses)


def _one_model(attribution: Attribution, scenario: str) -> str:
    (name,) = attribution.minimal_models
    if attribution.needs_concurrency is False:
        return f"{name} fails alone, in one thread: neither another model nor concurrency is needed"
    only = "" if attribution.needs_concurrency is None else "but only "
    return f"{name} fails with no other model beside it, {only}{_by_itself(attribution.minimal_threads, scenario)}"


def _by_itself(threads: int, scenario: str) -> str:
    """Return what so many threads of a scenario do with a single model."""
    match scenario:
        case "while_serving" | "python_server" | "python_keeping":
            serving = max(1, threads // 2)
            return f"while {_copies(serving)} of it {_verb(serving)}"
        case "processes":
            return f"when {threads} processes bring it up at once"
        case "reinit":
            return f"when {threads} threads bring it up and tear it down again and again"
        case "rolling":
            serving = max(1, threads - 1)
            return f"when it is replaced while {_copies(serving)} of it {_verb(serving)}"
        case "exit":
            return f"when the process ends while {counted(max(1, threads - 1), 'thread')} may be in a call of it"
        case "thread_per_request" | "thread_per_connection":
            return f"when {threads} threads answer its requests in new threads"
        case "thread_counts":
            return f"when {threads} threads change the number of intra-op threads between its calls"
        case "growing_shapes":
            return f"when {threads} threads call it with larger and larger inputs"
        case "shared":
            return f"when {threads} threads use it at once"
        case "prefork":
            return "in processes that are forked after it was called"
        case "prefork_cold":
            return "in processes that are forked after it was loaded"
        case _:
            return f"when {threads} threads bring up a copy of it each at once"


def _copies(serving: int) -> str:
    return "another copy" if serving == 1 else f"{serving} other copies"


def _verb(serving: int) -> str:
    return "serves" if serving == 1 else "serve"


def _several_models(attribution: Attribution, scenario: str) -> str:
    models, names = counted(len(attribution.minimal_models), "model"), _listed(attribution.minimal_models)
    if attribution.unjudged:
        smaller = f"whether it fails without {_listed(attribution.unjudged, 'or')} could not be tested"
    elif len(attribution.minimal_models) == 2:
        smaller = "each alone passes"
    else:
        smaller = "without any one of them it passes"
    if attribution.needs_concurrency is False:
        return f"Needs {models} in one process, but no concurrency: {names}, one after another; {smaller}"
    after = "; one after another they pass" if attribution.needs_concurrency else ""
    return f"Needs {models} at once in {_threads(attribution.minimal_threads, scenario)}, {names}: {smaller}{after}"


def _smallest_seen(attribution: Attribution, scenario: str) -> str:
    left, models = len(attribution.minimal_models), counted(len(attribution.models), "model")
    count = f"all {models}" if left == len(attribution.models) else f"{left} of {models}"
    threads = _threads(attribution.minimal_threads, scenario)
    return (
        f"The least that was seen to fail is {count} ({_listed(attribution.minimal_models)}) in {threads}; "
        f"{_ended(attribution)} before it was known whether less does"
    )


def _releases(attribution: Attribution) -> str:
    rates = attribution.rates
    if rates is None or not rates.old.runs:
        return ""
    return f" In the new release it fails in {_of(rates.new.fails, rates.new.judged)}; {_old(rates)}."


def _old(rates: FailureRates) -> str:
    old, change = rates.old, change_of(rates)
    if change is Change.IN_BOTH:
        return f"the old release fails too ({_of(old.fails, old.judged)}), so this is no regression"
    if change is Change.MORE_OFTEN and old.fails:
        return f"the old release fails less often ({_of(old.fails, old.judged)})"
    open_still = ", too few to say that this is a regression" if change is Change.UNDECIDED else ""
    if old.passes:
        return f"the old release passes {_of(old.passes, old.judged)}{open_still}"
    if old.differently:
        return f"the old release fails in another way{_outcomes(old)}{open_still}"
    if old.untestable:
        return "the old release could not be tested"
    return "whether the old release fails too was not settled before the time ended"


def time_notes(attributions: Mapping[tuple[str, str], Attribution]) -> tuple[str, ...]:
    """Return what it has cost that searches took longer than they may, which loud machines make of them."""
    names = tuple(dict.fromkeys(name for (name, _), attribution in attributions.items() if attribution.time_ended))
    if not names:
        return ()
    words = (
        f"the time for searches ended before it was known what it takes for {_listed(names)} to fail; how often that "
        "happens in either release was asked all the same. Run again on a machine that is less busy"
    )
    return (words,)


def _ended(attribution: Attribution) -> str:
    if attribution.time_ended:
        return f"the time for all such searches ended after {counted(attribution.trials, 'run')},"
    return f"the budget of {counted(attribution.trials, 'run')} ended"


def _what_ended(attribution: Attribution) -> str:
    return "time" if attribution.time_ended else "budget"


def _outcomes(tally: Tally) -> str:
    return f" ({', '.join(tally.outcomes)})" if tally.outcomes else ""


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    if len(names) > NAMED:
        names = (*names[: NAMED - 1], f"{len(names) - NAMED + 1} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def _of(part: int, whole: int) -> str:
    return f"{part} of {counted(whole, 'run')}"


def _whole(attribution: Attribution, scenario: str) -> str:
    return f"{counted(len(attribution.models), 'model')} in {_threads(attribution.threads, scenario)}"


def _repeats(tally: Tally) -> str:
    return counted(tally.passes, "repeat")


def _threads(number: int, scenario: str) -> str:
    return f"{number} {_things(scenario, number)}"


def _things(scenario: str, number: int = 2) -> str:
    noun, plural = ("process", "processes") if _in_processes(scenario) else ("thread", "threads")
    return noun if number == 1 else plural


def _in_processes(scenario: str) -> bool:
    item = INITIALIZATIONS.get(scenario)
    return item is not None and (item.processes or item.forks)
