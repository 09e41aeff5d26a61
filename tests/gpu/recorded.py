"""A GPU record: what it holds, what it does not show, the exit code that follows from its parts, and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from harness import __version__
from harness.core.devices import TABLE
from harness.core.machine import MachineCheck
from harness.core.outcome import Decision
from harness.core.report import SideReport
from harness.core.errors import ExitCode, RunDirError
from harness.report.json.text import json_text
from harness.store.json import JsonError, from_json
from harness.machine.typed import converted

SCHEMA_VERSION = 1
# What of several exit codes counts.
GRAVEST_FIRST = (
    ExitCode.INTERNAL,
    ExitCode.CONFIGURATION,
    ExitCode.ENVIRONMENT,
    ExitCode.INCOMPATIBLE,
    ExitCode.INCONCLUSIVE,
    ExitCode.COMPATIBLE,
)
JUDGED = (ExitCode.COMPATIBLE, ExitCode.INCOMPATIBLE, ExitCode.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPart:
    """One part of a GPU record: a run of ``compat``, or the rest of one.

    Attributes:
        arguments: what repeats it, after the program of the gate.
        run: folder of its run, relative to that of the record; empty: it left none.
        exit_code: of its end; None while it has none.
        why: why it has none, or what it said as it failed; else empty.
        wall_s: in all sessions.
        decision: of its report, as everything below; None: it has none, and only processes are known.
        models: status -> how many models.
        cells: scenario -> status -> how many cells.
        red: model, status and reason of every model that did not pass.
        planted: how many planted defects and twins came out as they should; ``missed``: names and notes of the others.
        timed: quantity of the benchmark -> of how many models it was measured.
        processes: outcome -> how many probes and processes of the benchmark that worked on models.
        contexts: how many of the device these have made, where that is dear.
        time_shares_s: see ``RunReport``.
    """

    name: str
    arguments: tuple[str, ...]
    run: str = ""
    exit_code: int | None = None
    why: str = ""
    wall_s: float = 0.0
    decision: Decision | None = None
    models: Mapping[str, int] = field(default_factory=dict)
    cells: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    red: tuple[tuple[str, str, str], ...] = ()
    planted: int = 0
    missed: tuple[tuple[str, str], ...] = ()
    timed: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, int] = field(default_factory=dict)
    contexts: int = 0
    time_shares_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuRecord:
    """What one machine made of everything that the gate does on a device.

    Attributes:
        name: of its files: ``"RECORD-2026-11-23"``.
        device: torch's name of the device that was asked for.
        arguments: what every part was given: sides, models, device.
        minutes: limit of the last session.
        old, new: None as long as no part has asked them.
        checks: of the machine, before anything ran.
    """

    name: str
    started_at: str
    device: str
    arguments: tuple[str, ...]
    minutes: float = 0.0
    wall_s: float = 0.0
    old: SideReport | None = None
    new: SideReport | None = None
    checks: tuple[MachineCheck, ...] = ()
    parts: tuple[RecordedPart, ...] = ()

    @property
    def gpu(self) -> str:
        """The GPU that the new side saw; empty on another device, and as long as nobody knows."""
        found = self.new.fingerprint if self.new is not None else None
        row = TABLE.get(self.device)  # a device outside of torch never counts
        return "" if found is None or row is None or not row.gpu else found.gpu or ""

    @property
    def same_torch(self) -> bool:
        """Whether both sides are known to be one torch."""
        found = [side.fingerprint.identity for side in (self.old, self.new) if side is not None and side.fingerprint]
        return len(found) == 2 and found[0] == found[1]


def reservations(record: GpuRecord) -> tuple[str, ...]:
    """Return what the record does not show, a sentence each; empty where it is whole."""
    found = []
    if not record.gpu:
        found.append(f"No GPU was used: a rehearsal on the device {record.device}. It says nothing about a GPU.")
    if record.same_torch and record.new is not None and record.new.fingerprint is not None:
        found.append(f"No upgrade was judged: both sides are torch {record.new.fingerprint.torch}.")
    found += [
        f"{part.name} did not come to its end: {part.why}" for part in record.parts if part.exit_code not in JUDGED
    ]
    return tuple(found)


def exit_code(record: GpuRecord) -> ExitCode:
    """Return the gravest exit code of its parts; a record with reservations is never green."""
    codes = {part.exit_code for part in record.parts} | {ExitCode.INCONCLUSIVE if reservations(record) else None}
    return next((code for code in GRAVEST_FIRST if code in codes), ExitCode.INCONCLUSIVE)


def dump_record(record: GpuRecord) -> str:
    """Return a record as JSON, with what it does not show and its exit code."""
    return json_text(
        {
            "schema_version": SCHEMA_VERSION,
            "harness_version": __version__,
            "exit_code": int(exit_code(record)),
            "reservations": list(reservations(record)),
            **msgspec.to_builtins(record),
        }
    )


def load_record(data: bytes, *, file: str) -> GpuRecord:
    """Return the record in ``data``; what it does not show is found anew. ``file`` is its name for messages.

    Raises:
        RunDirError: no JSON, of another version, or not the shape of a record.
    """
    again = "leave --resume out"
    try:
        plain = from_json(data)
        if not isinstance(plain, dict) or plain.get("schema_version") != SCHEMA_VERSION:
            raise RunDirError(f"{file} is no GPU record of schema version {SCHEMA_VERSION}", again)
        found: GpuRecord = converted(plain, GpuRecord)
        return found
    except (JsonError, msgspec.ValidationError) as error:
        raise RunDirError(f"{file} is damaged: {error}", again) from error
