"""Writes the manifest of an artifact that a release has saved again, beside it."""

import os
from pathlib import Path

from harness.domain.artifact import Artifact
from harness.domain.fixture import ModelDeclaration
from harness.planning.manifest import MANIFEST
from harness.planning.manifest_text import manifest_text
from harness.worker import wire


def manifest_beside(artifact: Artifact) -> Path:
    """Return where the manifest of ``artifact`` lies."""
    return Path(artifact.path).with_name(MANIFEST)


def write_manifest(model: ModelDeclaration, artifact: Artifact) -> None:
    """Write what is known of ``model`` beside ``artifact``, with the inputs that were recorded.

    Raises:
        OSError: the disk is full.
    """
    path = manifest_beside(artifact)
    index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
    inputs = os.path.relpath(index, path.parent) if artifact.input_sets else ""
    path.write_text(manifest_text(model, path=Path(artifact.path).name, inputs=inputs), encoding="utf-8")
