"""Which sizes and values requests vary, and which of these an exported program takes in part. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.trees import PLAIN_KINDS, Tree, children, path_text
from harness.core.migration import Dimension

Leaf = tuple[int, ...] | str
"""The shape of a tensor, or a plain value in words."""


def leaves_of(tree: Tree, path: str = "input") -> Iterator[tuple[str, Leaf]]:
    """Yield the path of every tensor and every plain value of a request, and its shape or value."""
    kind, value = tree
    if kind == "tensor":
        yield path, tuple(value["shape"])
    elif kind in (*PLAIN_KINDS, "float", "complex"):
        yield path, f"{value}"
    else:
        for step, child in children(kind, value, path):
            yield from leaves_of(child, path + step)


def best_example(requests: Mapping[str, Tree]) -> str:
    """Return the input set with the fewest sizes of 0 or 1 among varied ones: constants to torch.export."""
    shapes = {name: dict(leaves_of(tree)) for name, tree in requests.items()}
    sizes = {name: _sizes(leaves) for name, leaves in shapes.items()}
    varied = {
        place
        for shapes in sizes.values()
        for place in shapes
        if len({other.get(place) for other in sizes.values()}) > 1
    }
    return min(sizes, key=lambda name: sum(sizes[name].get(place, 0) < 2 for place in varied))


def _sizes(leaves: Mapping[str, Leaf]) -> dict[tuple[str, int], int]:
    return {
        (path, axis): size
        for path, leaf in leaves.items()
        if not isinstance(leaf, str)
        for axis, size in enumerate(leaf)
    }


def taken(mark: Sequence[Any]) -> dict[str, Sequence[int | None] | None]:
    """Return path -> sizes that a program takes, from the mark ``converted``. Raises ``DecodeError``: no path."""
    free: dict[str, Sequence[int | None] | None] = {}
    for path, sizes in mark:
        if not isinstance(path, list | tuple):
            raise DecodeError(f"not a path: {path!r:.100}")
        free[path_text(path)] = sizes
    return free


def fixed_dimensions(
    program: Mapping[str, Sequence[int | None] | None], example: str, requests: Mapping[str, Tree]
) -> tuple[Dimension, ...]:
    """Return the sizes and values that the program (see ``taken``) holds constant and that requests vary."""
    leaves = {name: dict(leaves_of(tree)) for name, tree in requests.items()}
    fixed = []
    for path, sizes in program.items():
        own = leaves[example].get(path)
        others = [shapes[path] for name, shapes in leaves.items() if name != example and path in shapes]
        if isinstance(own, tuple) and sizes is not None:
            for axis, size in enumerate(sizes):
                varied = {other[axis] for other in others if isinstance(other, tuple) and len(other) == len(own)}
                if size is not None and varied - {size}:
                    words = tuple(map(str, sorted(varied - {size})))
                    fixed.append(Dimension(argument=path, axis=axis, taken=str(size), asked=words))
        elif isinstance(own, str):
            asked_values = {other for other in others if isinstance(other, str) and other != own}
            if asked_values:
                fixed.append(Dimension(argument=path, axis=None, taken=own, asked=tuple(sorted(asked_values))))
    return tuple(fixed)


def varies(request: Tree, fixed: Sequence[Dimension]) -> bool:
    leaves = dict(leaves_of(request))

    def own(dimension: Dimension) -> str:
        leaf = leaves.get(dimension.argument, dimension.taken)
        if isinstance(leaf, str):
            return leaf
        return (
            str(leaf[dimension.axis]) if dimension.axis is not None and dimension.axis < len(leaf) else dimension.taken
        )

    return any(own(dimension) != dimension.taken for dimension in fixed)


def differing(example: Tree, other: Tree) -> tuple[Dimension, ...]:
    ours, theirs = _sizes(dict(leaves_of(example))), _sizes(dict(leaves_of(other)))
    return tuple(
        Dimension(argument=path, axis=axis, taken=str(size), asked=(str(theirs[path, axis]),))
        for (path, axis), size in ours.items()
        if theirs.get((path, axis), size) != size
    )
