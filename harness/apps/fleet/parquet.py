"""``fleet store export``: every kept result as a line of a Parquet file, for those who have a warehouse."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.apps.fleet.plan import STORE, PlannedFleet
from harness.apps.fleet.results import FleetResults
from harness.core.errors import ConfigError
from harness.core.fleet import FleetResult
from harness.machine.files import unwritable

TEXTS = (
    "key",
    "artifact",
    "status",
    "reason",
    "examination",
    "program",
    "weights",
    "requests",
    "old",
    "new",
    "device",
    "profile",
    "settings",
    "protocol",
    "outputs",
)
NUMBERS = ("seconds", "worst_relative", "load_old_s", "load_new_s", "latency", "latency_low", "latency_high")
"""Null where it was not measured; a latency is new over old."""
INSTALL = "pip install 'torchscript-gate[parquet]'"
AT_ONCE = 1000


def export(planned: PlannedFleet, file: Path) -> int:
    """Write the results of a fleet's folder, by key, and return how many these are.

    Raises ``ConfigError``: pyarrow is not installed; ``RunDirError``: the file cannot be written.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
        from pyarrow import parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("export needs pyarrow, which is not installed", INSTALL) from error
    fields = [*((name, pa.string()) for name in TEXTS), *((name, pa.float64()) for name in NUMBERS)]
    schema, written = pa.schema(fields), 0
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        results = FleetResults(planned.folder / STORE)
        with pq.ParquetWriter(part, schema) as writer:
            for lines in _in_parts(results):
                writer.write_table(pa.Table.from_pylist(lines, schema))
                written += len(lines)
        part.replace(file)
    except OSError as error:
        raise unwritable(f"{file} cannot be written", error, "free space, or name another file") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return written


def _in_parts(results: FleetResults) -> Iterator[list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []
    for key in sorted(results.keys()):
        result = results.read(key)
        if result is not None:
            lines.append(line_of(result))
        if len(lines) == AT_ONCE:
            yield lines
            lines = []
    if lines:
        yield lines


def line_of(result: FleetResult) -> dict[str, Any]:
    facts, content = result.facts, result.content
    timed = facts.latency.steady if facts.latency is not None else None
    load = facts.load_s or (None, None)
    return {
        **{name: content[name] for name in TEXTS if name in content},
        "key": result.key,
        "artifact": result.name,
        "status": result.row.status.value,
        "reason": result.row.reason,
        "examination": result.examination.value,
        "outputs": facts.outputs,
        "seconds": result.seconds,
        "worst_relative": facts.worst_relative,
        "load_old_s": load[0],
        "load_new_s": load[1],
        "latency": timed.ratio if timed is not None else None,
        "latency_low": timed.low if timed is not None else None,
        "latency_high": timed.high if timed is not None else None,
    }
