"""A policy as it is written, and what it says of one model once its rules are worked in; pure."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from harness.config.schema import POLICY, ROOT, Table, read, shown, unknown
from harness.config.selection import Named, Predicate, parse_expression
from harness.core.errors import ConfigError, SelectionError
from harness.core.findings import OF_THE_RUN
from harness.core.plan import FLOOR, NO_QUANTITIES, TOTAL, LatencyBudget, Plan, PolicyRule, PolicySettings
from harness.core.policy import ModelPolicy
from harness.core.quantities import STEADY


class Tagged(NamedTuple):
    """A model that is no declaration here: of a report, or a planted defect."""

    name: str
    tags: tuple[str, ...] = ()


IN_CONFIG: Final = f"[{ROOT}.policy]"
"""Where a policy stands that is no file of its own."""


def parse_policy(text: str, *, file: str, mitigations: Collection[str], kinds: Collection[str]) -> PolicySettings:
    """Return the policy in a TOML file. Raises ``ConfigError``, which names file and key of what is wrong."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Python reads no number of thousands of digits
        raise ConfigError(f"{file}: not valid TOML: {error}", "mend the file") from error
    if set(table) & {"tool", "policy"}:
        keys = ", ".join(POLICY)
        raise ConfigError(f"{file}: a policy file has its keys at its top, not in a table", f"they are: {keys}")
    where = f"{file}: policy"
    return policy_settings(read(table, Table(POLICY), where), where, mitigations=mitigations, kinds=kinds)


def policy_settings(
    values: Mapping[str, Any], where: str, *, mitigations: Collection[str], kinds: Collection[str]
) -> PolicySettings:
    """Return the policy that checked ``values`` say. Raises ``ConfigError``: an unknown name or bad expression."""
    rules = tuple(
        PolicyRule(**_written(rule, f"{where}.rules, number {at}", kinds))
        for at, rule in enumerate(values.get("rules", ()), 1)
    )
    _check_kinds(values, where, kinds)
    policy = PolicySettings(**{**values, "rules": rules})
    for name in policy.accepted_mitigations:
        if name not in mitigations:
            raise unknown(f"{where}.accepted_mitigations", f"mitigation {shown(name)}", name, mitigations)
    return policy


def _written(rule: Mapping[str, Any], where: str, kinds: Collection[str]) -> Mapping[str, Any]:
    if "models" not in rule or len(rule) == 1:
        what = "lacks models" if "models" not in rule else "says nothing about these models"
        raise ConfigError(f"{where}: {what}", 'write models = "vision" and limits, severity, gates, required_scenarios')
    try:
        parse_expression(rule["models"])
    except SelectionError as error:
        raise ConfigError(f"{where}.models: {error.message}", error.hint) from None
    for kind in rule.get("severity", {}):
        if kind in OF_THE_RUN:
            raise ConfigError(
                f"{where}.severity.{kind}: this is of the run, not of a model", "write it above the rules"
            )
    _check_kinds(rule, where, kinds)
    return rule


def _check_kinds(values: Mapping[str, Any], where: str, kinds: Collection[str]) -> None:
    for kind in values.get("severity", {}):
        if kind not in kinds:
            raise unknown(f"{where}.severity.{kind}", "kind of finding", kind, kinds)


def policy_of(settings: PolicySettings, model: Named, *, source: str = IN_CONFIG) -> ModelPolicy:
    """Return what a policy says of a model, later rules over earlier; ``source`` is for the words of decisions."""
    limits, severity, by = dict(settings.limits), dict(settings.severity), {}
    by.update({f"{section}.{key}": source for section in ("limits", "severity") for key in getattr(settings, section)})
    by["latency"] = source
    gates, scenarios = list(settings.gates), list(settings.required_scenarios)
    for number, rule, matches in _rules(settings):
        if not matches(model):
            continue
        limits.update(rule.limits)
        severity.update(rule.severity)
        gates += rule.gates
        scenarios += rule.required_scenarios
        words = f'{source}, rule {number} (models = "{rule.models}")'
        by.update({f"{section}.{key}": words for section in ("limits", "severity") for key in getattr(rule, section)})
    own = replace(
        settings,
        limits=limits,
        severity=severity,
        gates=tuple(dict.fromkeys(gates)),
        required_scenarios=tuple(dict.fromkeys(scenarios)),
        rules=(),
    )
    return ModelPolicy(settings=own, by=by)


def idle_rules(settings: PolicySettings, models: Sequence[Named]) -> tuple[str, ...]:
    """Return, in words, the rules that match none of ``models``: a tag that was mistyped looks like that."""
    return tuple(
        f'rule {number} of the policy (models = "{rule.models}") matches none of {len(models)} models'
        for number, rule, matches in _rules(settings)
        if not any(matches(model) for model in models)
    )


def _rules(settings: PolicySettings) -> list[tuple[int, PolicyRule, Predicate]]:
    return [(number, rule, parse_expression(rule.models)) for number, rule in enumerate(settings.rules, 1)]


def model_policy(plan: Plan, name: str) -> ModelPolicy:
    """Return a model's policy; planted defects have none of the rules: nobody may switch off the self-test."""
    settings = plan.settings.policy
    model = next((model for model in plan.models if model.name == name), None)
    if model is None:
        limits = {
            quantity: limit for quantity, limit in settings.limits.items() if quantity not in (STEADY, *NO_QUANTITIES)
        }
        settings = replace(settings, rules=(), severity={}, limits=limits, latency=TOTAL)
    return policy_of(settings, model or Tagged(name), source=policy_source(plan))


def policy_source(plan: Plan) -> str:
    """Return where the policy is written: the file that was named, or the table of the configuration."""
    return plan.settings.policy_file or IN_CONFIG


def model_budget(plan: Plan, name: str, budget: LatencyBudget | None = None) -> LatencyBudget:
    """Return the budget with the policy's limits for this model; a planted slowdown counts however short its calls."""
    budget = budget or plan.settings.latency
    if not any(model.name == name for model in plan.models):
        budget = replace(budget, floor_s=0.0)
    return with_limits(budget, model_policy(plan, name).settings)


def with_limits(budget: LatencyBudget, settings: PolicySettings) -> LatencyBudget:
    steady, floor_s = settings.limits.get(STEADY), settings.limits.get(FLOOR)
    budget = budget if steady is None else replace(budget, limit=round(steady - 1, 12))
    return budget if floor_s is None else replace(budget, floor_s=floor_s)


def some_gate(plan: Plan) -> bool:
    policy = plan.settings.policy
    rules = (replace(policy, limits=rule.limits, gates=rule.gates, severity=rule.severity) for rule in policy.rules)
    return any(settings.gating for settings in (policy, *rules))
