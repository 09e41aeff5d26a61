"""A policy as people write it, and what it says of one model."""

import pytest

from harness.config.policy import Tagged, idle_rules, parse_policy, policy_of
from harness.core.plan import PolicyRule, PolicySettings
from harness.core.errors import ConfigError
from tests.unit.builders.config import KINDS, MITIGATIONS

TEXT = """
minimum_models = 3
required_scenarios = ["concurrent"]
gates = ["load"]
accepted_mitigations = ["fuser off"]
limits = { steady = 1.05, load = "+100 %" }
severity = { values = "warn" }

[[rules]]
models = "vision and not half"
limits = { steady = 1.10, error = 0.001 }
required_scenarios = ["latency"]

[[rules]]
models = "resnet"
limits = { steady = 1.20 }
severity = { values = "fail" }
gates = ["p99", "load"]
"""


def parsed(text: str = TEXT) -> PolicySettings:
    return parse_policy(text, file="policy.toml", mitigations=MITIGATIONS, kinds=KINDS)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    return str(caught.value)


def test_file_has_the_keys_of_the_configuration_at_its_top() -> None:
    policy = parsed()
    assert (policy.minimum_models, policy.limits, policy.severity) == (
        3,
        {"steady": 1.05, "load": 2.0},
        {"values": "warn"},
    )
    assert policy.rules[0] == PolicyRule(
        models="vision and not half", limits={"steady": 1.1, "error": 0.001}, required_scenarios=("latency",)
    )
    assert parsed("") == PolicySettings()


def test_rules_hold_for_the_models_that_they_match_the_later_over_the_earlier() -> None:
    policy = parsed()
    both = policy_of(policy, Tagged("resnet50", ("vision",)), source="policy.toml")
    assert both.settings.limits == {"steady": 1.2, "load": 2.0, "error": 0.001}
    assert both.settings.severity == {"values": "fail"}
    assert (both.settings.gates, both.settings.required_scenarios) == (("load", "p99"), ("concurrent", "latency"))
    assert both.settings.rules == ()
    assert both.by["limits.error"] == 'policy.toml, rule 1 (models = "vision and not half")'
    assert both.by["limits.steady"] == 'policy.toml, rule 2 (models = "resnet")'
    assert both.by["limits.load"] == "policy.toml"
    other = policy_of(policy, Tagged("bert", ("text",)))
    assert other.settings.limits == {"steady": 1.05, "load": 2.0}
    assert other.by["severity.values"] == "[tool.compat.policy]"


def test_rule_that_matches_no_model_is_reported() -> None:
    assert idle_rules(parsed(), [Tagged("resnet50", ("vision",))]) == ()
    assert idle_rules(parsed(), [Tagged("bert"), Tagged("dlrm")]) == (
        'rule 1 of the policy (models = "vision and not half") matches none of 2 models',
        'rule 2 of the policy (models = "resnet") matches none of 2 models',
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limits = ", "policy.toml: not valid TOML"),
        ("[policy]\nminimum_models = 1", "policy.toml: a policy file has its keys at its top"),
        ("[tool.compat.policy]\nminimum_models = 1", "policy.toml: a policy file has its keys at its top"),
        ("minimum_model = 1", 'policy.toml: policy.minimum_model: unknown key; did you mean "minimum_models"'),
        ('severity = { valuez = "warn" }', 'policy.severity.valuez: unknown kind of finding; did you mean "values"?'),
        ('required_scenarios = ["concurrentt"]', "policy.required_scenarios: expected a list of scenarios"),
        ('accepted_mitigations = ["fuser of"]', "policy.accepted_mitigations: unknown mitigation"),
        ('[[rules]]\nseverity = { values = "warn" }', "policy.rules, number 1: lacks models"),
        ('[[rules]]\nmodels = "bert"', "policy.rules, number 1: says nothing about these models"),
        ('[[rules]]\nmodels = "bert and"\ngates = ["load"]', "policy.rules, number 1.models: expression"),
        ('[[rules]]\nmodels = "bert"\nminimum_models = 1', "policy.rules, number 1.minimum_models: unknown key"),
        (
            '[[rules]]\nmodels = "a"\ngates = ["load"]\n[[rules]]\nmodels = "b"\nseverity = { hnag = "warn" }',
            "policy.rules, number 2.severity.hnag: unknown kind of finding",
        ),
        (
            '[[rules]]\nmodels = "a"\nseverity = { common_slowdown = "warn" }',
            "policy.rules, number 1.severity.common_slowdown: this is of the run, not of a model",
        ),
    ],
)
def test_mistake_is_named_by_file_and_key(text: str, words: str) -> None:
    assert words in refusal(text)
