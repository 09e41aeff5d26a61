"""From rows to a decision."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.exit_codes import DECISIONS
from harness.verdict.decide import chosen_mitigations, decide, judge_row
from harness.core.findings import WORST_FIRST
from harness.core.outcome import Decision, Status
from harness.core.prediction import RollbackAnswer, RollbackReport
from harness.core.verdict import PlantedDefectResult, CellVerdict, Finding, Judgement, RowVerdict, Ruled, Waived
from tests.unit.builders.verdicts import planted_defect, mitigated, finding, ratio, row, verdict

CAUGHT = (planted_defect(),)


def judged(*rows: RowVerdict, planted_defects: tuple[PlantedDefectResult, ...] = CAUGHT, **more: Any) -> Judgement:
    return decide(rows, planted_defects, **more)


def outcome(judgement: Judgement) -> tuple[Decision, int]:
    return judgement.decision, judgement.exit_code


# rows


@pytest.mark.parametrize(("worse", "better"), list(itertools.pairwise(WORST_FIRST)))
def test_worst_cell_decides_the_row(worse: Status, better: Status) -> None:
    assert judge_row("m", [verdict(better), verdict(worse)]).status is worse


def test_every_status_has_a_rank() -> None:
    assert set(WORST_FIRST) == set(Status)


def test_row_gives_the_reason_of_its_worst_cell() -> None:
    cells = [
        verdict(Status.INCONCLUSIVE, finding("not_measured", "no golden")),
        verdict(Status.FAIL, finding("values", "off by 0.1"), finding("dtype"), note="exact at the first call"),
    ]
    assert judge_row("m", cells).reason == "off by 0.1; exact at the first call"


def test_block_is_explained_by_its_gravest_failure() -> None:
    slow = judge_row("slow", [verdict(Status.FAIL, finding("latency", "late"), model="slow", scenario="latency")])
    hangs = judge_row("hangs", [verdict(Status.FAIL, finding("hang", "stuck"), model="hangs")])
    wrong = judge_row("wrong", [verdict(Status.FAIL, finding("values", "off"), model="wrong")])
    assert judged(slow, wrong, hangs).reason == "hangs: stuck (and 2 more)"
    assert judged(slow, wrong).reason == "wrong: off (and 1 more)"


@pytest.mark.parametrize("accepted", [(), ("fuser off",)])
def test_decision_that_lets_one_upgrade_says_what_the_run_was_told_to_leave_out(accepted: tuple[str, ...]) -> None:
    left_out = "timing (--latency off)"
    assert judged(row(), accepted=accepted, left_out=left_out).reason.endswith(
        "; not asked for: timing (--latency off)"
    )
    assert "not asked for" not in judged(row(), accepted=accepted).reason
    assert "not asked for" not in judged(row(Status.FAIL), left_out=left_out).reason
    assert judged(row(), left_out=left_out).exit_code == 0


def test_what_was_left_open_is_reported_beside_what_passes() -> None:
    left = verdict(Status.INCONCLUSIVE, finding("latency_undecided"), scenario="latency", decides=False)
    result = judged(judge_row("m", [verdict(Status.PASS), left]), row(model="n"))
    assert (outcome(result), result.reason) == (
        (Decision.UPGRADE_OK, 0),
        "1 model passes, 1 undecided (latency of 1 not decided)",
    )


def test_passing_row_needs_no_reason() -> None:
    assert judge_row("m", [verdict(Status.PASS, finding("stride"))]).reason == ""


def test_cell_that_does_not_decide_cannot_redden_its_row() -> None:
    cells = [verdict(Status.PASS), verdict(Status.INCONCLUSIVE, scenario="latency", decides=False)]
    found = judge_row("m", cells)
    assert found.status is Status.PASS
    assert found.cells == tuple(cells)


@pytest.mark.parametrize("cells", [[], [verdict(Status.PASS, decides=False)]])
def test_row_without_a_deciding_cell_is_inconclusive(cells: list[CellVerdict]) -> None:
    found = judge_row("m", cells)
    assert (found.status, found.reason) == (Status.INCONCLUSIVE, "no cell of this model was judged")


# decisions


def test_every_decision_has_an_exit_code_and_only_ok_is_green() -> None:
    assert set(DECISIONS) == set(Decision)
    assert [decision for decision, code in DECISIONS.items() if code == 0] == [Decision.UPGRADE_OK, Decision.CELL_OK]


def test_all_pass_is_upgrade_ok() -> None:
    result = judged(row(), row(model="n"))
    assert outcome(result) == (Decision.UPGRADE_OK, 0)
    assert result.reason == "2 models pass"
    assert [item.model for item in result.rows] == ["m", "n"]
    assert result.planted_defects == CAUGHT


def test_a_green_run_says_what_was_asked_by_guesses_only_and_which_files_are_rewrites() -> None:
    guessed = judge_row("n", [verdict(Status.PASS, finding("guessed_inputs"), model="n")])
    rewritten = judge_row("o", [verdict(Status.PASS, finding("rewritten_file"), model="o")])
    result = judged(row(), guessed, rewritten)
    assert outcome(result) == (Decision.UPGRADE_OK, 0)
    assert result.reason == (
        "3 models pass, 1 of them asked with guessed inputs only, "
        "1 of them rewritten, at a price that this run does not show"
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.SAME_FAIL, "failed before"),
        (Status.UNSUPPORTED, "unsupported"),
        (Status.XFAIL, "waived"),
    ],
)
def test_known_failures_beside_a_pass_are_ok_and_counted(status: Status, words: str) -> None:
    result = judged(row(), row(status, "n"))
    assert outcome(result) == (Decision.UPGRADE_OK, 0)
    assert result.reason == f"1 model passes, 1 {words}"


def test_unmitigated_failure_blocks() -> None:
    result = judged(row(), row(Status.FAIL, "bert"), row(Status.FAIL, "vit"))
    assert outcome(result) == (Decision.BLOCKED, 1)
    assert result.reason == "bert: off by 0.1 (and 1 more)"


def test_waiver_that_is_needed_no_more_blocks() -> None:
    assert outcome(judged(row(Status.XPASS))) == (Decision.BLOCKED, 1)


def test_failure_beside_inconclusive_rows_still_blocks() -> None:
    assert judged(row(Status.INCONCLUSIVE), row(Status.FAIL, "n")).decision is Decision.BLOCKED


def test_mitigation_that_does_not_mitigate_blocks() -> None:
    assert judged(row(Status.FAIL, "m", mitigated("fuser off", mitigates=False))).decision is Decision.BLOCKED


def test_one_unmitigated_failure_blocks_although_others_are_mitigated() -> None:
    result = judged(row(Status.FAIL, "m", mitigated("fuser off")), row(Status.FAIL, "n"))
    assert outcome(result) == (Decision.BLOCKED, 1)
    assert result.reason.startswith("n: ")


def test_failures_that_are_all_mitigated_are_ok_with_mitigation_at_its_price() -> None:
    cheap, dear = ratio(1.0, 1.04), ratio(1.08, 1.12)
    result = judged(
        row(Status.FAIL, "m", mitigated("fuser off", "m", price=cheap)),
        row(
            Status.FAIL, "n", mitigated("fuser off", "n", price=dear), mitigated("profiling off", "n", mitigates=False)
        ),
    )
    assert outcome(result) == (Decision.OK_WITH_MITIGATION, 1)
    assert result.reason == "fuser off mitigates m, n, steady latency +10.0 % [+8.0, +12.0]"
    assert result.mitigation == "fuser off, latency +10.0 % [+8.0, +12.0]"


def test_of_mitigations_that_mitigate_as_many_the_cheapest_is_reported_and_without_prices_the_first_one() -> None:
    cheap, dear = ratio(0.97, 0.99), ratio(1.78, 1.82)
    both = (mitigated("fuser off", price=dear), mitigated("profiling off", price=cheap))
    assert judged(row(Status.FAIL, "m", *both)).mitigation == "profiling off, latency -2.0 % [-3.0, -1.0]"
    more = judged(row(Status.FAIL, "m", *both), row(Status.FAIL, "n", mitigated("fuser off", "n", price=dear)))
    assert more.mitigation == "fuser off, latency +80.0 % [+78.0, +82.0]"  # it mitigates both
    unpriced = row(Status.FAIL, "m", mitigated("profiling off"), mitigated("fuser off"))
    assert judged(unpriced).mitigation == "profiling off, price not measured"


def test_mitigation_without_a_measured_price_says_so() -> None:
    result = judged(row(Status.FAIL, "m", mitigated("fuser off")))
    assert result.reason == "fuser off mitigates m, price not measured"
    assert result.mitigation == "fuser off, price not measured"


def test_accepted_mitigation_that_was_applied_makes_a_green_exit() -> None:
    result = judged(row(), accepted=("fuser off",))
    assert outcome(result) == (Decision.OK_WITH_MITIGATION, 0)
    assert "fuser off" in result.reason
    assert result.accepted_mitigations == ("fuser off",)


@pytest.mark.parametrize(
    ("status", "decision", "code"),
    [
        (Status.FAIL, Decision.BLOCKED, 1),
        (Status.INCONCLUSIVE, Decision.INCONCLUSIVE, 4),
        (Status.SAME_FAIL, Decision.NOTHING_TESTED, 4),
    ],
)
def test_accepted_mitigation_makes_nothing_else_green(status: Status, decision: Decision, code: int) -> None:
    assert outcome(judged(row(status), accepted=("fuser off",))) == (decision, code)


def test_further_mitigation_beside_an_accepted_one_is_not_yet_green() -> None:
    result = judged(row(Status.FAIL, "m", mitigated("profiling off")), accepted=("fuser off",))
    assert outcome(result) == (Decision.OK_WITH_MITIGATION, 1)
    assert result.mitigation == "fuser off, accepted by the policy; profiling off, price not measured"


def test_nothing_is_to_be_set_where_the_decision_is_another_one() -> None:
    assert judged(row()).mitigation == ""
    assert judged(row(Status.FAIL, "m", mitigated("fuser off")), row(Status.FAIL, "n")).mitigation == ""


def test_inconclusive_row_makes_the_run_inconclusive() -> None:
    rows = [row(Status.INCONCLUSIVE, name) for name in "abcde"]
    result = judged(row(), *rows)
    assert outcome(result) == (Decision.INCONCLUSIVE, 4)
    assert result.reason == "not decided for a, b, c and 2 more"


@pytest.mark.parametrize("rows", [(), (row(Status.UNSUPPORTED),)])
def test_nothing_judged_is_nothing_tested(rows: tuple[RowVerdict, ...]) -> None:
    result = judged(*rows)
    assert outcome(result) == (Decision.NOTHING_TESTED, 4)
    assert result.reason == "no model was judged"


def test_models_that_all_failed_before_are_nothing_tested() -> None:
    result = judged(row(Status.SAME_FAIL), row(Status.SAME_FAIL, "n"), row(Status.UNSUPPORTED, "o"))
    assert outcome(result) == (Decision.NOTHING_TESTED, 4)


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL, Status.INCONCLUSIVE])
def test_missed_planted_makes_any_run_inconclusive(status: Status) -> None:
    result = judged(
        row(status),
        planted_defects=(
            planted_defect("nan"),
            planted_defect("hang", caught=False),
            planted_defect("dtype", caught=False),
        ),
    )
    assert outcome(result) == (Decision.INCONCLUSIVE, 4)
    assert result.reason == "the gate missed its own planted defects: hang, dtype"


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL])
def test_run_without_planted_defects_is_inconclusive(status: Status) -> None:
    assert outcome(judged(row(status), planted_defects=())) == (Decision.INCONCLUSIVE, 4)


def test_rerun_of_one_cell_needs_no_planted_defects_and_says_nothing_of_the_upgrade() -> None:
    assert outcome(judged(row(), planted_defects=(), planted_defects_required=False)) == (Decision.CELL_OK, 0)


def test_rerun_that_leaves_its_cell_open_is_not_green() -> None:
    still_open = replace(verdict(Status.INCONCLUSIVE), decides=False)
    repeated = replace(row(), cells=(verdict(), still_open))
    assert outcome(judged(repeated, planted_defects=(), planted_defects_required=False)) == (Decision.INCONCLUSIVE, 4)
    assert judged(repeated).decision is Decision.UPGRADE_OK


def test_missed_planted_counts_even_where_none_is_required() -> None:
    result = judged(row(), planted_defects=(planted_defect(caught=False),), planted_defects_required=False)
    assert result.decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize("status", [Status.PASS, Status.INCONCLUSIVE, Status.SAME_FAIL])
def test_vacuous_run_is_never_green(status: Status) -> None:
    result = judged(row(status), vacuous="the same torch on both sides")
    assert outcome(result) == (Decision.INCONCLUSIVE, 4)
    assert result.reason == "the same torch on both sides"


def test_vacuous_run_still_blocks_on_a_failure_and_accepts_no_mitigation() -> None:
    result = judged(row(Status.FAIL, "m", mitigated("fuser off")), vacuous="the same torch on both sides")
    assert outcome(result) == (Decision.BLOCKED, 1)


def test_vacuous_run_with_accepted_mitigations_is_not_green() -> None:
    assert judged(row(), vacuous="CPU was used", accepted=("fuser off",)).exit_code == 4


# mitigates


def failed(model: str, *names: str) -> RowVerdict:
    return row(Status.FAIL, model, *(mitigated(name, model) for name in names))


def test_one_mitigation_for_all_is_chosen_before_one_for_each() -> None:
    rows = [
        failed("a", "fuser off", "profiling off"),
        failed("b", "profiling off"),
        failed("c", "zzz", "profiling off"),
    ]
    assert chosen_mitigations(rows) == dict.fromkeys("abc", "profiling off")


def test_rest_of_the_models_gets_the_next_best_mitigation() -> None:
    rows = [failed("a", "x"), failed("b", "x"), failed("c", "x", "y"), failed("d", "y")]
    assert chosen_mitigations(rows) == {"a": "x", "b": "x", "c": "x", "d": "y"}


def test_equal_mitigations_are_chosen_by_name_whatever_their_order() -> None:
    assert chosen_mitigations([failed("a", "y", "x")]) == chosen_mitigations([failed("a", "x", "y")]) == {"a": "x"}


def test_model_without_a_mitigation_gets_none() -> None:
    rows = [failed("a", "x"), row(Status.FAIL, "b", mitigated("y", "b", mitigates=False))]
    assert chosen_mitigations(rows) == {"a": "x"}
    assert chosen_mitigations([]) == {}


def test_reason_names_every_mitigation_with_its_models() -> None:
    result = judged(failed("a", "x"), failed("b", "x"), failed("c", "y"))
    assert result.reason == (
        "x mitigates a, b, price not measured; y mitigates c, price not measured; these switches were not probed together"
    )


def test_one_mitigation_for_all_needs_no_word_on_probing_together() -> None:
    assert "together" not in judged(failed("a", "x"), failed("b", "x")).reason


def test_mitigated_failures_beside_undecided_rows_are_not_decided() -> None:
    result = judged(row(), failed("a", "x"), row(Status.INCONCLUSIVE, "b"), row(Status.INCONCLUSIVE, "c"))
    assert outcome(result) == (Decision.INCONCLUSIVE, 4)
    assert result.reason == "x mitigates a, price not measured; not decided for b, c"


def test_vacuous_run_of_mitigated_and_undecided_rows_still_blocks() -> None:
    result = judged(failed("a", "x"), row(Status.INCONCLUSIVE, "b"), vacuous="the same torch on both sides")
    assert outcome(result) == (Decision.BLOCKED, 1)


def test_late_divergence_names_the_switch_that_mitigates_it() -> None:
    late, other = finding("late_divergence"), finding("values")
    cells = (verdict(Status.FAIL, late, other), verdict(Status.FAIL, late, scenario="concurrent"))
    row = judge_row("m", cells, [mitigated("profiling off"), mitigated("fuser off", mitigates=False)])
    found = [item.detail.get("mitigated_by") for cell in row.cells for item in cell.findings]
    assert found == ["profiling off", None, "profiling off"]  # a mitigation holds for every red cell of its model
    vain = judge_row("m", cells[:1], [mitigated("fuser off", mitigates=False)])
    assert vain.cells[0].findings[0].detail["mitigated_by"] == "none of the switches tried"


# the rollback


def back(answer: RollbackAnswer, *, gates: bool = True) -> RollbackReport:
    return RollbackReport(answer=answer, reason="1 of 1 models: m: why", gates=gates)


@pytest.mark.parametrize("answer", RollbackAnswer)
def test_the_rollback_decides_nothing_unless_policy_says_so(answer: RollbackAnswer) -> None:
    result = judged(row(), rollback=back(answer, gates=False))
    assert outcome(result) == (Decision.UPGRADE_OK, 0)


@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        (RollbackAnswer.YES, (Decision.UPGRADE_OK, 0), "1 model passes"),
        (RollbackAnswer.NO, (Decision.BLOCKED, 1), "cannot roll back: 1 of 1 models: m: why"),
        (
            RollbackAnswer.UNKNOWN,
            (Decision.INCONCLUSIVE, 4),
            "not known whether one can roll back: 1 of 1 models: m: why",
        ),
    ],
)
def test_a_closed_rollback_blocks_and_an_unknown_one_is_never_green(
    answer: RollbackAnswer, expected: tuple[Decision, int], reason: str
) -> None:
    result = judged(row(), rollback=back(answer))
    assert (outcome(result), result.reason) == (expected, reason)


def test_a_closed_rollback_stands_beside_what_blocks_already() -> None:
    failed = row(Status.FAIL)
    plain = judged(failed)
    result = judged(failed, rollback=back(RollbackAnswer.NO))
    assert (result.decision, result.reason) == (
        Decision.BLOCKED,
        f"{plain.reason}; cannot roll back: {back(RollbackAnswer.NO).reason}",
    )
    assert judged(failed, rollback=back(RollbackAnswer.UNKNOWN)) == plain


def test_a_gate_that_missed_a_planted_defect_says_nothing_of_the_rollback() -> None:
    missed = (planted_defect(caught=False),)
    assert judged(row(), planted_defects=missed, rollback=back(RollbackAnswer.NO)) == judged(
        row(), planted_defects=missed
    )


def test_an_accepted_mitigation_does_not_open_a_closed_rollback() -> None:
    result = judged(row(), accepted=("fuser off",), rollback=back(RollbackAnswer.NO))
    assert outcome(result) == (Decision.BLOCKED, 1)


# the policy


def raised(model: str = "m") -> CellVerdict:
    return verdict(Status.FAIL, finding("memory"), model=model, judged=Status.PASS)


def let_pass(model: str = "m") -> CellVerdict:
    ruling = Ruled(kind="values", was="fail", now="warn", by="severity.values of policy.toml")
    return verdict(Status.XFAIL, finding("values"), model=model, judged=Status.FAIL, ruled=(ruling,))


@pytest.mark.parametrize("rows", [(row(),), (row(Status.FAIL, "m", mitigated("fuser off")),)])
def test_run_that_has_less_than_the_policy_asks_for_is_never_green(rows: tuple[RowVerdict, ...]) -> None:
    result = judged(*rows, unmet="minimum_models = 9: 1 judged")
    assert outcome(result) == (Decision.INCONCLUSIVE, 4)
    assert result.reason == "the policy asks for more: minimum_models = 9: 1 judged"


def test_failure_stays_one_whatever_else_the_policy_asks_for() -> None:
    red = judged(row(Status.FAIL), unmet="minimum_models = 9: 1 judged")
    assert outcome(red) == (Decision.BLOCKED, 1)
    assert red.reason.startswith("the policy asks for more: minimum_models = 9: 1 judged; ")
    assert "policy" not in judged(row(Status.FAIL)).reason


def test_repeated_cell_owes_the_policy_no_other_models() -> None:
    result = judged(row(), planted_defects=(), planted_defects_required=False, unmet="minimum_models = 9: 1 judged")
    assert outcome(result) == (Decision.CELL_OK, 0)


def test_repeated_cell_that_is_waived_is_not_said_to_pass() -> None:
    waived = Waived(kinds=("values",), owner="ann", reason="known", expires="2026-12-31")
    cell = replace(let_pass(), waived=(waived,))
    result = judged(judge_row("m", [cell]), planted_defects=(), planted_defects_required=False)
    assert outcome(result) == (Decision.CELL_OK, 0)
    assert "passes" not in result.reason and "waived" in result.reason


def test_what_the_policy_lets_pass_is_counted_apart() -> None:
    result = judged(row(), judge_row("n", [let_pass("n")]))
    assert (outcome(result), result.reason) == ((Decision.UPGRADE_OK, 0), "1 model passes, 1 let pass by the policy")


def test_policy_that_lets_everything_pass_is_not_green() -> None:
    result = judged(judge_row("m", [let_pass()]), judge_row("n", [let_pass("n")]))
    assert outcome(result) == (Decision.NOTHING_TESTED, 4)


def test_waived_failures_have_an_owner_and_may_be_all_there_is() -> None:
    waived = Waived(kinds=("values",), owner="ann", reason="known", expires="2026-12-31")
    cell = replace(let_pass(), waived=(waived,))
    assert outcome(judged(judge_row("m", [cell]))) == (Decision.UPGRADE_OK, 0)


def test_switch_mitigates_nothing_that_fails_by_the_policy_alone() -> None:
    cells = [verdict(Status.FAIL, finding("hang")), replace(raised(), scenario="latency")]
    assert outcome(judged(judge_row("m", cells, [mitigated("fuser off")]))) == (Decision.BLOCKED, 1)
    assert outcome(judged(judge_row("m", cells[:1], [mitigated("fuser off")]))) == (Decision.OK_WITH_MITIGATION, 1)


COMMON = Finding(kind="common_slowdown", message="what all 12 timed models share: +4.0 %", size=1.04)


def test_what_a_release_costs_all_models_blocks_a_run_whose_models_pass() -> None:
    judgement = judged(row(), findings=(COMMON,))
    assert (judgement.decision, judgement.reason, judgement.findings) == (Decision.BLOCKED, COMMON.message, (COMMON,))
    both = judged(row(Status.FAIL), findings=(COMMON,))
    assert both.reason.endswith(f"; {COMMON.message}")


def test_policy_may_weigh_it_less_and_nothing_is_said_by_a_gate_that_is_blind() -> None:
    warned = judged(row(), findings=(COMMON,), severity={"common_slowdown": "warn"})
    assert warned.decision is Decision.UPGRADE_OK
    assert warned.reason.endswith(f"; warning: {COMMON.message}")
    accepted = judged(row(), findings=(COMMON,), severity={"common_slowdown": "warn"}, accepted=("fuser off",))
    assert accepted.reason.endswith(f"; warning: {COMMON.message}")
    unclear = judged(row(), findings=(COMMON,), severity={"common_slowdown": "inconclusive"})
    assert outcome(unclear) == (Decision.INCONCLUSIVE, 4)
    assert unclear.reason == COMMON.message
    told = judged(row(), findings=(COMMON,), severity={"common_slowdown": "info"})
    assert (told.decision, COMMON.message in told.reason) == (Decision.UPGRADE_OK, False)
    blind = judged(row(), planted_defects=(planted_defect(caught=False),), findings=(COMMON,))
    assert blind.decision is Decision.INCONCLUSIVE
