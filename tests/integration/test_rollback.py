"""Can we roll back? A break that only the rollback shows, its healthy twin, and a model that is new there."""

import pytest

from harness.domain.outcome import Decision, Status
from harness.domain.prediction import ModelRollback, PredictedLoad, Prediction, RollbackAnswer
from tests.integration.gate import Run, compat

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

MODELS = "encode_ragged or upsample_head or gated_norm or half_on_accelerator"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    chosen = ("--fixtures", "fixtures/breaks", "-k", MODELS, "--scenario", "alone", "--latency", "off")
    return compat(tmp_path_factory.mktemp("back"), *chosen, "--rollback", "--set", "policy.rollback=fail")


def way(run: Run, model: str) -> ModelRollback:
    assert run.report.rollback is not None
    return next(item for item in run.report.rollback.models if item.model == model)


def test_every_prediction_came_true_in_both_directions(run: Run) -> None:
    told = [found for model in run.report.models if model.static for found in model.static.sides.values()]
    told += [item.predicted for item in run.report.rollback.models if item.predicted] if run.report.rollback else []
    assert len(told) >= 8
    assert all(found.agreed for found in told), told
    assert {found.prediction for found in told} == {Prediction.LOADS, Prediction.FAILS}
    assert f"predictions of what will load: {len(told)} of {len(told)} right" in run.out


def test_a_model_that_goes_there_and_does_not_come_back_is_reported_with_operator_and_place(run: Run) -> None:
    assert run.row("encode_ragged").status is Status.PASS
    item = way(run, "encode_ragged")
    assert item.answer is RollbackAnswer.NO
    assert item.verdict is not None and item.verdict.status is Status.FAIL
    assert item.predicted is not None and item.predicted.happened is PredictedLoad.REFUSED
    block = run.out[run.out.index("NO ROLLBACK  encode_ragged: torch 2.6.0 -> torch 2.1.2") :].split("\n\n")[0]
    assert "aten::pad_sequence takes 3 positional arguments, not 4" in " ".join(block.split())
    assert "code/__torch__/torch/nn/utils/rnn.py:" in block
    assert item.command in block and "compat --old 2.6.0 --new 2.1.2 --fixtures fixtures/breaks" in item.command
    assert (run.folder / item.artifact).is_file()


def test_its_healthy_twin_comes_back(run: Run) -> None:
    item = way(run, "upsample_head")
    assert (item.answer, item.command) == (RollbackAnswer.YES, "")
    assert item.verdict is not None and item.verdict.status is Status.PASS
    assert "NO ROLLBACK  upsample_head" not in run.out


def test_a_model_that_only_the_new_release_can_express_cannot_come_back(run: Run) -> None:
    assert run.row("gated_norm").status is Status.UNSUPPORTED
    assert way(run, "gated_norm").answer is RollbackAnswer.NO


def test_policy_makes_the_rollback_a_condition(run: Run) -> None:
    assert run.report.judgement.decision is Decision.BLOCKED and run.code == 1
    assert "cannot roll back: 2 of " in run.report.judgement.reason


def test_a_model_that_does_not_load_says_why_and_where(run: Run) -> None:
    block = run.out[run.out.index("FAIL  half_on_accelerator: load and calls") :].split("\n\n")[0]
    assert "static    prim::is_ort: torch 2.6.0" in block and "code/__torch__/" in block
