"""What counts as a cure of a conversion, and how cures, their absence and the smallest part are told."""

from dataclasses import replace

import pytest

from harness.domain.migration import ConversionCure, Migrated
from harness.domain.models import InputSet
from harness.domain.outcome import Outcome
from harness.successor.cures import REWRITES, WORDS, answers_everything, best_refusal, is_curable, unlocked_words
from harness.successor.facts import Tried
from harness.successor.judging import causes_of, judge
from tests.unit.builders.migrations import FIXED, LOST, blocked, cured, ready, uncured
from tests.unit.successor.test_judging import READY, SETS, refused, result

METHODS = replace(READY, input_sets=(SETS[0], InputSet(name="other", method="score")))


def test_every_rewrite_that_is_tried_has_words() -> None:
    assert set(WORDS) == set(REWRITES)


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        (refused("ValueError: two shapes", kind="prim::If", source="m.py:1", code="", reason="two shapes"), True),
        (refused("RuntimeError: INTERNAL ASSERT FAILED"), True),
        (refused("NoConverter: torch 2.1.2 has none"), False),  # another release is needed, no other archive
        (METHODS, False),  # forward alone is rewritten
        (READY, False),
    ],
)
def test_a_rewrite_is_tried_where_the_conversion_of_forward_has_failed(tried: Tried, expected: bool) -> None:
    assert is_curable(tried, judge(tried)) is expected


def test_what_does_not_load_as_torchscript_is_no_matter_of_conversion() -> None:
    tried = refused("RuntimeError: unknown operator")
    assert tried.conversion is not None
    failed = result(Outcome.LOAD_ERROR, "RuntimeError: unknown operator", "load")
    tried = replace(tried, conversion=replace(tried.conversion, models=(failed,)))
    assert not is_curable(tried, judge(tried))


def test_a_cure_answers_every_request_and_lists_for_tuples_are_no_other_answer() -> None:
    lists = replace(ready(), outcome=Migrated.DIFFERS, kind="tuple becomes list")
    assert [answers_everything(model) for model in (ready(), lists)] == [True, True]
    others = (replace(lists, kind="answers otherwise"), FIXED, LOST, blocked())
    assert not any(map(answers_everything, others))


def test_words_say_how_many_models_each_rewrite_unlocks() -> None:
    models = [cured("a"), cured("b"), cured("c", lists=True), uncured()]
    way = WORDS["as-requested"]
    assert unlocked_words(models) == (
        f"verified: {way} (2 of 4 models become ready); "
        f"{way} (1 of 4 models becomes convertible, with lists for tuples)"
    )
    assert unlocked_words([cured()]) == f"verified: {way} (it becomes ready)"
    assert unlocked_words([uncured(), blocked()]) == ""


def test_of_several_refusals_that_of_the_rewrite_that_got_furthest_is_told() -> None:
    far = ConversionCure(name="freeze", outcome=Migrated.FIXED, reason="input[0] is fixed at 4")
    verified = ConversionCure(name="as-requested", outcome=Migrated.NOT_CONVERTIBLE, reason="prim::Loop")
    near = ConversionCure(name="retrace", reason="it does not fit")
    assert best_refusal([far, verified, near]) == "freeze: input[0] is fixed at 4"
    assert best_refusal([verified, near]) == "as-requested: prim::Loop"
    assert best_refusal([near]) == "retrace: it does not fit"
    assert best_refusal([]) == ""


def test_a_cause_tells_its_cure_what_to_do_for_others_and_the_smallest_part() -> None:
    (cause,) = causes_of([cured(), uncured()])
    evidence = dict(cause.evidence)
    assert cause.cure.startswith("verified: ")
    assert evidence["others"] == "torch.where(condition, a, b) for values"
    assert evidence["no cure"] == "as-requested: prim::If: two shapes"
    assert evidence["smallest"] == "prim::If at models/tagger.py:12: probes/e5004cd4/extracted.pt"
    assert evidence["script"] == "reproducers/1-router_prim_If/reproduce.py"
    (without,) = causes_of([blocked()])
    assert without.cure == "torch.where(condition, a, b) for values"
    assert not {"others", "no cure", "smallest", "script"} & set(dict(without.evidence))
