"""The table of what every run leaves has a row for each format of a run, with the file that it leaves."""

import re

from harness.report.formats import RUN
from tests.docs.pages import PROJECT


def test_the_page_names_every_format_of_a_run_and_its_file() -> None:
    page = (PROJECT / "docs" / "guide" / "in-ci.md").read_text(encoding="utf-8")
    table = page.partition("## What every run leaves\n")[2].partition("\n## ")[0]
    rows = {row[1]: row[0] for row in re.findall(r"^\| `?([\w.]+)`? \| `(\w+)` \|", table, re.MULTILINE)}
    assert rows == {name: RUN.files.get(name, "none") for name in RUN.names if name != "console"}
