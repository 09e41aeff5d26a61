"""What a golden bundle may say of its model."""

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.models import Artifact, InputSet
from harness.models.bundles import contradiction
from tests.unit.builders.bundles import described

ARTIFACT = Artifact(
    model="m",
    path="",
    digest="d",
    size_bytes=1,
    operators=(),
    inputs_dir="",
    input_sets=(InputSet(name="example"),),
)


def test_a_healthy_description_contradicts_nothing() -> None:
    assert contradiction(described(artifact=ARTIFACT)) == ""
    bare = described(artifact=ARTIFACT, tolerance=None, computes_in=None, unordered=(), tags=())
    assert contradiction(bare) == ""


@pytest.mark.parametrize("name", ["", ".", "../evil", "a/b", "a b", "\x1b[2J", "and", "planted_wrong_value", "m" * 300])
def test_a_name_that_is_no_word_is_refused(name: str) -> None:
    assert contradiction(described(name, artifact=replace(ARTIFACT, model=name))).startswith("model: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tags", ("planted",)),
        ("tags", ("two words",)),
        ("devices", ()),
        ("devices", ("tpu",)),
        ("device", "tpu"),
        ("unordered", ("input[0]",)),
        ("tolerance", 0.0),
        ("tolerance", float("inf")),
        ("tolerance", float("nan")),
        ("computes_in", "int64"),
    ],
)
def test_what_no_fixture_may_declare_is_refused(key: str, value: Any) -> None:
    assert contradiction(described(artifact=ARTIFACT, **{key: value})).startswith(f"{key}: ")


def test_a_method_that_is_no_name_is_refused() -> None:
    assert contradiction(described(artifact=replace(ARTIFACT, reset="os.system('x')"))).startswith("artifact.reset: ")


def test_the_artifact_of_another_model_is_refused() -> None:
    assert "its artifact of 'other'" in contradiction(described(artifact=replace(ARTIFACT, model="other")))


def test_a_bundle_without_inputs_is_refused() -> None:
    assert "nothing was called" in contradiction(described(artifact=replace(ARTIFACT, input_sets=())))
