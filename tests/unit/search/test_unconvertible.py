"""Of which artifacts a smallest part is looked for, and how it is told."""

from dataclasses import replace

import pytest

from harness.checks.migration.facts import Tried
from harness.core.models import InputSet
from harness.core.outcome import Outcome
from harness.search.unconvertible import stops_in_converter
from harness.verdict.migration import causes_of, judge
from tests.unit.builders.migrations import blocked, taken_apart
from tests.unit.verdict.test_migration import READY, SETS, refused, result

METHODS = replace(READY, input_sets=(SETS[0], InputSet(name="other", method="score")))


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        (refused("ValueError: two shapes", kind="prim::If", source="m.py:1", code="", reason="two shapes"), True),
        (refused("RuntimeError: INTERNAL ASSERT FAILED"), True),
        (refused("NoConverter: torch 2.1.2 has none"), False),  # another release is needed
        (METHODS, False),  # forward alone is converted
        (READY, False),
    ],
)
def test_a_part_is_looked_for_where_the_conversion_of_forward_has_failed(tried: Tried, expected: bool) -> None:
    assert stops_in_converter(judge(tried)) is expected


def test_what_does_not_load_as_torchscript_is_no_matter_of_conversion() -> None:
    tried = refused("RuntimeError: unknown operator")
    assert tried.conversion is not None
    failed = result(Outcome.LOAD_ERROR, "RuntimeError: unknown operator", "load")
    assert not stops_in_converter(judge(replace(tried, conversion=replace(tried.conversion, models=(failed,)))))


def test_a_cause_tells_the_smallest_part_of_the_one_that_was_taken_apart() -> None:
    (cause,) = causes_of([blocked(), taken_apart()])
    evidence = dict(cause.evidence)
    assert evidence["smallest"] == "prim::If at models/tagger.py:12: probes/e5004cd4/extracted.pt"
    assert evidence["script"] == "reproducers/1-router_prim_If/reproduce.py"
    (without,) = causes_of([blocked()])
    assert without.fix == "torch.where(condition, a, b) for values"
    assert not {"smallest", "script", "price"} & set(dict(without.evidence))
