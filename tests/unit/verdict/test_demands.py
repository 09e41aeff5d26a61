"""What a policy asks of a whole run."""

from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.demands import demands, unmet
from harness.verdict.decide import judge_row
from harness.core.outcome import Status
from harness.core.plan import PolicySettings
from harness.core.policy import Demand, ModelPolicy
from harness.core.verdict import CellVerdict, RowVerdict, Waived
from tests.unit.builders.verdicts import finding, row, verdict


def asked(rows: list[RowVerdict], **settings: Any) -> tuple[Demand, ...]:
    policy = PolicySettings(**settings)
    return demands(policy, rows, {item.model: ModelPolicy(settings=policy) for item in rows})


def model_in(model: str, *scenarios: str, **others: CellVerdict) -> RowVerdict:
    cells = [verdict(model=model), *(verdict(model=model, scenario=name) for name in scenarios), *others.values()]
    return judge_row(model, cells)


def test_policy_without_demands_asks_nothing() -> None:
    assert asked([row()]) == ()
    assert unmet(()) == ""


def test_models_are_counted_that_were_really_judged() -> None:
    rows = [row(model="a"), row(Status.FAIL, "b"), row(Status.XFAIL, "c")]
    rows += [row(status, status.value) for status in (Status.UNSUPPORTED, Status.INCONCLUSIVE, Status.SAME_FAIL)]
    few, many = asked(rows, minimum_models=3), asked(rows, minimum_models=4)
    assert (few[0].met, many[0].met) == (True, False)
    assert unmet(many) == "minimum_models = 4: 3 judged"
    half, more = asked(rows, minimum_coverage=0.5), asked(rows, minimum_coverage=0.51)
    assert (half[0].met, more[0].met) == (True, False)
    assert more[0].found == "3 of 6 models judged, not UNSUPPORTED, INCONCLUSIVE, SAME_FAIL"


def test_no_model_covers_nothing() -> None:
    assert not asked([], minimum_coverage=0.01)[0].met


def test_required_scenario_needs_a_verdict_of_each_passing_model() -> None:
    rows = [model_in("a", "concurrent"), model_in("b", "concurrent"), row(Status.FAIL, "broken")]
    assert asked(rows, required_scenarios=("concurrent",))[0].met
    found = asked([*rows, model_in("c")], required_scenarios=("concurrent",))
    assert (
        unmet(found)
        == "required scenario concurrent: 2 of 4 models tested in it, not c, nor broken, which does not pass without it"
    )
    policy = PolicySettings(required_scenarios=("latency",))
    (timed,) = demands(
        policy, rows, {item.model: ModelPolicy(settings=policy) for item in rows}, over_budget=["latency"]
    )
    assert not timed.met
    assert timed.found == (
        "0 of 3 models tested in it, not a, b (left out by --budget), nor broken, which does not pass without it"
    )


def test_timing_is_required_only_of_models_that_are_timed() -> None:
    policy = PolicySettings(required_scenarios=("latency",))
    rows = [model_in("miniature"), model_in("served", "latency")]
    policies = {item.model: ModelPolicy(settings=policy) for item in rows}
    assert demands(policy, rows, policies, untimed=["miniature"])[0].met
    assert not demands(policy, rows, policies)[0].met
    assert not demands(policy, rows[:1], policies, untimed=["miniature"])[0].met


def test_required_scenario_is_not_met_by_models_that_all_fail_before_it() -> None:
    assert not asked([row(Status.FAIL, "broken")], required_scenarios=("concurrent",))[0].met


def test_cell_without_an_answer_is_no_test_of_a_scenario_but_an_open_latency_is() -> None:
    unsupported = verdict(Status.UNSUPPORTED, scenario="latency", decides=False)
    assert not asked([model_in("m", cell=unsupported)], required_scenarios=("latency",))[0].met
    lost = verdict(Status.INCONCLUSIVE, finding("not_measured"), scenario="latency", decides=False)
    assert not asked([model_in("m", cell=lost)], required_scenarios=("latency",))[0].met
    still_open = verdict(Status.INCONCLUSIVE, finding("latency_undecided"), scenario="latency", decides=False)
    assert asked([model_in("m", cell=still_open)], required_scenarios=("latency",))[0].met


@pytest.mark.parametrize(
    ("kind", "named"), [("load_error", False), ("crash", False), ("values", True), ("structure", True)]
)
def test_what_a_waived_failure_keeps_out_of_a_scenario_is_not_missing_there(kind: str, named: bool) -> None:
    """One that answers, however wrongly, could have been tested."""
    waived = Waived(kinds=(kind,), owner="ada", reason="known", expires="2027-01-01")
    known = judge_row("known", [replace(verdict(Status.XFAIL, finding(kind), model="known"), waived=(waived,))])
    (demand,) = asked([model_in("a", "concurrent"), known], required_scenarios=("concurrent",))
    assert demand.met is not named
    assert (
        demand.found
        == f"1 of 2 models tested in it{', not known' if named else ', not known, which does not pass without it'}"
    )
    (demand,) = asked([model_in("a", "concurrent"), known, model_in("b")], required_scenarios=("concurrent",))
    assert not demand.met and " b" in demand.found.partition("tested in it, not")[2]
    assert not asked([known], required_scenarios=("concurrent",))[0].met, "nothing was tested in it"
    answers = replace(known, cells=(*known.cells, verdict(model="known", scenario="while_serving")))
    assert not asked([model_in("a", "concurrent"), answers], required_scenarios=("concurrent",))[0].met


def test_what_the_policy_lets_pass_is_no_reason_to_test_less() -> None:
    let_pass = judge_row("m", [verdict(Status.XFAIL, finding("load_error"))])
    assert not asked([model_in("a", "concurrent"), let_pass], required_scenarios=("concurrent",))[0].met


def test_rule_requires_a_scenario_of_its_models_alone() -> None:
    rows = [model_in("a", "concurrent"), model_in("b")]
    strict = ModelPolicy(settings=PolicySettings(required_scenarios=("concurrent",)))
    assert demands(PolicySettings(), rows, {"a": strict, "b": ModelPolicy()})[0].met
    assert not demands(PolicySettings(), rows, {"a": ModelPolicy(), "b": strict})[0].met
