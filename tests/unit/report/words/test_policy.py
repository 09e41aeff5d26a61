"""The policy, as it is told in every text."""

import xml.etree.ElementTree as ET
from functools import partial
from dataclasses import replace

import pytest

from harness.verdict.enforce import ruled_words
from harness.verdict.decide import judge_row
from harness.core.outcome import Decision, Status
from harness.core.plan import PolicyRule, PolicySettings
from harness.core.policy import Demand, PolicyReport, Regated, RegatedCell
from harness.core.report import RunReport
from harness.core.verdict import Finding, RowVerdict, Ruled
from harness.report.ci.junit import render_junit
from harness.report.json.report import dump_report, load_report
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_console
from harness.report.words.policy import let_pass, policy_lines
from tests.unit.builders.reports import HOSTILE_NAMES, upgrade_ok, verdict

LIMIT = Ruled(kind="values", was="fail", now="warn", by="limits.error of policy.toml", why="off by 0.0004, limit 0.001")
WAIVED = Ruled(kind="hang", was="fail", now="info", by="severity.hang of policy.toml")
STRICT = Ruled(kind="memory", was="warn", now="fail", by="severity.memory of policy.toml")
SETTINGS = PolicySettings(
    limits={"error": 0.001}, severity={"hang": "info", "memory": "fail"}, rules=(PolicyRule(models="vision"),)
)
POLICY = PolicyReport(
    source="policy.toml",
    settings=SETTINGS,
    steady=1.03,
    undecided=1.25,
    demands=(
        Demand(what="minimum_models = 2", found="3 judged", met=True),
        Demand(what="required scenario shared", found="0 of 3 models tested in it, not detector", met=False),
    ),
    notes=('rule 1 of the policy (models = "visoin") matches none of 3 models',),
)

everything = partial(render_console, verbose=True)


def report(**changes: object) -> RunReport:
    """Return a run in which a policy let one cell pass, took one limit, and was stricter once."""
    found = upgrade_ok()
    cells = {
        "detector": replace(
            verdict("detector", "alone", Status.PASS, Finding(kind="values", message="off")), ruled=(LIMIT,)
        ),
        "recommender": replace(
            verdict("recommender", "alone", Status.XFAIL, Finding(kind="hang", message="stuck")), ruled=(WAIVED,)
        ),
        "speech_encoder": replace(
            verdict("speech_encoder", "alone", Status.FAIL, Finding(kind="memory", message="more")), ruled=(STRICT,)
        ),
    }
    rows = tuple(
        RowVerdict(model=row.model, status=cells[row.model].status, cells=(cells[row.model],), reason="told")
        for row in found.judgement.rows
    )
    policy = replace(POLICY, **changes)  # type: ignore[arg-type]
    return replace(found, judgement=replace(found.judgement, rows=rows), policy=policy)


def test_run_without_a_policy_tells_nothing() -> None:
    assert policy_lines(upgrade_ok()) == ()
    assert policy_lines(report(settings=PolicySettings())) == ()


def test_what_the_policy_let_pass_is_reported_before_what_it_is_stricter_with() -> None:
    assert policy_lines(report()) == (
        ("policy", "policy.toml: 1 limit, severities of 2 kinds, 1 rule"),
        ("policy", 'rule 1 of the policy (models = "visoin") matches none of 3 models'),
        ("asks", "minimum_models = 2: 3 judged"),
        ("lacks", "required scenario shared: 0 of 3 models tested in it, not detector"),
        (
            "let pass",
            "recommender, load and calls (XFAIL): hang counts as info in place of fail: severity.hang of policy.toml",
        ),
        (
            "let pass",
            "detector, load and calls (PASS): values counts as warn in place of fail, off by 0.0004, limit 0.001: "
            "limits.error of policy.toml",
        ),
        (
            "stricter",
            "speech_encoder, load and calls (FAIL): memory counts as fail in place of warn: severity.memory of policy.toml",
        ),
    )


def test_cells_beyond_the_limit_are_counted() -> None:
    labels = [label for label, _ in policy_lines(report(), listed=1)]
    assert labels == ["policy", "policy", "asks", "lacks", "let pass", ""]
    assert ("", "and 2 more cells, in report.json") in policy_lines(report(), listed=1)


def test_run_that_is_judged_again_says_what_it_had_decided() -> None:
    change = RegatedCell(cell="m/alone", was=Status.PASS, now=Status.FAIL, why="about values")
    regated = Regated(
        decision=Decision.UPGRADE_OK,
        reason="3 models pass",
        exit_code=0,
        changes=(change,),
        why="1 cell judged otherwise",
    )
    lines = policy_lines(report(settings=PolicySettings(), regated=regated))
    assert (lines[0], *lines[2:5]) == (
        ("policy", "policy.toml"),
        ("run said", "UPGRADE OK (exit code 0): 3 models pass"),
        ("now", "1 cell judged otherwise"),
        ("changed", "m/alone: PASS -> FAIL: about values"),
    )


def test_a_rule_that_matches_nothing_is_among_the_few_lines_of_a_console() -> None:
    shown = " ".join(render_console(report()).split())
    assert "more policy lines" in shown and "matches none of 3 models" in shown


def test_every_text_tells_what_the_policy_let_pass() -> None:
    found = report()
    console, markdown = everything(found, width=200), render_markdown(found)
    for text in (console, markdown):
        assert "hang counts as info in place of fail" in text
        assert "0 of 3 models tested in it" in text
    cases = {case.get("name"): case for case in ET.fromstring(render_junit(found)).iter("testcase")}
    passing = cases["detector/alone"].find("system-out")
    assert passing is not None
    assert passing.text is not None
    assert passing.text.startswith("let pass by the policy: values counts as warn in place of fail")
    skipped = cases["recommender/alone"].find("skipped")
    assert skipped is not None
    values = {item.get("value") for item in ET.fromstring(render_junit(found)).iter("property")}
    assert "required scenario shared: 0 of 3 models tested in it, not detector" in values


def test_console_tells_once_what_the_policy_made_of_a_cell() -> None:
    found = report()
    cells = {cell.model: replace(cell, note=ruled_words(cell.ruled)) for cell in found.judgement.cells}
    changes = tuple(
        RegatedCell(cell=cell.cell, was=was, now=cell.status, why=cell.note)
        for cell, was in ((cells["recommender"], Status.FAIL), (cells["speech_encoder"], Status.PASS))
    )
    rows = tuple(judge_row(row.model, [cells[row.model]]) for row in found.judgement.rows)
    regated = Regated(decision=Decision.BLOCKED, reason="stuck", exit_code=1, changes=changes)
    again = replace(found, judgement=replace(found.judgement, rows=rows), policy=replace(POLICY, regated=regated))
    text = everything(again, width=200)
    assert [text.count(f"severity.{kind} of policy.toml") for kind in ("hang", "memory")] == [1, 1]
    assert f"{cells['recommender'].cell}: FAIL -> XFAIL\n" in text
    assert f"{cells['speech_encoder'].cell}: PASS -> FAIL\n" in text
    assert "let pass  detector, load and calls (PASS): values counts as warn" in text  # a PASS has no block
    page = render_markdown(again)
    assert page.count("severity.hang of policy.toml") == 1


def test_stricter_severity_is_nothing_let_pass() -> None:
    assert let_pass(report().judgement.rows[2].cells[0]) == ""


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_words_of_a_policy_inject_nothing(name: str) -> None:
    found = report(source=name, notes=(name,), demands=(Demand(what=name, found=name, met=False),))
    assert "\x1b" not in everything(found)
    assert "<script>" not in render_markdown(found)
    ET.fromstring(render_junit(found))


def test_policy_survives_the_report() -> None:
    found = report()
    assert load_report(dump_report(found), file="report.json") == found
