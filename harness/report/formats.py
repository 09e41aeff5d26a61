"""The registry of formats: what a result can be shown as, and which of these forms it leaves in its folder.

A format is one function below. It imports its renderer when it is called: for the choices of ``--format`` nothing else
is imported.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from harness.domain.diagnosis import Bisection
    from harness.domain.first_bad import FirstBad
    from harness.domain.golden import GoldenStatus, Review
    from harness.domain.machine import Checkup
    from harness.domain.matrix import Matrix
    from harness.domain.prediction import Inspection
    from harness.domain.report import RunReport
    from harness.domain.timeline import RunTrace

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
Render = Callable[[Result, Shown], str]


class Formats(Generic[Result]):
    """The formats of one kind of result."""

    def __init__(self) -> None:
        self._renderers: dict[str, Render[Result]] = {}
        self._files: dict[str, str] = {}

    def register(self, name: str, *, file: str | None = None) -> Callable[[Render[Result]], Render[Result]]:
        """Return a decorator that adds a renderer.

        Args:
            name: what ``--format`` calls it.
            file: its name in the folder of a result; None where it leaves none there.
        """
        if name in self._renderers or (file is not None and file in self._files.values()):
            raise ValueError(f"the format {name} ({file}) is registered twice")

        def add(render: Render[Result]) -> Render[Result]:
            self._renderers[name] = render
            if file is not None:
                self._files[name] = file
            return render

        return add

    @property
    def names(self) -> tuple[str, ...]:
        """The choices of ``--format``."""
        return tuple(sorted(self._renderers))

    @property
    def files(self) -> Mapping[str, str]:
        """By format the file that it leaves in the folder of a result, in the order in which they are written."""
        return self._files

    def render(self, name: str, result: Result, shown: Shown = IN_A_FILE) -> str:
        """Return the result in the format ``name``."""
        return self._renderers[name](result, shown)

    def rendered_files(self, result: Result, shown: Shown = IN_A_FILE) -> Iterator[tuple[str, bytes]]:
        """Yield what the result leaves in its folder: (name of the file, its bytes)."""
        for name, file in self._files.items():
            yield file, self.render(name, result, shown).encode()


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """A finished run with what only some formats show, which is read when they ask for it.

    Attributes:
        places: where the repository declares each model.
        trace: the processes of the run.
    """

    report: "RunReport"
    places: Callable[[], Mapping[str, str]]
    trace: Callable[[], "RunTrace"]
    matrix: "Matrix | None" = None


@dataclass(frozen=True, kw_only=True)
class ShownBisection:
    """What a bisection found; ``stored`` reads the JSON that its run has kept of it."""

    found: "Bisection"
    stored: Callable[[], str]


RUN: Formats[ShownRun] = Formats()
MATRIX: Formats["Matrix"] = Formats()
INSPECTION: Formats["Inspection"] = Formats()
CHECKUP: Formats["Checkup"] = Formats()
REVIEW: Formats["Review"] = Formats()
GOLDEN_STATUS: Formats["GoldenStatus"] = Formats()
BISECTION: Formats[ShownBisection] = Formats()
FIRST_BAD: Formats["FirstBad"] = Formats()


@RUN.register("json", file="report.json")  # the first file: all others can be made of it again
def _run_json(run: ShownRun, _shown: Shown) -> str:
    from harness.report.json.report import dump_report

    return dump_report(run.report).decode()


@RUN.register("markdown", file="report.md")
def _run_markdown(run: ShownRun, shown: Shown) -> str:
    from harness.report.markdown.report import render_markdown

    return render_markdown(run.report, directory=shown.directory)


@RUN.register("html", file="report.html")
def _run_html(run: ShownRun, shown: Shown) -> str:
    from harness.report.page.html import render_html

    return render_html(run.report, directory=shown.directory, matrix=run.matrix)


@RUN.register("junit", file="junit.xml")
def _run_junit(run: ShownRun, shown: Shown) -> str:
    from harness.report.ci.junit import render_junit

    return render_junit(run.report, directory=shown.directory)


@RUN.register("ctrf", file="ctrf.json")
def _run_ctrf(run: ShownRun, shown: Shown) -> str:
    from harness.report.ci.ctrf import render_ctrf

    return render_ctrf(run.report, directory=shown.directory, places=run.places())


@RUN.register("openmetrics", file="metrics.prom")
def _run_openmetrics(run: ShownRun, _shown: Shown) -> str:
    from harness.report.ci.openmetrics import render_openmetrics

    return render_openmetrics(run.report)


@RUN.register("badge", file="badge.json")
def _run_badge(run: ShownRun, _shown: Shown) -> str:
    from harness.report.ci.badge import render_badge

    return render_badge(run.report)


@RUN.register("trace", file="trace.json")
def _run_trace(run: ShownRun, _shown: Shown) -> str:
    from harness.report.trace import render_trace

    return render_trace(run.trace())


@RUN.register("console")
def _run_console(run: ShownRun, shown: Shown) -> str:
    from harness.report.text.console import render_console

    return render_console(
        run.report, width=shown.width, colour=shown.colour, directory=shown.directory, verbose=shown.every_row
    )


@RUN.register("github")
def _run_github(run: ShownRun, shown: Shown) -> str:
    from harness.report.ci.annotations import render_annotations

    return render_annotations(run.report, directory=shown.directory, places=run.places())


@MATRIX.register("json", file="matrix.json")
def _matrix_json(matrix: "Matrix", _shown: Shown) -> str:
    from harness.releases.matrix_judging import judge_matrix
    from harness.report.json.matrix import dump_matrix

    return dump_matrix(matrix, judge_matrix(matrix))


@MATRIX.register("markdown", file="matrix.md")
def _matrix_markdown(matrix: "Matrix", shown: Shown) -> str:
    from harness.releases.matrix_judging import judge_matrix
    from harness.report.markdown.matrix import render_matrix_markdown

    return render_matrix_markdown(matrix, judge_matrix(matrix), directory=shown.directory)


@MATRIX.register("console")
def _matrix_console(matrix: "Matrix", shown: Shown) -> str:
    from harness.releases.matrix_judging import judge_matrix
    from harness.report.text.matrix import render_heat_map

    return render_heat_map(matrix, judge_matrix(matrix), width=shown.width, colour=shown.colour)


@INSPECTION.register("json")
def _inspection_json(inspection: "Inspection", _shown: Shown) -> str:
    from harness.report.json.inspection import dump_inspection

    return dump_inspection(inspection)


@INSPECTION.register("sarif")
def _inspection_sarif(inspection: "Inspection", _shown: Shown) -> str:
    from harness.report.ci.sarif import render_sarif

    return render_sarif(inspection)


@INSPECTION.register("text")
def _inspection_text(inspection: "Inspection", shown: Shown) -> str:
    from harness.report.text.inspection import render_static

    return render_static(inspection, width=shown.width)


@CHECKUP.register("console")
def _checkup_console(checkup: "Checkup", shown: Shown) -> str:
    from harness.report.text.doctor import render_checkup

    return render_checkup(checkup, colour=shown.colour)


@CHECKUP.register("json")
def _checkup_json(checkup: "Checkup", _shown: Shown) -> str:
    from harness.report.json.doctor import dump_checkup

    return dump_checkup(checkup)


@REVIEW.register("console")
def _review_console(review: "Review", shown: Shown) -> str:
    from harness.report.text.golden import render_review

    return render_review(review, every_row=shown.every_row)


@REVIEW.register("html")
def _review_html(review: "Review", _shown: Shown) -> str:
    from harness.report.page.golden import render_review_html

    return render_review_html(review)


@REVIEW.register("json")
def _review_json(review: "Review", _shown: Shown) -> str:
    from harness.report.json.golden import dump_review

    return dump_review(review)


@REVIEW.register("markdown")
def _review_markdown(review: "Review", _shown: Shown) -> str:
    from harness.report.markdown.golden import render_review_markdown

    return render_review_markdown(review)


@GOLDEN_STATUS.register("console")
def _status_console(status: "GoldenStatus", _shown: Shown) -> str:
    from harness.report.text.golden import render_status

    return render_status(status)


@GOLDEN_STATUS.register("json")
def _status_json(status: "GoldenStatus", _shown: Shown) -> str:
    from harness.report.json.golden import dump_status

    return dump_status(status)


@FIRST_BAD.register("console")
def _first_bad_console(found: "FirstBad", shown: Shown) -> str:
    from harness.report.text.first_bad import render_first_bad

    return render_first_bad(found, width=shown.width)


@FIRST_BAD.register("json")
def _first_bad_json(found: "FirstBad", _shown: Shown) -> str:
    from harness.report.text.first_bad import dump_first_bad

    return dump_first_bad(found)


@BISECTION.register("console")
def _bisection_console(bisection: ShownBisection, shown: Shown) -> str:
    from harness.report.text.bisection import render_bisection

    return render_bisection(bisection.found, directory=shown.directory, width=shown.width)


@BISECTION.register("json")
def _bisection_json(bisection: ShownBisection, _shown: Shown) -> str:
    return bisection.stored()
