"""The registry of formats: what a result can be shown as, and which of these forms it leaves in its folder.

A format is one line of a table below. Its renderer is imported when it is called: for the choices of ``--format``
nothing else is imported.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from harness.core.diagnosis import Bisection
    from harness.core.fleet import FleetPlan, FleetReport
    from harness.core.golden import GoldenStatus, Review
    from harness.core.machine import Checkup
    from harness.core.migration import Migration
    from harness.core.prediction import Inspection
    from harness.core.releases import FirstBad, Matrix
    from harness.core.report import RunOutline, RunReport
    from harness.core.timeline import RunTrace

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How a result is shown.

    Attributes:
        directory: its folder, as the reader would type it.
        width: columns of a text for a terminal.
        every_row: nothing is left out for brevity.
    """

    directory: str = ""
    width: int = 100
    colour: bool = False
    every_row: bool = False


IN_A_FILE = Shown()


class Format(NamedTuple, Generic[Result]):
    """One format: what ``--format`` calls it, how it is made, and its file in a result's folder, empty where none."""

    name: str
    render: Callable[[Result, Shown], str]
    file: str = ""


class Formats(Generic[Result]):
    """The formats of one kind of result."""

    def __init__(self, *formats: Format[Result]) -> None:
        self._formats = {item.name: item for item in formats}
        self.files: Mapping[str, str] = {item.name: item.file for item in formats if item.file}
        """By format the file that it leaves in the folder of a result, in the order in which they are written."""
        if len(self._formats) < len(formats) or len({*self.files.values()}) < len(self.files):
            raise ValueError(f"two formats have one name, or one file: {', '.join(item.name for item in formats)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The choices of ``--format``."""
        return tuple(sorted(self._formats))

    def render(self, name: str, result: Result, shown: Shown = IN_A_FILE) -> str:
        """Return the result in the format ``name``."""
        return self._formats[name].render(result, shown)

    def rendered_files(self, result: Result, shown: Shown = IN_A_FILE) -> Iterator[tuple[str, bytes]]:
        """Yield what the result leaves in its folder: (name of the file, its bytes)."""
        for name, file in self.files.items():
            yield file, self.render(name, result, shown).encode()


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A finished run with what only some formats show, which is read when they ask for it.

    Attributes:
        places: where the repository declares each model.
        trace: the processes of the run.
        earlier: the runs of the same pair before it, the oldest first.
    """

    report: "RunReport"
    places: Callable[[], Mapping[str, str]]
    trace: Callable[[], "RunTrace"]
    matrix: "Matrix | None" = None
    earlier: Callable[[], "tuple[RunOutline, ...]"] = tuple


@dataclass(frozen=True, kw_only=True)
class ShownBisection:
    """What a bisection found; ``stored`` reads the JSON that its run has kept of it."""

    found: "Bisection"
    stored: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class ShownFleetPlan:
    """A fleet's plan with (machines, seconds) that it takes, and the command that runs it."""

    plan: "FleetPlan"
    times: tuple[tuple[int, float], ...]
    command: str


def _of(module: str) -> Any:
    """Return a module of this room."""
    return import_module(f"{__package__}.{module}")


def _judged(matrix: "Matrix") -> Any:
    return import_module("harness.verdict.matrix").judge_matrix(matrix)


RUN: Formats[ShownRun] = Formats(
    # The first file is the one that all others can be made of again.
    Format("json", lambda run, _: _of("json.report").dump_report(run.report).decode(), "report.json"),
    Format(
        "markdown",
        lambda run, shown: _of("markdown.report").render_markdown(run.report, directory=shown.directory),
        "report.md",
    ),
    Format(
        "html",
        lambda run, shown: _of("page.html").render_html(
            run.report, directory=shown.directory, matrix=run.matrix, earlier=run.earlier()
        ),
        "report.html",
    ),
    Format(
        "junit", lambda run, shown: _of("ci.junit").render_junit(run.report, directory=shown.directory), "junit.xml"
    ),
    Format(
        "ctrf",
        lambda run, shown: _of("ci.ctrf").render_ctrf(run.report, directory=shown.directory, places=run.places()),
        "ctrf.json",
    ),
    Format("openmetrics", lambda run, _: _of("ci.openmetrics").render_openmetrics(run.report), "metrics.prom"),
    Format("trace", lambda run, _: _of("trace").render_trace(run.trace()), "trace.json"),
    Format("comment", lambda run, shown: _of("ci.comment").render_comment(run.report, directory=shown.directory)),
    Format("csv", lambda run, _: _of("ci.spreadsheet").render_csv(run.report)),
    Format("sarif", lambda run, _: _of("ci.sarif").render_run_sarif(run.report, places=run.places())),
    Format(
        "console",
        lambda run, shown: _of("text.console").render_console(
            run.report,
            width=shown.width,
            colour=shown.colour,
            directory=shown.directory,
            verbose=shown.every_row,
        ),
    ),
    Format(
        "github",
        lambda run, shown: _of("ci.annotations").render_annotations(
            run.report, directory=shown.directory, places=run.places()
        ),
    ),
)
MATRIX: Formats["Matrix"] = Formats(
    Format("json", lambda matrix, _: _of("json.results").dump_matrix(matrix, _judged(matrix)), "matrix.json"),
    Format(
        "markdown",
        lambda matrix, shown: _of("markdown.matrix").render_matrix_markdown(
            matrix, _judged(matrix), directory=shown.directory
        ),
        "matrix.md",
    ),
    Format(
        "console",
        lambda matrix, shown: _of("text.matrix").render_heat_map(
            matrix, _judged(matrix), width=shown.width, colour=shown.colour
        ),
    ),
)
MIGRATION: Formats["Migration"] = Formats(
    Format("json", lambda found, _: _of("json.results").dump_migration(found), "migration.json"),
    Format("markdown", lambda found, _: _of("markdown.migration").render_migration_markdown(found), "migration.md"),
    Format("html", lambda found, _: _of("page.migration").render_migration_html(found), "migration.html"),
    Format(
        "console",
        lambda found, shown: _of("text.migration").render_migration(
            found, width=shown.width, colour=shown.colour, directory=shown.directory, verbose=shown.every_row
        ),
    ),
)
FLEET_PLAN: Formats[ShownFleetPlan] = Formats(
    Format("json", lambda one, _: _of("json.results").dump_fleet(one.plan)),
    Format(
        "text",
        lambda one, shown: _of("text.fleet").render_plan(one.plan, one.times, command=one.command, width=shown.width),
    ),
)
FLEET: Formats["FleetReport"] = Formats(
    Format("json", lambda report, _: _of("json.results").dump_fleet(report), "fleet.json"),
    Format("markdown", lambda report, _: _of("markdown.fleet").render_fleet_markdown(report), "fleet.md"),
    Format("html", lambda report, _: _of("page.fleet").render_fleet_html(report), "fleet.html"),
    Format("csv", lambda report, _: _of("ci.spreadsheet").render_owners_csv(report), "owners.csv"),
    Format(
        "text",
        lambda report, shown: _of("text.fleet").render_answer(
            report, more=f"{shown.directory} --format markdown", width=shown.width
        ),
    ),
)
INSPECTION: Formats["Inspection"] = Formats(
    Format("json", lambda found, _: _of("json.results").dump_inspection(found)),
    Format("sarif", lambda found, _: _of("ci.sarif").render_sarif(found)),
    Format("text", lambda found, shown: _of("text.inspection").render_static(found, width=shown.width)),
)
CHECKUP: Formats["Checkup"] = Formats(
    Format("console", lambda checkup, shown: _of("text.doctor").render_checkup(checkup, colour=shown.colour)),
    Format("json", lambda checkup, _: _of("json.results").dump_checkup(checkup)),
)
REVIEW: Formats["Review"] = Formats(
    Format("console", lambda review, shown: _of("text.golden").render_review(review, every_row=shown.every_row)),
    Format("html", lambda review, _: _of("page.golden").render_review_html(review)),
    Format("json", lambda review, _: _of("json.results").dump_review(review)),
    Format("markdown", lambda review, _: _of("markdown.golden").render_review_markdown(review)),
)
GOLDEN_STATUS: Formats["GoldenStatus"] = Formats(
    Format("console", lambda status, _: _of("text.golden").render_status(status)),
    Format("json", lambda status, _: _of("json.results").dump_status(status)),
)
FIRST_BAD: Formats["FirstBad"] = Formats(
    Format("console", lambda found, shown: _of("text.first_bad").render_first_bad(found, width=shown.width)),
    Format("json", lambda found, _: _of("text.first_bad").dump_first_bad(found)),
)
BISECTION: Formats[ShownBisection] = Formats(
    Format(
        "console",
        lambda one, shown: _of("text.bisection").render_bisection(
            one.found, directory=shown.directory, width=shown.width
        ),
    ),
    Format("json", lambda one, _: one.stored()),
)
