"""Opinions on inputs changed in place and on shared memory."""

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.checks.outputs.findings import (
    BIT_EQUAL,
    OWN_NOISE,
    PLACEMENT,
    REFERENCE,
    REFERENCE_REACH,
    SAMPLE,
    SCALED_TOLERANCE,
    STRUCTURE,
)
from harness.checks.outputs.findings import (
    PATHS_SHOWN,
    beyond_tolerance,
    deciding_rule,
    output_findings,
    summary,
    with_freedom,
)
from harness.core.comparison import OutputComparison
from harness.core.findings import status_of
from harness.core.verdict import Beyond
from tests.unit.builders.verdicts import call, compared, difference, equal, tensor


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("inputs_changed_new", "input[0] is changed in place, and was left alone before"),
        ("inputs_changed_old", "input[0] was changed in place before, and is left alone now"),
    ],
)
def test_input_that_only_one_release_changes_fails(field: str, said: str) -> None:
    changed: dict[str, Any] = {field: ("input[0]",)}
    comparison = compared(replace(call(equal()), **changed))
    (found,) = output_findings(comparison)
    assert (found.kind, found.message, found.where) == ("input_changed", said, "example call 0 input[0]")
    assert status_of([found]) == "FAIL"
    assert summary(comparison)[0] == "input moved"


def test_input_that_is_changed_from_a_later_call_on_diverges_late() -> None:
    later = replace(call(equal(), index=1), inputs_changed_new=("input[0]",))
    (found,) = output_findings(compared(call(equal()), later))
    assert (found.kind, found.detail["was"]) == ("late_divergence", "input_changed")


def test_input_that_is_changed_by_every_call_is_one_finding() -> None:
    calls = [replace(call(equal(), index=index), inputs_changed_old=("input[0]",)) for index in range(3)]
    (found,) = output_findings(compared(*calls))
    assert (found.kind, found.where) == ("input_changed", "example call 0 input[0] and 2 more calls")


def test_input_that_both_releases_change_alike_is_reported_once() -> None:
    calls = [replace(call(equal(), index=index), inputs_changed=("input[0]", "input[1]")) for index in (0, 1)]
    (found,) = output_findings(compared(*calls))
    assert (found.kind, found.message) == (
        "changes_inputs",
        "changes its inputs in place, in both releases: input[0], input[1]",
    )
    assert status_of([found]) == "PASS"


def test_input_that_both_releases_change_otherwise_fails_by_its_values() -> None:
    found = output_findings(compared(replace(call(equal(), tensor(path="input[0]")), inputs_changed=("input[0]",))))
    assert [item.kind for item in found] == ["values", "changes_inputs"]


def test_other_aliasing_is_reported_and_fails_nothing() -> None:
    changed = replace(call(equal()), aliases_old=("input[0] = output[0]",), aliases_new=("output[0] = output[1]",))
    (found,) = output_findings(compared(changed, replace(changed, call=1)))
    assert found.kind == "aliasing"
    assert found.message == (
        "shares memory no more: input[0] = output[0]; now: output[0] = output[1]: writing into one changes the other"
    )
    assert status_of([found]) == "PASS"


def test_long_lists_are_cut() -> None:
    groups = tuple(f"output[{index}] = input[0]" for index in range(PATHS_SHOWN + 2))
    (found,) = output_findings(compared(replace(call(equal()), aliases_new=groups)))
    assert "and 2 more" in found.message


def test_rows_in_another_order_are_reported_with_the_rule() -> None:
    moved = compared(call(equal(path="output[0]", moved_rows=2)), call(equal(path="output[0]", moved_rows=4), index=1))
    (found,) = output_findings(moved)
    assert (found.kind, found.rule) == ("reordered", "rows in any order")
    assert "output[0] (4 rows)" in found.message
    assert status_of([found]) == "PASS"
    assert summary(moved) == ("reordered", 0.0)


def test_wrong_rows_fail_by_a_rule_that_says_any_order() -> None:
    values, told = output_findings(compared(call(tensor(moved_rows=2))))
    assert (values.kind, values.rule) == ("values", "scaled tolerance, rows in any order")
    assert told.kind == "reordered"


def test_declaration_that_names_nothing_is_not_decided() -> None:
    (found,) = output_findings(compared(call(equal()), unordered_missing=("output[7]",)))
    assert (found.kind, status_of([found])) == ("unordered_missing", "INCONCLUSIVE")
    assert "output[7]" in found.message


REACH = REFERENCE_REACH * tensor().tolerance_abs  # how far the old output may lie from float64


@pytest.mark.parametrize(
    ("changes", "rule", "passes"),
    [
        ({"bit_equal": True}, BIT_EQUAL, True),
        ({"nan_mismatches": 1, "max_abs": 0.0}, PLACEMENT, False),
        ({"inf_mismatches": 1, "max_abs": 0.0}, PLACEMENT, False),
        ({"max_abs": 1e-5}, SCALED_TOLERANCE, True),
        ({"max_abs": 2e-5}, SCALED_TOLERANCE, True),
        ({"max_abs": 2.1e-5}, SCALED_TOLERANCE, False),
        ({"max_abs": 0.2, "noise_abs": 0.2}, OWN_NOISE, True),
        ({"max_abs": 0.2, "noise_abs": 0.1}, SCALED_TOLERANCE, False),
        ({"reference_old_abs": 1e-4, "reference_new_abs": 1e-4}, REFERENCE, True),
        ({"reference_old_abs": 1e-4, "reference_new_abs": 5e-5}, REFERENCE, True),
        ({"reference_old_abs": 1e-4, "reference_new_abs": 1.1e-4}, SCALED_TOLERANCE, False),
        ({"reference_old_abs": REACH, "reference_new_abs": REACH}, REFERENCE, True),
        ({"reference_old_abs": REACH * 1.01, "reference_new_abs": 0.0}, SCALED_TOLERANCE, False),
        ({"reference_old_abs": math.inf, "reference_new_abs": 0.0}, SCALED_TOLERANCE, False),
        ({"reference_old_abs": math.nan, "reference_new_abs": 0.0}, SCALED_TOLERANCE, False),
        ({"reference_new_abs": 0.0}, SCALED_TOLERANCE, False),
        ({"reference_old_abs": 9.0}, SCALED_TOLERANCE, False),
        ({"max_abs": math.inf}, SCALED_TOLERANCE, False),
        ({"max_abs": math.nan}, SCALED_TOLERANCE, False),
    ],
)
def test_each_rule_of_the_chain_decides(changes: dict[str, Any], rule: str, *, passes: bool) -> None:
    assert deciding_rule(tensor(**changes)) == (rule, passes)


# Every rule would decide these: the earliest of the chain must.
EVERYTHING: dict[str, Any] = {
    "max_abs": 1e-9,
    "noise_abs": 1.0,
    "reference_old_abs": REACH,
    "reference_new_abs": 0.0,
}


def test_rules_decide_in_the_order_of_the_chain() -> None:
    assert deciding_rule(tensor(**EVERYTHING, bit_equal=True))[0] == BIT_EQUAL
    assert deciding_rule(tensor(**EVERYTHING, nan_mismatches=1)) == (PLACEMENT, False)
    assert deciding_rule(tensor(**EVERYTHING))[0] == SCALED_TOLERANCE
    assert deciding_rule(tensor(**{**EVERYTHING, "max_abs": 0.5}))[0] == OWN_NOISE
    assert deciding_rule(tensor(**{**EVERYTHING, "max_abs": 2.0}))[0] == REFERENCE


def test_moved_nan_fails_although_the_noise_and_the_reference_would_excuse_it() -> None:
    (finding,) = output_findings(compared(call(tensor(**EVERYTHING, nan_mismatches=2, inf_mismatches=1))))
    assert (finding.kind, finding.rule) == ("nan_placement", PLACEMENT)
    assert finding.message == "output: a number where NaN was in 2; another infinity, or none, in 1 of 8 elements"


@pytest.mark.parametrize(
    ("changes", "operator", "words"),
    [
        ({"same_magnitudes": True}, "aten::linalg_svd", "only signs differ, which aten::linalg_svd leaves free"),
        ({"same_magnitudes": True}, "aten::linalg_qr.out", "only signs differ, which aten::linalg_qr leaves free"),
        ({"same_magnitudes": True}, "aten::topk", "only signs differ"),
        ({"same_magnitudes": True}, "aten::mul.Tensor", "only signs differ"),
        ({"same_values": True}, "aten::topk", "the same values in another order, which aten::topk leaves free"),
        ({"same_values": True}, "aten::linalg_svd", "the same values in another order"),
        ({}, "aten::topk", ""),
    ],
)
def test_what_an_operator_of_the_model_leaves_free_is_said_to_be_free(
    changes: dict[str, bool], operator: str, words: str
) -> None:
    (finding,) = output_findings(compared(call(tensor(**changes))))
    told = with_freedom(finding, ("aten::relu", operator))
    assert words in told.message
    assert ("leaves free" in told.message) == ("leaves free" in words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nan_mismatches": 4, "nan_appeared": 4}, "output: NaN where a number was in 4 of 8 elements"),
        ({"nan_mismatches": 4}, "output: a number where NaN was in 4 of 8 elements"),
        ({"inf_mismatches": 4}, "output: another infinity, or none, in 4 of 8 elements"),
    ],
)
def test_which_way_a_nan_moved_is_told(changes: dict[str, int], words: str) -> None:
    (finding,) = output_findings(compared(call(tensor(**changes))))
    assert finding.message == words


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"bit_equal": True}, []),
        ({"max_abs": 1e-6}, []),
        ({"noise_abs": 0.25}, []),
        ({"reference_old_abs": REACH, "reference_new_abs": REACH / 2}, [("closer_to_reference", REFERENCE)]),
        ({"reference_old_abs": 0.3, "reference_new_abs": 0.1}, [("values", SCALED_TOLERANCE)]),  # out of reach
        ({"scale": 0.0, "tolerance_abs": 0.0}, [("values", SCALED_TOLERANCE)]),
    ],
)
def test_what_decides_a_tensor_makes_its_finding(changes: dict[str, Any], kinds: list[tuple[str, str]]) -> None:
    findings = output_findings(compared(call(tensor(**changes))))
    assert [(item.kind, item.rule) for item in findings] == kinds
    assert status_of(findings) == ("FAIL" if "values" in dict(kinds) else "PASS")


def test_wrong_values_name_rule_place_and_numbers() -> None:
    (finding,) = output_findings(compared(call(tensor(path="output[1]"), index=2, input_set="batch 2")))
    assert (finding.kind, finding.rule, finding.where) == (
        "values",
        SCALED_TOLERANCE,
        "batch 2 call 2 output[1]",
    )
    assert "off by 0.1 of its largest value" in finding.message
    assert "3 of 8 elements" in finding.message
    assert "worst at [1, 4]: 1.5 -> 1.7" in finding.message
    assert finding.detail == {
        "max_abs": "0.2",
        "tolerance_abs": "2e-05",
        "max_rel": "0.5",
        "mismatched": "3 of 8",
        "worst_index": "[1, 4]",
        "worst": "1.5 -> 1.7",
        "input_set": "batch 2",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"bit_equal": True, "max_abs": 0.0},
        {"max_abs": 1e-6},
        {"noise_abs": 1.0},
        {"reference_old_abs": REACH, "reference_new_abs": 0.0},
    ],
)
def test_sampled_golden_that_agrees_decides_nothing(changes: dict[str, Any]) -> None:
    findings = output_findings(compared(call(tensor(sampled=True, **changes))))
    assert [(item.kind, item.rule) for item in findings] == [("not_decidable", SAMPLE)]
    assert status_of(findings) == "INCONCLUSIVE"


@pytest.mark.parametrize(("changes", "kind"), [({}, "values"), ({"nan_mismatches": 1}, "nan_placement")])
def test_sampled_golden_that_disagrees_proves_the_difference(changes: dict[str, Any], kind: str) -> None:
    findings = output_findings(compared(call(tensor(sampled=True, **changes))))
    assert [item.kind for item in findings] == [kind]


def test_structure_and_dtype_are_findings_of_their_own_kind() -> None:
    tree = (difference("output[2]"), difference("output['x']", "dtype"))
    findings = output_findings(compared(call(tree=tree, index=1)))
    assert [(item.kind, item.where, item.rule) for item in findings] == [
        ("structure", "example call 1 output[2]", STRUCTURE),
        ("dtype", "example call 1 output['x']", STRUCTURE),
    ]
    assert findings[0].message == "output[2]: expected tuple of length 2, got tuple of length 3"


def test_same_finding_of_many_calls_is_merged_at_the_place_of_the_first() -> None:
    calls = [call(tensor(worst_actual=str(index)), index=index) for index in range(1, 4)]
    (finding,) = output_findings(compared(call(equal()), *calls))
    assert finding.where == "example call 1 output and 2 more calls"
    assert finding.message.endswith("1.5 -> 1)")


def test_findings_of_other_paths_and_kinds_are_not_merged() -> None:
    findings = output_findings(
        compared(
            call(tensor(path="output[0]"), tensor(path="output[1]")),
            call(tensor(path="output[0]", nan_mismatches=1), index=1),
        )
    )
    assert [(item.kind, item.where) for item in findings] == [
        ("values", "example call 0 output[0]"),
        ("values", "example call 0 output[1]"),
        ("nan_placement", "example call 1 output[0]"),
    ]


def test_missing_calls_are_a_structure_finding_that_names_four_at_most() -> None:
    missing = tuple(("example", index) for index in range(6))
    (finding,) = output_findings(compared(missing_calls=missing))
    assert (finding.kind, finding.rule) == ("structure", STRUCTURE)
    assert finding.message.endswith("example call 0, example call 1, example call 2, example call 3")


@pytest.mark.parametrize(
    ("first", "later", "said", "was"),
    [
        (call(equal()), call(tensor(), index=1), "exact at call 0, off from call 1: output: off by", "values"),
        (
            call(tensor(max_abs=1e-9)),
            call(tensor(nan_mismatches=1), index=2),
            "fine at call 0, off from call 2",
            "nan_placement",
        ),
        (call(equal()), call(tree=(difference(),), index=3), "fine at call 0, off from call 3", "structure"),
    ],
)
def test_divergence_after_a_fine_first_call_is_a_kind_of_its_own(first: Any, later: Any, said: str, was: str) -> None:
    (found,) = output_findings(compared(first, later))
    assert (found.kind, found.detail["was"]) == ("late_divergence", was)
    assert found.message.startswith(said)
    assert status_of([found]) == "FAIL"


@pytest.mark.parametrize(
    "calls",
    [
        (call(equal()), call(equal(), index=1)),
        (call(tensor()), call(tensor(), index=1)),
        (call(tensor()), call(equal(), index=1)),
        (call(tree=(difference(),)), call(tensor(path="output[1]"), index=1)),
        (call(tree=(difference("output"),)), call(tensor(), index=1)),
        (call(equal(), input_set="other"), call(tensor(), index=1)),
    ],
    ids=["all fine", "always bad", "bad first only", "other structure first", "bad path", "first call of another set"],
)
def test_late_divergence_needs_a_fine_first_call_of_the_same_set_and_path(calls: tuple[Any, ...]) -> None:
    assert "late_divergence" not in [item.kind for item in output_findings(compared(*calls))]


def test_one_output_may_be_off_from_the_start_and_another_later() -> None:
    calls = (
        call(tensor(path="output[0]"), equal(path="output[1]")),
        call(tensor(path="output[0]"), tensor(path="output[1]"), index=1),
    )
    found = [(item.kind, item.where) for item in output_findings(compared(*calls))]
    assert found == [
        ("values", "example call 0 output[0] and 1 more calls"),
        ("late_divergence", "example call 1 output[1]"),
    ]


def test_nearer_to_float64_is_said_of_what_passes_and_of_what_fails() -> None:
    (closer,) = output_findings(compared(call(tensor(reference_old_abs=REACH, reference_new_abs=REACH / 2))))
    (equal_far,) = output_findings(compared(call(tensor(reference_old_abs=REACH, reference_new_abs=REACH))))
    (failed,) = output_findings(compared(call(tensor(reference_old_abs=0.3, reference_new_abs=0.1))))
    assert "closer to float64 than before (off 0.0001, before 0.0002)" in closer.message
    assert "no further from float64 than before" in equal_far.message
    assert "closer to float64 than before (off 0.1, before 0.3)" in failed.message
    assert (closer.detail["reference_old_abs"], closer.detail["reference_new_abs"]) == ("0.0002", "0.0001")


def test_a_head_that_ranks_otherwise_says_so() -> None:
    (found,) = output_findings(compared(call(tensor(top1_agreement=0.75, top5_agreement=1.0))))
    assert "the arg-max is another in 25.00% of the rows" in found.message
    assert (found.detail["top1_agreement"], found.detail["top5_agreement"]) == ("0.75", "1")


def test_what_fails_is_held_against_its_tolerance() -> None:
    excused = tensor(max_abs=2.0, noise_abs=3.0)
    beyond = beyond_tolerance(compared(call(tensor(), excused), call(tensor(max_abs=0.4), index=1)))
    assert beyond == Beyond(value=0.2, allowed=1e-5, is_ratio=False)  # of a largest value of 2, as findings say it
    assert beyond.factor == pytest.approx(20_000)
    assert beyond_tolerance(compared(call(excused, equal()))) is None


@pytest.mark.parametrize("changes", [{"nan_mismatches": 1}, {"inf_mismatches": 1}, {"tolerance_abs": 0.0}])
def test_what_no_tolerance_would_accept_is_beyond_none(changes: dict[str, Any]) -> None:
    assert beyond_tolerance(compared(call(tensor()), call(tensor(**changes), index=1))) is None


OFF, NAN = tensor(), tensor(nan_mismatches=1)


@pytest.mark.parametrize(
    ("comparison", "words", "worst"),
    [
        (compared(call(NAN, OFF, tree=(difference(),))), "structure", None),
        (compared(call(equal()), missing_calls=(("example", 1),)), "structure", None),
        (compared(call(NAN, OFF)), "NaN moved", None),
        (compared(call(equal()), call(OFF, index=1)), "off 1e-01", 0.1),
        (compared(call(tensor(max_abs=1.0, scale=1e6), tensor(max_abs=1e-3, scale=1e-2))), "off 1e-01", 0.1),
        (compared(call(equal())), "bit equal", 0.0),
        (compared(call(equal(), equal(sampled=True))), "sample equal", 0.0),
        (compared(call()), "same values", None),
        (compared(call(), replace(call(index=1), opaque=("output",))), "", None),
        (compared(), "", None),
    ],
)
def test_summary_says_the_worst_thing_relative_to_its_own_scale(
    comparison: OutputComparison, words: str, worst: float | None
) -> None:
    assert summary(comparison) == (words, worst if worst is None else pytest.approx(worst))


def test_changed_strides_are_reported_once_with_their_paths_and_fail_nothing() -> None:
    calls = [replace(call(equal(), index=index), stride_changes=("output[1]", "output[0]")) for index in (0, 1)]
    findings = output_findings(compared(*calls))
    assert [item.kind for item in findings] == ["stride"]
    assert "output[0], output[1]" in findings[0].message
    assert status_of(findings) == "PASS"


def test_object_without_a_value_is_reported_once_and_decides_nothing() -> None:
    calls = [replace(call(equal(), index=index), opaque=("output[1]", "output[0]")) for index in (0, 1)]
    (found,) = findings = output_findings(compared(*calls))
    assert (found.kind, found.rule) == ("not_decidable", STRUCTURE)
    assert found.message.startswith("output[0], output[1]: an object without a value on the wire")
    assert status_of(findings) == "INCONCLUSIVE"
