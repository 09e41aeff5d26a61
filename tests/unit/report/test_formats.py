"""The registry of formats: one name and one file each, and what every run leaves."""

import pytest

from harness.core.timeline import RunTrace
from harness.report.formats import RUN, Format, Formats, Shown, ShownRun
from harness.store.run_folder import REPORT
from tests.unit.builders.reports import blocked


def test_a_name_and_a_file_belong_to_one_format() -> None:
    text = Format[int]("text", lambda number, _: str(number), "a.txt")
    formats = Formats(text)
    assert formats.names == ("text",)
    assert list(formats.rendered_files(3)) == [("a.txt", b"3")]
    for other in (text._replace(file=""), text._replace(name="other")):
        with pytest.raises(ValueError, match=other.name):
            Formats(text, other)


def test_what_is_shown_depends_on_who_reads_it() -> None:
    formats = Formats[int](Format("text", lambda number, shown: f"{shown.directory}:{number}"))
    assert formats.render("text", 3, Shown(directory="here")) == "here:3"


def test_the_report_itself_is_written_first_for_all_others_can_be_made_of_it_again() -> None:
    assert next(iter(RUN.files.items())) == ("json", REPORT)


def test_terminal_markdown_and_page_are_made_of_one_document() -> None:
    report = blocked()
    run = ShownRun(report=report, places=dict, trace=lambda: RunTrace(run=report.run, processes=()))
    for name in ("console", "markdown", "html"):
        RUN.render(name, run, Shown(directory="here"))
    assert list(run.documents) == ["here"]
    document = run.documents["here"]
    RUN.render("console", run, Shown(directory="here", every_row=True))
    assert run.documents["here"] is document
    assert "there" in RUN.render("console", run, Shown(directory="there"))
