"""Reads what a worker recorded: trees by (input set, call), bytes mapped into memory."""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.artifacts.tensors.decode import Buffer, DecodeError
from harness.artifacts.tensors.outputs import Outputs, joined, side_effects
from harness.store import probe_files
from harness.store.json import DAMAGE, parsed
from harness.store.probe_files import IN_MEMORY_BYTES
from harness.worker import wire

BEGIN = re.compile(rb'\{"model": ?"([\w.#@+-]+)"')  # of a line, as workers write it


def read_outputs(directory: str | Path, model: str, *, folder: str = wire.OUTPUTS) -> Outputs:
    """Return the outputs of ``model`` in a probe's directory and its successors'. Raises ``DecodeError``."""
    probe = Path(directory)
    outputs, rest = _outputs(probe, model, folder), probe_files.rest_of(probe)
    return outputs if rest is None else joined(outputs, read_outputs(rest, model, folder=folder))


def _outputs(probe: Path, model: str, folder: str) -> Outputs:
    calls, effects = {}, {}
    size = 0
    try:
        with probe_files.opened(probe, f"{folder}/{wire.TENSORS_INDEX}") as stream:
            for number, line in enumerate(_lines(stream), start=1):
                # A process may have answered for many models, and the lines may be long.
                if (begin := BEGIN.match(line)) is not None and begin[1] != model.encode():
                    continue
                try:
                    entry = parsed(line.decode())
                    if entry["model"] != model:
                        continue
                    size += len(line)
                    if size > wire.MOST_INDEX_BYTES:
                        raise DecodeError(f"its answers take more than {wire.MOST_INDEX_BYTES >> 20} MiB to describe")
                    key = (_name(entry["set"]), int(entry["call"]))
                    calls[key] = entry["tree"]
                    effects[key] = side_effects(entry)
                except DAMAGE as error:
                    raise DecodeError(f"line {number} of {folder}/{wire.TENSORS_INDEX}: {_words(error)}") from None
        return Outputs(calls=calls, buffer=_numbers(probe, f"{folder}/{wire.TENSORS_BIN}"), effects=effects)
    except FileNotFoundError:
        return Outputs(calls={}, buffer=b"")
    except OSError as error:
        raise DecodeError(f"{folder} cannot be read: {error.strerror or error}") from None


@dataclass(frozen=True, kw_only=True)
class RecordedInputs:
    """Recorded inputs: (input set, method, tree of the arguments) each, and the bytes that the trees point into."""

    entries: tuple[tuple[str, str, Any], ...]
    buffer: Buffer


def read_inputs(folder: Path) -> RecordedInputs:
    """Return the inputs in an artifact's folder of inputs. Raises ``DecodeError``: the folder is damaged."""
    try:
        with (folder / wire.TENSORS_INDEX).open("rb") as stream:
            lines = [parsed(line.decode()) for line in _lines(stream, may_be_torn=False)]
        entries = tuple((_name(line["set"]), _name(line.get("method", "forward")), line["tree"]) for line in lines)
        return RecordedInputs(entries=entries, buffer=bytes_of(folder / wire.TENSORS_BIN))
    except (OSError, *DAMAGE) as error:
        raise DecodeError(f"the recorded requests cannot be read: {_words(error)}") from None


def _numbers(probe: Path, name: str) -> bytes | mmap.mmap:
    try:
        return bytes_of(probe / name)
    except FileNotFoundError:
        return probe_files.read(probe, name)


def bytes_of(path: Path) -> bytes | mmap.mmap:
    if path.stat().st_size <= IN_MEMORY_BYTES:
        return path.read_bytes()
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _lines(stream: BinaryIO, *, may_be_torn: bool = True) -> Iterator[bytes]:
    """Yield the lines; the last one, torn by the end of the process, is left out: that call has no output."""
    while line := stream.readline(wire.LONGEST_LINE_BYTES + 1):
        if len(line) > wire.LONGEST_LINE_BYTES:
            raise DecodeError(f"a line of {wire.TENSORS_INDEX} is longer than {wire.LONGEST_LINE_BYTES >> 20} MiB")
        if may_be_torn and not line.endswith(b"\n"):
            return
        yield line


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise DecodeError("the name of an input set or a method is a text")
    return value


def _words(error: BaseException) -> str:
    return str(error)[:200] or type(error).__name__
