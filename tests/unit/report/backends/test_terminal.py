"""Any document on a terminal: within its width, the verdict last, and colour only where it is asked for."""

import re

from harness.report.backends.terminal import part_lines, render_terminal
from harness.report.document import BAD, DETAIL, FIRST, GOOD, Cell, Document, Fact, Part, Row, Table, Verdict, placed

TABLE = Table(
    heads=("model", "load time", "steady latency", "status"),
    rows=(
        Row(
            cells=(
                "detector",
                Cell("118 -> 131 ms", short="x1.11"),
                Cell("+0.4 % [-0.8, +1.6]", short="+0.4 %"),
                "PASS",
            )
        ),
        Row(cells=("n" * 60, "-", "-", Cell("FAIL", tone=BAD))),
    ),
    numbers=(1, 2),
    legend="x: new over old",
)


def of(*blocks: object, **verdict: str) -> Document:
    part = Part(title="p", blocks=blocks)  # type: ignore[arg-type]
    return Document(
        title="t", verdict=Verdict(**{"word": "BLOCKED", "tone": BAD, "means": "exit code 1", **verdict}), parts=(part,)
    )


def test_the_first_part_stands_last_and_the_verdict_below_it() -> None:
    parts = (Part(title="a", blocks=(Fact("one", "1"),)), Part(title="b", blocks=(Fact("two", "2"),)))
    text = render_terminal(Document(title="t", verdict=Verdict(word="OK", reason="all is well"), parts=parts))
    assert text == "two       2\n\none       1\n\nwhy       all is well\n\nOK\n"


def test_a_table_takes_the_roomiest_layout_that_fits() -> None:
    wide = render_terminal(of(TABLE), width=140)
    assert "118 -> 131 ms" in wide and "load time" in wide and "x: new over old" not in wide
    narrow = render_terminal(of(TABLE), width=100)
    assert "x1.11  +0.4 % [-0.8, +1.6]" in narrow and "x: new over old" in narrow
    small = render_terminal(of(TABLE), width=80)
    assert "x1.11" in small and "nnn...nnn" in small and max(map(len, small.splitlines())) <= 80


def test_columns_for_which_there_is_no_room_at_all_stand_below_with_the_name_of_their_row() -> None:
    releases = tuple(f"2.{at}.0+cu124" for at in range(12))
    table = Table(heads=("exported in", *releases), rows=(Row(cells=("2.1.2", *(["63/65 X"] * 12))),))
    text = render_terminal(of(table), width=80)
    assert text.count("2.1.2 ") > 1 and all(name in text for name in releases)
    assert max(map(len, text.splitlines())) <= 80


def test_columns_of_long_texts_are_left_to_pages() -> None:
    table = Table(heads=("a", "long", "b"), rows=(Row(cells=("1", "words", "2")),), long=(1,))
    assert "words" not in render_terminal(of(table)) and "1  2" in render_terminal(of(table))


def test_a_label_that_repeats_is_told_once_and_its_texts_wrap_in_their_column() -> None:
    text = render_terminal(of(Fact("what", "word " * 20), Fact("what", "other")), width=80)
    first, second, third, *_ = text.splitlines()
    assert first.startswith("what      word") and second.startswith("          word") and third == "          other"


def test_a_number_keeps_its_unit_and_an_interval_stays_whole() -> None:
    text = render_terminal(of(Fact("x", f"{'a' * 61} +0.4 % [-0.8, +1.6] and 12 of 40 of it")), width=80)
    assert "+0.4 % [-0.8, +1.6]" in text


def test_what_is_copied_is_never_broken() -> None:
    command = f"python -m harness rerun {'a/' * 60}"
    lines = render_terminal(of(Fact("rerun", command, form="command")), width=80).splitlines()
    assert lines[0] == f"rerun     {command}"
    pasted = render_terminal(of(Fact("C++", "one\n  two", form="command")))
    assert "C++       one\n            two\n" in pasted


def test_only_words_with_a_tone_have_a_colour_and_without_it_the_text_is_the_same() -> None:
    part = Part(title="it hangs", word="FAIL", tone=BAD, blocks=(Fact("what", "x"),))
    document = of(part, TABLE, Cell("x", tone=GOOD) and Fact("a", "b"))
    plain, painted = render_terminal(document), render_terminal(document, colour=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == plain
    assert set(re.findall("\x1b\\[[0-9;]+m([^\x1b]+)\x1b", painted)) == {"FAIL", "BLOCKED"}


def test_with_little_room_things_become_lines_and_texts_are_cut() -> None:
    things = tuple(
        Part(
            title=f"cause {at}",
            word="FAIL",
            importance=placed(FIRST, at),
            blocks=(Fact("what", "word " * 60, DETAIL - 90 + at),),
        )
        for at in range(20)
    )
    document = Document(
        title="t", verdict=Verdict(word="BLOCKED"), parts=(Part(title="c", noun="cause", blocks=things),)
    )
    text = render_terminal(document, width=80, most_lines=20)
    assert text.count("\n") <= 20 and "FAIL  cause 0\n" in text and "more cause" in text
    assert render_terminal(document, width=80, verbose=True).count("\n") > 60


def test_a_part_stands_for_itself() -> None:
    part = Part(title="ranker", word="FAIL", blocks=(Fact("what", "hangs"), Fact("rerun", "x y", form="command")))
    assert part_lines(part, width=100) == "FAIL  ranker\n  what      hangs\n  rerun     x y"
