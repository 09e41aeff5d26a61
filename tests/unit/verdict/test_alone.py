"""One verdict on an artifact alone, for the upgrade, the rollback and the matrix; one sentence for what was not made."""

import pytest

from harness.verdict.alone import judge_one, not_made
from harness.core.models import GivenArtifact
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure
from harness.probing.facts import OldAnswers, Export
from tests.unit.builders.verdicts import call, compared, tensor
from tests.unit.builders.stages import FINGERPRINTS, artifact, declared, effects, probed, result


@pytest.mark.parametrize(("precision", "told"), [("high", True), ("highest", False)])
def test_another_setting_that_changes_numbers_is_reported_with_the_difference(precision: str, *, told: bool) -> None:
    verdict = judge_one(
        "m/backward/alone/cpu/default",
        export=Export(declaration=declared(), outcome=Outcome.COMPLETED, artifact=artifact()),
        baseline=OldAnswers(results=(result(), result()), numerics={"matmul_precision": "highest"}),
        probe=probed(result(), data={"numerics": {"matmul_precision": precision}}),
        comparison=compared(call(tensor())),
        names=("torch 2.1.2", "torch 2.6.0"),
        fingerprints=FINGERPRINTS,
        effects=effects(),
    )
    assert verdict.status is Status.FAIL
    (finding,) = verdict.findings
    assert any("matmul_precision" in text for _, text in finding.story) is told
    assert finding.evidence == "probes/k"


FAILED = Failure(type="RuntimeError", message="The following operation failed:\nRuntimeError: no room", phase="save")


@pytest.mark.parametrize(
    ("given", "failure", "words"),
    [
        (None, FAILED, "could not be exported in torch 2.1.2: RuntimeError: no room"),
        (GivenArtifact(path="/m.pt"), FAILED, "could not be taken over in torch 2.1.2: RuntimeError: no room"),
        (None, None, "could not be exported in torch 2.1.2: out of memory"),
        (
            None,
            Failure(type="KeyError", message="7", phase="construct"),
            "could not be exported in torch 2.1.2: fixtures/m.py:1 raises KeyError: 7",
        ),
    ],
)
def test_what_was_not_made_is_said_alike_everywhere(
    given: GivenArtifact | None, failure: Failure | None, words: str
) -> None:
    export = Export(declaration=declared(given=given), outcome=Outcome.OUT_OF_MEMORY, failure=failure)
    assert not_made(export, "torch 2.1.2") == words
    assert not_made(export) == words.replace(" in torch 2.1.2", "")
