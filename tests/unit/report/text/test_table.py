"""The table of models: order, pairing, width, and what was not measured."""

from dataclasses import replace


from harness.core.outcome import Decision, Status
from harness.core.report import RunReport
from harness.core.verdict import Judgement, RowVerdict
from harness.report.text.table import COLUMNS, columns, not_measured, row_cells, table_rows, timed_in
from tests.unit.builders.rendered import render_console
from tests.unit.builders.reports import blocked, build, healthy, latency, migrating, ratio, upgrade_ok


def with_statuses(*statuses: Status) -> RunReport:
    """Return a report with one row per status, named after it."""
    rows = tuple(RowVerdict(model=f"m_{status.value}", status=status, cells=()) for status in statuses)
    judgement = Judgement(decision=Decision.BLOCKED, reason="", exit_code=1, rows=rows)
    return build(judgement, tuple(healthy(row.model) for row in rows))


def test_red_rows_stand_first() -> None:
    rows = table_rows(with_statuses(*reversed(Status), Status.PASS))
    order = ["FAIL", "XPASS", "INCONCLUSIVE", "SAME_FAIL", "UNSUPPORTED", "XFAIL", "PASS"]
    assert [row.status_word for row in rows] == order


def test_rows_of_one_status_are_sorted_by_name() -> None:
    assert [row.model for row in table_rows(blocked())][:4] == [
        "fused_ranker",
        "legacy_lstm",
        "recommender_v2",
        "text_tagger",
    ]


def test_a_model_that_nobody_judged_is_shown_first() -> None:
    report = upgrade_ok()
    row = table_rows(replace(report, models=(*report.models, healthy("forgotten"))))[0]
    assert (row.model, row.status, row.status_word) == ("forgotten", None, "no verdict")


def test_a_verdict_without_facts_shows_nothing_as_measured() -> None:
    row = table_rows(replace(upgrade_ok(), models=()))[0]
    assert row_cells(row, compact=True) == ("detector", *["-"] * 7, "PASS")


def test_each_column_says_how_often_it_was_not_measured() -> None:
    assert not_measured(table_rows(upgrade_ok())) == ""
    assert not_measured(table_rows(blocked())) == (
        "init 2 of 6, outputs 2 of 6, load time 1 of 6, first calls 2 of 6, steady latency 3 of 6"
    )
    assert not_measured(table_rows(replace(upgrade_ok(), models=()))).endswith("steady latency all 3")
    assert not_measured(()) == ""


def test_the_worker_that_was_timed_is_named() -> None:
    report = upgrade_ok()
    assert timed_in(table_rows(report)) == "3 of 3 timed, in the Python worker"
    assert timed_in(table_rows(replace(report, models=()))) == ""
    first = report.models[0]
    assert first.latency is not None
    native = replace(first, latency=replace(first.latency, runtime="libtorch"))
    assert timed_in(table_rows(replace(report, models=(native,)))) == "1 of 3 timed, in the C++ worker"


def test_miniatures_have_no_times_and_that_is_said_once() -> None:
    report = upgrade_ok()
    untimed = replace(healthy("miniature"), timed=False, latency=None, load_s=None, first_calls_s=None)
    said = not_measured(table_rows(replace(report, models=(*report.models, untimed))))
    assert said == "times of 1 (not timed: miniatures)"
    nothing = [replace(model, latency=None, load_s=None, first_calls_s=None) for model in report.models]
    said = not_measured(table_rows(replace(report, models=(*nothing, untimed))))
    assert said == "load time all 4, first calls all 4, steady latency all 4"


def test_the_factor_of_a_load_is_that_of_the_benchmark_with_medians_and_without() -> None:
    report = upgrade_ok()
    rows = table_rows(replace(report, models=tuple(replace(model, load_s=None) for model in report.models)))
    assert row_cells(rows[0], compact=False)[5] == "x1.11"
    swapped = tuple(replace(model, load_s=(0.2, 0.1)) for model in report.models)
    rows = table_rows(replace(report, models=swapped))
    assert row_cells(rows[0], compact=False)[5] == "200 -> 100 ms" and row_cells(rows[0], compact=True)[5] == "x1.11"


def test_a_run_that_was_asked_says_in_one_more_column_which_models_could_leave_torchscript() -> None:
    rows = table_rows(migrating())
    assert columns(rows) == (*COLUMNS[:-1], "migrate", "status")
    said = {row.model: [row_cells(row, compact=compact)[-2] for compact in (False, True)] for row in rows}
    assert said["model_1"] == ["not convertible", "no"]
    assert said["model_5"] == ["guarded", "guarded"]
    assert said["model_6"] == ["ready", "ready"]
    assert said["model_7"] == ["has left", "left"]
    assert columns(table_rows(upgrade_ok())) == columns(()) == COLUMNS
    migration = migrating().migration
    assert migration is not None
    no_converter = replace(migrating(), migration=replace(migration, why_not="torch 2.1.2 has no converter"))
    assert columns(table_rows(no_converter)) == COLUMNS


def test_a_steady_latency_that_passes_only_by_the_floor_is_marked() -> None:
    """A call takes 2.12 ms: at most +4 % are 85 us."""
    report = upgrade_ok()
    first = replace(report.models[0], latency=latency(report.models[0].model, ratio(1.02, 0.02)))
    report = replace(report, models=(first, *report.models[1:]), limits={"steady": 1.03})

    def marked(floor_s: float) -> tuple[int, bool]:
        shown = replace(report, policy=replace(report.policy, floor_s=floor_s))
        words = "decided by time: slower by less than" in render_console(shown, width=100)
        return sum(row_cells(row, compact=False)[7].endswith(" ~") for row in table_rows(shown)), words

    assert marked(100e-6) == (1, True)
    assert marked(50e-6) == (0, False)
