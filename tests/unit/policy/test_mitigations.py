"""The switches that may cure a red cell."""

import ast
from pathlib import Path

from harness.policy.mitigations import MITIGATIONS, TRIED_BY_DEFAULT

SWITCHES = Path(__file__).parents[3] / "harness" / "worker" / "switches.py"


def test_what_is_tried_by_default_exists() -> None:
    assert set(TRIED_BY_DEFAULT) <= set(MITIGATIONS)
    assert len(set(TRIED_BY_DEFAULT)) == len(TRIED_BY_DEFAULT) > 0


def test_every_mitigation_sets_a_switch_that_the_worker_knows() -> None:
    known = {node.value for node in ast.walk(ast.parse(SWITCHES.read_text())) if isinstance(node, ast.Constant)}
    assert all(switches for switches in MITIGATIONS.values())
    assert {switch for switches in MITIGATIONS.values() for switch in switches} <= known
