"""What a report says of a whole run in a line."""

from dataclasses import replace

import pytest

from harness.core.outcome import Decision, Status
from harness.core.verdict import Cause
from harness.report.words.summary import reason_words
from tests.unit.builders.reports import blocked


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
