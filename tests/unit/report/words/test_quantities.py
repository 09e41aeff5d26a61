"""Times and memory: order, words, limits, and marks that agree with what policy tells."""

from dataclasses import replace

import pytest

from harness.core.measurement import LatencyMeasurement, Quantity
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.quantities import QUANTITIES as MEASURED
from harness.core.quantities import QUANTITY_LIMITS
from harness.core.verdict import CellVerdict, Finding
from harness.verdict.latency import judge_latency
from harness.report.words.quantities import COLUMNS, QuantityRow, limits_of, measured_lines, quantity_rows
from tests.unit.builders.reports import (
    QUANTITIES,
    SLOW_QUANTITIES,
    blocked,
    healthy,
    latency,
    quantity,
    ratio,
    slow,
    upgrade_ok,
    verdict,
)

MIB = 1 << 20


def measurement(quantities: dict[str, Quantity], growth_bytes: int | None = None) -> LatencyMeasurement:
    """Return a benchmark with a healthy steady call."""
    return replace(latency("m", ratio(1.004)), quantities=quantities, growth_bytes=growth_bytes)


def rows(quantities: dict[str, Quantity], growth_bytes: int | None = None) -> dict[str, QuantityRow]:
    """Return the rows by name."""
    return {row.name: row for row in quantity_rows(measurement(quantities, growth_bytes), QUANTITY_LIMITS)}


def lines(facts: LatencyMeasurement, *findings: Finding) -> dict[str, str]:
    """Return what the red cell of a model with this benchmark says."""
    model = replace(healthy("m"), latency=facts)
    return dict(measured_lines(verdict("m", "latency", Status.FAIL, *findings), model, QUANTITY_LIMITS))


def test_every_quantity_of_the_measurement_has_words_and_stands_in_the_order_of_a_models_life() -> None:
    turned = dict(reversed(list({**QUANTITIES, "unheard_of": quantity(1, 2)}.items())))
    found = quantity_rows(measurement(turned), QUANTITY_LIMITS)
    assert [row.name for row in found] == [*QUANTITIES, "unheard_of"]
    assert set(QUANTITY_LIMITS) <= set(COLUMNS)


def test_times_memory_calls_and_throughput_have_their_units() -> None:
    found = rows(QUANTITIES)
    assert found["load"].values == "118 -> 131 ms"
    assert found["peak_rss"].values == "39.3 MiB -> 40.9 MiB"
    assert found["growth"].values == "12 bytes -> -3 bytes"
    assert found["calls_until_steady"].values == "2 -> 2"
    assert found["request"].values == "1.09 -> 1.12 ms (917 -> 893 per s)"
    assert found["new_shape:large"].words == "first calls of input set large"


@pytest.mark.parametrize(("request_s", "rate"), [(3e-5, "33333"), (0.02, "50"), (0.3, "3.33")])
def test_throughput_has_no_exponent(request_s: float, rate: str) -> None:
    assert rows({"request": quantity(request_s, request_s)})["request"].values.endswith(f"({rate} -> {rate} per s)")


def test_what_has_no_ratio_shows_its_values_in_the_short_form() -> None:
    found = rows({"growth": quantity(0, 5 * MIB, "bytes", None)})["growth"]
    assert (found.change, found.limit, found.brief) == ("-", "-", "0 bytes -> 5 MiB")


def test_nothing_measured_is_no_row() -> None:
    assert rows({}) == {}


def test_the_p50_has_the_ratio_that_is_judged() -> None:
    assert rows(QUANTITIES)["p50"].change == ratio(1.004).words


def test_the_limits_of_the_run_win_over_the_defaults() -> None:
    assert limits_of(upgrade_ok()) == QUANTITY_LIMITS
    assert limits_of(blocked()) == {**QUANTITY_LIMITS, "load": 1.4, "steady": 1.03}


def test_the_steady_call_is_marked_where_policy_fails_it_and_not_where_another_quantity_is_gated() -> None:
    row, facts = slow()
    assert facts.latency is not None
    cell = row.cells[-1]
    gated = replace(cell, findings=(Finding(kind="latency", message="load time +70.3 %, told from +50 %"),))
    for judged, beyond in ((cell, True), (gated, False), (None, False)):
        marks = {found.name: found.beyond for found in quantity_rows(facts.latency, QUANTITY_LIMITS, judged)}
        assert marks["p50"] is beyond


def judged(found: LatencyMeasurement) -> CellVerdict:
    """Return what policy says."""
    return judge_latency("m", found, LatencyBudget(), PolicySettings())


@pytest.mark.parametrize(
    ("quantities", "growth_bytes", "beyond"),
    [
        (QUANTITIES, -600, ()),
        ({"load": quantity(0.1, 0.2)}, None, ("load",)),
        ({"load": quantity(0.001, 0.002)}, None, ()),
        ({"p99": quantity(0.1, 0.13, half=0.06)}, None, ()),
        ({"p99": quantity(1e-5, 1.4e-5)}, None, ("p99",)),
        ({"peak_rss": quantity(1 * MIB, 2 * MIB, "bytes")}, None, ()),
        ({"peak_rss": quantity(40 * MIB, 80 * MIB, "bytes")}, None, ("peak_rss",)),
        ({"growth": quantity(0, 4096, "bytes", None)}, 2 * MIB, ("growth",)),
        ({"growth": quantity(0, 4096, "bytes", None)}, MIB // 2, ()),
        (
            {"new_shape:s": quantity(0.02, 0.021), "recompilation:s": quantity(0.1, 30, "calls", None)},
            None,
            ("recompilation:s",),
        ),
        ({"new_shape:s": quantity(0.02, 0.021), "recompilation:s": quantity(25, 30, "calls", None)}, None, ()),
        ({"new_shape:s": quantity(1e-3, 1e-3), "recompilation:s": quantity(0, 30, "calls", None)}, None, ()),
        ({"replay": quantity(0.1, 0.2)}, None, ("replay",)),
    ],
)
def test_marks_agree_with_policy(
    quantities: dict[str, Quantity], growth_bytes: int | None, beyond: tuple[str, ...]
) -> None:
    found = measurement(quantities, growth_bytes)
    marked = [row.name for row in quantity_rows(found, QUANTITY_LIMITS) if row.beyond]
    told = [item for item in judged(found).findings if item.kind != "recompiles"]
    assert marked == list(beyond)
    assert len(told) == len(beyond)


def test_marks_agree_with_policy_where_much_is_beyond() -> None:
    found = measurement(SLOW_QUANTITIES, 9_100_000)
    marked = {row.name for row in quantity_rows(found, QUANTITY_LIMITS) if row.beyond}
    covered = {name for name in marked if name in MEASURED and MEASURED[name].covered_by in marked}
    assert len(judged(found).findings) == len(marked - covered)


def test_a_red_latency_tells_old_and_new_interval_confirmation_and_noise() -> None:
    found = lines(replace(measurement(QUANTITIES), confirmation=ratio(1.11)))
    assert found["measured"] == (
        "steady 2.12 -> 2.15 ms, +11.0 % [+9.8, +12.2] over 3 fresh process pairs; before these +0.4 % [-0.8, +1.6]; "
        "same against same +0.4 % [-0.9, +1.7]; detectable from +1.2 %"
    )


def test_what_the_finding_says_is_not_said_again() -> None:
    confirmed = replace(measurement(QUANTITIES), confirmation=ratio(1.11))
    message = "steady latency +0.4 % [-0.8, +1.6] (2.12 ms -> 2.15 ms); 3 fresh pairs say +11.0 % [+9.8, +12.2]"
    found = lines(confirmed, Finding(kind="latency", message=message))
    assert found["measured"] == "same against same +0.4 % [-0.9, +1.7]; detectable from +1.2 %"


def test_waiting_for_a_core_is_reported() -> None:
    assert "callers waited for a core 12 % of the time" in lines(replace(measurement({}), waited=0.12))["measured"]
    assert "waited" not in lines(measurement({}))["measured"]


def test_the_worst_beside_the_steady_call_are_reported_three_at_most_and_what_is_surely_more() -> None:
    found = lines(measurement(SLOW_QUANTITIES))["beside"].split("; ")
    assert [text.split(" ")[0] for text in found] == ["first", "peak", "load"]
    assert found[2] == "load 118 -> 201 ms, +70.3 % [+60.3, +80.3]"
    assert "beside" not in lines(measurement({"load": quantity(0.1, 0.11, half=0.2), "p90": quantity(0.1, 0.05)}))


def test_a_tail_is_reported_once() -> None:
    found = lines(measurement({"p90": quantity(0.1, 0.2), "p99": quantity(0.1, 0.3)}))["beside"]
    assert found.startswith("p90 of a call 100 -> 200 ms")
    assert "p99" not in found


def test_another_cell_and_a_model_without_a_benchmark_have_no_such_lines() -> None:
    assert measured_lines(verdict("m", "alone"), healthy("m"), {}) == []
    assert measured_lines(verdict("m", "latency"), replace(healthy("m"), latency=None), {}) == []
    assert measured_lines(verdict("m", "latency"), None, {}) == []
