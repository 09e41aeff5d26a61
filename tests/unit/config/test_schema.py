"""What other modules say of the same keys, switches and dtypes."""

import ast
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.config import schema
from harness.correctness.tolerances import FACTORS
from harness.domain.plan import Deadlines, LatencyBudget, PolicySettings


@pytest.mark.parametrize(
    ("keys", "domain"),
    [(schema.DEADLINES, Deadlines), (schema.LATENCY, LatencyBudget), (schema.POLICY, PolicySettings)],
)
def test_tables_have_the_keys_of_their_types(keys: Mapping[str, object], domain: Any) -> None:
    assert list(keys) == [field.name for field in dataclasses.fields(domain)]


def test_switches_are_those_that_the_worker_knows() -> None:
    source = Path(schema.__file__).parents[1] / "worker" / "settings" / "switches.py"
    known: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"PROCESS_WIDE", "THREAD_LOCAL", "AT_LOAD"}:
            assert isinstance(node.value, ast.Dict)
            known |= {ast.literal_eval(key) for key in node.value.keys if key is not None}
    assert set(schema.SWITCHES) == known


def test_every_dtype_to_compute_in_has_a_tolerance() -> None:
    assert set(schema.DTYPES) <= set(FACTORS)
