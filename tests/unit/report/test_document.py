"""A document leaves out what is least important first, and says how much it has left out."""

from harness.report.document import (
    ALL,
    DETAIL,
    FIRST,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    anchor,
    bytes_of,
    cut,
    facts,
    fitted,
    inside,
    outside,
    place,
    placed,
)


def of(*parts: Part) -> Document:
    return Document(title="t", verdict=Verdict(word="OK"), parts=parts)


def listed(count: int, noun: str = "note") -> Part:
    return Part(title="notes", noun=noun, blocks=tuple(Fact("note", str(at), placed(FIRST, at)) for at in range(count)))


def text_of(document: Document) -> str:
    lines = [block.text for part in document.parts for block in part.blocks if isinstance(block, Fact)]
    return "".join(f"{line}\n" for line in (*lines, *(part.left for part in document.parts if part.left)))


def test_what_is_less_important_goes_and_is_counted() -> None:
    (part,) = cut(of(listed(5)), FIRST + 1).parts
    assert [block.text for block in part.blocks if isinstance(block, Fact)] == ["0", "1"]
    assert part.left == "and 3 more notes"


def test_what_is_meant_for_pages_alone_is_not_counted_on_paper() -> None:
    part = Part(title="p", noun="note", blocks=(Fact("a", "1"), Fact("b", "2", ALL)))
    assert cut(of(part), DETAIL).parts[0].left == ""


def test_folded_details_are_no_thing_of_their_part() -> None:
    """Where no prediction was wrong, the table of all is not one more wrong prediction."""
    details = Part(title="2 models", folded=True, importance=DETAIL, blocks=(Fact("", "all right"),))
    document = of(Part(title="Static check", noun="wrong prediction", importance=FIRST, blocks=(details,)))
    assert cut(document, FIRST).parts == ()


def test_rows_that_are_left_out_are_counted_by_what_they_came_to() -> None:
    rows = tuple(
        Row(cells=(str(at), Cell("PASS" if at % 2 else "FAIL", tone="good")), importance=FIRST + at) for at in range(5)
    )
    table = Table(heads=("model", "status"), rows=rows, noun="model")
    (block,) = cut(of(Part(title="p", blocks=(table,))), FIRST + 1).parts[0].blocks
    assert isinstance(block, Table) and len(block.rows) == 2
    assert block.left == "and 3 more models: 2 FAIL, 1 PASS"


def test_a_part_of_which_nothing_is_left_goes_unless_it_is_a_thing_with_a_word() -> None:
    details = facts([("what", "it hangs")], DETAIL)
    silent, cause = Part(title="p", blocks=details), Part(title="c", word="FAIL", blocks=details)
    assert cut(of(silent, cause, Part(title="empty")), FIRST).parts == (Part(title="c", word="FAIL"),)


def test_the_most_that_fits_is_kept() -> None:
    document = of(listed(30))
    text = text_of(fitted(document, ALL, lambda less: text_of(less).count("\n"), 10))
    assert text.count("\n") == 10 and "and 21 more notes" in text
    assert fitted(document, ALL, lambda less: text_of(less).count("\n"), 30) == document
    assert "30 notes not shown here" in text_of(fitted(document, ALL, lambda less: len(text_of(less)), 1))
    assert "and 27 more notes" in text_of(fitted(document, FIRST + 9, lambda less: text_of(less).count("\n"), 4))
    assert bytes_of(document, 100, 10) == 30 * 10 + sum(len(str(at)) for at in range(30)) + len("notes") + 10


def test_anchors_and_links_are_safe_in_an_address() -> None:
    assert anchor("a/b <x>") != anchor("a/b <y>") and anchor("a/b <x>").startswith("model-a-b-x-")
    assert place("m/backward/a b") == "m/backward/a%20b"
    assert inside("probes/a b/x.txt") == "probes/a%20b/x.txt"
    assert inside("/etc/x") == inside("../x") == inside("") == ""
    for issue in ("javascript:alert(1)", "https://", "http://a b", "https://a\u202e", "data:text/html,x", "//evil"):
        assert outside(issue) == ""
    assert outside("https://example.org/1") == "https://example.org/1"
