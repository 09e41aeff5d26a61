"""Reduces an initialization that fails: which models, how many threads, concurrency or not.

The questions are ordered by what they tell for their cost: does it fail again; is it a suspect alone, in one
thread, then in all; all suspects together; the minimal set (ddmin); one after another in one thread, since failing
there makes every question about threads moot; the fewest threads. What an earlier search found for a suspect is asked
before all of this, and ends the search if it fails here too. How often what is left fails in either release is no
question of the search: what was chosen because it failed says too much about its rate.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.startup.rates import Change, change, rates_words
from harness.core.diagnosis import Attribution, FailureRates, Said, SearchAnswer, Tally, Trial
from harness.core.errors import InternalError
from harness.core.text import counted
from harness.search.budget import Budget, BudgetSpent, Stop
from harness.search.repeated import Repeated, repeats_for_rate, repeats_needed
from harness.search.subsets import ddmin
from harness.serving.scenarios import INITIALIZATIONS

Oracle = Callable[[Trial], SearchAnswer]
# A failure that shows in this share of runs or more is seen again with a probability of 95 %: nine runs.
RARE = 0.3
# A failure rate is reported from this many failures, or this many runs.
FAILURES_MEASURED, RUNS_MEASURED = 3, 12
CONFIDENCE = 0.95
NAMED = 5
# With more suspects, none is tried alone: halving the set finds a single guilty one with fewer runs.
MANY_SUSPECTS = 2


def attribute(
    models: Sequence[str],
    threads: int,
    oracle: Oracle,
    *,
    budget: int,
    suspects: Sequence[str] = (),
    outcomes: Sequence[str] = (),
    known: Attribution | None = None,
    stop: Stop | None = None,
    progress: Callable[[Trial, SearchAnswer], None] | None = None,
) -> Attribution:
    """Return what the failing initialization of ``models`` in ``threads`` threads of the new release needs to fail.

    Nothing but the answers decides what is asked next: with an oracle that remembers its runs, an interrupted call
    is resumed by calling again.

    Args:
        models: at least one; a model that is loaded twice stands there twice.
        oracle: answers one run. ``Trial.repeat`` counts from 0; none of them may be the run that is to be explained.
            A starved or unsupported run is UNTESTABLE. An outcome that the whole initialization did not show when it
            was repeated counts as another failure, neither as a pass.
        budget: how many runs may be asked for, at least 1.
        suspects: the models that showed the failure. Only they can show it: models without any of them are not
            asked and taken to pass. Without suspects any model can.
        outcomes: those of the failure to explain; another one counts as another failure. Empty: not known.
        known: what an earlier search found for one of the suspects in another scenario, ``as_in`` says which.
        stop: asked before each run with the number of those before it; True ends the search, as the budget does.
        progress: called after each run.

    Raises:
        InternalError: no models, no threads, no budget, or a suspect that is not among the models.
    """
    if not models or threads < 1 or not set(suspects) <= set(models):
        raise InternalError(f"cannot attribute {list(models)} in {threads} threads with suspects {list(suspects)}")
    search = _Attributing(
        whole=trial_of(models, threads),
        suspects=tuple(dict.fromkeys(suspects)),
        oracle=oracle,
        outcomes=tuple(outcomes),
        budget=Budget(budget, stop),
        progress=progress,
    )
    try:
        if known is None or not search.as_known(known):
            search.all_questions()
    except BudgetSpent:
        search.budget_ended = True
    return search.result()


@dataclass(kw_only=True)
class _Attributing:
    """The state of one call: the smallest failing trial so far, and what is known about it."""

    whole: Trial
    suspects: tuple[str, ...]
    oracle: Oracle
    outcomes: tuple[str, ...]
    budget: Budget
    progress: Callable[[Trial, SearchAnswer], None] | None
    smallest: Trial | None = None
    reproduced: bool | None = None
    models_minimal: bool = False
    minimal: bool = False
    budget_ended: bool = False
    unjudged: tuple[str, ...] = ()
    needs_concurrency: bool | None = None
    as_in: str = ""

    def __post_init__(self) -> None:
        self.repeated: Repeated[Trial] = Repeated(self.ask_once, self.budget, self.outcomes)
        self.clean = repeats_for_rate(RARE)

    def ask_once(self, trial: Trial, repeat: int) -> SearchAnswer:
        trial = replace(trial, repeat=repeat)
        answer = self.oracle(trial)
        if self.progress is not None:
            self.progress(trial, answer)
        return answer

    def ask(self, trial: Trial) -> Said:
        """Settle one trial; what fails is the smallest so far, since no question is larger than that."""
        if self.suspects and not set(trial.models) & set(self.suspects):
            return Said.PASSES
        said = self.repeated.settle(trial, self.clean)
        if said is Said.FAILS:
            self.smallest = trial
        return said

    def as_known(self, known: Attribution) -> bool:
        """Return whether the smallest that failed in another scenario fails in this one too."""
        trial = trial_of(known.minimal_models, known.minimal_threads)
        clean = repeats_needed(fails=known.runs.fails, judged=known.runs.judged)
        again = self.repeated.settle(trial, clean) is Said.FAILS
        if again:
            self.smallest = trial
            self.reproduced = self.models_minimal = self.minimal = True
            self.needs_concurrency = False if known.minimal_threads == 1 else None
            self.as_in = known.as_in
        return again

    def all_questions(self) -> None:
        self.reproduce()
        if self.smallest is not None:
            self.reduce_models()
            self.reduce_threads()

    def reproduce(self) -> None:
        try:
            self.reproduced = _failing(self.ask(self.whole))
            if self.reproduced:
                self.repeated.measure(self.whole, fails=FAILURES_MEASURED, at_most=RUNS_MEASURED)
        finally:
            if self.repeated.tally(self.whole).fails:
                self.repeated.only_failures_like(self.whole)
        if self.reproduced:
            tally = self.repeated.tally(self.whole)
            self.clean = repeats_needed(fails=tally.fails, judged=tally.judged)

    def reduce_models(self) -> None:
        whole = self.whole
        alone = self.suspects if len(self.suspects) <= MANY_SUSPECTS else ()
        for threads in dict.fromkeys((1, whole.threads)):
            for suspect in alone:
                if self.ask(trial_of((suspect,), threads)) is Said.FAILS:
                    self.models_minimal = True
                    return
        start = whole.models
        together = tuple(model for model in whole.models if model in self.suspects)
        if 1 < len(together) < len(start) and self.ask(trial_of(together, whole.threads)) is Said.FAILS:
            start = together
        reduced = ddmin(start, lambda subset: self.ask(trial_of(subset, whole.threads)))
        self.models_minimal, self.unjudged = reduced.minimal, reduced.unjudged
        if reduced.budget_ended:
            raise BudgetSpent

    def reduce_threads(self) -> None:
        """Halve the threads between what fails and what does not, assuming that fewer threads fail no more often."""
        assert self.smallest is not None
        models = self.smallest.models
        sequential = self.ask(trial_of(models, 1))
        self.needs_concurrency = None if sequential is Said.UNTESTABLE else sequential is Said.PASSES
        if sequential is Said.FAILS:
            self.minimal = True
            return
        below, judged = 1, sequential is Said.PASSES
        while (fails := self.smallest.threads) - below > 1:
            middle = (below + fails) // 2
            said = self.ask(trial_of(models, middle))
            if said is not Said.FAILS:
                below, judged = middle, said is Said.PASSES
        self.minimal = judged

    def result(self) -> Attribution:
        smallest = self.smallest
        tally = self.repeated.tally
        one = smallest is not None and len(smallest.models) == 1
        return Attribution(
            models=self.whole.models,
            threads=self.whole.threads,
            reproduced=self.reproduced,
            whole=tally(self.whole),
            minimal_models=smallest.models if smallest else (),
            minimal_threads=smallest.threads if smallest else 0,
            minimal=self.minimal,
            unjudged=self.unjudged,
            one_model_suffices=one if one or self.models_minimal else None,
            needs_concurrency=self.needs_concurrency,
            runs=tally(smallest) if smallest else Tally(),
            sequential=tally(trial_of(smallest.models, 1)) if smallest else Tally(),
            trials=self.budget.spent,
            budget_ended=self.budget_ended,
            time_ended=self.budget.stopped,
            as_in=self.as_in,
        )


def trial_of(models: Sequence[str], threads: int) -> Trial:
    """Return the trial of ``models`` in so many threads of the new release; one thread does them in turn."""
    return Trial(models=tuple(models), threads=threads, side="new", concurrent=threads > 1)


def _failing(said: Said) -> bool | None:
    return None if said is Said.UNTESTABLE else said is Said.FAILS


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
        return f"{_beside(found, scenario)}{_releases(found)}"
    if found.reproduced is None and found.rates is not None and not found.whole.runs:  # only its rates were asked
        words = _old(found.rates)
        return f"{words[0].upper()}{words[1:]}."
    if not found.reproduced:
        return f"{_not_reproduced(found, scenario)}{_releases(found)}"
    as_in = f", as in {found.as_in}" if found.as_in else ""
    runs = found.rates.new if found.rates is not None and found.rates.new.judged else found.runs
    fails = f"Fails in {_of(runs.fails, runs.judged)}"
    old = f"; {_old(found.rates)}" if found.rates is not None else ""
    return f"{_what_it_needs(found, scenario)}{as_in}. {fails}{old}."


def change_of(rates: FailureRates) -> Change:
    """Return what the rates of a failure in both releases amount to.

    A run of the old release in which the same model failed in another way did not show this failure.
    """
    return change(*counts_of(rates))


def counts_of(rates: FailureRates) -> tuple[int, int, int, int]:
    """Return failures and runs in the new release, then in the old one."""
    new, old = rates.new, rates.old
    return new.fails, new.judged + new.differently, old.fails, old.judged + old.differently


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


def unverifiable(found: Attribution) -> str:
    """Return why no switch can be shown to cure this failure; empty where one can."""
    if found.reproduced:
        return ""
    if found.reproduced is False:
        return f"cannot be verified: the failure did not show again in {_repeats(found.whole)}"
    return "cannot be verified: the failure was not seen again"


def _beside(found: Attribution, scenario: str) -> str:
    """For a failing model that fails where others do, and is not named by what was found."""
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


def _releases(found: Attribution) -> str:
    """Return how often what was brought up fails in either release, as a sentence; empty where nobody asked."""
    rates = found.rates
    if rates is None or not rates.old.runs:
        return ""
    return f" In the new release it fails in {_of(rates.new.fails, rates.new.judged)}; {_old(rates)}."


def _old(rates: FailureRates) -> str:
    old, said = rates.old, change_of(rates)
    if said is Change.IN_BOTH:
        return f"the old release fails too ({_of(old.fails, old.judged)}), so this is no regression"
    if said is Change.MORE_OFTEN and old.fails:
        return f"the old release fails less often ({_of(old.fails, old.judged)})"
    open_still = ", too few to say that this is a regression" if said is Change.UNDECIDED else ""
    if old.passes:
        return f"the old release passes {_of(old.passes, old.judged)}{open_still}"
    if old.differently:
        return f"the old release fails in another way{_outcomes(old)}{open_still}"
    if old.untestable:
        return "the old release could not be tested"
    return "whether the old release fails too was not settled before the time ended"


def time_notes(attributions: Mapping[tuple[str, str], Attribution]) -> tuple[str, ...]:
    """Return what it has cost that searches took longer than they may, which loud machines make of them."""
    names = tuple(dict.fromkeys(name for (name, _), found in attributions.items() if found.time_ended))
    if not names:
        return ()
    words = (
        f"the time for searches ended before it was known what it takes for {_listed(names)} to fail; how often that "
        "happens in either release was asked all the same. Run again on a machine that is less busy"
    )
    return (words,)


def _ended(found: Attribution) -> str:
    if found.time_ended:
        return f"the time for all such searches ended after {counted(found.trials, 'run')},"
    return f"the budget of {counted(found.trials, 'run')} ended"


def _what_ended(found: Attribution) -> str:
    return "time" if found.time_ended else "budget"


def _outcomes(tally: Tally) -> str:
    return f" ({', '.join(tally.outcomes)})" if tally.outcomes else ""


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    if len(names) > NAMED:
        names = (*names[: NAMED - 1], f"{len(names) - NAMED + 1} more")
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
    return "processes" if _in_processes(scenario) else "threads"


def _thing(scenario: str) -> str:
    return "process" if _in_processes(scenario) else "thread"


def _in_processes(scenario: str) -> bool:
    """Whether several processes take the place of threads there."""
    found = INITIALIZATIONS.get(scenario)
    return found is not None and (found.processes or found.forks)
