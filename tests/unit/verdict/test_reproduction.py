"""What a reproducer looks for, and which reference tells a slow release from a fast one."""

import math

import pytest

from harness.verdict.reproduction import confirms, looked_for, looked_for_in, telling_ratio
from harness.core.diagnosis import NodeFault, Symptom, TracedNode
from harness.core.measurement import RatioEstimate
from harness.core.probe import Failure
from tests.unit.builders.verdicts import ratio

ERROR = Failure(
    type="ValueError", message="The following operation failed\nRuntimeError: no", phase="call", input_set="a", call=1
)


def test_every_symptom_has_a_word() -> None:
    assert {looked_for(symptom, ERROR)["what"] for symptom in Symptom} == {
        "hang",
        "crash",
        "error",
        "memory",
        "values",
        "latency",
    }


def test_an_error_is_told_by_phase_type_and_telling_line() -> None:
    found = looked_for(Symptom.ERROR, ERROR)
    assert found == {"what": "error", "phase": "call", "type": "ValueError", "text": "no"}


@pytest.mark.parametrize(("symptom", "failure"), [(None, None), (None, ERROR), (Symptom.ERROR, None)])
def test_without_a_known_failure_any_deviation_counts(symptom: Symptom | None, failure: Failure | None) -> None:
    assert looked_for(symptom, failure) == {"what": "any"}


@pytest.mark.parametrize(
    ("kinds", "error", "expected"),
    [
        (("values",), "", {"what": "values"}),
        (("nan_placement", "values"), "", {"what": "values"}),
        (("ended",), "", {"what": "any"}),
        (
            ("call_error",),
            "RuntimeError: no kernel\nfor Long",
            {"what": "error", "phase": "call", "type": "RuntimeError", "text": "no kernel"},
        ),
        (("call_error",), "", {"what": "any"}),  # it raised before, and does not now
    ],
)
def test_an_operators_reproducer_looks_for_what_was_found_of_it(
    kinds: tuple[str, ...], error: str, expected: dict[str, str]
) -> None:
    node = TracedNode(place=(1,), kind="aten::op", error=error)
    assert looked_for_in(NodeFault(node=node, what=("off",), kinds=kinds)) == expected


def test_the_reference_that_tells_most_is_taken() -> None:
    old = {"call": 1.0, "unoptimised call": 2.0, "yardstick": 0.1}
    new = {"call": 4.0, "unoptimised call": 2.0, "yardstick": 0.2}
    assert telling_ratio(old, new, ratio(3.5, 4.5)) == {"reference": "unoptimised call", "good": 0.5, "bad": 2.0}


def test_where_everything_slows_down_alike_nothing_tells() -> None:
    old = {"call": 1.0, "unoptimised call": 2.0, "yardstick": 0.1}
    run = ratio(2.9, 3.1)
    assert telling_ratio(old, {name: 3 * seconds for name, seconds in old.items()}, run) is None
    assert telling_ratio(old, {}, run) is None
    assert telling_ratio({}, {}, run) is None


@pytest.mark.parametrize(
    ("call", "yardstick", "run", "tells"),
    [
        (4.0, 0.1, ratio(3.9, 4.1), True),
        (1.82, 0.1, ratio(1.04, 1.06), False),  # something else is slower than what the run timed
        (1.05, 0.05, ratio(1.04, 1.06), False),  # it is the reference that became quicker
        (4.0, 0.1, ratio(1.1, 300.0, value=20.0), True),  # a busy machine: it speaks for nothing else
        (4.0, 0.1, ratio(0.9, 300.0, value=20.0), False),
        (4.0, 0.1, ratio(0.0, math.inf, value=4.0, pairs=1), False),
        (4.0, 0.1, None, False),
    ],
)
def test_a_ratio_tells_only_where_it_is_that_of_the_run(
    call: float, yardstick: float, run: RatioEstimate | None, tells: bool
) -> None:
    old = {"call": 1.0, "yardstick": 0.1}
    assert (telling_ratio(old, {"call": call, "yardstick": yardstick}, run) is not None) == tells


LOADING = {"what": "error", "phase": "load", "type": "RuntimeError", "text": "no file /a/b"}


@pytest.mark.parametrize(
    ("symptom", "seen", "shown"),
    [
        ({"what": "hang"}, {"how": "hang", "said": ""}, True),
        ({"what": "hang"}, {"how": "end", "said": ""}, False),
        ({"what": "crash"}, {"how": "crash", "said": ""}, True),
        ({"what": "crash"}, {"how": "error", "said": ""}, False),
        (LOADING, {"how": "error", "said": "RuntimeError: no file /c/d"}, True),
        (LOADING, {"how": "error", "said": "another"}, False),
        (LOADING, {"how": "error", "said": "SyntaxError: no file"}, False),
        ({**LOADING, "text": "/a/b"}, {"how": "error", "said": "RuntimeError: another"}, False),
        (
            {"what": "values"},
            {"how": "end", "old": "0 tensor([1.0000, 2.0000])", "said": "0 tensor([1.0000, 2.1000])"},
            True,
        ),
        (
            {"what": "values"},
            {"how": "end", "old": "0 tensor([1.0000, 2.0000])", "said": "0 tensor([1.0001, 2.0000])"},
            False,
        ),
        ({"what": "values"}, {"how": "end", "old": "0 tensor([1.0000])", "said": "0 tensor([1.0000, 3.0000])"}, False),
        ({"what": "values"}, {"how": "end", "old": "", "said": ""}, False),
        ({"what": "latency"}, {"how": "end", "said": ""}, False),
        ({"what": "any"}, {"how": "error", "said": ""}, False),
        ({"what": "any"}, {"how": "error", "said": "", "old_how": "error", "old": ""}, False),
        ({"what": "any"}, {"how": "error", "said": "", "old_how": "end", "old": ""}, True),
        ({"what": "any"}, {"how": "end", "said": "tensor([233])", "old_how": "end", "old": "tensor([219])"}, True),
        ({"what": "any"}, {"how": "end", "said": "tensor([233])", "old_how": "end", "old": "tensor([233])"}, False),
    ],
)
def test_a_program_without_a_watchdog_confirms_what_it_shows(
    symptom: dict[str, str], seen: dict[str, str], shown: bool
) -> None:
    assert confirms(symptom, seen) is shown
