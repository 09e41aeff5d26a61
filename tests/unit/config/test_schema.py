"""What other modules say of the same keys, switches and dtypes."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from harness.config import schema
from harness.checks.outputs.tolerances import FACTORS
from harness.core.plan import Deadlines, LatencyBudget, PolicySettings


@pytest.mark.parametrize(
    ("keys", "domain"),
    [(schema.DEADLINES, Deadlines), (schema.LATENCY, LatencyBudget), (schema.POLICY, PolicySettings)],
)
def test_tables_have_the_keys_of_their_types(keys: Mapping[str, object], domain: Any) -> None:
    assert list(keys) == [field.name for field in dataclasses.fields(domain)]


def test_every_dtype_to_compute_in_has_a_tolerance() -> None:
    assert set(schema.DTYPES) <= set(FACTORS)
