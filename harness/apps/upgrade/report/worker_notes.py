"""What a reader must know about how the worker processes ran: limits, libraries with threads, contexts of a device."""

from collections.abc import Iterator, Mapping, Sequence

from harness.core.devices import Device
from harness.core.environment import Environment
from harness.core.probe import ProbeResult
from harness.probing.loaded_libraries import LoadedLibraries

NOT_CONFINED = "not_confined"
LIMIT_WORDS = {
    "memory": "their memory was not limited",
    "cpu": "their CPU time was not limited",
    "file": "the size of their files was not limited",
    "killed_first": "the kernel may end another process before them where memory is out",
    "network": "the network stayed open to them",
    "results": "what other probes of the run have left stayed open to them",
    NOT_CONFINED: "programs and packages could write wherever this user may",
}


def worker_notes(
    environments: Mapping[str, Environment],
    libraries: Mapping[str, LoadedLibraries],
    device: Device,
    probes: Sequence[ProbeResult],
) -> tuple[str, ...]:
    """Return notes for the report, none where everything held and contexts cost nothing."""
    return (*_thread_notes(environments, libraries), *_limit_notes(probes), *_context_notes(device, probes))


def _thread_notes(environments: Mapping[str, Environment], libraries: Mapping[str, LoadedLibraries]) -> Iterator[str]:
    for side, loaded in libraries.items():
        if loaded.threads:
            yield (
                f"{environments[side].name}: loading {', '.join(loaded.names)} has started {loaded.threads} threads, "
                "which a forked probe does not have: a hang there may come from the fork"
            )


def _limit_notes(probes: Sequence[ProbeResult]) -> list[str]:
    found = {pair for probe in probes for pair in probe.data.get("limits", {}).items()}
    found |= {(NOT_CONFINED, probe.data[NOT_CONFINED]) for probe in probes if NOT_CONFINED in probe.data}
    return sorted(f"workers ran without a limit, {LIMIT_WORDS.get(name, name)}: {why}" for name, why in found)


def _context_notes(device: Device, probes: Sequence[ProbeResult]) -> Iterator[str]:
    once = {probe.key: probe for probe in probes}.values()
    for probe in once:
        if probe.failed_after_others:
            names = ", ".join(model.model for model in probe.models)
            yield (
                f"{names} failed in a process that had done other probes, and came through in one of its own, which "
                f"counts: {probe.failed_after_others}"
            )
    contexts = sum(probe.contexts for probe in once)
    if contexts:
        new = sum(probe.contexts for probe in once if probe.side == "new")
        sides = f"old {contexts - new}, new {new}"
        yield f"contexts on {device.name}: {contexts} for {len(once)} probes ({sides}), besides the benchmark's"
