"""The old release's outputs in a bundle: one line per call, tensors in one file, equal bytes stored once.

    {"run": "golden", "index": 0, "set": "example", "call": 0, "tree": [...],
     "effects": {"changed": {"input[0]": [...]}, "shared": [["input[0]", "output"]]}}

``run`` is one of ``RUNS``; trees are those of ``harness/worker/wire.py``. ``effects`` is left out where nobody looked.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.models.old_outputs import Remembered
from harness.store import codec
from harness.tensors.decode import Buffer, DecodeError, plain_number, verify
from harness.tensors.outputs import CallKey, Outputs, SideEffects
from harness.tensors.recorded import bytes_of
from harness.tensors.trees import PLAIN_KINDS, Tree, walk_trees
from harness.worker import wire

GOLDEN, REPEAT, THREADS, REFERENCE = RUNS = ("golden", "repeat", "threads", "reference")
DEEPEST = 100
"""Values within values; TorchScript's types are finite, and real outputs have a handful."""
MOST_TIMES = 512
"""Equal bytes are kept once; so many runs and calls may point to the same."""

Spec = dict[str, Any]


def lines_of(remembered: Remembered, add: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the lines of ``remembered``; ``add`` keeps the bytes of a tensor and returns where they lie."""
    for run, index, outputs in _runs(remembered):
        for key, tree in outputs.calls.items():
            line = {"run": run, "index": index, "set": key[0], "call": key[1], "tree": _moved(tree, outputs, add)}
            if outputs.effects is not None:
                effects = outputs.effects[key]
                changed = {path: _moved(value, outputs, add) for path, value in effects.changed.items()}
                line["effects"] = {"changed": changed, "shared": effects.shared}
            yield codec.canonical(line) + b"\n"


def read_remembered(folder: Path) -> Remembered:
    """Return what the files in ``folder`` hold; every tensor can be decoded and has the digest that it says.

    Raises:
        DecodeError: they hold something else.
    """
    buffer = bytes_of(folder / wire.TENSORS_BIN)
    found: dict[tuple[str, int], tuple[dict[CallKey, Tree], dict[CallKey, SideEffects]]] = {}
    digests = _Digests(buffer)

    def checked_spec(spec: Spec) -> Spec:
        check_spec(spec, buffer)
        digests.check(spec)
        return spec

    def checked(tree: Tree) -> Tree:
        tree = mapped(tree, checked_spec)
        walk_trees(tree, tree)  # whatever comparing may raise, it raises here
        return tree

    for number, line in enumerate(_lines(folder / wire.TENSORS_INDEX), start=1):
        try:
            calls, effects = found.setdefault((line.run, line.index), ({}, {}))
            key = (line.set, line.call)
            if line.run not in RUNS or key in calls:
                raise DecodeError(f"{line.run!a:.50} has call {line.call} of {line.set!a:.50} already, or is no run")
            calls[key] = checked(line.tree)
            if line.effects is not None:
                changed = {path: checked(tree) for path, tree in line.effects.changed.items()}
                effects[key] = SideEffects(changed=changed, shared=line.effects.shared)
        except (DecodeError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise DecodeError(f"line {number}: {error}") from None
    outputs = {
        run: Outputs(calls=calls, buffer=buffer, effects=effects if len(effects) == len(calls) else None)
        for run, (calls, effects) in sorted(found.items())
    }
    if (GOLDEN, 0) not in outputs:
        raise DecodeError("no golden outputs")
    return Remembered(
        golden=outputs[GOLDEN, 0],
        repeats=tuple(value for (run, _), value in outputs.items() if run == REPEAT),
        other_threads=tuple(value for (run, _), value in outputs.items() if run == THREADS),
        reference=outputs.get((REFERENCE, 0)),
    )


def calls_made(outputs: Outputs) -> Counter[str]:
    """Return how many calls each input set has."""
    return Counter(input_set for input_set, _ in outputs.calls)


def mapped(tree: Tree, function: Callable[[Spec], Spec], depth: int = 0) -> Tree:
    """Return ``tree`` with ``function`` of every tensor's spec in its place.

    Raises:
        DecodeError: it is no tree, or deeper than any real one.
    """
    if depth > DEEPEST:
        raise DecodeError(f"values within values, more than {DEEPEST} of them")
    if not isinstance(tree, list) or len(tree) != 2:
        raise DecodeError("not a tree of values")
    kind, content = tree

    def each(items: Any) -> list[Any]:
        return [mapped(item, function, depth + 1) for item in items]

    if kind == "tensor" and isinstance(content, dict):
        return [kind, function(content)]
    if kind in ("tuple", "list") and isinstance(content, list):
        return [kind, each(content)]
    if kind == "dict" and isinstance(content, list):
        return [kind, [each((key, item)) for key, item in content]]
    if kind == "namedtuple" and isinstance(content, list):
        name, fields = content
        return [kind, [str(name), [[str(field), *each((item,))] for field, item in fields]]]
    if kind in ("float", "complex"):
        plain_number(kind, content)
        return tree
    if kind in PLAIN_KINDS and (content is None or isinstance(content, bool | int | str)):
        return tree
    raise DecodeError(f"{kind!a:.50} is no kind of value")


class _Effects(msgspec.Struct):
    changed: dict[str, Any] = {}
    shared: tuple[tuple[str, ...], ...] = ()


class _Line(msgspec.Struct):
    run: str
    index: int
    set: str
    call: int
    tree: Any
    effects: _Effects | None = None


def _runs(remembered: Remembered) -> Iterator[tuple[str, int, Outputs]]:
    reference = () if remembered.reference is None else (remembered.reference,)
    kinds: Iterable[tuple[str, tuple[Outputs, ...]]] = (
        (GOLDEN, (remembered.golden,)),
        (REPEAT, remembered.repeats),
        (THREADS, remembered.other_threads),
        (REFERENCE, reference),
    )
    for run, many in kinds:
        yield from ((run, index, outputs) for index, outputs in enumerate(many))


def _moved(tree: Tree, outputs: Outputs, add: Callable[[bytes], int]) -> Tree:
    def moved(spec: Spec) -> Spec:
        data = bytes(memoryview(outputs.buffer)[spec["offset"] : spec["offset"] + spec["nbytes"]])
        return {**spec, "offset": add(data), "sha256": hashlib.sha256(data).hexdigest()}

    return mapped(tree, moved)


def check_spec(spec: Spec, buffer: Buffer) -> None:
    """Raise ``DecodeError`` unless ``spec`` is of a whole tensor that can be decoded and compared."""
    if "full" in spec or "plain" in spec:
        raise DecodeError("only whole tensors are recorded")
    stride = spec.get("stride", [])
    if not isinstance(stride, list) or not all(type(step) is int for step in stride):
        raise DecodeError("a stride is a list of numbers")
    if not all(isinstance(spec.get(name, ""), str) for name in ("device", "layout", "sha256")):
        raise DecodeError("a tensor's device, layout and digest are texts")
    verify(spec, buffer)


class _Digests:
    """Checks every place of the buffer once: tensors that lie over each other would be hashed without end."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        with memoryview(buffer) as view:
            self._left = view.nbytes
        self._named_left = MOST_TIMES * self._left
        self._known: set[tuple[int, int, str]] = set()

    def check(self, spec: Spec) -> None:
        self._named_left -= spec["nbytes"]
        if self._named_left < 0:
            raise DecodeError(f"its tensors are more than {MOST_TIMES} times what its file holds")
        offset, nbytes, sha256 = place = (spec["offset"], spec["nbytes"], spec.get("sha256", ""))
        if place in self._known:
            return
        self._left -= nbytes
        if self._left < 0:
            raise DecodeError("its tensors lie over each other")
        with memoryview(self._buffer) as view, view[offset : offset + nbytes] as data:
            if hashlib.sha256(data).hexdigest() != sha256:
                raise DecodeError("a tensor is not what its digest promises")
        self._known.add(place)


def _lines(path: Path) -> Iterator[_Line]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield msgspec.json.decode(line, type=_Line)
            except (msgspec.DecodeError, RecursionError, ValueError) as error:
                raise DecodeError(f"line {number}: {str(error)[:200]}") from None
