"""A cell that is well when it is judged again is asked some times more before it is called well."""

from collections.abc import Callable

import pytest

from harness.verdict.cells import judge_cells
from harness.search.bisect import recheck
from harness.search.bisect.recheck import TIMES, alone_again, initialize_until_seen, well_rounds
from harness.core.comparison import OutputComparison
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeRequest, ProbeResult
from harness.probing.facts import Decided, Judged
from harness.checks.startup.launch import REPEATS_OF_A_ROUND
from tests.unit.builders.stages import Runner, continued, effects, facts_of, probed, result


def runner(fails: Callable[[ProbeRequest], bool]) -> Runner:
    def answer(request: ProbeRequest) -> ProbeResult:
        outcome = Outcome.HANG if request.side == "new" and fails(request) else Outcome.COMPLETED
        found = [result(run.artifact.model, outcome, phase="call", input_set="example", call=1) for run in request.runs]
        return probed(*found, side=request.side, outcome=outcome)

    return Runner(answer)


AGREES = OutputComparison(model="m", scenario="alone", calls=())


@pytest.fixture(autouse=True)
def answers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(name: str, probe: ProbeResult, *_: object) -> OutputComparison | None:
        return AGREES if probe.models[0].outcome is Outcome.COMPLETED else None

    monkeypatch.setattr(recheck, "compare_alone", compared)


def judged(outcome: Outcome = Outcome.COMPLETED) -> Decided:
    alone = {"m": probed(result(outcome=outcome, phase="call", input_set="example", call=1), outcome=outcome)}
    comparisons = {("m", "alone"): AGREES} if outcome is Outcome.COMPLETED else {}
    facts = facts_of("m", scenarios=("alone",), alone=alone, comparisons=comparisons)
    return continued(facts, judge_cells(facts, effects()))


def status(facts: Judged) -> Status:
    return next(cell.status for cell in facts.verdicts["m"] if cell.scenario == "alone")


def test_a_run_that_fails_again_stands_for_the_model() -> None:
    asked = runner(lambda request: request.repeat == 4)
    facts, well = alone_again("m", judged(), effects(asked))
    assert (status(facts), well) == (Status.FAIL, 4)
    assert facts.alone["m"].models[0].outcome is Outcome.HANG
    assert [request.repeat for request in asked.asked] == [1, 2, 3, 4]


def test_what_stays_well_is_reported_with_how_often() -> None:
    asked = runner(lambda request: False)
    facts, well = alone_again("m", judged(), effects(asked))
    assert (status(facts), well, len(asked.asked)) == (Status.PASS, TIMES, TIMES - 1)


def test_what_fails_at_once_is_not_asked_again() -> None:
    hangs = judged(Outcome.HANG)
    asked = runner(lambda request: True)
    assert alone_again("m", hangs, effects(asked)) == (hangs, 0) and not asked.asked


def rounds_of(requests: list[ProbeRequest]) -> set[int]:
    return {request.repeat // REPEATS_OF_A_ROUND for request in requests if request.side == "new"}


def test_a_server_group_that_comes_up_is_brought_up_more_often() -> None:
    asked = runner(lambda request: False)
    facts = initialize_until_seen(facts_of("a", "m"), effects(asked))
    assert well_rounds("m", "concurrent", facts) == TIMES and rounds_of(asked.asked) == set(range(TIMES))
    assert facts.plan.settings.init_rounds == 1

    rare = initialize_until_seen(facts_of("a", "m"), effects(runner(lambda it: it.repeat // REPEATS_OF_A_ROUND == 3)))
    assert rare.initialized["m", "concurrent"].new.failed_rounds == 1


def test_one_that_does_not_is_not() -> None:
    asked = runner(lambda request: True)
    initialize_until_seen(facts_of("m"), effects(asked))
    assert rounds_of(asked.asked) == {0}
