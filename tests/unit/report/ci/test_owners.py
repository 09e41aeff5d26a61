"""Whoever answers for a red model stands in every format for CI, and in the command that waives."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.core.report import RunReport
from harness.report.ci.annotations import render_annotations
from harness.report.ci.comment import render_comment
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.sarif import render_run_sarif
from harness.report.ci.spreadsheet import render_csv
from harness.verdict.causes import with_causes
from tests.unit.builders.reports import blocked


def owned(*owners: str) -> RunReport:
    report = blocked()
    models = tuple(
        replace(model, owner=owners[at % len(owners)] if owners else "") for at, model in enumerate(report.models)
    )
    return with_causes(replace(report, models=models, causes=()))


@pytest.mark.parametrize(
    "render", [render_annotations, render_comment, render_csv, render_ctrf, render_junit, render_run_sarif]
)
def test_every_format_names_the_owner(render: Callable[[RunReport], str]) -> None:
    assert "team argus" in render(owned("team argus"))
    assert "argus" not in render(owned())


def test_the_command_that_waives_has_the_owner_where_there_is_one() -> None:
    def waiving(report: RunReport) -> list[str]:
        return [command for cause in report.causes for label, command in cause.commands if label == "accept"]

    assert waiving(owned("team argus")) and all(
        "--owner 'team argus' --reason TEXT" in one for one in waiving(owned("team argus"))
    )
    assert waiving(owned()) and all("--owner NAME --reason TEXT" in one for one in waiving(owned()))
