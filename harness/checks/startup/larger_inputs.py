"""Which dimensions of a model's inputs may be larger: those that differ in size between its recorded input sets."""

from pathlib import Path

from harness.artifacts.tensors.recorded import read_inputs
from harness.artifacts.tensors.trees import Tree, leaves, mapped
from harness.core.models import Artifact


def larger_inputs(artifact: Artifact) -> Tree | None:
    """Return the first input set's tree with dimensions that may grow, by sets of the same method and tensors."""
    asked = {item.name for item in artifact.input_sets}
    entries = [entry for entry in read_inputs(Path(artifact.inputs_dir)).entries if entry[0] in asked]
    if not entries:
        return None
    (_, method, first), *others = entries
    mine = dict(leaves(first))
    sizes: dict[str, set[int]] = {}
    for _, of_other, tree in others:
        theirs = dict(leaves(tree))
        if of_other != method or theirs.keys() != mine.keys():
            continue
        for path, spec in mine.items():
            sizes.setdefault(path, set()).update(_differing(spec["shape"], theirs[path]["shape"]))
    if not any(sizes.values()):
        return None
    return mapped(first, lambda spec, path: {**spec, "grows": sorted(sizes[path])})


def _differing(shape: list[int], other: list[int]) -> set[int]:
    """Return the dimensions of different sizes; none where one is empty, as there is nothing that could be repeated."""
    if len(shape) != len(other):
        return set()
    return {dim for dim, (size, size_there) in enumerate(zip(shape, other, strict=True)) if size != size_there and size}
