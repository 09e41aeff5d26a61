"""Every renderer against its accepted output, and every renderer against itself."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.domain.report import RunReport
from harness.report.ci.annotations import render_annotations
from harness.report.ci.badge import render_badge
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.json.report import dump_report, load_report
from harness.report.markdown.report import render_markdown
from harness.report.page.html import render_html
from harness.report.text.console import render_console
from tests.unit.builders.reports import REPORTS
from tests.unit.builders.snapshots import check_snapshot

RENDERERS: dict[str, Callable[[RunReport], str]] = {
    "txt": render_console,
    "80.txt": lambda report: render_console(report, width=80),
    "120.txt": lambda report: render_console(report, width=120),
    "md": render_markdown,
    "html": render_html,
    "xml": render_junit,
    "json": lambda report: dump_report(report).decode(),
    "github.txt": render_annotations,
    "ctrf.json": render_ctrf,
    "prom": render_openmetrics,
    "badge.json": render_badge,
}


@pytest.mark.parametrize("suffix", RENDERERS)
@pytest.mark.parametrize("name", REPORTS)
def test_output_is_the_accepted_one(name: str, suffix: str) -> None:
    check_snapshot(f"{name}.{suffix}", RENDERERS[suffix](REPORTS[name]()))


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
