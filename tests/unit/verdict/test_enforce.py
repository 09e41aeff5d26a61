"""What limits, severities and waivers make of one cell."""

import datetime
from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.waivers.apply import Ran
from harness.checks.outputs.findings import output_findings
from harness.verdict.enforce import WaiverContext, enforce, judge_timed, settled, without_policy
from harness.core.comparison import OutputComparison
from harness.core.findings import SEVERITY, status_of
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.policy import ModelPolicy
from harness.core.verdict import CellVerdict, Finding, Waiver
from tests.unit.builders.verdicts import call, compared, equal, finding, measured, ratio, tensor, verdict

DAY = datetime.date(2026, 6, 1)
CONTEXT = WaiverContext(waivers=(), ran=Ran("2.1.2", "2.6.0"), today=DAY)
WAIVER = Waiver(model="m", kind="values", reason="known", owner="ann", expires=DAY)


def policy(**settings: Any) -> ModelPolicy:
    found = PolicySettings(**settings)
    keys = [f"{section}.{key}" for section in ("limits", "severity") for key in getattr(found, section)]
    return ModelPolicy(settings=found, by=dict.fromkeys(keys, "policy.toml"))


def judged(
    cell: CellVerdict,
    context: WaiverContext = CONTEXT,
    comparison: OutputComparison | None = None,
    guessed: str = "",
    **settings: Any,
) -> CellVerdict:
    return enforce(cell, policy(**settings), context, comparison=comparison, guessed=guessed)


def of(comparison: OutputComparison) -> CellVerdict:
    found = output_findings(comparison)
    return verdict(status_of(found), *found)


def red(*kinds: str) -> CellVerdict:
    return verdict(Status.FAIL, *map(finding, kinds))


def unclear(*kinds: str, **changes: Any) -> CellVerdict:
    return verdict(Status.INCONCLUSIVE, *map(finding, kinds), **changes)


@pytest.mark.parametrize("cell", [verdict(), red("values"), unclear("not_measured"), verdict(Status.SAME_FAIL)])
def test_policy_that_says_nothing_changes_nothing(cell: CellVerdict) -> None:
    assert judged(cell) == cell


# severities


def test_failure_that_is_let_pass_is_expected_and_never_a_pass() -> None:
    found = judged(red("values"), severity={"values": "warn"})
    assert (found.status, found.judged) == (Status.XFAIL, Status.FAIL)
    assert found.note == "values counts as warn in place of fail: severity.values of policy.toml"
    assert [(item.kind, item.was, item.now) for item in found.ruled] == [("values", "fail", "warn")]


def test_all_that_fails_a_cell_must_be_let_pass() -> None:
    found = judged(red("values", "dtype"), severity={"values": "warn"})
    assert (found.status, found.judged) == (Status.FAIL, None)
    assert [item.kind for item in found.findings] == ["dtype", "values"]  # what fails it is told first
    assert judged(red("values", "dtype"), severity={"values": "warn", "dtype": "info"}).status is Status.XFAIL


def test_failure_can_be_left_open() -> None:
    assert judged(red("hang"), severity={"hang": "inconclusive"}).status is Status.INCONCLUSIVE


def test_warning_can_fail_a_cell() -> None:
    warned = verdict(Status.PASS, finding("stride"), finding("memory"), scenario="latency")
    found = judged(warned, severity={"memory": "fail"})
    assert (found.status, found.judged, found.decides) == (Status.FAIL, Status.PASS, True)
    assert found.findings[0].kind == "memory"
    assert "memory counts as fail in place of named" in found.note
    assert judged(verdict(), severity={"memory": "fail"}) == verdict()


def test_same_severity_as_without_a_policy_changes_nothing() -> None:
    assert judged(red("values"), severity={"values": "fail"}) == red("values")


@pytest.mark.parametrize("kind", ["export_error", "not_measured", "not_called", "protocol_error", "starved"])
def test_what_was_not_tested_never_passes(kind: str) -> None:
    found = judged(unclear(kind), severity={kind: "info"})
    assert (found.status, found.decides) == (Status.UNSUPPORTED, True)
    late = judged(unclear(kind, scenario="latency"), severity={kind: "info"})
    assert (late.status, late.decides) == (Status.UNSUPPORTED, False)  # what was tested of the model decides


def test_what_was_tested_in_part_may_pass() -> None:
    assert judged(unclear("covers"), severity={"covers": "warn"}).status is Status.PASS
    opaque = Finding(kind="not_decidable", message="an object", rule="structure")
    cell = verdict(Status.INCONCLUSIVE, opaque)
    with_numbers, without = compared(call(equal())), compared(call())
    assert judged(cell, comparison=with_numbers, severity={"not_decidable": "warn"}).status is Status.PASS
    assert judged(cell, comparison=without, severity={"not_decidable": "warn"}).status is Status.UNSUPPORTED
    nothing = unclear("not_decidable")  # guessed inputs that are answered with NaN
    assert judged(nothing, comparison=with_numbers, severity={"not_decidable": "warn"}).status is Status.UNSUPPORTED


def test_finding_that_a_judge_set_aside_stays_what_it_was() -> None:
    unstable = unclear("unstable_old_release", "call_error")
    assert judged(unstable, severity={"unstable_old_release": "warn"}).status is Status.INCONCLUSIVE
    assert judged(unstable, severity={"unstable_old_release": "fail"}).status is Status.FAIL


def test_failure_in_an_open_cell_that_is_let_pass_is_no_pass() -> None:
    severity = {"unstable_old_release": "info", "load_error": "info"}
    assert judged(unclear("unstable_old_release", "load_error"), severity=severity).status is Status.XFAIL


def test_unstable_old_release_passes_only_where_something_was_compared() -> None:
    severity = {"unstable_old_release": "warn"}
    never = unclear("unstable_old_release")  # the old release completes it one time of two
    assert judged(never, severity=severity).status is Status.UNSUPPORTED
    noisy = verdict(
        Status.INCONCLUSIVE, Finding(kind="unstable_old_release", message="dtype differs", rule="own noise")
    )
    assert judged(noisy, comparison=compared(call(equal())), severity=severity).status is Status.PASS


@pytest.mark.parametrize("status", [Status.SAME_FAIL, Status.UNSUPPORTED])
def test_what_failed_before_too_or_cannot_be_is_left_alone(status: Status) -> None:
    cell = verdict(status, finding("values"), finding("memory"))
    assert judged(cell, severity={"values": "warn", "memory": "fail"}) == cell


def test_latency_that_must_be_decided_decides() -> None:
    cell = unclear("latency_undecided", scenario="latency", decides=False)
    found = judged(cell, severity={"latency_undecided": "fail"})
    assert (found.status, found.decides) == (Status.FAIL, True)
    assert judged(cell, severity={"latency_undecided": "warn"}).status is Status.PASS


def test_latency_of_guessed_inputs_decides_nothing_under_any_policy() -> None:
    cell = verdict(Status.PASS, finding("memory"), scenario="latency")
    found = judged(cell, guessed="forward(x=float32[2])", severity={"memory": "fail"})
    assert (found.status, found.decides) == (Status.FAIL, False)


# the limit of errors


def off(size: float, **changes: Any) -> OutputComparison:
    return compared(call(tensor(max_abs=2.0 * size, **changes)))


def test_difference_within_the_limit_passes_and_is_reported() -> None:
    found = judged(of(off(5e-4)), comparison=off(5e-4), limits={"error": 1e-3})
    assert (found.status, found.judged) == (Status.PASS, Status.FAIL)
    assert "off by 0.0005 of the largest value, limit 0.001: limits.error of policy.toml" in found.note


def test_difference_beyond_the_limit_fails_as_before() -> None:
    assert judged(of(off(5e-3)), comparison=off(5e-3), limits={"error": 1e-3}) == of(off(5e-3))


def test_late_divergence_is_excused_by_its_numbers_only() -> None:
    late = compared(call(equal()), call(tensor(max_abs=1e-3), index=1))
    assert judged(of(late), comparison=late, limits={"error": 1e-3}).status is Status.PASS
    moved = compared(call(equal()), call(tensor(max_abs=1e-3, nan_mismatches=1), index=1))
    assert judged(of(moved), comparison=moved, limits={"error": 1e-3}).status is Status.FAIL


@pytest.mark.parametrize("dtype", ["int64", "bool", "qint8"])
def test_limit_excuses_floats_only(dtype: str) -> None:
    found = off(5e-4, dtype=dtype)
    assert judged(of(found), comparison=found, limits={"error": 1e-3}).status is Status.FAIL


def test_other_dtype_structure_and_nan_are_no_error() -> None:
    for kind in ("dtype", "structure", "nan_placement"):
        cell = verdict(Status.FAIL, finding(kind), *output_findings(off(5e-4)))
        assert judged(cell, comparison=off(5e-4), limits={"error": 1e-3}).status is Status.FAIL


def test_nothing_is_excused_where_nobody_measured() -> None:
    assert judged(of(off(5e-4)), limits={"error": 1e-3}).status is Status.FAIL
    infinite = off(0.1, scale=0.0)
    assert judged(of(infinite), comparison=infinite, limits={"error": 1.0}).status is Status.FAIL


def test_sample_cannot_say_that_the_rest_is_within_the_limit() -> None:
    found = off(5e-4, sampled=True)
    assert judged(of(found), comparison=found, limits={"error": 1e-3}).status is Status.FAIL


def test_tighter_limit_than_the_tolerance_fails() -> None:
    within = off(4e-6)
    assert of(within).status is Status.PASS
    found = judged(of(within), comparison=within, limits={"error": 1e-6})
    assert (found.status, found.judged) == (Status.FAIL, Status.PASS)
    assert [item.kind for item in found.findings] == ["error_limit"]
    assert found.findings[0].size == pytest.approx(4e-6)
    assert judged(of(within), comparison=within, limits={"error": 1e-5}).status is Status.PASS


def test_noise_of_the_old_release_is_not_held_against_the_new_one() -> None:
    noisy = off(4e-6, noise_abs=1e-3)
    assert judged(of(noisy), comparison=noisy, limits={"error": 1e-6}).status is Status.PASS


def test_limit_holds_where_values_are_let_pass() -> None:
    severity = {"values": "warn"}
    small, large = off(5e-4), off(5e-3)
    assert judged(of(small), comparison=small, severity=severity, limits={"error": 1e-3}).status is Status.PASS
    found = judged(of(large), comparison=large, severity=severity, limits={"error": 1e-3})
    assert (found.status, found.findings[0].kind) == (Status.FAIL, "error_limit")


# waivers


def waiving(**changes: Any) -> WaiverContext:
    return replace(CONTEXT, waivers=(replace(WAIVER, **changes),))


def test_waiver_covers_what_the_policy_leaves_a_failure() -> None:
    found = judged(red("values"), waiving())
    assert (found.status, found.judged, found.waived[0].owner) == (Status.XFAIL, Status.FAIL, "ann")
    both = judged(red("values", "dtype"), waiving(), severity={"dtype": "warn"})
    assert (both.status, both.judged) == (Status.XFAIL, Status.FAIL)


def test_waiver_covers_what_the_policy_makes_a_failure() -> None:
    warned = verdict(Status.PASS, finding("memory"))
    severity = {"memory": "fail"}
    assert judged(warned, waiving(), severity=severity).status is Status.FAIL
    found = judged(warned, waiving(kind="memory"), severity=severity)
    assert (found.status, found.judged) == (Status.XFAIL, Status.PASS)


def test_waiver_of_one_output_does_not_cover_what_another_is_beyond_the_limit() -> None:
    worse = tensor(path="head", dtype="bfloat16", max_abs=0.04, tolerance_abs=0.06)
    both = compared(call(tensor(path="body", max_abs=2e-4), worse))
    found = judged(of(both), waiving(bound=2e-4), comparison=both, limits={"error": 1e-5})
    assert (found.status, [item.kind for item in found.findings]) == (Status.FAIL, ["values", "error_limit"])
    assert found.findings[1].message.startswith("head: off by 0.02")
    alone = compared(call(tensor(path="body", max_abs=2e-4), equal(path="head")))
    assert judged(of(alone), waiving(bound=2e-4), comparison=alone, limits={"error": 1e-5}).status is Status.XFAIL


def test_unused_waiver_fails_where_the_policy_says_so() -> None:
    cells = {"m": (verdict(),), "n": (verdict(model="n"),)}
    assert settled(cells, PolicySettings(), waiving()) == cells
    found = settled(cells, PolicySettings(unused_waivers="fail"), waiving())
    assert (found["m"][0].status, found["n"]) == (Status.XPASS, cells["n"])
    needed = {"m": (judged(red("values"), waiving()),)}
    assert settled(needed, PolicySettings(unused_waivers="fail"), waiving()) == needed


# judging again


@pytest.mark.parametrize(
    ("cell", "settings"),
    [
        (red("values"), {"severity": {"values": "warn"}}),
        (verdict(Status.PASS, finding("memory"), note="in 1 of 2 rounds"), {"severity": {"memory": "fail"}}),
        (unclear("not_measured", scenario="latency"), {"severity": {"not_measured": "info"}}),
        (of(off(4e-6)), {"limits": {"error": 1e-6}}),
        (of(off(5e-4)), {"limits": {"error": 1e-3}}),
        (red("values"), {}),
        (red("values"), {"severity": {"values": "inconclusive"}}),
        (verdict(Status.SAME_FAIL, note="before: RuntimeError: x; waived until noon; the waiver of y"), {}),
        (replace(red("values"), note="x; the waiver of y"), {"severity": {"values": "warn"}}),
        (
            verdict(Status.INCONCLUSIVE, finding("not_decidable"), scenario="concurrent"),
            {"severity": {"not_decidable": "info"}},
        ),
    ],
)
@pytest.mark.parametrize("context", [CONTEXT, waiving()])
def test_cell_can_be_judged_again_from_what_the_report_keeps(
    cell: CellVerdict, settings: dict[str, Any], context: WaiverContext
) -> None:
    comparison = off(4e-6) if settings.get("limits") == {"error": 1e-6} else off(5e-4)
    once = judged(cell, context, comparison=comparison, **settings)
    assert without_policy(once) == replace(cell, findings=without_policy(once).findings)
    assert {item.kind for item in without_policy(once).findings} == {item.kind for item in cell.findings}
    assert judged(without_policy(once), context, comparison=comparison, **settings) == once


def test_what_failed_is_reported_first_again_once_a_policy_is_gone() -> None:
    severity = {"memory": "fail", "values": "warn"}
    stricter = judged(red("values", "memory"), severity=severity)
    assert [item.kind for item in stricter.findings] == ["memory", "values"]
    assert without_policy(stricter) == red("values", "memory")


def test_every_kind_can_be_given_every_severity() -> None:
    for kind in SEVERITY:
        for severity in ("fail", "inconclusive", "warn", "info"):
            cell = verdict(status_of([finding(kind)]), finding(kind))
            found = judged(cell, severity={kind: severity})
            assert (found.status is Status.FAIL) == (severity == "fail"), kind
            assert found.status is not Status.PASS or cell.status is not Status.FAIL


@pytest.mark.parametrize(("divided", "status"), [(True, Status.PASS), (False, Status.FAIL)])
def test_own_part_counts_only_where_what_all_share_was_judged(divided: bool, status: Status) -> None:  # noqa: FBT001
    slow = measured(ratio(1.14, 1.16), confirmation=ratio(1.14, 1.16), own=ratio(1.0, 1.01))
    own = replace(policy(latency="own"), by={"latency": "policy.toml"})
    found = judge_timed("m", slow, LatencyBudget(), own, divided=divided)
    assert (found.status, "judged by its total" in found.note) == (status, not divided)
