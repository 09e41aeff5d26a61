"""Reduces an initialization that fails: which models, how many threads, concurrency or not.

The questions are ordered by what they tell for their cost: does it fail again; is it a suspect alone, in one
thread, then in all; all suspects together; the minimal set (ddmin); one after another in one thread, since failing
there makes every question about threads moot; the fewest threads. What an earlier search found for a suspect is asked
before all of this, and ends the search if it fails here too. How often what is left fails in either release is no
question of the search: what was chosen because it failed says too much about its rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.core.diagnosis import Answer, Attribution, SearchAnswer, Tally, Trial
from harness.core.errors import InternalError
from harness.search.delta_debugging import (
    Budget,
    BudgetSpent,
    Repeated,
    Stop,
    ddmin,
    least_failing,
    repeats_for_rate,
    repeats_needed,
)

Oracle = Callable[[Trial], SearchAnswer]
# A failure that shows in this share of runs or more is seen again with a probability of 95 %: nine runs.
RARE = 0.3
# A failure rate is reported from this many failures, or this many runs.
FAILURES_MEASURED, RUNS_MEASURED = 3, 12
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

    Nothing but the answers decides what is asked next: with an oracle that remembers its runs, an interrupted call is
    resumed by calling again. A model that is loaded twice stands there twice. ``oracle`` answers one run;
    ``Trial.repeat`` counts from 0, and none of the runs may be the one that is to be explained. A starved or
    unsupported run is UNTESTABLE. ``suspects`` showed the failure and only they can: models without any of them are
    taken to pass; without suspects any model can. An outcome other than ``outcomes``, or than the whole initialization
    showed when it was repeated, counts as another failure. ``known`` is what an earlier search found for a suspect in
    the scenario that ``as_in`` names. ``stop`` is asked before each run with the number of those before it.
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
    """The smallest failing trial so far, and what is known about it."""

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

    def ask(self, trial: Trial) -> Answer:
        """Settle one trial; what fails is the smallest so far, since no question is larger than that."""
        if self.suspects and not set(trial.models) & set(self.suspects):
            return Answer.PASS
        answer = self.repeated.settle(trial, self.clean)
        if answer is Answer.FAIL:
            self.smallest = trial
        return answer

    def as_known(self, known: Attribution) -> bool:
        trial = trial_of(known.minimal_models, known.minimal_threads)
        clean = repeats_needed(fails=known.runs.fails, judged=known.runs.judged)
        again = self.repeated.settle(trial, clean) is Answer.FAIL
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
            self.clean = self.repeated.clean_runs(self.whole)

    def reduce_models(self) -> None:
        whole = self.whole
        alone = self.suspects if len(self.suspects) <= MANY_SUSPECTS else ()
        for threads in dict.fromkeys((1, whole.threads)):
            for suspect in alone:
                if self.ask(trial_of((suspect,), threads)) is Answer.FAIL:
                    self.models_minimal = True
                    return
        start = whole.models
        together = tuple(model for model in whole.models if model in self.suspects)
        if 1 < len(together) < len(start) and self.ask(trial_of(together, whole.threads)) is Answer.FAIL:
            start = together
        reduced = ddmin(start, lambda subset: self.ask(trial_of(subset, whole.threads)))
        self.models_minimal, self.unjudged = reduced.minimal, reduced.unresolved
        if reduced.budget_ended:
            raise BudgetSpent

    def reduce_threads(self) -> None:
        """Halve the threads between what fails and what does not, assuming that fewer threads fail no more often."""
        assert self.smallest is not None
        models = self.smallest.models
        sequential = self.ask(trial_of(models, 1))
        self.needs_concurrency = None if sequential is Answer.UNRESOLVED else sequential is Answer.PASS
        if sequential is Answer.FAIL:
            self.minimal = True
            return
        fewest = least_failing(1, self.smallest.threads, lambda threads: self.ask(trial_of(models, threads)))
        self.minimal = self.ask(trial_of(models, fewest - 1)) is Answer.PASS

    def result(self) -> Attribution:
        smallest = self.smallest
        tally = self.repeated.tally
        suffices = smallest is not None and len(smallest.models) == 1
        return Attribution(
            models=self.whole.models,
            threads=self.whole.threads,
            reproduced=self.reproduced,
            whole=tally(self.whole),
            minimal_models=smallest.models if smallest else (),
            minimal_threads=smallest.threads if smallest else 0,
            minimal=self.minimal,
            unjudged=self.unjudged,
            one_model_suffices=suffices if suffices or self.models_minimal else None,
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


def _failing(answer: Answer) -> bool | None:
    return None if answer is Answer.UNRESOLVED else answer is Answer.FAIL
