"""What a check means for a run: the states that every format for CI is made of."""

from dataclasses import replace

import pytest

from harness.core.outcome import Decision, Status
from harness.core.report import BaselineReport, CellChange, CellTrend, RunReport
from harness.core.verdict import Finding, Ruled, Waived
from harness.report.ci.checks import Check, State, checks
from tests.unit.builders.reports import REPORTS, blocked, inconclusive, nothing_tested, upgrade_ok


def with_first_cell(
    status: Status, *findings: Finding, decides: bool = True, waived: tuple[Waived, ...] = ()
) -> RunReport:
    """Return a green report but for one cell."""
    report = upgrade_ok()
    row = report.judgement.rows[0]
    cell = replace(row.cells[0], status=status, decides=decides, findings=findings, waived=waived)
    row = replace(row, status=status, cells=(cell, *row.cells[1:]), reason="known since 2.1")
    return replace(report, judgement=replace(report.judgement, rows=(row, *report.judgement.rows[1:])))


def first_cell(report: RunReport) -> Check:
    cell = report.judgement.rows[0].cells[0].cell
    return next(check for check in checks(report) if check.name == cell)


@pytest.mark.parametrize(
    ("status", "decides", "state"),
    [
        (Status.PASS, True, State.GREEN),
        (Status.FAIL, True, State.RED),
        (Status.FAIL, False, State.ASIDE),
        (Status.XPASS, True, State.RED),
        (Status.INCONCLUSIVE, True, State.OPEN),
        (Status.INCONCLUSIVE, False, State.ASIDE),
        (Status.SAME_FAIL, True, State.BEFORE),
        (Status.XFAIL, True, State.WAIVED),
        (Status.UNSUPPORTED, True, State.ABSENT),
    ],
)
def test_each_status_has_its_state(status: Status, decides: bool, state: State) -> None:
    check = first_cell(with_first_cell(status, decides=decides))
    is_aside = status is Status.INCONCLUSIVE and not decides
    assert (check.state, check.raw) == (state, "undecided" if is_aside else status.value)


@pytest.mark.parametrize("name", REPORTS)
def test_the_decision_comes_first_and_is_green_only_with_exit_code_0(name: str) -> None:
    report = REPORTS[name]()
    decision = checks(report)[0]
    assert decision.name == "decision"
    assert (decision.state is State.GREEN) == (report.judgement.exit_code == 0)


@pytest.mark.parametrize("decision", [Decision.INCONCLUSIVE, Decision.NOTHING_TESTED])
def test_an_undecided_run_is_open_whatever_its_exit_code(decision: Decision) -> None:
    report = upgrade_ok()
    report = replace(report, judgement=replace(report.judgement, decision=decision, exit_code=0))
    assert checks(report)[0].state is State.OPEN


@pytest.mark.parametrize("name", REPORTS)
def test_after_the_decision_the_worst_comes_first(name: str) -> None:
    order = [list(State).index(check.state) for check in checks(REPORTS[name]())[1:]]
    assert order == sorted(order)


def test_every_cell_planted_and_rollback_is_there_once() -> None:
    report = blocked()
    found = [(check.suite, check.name) for check in checks(report)]
    assert len(found) == len(set(found))
    assert report.rollback is not None
    cells = sum(len(row.cells) for row in report.judgement.rows)
    assert len(found) == 1 + cells + len(report.judgement.planted_defects) + len(report.rollback.models)


def test_a_missed_planted_is_red_and_says_what_was_reported() -> None:
    (missed,) = [
        check for check in checks(inconclusive()) if check.suite == "planted_defects" and check.state is State.RED
    ]
    assert missed.raw == "missed"
    assert "MISSED" in missed.message


def test_the_rollback_decides_only_where_policy_says_so() -> None:
    report = blocked()
    assert report.rollback is not None and not report.rollback.gates
    states = {check.raw: check.state for check in checks(report) if check.suite == "rollback"}
    assert states == {"no": State.ASIDE, "yes": State.GREEN, "unknown": State.ASIDE}
    gating = replace(report, rollback=replace(report.rollback, gates=True))
    states = {check.raw: check.state for check in checks(gating) if check.suite == "rollback"}
    assert states == {"no": State.RED, "yes": State.GREEN, "unknown": State.OPEN}


def test_a_waived_cell_says_who_answers_for_it_until_when() -> None:
    waived = Waived(
        kinds=("latency",),
        owner="ranking",
        reason="new kernel",
        expires="2027-01-31",
        issue="https://tracker/7",
        bound=1.1,
    )
    check = first_cell(with_first_cell(Status.XFAIL, waived=(waived,)))
    told = dict(check.lines)
    assert told["waived"] == "latency up to 1.1 by ranking until 2027-01-31: new kernel (https://tracker/7)"
    assert told["rerun"].startswith("python -m harness rerun")


def test_what_the_policy_let_pass_is_not_called_waived() -> None:
    """Nobody answers for it, and it has no last day."""
    report = with_first_cell(Status.XFAIL, Finding(kind="values", message="off by 0.1"))
    row = report.judgement.rows[0]
    ruled = (Ruled(kind="values", was="fail", now="warn", by="severity.values of policy.toml"),)
    waived = (Waived(kinds=("hang",), owner="ads", reason="known", expires="2027-01-31"),)
    states = {}
    for name, extra in (("policy", ()), ("both", waived)):
        cell = replace(row.cells[0], ruled=ruled, waived=extra)
        changed = replace(row, cells=(cell, *row.cells[1:]))
        rows = (changed, *report.judgement.rows[1:])
        states[name] = first_cell(replace(report, judgement=replace(report.judgement, rows=rows))).state
    assert states == {"policy": State.RULED, "both": State.WAIVED}


def test_what_is_new_since_the_baseline_comes_before_what_was_red_already() -> None:
    report = blocked()
    red = [check for check in checks(report) if check.state is State.RED][1:]
    last = red[-1]
    change = CellChange(
        cell=last.name, model=last.model, scenario=last.suite, change=CellTrend.NEW, why="it passed there"
    )
    baseline = BaselineReport(run="yesterday", started_at="", decision=Decision.UPGRADE_OK, changes=(change,))
    first = checks(replace(report, baseline=baseline))[1]
    assert (first.name, first.change) == (last.name, CellTrend.NEW)
    assert dict(first.lines)["baseline"] == "new since yesterday: it passed there"


def test_nothing_tested_is_one_open_check() -> None:
    assert [(check.suite, check.state) for check in checks(nothing_tested())] == [("gate", State.OPEN)]
