"""Opinions on inputs changed in place and on shared memory."""

from dataclasses import replace
from typing import Any

import pytest

from harness.correctness.judging import PATHS_SHOWN, output_findings, summary
from harness.domain.findings import status_of
from tests.unit.builders.verdicts import call, compared, equal, tensor


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
