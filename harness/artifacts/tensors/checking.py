"""Trees that somebody else wrote, checked before anything reads or compares them."""

import hashlib
from collections.abc import Callable
from typing import Any

from harness.artifacts.tensors.decode import Buffer, DecodeError, verify
from harness.artifacts.tensors.trees import Tree, mapped, walk_trees

# How many runs and calls may point to the same bytes, which are stored once.
MOST_TIMES = 512

Spec = dict[str, Any]


def checked_tree(tree: Tree, check: Callable[[Spec], None]) -> Tree:
    """Return ``tree`` with all specs checked: reading and comparing will not raise. Raises ``DecodeError``."""

    def checked(spec: Spec, _path: str) -> Spec:
        check(spec)
        return spec

    tree = mapped(tree, checked, with_keys=True)
    walk_trees(tree, tree)  # whatever a comparison may raise is raised here
    return tree


def check_sample(spec: Spec, buffer: Buffer) -> None:
    """Raise ``DecodeError`` unless ``spec`` describes a tensor as ``check_spec`` wants it, or the sample of one."""
    full = spec.get("full")
    if full is not None:
        shape, step = full["shape"], full["step"]
        if not isinstance(shape, list) or type(step) is not int or step < 1 or not isinstance(full["sha256"], str):
            raise DecodeError("a sample has the shape, the digest and the step of its tensor")
    check_spec({name: value for name, value in spec.items() if name != "full"}, buffer)


def check_spec(spec: Spec, buffer: Buffer) -> None:
    """Raise ``DecodeError`` unless ``spec`` describes a whole tensor that can be decoded and compared."""
    if "full" in spec or "plain" in spec:
        raise DecodeError("only whole tensors are recorded")
    stride = spec.get("stride", [])
    if not isinstance(stride, list) or not all(type(step) is int for step in stride):
        raise DecodeError("a stride is a list of numbers")
    if not all(isinstance(spec.get(name, ""), str) for name in ("device", "layout", "sha256")):
        raise DecodeError("a tensor's device, layout and digest are texts")
    verify(spec, buffer)


class Digests:
    """Hashes every place of the buffer at most once: overlapping tensors could take forever."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        with memoryview(buffer) as view:
            self._left = view.nbytes
        self._named_left = MOST_TIMES * self._left
        self._known: set[tuple[int, int, str]] = set()

    def check(self, spec: Spec) -> None:
        """Raise ``DecodeError`` unless a tensor has the digest that its spec says, if it says one."""
        self._named_left -= spec["nbytes"]
        if self._named_left < 0:
            raise DecodeError(f"its tensors are more than {MOST_TIMES} times what its file holds")
        offset, nbytes, sha256 = place = (spec["offset"], spec["nbytes"], spec.get("sha256", ""))
        if not sha256 or place in self._known:
            return
        self._left -= nbytes
        if self._left < 0:
            raise DecodeError("its tensors lie over each other")
        with memoryview(self._buffer) as view, view[offset : offset + nbytes] as data:
            if hashlib.sha256(data).hexdigest() != sha256:
                raise DecodeError("a tensor is not what its digest promises")
        self._known.add(place)
