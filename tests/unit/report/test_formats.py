"""The registry of formats: one name and one file each, and what every run leaves."""

import pytest

from harness.report.formats import RUN, Format, Formats, Shown
from harness.store.run_folder import REPORT


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
