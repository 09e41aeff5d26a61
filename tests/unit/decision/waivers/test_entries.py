"""The entries of ``golden/waivers.toml``: what is refused, and that each refusal says where and what to do."""

import datetime
from dataclasses import replace

import pytest

from harness.decision.waivers.entries import OPTIONAL, REQUIRED, WAIVER_KINDS, parse_waivers
from harness.domain.findings import MEASURES
from harness.errors import ConfigError, ExitCode
from tests.unit.builders.waivers import waiver

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
    told = replace(
        WAIVER,
        issue="https://example.org/1",
        bound=0.002,
        old="~=2.1.2",
        new=">=2.6,<2.8",
        scenario="alone",
        device="cuda",
        profile="cpu_fusion",
    )
    assert parse_waivers(ENTRY + MORE, file="f") == (told,)


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


def test_unknown_device_is_refused() -> None:
    assert "there is no device 'gpu'" in refused(ENTRY + 'device = "gpu"\n')


@pytest.mark.parametrize("value", ["JIRA-1", "javascript:alert(1)", "http://", "https:///x", "https://a b"])
def test_issue_that_is_no_link_is_refused(value: str) -> None:
    assert refused(ENTRY + f'issue = "{value}"\n').startswith("waivers.toml: waiver 1: issue is")


def test_every_optional_key_is_tried_above() -> None:
    assert all(f"{key} = " in MORE for key in OPTIONAL)
    assert type(WAIVER.expires) is datetime.date
