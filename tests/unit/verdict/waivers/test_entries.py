"""The entries of ``golden/waivers.toml``: what is refused, and that each refusal says where and what to do."""

import datetime
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from harness.verdict.waivers.entries import (
    NEW_FILE,
    OPTIONAL,
    REQUIRED,
    WAIVER_KINDS,
    entry_text,
    parse_waivers,
    with_waivers,
    without_entries,
)
from harness.core.findings import MEASURES, OF_THE_RUN, SEVERITY
from harness.core.verdict import Waiver
from harness.core.errors import ConfigError, ExitCode
from harness.serving.scenarios import SCENARIOS
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.verdicts import waiver

WAIVER = waiver()
ENTRY = """
[[waiver]]
model = "m"
kind = "values"
reason = "known drift"
owner = "ann"
expires = 2026-11-21
"""
MORE = """\
issue = "https://example.org/1"
bound = 0.002
about = "aten::foo"
old = "~=2.1.2"
new = ">=2.6,<2.8"
scenario = "alone"
device = "cuda"
profile = "cpu_fusion"
"""


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_waivers(text, file="waivers.toml")
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    assert caught.value.hint
    return caught.value.message


def test_waiver_file_is_read() -> None:
    second = ENTRY.replace('"values"', '"hang"')
    assert parse_waivers(ENTRY + second, file="f") == (WAIVER, replace(WAIVER, kind="hang"))


def test_optional_keys_are_read() -> None:
    expected = replace(
        WAIVER,
        issue="https://example.org/1",
        bound=0.002,
        about="aten::foo",
        old="~=2.1.2",
        new=">=2.6,<2.8",
        scenario="alone",
        device="cuda",
        profile="cpu_fusion",
    )
    assert parse_waivers(ENTRY + MORE, file="f") == (expected,)


def test_a_whole_number_is_a_bound() -> None:
    assert parse_waivers(ENTRY + "bound = 1\n", file="f")[0].bound == 1.0


@pytest.mark.parametrize("text", ["", "waiver = []", "# none"])
def test_file_without_entries_has_no_waivers(text: str) -> None:
    assert parse_waivers(text, file="f") == ()


@pytest.mark.parametrize("text", ["[[waiver]\n", "\ufeff" + ENTRY, "x = " + "[" * 5000, "x = " + "1" * 5000])
def test_broken_toml_names_the_file(text: str) -> None:
    assert refused(text).startswith("waivers.toml: not valid TOML")


@pytest.mark.parametrize("key", REQUIRED)
def test_missing_key_names_entry_and_key(key: str) -> None:
    lines = [line for line in ENTRY.splitlines() if not line.startswith(key)]
    assert refused(ENTRY + "\n".join(lines)) == f"waivers.toml: waiver 2 lacks {key}"


def test_unknown_key_is_refused() -> None:
    assert refused(ENTRY + 'modle = "m"\n') == "waivers.toml: waiver 1 has unknown keys modle"  # codespell:ignore


@pytest.mark.parametrize("text", ['[[waivers]]\nmodel = "m"\n', "schema = 1\n"])
def test_unknown_table_is_refused(text: str) -> None:
    assert "has unknown keys" in refused(text)


@pytest.mark.parametrize("text", ["waiver = 3", "waiver = [3]", '[waiver]\nmodel = "m"'])
def test_waiver_that_is_no_list_of_tables_is_refused(text: str) -> None:
    assert refused(text) == "waivers.toml does not hold a list of waivers"


def test_unknown_kind_is_refused() -> None:
    assert "kind 'valeus' is unknown" in refused(ENTRY.replace('"values"', '"valeus"'))  # codespell:ignore


@pytest.mark.parametrize("kind", WAIVER_KINDS)
def test_what_is_said_of_waivers_cannot_be_waived(kind: str) -> None:
    assert f"kind '{kind}' is about waivers" in refused(ENTRY.replace("values", kind))


def test_what_is_of_the_run_cannot_be_waived_for_a_model() -> None:
    assert "kind 'common_slowdown' is of the run" in refused(ENTRY.replace("values", "common_slowdown"))


@pytest.mark.parametrize(
    "key", ["model", "kind", "reason", "owner", "issue", "old", "new", "scenario", "device", "profile"]
)
@pytest.mark.parametrize("value", ["[1]", "''", '" "'])
def test_value_that_is_no_text_is_refused(key: str, value: str) -> None:
    lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in (ENTRY + MORE).splitlines()]
    assert refused("\n".join(lines)).startswith(f"waivers.toml: waiver 1: {key} is ")


@pytest.mark.parametrize("value", ['"2026-11-21"', "20261121", "2026-11-21T10:00:00Z"])
def test_expiry_that_is_no_date_is_refused(value: str) -> None:
    assert refused(ENTRY.replace("2026-11-21", value)).startswith("waivers.toml: waiver 1: expires is")


@pytest.mark.parametrize("value", ["true", '"0.1"', "0", "0.0", "-1", "inf", "nan", "[0.1]", "2026-01-01", "1" * 400])
def test_bound_that_is_no_size_is_refused(value: str) -> None:
    assert refused(ENTRY + f"bound = {value}\n").startswith("waivers.toml: waiver 1: bound is")


@pytest.mark.parametrize("value", ["1", "0.97", "1.0", "inf"])
def test_bound_of_a_ratio_is_above_one(value: str) -> None:
    text = ENTRY.replace("values", "latency")
    assert refused(text + f"bound = {value}\n").startswith("waivers.toml: waiver 1: bound is")
    assert parse_waivers(text + "bound = 1.03\n", file="f")[0].bound == 1.03


def test_bound_of_a_kind_without_size_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_waivers(ENTRY.replace("values", "hang") + "bound = 3\n", file="f")
    assert caught.value.message == "f: waiver 1: bound is 3, and hang has no size"
    assert all(kind in caught.value.hint for kind in MEASURES)


@pytest.mark.parametrize("value", ["2.6", "new", "=>2", "~=2", ",", " , "])
def test_range_that_is_none_is_refused(value: str) -> None:
    assert "which is no range of releases" in refused(ENTRY + f'new = "{value}"\n')


def test_unknown_scenario_is_refused() -> None:
    assert "there is no scenario 'nowhere'" in refused(ENTRY + 'scenario = "nowhere"\n')


def test_device_that_is_no_name_is_refused() -> None:
    assert "device is 'cuda:0'" in refused(ENTRY + 'device = "cuda:0"\n')


@pytest.mark.parametrize("value", ["JIRA-1", "javascript:alert(1)", "http://", "https:///x", "https://a b"])
def test_issue_that_is_no_link_is_refused(value: str) -> None:
    assert refused(ENTRY + f'issue = "{value}"\n').startswith("waivers.toml: waiver 1: issue is")


def test_every_optional_key_is_tried_above() -> None:
    assert all(f"{key} = " in MORE for key in OPTIONAL)
    assert type(WAIVER.expires) is datetime.date


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
KINDS = st.sampled_from([kind for kind in SEVERITY if kind not in (*WAIVER_KINDS, *OF_THE_RUN)])
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
