"""What a report says of a whole run in a line."""

from dataclasses import replace

import pytest

from harness.core.outcome import Decision, Status
from harness.core.verdict import Cause
from harness.checks.startup.rates import more_often
from harness.report.words.summary import headline, reason_words
from harness.verdict.since import since
from tests.unit.builders.rendered import render_console
from tests.unit.builders.reports import blocked, upgrade_ok


def cause(*models: str, verified: bool = False, status: Status = Status.FAIL) -> Cause:
    return Cause(
        id=models[0], kind="values", status=status, title="t", cells=(), models=models, fix="f", fix_verified=verified
    )


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ((cause("a"),), "1 of 6 models fails, 1 cause; why"),
        ((cause("a", verified=True),), "1 of 6 models fails, 1 cause with a verified fix; why"),
        ((cause("a", "b"), cause("b", "c")), "3 of 6 models fail, 2 causes; why"),
        (
            (cause("a", verified=True), cause("b", verified=True)),
            "2 of 6 models fail, 2 causes, each with a verified fix; why",
        ),
        (
            (cause("a", verified=True), cause("b"), cause("c", status=Status.INCONCLUSIVE)),
            "2 of 6 models fail, 2 causes, 1 of them with a verified fix; why",
        ),
        ((), "why"),
    ],
)
def test_a_blocked_upgrade_says_how_much_is_red_for_how_many_causes_and_whether_a_fix_is_known(
    causes: tuple[Cause, ...], words: str
) -> None:
    report = blocked()
    report = replace(report, causes=causes, judgement=replace(report.judgement, reason="why"))
    assert reason_words(report) == words
    other = replace(report, judgement=replace(report.judgement, decision=Decision.INCONCLUSIVE))
    assert reason_words(other) == "why"


def test_a_green_run_that_lacks_a_model_of_the_baseline_says_so_first() -> None:
    report = upgrade_ok()
    without = replace(report.judgement, rows=report.judgement.rows[1:])
    beside = replace(report, judgement=without, baseline=since(report, replace(report, judgement=without), more_often))
    missing = report.judgement.rows[0].model
    assert headline(beside) == f"{headline(report)}, gone since the baseline: {missing}"
    assert f"UPGRADE OK, gone since the baseline: {missing}" in render_console(beside, width=100)
    whole = replace(report, baseline=since(report, report, more_often))
    assert headline(whole) == headline(report)
