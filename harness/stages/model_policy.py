"""What the policy of a plan says of one model, where stages ask for it."""

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.plan import ERROR, STEADY, LatencyBudget, Plan
from harness.domain.policy import Demand, ModelPolicy, PolicyReport
from harness.domain.verdict import CellVerdict, RowVerdict
from harness.planning.policy import IN_CONFIG, Tagged, idle_rules, policy_of
from harness.policy.demands import demands
from harness.policy.enforce import Court, enforce
from harness.policy.inputs import guess_of
from harness.stages.facts import Effects, Facts


def model_policy(plan: Plan, name: str) -> ModelPolicy:
    """Return what the policy says of a model.

    A canary has no tags and no rules: nobody may switch off what shows that the gate can see.
    """
    settings = plan.settings.policy
    model = next((model for model in plan.models if model.name == name), None)
    if model is None:
        limits = {quantity: limit for quantity, limit in settings.limits.items() if quantity not in (STEADY, ERROR)}
        settings = replace(settings, rules=(), severity={}, limits=limits)
    return policy_of(settings, model or Tagged(name), source=policy_source(plan))


def policy_source(plan: Plan) -> str:
    """Return where the policy is written: the file that was named, or the table of the configuration."""
    return plan.settings.policy_file or IN_CONFIG


def model_budget(plan: Plan, name: str, budget: LatencyBudget | None = None) -> LatencyBudget:
    """Return the latency budget with the limit that the policy has for this model's steady call, where it has one."""
    budget = budget or plan.settings.latency
    steady = model_policy(plan, name).settings.limits.get(STEADY)
    return budget if steady is None else replace(budget, limit=steady - 1)


def some_gate(plan: Plan) -> bool:
    """Whether the policy gates a quantity beside the steady call, of any model."""
    policy = plan.settings.policy
    return bool(policy.gates) or any(rule.gates for rule in policy.rules)


def court_of(facts: Facts, effects: Effects) -> Court:
    """Return the waivers of a run, and what they are held against."""
    return Court(waivers=effects.waivers, pair=facts.pair, today=effects.today)


def enforced(cell: CellVerdict, facts: Facts, effects: Effects) -> CellVerdict:
    """Return a cell as the policy and the waivers have it."""
    return enforce(
        cell,
        model_policy(facts.plan, cell.model),
        court_of(facts, effects),
        comparison=facts.comparisons.get((cell.model, cell.scenario)),
        guessed=guess_of(facts.exports[cell.model].artifact),
    )


def run_demands(rows: Sequence[RowVerdict], facts: Facts) -> tuple[Demand, ...]:
    """Return what the policy asks of the whole run, and what the run has of it."""
    policies = {row.model: model_policy(facts.plan, row.model) for row in rows}
    return demands(facts.plan.settings.policy, rows, policies)


def policy_report(facts: Facts) -> PolicyReport:
    """Return the policy that decided a run, and what it made of it; there is a judgement."""
    assert facts.judgement is not None
    settings, latency = facts.plan.settings.policy, facts.plan.settings.latency
    whole = not facts.judgement.of_cell  # what a run must have is not asked of one that repeats a cell
    return PolicyReport(
        source=policy_source(facts.plan),
        settings=settings,
        steady=1 + latency.limit,
        undecided=latency.undecided_limit,
        demands=run_demands(facts.judgement.rows, facts) if whole else (),
        notes=idle_rules(settings, facts.plan.models) if whole else (),
    )
