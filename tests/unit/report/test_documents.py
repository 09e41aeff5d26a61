"""Every kind of result as a document: as accepted, within the width of a terminal, and hostile texts stay texts.

What a reader copies (a command, a path, a link) stands whole, and alone beside its label, however long it is.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.report.backends.html import render_page
from harness.report.backends.markdown import render_markdown
from harness.report.backends.terminal import render_terminal
from harness.report.document import Document, Fact
from harness.report.documents.causes import cause_part
from harness.report.formats import MOST_LINES
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.documents import HOSTILE, LARGE, PLAIN
from tests.unit.builders.snapshots import check_snapshot

WIDTH = 80
BOUNDED = {**PLAIN, **LARGE}
EVERY = {**BOUNDED, **HOSTILE}
COPIED = re.compile(r" *(?:\S+(?: \S+){0,3} +)?\S+")
COMMANDS = re.compile(
    r"-m harness |nox -s |^ *Python +torch\.ops\.|^ *(?:evidence|artifact|patched|archive|found|reports|results in|issue) +\S"
)
ON_PAPER = ("run_since", "run_nothing_tested", "matrix", "migration", "fleet", "golden")
Made = Callable[[], Document]


def is_copied(line: str) -> bool:
    """Whether a line is as long as it is because of one thing that is copied whole."""
    of_code = line.startswith(("Python ", "C++ "))
    return of_code or COMMANDS.search(line) is not None or COPIED.fullmatch(line) is not None


@pytest.mark.parametrize("name", PLAIN)
def test_on_a_terminal_it_is_the_accepted_one(name: str) -> None:
    check_snapshot(f"documents/{name}.txt", render_terminal(PLAIN[name](), width=100, most_lines=MOST_LINES))


@pytest.mark.parametrize("name", ON_PAPER)
def test_on_paper_it_is_the_accepted_one(name: str) -> None:
    check_snapshot(f"documents/{name}.md", render_markdown(PLAIN[name]()))


@pytest.mark.parametrize("name", ["run_since", "fleet"])
def test_as_a_page_it_is_the_accepted_one(name: str) -> None:
    page = re.sub(
        r"<(style|script)>.*?</\1>|sha256-[^']*|<svg.*?</svg>", "", render_page(PLAIN[name]()), flags=re.DOTALL
    )
    check_snapshot(f"documents/{name}.html", re.sub(r"\n\n+", "\n", page))


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("made", EVERY.values(), ids=list(EVERY))
def test_it_fits_80_columns_steers_no_terminal_and_ends_with_one_newline(made: Made, verbose: bool) -> None:
    text = render_terminal(made(), width=WIDTH, verbose=verbose, most_lines=MOST_LINES)
    assert [line for line in text.splitlines() if len(line) > WIDTH and not is_copied(line)] == []
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.endswith("\n") and not text.endswith("\n\n") and "\n\n\n" not in text


@pytest.mark.parametrize("made", BOUNDED.values(), ids=list(BOUNDED))
def test_however_large_it_is_a_terminal_shows_60_lines(made: Made) -> None:
    assert render_terminal(made(), width=WIDTH, most_lines=MOST_LINES).count("\n") <= MOST_LINES


def test_a_line_that_is_too_long_would_be_seen() -> None:
    assert not is_copied("  what      " + "two words " * 10)
    assert is_copied("  evidence  " + "a/" * 60)
    assert is_copied("  rerun     python -m harness rerun last " + "a/" * 60)


def test_an_error_that_is_the_title_of_its_cause_is_told_once() -> None:
    title = "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
    cause = replace(of_three_causes().causes[0], title=title, evidence=(("what", f"its request fails: {title}"),))
    part = cause_part(cause, 0)
    assert part.title.endswith(title)
    assert [item.text for item in part.blocks if isinstance(item, Fact) and item.label == "what"] == [
        "its request fails"
    ]
