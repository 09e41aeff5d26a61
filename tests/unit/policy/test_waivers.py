"""Waivers: an owner, a reason and an expiry date, and nothing that is silently ignored."""

import datetime
from dataclasses import replace

import pytest

from harness.domain.outcome import Status
from harness.errors import ConfigError, ExitCode
from harness.policy.waivers import Waiver, apply_waivers, parse_waivers, unused_waivers
from tests.unit.policy.builders import finding, verdict

DAY = datetime.date(2026, 11, 21)
WAIVER = Waiver(model="m", kind="values", reason="known drift", owner="ann", expires=DAY)
ENTRY = """
[[waiver]]
model = "m"
kind = "values"
reason = "known drift"
owner = "ann"
expires = 2026-11-21
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


@pytest.mark.parametrize("text", ["", "waiver = []", "# none"])
def test_file_without_entries_has_no_waivers(text: str) -> None:
    assert parse_waivers(text, file="f") == ()


def test_broken_toml_names_the_file() -> None:
    assert refused("[[waiver]\n").startswith("waivers.toml: not valid TOML")


@pytest.mark.parametrize("key", ["model", "kind", "reason", "owner", "expires"])
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


@pytest.mark.parametrize("key", ["model", "kind", "reason", "owner"])
def test_value_of_another_type_is_refused(key: str) -> None:
    lines = [f"{key} = [1]" if line.startswith(key) else line for line in ENTRY.splitlines()]
    assert refused("\n".join(lines)) == f"waivers.toml: waiver 1: {key} is [1]"


@pytest.mark.parametrize("value", ['"2026-11-21"', "20261121", "2026-11-21T10:00:00Z"])
def test_expiry_that_is_no_date_is_refused(value: str) -> None:
    assert refused(ENTRY.replace("2026-11-21", value)).startswith("waivers.toml: waiver 1: expires is")


def test_valid_waiver_makes_a_failure_expected() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("stride"), finding("values"))
    waived = apply_waivers(red, (WAIVER,), DAY)
    assert waived.status is Status.XFAIL
    assert waived.note == "waived until 2026-11-21 by ann: known drift"
    assert waived.findings == red.findings


def test_expired_waiver_fails_the_cell_and_is_named() -> None:
    red = verdict(Status.FAIL, finding("values"))
    found = apply_waivers(red, (WAIVER,), DAY + datetime.timedelta(days=1))
    assert found.status is Status.FAIL
    assert [item.kind for item in found.findings] == ["values", "waiver_expired"]
    assert found.findings[1].message == "the waiver of ann expired on 2026-11-21"


def test_renewed_waiver_counts_beside_the_expired_one() -> None:
    renewed = replace(WAIVER, expires=DAY + datetime.timedelta(days=9))
    found = apply_waivers(verdict(Status.FAIL, finding("values")), (WAIVER, renewed), DAY + datetime.timedelta(days=1))
    assert (found.status, [item.kind for item in found.findings]) == (Status.XFAIL, ["values"])


def test_waiver_of_one_kind_does_not_excuse_another() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("dtype"))
    assert apply_waivers(red, (WAIVER,), DAY) == red
    both = (WAIVER, replace(WAIVER, kind="dtype"))
    assert apply_waivers(red, both, DAY).status is Status.XFAIL


def test_waiver_of_one_model_does_not_excuse_another() -> None:
    red = verdict(Status.FAIL, finding("values"))
    assert apply_waivers(red, (replace(WAIVER, model="n"),), DAY) == red


@pytest.mark.parametrize("status", [Status.PASS, Status.SAME_FAIL, Status.INCONCLUSIVE])
def test_waiver_changes_no_status_but_fail(status: Status) -> None:
    cell = verdict(status, finding("values"))
    assert apply_waivers(cell, (WAIVER,), DAY) == cell


def test_waiver_that_no_finding_needed_is_unused() -> None:
    other = replace(WAIVER, kind="hang")
    cells = [verdict(Status.XFAIL, finding("values")), verdict(Status.PASS, scenario="concurrent")]
    assert unused_waivers((WAIVER, other), cells) == (other,)
    assert unused_waivers((WAIVER,), [verdict(Status.PASS)]) == (WAIVER,)


@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.UNSUPPORTED, Status.SAME_FAIL])
def test_waiver_of_a_model_that_was_not_judged_is_not_called_unused(status: Status) -> None:
    assert unused_waivers((WAIVER,), [verdict(status)]) == ()
    assert unused_waivers((replace(WAIVER, model="absent"),), [verdict(Status.PASS)]) == ()
