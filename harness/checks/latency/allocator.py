"""The allocator of a process that is timed: as glibc has made it in a server that has lived for a while."""

from dataclasses import replace

from harness.core.probe import ProbeRequest

# glibc raises the first threshold to the largest block that was freed, up to 32 MiB, keeps the second at twice that,
# and never lowers them (mallopt(3), M_MMAP_THRESHOLD). They decide whether a call gets its memory from the kernel page
# by page or has it already. A process of the benchmark has them from the models that were timed before
# (docs/evidence.md#allocator).
HIGHEST = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
# A profile that names one of these has another allocator, or its own wishes of this one.
NAMED_BY_PROFILE = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


def settled(request: ProbeRequest) -> ProbeRequest:
    """Return the request with the allocator's thresholds where a server's end up, unless its profile names others."""
    env = request.profile.env
    if any(name.startswith(NAMED_BY_PROFILE) for name in env):
        return request
    return replace(request, profile=replace(request.profile, env={**env, **HIGHEST}))
