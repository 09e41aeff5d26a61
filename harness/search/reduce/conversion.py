"""The smallest part of an artifact that is not convertible: the converter of the new release gives up on it alike."""

import re
from dataclasses import dataclass, replace

from harness.checks.migration.facts import Tried
from harness.checks.migration.obstacles import without_owner
from harness.core.diagnosis import Answer, Reduction, SearchAnswer, Symptom
from harness.core.measurement import RatioEstimate
from harness.core.migration import Migrated, MigratedModel
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult
from harness.probing.facts import Answered, Effects, WithWorker
from harness.search.reduce.oracles import PASSED, UNRESOLVED, Sides
from harness.search.reduce.program import reduce_program
from harness.verdict.bisection import CallInQuestion
from harness.verdict.migration import judge

# Of a search that asks what may fail now and then; the converter is asked once.
CONVERTIBLE = re.compile(r"did not show it in \d+ runs")


@dataclass
class ByConversion:
    """The converter gives up, at what stands in the way of the whole (``kind``, see ``MigratedModel.kind``)."""

    sides: Sides
    kind: str

    def prepare(self, artifact: Artifact) -> str:
        return self.sides.old_refuses(artifact)

    def ask(self, artifact: Artifact, repeat: int) -> SearchAnswer:
        del repeat
        probe = self.conversion(artifact)
        if probe.models[0].outcome is Outcome.COMPLETED:
            return PASSED
        judged = self.judged(artifact, probe)
        if judged.outcome is not Migrated.NOT_CONVERTIBLE or without_owner(judged.kind) != without_owner(self.kind):
            return UNRESOLVED
        return SearchAnswer(answer=Answer.FAIL, outcome=without_owner(judged.kind))

    def words(self, artifact: Artifact) -> tuple[str, str, RatioEstimate | None]:
        return "TorchScript answers", self.judged(artifact, self.conversion(artifact)).reason, None

    def conversion(self, artifact: Artifact) -> ProbeResult:
        example = artifact.input_sets[0].name
        return self.sides.effects.runner(self.sides.facts.requests.convert("new", artifact, [example]))

    def judged(self, artifact: Artifact, probe: ProbeResult) -> MigratedModel:
        return judge(Tried(model=artifact.model, release="new", input_sets=artifact.input_sets, conversion=probe))


def unconvertible_part(tried: Tried, model: MigratedModel, facts: Answered, effects: Effects) -> Reduction:
    """Return the few nodes of ``model`` that the new side cannot convert; the old side extracts them."""
    asked = WithWorker(**Answered.known(facts), alone={}, worker="python", worker_notes=())
    oracle = ByConversion(Sides(asked, effects), model.kind)
    failing = CallInQuestion(input_set=tried.example, call=0)
    reduction = reduce_program(model.model, Symptom.CONVERSION, failing, asked, effects, oracle=oracle)
    return replace(reduction, notes=tuple(CONVERTIBLE.sub("are convertible", note) for note in reduction.notes))
