"""Names a request by everything that its answer depends on: results are stored and found again under that."""

from dataclasses import replace

from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeRequest, ProbeResult
from harness.runtime import codec

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
