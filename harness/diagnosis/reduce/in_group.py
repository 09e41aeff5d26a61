"""Whether a part of a program shows what the model shows only beside others, or in several threads."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.diagnosis.reduce.extract import with_artifact
from harness.diagnosis.reduce.judging import ending_words, way_of
from harness.diagnosis.reduce.oracles import PASSES, UNTESTABLE, Sides, repeat_that_shows
from harness.domain.diagnosis import Attribution, Said, SearchAnswer, Symptom, Trial
from harness.domain.models import Artifact
from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeResult, model_of
from harness.probing.facts import new_profile
from harness.scenarios import Scenario
from harness.startup.attribute import answer_of, launched
from harness.startup.launch import Launcher

OUTCOMES = {
    Symptom.HANG: frozenset({Outcome.HANG}),
    Symptom.CRASH: frozenset({Outcome.CRASH}),
    Symptom.ERROR: frozenset({Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR}),
}


@dataclass(kw_only=True)
class ByLaunch:
    """It fails as the model does, brought up as that has to be: with so many threads, beside those that are needed.

    Attributes:
        needs: what the model needs in order to fail.
    """

    sides: Sides
    model: str
    symptom: Symptom
    scenario: Scenario
    needs: Attribution

    def prepare(self, artifact: Artifact) -> str:
        """See that the old release brings it up."""
        said = self._answer("old", artifact, 0)
        return "" if said.said is Said.PASSES else f"the old release {self._words('old', artifact, 0)}"

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        """Return what one initialization says."""
        said = self._answer("new", artifact, repeat)
        if said.said is not Said.FAILS:
            return said
        return said if self._answer("old", artifact, 0).said is Said.PASSES else UNTESTABLE

    def words(self, artifact: Artifact) -> tuple[str, str, float | None]:
        """Return what both releases do with it."""
        shown = repeat_that_shows(self, artifact)
        return self._words("old", artifact, 0), self._words("new", artifact, shown), None

    def _answer(self, side: str, artifact: Artifact, repeat: int) -> SearchAnswer:
        probes = self._probes(side, artifact, repeat)
        outcomes = OUTCOMES[self.symptom]
        said = answer_of(probes, {self.model: outcomes})
        if said.said is not Said.FAILS:
            return PASSES if said.said is Said.PASSES else UNTESTABLE
        if said.outcome not in {outcome.value for outcome in outcomes}:
            return UNTESTABLE
        mine = next(self._mine(probes), None)
        return SearchAnswer(said=Said.FAILS, outcome=said.outcome if mine is None else way_of(mine[1]))

    def _probes(self, side: str, artifact: Artifact, repeat: int) -> list[ProbeResult]:
        facts = with_artifact(self.sides.facts, self.model, artifact)
        profile = new_profile(facts.plan) if side == "new" else facts.plan.settings.profile
        launcher = Launcher(scenario=self.scenario, side=side, profile=profile, facts=facts, effects=self.sides.effects)
        threads = self.needs.minimal_threads
        trial = Trial(
            models=self.needs.minimal_models, threads=threads, side=side, concurrent=threads > 1, repeat=repeat
        )
        return launched(launcher, trial)

    def _mine(self, probes: list[ProbeResult]) -> Iterator[tuple[ProbeResult, ModelResult]]:
        """Yield what shows the failure of the model's own part, with the process that it was in."""
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
        """How a part is brought up, in words."""
        threads = self.needs.minimal_threads
        what = "processes" if self.scenario.processes else "threads"
        beside = [name for name in self.needs.minimal_models if name != self.model]
        many = f"in {threads} {what}" if threads > 1 else "in one thread"
        return f"{self.scenario.words} {many}{' beside ' + ', '.join(beside) if beside else ''}"
