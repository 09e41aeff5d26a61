"""Charts: what is drawn where, and what is left out."""

import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from harness.core.outcome import Outcome
from harness.report.charts.svg import Scale, element, hint, text, ticks
from harness.report.charts.timeline_chart import common_end, timeline_chart
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.pages import span, timeline


def drawn(markup: str) -> ElementTree.Element:
    """Return the drawing as a tree; it must be well-formed and stay within its frame."""
    root = ElementTree.fromstring(markup)
    _, _, width, height = map(float, str(root.get("viewBox")).split())
    for item in root.iter():
        for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            assert -1 <= float(item.get(name, 0)) <= most + 1, (item.tag, item.attrib)
        assert "nan" not in item.get("d", "") and "inf" not in item.get("d", "")
    return root


def classes(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [item for item in root.iter() if name in str(item.get("class", "")).split()]


def titles(root: ElementTree.Element) -> list[str]:
    return [str(item.text) for item in root.iter() if item.tag == "title"]


def test_texts_and_attributes_are_escaped() -> None:
    for name in HOSTILE_NAMES:
        ElementTree.fromstring(element("g", text(name, 0, 0), hint(name), aria_label=name))
    assert "<script>" not in text("<script>", 0, 0)


def test_a_scale_keeps_what_lies_outside_at_its_ends() -> None:
    across = Scale(0, 10, 100, 200)
    assert [across(value) for value in (-1, 0, 5, 10, 99)] == [100, 100, 150, 200, 200]
    assert across(math.nan) == 200 and Scale(1, 1, 0, 9)(1) == 9


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.97, 1.31), (0.0, 1e-7), (0.0, 3600.0)])
def test_ticks_are_round_few_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)


def test_ticks_of_nothing_are_none() -> None:
    assert not ticks(1.0, 1.0) and not ticks(0.0, math.inf)


def test_a_lane_per_thread_and_what_never_ended_is_marked() -> None:
    root = drawn(timeline_chart(timeline("new", threads=3, stuck=True)))
    names = [str(item.text) for item in root.iter() if item.tag == "text"]
    assert [name for name in names if name.startswith("thread")] == ["thread 0", "thread 1", "thread 2"]
    assert "ranker#2: call never ended" in names
    assert len(classes(root, "stuck")) == 1 and len(classes(root, "load")) == 3
    assert titles(root)[0] == "ranker#0: load, 40.0 ms"


def test_a_crash_says_so() -> None:
    crashed = replace(timeline("new", stuck=True), outcome=Outcome.CRASH)
    assert "ranker#1: call crashed here" in timeline_chart(crashed)


def test_phases_that_no_eye_can_tell_apart_are_one_shape() -> None:
    many = tuple(span("call", at, at + 0.9) for at in range(1000))
    few = (span("call", 0, 100), span("call", 900, 1000))
    assert timeline_chart(replace(timeline(), spans=many)).count("h-") == 1
    assert timeline_chart(replace(timeline(), spans=few)).count("h-") == 2
    assert timeline_chart(replace(timeline(), spans=())) == ""


def test_both_releases_share_an_axis_unless_one_would_be_a_sliver() -> None:
    assert common_end((timeline(), timeline())) == 120_000_000
    assert common_end((timeline(), timeline(stuck=True))) == 0
    assert common_end(()) == 0
