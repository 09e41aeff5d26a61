"""A manifest that the gate writes is one that it reads, with everything that was known of the model."""

from dataclasses import replace

import pytest

from harness.domain.models import GivenArtifact, ModelDeclaration
from harness.models.manifest import manifest_text, read_manifest

PLAIN = ModelDeclaration(
    name="m",
    package_root="/run",
    module="",
    factory="",
    source="models.toml",
    line=2,
    source_digest="",
    how="file",
    given=GivenArtifact(path="/run/m.pt"),
)
FULL = replace(
    PLAIN,
    tags=("ranking", "ads"),
    tolerance=1e-05,
    reset="clear",
    devices=("cpu",),
    seed=2**62,
    unordered=("output[1]", "output[*]"),
    timed=False,
    given=GivenArtifact(path="/run/m.pt", inputs="/inputs/tensors.jsonl", methods=("forward", "encode")),
)


@pytest.mark.parametrize("model", [PLAIN, FULL])
def test_what_is_written_is_read_again(model: ModelDeclaration) -> None:
    assert model.given is not None
    inputs = "../inputs/tensors.jsonl" if model.given.inputs else ""
    text = manifest_text(model, path="m.pt", inputs=inputs)
    assert read_manifest(text, file="models.toml", folder="/run") == (model,)


@pytest.mark.parametrize("name", ['a"b\\c', "tab\tnewline\n", "delete\x7f", "naïve 模型 \N{GRINNING FACE}", "a'b"])
def test_any_file_name_is_read_again(name: str) -> None:
    (model,) = read_manifest(manifest_text(PLAIN, path=f"{name}.pt"), file="models.toml", folder="/run")
    assert model.given is not None
    assert model.given.path == f"/run/{name}.pt"
