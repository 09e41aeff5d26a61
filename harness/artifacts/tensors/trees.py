"""Walks two wire trees in step: finds what differs in shape, and which leaves can be compared as numbers."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness.artifacts.tensors.decode import DecodeError, Spec, element_count, plain_number
from harness.core.comparison import TreeDifference

Tree: TypeAlias = Any  # [kind, value], see docs/formats/wire.md

PLAIN_KINDS = ("none", "bool", "int", "str", "device", "object")
LONGEST_TEXT = 200
# How deep values may nest; real outputs have a handful of levels.
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class LeafPair:
    """Two leaves of equal shape; the specs are tensors' or those of plain floats and complex numbers."""

    path: str
    expected: Spec
    actual: Spec


@dataclass(frozen=True, slots=True)
class TreeWalk:
    """What a walk over two trees found.

    Attributes:
        differences: in the order of the expected tree.
        pairs: leaves that can be compared as numbers; also where dtype or device differ.
        stride_changes: one line per tensor whose strides changed and whose shape did not.
        opaque: paths of values of which the wire carries nothing but the type's name.
    """

    differences: list[TreeDifference] = field(default_factory=list)
    pairs: list[LeafPair] = field(default_factory=list)
    stride_changes: list[str] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)

    def differ(self, path: str, expected: object, actual: object, kind: str = "structure") -> None:
        self.differences.append(
            TreeDifference(path=path, kind=kind, expected=_shorten(expected), actual=_shorten(actual))
        )


def walk_trees(expected: Tree, actual: Tree, path: str = "output") -> TreeWalk:
    """Return every difference of structure, and every pair of leaves that can be compared.

    Sequences pair by index and report another length once; the common part is still compared. Dicts pair by key,
    whatever the order (as ``==`` does); named tuples by field, and there the order counts. ``1`` is not ``True`` and
    not ``1.0``. Raises ``DecodeError``: a tree is not what ``docs/formats/wire.md`` describes.
    """
    walk = TreeWalk()
    _walk(expected, actual, path, walk)
    return walk


def leaves(tree: Tree, path: str = "output") -> Iterator[tuple[str, Spec]]:
    """Yield (path, spec) of every tensor and plain float or complex number of one tree, depth first."""
    kind, value = _split(tree, path)
    if kind == "tensor":
        yield path, value
    elif kind in ("float", "complex"):
        yield path, plain_number(kind, value)
    else:
        for step, child in children(kind, value, path):
            yield from leaves(child, path + step)


def every_path(tree: Tree, path: str = "output") -> Iterator[str]:
    """Yield the paths of all nodes of a tree, containers before what they hold."""
    yield path
    kind, value = _split(tree, path)
    if kind not in (*PLAIN_KINDS, "tensor", "float", "complex"):
        for step, child in children(kind, value, path):
            yield from every_path(child, path + step)


def mapped(
    tree: Tree, function: Callable[[Any, str], Any], path: str = "output", *, with_keys: bool = False, depth: int = 0
) -> Tree:
    """Return ``tree`` with ``function`` of the spec and the path of every tensor in its place.

    ``with_keys``: whether also of tensors that are keys of dicts, with the path of the dict. Raises ``DecodeError``: it
    is no tree, or deeper than any real one.
    """
    if depth > DEEPEST:
        raise DecodeError(f"values within values, more than {DEEPEST} of them")
    kind, content = _split(tree, path)
    if kind == "tensor" and isinstance(content, dict):
        return [kind, function(content, path)]
    if kind in ("float", "complex"):
        plain_number(kind, content)
        return tree
    if kind in PLAIN_KINDS:
        if not (content is None or isinstance(content, bool | int | str)):
            raise DecodeError(f"{path}: not a value of kind {kind!r}: {_shorten(repr(content))}")
        return tree

    def below(item: Tree, place: str) -> Tree:
        return mapped(item, function, place, with_keys=with_keys, depth=depth + 1)

    items = [below(item, path + step) for step, item in children(kind, content, path)]
    if kind in ("tuple", "list"):
        return [kind, items]
    keys = [key for key, _ in (content if kind == "dict" else content[1])]
    if kind == "dict" and with_keys:
        keys = [below(key, path) for key in keys]
    named = [list(entry) for entry in zip(keys, items, strict=True)]
    return [kind, named if kind == "dict" else [content[0], named]]


def path_text(path: Sequence[Any]) -> str:
    """Return a path of the wire, ``["output", 1, ["str", "x"]]``, as text. Raises ``DecodeError``: it is none."""
    if not path or not isinstance(path[0], str):
        raise DecodeError(f"not a path: {_shorten(repr(path))}")
    text = str(path[0])
    for step in path[1:]:
        if isinstance(step, str):
            text += f".{step}"
        else:
            text += f"[{step}]" if type(step) is int else f"[{_key_text(step, text)}]"
    return text


def _walk(expected: Tree, actual: Tree, path: str, walk: TreeWalk) -> None:
    kind, value = _split(expected, path)
    actual_kind, actual_value = _split(actual, path)
    if kind != actual_kind:
        walk.differ(path, _describe(kind, value), _describe(actual_kind, actual_value))
    elif kind == "tensor":
        _walk_tensors(value, actual_value, path, walk)
    elif kind in ("float", "complex"):
        walk.pairs.append(LeafPair(path, plain_number(kind, value), plain_number(kind, actual_value)))
    elif kind in PLAIN_KINDS:
        if value != actual_value:
            walk.differ(path, _describe(kind, value), _describe(kind, actual_value))
        if kind == "object":
            walk.opaque.append(path)
    else:
        _walk_containers(kind, value, actual_value, path, walk)


def _walk_containers(kind: str, expected: Any, actual: Any, path: str, walk: TreeWalk) -> None:
    ours = dict(children(kind, expected, path))
    theirs = dict(children(kind, actual, path))
    if kind in ("tuple", "list"):
        if len(ours) != len(theirs):
            walk.differ(path, f"{kind} of length {len(ours)}", f"{kind} of length {len(theirs)}")
    else:
        if kind == "namedtuple":
            _walk_fields(expected, actual, path, walk)
        for step in (step for step in ours if step not in theirs):
            walk.differ(path + step, "present", "missing")
        for step in (step for step in theirs if step not in ours):
            walk.differ(path + step, "absent", "extra")
    for step, child in ours.items():
        if step in theirs:
            _walk(child, theirs[step], path + step, walk)


def _walk_fields(expected: Any, actual: Any, path: str, walk: TreeWalk) -> None:
    (name, fields), (actual_name, actual_fields) = expected, actual
    if name != actual_name:
        walk.differ(path, f"namedtuple {name}", f"namedtuple {actual_name}")
    order = [field_name for field_name, _ in fields]
    actual_order = [field_name for field_name, _ in actual_fields]
    if order != actual_order and sorted(order) == sorted(actual_order):
        walk.differ(path, f"fields {', '.join(order)}", f"fields {', '.join(actual_order)}")


def _walk_tensors(expected: Spec, actual: Spec, path: str, walk: TreeWalk) -> None:
    try:
        shape, actual_shape = tuple(expected["shape"]), tuple(actual["shape"])
        dtype, actual_dtype = expected["dtype"], actual["dtype"]
    except (KeyError, TypeError) as error:
        raise DecodeError(f"{path}: damaged tensor spec: {error!r}") from None
    if dtype != actual_dtype:
        walk.differ(path, dtype, actual_dtype, kind="dtype")
    elif _scheme(expected) != _scheme(actual):
        walk.differ(path, f"{dtype} {_scheme(expected)}", f"{dtype} {_scheme(actual)}", kind="dtype")
    for aspect, default in (("device", ""), ("layout", "strided")):
        ours, theirs = expected.get(aspect, default), actual.get(aspect, default)
        # A record made before the worker wrote the device says nothing about it.
        if ours != theirs and ours and theirs:
            walk.differ(path, f"{aspect} {ours}", f"{aspect} {theirs}")
    if shape != actual_shape:
        walk.differ(path, f"shape {shape}", f"shape {actual_shape}")
        return
    ours, theirs = _telling_strides(expected), _telling_strides(actual)
    if ours != theirs and ours is not None and theirs is not None:
        walk.stride_changes.append(f"{path}: stride {tuple(expected['stride'])} -> {tuple(actual['stride'])}")
    walk.pairs.append(LeafPair(path, expected, actual))


def _telling_strides(spec: Spec) -> list[int] | None:
    """Return the strides that address different elements; those of axes of size 1 are arbitrary."""
    if "stride" not in spec or element_count(spec) == 0:
        return None
    strides: Sequence[int] = spec["stride"]
    return [stride for stride, size in zip(strides, spec["shape"], strict=True) if size > 1]


def _scheme(spec: Spec) -> str:
    quantizer = spec.get("quantizer")
    if quantizer is None:
        return "not quantized"
    return f"per channel of axis {quantizer['axis']}" if "axis" in quantizer else "per tensor"


def children(kind: str, value: Any, path: str) -> Iterator[tuple[str, Tree]]:
    """Yield (step of the path, subtree) of a container; steps are unique, also for equal tensors as keys."""
    match kind, value:
        case "tuple" | "list", [*items]:
            yield from ((f"[{index}]", item) for index, item in enumerate(items))
        case "namedtuple", [str(), [*fields]]:
            yield from ((f".{name}", item) for name, item in (_split(entry, path) for entry in fields))
        case "dict", [*entries]:
            seen: dict[str, int] = {}
            for key, item in (_pair(entry, path) for entry in entries):
                step = f"[{_key_text(key, path)}]"
                seen[step] = seen.get(step, 0) + 1
                yield step if seen[step] == 1 else f"{step}#{seen[step]}", item
        case _:
            if kind not in PLAIN_KINDS:
                raise DecodeError(f"{path}: not a value of kind {kind!r}: {_shorten(repr(value))}")


def _key_text(key: Tree, path: str) -> str:
    kind, value = _split(key, path)
    if kind in ("str", "int", "bool"):
        return repr(value)
    if kind == "float":
        return str(value)
    if kind == "tensor":
        return f"tensor {value.get('sha256', '')[:12]}"
    return json.dumps(key, sort_keys=True)


def _split(tree: Tree, path: str) -> tuple[str, Any]:
    kind, value = _pair(tree, path)
    if not isinstance(kind, str):
        raise DecodeError(f"{path}: not a name: {_shorten(repr(kind))}")
    return kind, value


def _pair(entry: Any, path: str) -> tuple[Any, Any]:
    if not isinstance(entry, list | tuple) or len(entry) != 2:  # not a pair
        raise DecodeError(f"{path}: not a pair: {_shorten(repr(entry))}")
    return entry[0], entry[1]


def _describe(kind: str, value: Any) -> str:
    if kind == "none":
        return "None"
    if kind == "tensor":
        return f"tensor {value.get('dtype')} {tuple(value.get('shape', ()))}"
    if kind in ("tuple", "list", "dict"):
        return f"{kind} of length {len(value)}"
    if kind == "namedtuple":
        return f"namedtuple {value[0]}"
    return f"{kind} {value!r}"


def _shorten(text: object) -> str:
    whole = str(text)
    return whole if len(whole) <= LONGEST_TEXT else whole[: LONGEST_TEXT - 1] + "…"
