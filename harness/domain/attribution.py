"""To what a failing initialization was reduced."""

from dataclasses import dataclass, field

from harness.domain.search import Tally


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One initialization in one process of its own.

    Attributes:
        models: in the order in which they are started; not empty.
        threads: how many threads initialize them; with more threads than models, threads share a model.
        side: ``"new"`` or ``"old"``.
        concurrent: False: one after another in one thread (``threads`` is 1).
        repeat: 0, 1, ...: distinguishes repeats of the same trial; each must be a run of its own.
    """

    models: tuple[str, ...]
    threads: int
    side: str = "new"
    concurrent: bool = True
    repeat: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """What a failing initialization needs in order to fail. None is always "not known".

    Attributes:
        models, threads: the initialization that failed.
        reproduced: whether it failed again; None if it could not be tested, or the budget ended before.
        whole: the runs of the whole initialization.
        minimal_models, minimal_threads: the smallest initialization seen to fail; empty and 0 if none was.
        minimal: it was shown that no single model and no thread can be left out, but for ``unjudged``.
        unjudged: models of the minimal set without which it could not be tested.
        one_model_suffices: whether one model fails alone, in one thread or many.
        needs_concurrency: whether the minimal models pass one after another in one process.
        fails_in_old: whether the minimal trial fails in the same way in the old release.
        runs: the runs of the minimal trial in the new release: how often it fails.
        sequential, old: the runs of the minimal models one after another, and of the minimal trial in the old release.
        trials: how many runs were spent.
        budget_ended: a question was left open because the budget ended; ``time_ended``: because the time did.
        left_out: models of the failing initialization that were not asked about: that they fail was known before.
        as_in: the scenario, in words, in which the same models were found already; here only they were asked again.
        beside: sick models that need none of the others; this is about a sick model that they do not explain.
        apart: the runs without those in which it did not fail again; none where that was not settled.
    """

    models: tuple[str, ...]
    threads: int
    reproduced: bool | None = None
    whole: Tally = field(default_factory=Tally)
    minimal_models: tuple[str, ...] = ()
    minimal_threads: int = 0
    minimal: bool = False
    unjudged: tuple[str, ...] = ()
    one_model_suffices: bool | None = None
    needs_concurrency: bool | None = None
    fails_in_old: bool | None = None
    runs: Tally = field(default_factory=Tally)
    sequential: Tally = field(default_factory=Tally)
    old: Tally = field(default_factory=Tally)
    trials: int = 0
    budget_ended: bool = False
    time_ended: bool = False
    left_out: tuple[str, ...] = ()
    as_in: str = ""
    beside: tuple[str, ...] = ()
    apart: Tally = field(default_factory=Tally)
