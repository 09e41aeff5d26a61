"""Asks about every failure whether it is a regression, and reduces those of server groups to what they need.

What one round of each release showed is chance where a failure does not show every time, and in one of them another
model may have stood in the way. So what fails, alone or once reduced to the models and threads that it takes, is run in
both releases in turn until their rates differ clearly, or both have failed; the verdict follows that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checks.startup.launch import REPEATS_OF_A_ROUND, Launcher, threads_of
from harness.checks.startup.rates import CLEAN_ENOUGH, RUNS_TO_TELL, Change, next_side
from harness.core.diagnosis import Attribution, FailureRates, Said, SearchAnswer, Tally, Trial
from harness.core.outcome import FINE, UNCLEAR, Outcome, Status
from harness.core.probe import ModelResult, ProbeResult, model_of
from harness.core.verdict import CellVerdict
from harness.machine import clock, pool
from harness.probing.alone import patient
from harness.probing.facts import Attributed, Effects, GroupRun, Judged, new_profile
from harness.search.attribution import RARE, attribute, change_of, counts_of, trial_of
from harness.search.repeated import UNTESTABLE_AFTER, counted_in, repeats_for_rate
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
# The hang has been proven already; a repeat only has to be distinguished from a healthy one, which takes milliseconds.
SEARCH_FLOOR_S = 6.0
# Kinds of findings that one run shows by its outcome alone; a wrong answer has its own chain of rules.
SHOWN_BY_OUTCOME: Mapping[str, frozenset[Outcome]] = {
    "hang": frozenset({Outcome.HANG}),
    "crash": frozenset({Outcome.CRASH}),
    "exit_crash": frozenset({Outcome.CRASH}),
    "concurrent_error": frozenset({Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR}),
    "out_of_memory": frozenset({Outcome.OUT_OF_MEMORY}),
}
# The first round of the search: far from those of the scenario and of the mitigations.
FIRST_REPEAT = 1000 * REPEATS_OF_A_ROUND
# The first run by which the releases are compared: far from those of the search, which chose what is run.
FIRST_COMPARED = 1000
# A cell of a model alone that rates may change; what is waived or let pass is not asked about.
ASKED_ALONE = (Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE)
# A model that may fail by itself, in this share of runs or more, does so in as many with a probability of 95 %.
RUNS_ALONE = repeats_for_rate(RARE)

Failures = Mapping[str, frozenset[Outcome]]
"""Model -> the outcomes by which its failure shows."""


def attribute_failures(facts: Judged, effects: Effects) -> Attributed:
    """Return the facts with how often each failure shows in either release, and what one beside others needs for it.

    The verdicts are those of before: what the answers mean for them is not said here.
    """
    end_ns = clock.monotonic_ns() + int(TIME_S * 1e9)
    attributions: dict[tuple[str, str], Attribution] = dict(_alone(facts, effects, end_ns))
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
            attributions.update({(name, group.run.scenario): found for name, found in answers(group).items()})
    return Attributed(**Judged.known(facts), attributions=attributions)


def _alone(facts: Judged, effects: Effects, end_ns: int) -> Mapping[tuple[str, str], Attribution]:
    """Return how often each model that fails alone does so in either release.

    Runs of the old release that were made whatever the new one did count; those that raised the question do not.
    """
    failing = {name: found for name in facts.verdicts if (found := _failing_alone(name, facts)) is not None}
    if not failing or "old" not in effects.environments:
        return {}
    effects.progress.stage("how often does it fail in either release?", len(failing))
    profiles = {"new": new_profile(facts.plan), "old": facts.plan.settings.profile}

    def rates(name: str) -> FailureRates | None:
        failed, input_set, of_new = failing[name]

        def ask(side: str, repeat: int) -> SearchAnswer:
            artifact, deadline = facts.artifact(name), patient(name, facts)
            request = facts.requests.run(side, [artifact], deadline, profile=profiles[side], repeat=repeat)
            return said(effects.runner(replace(request, look=False)).models[0])

        def said(result: ModelResult) -> SearchAnswer:
            return _said(result.of_request(input_set) if input_set else result)

        known = [said(result) for result in facts.baselines[name].results] if of_new else []
        found = rates_of(
            ask,
            {failed.outcome.value},
            {failed.place} if of_new else (),
            late=lambda: clock.monotonic_ns() >= end_ns - int(TIME_TO_COMPARE_S * 1e9),
            known=known,
        )
        effects.progress.step(name)
        return replace(found, input_set=input_set) if found.new.runs + found.old.runs > len(known) else None

    asked = zip(failing, pool.each(rates, failing, jobs=facts.plan.settings.jobs), strict=True)
    return {(name, "alone"): _by_itself(name, 1, found) for name, found in asked if found is not None}


def _failing_alone(name: str, facts: Judged) -> tuple[ModelResult, str, bool] | None:
    """Return how a model fails alone, in which request, and whether in the new release; None if it does not.

    Else it fails now and then in the old one. Of several requests it is the first that fails otherwise than before.
    """
    cell = _cell(name, "alone", facts)
    if cell is None or name not in facts.alone or cell.status not in ASKED_ALONE:
        return None
    new, old = facts.alone[name].models[0], facts.baselines[name].results
    shown = frozenset[Outcome]().union(*SHOWN_BY_OUTCOME.values())
    if any(result.outcome not in {Outcome.COMPLETED, *shown, *UNCLEAR} for result in old):
        return None  # such as what is not supported there: a run more says the same
    if new.outcome in shown:
        failed = [(new.of_request(item.input_set), item.input_set) for item in new.failed_requests]
        failed = [(result, input_set) for result, input_set in failed if result.outcome in shown]
        failed.sort(key=lambda item: any(item[0].fails_like(before.of_request(item[1])) for before in old))
        return (*next(iter(failed), (new, "")), True)
    completed = new.outcome is Outcome.COMPLETED and any(result.outcome is Outcome.COMPLETED for result in old)
    before = next((result for result in old if completed and result.outcome in shown), None)
    if before is None:
        return None
    input_set = next((item.input_set for item in before.failed_requests if item.outcome is before.outcome), "")
    return before.of_request(input_set) if input_set else before, input_set, False


def _said(result: ModelResult) -> SearchAnswer:
    """Return what one run of a model alone says."""
    if not result.failed:
        return SearchAnswer(said=Said.PASSES)
    said = Said.UNTESTABLE if result.outcome in UNCLEAR else Said.FAILS
    return SearchAnswer(said=said, outcome=result.outcome.value, phase=result.place)


def _failures(run: GroupRun, facts: Judged, status: Status) -> Failures:
    """Return the members whose cell in this scenario has the status because of how they end, and decides."""
    cells = {name: _cell(name, run.scenario, facts) for name in run.members}
    return {
        name: outcomes
        for name, cell in cells.items()
        if cell is not None and cell.status is status and cell.decides and (outcomes := _shown(cell))
    }


def _cell(name: str, scenario: str, facts: Judged) -> CellVerdict | None:
    return next((cell for cell in facts.verdicts.get(name, ()) if cell.scenario == scenario), None)


def _shown(cell: CellVerdict) -> frozenset[Outcome]:
    nothing: frozenset[Outcome] = frozenset()
    return nothing.union(*(SHOWN_BY_OUTCOME.get(finding.kind, nothing) for finding in cell.findings))


@dataclass(kw_only=True)
class _Group:
    """One failing server group of one scenario.

    Attributes:
        failures: of models that seem to fail in the new release only; ``alike``: of those that failed in both.
        alone: who was found to fail without any other model, in any scenario so far.
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
        profiles = {"new": new_profile(self.facts.plan), "old": self.facts.plan.settings.profile}
        scenario = INITIALIZATIONS[self.run.scenario]
        self.launchers = {
            side: Launcher(scenario=scenario, side=side, profile=profile, facts=self.facts, effects=self.effects)
            for side, profile in profiles.items()
            if side in self.effects.environments
        }

    def explained(self) -> Mapping[str, Attribution]:
        """Return what each failing model needs in order to fail, and how often that fails in either release.

        Models that the first answer does not name are searched again without those that it names.
        """
        if not self.failures:
            return {}
        known_before = tuple(name for name in self.run.members if self.known_before(name))
        members = [name for name in self.run.members if name not in known_before]
        left = list(self.failures)
        first = found = self.search(members, left, first_runs=FIRST_RUNS)
        explained: dict[str, Attribution] = {}
        named: list[str] = []
        while found.reproduced and (now := [name for name in left if name in found.minimal_models]):
            explained.update(dict.fromkeys(now, replace(self.compared(found, now), left_out=known_before)))
            named += now
            left = [name for name in left if name not in now]
            members = [name for name in members if name not in now]
            if not left or self.late():
                break
            found = self.search(members, left)
        if left:
            rest = self.beside(named, members, left, first, found) if named else self.compared(first, left)
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

    def compared(self, found: Attribution, names: Sequence[str]) -> Attribution:
        """Return what was found with how often it fails in either release: the smallest that did, else the whole."""
        trial = trial_of(found.minimal_models or found.models, found.minimal_threads or found.threads)
        rates = self.rates(trial, [name for name in names if name in trial.models])
        runs = found.runs if rates is None or not found.minimal_models else _sum(found.runs, rates.new)
        return replace(found, runs=runs, rates=rates)

    def confirmed(self) -> Mapping[str, Attribution]:
        """Return how often each model fails that failed in both releases; what it needs, if not by itself in both.

        That it was named in both is no proof that it has the same failure in both: who holds it up may be another one.
        """
        found: dict[str, Attribution] = {}
        for name in self.alike:
            if self.late():
                break
            rates = self.rates(trial_of((name,), self.threads), [name], clean_enough=RUNS_ALONE)
            if rates is not None and change_of(rates) is not Change.UNDECIDED:
                found[name] = _by_itself(name, self.threads, rates)
                continue
            others = tuple(other for other in self.run.members if self.fails_too(other, name))
            members = [other for other in self.run.members if other not in others]
            found[name] = replace(self.compared(self.search(members, [name]), [name]), left_out=others)
        return found

    @property
    def threads(self) -> int:
        return 1 if self.run.scenario == "sequential" else threads_of(self.facts)

    def fails_too(self, other: str, name: str) -> bool:
        """Whether another model fails here as well, in the new release or in both: it would be found in place of it."""
        return other != name and (other in self.failures or self.known_before(other))

    def known_before(self, name: str) -> bool:
        """Whether a model fails here for another reason: in the old release too, or waived.

        A trial would find it in place of the failure that is searched for.
        """
        if name in self.failures:
            return False
        cell, item = _cell(name, self.run.scenario, self.facts), self.facts.initialized.get((name, self.run.scenario))
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
            frozenset[str]().union(*map(self.phases, names)),
            late=self.late,
            clean_enough=clean_enough,
        )

    @property
    def all_failures(self) -> Failures:
        return {**self.alike, **self.failures}

    def phases(self, name: str) -> frozenset[str]:
        """Return the phases in which a model failed when its server group was brought up in the new release."""
        item = self.facts.initialized.get((name, self.run.scenario))
        found = item.new.failures if item is not None else ()
        return frozenset(
            failing.result.way[1] for failing in found if failing.result.outcome in self.all_failures[name]
        )

    def search(self, members: Sequence[str], left: Sequence[str], *, first_runs: int = 0) -> Attribution:
        """Return what ``members`` need for one of those ``left`` to fail."""
        failures = {name: self.all_failures[name] for name in left}
        found = attribute(
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
        if found.one_model_suffices and found.reproduced and not found.as_in:
            (name,) = found.minimal_models
            self.alone.setdefault(name, replace(found, as_in=INITIALIZATIONS[self.run.scenario].words))
        return found

    def oracle(self, failures: Failures) -> Callable[[Trial], SearchAnswer]:
        def ask(trial: Trial) -> SearchAnswer:
            launcher = self.launchers.get(trial.side)
            if launcher is None:
                return SearchAnswer(said=Said.UNTESTABLE)
            # What a hung process was doing is known of the round that is to be explained.
            probes = launched(launcher, trial, look=False)
            return answer_of(probes, {name: failures[name] for name in trial.models if name in failures})

        return ask

    def show(self, trial: Trial, answer: SearchAnswer) -> None:
        where = "one after another" if not trial.concurrent else f"{trial.threads} threads"
        self.effects.progress.step(f"{trial.side}: {len(trial.models)} model(s), {where}: {answer.said.value}")


def rates_of(
    ask: Callable[[str, int], SearchAnswer],
    outcomes: Collection[str],
    phases: Collection[str],
    *,
    late: Callable[[], bool],
    clean_enough: int = CLEAN_ENOUGH,
    known: Sequence[SearchAnswer] = (),
) -> FailureRates:
    """Return how often a failure shows in either release, run in turn until that tells whether it is a regression.

    Args:
        ask: makes one run, of side ``"old"`` or ``"new"``, with its repeat.
        outcomes: those of the failure; ``phases``: where it was seen in the new release, to which its runs add.
        late: whether there is no time for more runs than those that tell a failure of every run from one of none: on a
            loud machine each takes longer, and says as much.
        known: what runs of the old release have said that nobody chose.
    """
    answers: dict[str, list[SearchAnswer]] = {"new": [], "old": list(known)}
    while True:
        seen = {*phases, *(answer.phase for answer in answers["new"] if answer.outcome in outcomes)}
        new, old = _tally(answers["new"], outcomes), _tally(answers["old"], outcomes, seen)
        rates = FailureRates(outcomes=tuple(sorted(outcomes)), new=new, old=old)
        side = next_side(*counts_of(rates), clean_enough=clean_enough)
        spent = new.runs + old.runs - len(known)
        if side is None or _untestable(new) or _untestable(old) or (spent >= RUNS_TO_TELL and late()):
            return rates
        answers[side].append(ask(side, FIRST_COMPARED + len(answers[side])))


def launched(launcher: Launcher, trial: Trial, *, look: bool = True) -> list[ProbeResult]:
    """Return the probes of a trial: one process, or as many as threads if the scenario is about processes.

    Args:
        look: whether a process that hangs is looked into before it is ended.
    """
    count = trial.threads if launcher.scenario.processes and trial.concurrent else 1
    floor_s = min(SEARCH_FLOOR_S, launcher.facts.plan.settings.deadlines.floor_s)

    def launch(repeat: int) -> ProbeResult:
        return launcher.probe(
            trial.models, repeat, threads=trial.threads, alone=not trial.concurrent, floor_s=floor_s, look=look
        )

    first = (FIRST_REPEAT + trial.repeat) * count
    return pool.each(launch, range(first, first + count), jobs=count)


def fate_of(probes: Sequence[ProbeResult], failures: Failures, in_the_way: Collection[str]) -> SearchAnswer:
    """Return whether one of the ``failures`` shows, for a rate.

    Args:
        in_the_way: models that are known to fail by themselves. Who is at work when one of them ends the process alike
            may only be held up, and who was not reached by then was not asked: such a run says nothing.
    """
    models = [item for probe in probes for item in probe.models]
    own = [item for item in models if model_of(item.model) in failures]
    outcomes = [item.outcome for item in probes] + [item.outcome for item in models]
    unclear = next((outcome for outcome in outcomes if outcome in UNCLEAR), None)
    if unclear is not None:
        return SearchAnswer(said=Said.UNTESTABLE, outcome=unclear.value)
    other = next((item for item in models if item.failed and model_of(item.model) in in_the_way), None)
    failed = sorted(
        (item for item in own if item.failed), key=lambda item: item.outcome not in failures[model_of(item.model)]
    )
    if failed and (other is None or other.outcome is not failed[0].outcome):
        outcome, phase = failed[0].way
        return SearchAnswer(said=Said.FAILS, outcome=outcome.value, phase=phase)
    end = next((probe.outcome for probe in probes if probe.outcome not in FINE), None)
    if end is None or all(item.outcome is Outcome.COMPLETED for item in own):
        return SearchAnswer(said=Said.PASSES)
    if any(item.outcome is end for item in models):
        return SearchAnswer(said=Said.UNTESTABLE, outcome=end.value)
    return SearchAnswer(said=Said.FAILS, outcome=end.value)  # outside of every phase, so that it names nobody


def _by_itself(name: str, threads: int, rates: FailureRates) -> Attribution:
    """Return what is known of a model of which nothing but its rates without any other model was asked."""
    found = Attribution(models=(name,), threads=threads, rates=rates)
    if not rates.new.fails:
        return found
    return replace(
        found,
        reproduced=True,
        whole=rates.new,
        minimal_models=(name,),
        minimal_threads=threads,
        one_model_suffices=True,
        runs=rates.new,
    )


def _tally(answers: Sequence[SearchAnswer], outcomes: Collection[str], phases: Collection[str] = ()) -> Tally:
    """Return what the runs amount to; a failure of another outcome, or in none of the ``phases``, is another one.

    Where there are several, in which of them it fails is chance: then it is the kind of phase that counts.
    """
    kinds = {phase.split(" ")[0] for phase in phases} if len(phases) > 1 else set()
    tally = Tally()
    for answer in answers:
        there = not phases or answer.phase in phases or answer.phase.split(" ")[0] in kinds
        tally = counted_in(tally, answer, same=answer.outcome in outcomes and there)
    return tally


def _untestable(tally: Tally) -> bool:
    return tally.untestable >= UNTESTABLE_AFTER and tally.untestable > tally.judged + tally.differently


def _sum(first: Tally, second: Tally) -> Tally:
    return Tally(
        fails=first.fails + second.fails,
        passes=first.passes + second.passes,
        untestable=first.untestable + second.untestable,
        differently=first.differently + second.differently,
        outcomes=tuple(dict.fromkeys((*first.outcomes, *second.outcomes))),
    )


def answer_of(probes: Sequence[ProbeResult], failures: Failures) -> SearchAnswer:
    """Return whether one of the ``failures`` shows again; any other failure is reported with its own outcome."""
    seen = [(model_of(item.model), item.outcome) for probe in probes for item in probe.models]
    own = next((outcome for name, outcome in seen if outcome in failures.get(name, ())), None)
    # A process that ends outside of every phase names nobody.
    ends = [probe.outcome for probe in probes if all(item.outcome is not probe.outcome for item in probe.models)]
    own = own or next((end for end in ends for outcomes in failures.values() if end in outcomes), None)
    if own is not None:
        return SearchAnswer(said=Said.FAILS, outcome=own.value)
    unclear = next((outcome for outcome in (*ends, *(outcome for _, outcome in seen)) if outcome in UNCLEAR), None)
    if unclear is not None:
        return SearchAnswer(said=Said.UNTESTABLE, outcome=unclear.value)
    other = next(((name, outcome) for name, outcome in seen if outcome not in FINE), None)
    if other is not None:
        return SearchAnswer(said=Said.FAILS, outcome=f"{other[1].value} of {other[0]}")
    end = next((end for end in ends if end not in FINE), None)
    return (
        SearchAnswer(said=Said.FAILS, outcome=f"{end.value} of the process") if end else SearchAnswer(said=Said.PASSES)
    )
