"""Asks about every failure whether it is a regression, and reduces those of server groups to what they need.

What one round of each release showed is chance where a failure does not show every time, and in one of them another
model may have stood in the way. So what fails, alone or once reduced to the models and threads that it takes, is run in
both releases in turn until their rates differ clearly, or both have failed; the verdict follows that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checks.startup.alone_rates import SHOWN_BY_OUTCOME, by_itself, cell_of, rates_alone
from harness.checks.startup.launch import Launcher, threads_of
from harness.checks.startup.rates import CLEAN_ENOUGH, Change, change_of, rates_of, summed
from harness.checks.startup.trials import Failures, answer_of, fate_of, launched
from harness.core.diagnosis import Answer, Attribution, FailureRates, SearchAnswer, Tally, Trial
from harness.core.outcome import FINE, UNCLEAR, Outcome, Status
from harness.core.probe import FailurePlace
from harness.core.verdict import CellVerdict
from harness.machine import clock
from harness.probing.facts import Attributed, Effects, GroupRun, Judged
from harness.search.delta_debugging import repeats_for_rate
from harness.search.group_reduction import RARE, attribute, trial_of
from harness.serving.scenarios import INITIALIZATIONS

# Processes per failing server group: enough for 16 models with a failure that shows every time (tests/unit/search).
BUDGET = 80
# For all searches of a run, beyond the runs that each is made of however long they take. A busy hang costs the floor
# below per question, several times that if it is slow.
TIME_S = 600.0
# Of that, what the reduction leaves to the comparison of both releases.
TIME_TO_COMPARE_S = TIME_S / 2
# Made for each failing server group, however late it is: three repeats, then one suspect alone.
FIRST_RUNS = 5
# A model that may fail by itself, in this share of runs or more, does so in as many with a probability of 95 %.
RUNS_ALONE = repeats_for_rate(RARE)


def attribute_failures(facts: Judged, effects: Effects) -> Attributed:
    """Return each failure's rates in both releases, and what groups need to fail; verdicts stay as before."""
    end_ns = effects.end_within(TIME_S)
    attributions: dict[tuple[str, str], Attribution] = dict(
        rates_alone(facts, effects, lambda: clock.monotonic_ns() >= end_ns - int(TIME_TO_COMPARE_S * 1e9))
    )
    failing = [
        (run, new, alike)
        for run in facts.group_runs
        if run.side == "new"
        and ((new := _failures(run, facts, Status.FAIL)), (alike := _failures(run, facts, Status.SAME_FAIL)))
        != ({}, {})
    ]
    if not failing:
        return Attributed(**Judged.known(facts), attributions=attributions)
    effects.progress.stage("which models, how many threads?", BUDGET * len(failing))
    alone: dict[str, Attribution] = {}
    groups = [
        _Group(run=run, failures=new, alike=alike, facts=facts, effects=effects, end_ns=end_ns, alone=alone)
        for run, new, alike in failing
    ]
    # What seems to be new comes first, in every scenario: it is what blocks an upgrade.
    for answers in (_Group.explained, _Group.confirmed):
        for group in groups:
            attributions.update(
                {(name, group.run.scenario): attribution for name, attribution in answers(group).items()}
            )
    return Attributed(**Judged.known(facts), attributions=attributions)


def _failures(run: GroupRun, facts: Judged, status: Status) -> Failures:
    """Return the members whose cell in this scenario has the status because of how they end, and decides."""
    cells = {name: cell_of(name, run.scenario, facts) for name in run.members}
    return {
        name: outcomes
        for name, cell in cells.items()
        if cell is not None and cell.status is status and cell.decides and (outcomes := _shown(cell))
    }


def _shown(cell: CellVerdict) -> frozenset[Outcome]:
    nothing: frozenset[Outcome] = frozenset()
    return nothing.union(*(SHOWN_BY_OUTCOME.get(finding.kind, nothing) for finding in cell.findings))


@dataclass(kw_only=True)
class _Group:
    """One failing server group of one scenario.

    ``failures``: of models that seem to fail in the new release only; ``alike``: of those that failed in both;
    ``alone``: who was found to fail without any other model, in any scenario so far.
    """

    run: GroupRun
    failures: Failures
    alike: Failures
    facts: Judged
    effects: Effects
    end_ns: int
    alone: dict[str, Attribution]
    launchers: Mapping[str, Launcher] = field(init=False)

    def __post_init__(self) -> None:
        self.launchers = {
            side: Launcher(
                scenario=INITIALIZATIONS[self.run.scenario], side=side, facts=self.facts, effects=self.effects
            )
            for side in ("new", "old")
            if side in self.effects.environments
        }

    def explained(self) -> Mapping[str, Attribution]:
        """Return what each model needs to fail, and its rates; unnamed ones are searched again without the named."""
        if not self.failures:
            return {}
        known_before = tuple(name for name in self.run.members if self.known_before(name))
        members = [name for name in self.run.members if name not in known_before]
        left = list(self.failures)
        first = latest = self.search(members, left, first_runs=FIRST_RUNS)
        explained: dict[str, Attribution] = {}
        named: list[str] = []
        while latest.reproduced and (now := [name for name in left if name in latest.minimal_models]):
            explained.update(dict.fromkeys(now, replace(self.compared(latest, now), left_out=known_before)))
            named += now
            left = [name for name in left if name not in now]
            members = [name for name in members if name not in now]
            if not left or self.late():
                break
            latest = self.search(members, left)
        if left:
            rest = self.beside(named, members, left, first, latest) if named else self.compared(first, left)
            explained.update(dict.fromkeys(left, replace(rest, left_out=known_before)))
        return explained

    def beside(
        self, named: Sequence[str], others: Sequence[str], left: Sequence[str], first: Attribution, last: Attribution
    ) -> Attribution:
        """Return what is known of those ``left``, who failed with the ``named`` and were not seen to fail without."""
        settled = last.reproduced is False
        return Attribution(
            models=tuple(others),
            threads=first.threads,
            reproduced=True,
            whole=first.whole,
            beside=tuple(named),
            apart=last.whole if settled else Tally(),
            rates=self.rates(trial_of((*named, *others), first.threads), left),
            trials=last.trials,
            budget_ended=not settled and (last.budget_ended or self.late()),
            time_ended=not settled and self.late(),
        )

    def compared(self, attribution: Attribution, names: Sequence[str]) -> Attribution:
        """Return what was found with how often it fails in either release: the smallest that did, else the whole."""
        smallest = attribution.minimal_models
        threads = attribution.minimal_threads or attribution.threads
        trial = trial_of(smallest or attribution.models, threads)
        rates = self.rates(trial, [name for name in names if name in trial.models])
        if rates is not None and smallest:
            attribution = replace(attribution, runs=summed(attribution.runs, rates.new))
        return replace(attribution, rates=rates)

    def confirmed(self) -> Mapping[str, Attribution]:
        """Return how often models fail that failed in both releases: being named in both is no proof of one failure."""
        attributions: dict[str, Attribution] = {}
        for name in self.alike:
            if self.late():
                break
            rates = self.rates(trial_of((name,), self.threads), [name], clean_enough=RUNS_ALONE)
            if rates is not None and change_of(rates) is not Change.UNDECIDED:
                attributions[name] = by_itself(name, self.threads, rates)
                continue
            others = tuple(other for other in self.run.members if self.fails_too(other, name))
            members = [other for other in self.run.members if other not in others]
            attributions[name] = replace(self.compared(self.search(members, [name]), [name]), left_out=others)
        return attributions

    @property
    def threads(self) -> int:
        return 1 if self.run.scenario == "sequential" else threads_of(self.facts)

    def fails_too(self, other: str, name: str) -> bool:
        """Whether another model fails here as well, in the new release or in both: it would be found in place of it."""
        return other != name and (other in self.failures or self.known_before(other))

    def known_before(self, name: str) -> bool:
        """Whether a model fails here anyway (old release, waived): trials would find that in place of what is asked."""
        if name in self.failures:
            return False
        cell, item = cell_of(name, self.run.scenario, self.facts), self.facts.initialized.get((name, self.run.scenario))
        if cell is not None and cell.status in (Status.SAME_FAIL, Status.XFAIL) and _shown(cell):
            return True
        return item is not None and item.old is not None and item.old.result.outcome not in FINE | UNCLEAR

    def late(self, left_s: float = 0.0) -> bool:
        return clock.monotonic_ns() >= self.end_ns - int(left_s * 1e9)

    def rates(self, trial: Trial, names: Sequence[str], *, clean_enough: int = CLEAN_ENOUGH) -> FailureRates | None:
        """Return how often the failures of ``names`` show in a trial in either release; None without an old one.

        In the old release a failure counts in the phases in which the new one has it: a deadlock while loading is not
        excused by one in a call.
        """
        if "old" not in self.launchers:
            return None
        failures = {name: self.all_failures[name] for name in names}
        in_the_way = [name for name in trial.models if name not in failures and self.known_before(name)]

        def ask(side: str, repeat: int) -> SearchAnswer:
            asked = replace(trial, side=side, repeat=repeat)
            answer = fate_of(launched(self.launchers[side], asked, look=False), failures, in_the_way)
            self.show(asked, answer)
            return answer

        return rates_of(
            ask,
            {outcome.value for outcomes in failures.values() for outcome in outcomes},
            frozenset[FailurePlace]().union(*map(self.places, names)),
            late=self.late,
            clean_enough=clean_enough,
        )

    @property
    def all_failures(self) -> Failures:
        return {**self.alike, **self.failures}

    def places(self, name: str) -> frozenset[FailurePlace]:
        item = self.facts.initialized.get((name, self.run.scenario))
        failures = item.new.failures if item is not None else ()
        return frozenset(
            (failing.result.phase, None, None)
            for failing in failures
            if failing.result.outcome in self.all_failures[name]
        )

    def search(self, members: Sequence[str], left: Sequence[str], *, first_runs: int = 0) -> Attribution:
        """Return what ``members`` need for one of those ``left`` to fail."""
        failures = {name: self.all_failures[name] for name in left}
        attribution = attribute(
            members,
            self.threads,
            self.oracle(failures),
            budget=BUDGET,
            suspects=left,
            outcomes=sorted({outcome.value for outcomes in failures.values() for outcome in outcomes}),
            known=next((self.alone[name] for name in left if name in self.alone), None),
            stop=lambda spent: spent >= first_runs and self.late(TIME_TO_COMPARE_S),
            progress=self.show,
        )
        if attribution.one_model_suffices and attribution.reproduced and not attribution.as_in:
            (name,) = attribution.minimal_models
            self.alone.setdefault(name, replace(attribution, as_in=INITIALIZATIONS[self.run.scenario].words))
        return attribution

    def oracle(self, failures: Failures) -> Callable[[Trial], SearchAnswer]:
        def ask(trial: Trial) -> SearchAnswer:
            launcher = self.launchers.get(trial.side)
            if launcher is None:
                return SearchAnswer(answer=Answer.UNRESOLVED)
            # What a hung process was doing is known of the round that is to be explained.
            probes = launched(launcher, trial, look=False)
            return answer_of(probes, {name: failures[name] for name in trial.models if name in failures})

        return ask

    def show(self, trial: Trial, answer: SearchAnswer) -> None:
        where = "one after another" if not trial.concurrent else f"{trial.threads} threads"
        self.effects.progress.step(f"{trial.side}: {len(trial.models)} model(s), {where}: {answer.answer.value}")
