"""Histograms of errors in one line: where they begin, where they end, and for which findings they are drawn."""

from dataclasses import replace

import pytest

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.core.verdict import Finding
from harness.report.text.sparkline import error_lines, sparkline
from harness.report.words.red_cells import red_cells
from tests.unit.builders.rendered import render_console
from tests.unit.builders.reports import blocked

BINS = 12


def tensor(path: str = "output", **counts: int) -> TensorMetrics:
    """Return metrics with so many errors per bin, ``b0`` to ``b11``."""
    histogram = tuple(counts.get(f"b{index}", 0) for index in range(BINS))
    return TensorMetrics(
        path=path,
        dtype="float32",
        elements=sum(histogram),
        bit_equal=False,
        scale=2.0,
        tolerance_abs=2e-5,
        error_histogram=histogram,
    )


def compared(*tensors: TensorMetrics, scenario: str = "alone") -> tuple[OutputComparison, ...]:
    """Return one call with these tensors."""
    call = CallComparison(input_set="example", call=1, tensors=tensors)
    return (OutputComparison(model="m", scenario=scenario, calls=(call,)),)


def finding(kind: str = "values", path: str = "output", more: str = "", **detail: str) -> Finding:
    """Return a finding at a tensor."""
    return Finding(kind=kind, message="off", where=f"example call 1 {path}{more}", detail=detail)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"b0": 10, "b3": 1, "b4": 8, "b5": 4}, "1e-8 ▁█▄ 1e-5 of the largest value, tolerance 1e-5; 10 of 23 equal"),
        ({"b1": 5, "b3": 5}, "0 █.█ 1e-7 of the largest value, tolerance 1e-5; 0 of 10 equal"),
        ({"b10": 1, "b11": 2}, "1e-1 ▄█ up of the largest value, tolerance 1e-5; 0 of 3 equal"),
        ({"b2": 1_000_000, "b9": 1}, "1e-9 █......▁ 1e-1 of the largest value, tolerance 1e-5; 0 of 1000001 equal"),
    ],
)
def test_every_decade_with_an_error_shows(counts: dict[str, int], text: str) -> None:
    assert sparkline(tensor("output", **counts)) == text


def test_a_golden_of_zeros_has_no_tolerance() -> None:
    text = sparkline(replace(tensor(b0=1, b11=2), scale=0.0))
    assert text == "1 █ up of the largest value; 1 of 3 equal"


def test_the_tensor_is_found_by_the_place_of_the_finding() -> None:
    found = compared(tensor("output[0]", b3=1), tensor("output[1]", b5=1))
    assert error_lines([finding(path="output[1]", more=" and 7 more calls")], found, "alone") == (
        ("errors", "1e-6 █ 1e-5 of the largest value, tolerance 1e-5; 0 of 1 equal"),
    )


def test_several_tensors_are_named() -> None:
    found = compared(tensor("output[0]", b3=1), tensor("output[1]", b5=1))
    texts = [text for _, text in error_lines([finding(path="output[0]"), finding(path="output[1]")], found, "alone")]
    assert [text.split(" ")[0] for text in texts] == ["output[0]:", "output[1]:"]


@pytest.mark.parametrize("kind", ["values", "late_divergence", "race", "nan_placement", "closer_to_reference"])
def test_findings_about_numbers_have_a_histogram(kind: str) -> None:
    assert len(error_lines([finding(kind)], compared(tensor(b3=1)), "alone")) == 1


@pytest.mark.parametrize(
    "other",
    [
        finding("dtype"),
        finding("structure"),
        finding("hang"),
        finding("late_divergence", was="dtype"),
        finding(path="output[3]"),
    ],
)
def test_other_findings_have_none(other: Finding) -> None:
    assert error_lines([other], compared(tensor(b3=1)), "alone") == ()


def test_another_scenario_and_an_empty_histogram_say_nothing() -> None:
    assert error_lines([finding()], compared(tensor(b3=1), scenario="concurrent"), "alone") == ()
    assert error_lines([finding()], compared(replace(tensor(), error_histogram=())), "alone") == ()
    assert error_lines([finding()], compared(tensor(b0=5)), "alone") == ()


def test_a_red_cell_shows_blocks_in_full_and_ascii_on_the_terminal() -> None:
    cell = next(item for item in red_cells(blocked()) if item.model == "recommender_v2")
    assert dict(cell.lines)["errors"].startswith("1e-8 ▅█▂.▂▂ 1e-2 ")
    assert "1e-8 *@-.-- 1e-2 of" in render_console(blocked(), verbose=True)
