"""One cell: what happened in both releases becomes a status with reasons."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.cell import judge_alone
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import FailureRates, Tally
from harness.core.findings import OUTCOME_KIND, SEVERITY, Severity, status_of
from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Outcome, Status
from harness.core.probe import CallRecord, FailedRequest, Failure, ModelResult
from harness.core.text import error_line
from harness.core.verdict import CellVerdict
from harness.checks.hang.story import failure_finding
from tests.unit.builders.verdicts import (
    NEW,
    OLD,
    call,
    cell_id,
    compared,
    equal,
    finding,
    load_error,
    result,
    tensor,
)

GOOD = compared(call(equal()))
BAD = compared(call(tensor()))
FAILING = [outcome for outcome, kind in OUTCOME_KIND.items() if SEVERITY[kind] is Severity.FAIL]
UNKNOWN = [outcome for outcome, kind in OUTCOME_KIND.items() if SEVERITY[kind] is Severity.INCONCLUSIVE]


def alone(
    old: list[ModelResult], new: ModelResult, comparison: OutputComparison | None = GOOD, **more: Any
) -> CellVerdict:
    return judge_alone(cell_id(), old=old, new=new, comparison=comparison, old_name=OLD, new_name=NEW, **more)


def kinds(judged: CellVerdict) -> list[str]:
    return [item.kind for item in judged.findings]


def test_every_outcome_but_completed_has_a_known_kind() -> None:
    assert set(OUTCOME_KIND) == set(Outcome) - {Outcome.COMPLETED}
    assert set(OUTCOME_KIND.values()) <= set(SEVERITY)


def test_infrastructure_outcomes_are_never_a_regression() -> None:
    assert set(UNKNOWN) == {
        Outcome.EXPORT_ERROR,
        Outcome.PROTOCOL_ERROR,
        Outcome.STARVED,
        Outcome.NOT_RUN,
        Outcome.ENV_UNAVAILABLE,
        Outcome.UNSUPPORTED,
    }


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ((), Status.PASS),
        (("stride", "load_time"), Status.PASS),
        (("load_time", "not_decidable"), Status.INCONCLUSIVE),
        (("not_decidable", "values", "stride"), Status.FAIL),
    ],
)
def test_heaviest_finding_decides_the_status(found: tuple[str, ...], status: Status) -> None:
    assert status_of([finding(kind) for kind in found]) is status


# judge_alone


def test_model_that_answers_the_same_passes() -> None:
    judged = alone([result(), result()], result())
    assert (judged.status, judged.findings, judged.note, judged.scenario) == (Status.PASS, (), "", "alone")
    assert (judged.cell, judged.model) == (cell_id(), "m")


def test_model_that_answers_differently_fails() -> None:
    judged = alone([result()], result(), BAD)
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["values"])


def test_call_dependent_divergence_is_a_finding_of_its_own_kind() -> None:
    judged = alone([result()], result(), compared(call(equal()), call(tensor(), index=1)))
    assert (judged.status, kinds(judged), judged.note) == (Status.FAIL, ["late_divergence"], "")


def test_model_without_a_golden_is_not_decided() -> None:
    judged = alone([result()], result(), None)
    assert (judged.status, kinds(judged)) == (Status.INCONCLUSIVE, ["not_measured"])
    assert alone([], result(), None).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("outcome", FAILING)
def test_model_that_worked_and_fails_now_fails(outcome: Outcome) -> None:
    judged = alone([result(), result()], result(outcome), None)
    assert (judged.status, kinds(judged)) == (Status.FAIL, [OUTCOME_KIND[outcome]])


@pytest.mark.parametrize("outcome", FAILING)
def test_model_that_fails_against_a_golden_record_fails(outcome: Outcome) -> None:
    assert alone([], result(outcome), None).status is Status.FAIL


@pytest.mark.parametrize("outcome", UNKNOWN)
def test_failure_of_our_infrastructure_is_not_decided(outcome: Outcome) -> None:
    assert alone([result()], result(outcome), None).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("outcome", FAILING)
def test_model_that_failed_alike_before_is_no_regression(outcome: Outcome) -> None:
    judged = alone([result(outcome), result(outcome)], result(outcome), None)
    assert (judged.status, kinds(judged)) == (Status.SAME_FAIL, [OUTCOME_KIND[outcome]])
    assert judged.note.startswith("fails before the upgrade too")
    assert OLD in judged.note


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(FAILING, 2)))
def test_model_that_failed_otherwise_before_is_a_regression(before: Outcome, after: Outcome) -> None:
    judged = alone([result(before), result(before)], result(after), None)
    assert (judged.status, kinds(judged), judged.note) == (Status.FAIL, [OUTCOME_KIND[after]], "")


def raised(input_set: str | None = "example", call: int | None = 2, phase: str = "call") -> ModelResult:
    failure = Failure(type="RuntimeError", message="boom", phase=phase, input_set=input_set, call=call)
    return result(Outcome.RUNTIME_ERROR, phase=phase, failure=failure)


def test_same_error_at_the_same_call_is_no_regression_whatever_it_says() -> None:
    other = replace(
        raised(), failure=Failure(type="IndexError", message="x", phase="call", input_set="example", call=2)
    )
    assert alone([raised()], other, None).status is Status.SAME_FAIL


@pytest.mark.parametrize(
    "new",
    [raised(call=1), raised(call=3), raised(input_set="batch 2"), raised(None, None, phase="prepare")],
    ids=["earlier call", "later call", "input set", "phase"],
)
def test_same_error_at_another_place_is_a_regression(new: ModelResult) -> None:
    judged = alone([raised(), raised()], new, None)
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["call_error"])


def test_hang_in_another_phase_is_a_regression() -> None:
    at_load, at_call = (
        result(Outcome.HANG, phase="load"),
        result(Outcome.HANG, phase="call", input_set="example", call=1),
    )
    assert alone([at_call], at_load, None).status is Status.FAIL
    assert alone([at_call], at_call, None).status is Status.SAME_FAIL


def test_calls_that_differ_before_the_common_failure_fail_with_their_findings() -> None:
    judged = alone([raised()], raised(), BAD)
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["values"])
    assert judged.note == "beside the call that fails in both releases"


@pytest.mark.parametrize("comparison", [GOOD, None, compared(call(equal(sampled=True)))])
def test_calls_that_agree_before_the_common_failure_make_no_regression(comparison: OutputComparison | None) -> None:
    judged = alone([raised()], raised(), comparison)
    assert (judged.status, kinds(judged)) == (Status.SAME_FAIL, ["call_error"])


@pytest.mark.parametrize("before", [outcome for outcome in FAILING if outcome is not Outcome.HANG])
def test_model_that_failed_before_and_works_now_proves_nothing_and_says_so(before: Outcome) -> None:
    judged = alone([result(before)], result(), None)
    assert (judged.status, judged.findings) == (Status.SAME_FAIL, ())
    assert judged.note.startswith("works now, failed before: ")
    assert OLD in judged.note


def test_model_that_hung_before_and_works_now_is_not_decided() -> None:
    judged = alone([result(Outcome.HANG, phase="load")], result(), None)
    assert (judged.status, kinds(judged)) == (Status.INCONCLUSIVE, ["not_measured"])
    assert (
        judged.findings[0].message == f"nothing to compare with: hangs in load in {OLD}, alone; it completes in {NEW}"
    )


@pytest.mark.parametrize("before", UNKNOWN)
@pytest.mark.parametrize("after", [Outcome.COMPLETED, Outcome.LOAD_ERROR])
def test_old_release_that_could_not_be_asked_excuses_nothing(before: Outcome, after: Outcome) -> None:
    judged = alone([result(before), result(before)], result(after), None)
    assert judged.status is Status.INCONCLUSIVE
    assert kinds(judged)[0] == OUTCOME_KIND[before]
    assert ("load_error" in kinds(judged)) == (after is Outcome.LOAD_ERROR)


@pytest.mark.parametrize("after", [Outcome.COMPLETED, Outcome.CRASH])
def test_unstable_old_release_is_not_decided(after: Outcome) -> None:
    judged = alone([result(), result(Outcome.HANG), result()], result(after), BAD)
    assert judged.status is Status.INCONCLUSIVE
    assert kinds(judged) == (
        ["unstable_old_release"] if after is Outcome.COMPLETED else ["unstable_old_release", "crash"]
    )
    assert judged.findings[0].message == f"{OLD} completes it only 2 of 3 times"


CRASHED = result(Outcome.CRASH, phase="call", input_set="example", call=0)


def rates(new: tuple[int, int], old: tuple[int, int], *, only_new: tuple[str, ...] = ()) -> FailureRates:
    """Return how often it crashes: (failures, passes) of each release."""
    tallies = [Tally(fails=fails, passes=passes, outcomes=("crash",) if fails else ()) for fails, passes in (new, old)]
    tallies[0] = replace(tallies[0], differently=len(only_new), outcomes=(*tallies[0].outcomes, *only_new))
    return FailureRates(outcomes=("crash",), new=tallies[0], old=tallies[1])


IN_BOTH, MORE_OFTEN, SEEN_ONCE = rates((2, 4), (3, 3)), rates((9, 0), (1, 9)), rates((0, 30), (0, 30))
FLAKY, FINE = [result(), CRASHED], [result(), result()]


@pytest.mark.parametrize(
    ("old", "new", "comparison", "asked", "status", "found", "note"),
    [
        (FLAKY, CRASHED, None, IN_BOTH, Status.SAME_FAIL, ["crash"], "fails before the upgrade too: crashes the process"),
        (FINE, CRASHED, None, IN_BOTH, Status.SAME_FAIL, ["crash"], "not clearly more often than before: in 2 of 6 runs"),
        (FINE, CRASHED, None, rates((3, 0), (0, 7)), Status.FAIL, ["crash"], ""),
        (FLAKY, CRASHED, None, MORE_OFTEN, Status.FAIL, ["crash"], "fails clearly more often than before: in 9 of 9 runs"),
        (FINE, CRASHED, None, SEEN_ONCE, Status.INCONCLUSIVE, ["crash"], "not decided whether it is a regression"),
        ([CRASHED] * 2, CRASHED, None, rates((0, 0), (3, 0)), Status.SAME_FAIL, ["crash"], "fails before the upgrade"),
        ([CRASHED] * 2, CRASHED, BAD, rates((0, 0), (3, 0)), Status.FAIL, ["values"], "where it does not fail as"),
        (FLAKY, result(), GOOD, IN_BOTH, Status.SAME_FAIL, ["crash"], "not clearly more often than before"),
        (FLAKY, result(), BAD, IN_BOTH, Status.FAIL, ["values"], "where it does not fail as the old release does"),
        (FLAKY, result(), GOOD, MORE_OFTEN, Status.FAIL, ["crash"], "fails clearly more often than before"),
        (FLAKY, result(), GOOD, SEEN_ONCE, Status.INCONCLUSIVE, ["unstable_old_release"], "not decided whether"),
        (FLAKY, CRASHED, None, rates((2, 4), (3, 3), only_new=("hang",)), Status.INCONCLUSIVE, ["crash"], "hang was seen"),
    ],
)  # fmt: skip
def test_rates_in_both_releases_decide_what_one_run_cannot(
    old: list[ModelResult],
    new: ModelResult,
    comparison: OutputComparison | None,
    asked: FailureRates,
    status: Status,
    found: list[str],
    note: str,
) -> None:
    judged = alone(old, new, comparison, rates=asked)
    assert (judged.status, kinds(judged)) == (status, found)
    assert judged.note.startswith(note) and bool(judged.note) is bool(note)


# what a failure is called


def test_hang_names_the_phase_and_the_release() -> None:
    hung = result(Outcome.HANG, phase="call", input_set="example", call=2)
    found = failure_finding(hung, NEW, stage="alone", evidence="probes/1")
    assert found.message == f"hangs in call 2 of example in {NEW}, alone"
    assert (found.kind, found.where, found.evidence) == ("hang", "call 2 of example", "probes/1")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (HangKind.BLOCKED, "hangs in load (blocked) in"),
        (HangKind.BUSY, "hangs in load (busy without progress) in"),
        (HangKind.OVERDUE, "hangs in load in"),
    ],
)
def test_hang_says_what_the_proof_has_found(kind: HangKind, words: str) -> None:
    seen = Evidence(proof=HangProof(kind=kind, silent_s=5.0, window_s=1.0), remarks=("gdb is missing",))
    found = failure_finding(result(Outcome.HANG, phase="load"), NEW, stage="alone", seen=seen)
    assert found.message.startswith(words)
    assert any("gdb is missing" in text for _, text in found.story)


IN_CALL: dict[str, Any] = {"phase": "call", "input_set": "example", "call": 1}
CALLS = tuple(CallRecord(input_set="example", call=n, duration_ns=ns) for n, ns in enumerate((4_000_000, 20_000_000)))


@pytest.mark.parametrize(
    ("phase", "old", "words"),
    [
        (IN_CALL, [result(calls=CALLS)], "20 ms at most: an endless loop, or more than 607 times as"),
        (
            {"phase": "load"},
            [result(load_ns=1_500_000_000)],
            "1.5 s at most: an endless loop, or more than 8 times as slow",
        ),
        (IN_CALL, [], "left out. --deadline 122 waits longer"),
        (IN_CALL, [result(calls=CALLS), result(Outcome.HANG)], "left out. --deadline 122 waits longer"),
    ],
)
def test_deadline_of_a_busy_call_says_what_is_known_and_how_to_wait_longer(
    phase: dict[str, Any], old: list[ModelResult], words: str
) -> None:
    seen = Evidence(proof=HangProof(kind=HangKind.BUSY, silent_s=14.0, window_s=1.0, own_s=12.15))
    found = failure_finding(result(Outcome.HANG, **phase), NEW, stage="alone", seen=seen, old=old)
    said = dict(found.story)["proof"]
    assert said.startswith("busy without progress: computing for 14.0 s without progress; not done after 12.2 s")
    assert words in said
    assert said.endswith("--deadline 122 waits longer")


def test_process_that_waited_for_the_cpu_is_not_the_models_fault() -> None:
    starved = result(Outcome.STARVED, phase="load")
    found = failure_finding(starved, NEW, stage="alone", seen=Evidence(remarks=("gdb is missing",)))
    assert (found.kind, found.story) == ("starved", ())
    assert found.message.startswith("starved in load")
    assert status_of([found]) is Status.INCONCLUSIVE


def test_crash_names_the_signal_where_it_is_known() -> None:
    crashed = result(Outcome.CRASH, phase="load")
    found = failure_finding(crashed, NEW, stage="alone", exit_detail="signal SIGSEGV")
    assert found.message == f"crashes the process in load (signal SIGSEGV) in {NEW}, alone"
    unknown = failure_finding(crashed, NEW, stage="alone").message  # of a result that is kept without its process
    assert unknown == f"crashes the process in load in {NEW}, alone"


def test_unreached_model_says_so() -> None:
    found = failure_finding(result(Outcome.NOT_RUN), NEW, stage="alone")
    assert (found.kind, found.message) == ("not_measured", f"was not reached in {NEW}, alone")


def test_load_error_quotes_the_telling_line() -> None:
    found = failure_finding(load_error(), NEW, stage="alone")
    assert found.message == f"does not load in {NEW}, alone: RuntimeError: Unknown builtin op: aten::gone"


def test_call_error_names_call_and_input_set() -> None:
    failure = Failure(type="RuntimeError", message="boom", phase="call", input_set="batch 2", call=3)
    raised = result(Outcome.RUNTIME_ERROR, phase="call", failure=failure)
    found = failure_finding(raised, NEW, stage="alone")
    assert found.message == f"raises at call 3 of batch 2 in {NEW}, alone: RuntimeError: boom"
    prepared = replace(raised, failure=replace(failure, phase="prepare", call=None))
    assert failure_finding(prepared, NEW, stage="alone").message.startswith("raises in prepare ")


def test_memory_kill_without_an_error_names_outcome_and_phase() -> None:
    killed = result(Outcome.OUT_OF_MEMORY, phase="load")
    found = failure_finding(killed, NEW, stage="alone", exit_detail="signal SIGKILL")
    assert found.message == f"out of memory in load signal SIGKILL in {NEW}, alone"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("The following operation failed:\nTraceback:\n  File x\nRuntimeError: shapes differ\n", "shapes differ"),
        ("RuntimeError: first\nAssertionError: last", "last"),
        ("\n  Unknown builtin op: x.\nHere are hints", "Unknown builtin op: x."),
        ("RuntimeError:", "RuntimeError:"),
        ("  \n", "KeyError"),
    ],
)
def test_telling_line_is_what_is_wrong_and_not_the_frame(message: str, line: str) -> None:
    assert error_line(Failure(type="KeyError", message=message, phase="call")) == line


def test_line_that_only_announces_the_next_takes_it_along() -> None:
    message = "\naten::pad(Tensor a) -> Tensor:\nExpected at most 3 arguments but found 4.\n  File x\n"
    failure = Failure(type="RuntimeError", message=message, phase="load")
    assert error_line(failure) == "aten::pad(Tensor a) -> Tensor: Expected at most 3 arguments but found 4."


# requests


def of_requests(**outcomes: Outcome) -> ModelResult:
    """Return what became of a model whose requests ended so, in the order of their names."""
    failed = tuple(
        FailedRequest(input_set=name, outcome=outcome, phase="call", call=0)
        for name, outcome in outcomes.items()
        if outcome is not Outcome.COMPLETED
    )
    answered = (name for name, outcome in outcomes.items() if outcome is Outcome.COMPLETED)
    calls = tuple(CallRecord(input_set=name, call=0, duration_ns=1) for name in answered)
    outcome = failed[0].outcome if failed else Outcome.COMPLETED
    where = {"phase": failed[0].phase, "input_set": failed[0].input_set, "call": failed[0].call} if failed else {}
    return result(outcome, calls=calls, failed_requests=failed, **where)


def asked(old: ModelResult, new: ModelResult, *wrong: str) -> CellVerdict:
    """Return the verdict where both releases were asked; what both answered is equal but for the ``wrong`` ones."""
    both = [call.input_set for call in new.calls if call in old.calls]
    calls = [call(tensor() if name in wrong else equal(), input_set=name) for name in both]
    return alone([old, old], new, compared(*calls))


ERROR, WELL = Outcome.RUNTIME_ERROR, Outcome.COMPLETED


@pytest.mark.parametrize("broken", ["a", "b"])
def test_request_that_failed_before_hides_no_other_answer(broken: str) -> None:
    other = "b" if broken == "a" else "a"
    old = of_requests(**{name: ERROR if name == broken else WELL for name in "ab"})
    judged = asked(old, of_requests(a=WELL, b=WELL), other)
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["values"])
    assert "works now, failed before" in judged.note


@pytest.mark.parametrize("outcome", FAILING)
def test_request_that_fails_in_both_releases_hides_no_other_answer(outcome: Outcome) -> None:
    both = of_requests(a=outcome, b=WELL)
    judged = asked(both, both, "b")
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["values"])
    assert "fails before the upgrade too" in judged.note


@pytest.mark.parametrize("outcome", FAILING)
def test_request_that_fails_now_is_a_regression_though_another_failed_before(outcome: Outcome) -> None:
    judged = asked(of_requests(a=ERROR, b=WELL), of_requests(a=ERROR, b=outcome))
    assert (judged.status, kinds(judged)) == (Status.FAIL, [OUTCOME_KIND[outcome]])
    judged = asked(of_requests(a=ERROR, b=WELL), of_requests(a=WELL, b=outcome))
    assert (judged.status, kinds(judged)) == (Status.FAIL, [OUTCOME_KIND[outcome]])


@pytest.mark.parametrize("new", [{"a": WELL, "b": WELL}, {"a": ERROR, "b": WELL}])
def test_only_the_request_that_failed_before_is_called_so(new: dict[str, Outcome]) -> None:
    judged = asked(of_requests(a=ERROR, b=WELL), of_requests(**new))
    assert judged.status is Status.SAME_FAIL
    assert "call 0 of a" in judged.note


def test_request_that_fails_elsewhere_than_before_is_a_regression() -> None:
    old, new = of_requests(a=ERROR, b=WELL), of_requests(a=WELL, b=ERROR)
    assert asked(old, new).status is Status.FAIL


def test_request_that_no_release_got_to_is_not_decided() -> None:
    both = of_requests(a=Outcome.CRASH, b=Outcome.NOT_RUN)
    judged = asked(both, both)
    assert (judged.status, set(kinds(judged))) == (Status.INCONCLUSIVE, {"not_measured"})
    assert judged.findings[0].message == f"does not get as far as call 0 of b in {OLD}, alone"


def test_call_before_the_one_that_failed_before_is_compared() -> None:
    old = of_requests(a=ERROR, b=WELL)
    new = of_requests(a=WELL, b=WELL)
    judged = alone([old, old], new, compared(call(tensor(), input_set="a"), call(equal(), input_set="b")))
    assert (judged.status, kinds(judged)) == (Status.FAIL, ["values"])


ALWAYS, BY_CHANCE = Tally(fails=9, outcomes=("runtime_error",)), Tally(fails=5, passes=4, outcomes=("runtime_error",))


@pytest.mark.parametrize(
    ("often", "status"), [(None, Status.FAIL), (ALWAYS, Status.FAIL), (BY_CHANCE, Status.SAME_FAIL)]
)
def test_a_call_that_only_the_old_release_answers_fails_beside_one_that_fails_in_both(
    often: Tally | None, status: Status
) -> None:
    """Unless chance chose which calls it answers."""
    both, lost = of_requests(a=ERROR, b=WELL), replace(compared(), missing_calls=(("a", 1),))
    rates = FailureRates(outcomes=("runtime_error",), input_set="a", new=often, old=often) if often else None
    assert alone([both, both], both, lost, rates=rates).status is status


def test_rates_of_one_request_say_nothing_of_another() -> None:
    old, new = of_requests(a=ERROR, b=WELL), of_requests(a=ERROR, b=ERROR)
    often = Tally(fails=20, outcomes=("runtime_error",))
    rates = FailureRates(outcomes=("runtime_error",), input_set="a", new=often, old=often)
    judged = alone([old, old], new, None, rates=rates)
    assert judged.status is Status.FAIL
