"""Reads what a trace recorded: the nodes in the order in which they ran, and what came out of each."""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.artifacts.tensors.checking import check_spec, checked_tree
from harness.artifacts.tensors.decode import Buffer
from harness.artifacts.tensors.outputs import Outputs
from harness.core.diagnosis import Place, TracedNode
from harness.store.json import DAMAGE, parsed
from harness.worker import wire

LONGEST_PLAIN = 40
MOST_ITEMS = 4


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One traced call.

    Attributes:
        nodes: by place, in the order in which they began; those around a block begin before those in it.
        outputs: one "call" per node that ended, under its place as text (see ``key``).
            Nodes whose outputs are too large to be kept are missing.
        inputs: the tree of each node's inputs; ``generators``: of the state of torch's generator, for those that draw.
        last: the innermost node in which the process ended, None where the trace is whole.
    """

    nodes: Mapping[Place, TracedNode] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=lambda: Outputs(calls={}))
    digests: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    inputs: Mapping[Place, Any] = field(default_factory=dict)
    generators: Mapping[Place, Any] = field(default_factory=dict)
    last: TracedNode | None = None
    index_bytes: int = 0


def key(place: Place) -> tuple[str, int]:
    return ".".join(map(str, place)), 0


def read_trace(directory: str | Path) -> Trace:
    """Return the trace in a probe's directory; empty where there is none, or where the model has damaged it."""
    folder = Path(directory) / wire.TRACE
    try:
        return _trace(folder, list(_lines(folder / wire.TENSORS_INDEX)), _mapped(folder / wire.TENSORS_BIN))
    except (FileNotFoundError, *DAMAGE):
        return Trace()


def _trace(folder: Path, lines: Sequence[Mapping[str, Any]], buffer: Buffer) -> Trace:
    def check(spec: dict[str, Any]) -> None:
        check_spec(spec, buffer)

    nodes: dict[Place, TracedNode] = {}
    ended: dict[tuple[str, int], Any] = {}
    digests: dict[Place, tuple[str, ...]] = {}
    inputs: dict[Place, Any] = {}
    generators: dict[Place, Any] = {}
    open_places: list[Place] = []
    for line in lines:
        if "begin" not in line:
            continue
        place = tuple(line["place"])
        if line["begin"]:
            nodes[place] = _node(place, line)
            inputs[place] = line["tree"]
            open_places.append(place)
            if "generator" in line:
                generators[place] = line["generator"]
            continue
        open_places.remove(place)
        if "error" in line:
            nodes[place] = replace(nodes[place], error=line["error"])
        else:
            digests[place] = tuple(spec["sha256"] for spec in tensors_in(line["tree"]))
            if is_kept(line["tree"]):
                ended[key(place)] = checked_tree(line["tree"], check)
    last = None
    for place in open_places:
        last = nodes[place] = replace(nodes[place], finished=False)
    return Trace(
        nodes=nodes,
        outputs=Outputs(calls=ended, buffer=buffer),
        digests=digests,
        inputs=inputs,
        generators=generators,
        last=last,
        index_bytes=(folder / wire.TENSORS_INDEX).stat().st_size,
    )


def tensors_in(tree: Any) -> Iterator[Mapping[str, Any]]:
    kind, content = tree
    if kind == "tensor":
        yield content
    elif kind in ("tuple", "list"):
        for item in content:
            yield from tensors_in(item)
    elif kind == "dict":
        for pair in content:
            for item in pair:
                yield from tensors_in(item)
    elif kind == "namedtuple":
        for _, item in content[1]:
            yield from tensors_in(item)


def is_kept(tree: Any) -> bool:
    """Whether the bytes of all tensors in a tree were kept."""
    return all(spec["offset"] is not None for spec in tensors_in(tree))


def shown(tree: Any) -> str:
    """Return a value in words: ``"float32[2, 16]"``, ``"3"``, ``"[float32[2], None]"``."""
    kind, content = tree
    if kind == "tensor":
        return f"{content['dtype']}{content['shape']}"
    if kind in ("tuple", "list"):
        more = ", ..." if len(content) > MOST_ITEMS else ""
        return f"[{', '.join(shown(item) for item in content[:MOST_ITEMS])}{more}]"
    if kind == "none":
        return "None"
    if kind in ("dict", "namedtuple"):
        return str(kind)
    return str(content)[:LONGEST_PLAIN]


def _node(place: Place, line: Mapping[str, Any]) -> TracedNode:
    return TracedNode(
        place=place,
        address=tuple(line["address"]),
        kind=line["kind"],
        schema=line["schema"],
        source=line["source"],
        code=line["code"],
        module=line["module"],
        inputs=tuple(shown(tree) for tree in line["tree"][1]),
        unaligned=bool(line.get("unaligned")),
        unchecked=line.get("unchecked", ""),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        for text in stream:
            if not text.endswith("\n"):
                return  # torn by the end of the process
            yield parsed(text)


def _mapped(path: Path) -> Buffer:
    if path.stat().st_size == 0:
        return b""
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
