"""A quantity that is surely over its limit and does not block: what every format says of it, and how models are counted."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from harness.verdict.causes import with_causes
from harness.verdict.counting import counts_of, exceeded, row_word
from harness.verdict.decide import decide, judge_row
from harness.core.measurement import Quantity
from harness.core.outcome import Decision, Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Finding, RowVerdict
from harness.verdict.latency import judge_latency
from harness.report.ci.annotations import render_annotations
from harness.report.ci.comment import render_comment
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.ci.sarif import render_run_sarif
from harness.report.ci.spreadsheet import render_csv
from harness.report.json.report import dump_report, load_report
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_html
from tests.unit.builders.rendered import render_console
from harness.report.words.summary import headline
from tests.unit.builders.reports import healthy, upgrade_ok
from tests.unit.builders.verdicts import cell_id, measured, planted_defect, ratio

QUIET, OPEN = ratio(0.99, 1.01), ratio(0.99, 1.08)
SLOW = Quantity(old=4e-3, new=4.7e-3, ratio=ratio(1.151, 1.198, 1.174))
SAID = "served: time per request +17.4 %, limit +10 %"


def timed(model: str, steady: object = QUIET, *, confirmed: bool = True, **changes: PolicySettings) -> RowVerdict:
    """The row of a model whose throughput is over its limit; of one called other, of a model that is as it was."""
    beside = {"request": SLOW} if model.startswith("served") else {}
    fresh = beside if confirmed else {}
    found = measured(steady, quantities=beside, fresh_quantities=fresh)  # type: ignore[arg-type]
    settings = changes.get("settings", PolicySettings())
    cell = judge_latency(model, found, LatencyBudget(), settings)
    alone = CellVerdict(cell=cell_id(model), model=model, scenario="alone", status=Status.PASS)
    return judge_row(model, [alone, cell])


def run_of(*rows: RowVerdict, **more: object) -> RunReport:
    judged = decide(rows, [planted_defect()], **more)  # type: ignore[arg-type]
    plain = replace(upgrade_ok(), models=tuple(healthy(row.model) for row in rows), judgement=judged, rerun={})
    return with_causes(replace(plain, scenarios=(), notes=()))


def of_a_run() -> RunReport:
    """77 models and one: throughput of one is over, the latency of another is undecided."""
    return run_of(timed("served"), timed("other_open", OPEN), *(timed(f"other_{at}") for at in range(76)))


def test_the_decision_names_what_is_over_its_limit() -> None:
    report = of_a_run()
    judged = report.judgement
    assert (judged.decision, judged.exit_code, judged.exceeded) == (Decision.UPGRADE_OK, 0, (SAID,))
    assert headline(report) == f"UPGRADE OK, but {SAID}"
    passing = "76 models pass, 1 over a limit that does not block, 1 undecided (latency of 1 not decided)"
    assert judged.reason == f"{passing}; over its limit: {SAID}"


def test_every_format_says_it() -> None:
    report = of_a_run()
    page = render_html(report)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert f"but {SAID}" in text and "Nothing needs you" not in text
    console = render_console(report, width=80)
    assert console.splitlines()[-2:] == ["(exit code 0: compatible)", f"UPGRADE OK, but {SAID}"]
    assert "OVER LIMIT  served: time per request of callers at once is beyond its limit" in console
    assert f"UPGRADE OK, but {SAID}" in render_comment(report)
    (result,) = json.loads(render_run_sarif(report))["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("warning", "limit")
    assert "+17.4 % [+15.1, +19.8]" in result["message"]["text"]
    assert f"but {SAID}" in render_junit(report)
    assert SAID in render_ctrf(report, directory="", places={})
    assert f"but {SAID}" in render_markdown(report)
    assert "::warning" in render_annotations(report, places={})


def test_the_badge_beside_a_quantity_is_its_own() -> None:
    row = timed("served", OPEN)
    report = run_of(row, timed("other"))
    first = render_html(report).partition('id="board-worst"')[2].partition("</section>")[0]
    assert "undecided" not in first and ">over limit<" in first if "served" in first else True
    assert row_word(row) == "over limit" and row.status is Status.PASS


COUNTS = {"over limit": 1, "undecided": 1, "PASS": 76}


def _of_page(report: RunReport) -> dict[str, int]:
    found = re.findall(r'data-status="([^"]*)"><b>(\d+)</b>', render_html(report))
    return {word: int(number) for word, number in found}


def _of_words(text: str, begin: str) -> dict[str, int]:
    line = next(line for line in text.splitlines() if begin in line).partition(begin)[2]
    return {word: int(number) for number, word in re.findall(r"(\d+) (over limit|undecided|[A-Z_]{4,})", line)}


def test_models_count_as_the_same_in_every_format() -> None:
    report = of_a_run()
    assert report.judgement.counts == counts_of(report.judgement.rows) == COUNTS
    assert json.loads(dump_report(report))["judgement"]["counts"] == COUNTS
    assert _of_page(report) == COUNTS
    assert _of_words(render_console(report), "models  ") == COUNTS
    assert _of_words(render_console(report, verbose=True), "models  ") == COUNTS
    assert _of_words(render_markdown(report), "models**") == COUNTS
    assert _of_words(render_comment(report), "models**") == COUNTS
    metrics = dict(re.findall(r'^torchscript_gate_models\{status="([^"]*)"\} (\d+)', render_openmetrics(report), re.M))
    assert {word: int(number) for word, number in metrics.items() if number != "0"} == COUNTS


def test_a_cell_that_is_open_and_decides_nothing_is_undecided_in_every_format() -> None:
    report = run_of(timed("other_open", OPEN), timed("other"))
    assert "INCONCLUSIVE" not in render_junit(report)
    assert 'rawStatus": "INCONCLUSIVE' not in render_ctrf(report, directory="", places={})
    rows = list(csv.DictReader(io.StringIO(render_csv(report))))
    assert sorted(row["status"] for row in rows) == ["PASS", "PASS", "PASS", "undecided"]
    assert "INCONCLUSIVE, does not decide" not in render_html(report)


def test_what_is_not_confirmed_is_a_warning_and_not_named() -> None:
    report = run_of(timed("served", confirmed=False), timed("other"))
    assert (headline(report), report.causes) == ("UPGRADE OK", ())
    assert report.judgement.counts == {"PASS": 2}
    assert "not confirmed by fresh process pairs" in render_console(report)
    assert "Nothing needs you" not in render_html(report) or "not confirmed" in render_html(report)


def test_nothing_over_and_nothing_open_needs_nobody() -> None:
    assert "Nothing needs you" in render_html(run_of(timed("other_a"), timed("other_b")))


def test_a_limit_that_is_written_blocks() -> None:
    written = PolicySettings(limits={"request": 1.1})
    report = run_of(timed("served", settings=written), timed("other"))
    assert (report.judgement.decision, report.judgement.exit_code) == (Decision.BLOCKED, 1)
    assert not exceeded(report.judgement.rows)


@pytest.mark.parametrize(
    "kind", ["load_time", "initialization_time", "first_calls", "tail", "memory", "memory_growth", "new_shape"]
)
def test_each_kind_is_named(kind: str) -> None:
    found = Finding(kind=kind, message=f"{kind} is more", size=1.9, limit=1.5)
    cell = CellVerdict(cell=cell_id("net"), model="net", scenario="alone", status=Status.PASS, findings=(found,))
    report = run_of(judge_row("net", [cell]))
    assert headline(report) == f"UPGRADE OK, but net: {kind} is more"
    assert [cause.status for cause in report.causes] == [Status.PASS]


def test_the_latency_of_guessed_inputs_is_named_though_it_does_not_decide() -> None:
    found = Finding(
        kind="latency",
        message="steady latency +30.0 % [+28.0, +32.0]",
        size=1.3,
        rule="benchmark",
        quantity="steady",
        limit=1.05,
    )
    slower = CellVerdict(
        cell=cell_id("net", "latency"),
        model="net",
        scenario="latency",
        status=Status.FAIL,
        findings=(found,),
        decides=False,
    )
    alone = CellVerdict(cell=cell_id("net"), model="net", scenario="alone", status=Status.PASS)
    report = run_of(judge_row("net", [alone, slower]))
    assert headline(report) == "UPGRADE OK, but net: steady latency +30.0 %, limit +5 %"
    assert report.judgement.counts == {"over limit": 1}


def test_the_furthest_is_named_first_and_the_others_are_counted() -> None:
    report = run_of(*(timed(f"served_{at}") for at in range(5)))
    assert headline(report).endswith("(and 4 more)")
    assert report.judgement.reason.endswith("and 2 more")
    assert len(report.causes) == 1 and len(report.causes[0].models) == 5


def test_a_report_that_was_kept_says_the_same_again() -> None:
    report = of_a_run()
    again = load_report(dump_report(report), file="report.json")
    assert headline(again) == headline(report) and again.judgement.counts == COUNTS
