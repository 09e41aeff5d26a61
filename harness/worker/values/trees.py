"""Values to wire trees and back. Raw little-endian bytes, so every dtype is bit-exact and NumPy is not needed."""

import ctypes
import fcntl
import hashlib
import json
import os
import threading
from contextlib import contextmanager

import torch

from gate_worker import wire
from gate_worker.values import recorded


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def mapped(value, function):
    """Return ``value`` with ``function`` of each tensor in it."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[mapped(item, function) for item in value])
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(item, function) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return value


def to_device(value, device):
    return mapped(value, lambda tensor: tensor.to(device))


class Trees:
    def tree(self, value):
        if isinstance(value, torch.Tensor):
            return ["tensor", self._tensor(value)]
        if value is None:
            return ["none", None]
        if isinstance(value, bool):
            return ["bool", value]
        if isinstance(value, int):
            return ["int", value]
        if isinstance(value, float):
            return ["float", repr(value)]
        if isinstance(value, complex):
            return ["complex", [repr(value.real), repr(value.imag)]]
        if isinstance(value, str):
            return ["str", value]
        if isinstance(value, torch.device):
            return ["device", str(value)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = [[name, self.tree(getattr(value, name))] for name in value._fields]
            return ["namedtuple", [type(value).__name__, fields]]
        if isinstance(value, (tuple, list)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return [kind, [self.tree(item) for item in value]]
        if isinstance(value, dict):
            return ["dict", [[self.tree(key), self.tree(item)] for key, item in value.items()]]
        return ["object", type(value).__name__]

    def _tensor(self, tensor):
        tensor = tensor.detach()
        spec = {"dtype": dtype_name(tensor.dtype), "shape": list(tensor.shape)}
        if tensor.layout == torch.strided:
            spec["stride"] = list(tensor.stride())
        else:
            spec["layout"] = str(tensor.layout).replace("torch.", "")
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            spec["quantizer"] = quantizer_of(tensor)
            tensor = tensor.int_repr()
        spec["device"] = tensor.device.type
        data = raw_bytes(tensor)
        digest = hashlib.sha256(data).hexdigest()
        spec.update({"offset": self._store(data, digest), "nbytes": len(data), "sha256": digest})
        return spec

    def _store(self, data, digest):
        """Return where the bytes of a tensor lie; nowhere, unless a subclass keeps them."""
        del data, digest
        return 0


def described(value):
    """Return a tree of ``value`` without offsets into a file: two are equal when the values are, to the last bit."""
    return Trees().tree(value)


class TooLarge(Exception):
    """A value is too large to be described in a line of the index."""


def require_small(value, what):
    """Raise ``TooLarge`` where ``value`` holds more leaves or longer texts than a line of the index may have."""
    leaves = texts = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        parts = ()
        if isinstance(item, dict):
            parts = (item.keys(), item.values())
        elif isinstance(item, (tuple, list)):
            parts = (item,)
        else:
            leaves += 1
            texts += len(item) if isinstance(item, str) else 0
        if leaves + len(waiting) + sum(map(len, parts)) > wire.MOST_VALUES:
            raise TooLarge("%s more than %d values, which are not compared" % (what, wire.MOST_VALUES))
        if texts > wire.LONGEST_LINE_BYTES:
            raise TooLarge(too_long(what))
        for part in parts:
            waiting.extend(part)


def too_long(what):
    return "%s what takes more than %d MiB to describe, which is not compared" % (what, wire.LONGEST_LINE_BYTES >> 20)


class TensorWriter(Trees):
    """Appends call outputs to a folder: trees to ``tensors.jsonl``, bytes to ``tensors.bin``.

    Equal bytes are stored once: the outputs of calls 0, 1, 2, ... are mostly the same. Processes that are forked later
    may append as well.
    """

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self._bin = open(os.path.join(folder, wire.TENSORS_BIN), "wb", buffering=0)
        self._index = open(os.path.join(folder, wire.TENSORS_INDEX), "w", encoding="utf-8")
        self._known = {}
        self._lock = threading.Lock()

    def write(self, value, changed=(), shared=(), **key):
        """Append one value under ``key`` (``model``, ``set``, ``call``, and ``method`` for inputs).

        ``changed`` and ``shared`` are the side effects of the call (see ``side_effects``), left out where empty.
        Raises ``TooLarge`` where the controller would need much memory for it.
        """
        what = "answers with" if "call" in key else "a request has"
        require_small(value, what)
        key["tree"] = self.tree(value)
        if changed:
            key["changed"] = [[path, self.tree(tensor)] for path, tensor in changed]
        if shared:
            key["shared"] = shared
        line = json.dumps(key, separators=(",", ":")) + "\n"
        if len(line) > wire.LONGEST_LINE_BYTES:
            raise TooLarge(too_long(what))
        with self._alone():
            self._index.write(line)
            self._index.flush()

    def _store(self, data, digest):
        with self._alone():
            offset = self._known.get(digest)
            if offset is None:
                offset = self._known[digest] = self._bin.tell()
                self._bin.write(data)
        return offset

    @contextmanager
    def _alone(self):
        """Keep other threads out, and forked processes: they share the positions in the files."""
        with self._lock:
            fcntl.lockf(self._bin, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._bin, fcntl.LOCK_UN)


def quantizer_of(tensor):
    if tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        return {
            "scales": tensor.q_per_channel_scales().tolist(),
            "zero_points": tensor.q_per_channel_zero_points().tolist(),
            "axis": tensor.q_per_channel_axis(),
        }
    return {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}


def raw_bytes(tensor):
    """Return the tensor's elements in row-major order, whatever its strides, conjugation or device."""
    tensor = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    nbytes = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), nbytes) if nbytes else b""


class TensorReader(recorded.RecordedValues):
    def __init__(self, folder, device):
        with open(os.path.join(folder, wire.TENSORS_BIN), "rb") as stream:
            super().__init__(torch, stream.read(), device)

    @staticmethod
    def index(folder):
        with open(os.path.join(folder, wire.TENSORS_INDEX), encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    def holds(self, spec, tensor):
        """Return whether ``tensor`` has the shape and the bytes that were recorded."""
        if list(tensor.shape) != spec["shape"]:
            return False
        stored = tensor.int_repr() if tensor.is_quantized else tensor
        return raw_bytes(stored) == self.bytes_of(spec)
