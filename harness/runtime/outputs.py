"""Reads what a worker recorded: trees by (input set, call), bytes mapped into memory."""

import json
import mmap
from pathlib import Path

from harness.numerics.outputs import Outputs, side_effects
from harness.worker import wire

# A mapping holds a descriptor for the whole run, and there may be hundreds of models; only large files are mapped.
IN_MEMORY_BYTES = 4 * 1024 * 1024


def read_outputs(directory: str | Path, model: str, *, folder: str = wire.OUTPUTS) -> Outputs:
    """Return the outputs of ``model`` in a probe's directory; empty where it recorded none."""
    root = Path(directory) / folder
    calls, effects = {}, {}
    try:
        with (root / wire.TENSORS_INDEX).open(encoding="utf-8") as stream:
            for line in stream:
                if not line.endswith("\n"):
                    break  # torn by the end of the process: that call has no output
                entry = json.loads(line)
                if entry["model"] == model:
                    key = (entry["set"], int(entry["call"]))
                    calls[key] = entry["tree"]
                    effects[key] = side_effects(entry)
        return Outputs(calls=calls, buffer=bytes_of(root / wire.TENSORS_BIN), effects=effects)
    except FileNotFoundError:
        return Outputs(calls={}, buffer=b"")


def bytes_of(path: Path) -> bytes | mmap.mmap:
    """Return the content of a file of the run, mapped where it is large."""
    if path.stat().st_size <= IN_MEMORY_BYTES:
        return path.read_bytes()
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
