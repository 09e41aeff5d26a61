"""One row per scenario and server group: rounds, who came through, how long it took, how much loading overlapped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.core.findings import SEVERITY
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeResult, Span
from harness.core.report import ScenarioReport
from harness.core.verdict import CellVerdict, Finding
from harness.probing.facts import Decided, GroupRun
from harness.apps.upgrade.report import scenarios as report_scenarios
from harness.apps.upgrade.report.scenarios import (
    HOW_TO_SERVE,
    fixed_size_notes,
    growth_notes,
    how_to_serve_notes,
    new_thread_notes,
    prefork_notes,
    scenario_reports,
)
from harness.checks.startup.rates import upper_bound
from harness.checks.startup.initialize import paired
from harness.serving.scenarios import CYCLES, INITIALIZATIONS, NEW_SIZES, NEW_THREADS
from tests.unit.builders.stages import known, near, planned, probed, result

SECOND_NS = 1_000_000_000
MB = 10**6


def spans(init_s: float = 1.0, threads: int = 1) -> tuple[Span, ...]:
    """Return the phases of threads that load all at once, each on a CPU of its own, and then call."""
    half = round(init_s / 2 * SECOND_NS)
    load = [Span(phase="load", begin_ns=0, end_ns=half, thread=index, cpu_ns=half) for index in range(threads)]
    return (
        *load,
        Span(phase="call", begin_ns=half, end_ns=2 * half),
        Span(phase="import", begin_ns=0, end_ns=99 * half),
    )


def came_through(init_s: float = 1.0, threads: int = 1, **changes: Any) -> ProbeResult:
    return probed(result("a"), result("b"), spans=spans(init_s, threads), **changes)


def hung(model: str = "a", outcome: Outcome = Outcome.HANG) -> ProbeResult:
    others = [result(name, Outcome.NOT_RUN) for name in ("a", "b") if name != model]
    return probed(result(model, outcome), *others, outcome=outcome, spans=spans(99.0, 9))


def run(*rounds: Sequence[ProbeResult], scenario: str = "concurrent", side: str = "new", group: str = "g") -> GroupRun:
    return GroupRun(scenario=scenario, group=group, side=side, members=("a", "b"), rounds=tuple(map(tuple, rounds)))


def facts_of(*runs: GroupRun, **changes: Any) -> Decided:
    scenarios = ("alone", *INITIALIZATIONS, "latency")
    plan = planned("a", "b", scenarios=scenarios, settings={"init_threads": 3})
    return replace(known(plan), group_runs=runs, initialized=paired(runs), **changes)


def only(*runs: GroupRun) -> ScenarioReport:
    (report,) = scenario_reports(facts_of(*runs))
    return report


def test_rounds_failures_and_who_came_through() -> None:
    found = only(run([came_through()], [hung("a"), probed(result("b"))], [came_through()]))
    assert (found.new.rounds, found.new.failed, found.new.ready) == (3, 1, 1)
    assert (found.scenario, found.group, found.models, found.old) == ("concurrent", "g", 2, None)
    assert found.hang_bound == near(upper_bound(1, 3))


@pytest.mark.parametrize(("rounds", "threads"), [((1,), 1), ((2, 3, 2), 3)])
def test_threads_are_those_that_were_seen_and_not_those_that_were_configured(
    rounds: tuple[int, ...], threads: int
) -> None:
    assert only(run(*([came_through(threads=each)] for each in rounds))).threads == threads


@pytest.mark.parametrize("unclear", [Outcome.STARVED, Outcome.PROTOCOL_ERROR])
def test_round_that_says_nothing_counts_for_nothing(unclear: Outcome) -> None:
    found = only(run([hung("a", unclear)], [came_through()], [hung()]))
    assert (found.new.rounds, found.new.failed) == (2, 1)
    assert found.hang_bound == near(upper_bound(1, 2))


def test_worker_is_named() -> None:
    (found,) = scenario_reports(facts_of(run([came_through()]), worker="libtorch"))
    assert found.worker == "libtorch"


def test_old_release_stands_beside_the_new_one_and_bounds_nothing() -> None:
    found = only(run([came_through()]), run([hung()], side="old"))
    assert found.old is not None
    assert (found.old.rounds, found.old.failed, found.new.failed) == (1, 1, 0)
    assert found.hang_bound == near(0.95)


@pytest.mark.parametrize(("scenario", "within"), [("while_serving", 1), ("reinit", CYCLES)])
def test_rounds_within_a_process_count_where_it_came_to_its_end(scenario: str, within: int) -> None:
    found = only(run([came_through()], [came_through()], [hung()], scenario=scenario))
    assert (found.new.rounds, found.new.failed) == (2 * within + 1, 1)
    assert found.hang_bound == near(upper_bound(1, 2 * within + 1))


def test_rounds_of_processes_are_rounds_and_not_processes() -> None:
    found = only(run([came_through(), came_through(), hung()], [came_through()] * 3, scenario="processes"))
    assert (found.new.rounds, found.new.failed) == (2, 1)


def test_time_and_overlap_are_medians_of_the_rounds_that_nothing_ended_early() -> None:
    rounds = [came_through(1.0, 2)], [came_through(3.0, 2)], [came_through(2.0, 2)], [hung()]
    new = only(run(*rounds)).new
    assert (new.init_s, new.load_overlap) == (near(2.0), near(2.0))


def test_threads_one_after_another_do_not_overlap() -> None:
    assert only(run([came_through(1.0, 1)])).new.load_overlap == near(1.0)


def test_second_attempt_of_a_round_is_a_smaller_group_and_not_timed() -> None:
    new = only(run([hung("a"), came_through(0.1)])).new
    assert (new.init_s, new.load_overlap) == (None, None)


def test_model_that_raised_leaves_nothing_to_time() -> None:
    probe = probed(result("a", Outcome.RUNTIME_ERROR), result("b"), spans=spans())
    new = only(run([probe])).new
    assert (new.failed, new.ready, new.init_s) == (1, 1, None)


def test_largest_memory_of_a_process() -> None:
    new = only(run([came_through(max_rss_bytes=5)], [came_through(max_rss_bytes=9)], [came_through()])).new
    assert new.max_rss_bytes == 9
    assert only(run([came_through()])).new.max_rss_bytes is None


def cycles(*sizes: int, threads: int = 1) -> ProbeResult:
    return came_through(memory=tuple((f"cycle {index}", size, threads) for index, size in enumerate(sizes)))


def test_growth_is_that_of_the_cycles_after_the_first() -> None:
    found = only(
        run([cycles(0, 1000, 1100, 1200)], scenario="reinit"), run([cycles(0, 7, 7, 7)], scenario="reinit", side="old")
    )
    assert found.old is not None
    assert (found.new.growth_bytes, found.old.growth_bytes) == (near(100.0), near(0.0))
    assert only(run([came_through()])).new.growth_bytes is None


@pytest.mark.parametrize(
    ("scenario", "each"), [("rolling", 1), ("thread_per_request", NEW_THREADS), ("growing_shapes", NEW_SIZES)]
)
def test_growth_is_that_of_one_update_new_thread_or_new_size(scenario: str, each: int) -> None:
    found = only(run([cycles(0, 4800, 9600, 14400, threads=7)], scenario=scenario))
    assert (found.new.growth_bytes, found.new.os_threads) == (near(4800 / each), 7)


def test_rows_come_in_the_order_of_the_plan_and_then_of_the_groups() -> None:
    runs = [
        run([came_through()], scenario=scenario, group=group)
        for scenario, group in (("reinit", "b"), ("reinit", "a"), ("concurrent", "z"), ("sequential", "m"))
    ]
    found = scenario_reports(facts_of(*runs))
    assert [(item.scenario, item.group) for item in found] == [
        ("sequential", "m"),
        ("concurrent", "z"),
        ("reinit", "a"),
        ("reinit", "b"),
    ]


def test_groups_are_paired_by_name() -> None:
    runs = [run([came_through()], group="x"), run([came_through()], group="y"), run([hung()], group="y", side="old")]
    assert {item.group: item.old is not None for item in scenario_reports(facts_of(*runs))} == {"x": False, "y": True}


# growth in words


def growing(new_mb: float | None, old_mb: float | None) -> tuple[str, ...]:
    def cycle(slope: float | None) -> ProbeResult:
        return came_through() if slope is None else cycles(*(round(slope * MB * index) for index in range(6)))

    rounds: Mapping[str, float | None] = {"new": new_mb, "old": old_mb}
    return growth_notes([only(*(run([cycle(slope)], scenario="reinit", side=side) for side, slope in rounds.items()))])


@pytest.mark.parametrize(("new_mb", "old_mb"), [(None, None), (3.9, 0.0), (19.0, 10.0), (-50.0, 0.0), (10.0, 5.5)])
def test_habit_of_the_allocator_and_what_grew_before_is_no_news(new_mb: float | None, old_mb: float | None) -> None:
    assert growing(new_mb, old_mb) == ()


@pytest.mark.parametrize(
    ("new_mb", "old_mb", "before"), [(5.0, 0.0, "0.0 MB"), (21.0, 10.0, "10.0 MB"), (5.0, None, "unknown")]
)
def test_memory_that_grows_more_than_before_is_reported(new_mb: float, old_mb: float | None, before: str) -> None:
    (note,) = growing(new_mb, old_mb)
    assert f"{new_mb:.1f} MB" in note
    assert note.endswith(before)
    assert note.startswith("g: ")


def test_limit_and_words_of_growth_are_those_of_one_new_size() -> None:
    def told(mb_per_size: float) -> tuple[str, ...]:
        sizes = (round(mb_per_size * NEW_SIZES * MB * index) for index in range(6))
        return growth_notes([only(run([cycles(*sizes)], scenario="growing_shapes"))])

    assert told(3.9 / NEW_SIZES) == ()
    assert told(4.2 / NEW_SIZES) == (
        "g: memory grows by 0.7 MB with every new size in growing shapes in the new release; in the old one: unknown",
    )


@pytest.mark.parametrize("old", [True, False])
def test_threads_and_memory_of_new_threads_are_reported_for_both_releases(old: bool) -> None:
    name = "thread_per_connection"
    rounds = [run([cycles(*(index * 16 * MB for index in range(6)), threads=203)], scenario=name)]
    rounds += [run([cycles(*[MB] * 6, threads=107)], scenario=name, side="old")] if old else []
    before = "; in the old one: 107 threads and +0.00 MB each" if old else ""
    assert new_thread_notes([only(*rounds)]) == (
        f"g: after 96 new threads of connection threads the process has 203 threads and +1.00 MB each in the new release"
        f"{before}",
    )
    assert new_thread_notes([only(run([cycles(1, 2, 3)], scenario="reinit"))]) == ()


def test_models_of_one_size_are_named_where_larger_ones_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_scenarios, "takes_part", lambda scenario, name, _: name != "a")
    monkeypatch.setattr(report_scenarios, "works_alone", lambda name, _: True)
    facts = facts_of(run([came_through()]), alone={"a": probed(result("a")), "b": probed(result("b"))})
    (note,) = fixed_size_notes(facts)
    assert note.startswith("growing shapes: not asked of a: no dimension differs between the input sets")


@pytest.mark.parametrize(
    ("scenario", "threads", "said"),
    [("prefork", 1, True), ("prefork_cold", 1, True), ("prefork", 2, False), ("exit", 1, False)],
)
def test_fork_with_pools_of_one_thread_says_what_it_has_not_asked(scenario: str, threads: int, *, said: bool) -> None:
    notes = prefork_notes([only(run([came_through()], scenario=scenario))], threads)
    assert bool(notes) is said
    assert not said or "serving.intra_op_threads = 2" in notes[0]


def served(model: str, scenario: str, status: Status, kind: str) -> CellVerdict:
    finding = Finding(kind=kind, message="")
    return CellVerdict(cell=f"{model}/{scenario}", model=model, scenario=scenario, status=status, findings=(finding,))


def test_how_models_must_be_served_is_told_once_with_their_names() -> None:
    cells = [
        served("a", "shared", Status.SAME_FAIL, "shared_state"),
        served("a", "growing_shapes", Status.SAME_FAIL, "shared_state"),
        served("b", "shared", Status.SAME_FAIL, "shared_state"),
        served("c", "concurrent", Status.PASS, "shared_generator"),
        served("d", "exit", Status.FAIL, "exit_crash"),
    ]
    assert how_to_serve_notes(cells) == (
        "models that keep state between calls in both releases, and must not be shared by threads: a, b",
        "models that draw random numbers, whose values and shapes are not compared beside others: c",
    )
    assert set(HOW_TO_SERVE) <= set(SEVERITY)
