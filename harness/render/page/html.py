"""The report as one HTML page: no network, no other file, and a policy in its head that forbids all loading."""

import base64
import hashlib
from importlib import resources
from typing import Any

from harness.domain.matrix import Matrix
from harness.domain.report import RunReport
from harness.render.page.calibration_view import calibration_lines
from harness.render.page.figures import BUDGET_BYTES, Budget
from harness.render.page.head_view import files_of, head_view
from harness.render.page.matrix_view import matrix_view
from harness.render.page.model_view import model_views, row_views
from harness.render.page.run_view import run_view
from harness.render.table import COLUMNS, GUESSED, guessed_words, not_measured, table_rows
from harness.render.words import visible

TEMPLATES = "templates"
LIMIT_BYTES = 4_900_000
"""Of a page; what is over it costs charts, the last models' first."""


def render_html(report: RunReport, *, directory: str = "", matrix: Matrix | None = None) -> str:
    """Return the page, ending with a newline; identical reports give identical bytes.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        matrix: a version matrix to show beside the run.
    """
    page = _page(report, directory, matrix, Budget())
    excess = len(page.encode()) - LIMIT_BYTES
    if excess > 0:
        page = _page(report, directory, matrix, Budget(max(0, BUDGET_BYTES - excess)))
    return page


def _page(report: RunReport, directory: str, matrix: Matrix | None, budget: Budget) -> str:
    rows = table_rows(report)
    run = run_view(report, budget)
    models = model_views(report, directory, budget)
    style, script = _own("style.css"), _own("script.js")
    folder, files = files_of(report, directory)
    page = _template("page.html").render(
        page_title=f"{report.judgement.decision.value}: {visible(report.old.name)} → {visible(report.new.name)}",
        style=style,
        script=script,
        style_hash=_digest(style),
        script_hash=_digest(script),
        head=head_view(report, directory),
        columns=COLUMNS,
        rows=row_views(rows),
        absent=not_measured(rows),
        guessed_mark=GUESSED,
        guessed=guessed_words(rows),
        models=models,
        run=run,
        refused=budget.refused,
        calibration=calibration_lines(_own("calibration.json")),
        matrix=matrix_view(matrix) if matrix is not None else None,
        folder=folder,
        files=files,
    )
    text = str(page).rstrip("\n") + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # whatever a terminal or a server takes it for


def _template(name: str) -> Any:
    """Return a template; the engine is imported only here, so that ``--help`` does not wait for it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_own),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    return environment.get_template(name)


def _own(name: str) -> str:
    """Return a file of the templates' folder."""
    return (resources.files(__package__) / TEMPLATES / name).read_text(encoding="utf-8")


def _digest(inline: str) -> str:
    """Return what the page's policy knows an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
