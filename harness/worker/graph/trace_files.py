"""The record of a call that was made node by node: written by one process, followed by another.

Lines of ``trace/tensors.jsonl``; the bytes of their tensors lie in ``trace/tensors.bin``:

    {"block": address, "keys": [[kind, attribute, source], ...]}      the nodes of a block, before it is first entered
    {"place", "begin": true, "kind", "schema", "source", "code", "module", "tree"}      a node begins, with its inputs
    {"place", "begin": false, "tree"}      it has ended, with its outputs; or "error": what it raised
    {"place", "choice"}      which branch is taken (If), or whether there is another turn (Loop)

A begin may hold "generator" (the state of torch's generator, for operators that draw), "unaligned": true (a node that
the other release has not) and "unchecked": why it did not get the other release's inputs.
"""

import json
import mmap
import os

import torch

from gate_worker import wire
from gate_worker.values import recorded, trees


class TraceTooLong(BaseException):
    """The call runs more nodes than may be described. No error of a node, after which a trace may go on."""


class TraceWriter(trees.TensorWriter):
    """Writes lines; a tensor beyond the limits is described, with its digest, and its bytes are left out."""

    def __init__(self, folder, tensor_bytes, total_bytes, index_bytes):
        super().__init__(folder)
        self._tensor_bytes = tensor_bytes
        self._left = total_bytes
        self._index_left = index_bytes
        self._stored = set()

    def line(self, **fields):
        """Append one line; raise ``TraceTooLong`` where there is no room for it."""
        line = json.dumps(fields, separators=(",", ":")) + "\n"
        self._index_left -= len(line)
        if self._index_left < 0:
            raise TraceTooLong("its nodes take more than may be recorded, and it goes on")
        self._index.write(line)
        self._index.flush()

    def _store(self, data, digest):
        """Return where the bytes lie; None where they are left out."""
        if digest not in self._stored:
            if len(data) > min(self._tensor_bytes, self._left):
                return None
            self._stored.add(digest)
            self._left -= len(data)
        return super()._store(data, digest)


class TraceReader(trees.TensorReader):
    """Reads what a ``TraceWriter`` wrote, as it is needed."""

    def __init__(self, folder, device):
        self.torch, self.device = torch, device
        path = os.path.join(folder, wire.TENSORS_BIN)
        self._stream = open(path, "rb")
        empty = os.path.getsize(path) == 0
        self.data = b"" if empty else mmap.mmap(self._stream.fileno(), 0, access=mmap.ACCESS_READ)
        lines = self.index(folder)
        self.begun = {tuple(line["place"]): line for line in lines if line.get("begin")}
        ended = [line for line in lines if line.get("begin") is False and "error" not in line]
        self.ended = {tuple(line["place"]): line["tree"][1] for line in ended}
        self.choices = {tuple(line["place"]): line["choice"] for line in lines if "choice" in line}
        self.keys = {tuple(line["block"]): line["keys"] for line in lines if "block" in line}


def is_live(tree):
    """Return whether a value, or a part of it, has no value on the wire: a module, an object."""
    return any(kind == "object" for kind, _ in leaves(tree))


def is_kept(tree):
    return all(content["offset"] is not None for kind, content in leaves(tree) if kind == "tensor")


def leaves(tree):
    """Return (kind, content) of each leaf."""
    pairs = []
    recorded.rebuilt(tree, lambda *leaf: pairs.append(leaf))
    return pairs


def same(mine, theirs):
    """Return whether two trees are the same value, to the last bit and stride, wherever their bytes lie."""
    return without_offsets(mine) == without_offsets(theirs)


def without_offsets(tree):
    return recorded.rebuilt(tree, lambda kind, spec: [kind, dict(spec, offset=0) if kind == "tensor" else spec])
