"""Reduces every initialization that hangs, crashes or raises: to which models, how many threads, which releases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.domain.diagnosis import Attribution, Said, SearchAnswer, Tally, Trial
from harness.domain.outcome import FINE, UNCLEAR, Outcome, Status
from harness.domain.probe import ProbeResult, model_of
from harness.domain.verdict import CellVerdict
from harness.probing.facts import Attributed, Effects, GroupRun, Judged, new_profile
from harness.scenarios import INITIALIZATIONS
from harness.startup.attribution import attribute, attribution_words
from harness.startup.launch import REPEATS_OF_A_ROUND, Launcher, threads_of
from harness.system import clock, pool

# Processes per failing server group: enough for 16 models with a failure that shows every time (tests/unit/search).
BUDGET = 80
# For all searches of a run. A busy hang costs the floor below per question, several times that if it is slow.
TIME_S = 600.0
# Made for each failing server group, however late it is: three repeats, then one suspect alone.
FIRST_RUNS = 5
# The hang has been proven already; a repeat only has to be distinguished from a healthy one, which takes milliseconds.
SEARCH_FLOOR_S = 6.0
# Kinds of findings that one run shows by its outcome alone; a wrong answer has its own chain of rules.
SHOWN_BY_OUTCOME: Mapping[str, frozenset[Outcome]] = {
    "hang": frozenset({Outcome.HANG}),
    "crash": frozenset({Outcome.CRASH}),
    "concurrent_error": frozenset({Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR}),
    "out_of_memory": frozenset({Outcome.OUT_OF_MEMORY}),
}
# The first round of the search: far from those of the scenario and of the mitigations.
FIRST_REPEAT = 1000 * REPEATS_OF_A_ROUND

Failures = Mapping[str, frozenset[Outcome]]
"""Model -> the outcomes by which its failure shows."""


def attribute_failures(facts: Judged, effects: Effects) -> Attributed:
    """Return the facts with what each failing initialization needs in order to fail, as a line of its red cells."""
    failing = [(run, failures) for run in facts.group_runs if run.side == "new" and (failures := _failures(run, facts))]
    if not failing:
        return Attributed(**Judged.known(facts), attributions={})
    effects.progress.stage("which models, how many threads?", BUDGET * len(failing))
    end_ns = clock.monotonic_ns() + int(TIME_S * 1e9)
    attributions: dict[tuple[str, str], Attribution] = {}
    alone: dict[str, Attribution] = {}
    for run, failures in failing:
        group = _Group(run=run, failures=failures, facts=facts, effects=effects, end_ns=end_ns, alone=alone)
        attributions.update({(name, run.scenario): found for name, found in group.explained().items()})
    verdicts = {
        name: tuple(_with_story(cell, attributions.get((name, cell.scenario))) for cell in cells)
        for name, cells in facts.verdicts.items()
    }
    return Attributed(**Judged.known(replace(facts, verdicts=verdicts)), attributions=attributions)


def _failures(run: GroupRun, facts: Judged) -> Failures:
    """Return the members that fail in this scenario, and not in the old release too."""
    cells = {name: _cell(name, run.scenario, facts) for name in run.members}
    return {
        name: outcomes
        for name, cell in cells.items()
        if cell is not None and cell.status is Status.FAIL and (outcomes := _shown(cell))
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
        alone: who was found to fail without any other model, in any scenario so far.
    """

    run: GroupRun
    failures: Failures
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
        """Return what each failing model needs in order to fail.

        Models that the first answer does not name are searched again without those that it names.
        """
        known_before = tuple(name for name in self.run.members if self.known_before(name))
        members = [name for name in self.run.members if name not in known_before]
        left = list(self.failures)
        first = found = self.search(members, left, first_runs=FIRST_RUNS)
        explained: dict[str, Attribution] = {}
        named: list[str] = []
        while found.reproduced and (now := [name for name in left if name in found.minimal_models]):
            explained.update(dict.fromkeys(now, replace(found, left_out=known_before)))
            named += now
            left = [name for name in left if name not in now]
            members = [name for name in members if name not in now]
            if not left or self.late():
                break
            found = self.search(members, left)
        rest = self.beside(named, members, first, found) if named else first
        return {**explained, **dict.fromkeys(left, replace(rest, left_out=known_before))}

    def beside(self, named: Sequence[str], others: Sequence[str], first: Attribution, last: Attribution) -> Attribution:
        """Return what is known of the models that failed with the ``named`` and were not seen to fail without them."""
        settled = last.reproduced is False
        return Attribution(
            models=tuple(others),
            threads=first.threads,
            reproduced=True,
            whole=first.whole,
            beside=tuple(named),
            apart=last.whole if settled else Tally(),
            trials=last.trials,
            budget_ended=not settled and (last.budget_ended or self.late()),
            time_ended=not settled and self.late(),
        )

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

    def late(self) -> bool:
        return clock.monotonic_ns() >= self.end_ns

    def search(self, members: Sequence[str], left: Sequence[str], *, first_runs: int = 0) -> Attribution:
        """Return what ``members`` need for one of those ``left`` to fail."""
        failures = {name: self.failures[name] for name in left}
        found = attribute(
            members,
            1 if self.run.scenario == "sequential" else threads_of(self.facts),
            self.oracle(failures),
            budget=BUDGET,
            suspects=left,
            outcomes=sorted({outcome.value for outcomes in failures.values() for outcome in outcomes}),
            known=next((self.alone[name] for name in left if name in self.alone), None),
            stop=lambda spent: spent >= first_runs and self.late(),
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
            return answer_of(
                launched(launcher, trial), {name: failures[name] for name in trial.models if name in failures}
            )

        return ask

    def show(self, trial: Trial, answer: SearchAnswer) -> None:
        where = "one after another" if not trial.concurrent else f"{trial.threads} threads"
        self.effects.progress.step(f"{trial.side}: {len(trial.models)} model(s), {where}: {answer.said.value}")


def launched(launcher: Launcher, trial: Trial) -> list[ProbeResult]:
    """Return the probes of a trial: one process, or as many as threads if the scenario is about processes."""
    count = trial.threads if launcher.scenario.processes and trial.concurrent else 1
    floor_s = min(SEARCH_FLOOR_S, launcher.facts.plan.settings.deadlines.floor_s)

    def launch(repeat: int) -> ProbeResult:
        return launcher.probe(trial.models, repeat, threads=trial.threads, alone=not trial.concurrent, floor_s=floor_s)

    first = (FIRST_REPEAT + trial.repeat) * count
    return pool.each(launch, range(first, first + count), jobs=count)


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


def _with_story(cell: CellVerdict, found: Attribution | None) -> CellVerdict:
    if found is None:
        return cell
    line = ("needs", attribution_words(found, cell.scenario))
    return replace(
        cell,
        findings=tuple(
            replace(finding, story=(line, *finding.story)) if finding.kind in SHOWN_BY_OUTCOME else finding
            for finding in cell.findings
        ),
    )
