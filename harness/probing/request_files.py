"""A request as the worker reads it, and the key that names it by everything its answer depends on."""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.domain.models import ModelDeclaration
from harness.domain.outcome import Outcome
from harness.domain.probe import ExtractOrder, ProbeRequest, ProbeResult, RewriteOrder, Script, TraceOrder, WorkerLimits
from harness.store import codec
from harness.worker import wire

DIGITS = 16


def request_key(request: ProbeRequest, code: str = "") -> str:
    """Return 16 hexadecimal digits; equal requests have equal ones.

    A memory limit that follows from the machine is no part of it: it changes with the control group, not the question.

    Args:
        code: digest of the source that an export depends on besides its fixture file, where that is known.
    """
    limits = request.limits
    if limits is not None and limits.memory_is_derived:
        request = replace(request, limits=replace(limits, memory_bytes=None, memory_is_derived=False))
    return codec.digest([request, code] if code else request)[:DIGITS]


def lacked_memory(request: ProbeRequest, found: ProbeResult) -> bool:
    """Return whether more memory than the machine had then may give another result."""
    derived = request.limits is not None and request.limits.memory_is_derived
    return derived and Outcome.OUT_OF_MEMORY in found.outcomes


CPU_PATIENCE = 2


def wire_request(
    request: ProbeRequest, stack_dumper: Path | None = None, *, libraries: Sequence[str] = ()
) -> dict[str, Any]:
    """Return ``request.json`` as the worker reads it; ``libraries`` are loaded first by a process of its own."""
    return {
        "libraries": libraries,
        "limits": None if request.limits is None else wire_limits(request, request.limits),
        "stack_dumper": None if stack_dumper is None else str(stack_dumper),
        "protocol": wire.PROTOCOL,
        "verb": request.verb,
        "device": request.device,
        "pools": {"intra_op": request.profile.intra_op_threads, "inter_op": request.profile.inter_op_threads},
        "switches": dict(request.profile.switches),
        "env": dict(request.profile.env),
        "numerics": dict(request.profile.numerics),
        "runs": [asdict(run) for run in request.runs],
        "script": _told(request.script),
        "declaration": _told(request.declaration),
        "trace": _told(request.trace),
        "extract": _told(request.extract),
        "rewrite": _told(request.rewrite),
    }


def wire_limits(request: ProbeRequest, limits: WorkerLimits) -> dict[str, Any]:
    """Return the limits as the worker reads them.

    The CPU time that is derived is out of reach for what the deadline ends: it ends what has escaped its group. A
    process of the benchmark lives for as long as there is something to measure.
    """
    cpu_s = limits.cpu_s
    if cpu_s is None and request.verb != "benchmark":
        cpu_s = CPU_PATIENCE * request.deadline.total_s * (os.cpu_count() or 1)
    told = {**asdict(limits), "cpu_s": None if cpu_s is None else math.ceil(cpu_s)}
    del told["memory_is_derived"]
    return told


def _told(part: Script | ModelDeclaration | TraceOrder | ExtractOrder | RewriteOrder | None) -> dict[str, Any] | None:
    return None if part is None else asdict(part)
