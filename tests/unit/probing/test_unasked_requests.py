"""Requests after one that ended the process: they are asked of another one, and both are one result."""

from dataclasses import replace

import pytest

from harness.core.outcome import Outcome
from harness.core.probe import CallRecord, Deadline, FailedRequest, ModelResult, ModelRun, ProbeRequest, ProbeResult
from harness.probing.unasked_requests import unreached, with_rest
from tests.unit.builders.stages import artifact, probed, result

DEADLINE = Deadline(load_s=1, call_s=1, total_s=1)
RUN = ModelRun(artifact=artifact("m"), schedule=(("a", 3), ("b", 2), ("c", 2)))
ASKED = ProbeRequest(verb="run", side="new", environment="e", deadline=DEADLINE, runs=(RUN,))


def died(at: str, outcome: Outcome = Outcome.CRASH, *answered: str) -> ProbeResult:
    """Return the result of a process that ended in one of the requests a, b, c."""
    later = [name for name in "abc" if name > at]
    failed = (
        FailedRequest(input_set=at, outcome=outcome, phase="call", call=0),
        *(FailedRequest(input_set=name, outcome=Outcome.NOT_RUN, phase="") for name in later),
    )
    return probed(result("m", outcome, calls=calls(*answered), failed_requests=failed), outcome=outcome)


def calls(*names: str) -> tuple[CallRecord, ...]:
    return tuple(CallRecord(input_set=name, call=0, duration_ns=1) for name in names)


def outcomes(found: ModelResult) -> dict[str, Outcome]:
    return {name: found.of_request(name).outcome for name in "abc"}


@pytest.mark.parametrize("outcome", [Outcome.CRASH, Outcome.HANG, Outcome.OUT_OF_MEMORY])
def test_requests_after_the_one_that_ended_the_process_are_asked_again(outcome: Outcome) -> None:
    rest = unreached(ASKED, died("a", outcome))
    assert rest is not None
    assert rest.runs[0].schedule == (("b", 2), ("c", 2))
    assert replace(rest, runs=ASKED.runs) == ASKED


def test_nothing_is_left_after_the_last_request_or_a_process_that_came_through() -> None:
    assert unreached(ASKED, died("c")) is None
    assert unreached(ASKED, probed(result("m"))) is None


@pytest.mark.parametrize("outcome", [Outcome.STARVED, Outcome.PROTOCOL_ERROR])
def test_a_busy_machine_or_a_fault_of_ours_is_asked_about_by_others(outcome: Outcome) -> None:
    assert unreached(ASKED, died("a", outcome)) is None


def test_both_processes_are_one_result() -> None:
    second = probed(result("m", calls=calls("b", "c")))
    (found,) = with_rest(died("a"), second).models
    assert outcomes(found) == {"a": Outcome.CRASH, "b": Outcome.COMPLETED, "c": Outcome.COMPLETED}
    assert found.outcome is Outcome.CRASH


def test_second_process_may_end_too() -> None:
    (found,) = with_rest(died("a"), died("b", Outcome.HANG)).models
    assert outcomes(found) == {"a": Outcome.CRASH, "b": Outcome.HANG, "c": Outcome.NOT_RUN}


def test_second_process_that_does_not_load_fails_all_of_the_rest() -> None:
    (found,) = with_rest(died("a"), probed(result("m", Outcome.LOAD_ERROR, phase="load"))).models
    assert outcomes(found) == {"a": Outcome.CRASH, "b": Outcome.LOAD_ERROR, "c": Outcome.LOAD_ERROR}
