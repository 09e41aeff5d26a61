"""What a search for settings comes to, and its exit code."""

import pytest

from tests.unit.builders.verdicts import mitigation
from harness.verdict.exit_codes import exit_code
from harness.verdict.mitigation import answer_of
from harness.core.diagnosis import MitigationAnswer, MitigationResult, Rewritten
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Mitigation
from harness.core.errors import ExitCode

MITIGATIONS = mitigation("a", mitigates=True)
NOT = mitigation("b", mitigates=False)
UNTESTABLE = mitigation("c", mitigates=False, untestable=True)


def cell(status: Status) -> CellVerdict:
    return CellVerdict(cell="m/alone", model="m", scenario="alone", status=status)


@pytest.mark.parametrize(
    ("mitigations", "answer"),
    [
        ((MITIGATIONS, NOT, UNTESTABLE), MitigationAnswer.FOUND),
        ((NOT, UNTESTABLE), MitigationAnswer.NOT_FOUND),
        ((NOT,), MitigationAnswer.NOT_FOUND),
        ((), MitigationAnswer.NOT_FOUND),
        ((UNTESTABLE,), MitigationAnswer.UNDECIDED),
    ],
)
def test_what_was_tried_decides_where_the_cell_is_red(
    mitigations: tuple[Mitigation, ...], answer: MitigationAnswer
) -> None:
    assert answer_of(cell(Status.FAIL), mitigations, searched=True) == (answer, "")
    rewritten = (Rewritten(rule="sinh", what="expm1", fixes=True),)
    assert answer_of(cell(Status.FAIL), mitigations, searched=True, rewrites=rewritten) == (MitigationAnswer.FOUND, "")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (Status.PASS, MitigationAnswer.NOTHING),
        (Status.XPASS, MitigationAnswer.NOTHING),
        (Status.SAME_FAIL, MitigationAnswer.NOTHING),
        (Status.INCONCLUSIVE, MitigationAnswer.UNDECIDED),
        (Status.UNSUPPORTED, MitigationAnswer.UNDECIDED),
    ],
)
def test_a_cell_that_is_not_red_says_why_nothing_was_tried(status: Status, answer: MitigationAnswer) -> None:
    found, why = answer_of(cell(status), (), searched=False)
    assert found is answer
    assert why


def test_a_cell_that_does_not_exist_is_undecided() -> None:
    assert answer_of(None, (), searched=False)[0] is MitigationAnswer.UNDECIDED


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (MitigationAnswer.NOTHING, ExitCode.COMPATIBLE),
        (MitigationAnswer.FOUND, ExitCode.INCOMPATIBLE),
        (MitigationAnswer.NOT_FOUND, ExitCode.INCONCLUSIVE),
        (MitigationAnswer.UNDECIDED, ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_codes(answer: MitigationAnswer, code: ExitCode) -> None:
    found = MitigationResult(model="m", old="o", new="n", scenario="alone", words="alone", answer=answer)
    assert exit_code(found) is code
