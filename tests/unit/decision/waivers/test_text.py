"""The writer of ``golden/waivers.toml``: what is written parses back, and what people wrote stays as it is."""

import datetime
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.decision.waivers.entries import WAIVER_KINDS, parse_waivers
from harness.decision.waivers.entries import NEW_FILE, entry_text, with_waivers, without_entries
from harness.domain.findings import MEASURES, SEVERITY
from harness.scenarios import SCENARIOS
from harness.domain.verdict import Waiver
from harness.errors import ConfigError
from tests.unit.builders.waivers import waiver
from tests.unit.builders.reports import HOSTILE_NAMES

FILE = """\
# Known findings of the ads team.
# Ask ann first.

# dlrm: new reduction order
[[waiver]]  # since May
model = "dlrm"
kind    =   'values'   # not aligned on purpose
reason = \"\"\"
a reason that holds
[[waiver]]
and "quotes"\"\"\"
owner = "ann"
expires = 2026-11-21

# bert
[[ "waiver" ]]
model = "bert"
kind = "hang"
reason = "r"
owner = "bob"
expires = 2027-01-01
# bob says: until the driver is out

[[waiver]]
model = "m"
kind = "dtype"
reason = "r"
owner = "eve"
expires = 2027-01-01
"""
# What a TOML file can hold; a lone surrogate it cannot.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip())
HOSTILE = st.sampled_from([name for name in HOSTILE_NAMES if "\udcff" not in name])
KINDS = st.sampled_from([kind for kind in SEVERITY if kind not in WAIVER_KINDS])
DATES = st.dates()


@st.composite
def waivers(draw: st.DrawFn) -> Waiver:
    kind = draw(KINDS)
    sizes = st.floats(1.0, 1e300, exclude_min=True) if MEASURES.get(kind) == "ratio" else st.floats(5e-324, 1e300)
    return Waiver(
        model=draw(TEXTS | HOSTILE),
        kind=kind,
        reason=draw(TEXTS | HOSTILE),
        owner=draw(TEXTS | HOSTILE),
        expires=draw(DATES),
        issue=draw(st.sampled_from(["", "https://example.org/1?a=\"'\\", "http://x"])),
        bound=draw(st.none() | sizes) if kind in MEASURES else None,
        old=draw(st.sampled_from(["", "~=2.1.2"])),
        new=draw(st.sampled_from(["", ">=2.6,<2.8", "==2.8.0.dev1"])),
        scenario=draw(st.sampled_from(["", *SCENARIOS])),
        device=draw(st.sampled_from(["", "cpu", "cuda"])),
        profile=draw(st.just("") | TEXTS),
    )


def parsed(text: str) -> tuple[Waiver, ...]:
    return parse_waivers(text, file="waivers.toml")


@settings(max_examples=40)
@given(waivers())
def test_what_is_written_parses_back_to_the_same_waiver(one: Waiver) -> None:
    assert parsed(entry_text(one)) == (one,)


@settings(max_examples=40)
@given(waivers())
def test_what_is_written_steers_no_terminal_and_no_review(one: Waiver) -> None:
    assert all(line.isprintable() for line in entry_text(one).splitlines())


@settings(max_examples=40)
@given(st.lists(waivers(), max_size=4), st.lists(waivers(), min_size=1, max_size=3))
def test_entries_are_added_behind_those_that_are_there(before: Sequence[Waiver], added: Sequence[Waiver]) -> None:
    text = with_waivers(NEW_FILE, before, file="f") if before else NEW_FILE
    longer = with_waivers(text, added, file="f")
    assert longer.startswith(text)
    assert parsed(longer) == (*before, *added)


@settings(max_examples=40)
@given(st.lists(waivers(), min_size=1, max_size=5), st.data())
def test_entries_are_taken_out_and_the_others_stay(all_of: Sequence[Waiver], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(range(len(all_of)))))
    text = with_waivers(NEW_FILE, all_of, file="f")
    left = [item for place, item in enumerate(all_of) if place not in gone]
    assert parsed(without_entries(text, gone, file="f")) == tuple(left)
    assert without_entries(text, set(range(len(all_of))), file="f") == NEW_FILE


@settings(max_examples=40)
@given(waivers())
def test_adding_and_taking_out_gives_the_file_as_it_was(one: Waiver) -> None:
    longer = with_waivers(FILE, [one], file="f")
    assert longer.startswith(FILE)
    assert without_entries(longer, {3}, file="f") == FILE


def test_an_entry_is_written_in_the_order_of_the_guide() -> None:
    one = waiver(bound=0.002, new="~=2.6.0", scenario="alone", issue="https://example.org/1")
    assert entry_text(one) == (
        '[[waiver]]\nmodel = "m"\nkind = "values"\nreason = "known drift"\nowner = "ann"\nexpires = 2026-11-21\n'
        'issue = "https://example.org/1"\nbound = 0.002\nnew = "~=2.6.0"\nscenario = "alone"\n'
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_written_or_refused(name: str) -> None:
    one = waiver(model=name, owner=name, reason=name)
    if "\udcff" in name:
        with pytest.raises(ConfigError, match="surrogate"):
            entry_text(one)
    else:
        assert parsed(with_waivers(FILE, [one], file="f"))[-1] == one


def test_a_file_that_does_not_end_with_a_line_end_gets_one() -> None:
    assert with_waivers(FILE.rstrip("\n"), [waiver()], file="f") == f"{FILE}\n{entry_text(waiver())}"


def test_line_ends_of_another_system_are_kept() -> None:
    text = FILE.replace("\n", "\r\n")
    longer = with_waivers(text, [waiver()], file="f")
    assert longer.startswith(text)
    assert longer.count("\n") == longer.count("\r\n")
    assert without_entries(longer, {3}, file="f") == text


def test_an_entry_goes_with_the_comment_right_above_it() -> None:
    shorter = without_entries(FILE, {1}, file="f")
    assert "# bert\n" not in shorter
    assert [item.model for item in parsed(shorter)] == ["dlrm", "m"]
    assert shorter.startswith(FILE[: FILE.index("# bert")])
    assert shorter.endswith(FILE[FILE.index('[[waiver]]\nmodel = "m"') :])


def test_the_comment_at_the_head_of_the_file_stays() -> None:
    text = "# of the file\n" + entry_text(waiver())
    assert without_entries(text, {0}, file="f") == "# of the file\n"
    shorter = without_entries(FILE, {0}, file="f")
    assert shorter.startswith("# Known findings of the ads team.\n# Ask ann first.\n\n# bert\n")


def test_a_header_inside_a_text_is_none() -> None:
    assert [item.model for item in parsed(without_entries(FILE, {2}, file="f"))] == ["dlrm", "bert"]
    assert "[[waiver]]\nand" in without_entries(FILE, {1, 2}, file="f")


@pytest.mark.parametrize(
    "text",
    ['waiver = [{model = "m", kind = "hang", reason = "r", owner = "o", expires = 2026-01-01}]\n', "waiver = []\n"],
)
def test_a_file_in_another_form_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError, match=r"begin every waiver with \[\[waiver\]\]"):
        with_waivers(text, [waiver()], file="f")
    if parsed(text):
        with pytest.raises(ConfigError, match=r"1 waivers, and 0 lines"):
            without_entries(text, {0}, file="f")


def test_a_broken_file_is_left_alone() -> None:
    with pytest.raises(ConfigError, match="f: not valid TOML"):
        with_waivers("[[waiver]", [waiver()], file="f")
    with pytest.raises(ConfigError, match="f: not valid TOML"):
        without_entries("x", {0}, file="f")


def test_a_year_of_four_digits_is_written() -> None:
    assert "expires = 0999-01-01\n" in entry_text(waiver(expires=datetime.date(999, 1, 1)))
