"""Whether a part of a program shows a symptom: by its ending, its answers, its time, or brought up as in a server."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Protocol

from harness.artifacts.tensors.outputs import Outputs
from harness.checks.latency.statistics import interval, logarithm
from harness.checks.outputs.compare import precision_of
from harness.checks.outputs.findings import differs
from harness.checks.outputs.outputs import compare_outputs
from harness.checks.startup.launch import Launcher
from harness.checks.startup.trials import answer_of, launched
from harness.core.diagnosis import Answer, Attribution, SearchAnswer, Symptom, Trial
from harness.core.measurement import RatioEstimate
from harness.core.models import Artifact
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import Deadline, ModelResult, ProbeResult, model_of
from harness.probing.facts import Effects, WithWorker, profile_of
from harness.probing.verification import legible_outputs
from harness.search.reduce.extract import with_artifact
from harness.serving.scenarios import Scenario
from harness.verdict.bisection import failing_findings
from harness.verdict.reduction import ending_words, milliseconds, slowest_ns, symptom_of, way_of

UNRESOLVED = SearchAnswer(answer=Answer.UNRESOLVED)
PASSED = SearchAnswer(answer=Answer.PASS)
# That the whole hangs was proven; a part only has to be told from one that is well.
LEAST_WAIT_S = 1.5
WAIT_FACTOR = 20
# Parts that are well may compile for long; only where a hang is looked for is it worth the while to wait less.
PATIENT_WAIT_S = 10.0
TOTAL_S = 60.0
# Calls of one process where time is compared: the first ones compile, the last half counts.
LEAST_CALLS, MOST_CALLS, CALLS_NS = 10, 200, 6e8
PAIRS = 3
# A culprit was seen to fail within so many runs of it.
RUNS_ON_RECORD = 20
OUTCOMES = {
    Symptom.HANG: frozenset({Outcome.HANG}),
    Symptom.CRASH: frozenset({Outcome.CRASH}),
    Symptom.ERROR: frozenset({Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR}),
}


class Oracle(Protocol):
    """What is asked of an archive; equal questions have equal answers, or their record."""

    sides: "Sides"

    def prepare(self, artifact: Artifact) -> str:
        """Look at the whole in the old release; return why nothing can be asked then, empty if all is well."""

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        """Return whether it shows the symptom in the new release, and does not in the old one."""

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        """Return what became of it in the old and in the new release, and new over old of its time."""


@dataclass
class Sides:
    """Runs archives in both releases as the plan says.

    ``wait_s``: for how long a call is waited for in the new release; ``calls``: how many are made; None: as many as of
    any model.
    """

    facts: WithWorker
    effects: Effects
    wait_s: float = PATIENT_WAIT_S
    calls: int | None = None

    def run(self, side: str, artifact: Artifact, repeat: int = 0) -> ProbeResult:
        """Return one run; it loads the archive and makes the calls of its request."""
        plan = self.facts.plan
        if self.calls is not None and not artifact.schedule:
            artifact = replace(artifact, schedule=((artifact.input_sets[0].name, self.calls),))
        wait_s = self.wait_s if side == "new" else PATIENT_WAIT_S
        deadline = Deadline(load_s=max(PATIENT_WAIT_S, wait_s), call_s=wait_s, total_s=TOTAL_S + wait_s)
        request = self.facts.requests.run(side, [artifact], deadline, profile=profile_of(side, plan), repeat=repeat)
        return self.effects.runner(replace(request, look=False))

    def old_refuses(self, artifact: Artifact) -> str:
        """Return what the old release does with it, empty where that is well."""
        probe = self.run("old", artifact)
        return "" if probe.models[0].outcome is Outcome.COMPLETED else f"the old release {ending_words(probe)}"


@dataclass
class ByOutcome:
    """The call hangs, crashes, raises or takes too much memory."""

    sides: Sides
    symptom: Symptom
    prepared: bool = False

    def prepare(self, artifact: Artifact) -> str:
        refuses = self.sides.old_refuses(artifact)
        if not refuses and self.symptom is Symptom.HANG and not self.prepared:
            took_s = slowest_ns(self.sides.run("old", artifact).models[0]) * 1e-9
            self.sides.wait_s = max(LEAST_WAIT_S, WAIT_FACTOR * took_s)
            self.prepared = True  # a block within the whole is waited for as long: the answer names one time
        return refuses

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        probe = self.sides.run("new", artifact, repeat)
        (result,) = probe.models
        if result.outcome is Outcome.COMPLETED:
            return PASSED
        if result.outcome in UNCLEAR or symptom_of(result) is not self.symptom or self.sides.old_refuses(artifact):
            return UNRESOLVED
        return SearchAnswer(answer=Answer.FAIL, outcome=way_of(result))

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        old, new = self.sides.run("old", artifact), self.sides.run("new", artifact, repeat_that_shows(self, artifact))
        return ending_words(old), ending_words(new), None


@dataclass
class ByValues:
    """It answers otherwise than in the old release."""

    sides: Sides

    def prepare(self, artifact: Artifact) -> str:
        refuses = self.sides.old_refuses(artifact)
        if refuses:
            return refuses
        first, again = (self.answers("old", artifact, repeat) for repeat in (0, 1))
        precision = precision_of(artifact.model, self.sides.facts)
        if differs(compare_outputs("", "", golden=first, probe=again, precision=precision)):
            return "the old release answers otherwise each time"
        return ""

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        probe = self.sides.run("new", artifact, repeat)
        if probe.models[0].outcome is not Outcome.COMPLETED or self.sides.old_refuses(artifact):
            return UNRESOLVED
        return SearchAnswer(answer=Answer.FAIL, outcome="values") if self.findings(artifact, repeat) else PASSED

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        old = ending_words(self.sides.run("old", artifact))
        differences = self.findings(artifact, repeat_that_shows(self, artifact))
        return old, "; ".join(differences[:2]) or ending_words(self.sides.run("new", artifact)), None

    def findings(self, artifact: Artifact, repeat: int) -> tuple[str, ...]:
        golden, probe = self.answers("old", artifact, 0), self.answers("new", artifact, repeat)
        precision = precision_of(artifact.model, self.sides.facts)
        return failing_findings(compare_outputs("", "", golden=golden, probe=probe, precision=precision))

    def answers(self, side: str, artifact: Artifact, repeat: int) -> Outputs:
        """Return what it answered, without what it changed beside that."""
        probe = self.sides.run(side, artifact, repeat)
        return replace(legible_outputs(probe.directory, artifact.model), effects=None)


@dataclass
class ByTime:
    """Its steady call takes longer than in the old release: at least half as much longer as that of the whole."""

    sides: Sides
    excess_ns: float = 0.0
    calls: int = LEAST_CALLS
    known: dict[tuple[tuple[str, str], int], tuple[float, float] | None] = field(default_factory=dict)

    def prepare(self, artifact: Artifact) -> str:
        if self.excess_ns:
            return ""  # a block within the whole has to carry its share
        refuses = self.sides.old_refuses(artifact)
        if refuses:
            return refuses
        call_ns = max(1.0, *(steady_ns(self.sides.run(side, artifact).models[0]) for side in ("old", "new")))
        self.calls = min(MOST_CALLS, max(LEAST_CALLS, round(CALLS_NS / call_ns)))
        excesses = self.excesses(artifact, 0)
        if len(excesses) < PAIRS:
            return "it does not complete in both releases"
        if min(excesses) <= 0:
            return "it is not slower in every pair of runs"
        self.excess_ns = median(excesses)
        return ""

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        excesses = self.excesses(artifact, repeat)
        half = self.excess_ns / 2
        if len(excesses) < PAIRS:
            return UNRESOLVED
        if median(excesses) >= half and min(excesses) > 0:
            return SearchAnswer(answer=Answer.FAIL, outcome="latency")
        return PASSED if max(excesses) < half else UNRESOLVED

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        pairs = [pair for (part, _), pair in self.known.items() if part == _part(artifact) and pair is not None]
        old, new = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        steady = interval([logarithm(after) - logarithm(before) for before, after in pairs])
        return f"{milliseconds(old)} a call", f"{milliseconds(new)} a call", steady

    def excesses(self, artifact: Artifact, repeat: int) -> list[float]:
        """Return how much longer a call takes in the new release, in ns: one number for each pair of processes."""
        pairs = [self.pair(artifact, PAIRS * repeat + index) for index in range(PAIRS)]
        return [new - old for old, new in filter(None, pairs)]

    def pair(self, artifact: Artifact, repeat: int) -> tuple[float, float] | None:
        key = (_part(artifact), repeat)
        if key not in self.known:
            (first, *_) = artifact.input_sets
            longer = replace(artifact, schedule=((first.name, self.calls),))
            old, new = (self.sides.run(side, longer, repeat).models[0] for side in ("old", "new"))
            both = old.outcome is Outcome.COMPLETED and new.outcome is Outcome.COMPLETED
            self.known[key] = (steady_ns(old), steady_ns(new)) if both else None
        return self.known[key]


def _part(artifact: Artifact) -> tuple[str, str]:
    """Return what tells parts apart: two turns of a loop have one archive, and other values."""
    return artifact.digest, artifact.inputs_digest


def repeat_that_shows(oracle: Oracle, artifact: Artifact) -> int:
    """Return the first run of a part that shows the symptom; 0 where none of the first ones does."""
    runs = range(RUNS_ON_RECORD)
    return next((repeat for repeat in runs if oracle.ask(artifact, repeat).answer is Answer.FAIL), 0)


def steady_ns(result: ModelResult) -> float:
    """Return the median duration of the last half of the calls."""
    durations = [call.duration_ns for call in result.calls]
    return median(durations[len(durations) // 2 :]) if durations else 0.0


def oracle_for(symptom: Symptom, facts: WithWorker, effects: Effects, *, calls: int | None = None) -> Oracle:
    """Return what tells whether a part shows ``symptom``, in so many calls of it."""
    sides = Sides(facts, effects, calls=calls)
    if symptom is Symptom.VALUES:
        return ByValues(sides)
    return ByTime(sides) if symptom is Symptom.LATENCY else ByOutcome(sides, symptom)


@dataclass(kw_only=True)
class ByLaunch:
    """It fails brought up as the model has to be: ``needs`` says with so many threads, beside which models."""

    sides: Sides
    model: str
    symptom: Symptom
    scenario: Scenario
    needs: Attribution

    def prepare(self, artifact: Artifact) -> str:
        answer = self._answer("old", artifact, 0)
        return "" if answer.answer is Answer.PASS else f"the old release {self._words('old', artifact, 0)}"

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        answer = self._answer("new", artifact, repeat)
        if answer.answer is not Answer.FAIL:
            return answer
        return answer if self._answer("old", artifact, 0).answer is Answer.PASS else UNRESOLVED

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        shown = repeat_that_shows(self, artifact)
        return self._words("old", artifact, 0), self._words("new", artifact, shown), None

    def _answer(self, side: str, artifact: Artifact, repeat: int) -> SearchAnswer:
        probes = self._probes(side, artifact, repeat)
        outcomes = OUTCOMES[self.symptom]
        answer = answer_of(probes, {self.model: outcomes})
        if answer.answer is not Answer.FAIL:
            return PASSED if answer.answer is Answer.PASS else UNRESOLVED
        if answer.outcome not in {outcome.value for outcome in outcomes}:
            return UNRESOLVED
        mine = next(self._mine(probes), None)
        return SearchAnswer(answer=Answer.FAIL, outcome=answer.outcome if mine is None else way_of(mine[1]))

    def _probes(self, side: str, artifact: Artifact, repeat: int) -> list[ProbeResult]:
        facts = with_artifact(self.sides.facts, self.model, artifact)
        launcher = Launcher(scenario=self.scenario, side=side, facts=facts, effects=self.sides.effects)
        threads = self.needs.minimal_threads
        trial = Trial(
            models=self.needs.minimal_models, threads=threads, side=side, concurrent=threads > 1, repeat=repeat
        )
        return launched(launcher, trial)

    def _mine(self, probes: list[ProbeResult]) -> Iterator[tuple[ProbeResult, ModelResult]]:
        for probe in probes:
            for item in probe.models:
                if model_of(item.model) == self.model and item.outcome in OUTCOMES[self.symptom]:
                    yield probe, item

    def _words(self, side: str, artifact: Artifact, repeat: int) -> str:
        probes = self._probes(side, artifact, repeat)
        mine = next(self._mine(probes), None)
        if mine is not None:
            ends = ending_words(replace(mine[0], models=(mine[1],)))
        else:
            ended = next((probe.outcome for probe in probes if probe.outcome is not Outcome.COMPLETED), None)
            ends = "comes up" if ended is None else f"ends the process ({ended.value.replace('_', ' ')})"
        return f"{ends}, {self.how}"

    @property
    def how(self) -> str:
        threads = self.needs.minimal_threads
        what = "processes" if self.scenario.processes else "threads"
        beside = [name for name in self.needs.minimal_models if name != self.model]
        many = f"in {threads} {what}" if threads > 1 else "in one thread"
        return f"{self.scenario.words} {many}{' beside ' + ', '.join(beside) if beside else ''}"
