"""What a search for settings comes to, and its exit code."""

import pytest

from harness.verdict.mitigation import answer_of, exit_code
from harness.core.diagnosis import Cure, CureAnswer, Curing, Rewritten
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict
from harness.core.errors import ExitCode

CURES = Cure(names=("a",), cures=True)
NOT = Cure(names=("b",), cures=False)
UNTESTABLE = Cure(names=("c",), cures=False, untestable=True)


def cell(status: Status) -> CellVerdict:
    return CellVerdict(cell="m/backward/alone/cpu/default", model="m", scenario="alone", status=status)


@pytest.mark.parametrize(
    ("cures", "answer"),
    [
        ((CURES, NOT, UNTESTABLE), CureAnswer.CURED),
        ((NOT, UNTESTABLE), CureAnswer.NOT_FOUND),
        ((NOT,), CureAnswer.NOT_FOUND),
        ((), CureAnswer.NOT_FOUND),
        ((UNTESTABLE,), CureAnswer.UNDECIDED),
    ],
)
def test_what_was_tried_decides_where_the_cell_is_red(cures: tuple[Cure, ...], answer: CureAnswer) -> None:
    assert answer_of(cell(Status.FAIL), cures, searched=True) == (answer, "")
    rewritten = (Rewritten(rule="sinh", what="expm1", cures=True),)
    assert answer_of(cell(Status.FAIL), cures, searched=True, rewrites=rewritten) == (CureAnswer.CURED, "")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (Status.PASS, CureAnswer.NOTHING),
        (Status.XPASS, CureAnswer.NOTHING),
        (Status.SAME_FAIL, CureAnswer.NOTHING),
        (Status.INCONCLUSIVE, CureAnswer.UNDECIDED),
        (Status.UNSUPPORTED, CureAnswer.UNDECIDED),
    ],
)
def test_a_cell_that_is_not_red_says_why_nothing_was_tried(status: Status, answer: CureAnswer) -> None:
    found, why = answer_of(cell(status), (), searched=False)
    assert found is answer
    assert why


def test_a_cell_that_does_not_exist_is_undecided() -> None:
    assert answer_of(None, (), searched=False)[0] is CureAnswer.UNDECIDED


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (CureAnswer.NOTHING, ExitCode.COMPATIBLE),
        (CureAnswer.CURED, ExitCode.INCOMPATIBLE),
        (CureAnswer.NOT_FOUND, ExitCode.INCONCLUSIVE),
        (CureAnswer.UNDECIDED, ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_codes(answer: CureAnswer, code: ExitCode) -> None:
    found = Curing(model="m", old="o", new="n", scenario="alone", words="alone", answer=answer)
    assert exit_code(found) is code
