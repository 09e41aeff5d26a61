"""Which dimensions of a model's inputs may be larger: those that differ in size between its recorded input sets."""

import json
from pathlib import Path
from typing import Any

from harness.domain.models import Artifact
from harness.tensors.samples import mapped
from harness.tensors.trees import Tree, leaves
from harness.worker import wire


def larger_inputs(artifact: Artifact) -> Tree | None:
    """Return the tree of the first input set with the dimensions that may be larger; None where none is known.

    Only input sets of the same method that have the same tensors are held against the first one.
    """
    first, *others = _recorded(artifact)
    method = first.get("method", "forward")
    mine = dict(leaves(first["tree"]))
    sizes: dict[str, set[int]] = {}
    for other in others:
        theirs = dict(leaves(other["tree"]))
        if other.get("method", "forward") != method or theirs.keys() != mine.keys():
            continue
        for path, spec in mine.items():
            sizes.setdefault(path, set()).update(_differing(spec["shape"], theirs[path]["shape"]))
    if not any(sizes.values()):
        return None
    return mapped(first["tree"], lambda spec, path: {**spec, "grows": sorted(sizes[path])})


def _differing(shape: list[int], other: list[int]) -> set[int]:
    """Return the dimensions of different sizes; none where one is empty, as there is nothing that could be repeated."""
    if len(shape) != len(other):
        return set()
    return {dim for dim, (size, size_there) in enumerate(zip(shape, other, strict=True)) if size != size_there and size}


def _recorded(artifact: Artifact) -> list[dict[str, Any]]:
    with (Path(artifact.inputs_dir) / wire.TENSORS_INDEX).open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]
