"""What counts as a fix of a conversion, and how attempts, their absence and the smallest part are told."""

import math
from dataclasses import replace

import pytest

from harness.core.migration import ConversionRewrite, Migrated
from harness.core.models import InputSet
from harness.core.outcome import Outcome
from harness.checks.migration.conversion_rewrites import (
    REWRITES,
    WORDS,
    answers_everything,
    best_refusal,
    is_rewritable,
    price_words,
    says_nothing_of_the_rewrite,
    rewritten_words,
)
from harness.checks.migration.facts import Tried
from harness.verdict.migration import causes_of, judge
from harness.checks.migration.conversion_rewrites import BUSY
from tests.unit.builders.migrations import FIXED, LOST, UNASKED, blocked, rewritten, priced, ready, unmitigated
from tests.unit.verdict.test_migration import READY, SETS, refused, result

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
    assert is_rewritable(tried, judge(tried)) is expected


def test_what_does_not_load_as_torchscript_is_no_matter_of_conversion() -> None:
    tried = refused("RuntimeError: unknown operator")
    assert tried.conversion is not None
    failed = result(Outcome.LOAD_ERROR, "RuntimeError: unknown operator", "load")
    tried = replace(tried, conversion=replace(tried.conversion, models=(failed,)))
    assert not is_rewritable(tried, judge(tried))


def test_a_fix_answers_every_request_and_lists_for_tuples_are_no_other_answer() -> None:
    lists = replace(ready(), outcome=Migrated.DIFFERS, kind="tuple becomes list")
    assert [answers_everything(model) for model in (ready(), lists)] == [True, True]
    others = (replace(lists, kind="answers otherwise"), FIXED, LOST, blocked(), UNASKED)
    assert not any(map(answers_everything, others))


def test_how_a_package_is_served_and_how_fast_it_is_takes_nothing_from_a_fix() -> None:
    for outcome in (Migrated.FAILS_SERVED, Migrated.SLOWER):
        assert answers_everything(replace(ready(), outcome=outcome))
    assert answers_everything(replace(ready(), outcome=Migrated.UNDECIDED, kind=BUSY))
    assert not answers_everything(replace(ready(), outcome=Migrated.NOT_PACKAGEABLE))


def test_words_say_how_many_models_each_rewrite_unlocks() -> None:
    models = [rewritten("a"), rewritten("b"), rewritten("c", lists=True), unmitigated()]
    way = WORDS["as-requested"]
    told = "2 of 4 models become ready; 1 becomes convertible, with lists for tuples"
    assert rewritten_words(models) == f"verified: {way} ({told})"
    frozen = replace(rewritten("d"), rewritten_by="freeze")
    assert rewritten_words([frozen, rewritten("a"), rewritten("b")]) == (
        f"verified: {way} (2 of 3 models become ready); {WORDS['freeze']} (1 of 3 models becomes ready)"
    )
    assert rewritten_words([rewritten()]) == f"verified: {way} (it becomes ready)"
    assert rewritten_words([unmitigated(), blocked()]) == ""


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Migrated.FAILS_SERVED, "becomes convertible, and fails when served"),
        (Migrated.SLOWER, "becomes convertible, with slower calls"),
        (Migrated.UNDECIDED, "becomes convertible; how that is served could not be judged"),
    ],
)
def test_words_say_how_what_was_fixed_is_served(outcome: Migrated, words: str) -> None:
    assert rewritten_words([priced(outcome=outcome)]) == f"verified: {WORDS['as-requested']} (it {words})"


def test_price_is_that_of_a_warm_call_and_of_several_those_are_named_that_certainly_differ() -> None:
    cheap, dear, like = priced("a", 0.88), priced("b", 1.3), priced("c", 1.01)
    assert price_words([cheap]) == "rewritten, a warm call takes -12.0 % [-17.0, -7.0] beside TorchScript"
    both = "rewritten, a warm call takes beside TorchScript: b +30.0 % [+25.0, +35.0], a -12.0 % [-17.0, -7.0]"
    assert price_words([dear, cheap]) == both
    assert price_words([dear, like, cheap]) == f"{both}; of 1 other no difference is certain"
    assert price_words([dear, cheap, rewritten(), unmitigated()]) == f"{both} (2 of 3 were timed)"


def test_what_a_server_fixes_has_a_price_too() -> None:
    slow = replace(ready("a"), outcome=Migrated.FAILS_SERVED, costs=priced("a", 1.3).rewrites[-1].costs)
    held = replace(ready("b"), outcome=Migrated.FAILS_SERVED)
    assert price_words([slow, held]) == (
        "rewritten, a warm call takes +30.0 % [+25.0, +35.0] beside TorchScript (1 of 2 were timed)"
    )
    assert price_words([replace(slow, outcome=Migrated.SLOWER)]) == ""  # its reason says it


def test_of_several_prices_that_may_be_noise_none_is_told() -> None:
    wide = priced("a", 0.835)
    steady = replace(wide.rewrites[-1].costs[0], low=0.539, high=1.293)
    wide = replace(wide, rewrites=(replace(wide.rewrites[-1], costs=(steady,)),))
    told = "rewritten, a warm call of none of 2 certainly differs from that of TorchScript"
    assert price_words([wide, priced("b", 1.02)]) == told


def test_what_the_machine_lacked_says_nothing_of_a_rewrite() -> None:
    unpackaged = replace(ready(), outcome=Migrated.NOT_PACKAGEABLE, kind="not packageable")
    assert not says_nothing_of_the_rewrite(unpackaged)
    assert says_nothing_of_the_rewrite(replace(unpackaged, kind="no compiler"))
    assert says_nothing_of_the_rewrite(replace(ready(), outcome=Migrated.UNDECIDED, kind="starved"))


def test_without_times_there_is_no_price_and_without_an_interval_none_is_told() -> None:
    assert price_words([rewritten(), unmitigated(), blocked()]) == ""
    single = priced(ratio=1.2)
    steady = replace(single.rewrites[-1].costs[0], low=0.0, high=math.inf)
    single = replace(single, rewrites=(replace(single.rewrites[-1], costs=(steady,)),))
    assert price_words([single]) == "rewritten, a warm call takes +20.0 % beside TorchScript"


def test_a_cause_tells_the_price_of_its_fix_and_what_to_do_where_it_fails_when_served() -> None:
    (cause,) = causes_of([priced("a", 1.01), priced("b", 0.9)])
    assert dict(cause.evidence)["price"].startswith("rewritten, a warm call takes beside TorchScript: b -10.0 %")
    assert "then" not in dict(cause.evidence)
    failing = priced(outcome=Migrated.FAILS_SERVED)
    (cause,) = causes_of([failing])
    attempt = failing.rewrites[-1]
    assert dict(cause.evidence)["then"] == f"tagger, rewritten: {attempt.reason}; {attempt.advice}"


def test_of_several_refusals_that_of_the_rewrite_that_got_furthest_is_told() -> None:
    far = ConversionRewrite(name="freeze", outcome=Migrated.FIXED, reason="input[0] is fixed at 4")
    verified = ConversionRewrite(name="as-requested", outcome=Migrated.NOT_CONVERTIBLE, reason="prim::Loop")
    near = ConversionRewrite(name="retrace", reason="it does not fit")
    assert best_refusal([far, verified, near]) == "freeze: input[0] is fixed at 4"
    assert best_refusal([verified, near]) == "as-requested: prim::Loop"
    assert best_refusal([near]) == "retrace: it does not fit"
    assert best_refusal([]) == ""


def test_a_cause_tells_its_fix_what_to_do_for_others_and_the_smallest_part() -> None:
    (cause,) = causes_of([rewritten(), unmitigated()])
    evidence = dict(cause.evidence)
    assert cause.fix.startswith("verified: ")
    assert evidence["others"] == "torch.where(condition, a, b) for values"
    assert evidence["no rewrite"] == "as-requested: prim::If: two shapes"
    assert evidence["smallest"] == "prim::If at models/tagger.py:12: probes/e5004cd4/extracted.pt"
    assert evidence["script"] == "reproducers/1-router_prim_If/reproduce.py"
    (without,) = causes_of([blocked()])
    assert without.fix == "torch.where(condition, a, b) for values"
    assert not {"others", "no rewrite", "smallest", "script", "price", "then"} & set(dict(without.evidence))
