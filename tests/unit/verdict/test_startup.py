"""How a model came through the initialization of its server group."""

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.core.comparison import OutputComparison
from harness.core.diagnosis import Attribution, FailureRates, Tally
from harness.core.findings import OUTCOME_KIND, SEVERITY, Severity
from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure, ModelResult
from harness.core.text import times_of
from harness.core.verdict import CellVerdict
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.startup import (
    Initialization,
    InitializationResult,
    judge_initialization,
    together,
)
from tests.unit.builders.verdicts import (
    NEW,
    call,
    cell_id,
    compared,
    difference,
    equal,
    finding,
    load_error,
    result,
    tensor,
    verdict,
)

GOOD = compared(call(equal()))
BAD = compared(call(tensor()))
RAISING = (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR)
FAILING = [outcome for outcome, kind in OUTCOME_KIND.items() if SEVERITY[kind] is Severity.FAIL]
UNKNOWN = [outcome for outcome, kind in OUTCOME_KIND.items() if SEVERITY[kind] is Severity.INCONCLUSIVE]
RED = [Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE]


def initialization_result(
    outcome: Outcome = Outcome.COMPLETED,
    failed: int = 0,
    rounds: int = 1,
    graph: dict[str, Any] | None = None,
    served: dict[str, Any] | None = None,
    evidence: str = "",
    exit_detail: str = "",
    seen: Evidence | None = None,
    **changes: Any,
) -> InitializationResult:
    return InitializationResult(
        result=result(outcome, **changes),
        rounds=rounds,
        failed_rounds=failed,
        graph=graph,
        served_otherwise=served,
        evidence=evidence,
        exit_detail=exit_detail,
        seen=seen,
    )


def judged(
    new: InitializationResult | ModelResult,
    old: InitializationResult | None = None,
    comparison: OutputComparison | None = GOOD,
    alone: CellVerdict | None = None,
    scenario: str = "while_serving",
    **more: Any,
) -> CellVerdict:
    return judge_initialization(
        Initialization(
            cell=cell_id(scenario=scenario),
            scenario=INITIALIZATIONS[scenario],
            alone=alone or verdict(Status.PASS),
            new=InitializationResult(result=new) if isinstance(new, ModelResult) else new,
            old=old,
            comparison=comparison,
            new_name=NEW,
            **more,
        )
    )


def kinds(found: CellVerdict) -> list[str]:
    return [item.kind for item in found.findings]


def kind_of(outcome: Outcome) -> str:
    """Return what a failure is called that shows only beside others."""
    return "concurrent_error" if outcome in RAISING else OUTCOME_KIND[outcome]


def test_verdict_belongs_to_the_scenario() -> None:
    found = judged(initialization_result())
    assert (found.cell, found.model, found.scenario) == (
        "m/while_serving",
        "m",
        "while_serving",
    )
    assert (found.status, found.findings, found.note) == (Status.PASS, (), "")


# failures


@pytest.mark.parametrize("outcome", FAILING)
@pytest.mark.parametrize("old", [None, initialization_result()], ids=["golden record", "works in the old release"])
def test_failure_that_shows_only_there_fails(outcome: Outcome, old: InitializationResult | None) -> None:
    found = judged(initialization_result(outcome, phase="load", evidence="probes/7", exit_detail="signal SIGABRT"), old)
    assert (found.status, kinds(found), found.note) == (Status.FAIL, [kind_of(outcome)], "")
    assert "in load while serving" in found.findings[0].message
    assert NEW in found.findings[0].message
    assert found.findings[0].evidence == "probes/7"


@pytest.mark.parametrize("outcome", FAILING)
def test_same_failure_in_the_old_release_is_no_regression(outcome: Outcome) -> None:
    found = judged(initialization_result(outcome), initialization_result(outcome))
    assert (found.status, kinds(found)) == (Status.SAME_FAIL, [kind_of(outcome)])
    assert found.note == "fails before the upgrade too"


@pytest.mark.parametrize("before", [Outcome.COMPLETED, Outcome.CRASH, Outcome.NOT_RUN, Outcome.STARVED])
def test_other_ending_in_the_old_release_excuses_no_hang(before: Outcome) -> None:
    assert judged(initialization_result(Outcome.HANG), initialization_result(before)).status is Status.FAIL


@pytest.mark.parametrize("outcome", UNKNOWN)
@pytest.mark.parametrize("failed_before_too", [False, True])
def test_what_is_not_the_models_fault_is_not_decided_whatever_the_old_release_did(
    outcome: Outcome, failed_before_too: bool
) -> None:
    found = judged(initialization_result(outcome), initialization_result(outcome) if failed_before_too else None)
    assert (found.status, kinds(found)) == (Status.INCONCLUSIVE, [OUTCOME_KIND[outcome]])


def test_error_that_shows_only_beside_others_is_of_a_kind_of_its_own_and_quotes_it() -> None:
    found = judged(load_error())
    assert kinds(found) == ["concurrent_error"]
    assert found.findings[0].message == (
        f"only beside others: does not load in {NEW}, in load while serving: "
        "RuntimeError: Unknown builtin op: aten::gone"
    )


@pytest.mark.parametrize("status", RED)
def test_error_of_a_model_that_is_red_alone_is_not_blamed_on_its_neighbours(status: Status) -> None:
    failure = Failure(type="RuntimeError", message="boom", phase="call", input_set="example", call=0)
    found = judged(
        initialization_result(Outcome.RUNTIME_ERROR, failure=failure), alone=verdict(status, finding("values"))
    )
    assert kinds(found) == ["call_error"]
    assert "only beside" not in found.findings[0].message


def test_what_the_hung_process_did_is_reported() -> None:
    seen = Evidence(proof=HangProof(kind=HangKind.BLOCKED, silent_s=4.0, window_s=1.0), remarks=("gdb is missing",))
    (found,) = judged(initialization_result(Outcome.HANG, phase="load", seen=seen)).findings
    assert "(blocked)" in found.message
    assert any("gdb is missing" in text for _, text in found.story)


# rounds


@pytest.mark.parametrize(
    ("new", "old", "status", "note"),
    [
        ((2, 5), None, Status.FAIL, "in 2 of 5 rounds"),
        ((2, 5), (0, 5), Status.FAIL, "in 2 of 5 rounds"),
        ((1, 1), None, Status.FAIL, ""),
        ((2, 5), (3, 5), Status.SAME_FAIL, "in 2 of 5 rounds; fails before the upgrade too (3 of 5 rounds)"),
        ((1, 1), (1, 1), Status.SAME_FAIL, "fails before the upgrade too"),
        ((0, 5), None, Status.FAIL, ""),
    ],
)
def test_note_says_in_how_many_rounds_it_failed(
    new: tuple[int, int], old: tuple[int, int] | None, status: Status, note: str
) -> None:
    before = None
    if old is not None:
        before = initialization_result(Outcome.HANG if old[0] else Outcome.COMPLETED, failed=old[0], rounds=old[1])
    found = judged(initialization_result(Outcome.HANG, failed=new[0], rounds=new[1]), before)
    assert (found.status, found.note) == (status, note)


def test_hang_in_another_phase_than_before_is_a_regression() -> None:
    before = initialization_result(Outcome.HANG, phase="call", input_set="example", call=0)
    found = judged(initialization_result(Outcome.HANG, phase="load"), before)
    assert (found.status, found.note) == (Status.FAIL, "fails otherwise in the old release")
    assert (
        judged(initialization_result(Outcome.HANG, phase="call", input_set="example", call=2), before).status
        is Status.SAME_FAIL
    )


def test_what_fails_clearly_more_often_than_before_is_a_regression() -> None:
    new, old = (
        initialization_result(Outcome.HANG, failed=9, rounds=10),
        initialization_result(Outcome.HANG, failed=1, rounds=10),
    )
    found = judged(new, old)
    assert (found.status, found.note) == (
        Status.FAIL,
        "in 9 of 10 rounds; fails less often in the old release (1 of 10 rounds)",
    )
    rarer = initialization_result(Outcome.HANG, failed=2, rounds=10)
    assert judged(rarer, old).status is Status.SAME_FAIL


# answers


def test_answer_that_differs_only_there_is_a_race() -> None:
    found = judged(initialization_result(evidence="probes/7"), comparison=BAD)
    (item,) = found.findings
    assert (found.status, item.kind, item.evidence) == (Status.FAIL, "race", "probes/7")
    assert item.message.startswith("answers otherwise than alone: output: off by")
    assert (item.where, item.rule) == ("example call 0 output", "scaled tolerance")
    assert item.detail["max_abs"] == "0.2"


def test_race_that_the_old_release_has_too_is_no_regression() -> None:
    found = judged(initialization_result(), initialization_result(), comparison=BAD, old_differs=True)
    assert (found.status, kinds(found)) == (Status.SAME_FAIL, ["race"])
    assert found.note == "the old release answers otherwise there too"


def test_state_that_threads_share_in_both_releases_is_how_it_must_be_served_and_does_not_decide() -> None:
    found = judged(initialization_result(), initialization_result(), comparison=BAD, old_differs=True, keeps_state=True)
    assert (found.status, kinds(found), found.decides) == (Status.SAME_FAIL, ["shared_state"], False)
    assert found.findings[0].message.startswith("keeps state in both releases: must not be shared by threads: answers")
    new_only = judged(initialization_result(), initialization_result(), comparison=BAD, keeps_state=True)
    assert (new_only.status, kinds(new_only), new_only.decides) == (Status.FAIL, ["race"], True)
    assert judged(initialization_result(), keeps_state=True).decides


REFUSED = Failure(
    type="RuntimeError", message="The size of tensor a (17) must match the size of tensor b (16)", phase="serve"
)


@pytest.mark.parametrize(
    ("scenario", "phase", "before", "failed", "status", "kind"),
    [
        ("growing_shapes", "serve", Outcome.RUNTIME_ERROR, 8, Status.SAME_FAIL, "sizes_refused"),
        ("growing_shapes", "serve", Outcome.RUNTIME_ERROR, 1, Status.FAIL, "concurrent_error"),
        ("while_serving", "serve", Outcome.RUNTIME_ERROR, 8, Status.SAME_FAIL, "concurrent_error"),
        ("growing_shapes", "serve", Outcome.COMPLETED, 0, Status.FAIL, "concurrent_error"),
        ("growing_shapes", "call", Outcome.RUNTIME_ERROR, 8, Status.SAME_FAIL, "concurrent_error"),
    ],
)
def test_sizes_that_both_releases_refuse_are_not_covered_and_do_not_decide(
    scenario: str, phase: str, before: Outcome, failed: int, status: Status, kind: str
) -> None:
    new = initialization_result(Outcome.RUNTIME_ERROR, 9, 10, phase=phase, failure=REFUSED)
    found = judged(new, initialization_result(before, failed, 10, phase=phase), scenario=scenario)
    assert (found.status, kinds(found), found.decides) == (status, [kind], kind != "sizes_refused")
    said = "refuses requests of other sizes in both releases: not covered by growing_shapes: RuntimeError: The size of"
    assert found.findings[0].message.startswith(said) is (kind == "sizes_refused")


EXIT_CRASH = initialization_result(Outcome.CRASH, phase="exit", exit_detail="signal SIGABRT")


def test_end_by_a_signal_at_exit_in_both_releases_is_no_crash_while_serving_and_does_not_decide() -> None:
    found = judged(EXIT_CRASH, EXIT_CRASH)
    assert (found.status, kinds(found), found.decides) == (Status.SAME_FAIL, ["exit_crash"], False)
    assert "exits, with all answers given, ends by signal SIGABRT" in found.findings[0].message
    new_only = judged(EXIT_CRASH, initialization_result())
    assert (new_only.status, kinds(new_only), new_only.decides) == (Status.FAIL, ["exit_crash"], True)
    serving = judged(initialization_result(Outcome.CRASH, phase="serve"), EXIT_CRASH)
    assert (serving.status, kinds(serving)) == (Status.FAIL, ["crash"])


RATES = {
    "both": (FailureRates(new=Tally(fails=3), old=Tally(fails=3)), Status.SAME_FAIL),
    "both, never asked in the new release": (FailureRates(old=Tally(fails=3)), Status.SAME_FAIL),
    "new": (FailureRates(new=Tally(fails=3), old=Tally(passes=7)), Status.FAIL),
    "new, another failure before": (FailureRates(new=Tally(fails=3), old=Tally(differently=7)), Status.FAIL),
    "more often": (FailureRates(new=Tally(fails=9), old=Tally(fails=1, passes=9)), Status.FAIL),
    "not seen again": (FailureRates(new=Tally(passes=30), old=Tally(passes=30)), Status.INCONCLUSIVE),
    "too few runs": (FailureRates(new=Tally(fails=1, passes=9), old=Tally(passes=9)), Status.INCONCLUSIVE),
    "no time": (FailureRates(), Status.INCONCLUSIVE),
    "another model in the way": (FailureRates(new=Tally(fails=3), old=Tally(untestable=2)), Status.INCONCLUSIVE),
}


@pytest.mark.parametrize("before", [Outcome.COMPLETED, Outcome.HANG, Outcome.CRASH])
@pytest.mark.parametrize("case", RATES)
def test_status_follows_the_rates_whatever_the_first_rounds_showed(case: str, before: Outcome) -> None:
    rates, status = RATES[case]
    asked = Attribution(models=("m",), threads=4, rates=replace(rates, outcomes=("hang",)))
    found = judged(initialization_result(Outcome.HANG), initialization_result(before), attribution=asked)
    assert (found.status, kinds(found)) == (status, ["hang"])
    assert found.findings[0].story[0][0] == "needs"
    if status is Status.INCONCLUSIVE:
        assert found.note.startswith("not decided whether it is a regression: ")


def test_rates_of_a_hang_say_nothing_of_a_crash() -> None:
    asked = Attribution(models=("m",), threads=4, rates=replace(RATES["both"][0], outcomes=("hang",)))
    assert (
        judged(initialization_result(Outcome.CRASH), initialization_result(), attribution=asked).status is Status.FAIL
    )


def test_note_has_both_rates_with_their_intervals() -> None:
    asked = Attribution(models=("m",), threads=4, rates=replace(RATES["too few runs"][0], outcomes=("hang",)))
    found = judged(initialization_result(Outcome.HANG), initialization_result(), attribution=asked)
    assert found.note == (
        "not decided whether it is a regression: it fails in 1 of 10 runs (0 to 45 %), in the old release in 0 of 9 "
        "(0 to 34 %), 95 % intervals"
    )


def test_without_an_old_release_a_failure_that_was_attributed_fails() -> None:
    asked = Attribution(models=("m",), threads=4)
    assert judged(initialization_result(Outcome.HANG), None, attribution=asked).status is Status.FAIL


def test_old_release_that_differs_excuses_no_crash_and_reddens_no_equal_answers() -> None:
    assert judged(initialization_result(Outcome.CRASH), initialization_result(), old_differs=True).status is Status.FAIL
    assert (
        judged(initialization_result(), initialization_result(), old_differs=True).status,
        judged(initialization_result(), initialization_result(), old_differs=True).note,
    ) == (
        Status.PASS,
        "",
    )


def test_model_that_draws_random_numbers_is_reported_and_not_red() -> None:
    found = judged(initialization_result(), comparison=BAD, draws=True)
    assert (found.status, kinds(found)) == (Status.PASS, ["shared_generator"])
    assert judged(initialization_result(), draws=True).findings == ()
    late = compared(call(equal()), call(tensor(), index=1))
    shapes = compared(call(equal(), tree=(difference(),)))
    for other in (late, shapes):
        assert kinds(judged(initialization_result(), comparison=other, draws=True)) == ["shared_generator"]
    assert "not compared there" in found.findings[0].message


@pytest.mark.parametrize(
    "comparison",
    [
        compared(call(tensor(path="output[0]"), tree=(difference("output[1]", kind="dtype"),))),
        compared(call(tensor(nan_mismatches=1))),
        compared(call(tensor(inf_mismatches=2))),
        compared(call(tensor()), missing_calls=(("example", 1),)),
        compared(call(equal()), call(tensor(), index=1), call(tensor(nan_mismatches=1), index=2)),
    ],
    ids=["dtype beside values", "NaN", "Inf", "missing call beside values", "NaN after late values"],
)
def test_random_numbers_excuse_other_values_and_shapes_and_nothing_else(comparison: OutputComparison) -> None:
    found = judged(initialization_result(), comparison=comparison, draws=True)
    assert (found.status, set(kinds(found))) == (Status.FAIL, {"race"})
    assert (
        judged(
            initialization_result(), initialization_result(), comparison=comparison, draws=True, old_differs=True
        ).status
        is Status.SAME_FAIL
    )


def test_random_numbers_excuse_no_failure_and_no_replay() -> None:
    assert judged(initialization_result(Outcome.CRASH), draws=True).status is Status.FAIL
    assert kinds(judged(initialization_result(graph=replayed(0.5)), draws=True)) == ["graph_replay"]


# answers while serving


SERVED = {"calls": 12, "first": 3, "different": 4}


def test_answer_that_changes_while_others_load_is_a_race_with_its_calls() -> None:
    found = judged(initialization_result(served=SERVED, evidence="probes/7"), initialization_result())
    (item,) = found.findings
    assert (found.status, found.note, item.kind, item.evidence) == (Status.FAIL, "", "race", "probes/7")
    assert item.message == "answers otherwise while it serves: 4 of 12 served calls, from call 3 on"
    assert judged(initialization_result(served=SERVED), None, comparison=None).status is Status.FAIL


def test_answer_that_changed_while_others_loaded_before_the_upgrade_too_is_no_regression() -> None:
    found = judged(initialization_result(served=SERVED), initialization_result(served={"calls": 1, "first": 9}))
    assert (found.status, kinds(found), found.note) == (Status.SAME_FAIL, ["race"], "fails before the upgrade too")
    assert judged(initialization_result(), initialization_result(served=SERVED)).status is Status.PASS


def test_random_numbers_change_from_call_to_call_and_say_nothing_of_serving() -> None:
    assert judged(initialization_result(served=SERVED), draws=True).findings == ()
    assert kinds(judged(initialization_result(served=SERVED), draws=True, comparison=BAD)) == ["shared_generator"]


@pytest.mark.parametrize("status", list(Status))
def test_race_is_a_race_whatever_the_model_does_alone(status: Status) -> None:
    """The comparison is with what it answers alone: what it gets wrong there too does not show in it."""
    alone = verdict(status, *([] if status is Status.PASS else [finding("values")]))
    found = judged(initialization_result(), comparison=BAD, alone=alone)
    assert (found.status, kinds(found)) == (Status.FAIL, ["race"])
    assert judged(initialization_result(), comparison=GOOD, alone=alone).status is Status.PASS
    assert judged(initialization_result(served=SERVED), comparison=None, alone=alone).status is Status.FAIL
    assert (
        judged(initialization_result(), initialization_result(), comparison=BAD, alone=alone, old_differs=True).status
        is Status.SAME_FAIL
    )


def test_undecidable_sample_is_reported_once_and_not_per_scenario() -> None:
    found = judged(initialization_result(), comparison=compared(call(equal(sampled=True))))
    assert (found.status, found.findings) == (Status.PASS, ())


# replays of CUDA graphs


def replayed(difference: float, scale: float = 2.0) -> dict[str, Any]:
    return {"mode": "relaxed", "max_abs_difference": difference, "scale": scale, "call_ms": 2.0, "replay_ms": 1.0}


@pytest.mark.parametrize("difference", [0.0, 1e-6, 1.9e-5])
def test_replay_that_answers_as_the_call_passes(difference: float) -> None:
    assert judged(initialization_result(graph=replayed(difference))).status is Status.PASS


@pytest.mark.parametrize(
    ("difference", "scale"), [(2.1e-5, 2.0), (0.5, 2.0), (math.nan, 2.0), (math.inf, 2.0), (1e-9, 0.0)]
)
def test_replay_that_answers_otherwise_fails(difference: float, scale: float) -> None:
    found = judged(initialization_result(graph=replayed(difference, scale)))
    assert (found.status, kinds(found)) == (Status.FAIL, ["graph_replay"])
    assert "relaxed mode" in found.findings[0].message


def test_replay_that_answers_otherwise_names_the_buffers_that_a_call_binds_anew() -> None:
    (finding,) = judged(initialization_result(graph={**replayed(0.5), "rebound": ["context", "state"]})).findings
    assert "off by 0.5 of 2; its call binds `context`, `state` anew" in finding.message
    (finding,) = judged(initialization_result(graph={**replayed(0.5), "rebound": []})).findings
    assert finding.message.endswith("off by 0.5 of 2")


@pytest.mark.parametrize(("before", "status"), [(0.0, Status.FAIL), (0.4, Status.SAME_FAIL)])
def test_replay_that_was_off_before_the_upgrade_too_is_no_regression(before: float, status: Status) -> None:
    found = judged(initialization_result(graph=replayed(0.5)), initialization_result(graph=replayed(before)))
    assert (found.status, kinds(found)) == (status, ["graph_replay"])
    assert bool(found.note) is (status is Status.SAME_FAIL)
    assert (
        judged(initialization_result(graph=replayed(0.0)), initialization_result(graph=replayed(0.5))).status
        is Status.PASS
    )


def test_capture_error_names_the_operator_that_cannot_be_captured() -> None:
    message = (
        "The following operation failed in the TorchScript interpreter.\n"
        "Traceback of TorchScript (most recent call last):\n"
        "    def forward(self, x):\n"
        "        return x.nonzero()\n"
        "               ~~~~~~~~~ <--- HERE\n"
        "RuntimeError: CUDA error: operation not permitted when stream is capturing\n"
    )
    failure = Failure(type="RuntimeError", message=message, phase="capture", input_set="example")
    found = judged(initialization_result(Outcome.RUNTIME_ERROR, phase="capture", failure=failure))
    assert kinds(found) == ["capture_error"]  # it was not tried alone, so nobody says "only beside others"
    assert "raises in capture" in found.findings[0].message
    assert "at `x.nonzero`" in found.findings[0].message
    assert "not permitted when stream is capturing" in found.findings[0].message


def test_a_way_to_fail_hides_no_other_from_waivers_and_severities() -> None:
    hang = verdict(Status.FAIL, finding("hang"), note="in 2 of 5 rounds")
    crash = verdict(Status.FAIL, finding("crash"), note="in 1 of 5 rounds")
    open_ = verdict(Status.INCONCLUSIVE, finding("starved"))
    before = verdict(Status.SAME_FAIL, finding("call_error"), note="fails before the upgrade too")
    found = together([open_, before, hang, verdict(), crash])
    assert (found.status, kinds(found), found.note) == (Status.FAIL, ["hang", "crash", "starved"], "in 2 of 5 rounds")
    assert found.findings[1].message == "about crash (in 1 of 5 rounds)"
    assert kinds(together([verdict(), before])) == ["call_error"]
    assert kinds(judged(initialization_result(graph=replayed(1.0)), comparison=BAD)) == ["graph_replay", "race"]
