"""Which sizes and values requests vary or could, and which of these an exported program takes in part. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.trees import PLAIN_KINDS, Tree, children, mapped, path_text
from harness.checks.migration.facts import Tried
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


def sizes_of(tried: Tried) -> dict[str, Sequence[int | None] | None]:
    """Return ``taken`` of what was converted; empty where nothing was, or where a hostile artifact wrote the mark."""
    try:
        return taken(tried.mark("converted").get("dimensions", ()))
    except (DecodeError, TypeError, ValueError):
        return {}


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
        elif isinstance(own, str) and sizes is None:
            asked_values = {other for other in others if isinstance(other, str) and other != own}
            if asked_values:
                fixed.append(Dimension(argument=path, axis=None, taken=own, asked=tuple(sorted(asked_values))))
    return tuple(fixed)


def batches(example: str, requests: Mapping[str, Tree]) -> Iterator[frozenset[tuple[str, int]]]:
    """Yield which dimensions may be the batch's, the likelier ones first; none where requests vary its size.

    The batch is the first size of the first tensor that has one. Who else has it, a tree does not say: first sizes
    that equal it, or all of them, as in the state of a recurrent network.
    """
    sizes = [_sizes(dict(leaves_of(tree))) for tree in (requests[example], *requests.values())]
    place = next((place for place in sizes[0] if place[1] == 0), None)
    if place is None or not sizes[0][place] or any(shapes.get(place) != sizes[0][place] for shapes in sizes):
        return
    alike = [other for other, size in sizes[0].items() if size == sizes[0][place]]
    yield from dict.fromkeys((frozenset(other for other in alike if other[1] == 0), frozenset(alike)))


def larger(request: Tree, places: Collection[tuple[str, int]]) -> Tree:
    """Return the request as a worker takes it that makes it larger in these dimensions (path, axis)."""
    return mapped(
        request,
        lambda spec, path: {**spec, "grows": [axis for other, axis in sorted(places) if other == path]},
        "input",
    )


def held(
    program: Mapping[str, Sequence[int | None] | None], request: Tree, places: Collection[tuple[str, int]]
) -> tuple[Dimension, ...]:
    """Return the dimensions among ``places`` that the program holds constant, each with one more as the other size."""
    return tuple(
        Dimension(argument=path, axis=axis, taken=str(size), asked=(str(size + 1),))
        for (path, axis), size in _sizes(dict(leaves_of(request))).items()
        if (path, axis) in places and (program.get(path) or {axis: None})[axis] is not None
    )


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
