"""What the policy of a plan says of one model."""

from dataclasses import replace
from typing import Any

from harness.config.policy import model_budget, model_policy, policy_source, some_gate
from harness.verdict.decide import decide, judge_row
from harness.core.plan import LatencyBudget, Plan, PolicyRule, PolicySettings
from harness.core.verdict import Judgement
from harness.run.decide import policy_report
from tests.unit.builders.stages import declared, known, planned

RULES = (PolicyRule(models="slow", limits={"steady": 1.2}, gates=("load",), severity={"tail": "fail"}),)


def plan(**settings: Any) -> Plan:
    return planned(
        "m", "slow", settings={"policy": PolicySettings(**settings)}, planted_defects=(declared("slow_bird"),)
    )


def test_limit_of_the_steady_call_may_be_a_models_own() -> None:
    found = plan(rules=RULES)
    assert model_budget(found, "m").limit == LatencyBudget().limit
    assert round(model_budget(found, "slow").limit, 9) == 0.2
    assert model_budget(found, "slow", LatencyBudget(blocks=3)).blocks == 3
    assert round(model_budget(plan(limits={"steady": 1.5}), "m").limit, 9) == 0.5
    assert model_budget(plan(limits={"floor_s": 1e-3}), "m").floor_s == 1e-3


def test_planted_defect_is_judged_without_rules_severities_and_the_limit_of_the_steady_call() -> None:
    found = plan(
        rules=RULES, limits={"steady": 1.5, "load": 2.0, "error": 0.5, "floor_s": 9.0}, severity={"latency": "info"}
    )
    policy = model_policy(found, "slow_bird").settings
    assert (policy.rules, policy.severity, policy.limits) == ((), {}, {"load": 2.0})
    assert model_budget(found, "slow_bird") == replace(found.settings.latency, floor_s=0.0)
    assert model_policy(found, "slow").settings.severity == {"latency": "info", "tail": "fail"}


def test_gates_of_a_rule_are_measured_too() -> None:
    assert (some_gate(plan(rules=RULES)), some_gate(plan(gates=("load",))), some_gate(plan())) == (True, True, False)


def test_report_names_the_policy_and_what_it_asks() -> None:
    facts = known(plan(rules=(replace(RULES[0], models="visoin"),), minimum_models=3))
    judged = replace(facts, judgement=_judgement())
    told = policy_report(judged)
    assert (told.source, told.steady, told.undecided) == ("[tool.compat.policy]", 1.05, 1.25)
    assert (told.floor_s, told.common) == (20e-6, 1.03)
    assert told.notes == ('rule 1 of the policy (models = "visoin") matches none of 2 models',)
    assert [(item.what, item.met) for item in told.demands] == [("minimum_models = 3", False)]
    named = replace(facts.plan, settings=replace(facts.plan.settings, policy_file="ci/policy.toml"))
    assert policy_source(named) == "ci/policy.toml"


def _judgement() -> Judgement:
    return decide([judge_row("m", [])], ())


def test_run_that_repeats_a_cell_is_asked_for_nothing_else() -> None:
    facts = known(plan(rules=(replace(RULES[0], models="visoin"),), minimum_models=3))
    told = policy_report(replace(facts, judgement=replace(_judgement(), of_cell=True)))
    assert (told.demands, told.notes) == ((), ())
