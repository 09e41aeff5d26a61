"""The registry of formats: one name and one file each, and what every run leaves."""

import pytest

from harness.report.formats import RUN, Formats, Shown
from harness.store.run_folder import REPORT


def test_a_format_is_registered_once() -> None:
    formats: Formats[int] = Formats()
    formats.register("text", file="a.txt")(lambda number, _shown: str(number))
    with pytest.raises(ValueError, match="text"):
        formats.register("text")
    with pytest.raises(ValueError, match="a.txt"):
        formats.register("other", file="a.txt")
    assert formats.names == ("text",)
    assert list(formats.rendered_files(3)) == [("a.txt", b"3")]


def test_what_is_shown_depends_on_who_reads_it() -> None:
    formats: Formats[int] = Formats()
    formats.register("text")(lambda number, shown: f"{shown.directory}:{number}")
    assert formats.render("text", 3, Shown(directory="here")) == "here:3"


def test_the_report_itself_is_written_first_for_all_others_can_be_made_of_it_again() -> None:
    assert next(iter(RUN.files.items())) == ("json", REPORT)
