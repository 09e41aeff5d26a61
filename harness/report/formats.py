"""The registry of formats: what a result can be shown as, and which of these forms it leaves in its folder.

A format is one line of a table below. Its renderer is imported when it is called: for the choices of ``--format``
nothing else is imported.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from harness.core.atlas import OperatorChanges
    from harness.core.attach import Attachment
    from harness.core.cache import Cache, CacheCleaning
    from harness.core.compiling import CompileCheck
    from harness.core.diagnosis import Bisection
    from harness.core.fleet import FleetPlan, FleetReport
    from harness.core.golden import GoldenStatus, Review
    from harness.core.interference import Interference
    from harness.core.linking import LinkCheck
    from harness.core.machine import Checkup
    from harness.core.migration import Migration
    from harness.core.prediction import Inspection
    from harness.core.releases import FirstBad, Matrix
    from harness.core.report import RunReport
    from harness.core.shadow import Shadow
    from harness.core.timeline import RunTrace
    from harness.report.document import Document

Result = TypeVar("Result")


@dataclass(frozen=True)
class Shown:
    """How a result is shown.

    Attributes:
        directory: its folder, as the reader would type it.
        width: columns of a text for a terminal.
        every_row: nothing is left out for brevity.
        page: address of its page on the web, empty where nobody knows it.
    """

    directory: str = ""
    width: int = 100
    colour: bool = False
    every_row: bool = False
    page: str = ""


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
        documents: those made already, by folder: formats share them, and each leaves out what it has no room for.
    """

    report: "RunReport"
    places: Callable[[], Mapping[str, str]]
    trace: Callable[[], "RunTrace"]
    documents: "dict[str, Document]" = field(default_factory=dict, compare=False, repr=False)


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


def _documented(
    document: Callable[[Any, Shown], "Document"], *, most_lines: int = 0
) -> dict[str, Callable[[Any, Shown], str]]:
    """Return the backends that lay out any document, by the names of their formats."""

    def in_lines(result: Any, shown: Shown) -> str:
        return str(
            _of("backends.terminal").render_terminal(
                document(result, shown),
                width=shown.width,
                colour=shown.colour,
                verbose=shown.every_row,
                most_lines=most_lines,
            )
        )

    return {
        "console": in_lines,
        "text": in_lines,
        "markdown": lambda result, shown: _of("backends.markdown").render_markdown(document(result, shown)),
        "html": lambda result, shown: _of("backends.html").render_page(document(result, shown)),
    }


ENDINGS = {"json": "json", "markdown": "md", "html": "html"}
"""Of the files that a result leaves in its folder, the one first that all others can be made of again."""


def _formats(
    names: str,
    document: Callable[[Any, Shown], "Document"],
    *more: Format[Any],
    stem: str = "",
    most_lines: int = 0,
) -> Formats[Any]:
    """Return the formats of a result that becomes a document, and ``more`` of its own; ``stem``: of its files."""
    makers = {
        "json": lambda result, _: _of("json.results").dump(result),
        **_documented(document, most_lines=most_lines),
    }
    return Formats(
        *(
            Format(name, makers[name], f"{stem}.{ENDINGS[name]}" if stem and name in ENDINGS else "")
            for name in names.split()
        ),
        *more,
    )


MOST_LINES = 60
"""On a terminal, of a result that may have a thousand things to say."""


def _run_document(run: ShownRun, shown: Shown) -> "Document":
    if shown.directory not in run.documents:
        run.documents[shown.directory] = _of("documents.run").run_document(
            run.report,
            directory=shown.directory,
            calibration=_of("backends.html").own("calibration.json"),
        )
    return run.documents[shown.directory]


_RUN = _documented(_run_document, most_lines=MOST_LINES)
RUN: Formats[ShownRun] = Formats(
    # The first file is the one that all others can be made of again.
    Format("json", lambda run, _: _of("json.report").dump_report(run.report).decode(), "report.json"),
    Format("markdown", _RUN["markdown"], "report.md"),
    Format("html", _RUN["html"], "report.html"),
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
    Format(
        "comment",
        lambda run, shown: _of("ci.comment").render_comment(run.report, directory=shown.directory, page=shown.page),
    ),
    Format("csv", lambda run, _: _of("ci.spreadsheet").render_csv(run.report)),
    Format("sarif", lambda run, _: _of("ci.sarif").render_run_sarif(run.report, places=run.places())),
    Format("console", _RUN["console"]),
    Format(
        "github",
        lambda run, shown: _of("ci.annotations").render_annotations(
            run.report, directory=shown.directory, places=run.places()
        ),
    ),
)

MATRIX: Formats["Matrix"] = _formats(
    "json markdown html console",
    lambda matrix, shown: _of("documents.matrix").matrix_document(matrix, directory=shown.directory),
    stem="matrix",
)
MIGRATION: Formats["Migration"] = _formats(
    "json markdown html console",
    lambda found, shown: _of("documents.migration").migration_document(found, directory=shown.directory),
    stem="migration",
    most_lines=MOST_LINES,
)
FLEET_PLAN: Formats[ShownFleetPlan] = _formats(
    "text",
    lambda one, _: _of("documents.fleet").plan_document(one.plan, one.times, command=one.command),
    Format("json", lambda one, _: _of("json.results").dump(one.plan)),
    most_lines=MOST_LINES,
)
FLEET: Formats["FleetReport"] = _formats(
    "json markdown html text",
    lambda report, shown: _of("documents.fleet").fleet_document(
        report, more=f"{shown.directory} --format markdown" if shown.directory else ""
    ),
    Format("csv", lambda report, _: _of("ci.spreadsheet").render_owners_csv(report), "owners.csv"),
    stem="fleet",
    most_lines=MOST_LINES,
)
INSPECTION: Formats["Inspection"] = _formats(
    "json text",
    lambda found, _: _of("documents.inspection").inspection_document(found),
    Format("sarif", lambda found, _: _of("ci.sarif").render_sarif(found)),
)
LINK_CHECK: Formats["LinkCheck"] = _formats(
    "console markdown html json",
    lambda check, _: _of("documents.link_check").link_document(check),
    Format("sarif", lambda check, _: _of("ci.sarif").render_link_sarif(check)),
)
OPERATORS: Formats["OperatorChanges"] = _formats(
    "console markdown html json",
    lambda changes, _: _of("documents.operators").operators_document(changes),
    most_lines=MOST_LINES,
)
ATTACH: Formats["Attachment"] = _formats(
    "console markdown html json", lambda attachment, _: _of("documents.attach").attach_document(attachment)
)
COMPILE_CHECK: Formats["CompileCheck"] = _formats(
    "console markdown html json",
    lambda check, _: _of("documents.compile_check").compile_document(check),
    Format("sarif", lambda check, _: _of("ci.sarif").render_compile_sarif(check)),
)
SHADOW: Formats["Shadow"] = _formats(
    "json markdown html console", lambda found, _: _of("documents.shadow").shadow_document(found), stem="shadow"
)
INTERFERENCE: Formats["Interference"] = _formats(
    "json markdown html console",
    lambda found, shown: _of("documents.interference").interference_document(found, directory=shown.directory),
    stem="interference",
)
CHECKUP: Formats["Checkup"] = _formats(
    "console json", lambda checkup, _: _of("documents.doctor").checkup_document(checkup)
)
CACHE: Formats["Cache"] = _formats("text json", lambda cache, _: _of("documents.cache").cache_document(cache))
CACHE_CLEANING: Formats["CacheCleaning"] = _formats(
    "text json", lambda cleaning, _: _of("documents.cache").cleaning_document(cleaning)
)
REVIEW: Formats["Review"] = _formats(
    "console html json",
    lambda review, _: _of("documents.golden").review_document(review),
    # GitHub refuses a comment above 65,536 characters.
    Format(
        "markdown",
        lambda review, _: _of("backends.markdown").render_markdown(
            _of("documents.golden").review_document(review), limit=60_000
        ),
    ),
)
GOLDEN_STATUS: Formats["GoldenStatus"] = _formats(
    "console json", lambda status, _: _of("documents.golden").status_document(status)
)
FIRST_BAD: Formats["FirstBad"] = _formats(
    "console json", lambda found, _: _of("documents.first_bad").first_bad_document(found)
)
BISECTION: Formats[ShownBisection] = _formats(
    "console",
    lambda one, shown: _of("documents.diagnosis").bisection_document(one.found, directory=shown.directory),
    Format("json", lambda one, _: one.stored()),
)


def on_terminal(document: "Document", *, width: int, colour: bool = False, most_lines: int = MOST_LINES) -> str:
    """Return a document as a command prints it."""
    return str(_of("backends.terminal").render_terminal(document, width=width, colour=colour, most_lines=most_lines))
