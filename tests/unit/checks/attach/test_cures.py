"""Every known hang has a scenario of the gate that makes it again, and settings that exist."""

import ast
from pathlib import Path

from harness.checks.attach.cures import CURES, SCENARIOS
from harness.checks.attach.phases import PHASES
from harness.checks.hang import readings
from harness.serving import scenarios
from harness.serving.settings.mitigations import MITIGATIONS


def _names() -> set[str]:
    tree = ast.parse(Path(readings.__file__).read_text())
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reading")
    return {ast.literal_eval(word.value) for call in calls for word in call.keywords if word.arg == "name"}


def test_every_reading_has_a_cure_and_no_other_has() -> None:
    assert _names() == set(CURES)


def test_cures_name_settings_and_scenarios_that_exist() -> None:
    assert {name for cure in CURES.values() for name in cure.settings} <= set(MITIGATIONS)
    assert {cure.scenario for cure in CURES.values()} | set(SCENARIOS.values()) <= set(scenarios.SCENARIOS)
    assert set(SCENARIOS) == {phase for phase, _ in PHASES}
