"""Every renderer against accepted outputs, against what the report says, and against itself."""

import json
from collections.abc import Callable
from dataclasses import replace

import jsonschema
import msgspec
import junitparser
import pytest

from harness.core.report import RunReport
from harness.report.ci.annotations import render_annotations
from harness.report.ci.comment import render_comment
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.ci.sarif import render_run_sarif
from harness.report.ci.spreadsheet import render_csv
from harness.report.json.report import dump_report, load_report, report_schema
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_html
from tests.unit.builders.rendered import render_console
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.readers import openmetrics
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS, hostile
from tests.unit.builders.snapshots import check_snapshot

RENDERERS: dict[str, Callable[[RunReport], str]] = {
    "txt": render_console,
    "80.txt": lambda report: render_console(report, width=80),
    "verbose.txt": lambda report: render_console(report, width=120, verbose=True),
    "md": render_markdown,
    "html": render_html,
    "xml": render_junit,
    "json": lambda report: msgspec.json.format(dump_report(report), indent=2).decode() + "\n",
    "github.txt": render_annotations,
    "ctrf.json": render_ctrf,
    "prom": render_openmetrics,
    "comment.md": render_comment,
    "csv": render_csv,
    "sarif": render_run_sarif,
}


# Of each format for machines the reports that show something in it that no other does; test_documents has the others.
ACCEPTED = {
    "xml": ("nothing_tested", "inconclusive"),
    "json": ("nothing_tested",),
    "github.txt": ("inconclusive", "hostile", "since"),
    "ctrf.json": ("nothing_tested", "inconclusive"),
    "prom": ("nothing_tested", "since"),
    "comment.md": ("causes", "nothing_tested"),
    "csv": ("causes", "inconclusive"),
    "sarif": ("causes", "nothing_tested"),
}


def shown(name: str) -> RunReport:
    """Return a report as it is snapshot: two hostile names show what eight do, nine models what a hundred."""
    if name == "causes":
        return of_three_causes(6, 3)
    return hostile(HOSTILE_NAMES[1:3]) if name == "hostile" else REPORTS[name]()


@pytest.mark.parametrize(("suffix", "name"), [(suffix, name) for suffix in ACCEPTED for name in ACCEPTED[suffix]])
def test_output_is_the_accepted_one(name: str, suffix: str) -> None:
    check_snapshot(f"{name}.{suffix}", RENDERERS[suffix](shown(name)))


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "hostile"])
def test_every_format_says_the_same_decision_and_names_the_same_models(name: str) -> None:
    report = REPORTS[name]()
    decision, models = report.judgement.decision.value, {row.model for row in report.judgement.rows}
    said = {suffix: render(report) for suffix, render in RENDERERS.items()}
    for suffix in ("txt", "80.txt", "verbose.txt", "md", "html", "xml", "ctrf.json"):
        assert decision in said[suffix], suffix
        assert all(model in said[suffix] for model in models), suffix
    assert said["github.txt"].startswith(f"::{'error' if report.judgement.exit_code else 'notice'} title={decision}")
    cases = {case.name for suite in junitparser.JUnitXml.fromstring(said["xml"].encode()) for case in suite}
    tests = {test["name"] for test in json.loads(said["ctrf.json"])["results"]["tests"]}
    cells = {cell.cell for row in report.judgement.rows for cell in row.cells}
    assert cells <= cases
    assert cells <= tests
    samples = [sample for family in openmetrics(said["prom"]) for sample in family.samples]
    states = {one.labels["model"]: one.labels["status"] for one in samples if one.name.endswith("_model_status")}
    assert states == {row.model: row.status.value for row in report.judgement.rows}


@pytest.mark.parametrize("name", REPORTS)
def test_json_of_every_report_is_what_its_schema_says(name: str) -> None:
    jsonschema.validate(json.loads(dump_report(REPORTS[name]())), report_schema())


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("name", REPORTS)
def test_order_of_mappings_does_not_show(name: str, suffix: str) -> None:
    report = REPORTS[name]()
    turned = replace(
        report,
        environment_differences=dict(reversed(list(report.environment_differences.items()))),
        time_shares_s=dict(reversed(list(report.time_shares_s.items()))),
        rerun=dict(reversed(list(report.rerun.items()))),
    )
    assert RENDERERS[suffix](turned) == RENDERERS[suffix](report)


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("name", [name for name in REPORTS if name != "hostile"])
def test_a_report_read_back_renders_the_same(name: str, suffix: str) -> None:
    report = REPORTS[name]()
    again = load_report(dump_report(report), file="report.json")
    assert RENDERERS[suffix](again) == RENDERERS[suffix](report)


@pytest.mark.parametrize("suffix", RENDERERS)
def test_only_printable_lines_leave_a_renderer(suffix: str) -> None:
    text = RENDERERS[suffix](REPORTS["hostile"]())
    assert text.endswith("\n")
    assert all(line.isprintable() for line in text.split("\n"))
    text.encode("utf-8")
