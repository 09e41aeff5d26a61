"""From verdicts and searches to good, bad, untestable, and an exit code."""

import pytest

from harness.core.diagnosis import Said
from harness.core.releases import Conclusion, Ending, FirstBad, ReleaseAnswer
from harness.core.outcome import Outcome, Status
from harness.core.verdict import CellVerdict, Finding
from harness.verdict.first_bad import answer_of, exit_code, old_end, reason_of
from tests.unit.builders.verdicts import result


def verdict(status: Status, *kinds: str, note: str = "") -> CellVerdict:
    findings = tuple(Finding(kind=kind, message=f"it shows {kind}") for kind in kinds)
    return CellVerdict(cell="m", model="m", scenario="alone", status=status, findings=findings, note=note)


def test_what_the_new_end_shows_first_is_the_symptom() -> None:
    found = answer_of(verdict(Status.FAIL, "guessed_inputs", "values", "late_divergence"), ())
    assert (found.said, found.outcome) == (Said.FAILS, "values")


def test_the_same_kind_is_the_symptom_wherever_it_stands_and_another_kind_is_distinguished() -> None:
    assert answer_of(verdict(Status.FAIL, "structure", "values"), ("values",)).outcome == "values"
    assert answer_of(verdict(Status.FAIL, "load_error"), ("values",)).outcome == "load_error"


@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.SAME_FAIL, Status.UNSUPPORTED])
def test_what_is_neither_green_nor_red_is_untestable(status: Status) -> None:
    assert answer_of(verdict(status, "starved"), ("values",)).said is Said.UNTESTABLE


def test_green_is_green_with_remarks_too() -> None:
    assert answer_of(verdict(Status.PASS, "stride"), ("values",)).said is Said.PASSES


def test_the_old_end_is_good_only_if_every_run_completed() -> None:
    well, hangs, starved = (result(outcome) for outcome in (Outcome.COMPLETED, Outcome.HANG, Outcome.STARVED))
    assert old_end([well, well]) is ReleaseAnswer.GOOD
    assert old_end([hangs, hangs]) is ReleaseAnswer.BAD
    assert old_end([well, hangs]) is ReleaseAnswer.UNTESTABLE
    assert old_end([starved, hangs]) is ReleaseAnswer.UNTESTABLE
    assert old_end([]) is ReleaseAnswer.UNTESTABLE


def test_the_reason_is_what_made_it_red() -> None:
    assert reason_of(verdict(Status.FAIL, "stride", "values", note="before call 2")) == "it shows values; before call 2"
    assert reason_of(verdict(Status.INCONCLUSIVE, "starved")) == "it shows starved"
    assert reason_of(verdict(Status.SAME_FAIL, note="fails before too")) == "fails before too"


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (Ending.FOUND, 1),
        (Ending.ONE_OF, 4),
        (Ending.NOT_BAD, 0),
        (Ending.OLD_NOT_GOOD, 4),
        (Ending.END_UNTESTABLE, 4),
    ],
)
def test_every_ending_has_its_exit_code(ending: Ending, code: int) -> None:
    found = FirstBad(model="m", releases=("a", "b"), source="as named", asked=(), conclusion=Conclusion(ending=ending))
    assert exit_code(found) == code
