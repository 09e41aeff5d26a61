"""The report as one HTML page: no network, no other file, and a policy in its head that forbids all loading."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.core.releases import Matrix
from harness.core.report import RunOutline, RunReport
from harness.core.text import visible
from harness.report.excess import by_excess, steady_calls
from harness.report.json.report import outline
from harness.report.page.causes import cause_views
from harness.report.page.engine import digest, own, page_of
from harness.report.page.figures import BUDGET_BYTES, Budget
from harness.report.page.fleet_charts import fleet_figures, trend_figures
from harness.report.page.head import files_of, head_view
from harness.report.page.matrix import matrix_view
from harness.report.page.models import ROOMS, groups_of, model_views, room_of, row_views
from harness.report.page.rules import baseline_view, policy_view, waivers_view
from harness.report.page.run import calibration_lines, run_view
from harness.report.text.table import GUESSED, columns, guessed_words, not_measured, table_rows, timed_in
from harness.report.words.red_cells import red_cells

LIMIT_BYTES = 4_700_000
"""Of a page; what is over it costs charts, the last models' first."""


def render_html(
    report: RunReport, *, directory: str = "", matrix: Matrix | None = None, earlier: Sequence[RunOutline] = ()
) -> str:
    """Return the page, ending with a newline; identical reports give identical bytes.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        matrix: a version matrix to show beside the run.
        earlier: runs of the same pair before it, the oldest first.
    """
    views = _views(report, directory, matrix, earlier)
    page = _page(report, views, Budget())
    excess = len(page.encode()) - LIMIT_BYTES
    if excess > 0:
        page = _page(report, views, Budget(max(0, BUDGET_BYTES - excess)))
    return page


def _page(report: RunReport, views: Mapping[str, Any], budget: Budget) -> str:
    """Return the page with the drawings that the budget has room for: of all models first, then of the worst ones."""
    fleet = budget.fit(views["fleet"])
    run = run_view(report, budget)
    models = {model.anchor: replace(model, figures=budget.fit(model.figures)) for model in views["models"]}
    return page_of("page.html", {**views, "fleet": fleet, "run": run, "models": models, "refused": budget.refused})


def _views(
    report: RunReport, directory: str, matrix: Matrix | None, earlier: Sequence[RunOutline]
) -> Mapping[str, Any]:
    """Return all that the templates lay out, but for the run's own sections; models have all their drawings."""
    rows, models = table_rows(report), by_excess(report)
    red, room = {cell.cell: cell for cell in red_cells(report, directory=directory)}, room_of(report)
    found = report.causes
    causes = cause_views(report, found, red)
    style, script = own("style.css"), own("script.js")
    folder, files = files_of(report, directory)
    return {
        "page_title": f"{report.judgement.decision.value}: {visible(report.old.name)} → {visible(report.new.name)}",
        "style": style,
        "script": script,
        "style_hash": digest(style),
        "script_hash": digest(script),
        "head": head_view(report, models, found, causes),
        "causes": causes,
        "fleet": (
            *fleet_figures(steady_calls(report, models)),
            *trend_figures([*earlier, outline(report)] if earlier else []),
        ),
        "columns": columns(rows),
        "rows": row_views(models, found),
        "absent": not_measured(rows),
        "timed_in": timed_in(rows),
        "guessed_mark": GUESSED,
        "guessed": guessed_words(rows),
        "models": model_views(report, models, red, room),
        "groups": groups_of(models, found),
        "shortened": room is not ROOMS[0],
        "calibration": calibration_lines(own("calibration.json")),
        "baseline": baseline_view(report.baseline) if report.baseline is not None else None,
        "waivers": waivers_view(report),
        "policy": policy_view(report, report.policy),
        "matrix": matrix_view(matrix) if matrix is not None else None,
        "folder": folder,
        "files": files,
    }
