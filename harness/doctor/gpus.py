"""Opinions on the GPUs: whether they can be reached, who else is on them, and what holds their clocks down. Pure."""

import re
from collections.abc import Iterator, Sequence

from harness.domain.machine import (
    ENDS,
    ERRORS,
    TIMES,
    CheckStatus,
    Container,
    GpuCard,
    Gpus,
    MachineCheck,
    MachineEvent,
)
from harness.domain.text import counted
from harness.latency.machine import HARMLESS

AREA = "GPU"
# A process that is listed takes memory; what the driver itself holds is below that.
TENANT_MIB = 1024
LINK_THEM = (
    "On the host run nvidia-ctk system create-dev-char-symlinks --create-all, or use native.cgroupdriver=cgroupfs."
)
PROHIBITED = "Prohibited"
# Messages of NVML and of our own survey, what they mean, and the cure. The first that is found in the text counts.
# https://github.com/NVIDIA/nvidia-container-toolkit/issues/48 has the first one.
TROUBLES = (
    (
        "Unknown Error",
        "The container has lost its GPU: systemd has rewritten its device rules, as on any systemctl daemon-reload.",
        f"Restart the container. {LINK_THEM}",
    ),
    (
        "Driver/library version mismatch",
        "The driver was updated while its old kernel module is still loaded, so nothing new can use the GPU.",
        "Reboot the host, or unload and load the nvidia kernel modules.",
    ),
    (
        "couldn't communicate",
        "The kernel module is not loaded, so torch sees no GPU.",
        "Load it with modprobe nvidia, or install the driver for this kernel.",
    ),
    (
        "hides every GPU",
        "torch sees no GPU on a machine that has one, so a run ends before it begins.",
        "Name a GPU in it, unset it, or run with --device cpu.",
    ),
)
# How runtimes name groups: systemd's end in .scope or lie in a .slice.
SYSTEMD = re.compile(r"\.(scope|slice)\b")


def gpu_checks(gpus: Gpus, container: Container, *, device: str, names: Sequence[str]) -> Iterator[MachineCheck]:
    """Yield what is to be said of the GPUs.

    Args:
        device: what was asked for: ``"auto"``, ``"cpu"``, ``"cuda"``.
        names: of all environments: a GPU that cannot be used stops them all.
    """
    if not gpus.nodes:
        yield _none(device, names)
        return
    wanted = tuple(names) if device != "cpu" else ()
    if gpus.trouble:
        yield _trouble(gpus.trouble, wanted)
    else:
        banned = all(card.compute_mode == PROHIBITED for card in gpus.cards)
        for card in gpus.cards:
            yield from _card(card, wanted if banned else ())
    yield from _device_links(gpus, container)
    yield from profiler_checks(gpus)


def profiler_checks(gpus: Gpus) -> Iterator[MachineCheck]:
    """Yield what is to be said of programs that read the GPU's counters; nothing of this takes time."""
    if not gpus.nodes:
        return
    if not gpus.profilers:
        yield MachineCheck(name="profilers", area=AREA, read="none runs here")
        return
    yield MachineCheck(
        name="profilers",
        area=AREA,
        read=", ".join(gpus.profilers),
        status=CheckStatus.WARN,
        so_what="Monitoring of counters slows kernels a little and now and then, and a second profiler gets none.",
        do_this="Run dcgmi profile --pause before the run and --resume after it; end other profilers.",
    )


def _none(device: str, names: Sequence[str]) -> MachineCheck:
    if device != "cuda":
        return MachineCheck(name="GPU", area=AREA, read="none here; runs take the CPU")
    return MachineCheck(
        name="GPU",
        area=AREA,
        read='none here, and device is "cuda"',
        status=CheckStatus.FAIL,
        so_what="A run ends before it begins.",
        do_this="Run with --device cpu, or give the container its GPU (docker run --gpus all).",
        blocks=tuple(names),
    )


def _trouble(text: str, wanted: Sequence[str]) -> MachineCheck:
    known = next((item for item in TROUBLES if item[0] in text), None)
    so_what, do_this = known[1:] if known else ("The GPU's clocks and tenants cannot be seen.", "Run nvidia-smi.")
    certain = known is not None and bool(wanted)
    return MachineCheck(
        name="nvidia-smi",
        area=AREA,
        read=text,
        status=CheckStatus.FAIL if certain else CheckStatus.WARN,
        so_what=so_what,
        do_this=do_this,
        blocks=tuple(wanted) if certain else (),
    )


def _card(card: GpuCard, wanted: Sequence[str]) -> Iterator[MachineCheck]:
    name = card.machine_state.name
    if card.compute_mode == PROHIBITED:
        yield MachineCheck(
            name="compute mode",
            area=AREA,
            about=name,
            read=card.compute_mode,
            status=CheckStatus.FAIL if wanted else CheckStatus.WARN,
            so_what="No program may compute on this GPU.",
            do_this="Run nvidia-smi --compute-mode=DEFAULT on the host.",
            blocks=tuple(wanted),
        )
    elif card.compute_mode.startswith("Exclusive"):
        yield MachineCheck(
            name="compute mode",
            area=AREA,
            about=name,
            read=card.compute_mode,
            status=CheckStatus.WARN,
            so_what="One process at a time: the benchmark keeps two alive, and the second is refused.",
            do_this="Run nvidia-smi --compute-mode=DEFAULT on the host for the time of the run.",
        )
    yield _tenants(card)
    yield _clocks(card)


def _tenants(card: GpuCard) -> MachineCheck:
    count, used = card.machine_state.other_processes, card.memory_used_mib or 0
    memory = f", {used} of {card.memory_mib} MiB taken" if card.memory_mib else ""
    mig = ", cut into MIG instances" if card.mig else ""
    read = f"{counted(count, 'other process', 'other processes')} on it{memory}{mig}"
    if not count and used <= TENANT_MIB:
        return MachineCheck(name="tenants", area=AREA, about=card.machine_state.name, read=read)
    return MachineCheck(
        name="tenants",
        area=AREA,
        about=card.machine_state.name,
        read=read,
        status=CheckStatus.WARN,
        so_what="They take turns with the benchmark on the same units, so times are noisy, and memory may run out.",
        do_this="Choose another GPU with CUDA_VISIBLE_DEVICES, or wait for them.",
    )


def _clocks(card: GpuCard) -> MachineCheck:
    machine_state = card.machine_state
    if machine_state.sm_clock_mhz is None or machine_state.max_sm_clock_mhz is None:
        shown = "clocks not shown"
    else:
        shown = f"{machine_state.sm_clock_mhz} of {machine_state.max_sm_clock_mhz} MHz"
    heat = f", {machine_state.temperature_c} C" if machine_state.temperature_c is not None else ""
    held = [reason for reason in machine_state.throttle_reasons if reason not in HARMLESS]
    why = f" ({', '.join(machine_state.throttle_reasons)})" if machine_state.throttle_reasons else ""
    if not held:
        return MachineCheck(name="clocks", area=AREA, about=machine_state.name, read=f"{shown}{heat}{why}")
    return MachineCheck(
        name="clocks",
        area=AREA,
        about=machine_state.name,
        read=f"{shown}{heat}{why}",
        status=CheckStatus.WARN,
        so_what="The clock is held down before the run has begun, and moves while it is timed.",
        do_this="See to cooling and power, then lock it with nvidia-smi --lock-gpu-clocks.",
    )


def _device_links(gpus: Gpus, container: Container) -> Iterator[MachineCheck]:
    """Yield whether containers here may lose their GPU: the links in /dev/char can be seen from the host only."""
    systemd = bool(SYSTEMD.search(container.group))
    if container.kind and not systemd:
        return
    if not gpus.unlinked:
        yield MachineCheck(name="device links", area=AREA, read="in /dev/char, as containers under systemd need them")
        return
    where = "this container's group is systemd's" if container.kind else f"no links for {', '.join(gpus.unlinked)}"
    yield MachineCheck(
        name="device links",
        area=AREA,
        read=where,
        status=CheckStatus.WARN if container.kind or systemd else CheckStatus.UNKNOWN,
        so_what='A container may lose its GPU in the midst of a run ("Failed to initialize NVML: Unknown Error") when '
        "systemd reloads.",
        do_this=LINK_THEM,
    )


def gpu_events(before: Gpus | None, after: Gpus | None) -> Iterator[MachineEvent]:
    """Yield what happened to the GPUs between two looks, both taken while none of the run's own processes lives."""
    if before is None or after is None:
        return
    if after.trouble and after.trouble != before.trouble:
        yield _lost(after.trouble)
    if before.driver and after.driver and before.driver != after.driver:
        yield MachineEvent(
            name="GPU driver",
            read=f"{before.driver} before, {after.driver} now",
            so_what="Models were judged under two drivers.",
            do_this="Repeat the run.",
            touches=(TIMES, ENDS, ERRORS),
        )
    cards = {card.uuid: card for card in before.cards}
    for card in after.cards:
        if card.uuid in cards:
            yield from _during_run_tenants(cards[card.uuid], card)
        yield from _throttling(card)
    started = sorted({*after.profilers} - {*before.profilers})
    if started:
        yield MachineEvent(
            name="profilers",
            read=f"started meanwhile: {', '.join(started)}",
            so_what="Programs that read the GPU's counters slow kernels a little and now and then.",
            do_this="End them (dcgmi profile --pause), and repeat what is red or undecided.",
            touches=(TIMES,),
        )


def _lost(trouble: str) -> MachineEvent:
    known = next((item for item in TROUBLES if item[0] in trouble), None)
    so_what, do_this = known[1:] if known else ("Nobody knows how the GPU fares.", "Run nvidia-smi.")
    return MachineEvent(
        name="GPU lost",
        read=f"nvidia-smi answered before, and now: {trouble}",
        so_what=f"{so_what} What failed since then is not the release's doing.",
        do_this=f"{do_this} Then repeat what is red.",
        touches=(TIMES, ENDS, ERRORS),
    )


def _during_run_tenants(was: GpuCard, now: GpuCard) -> Iterator[MachineEvent]:
    more = now.machine_state.other_processes - was.machine_state.other_processes
    taken = (now.memory_used_mib or 0) - (was.memory_used_mib or 0)
    if more > 0 or taken > TENANT_MIB:
        yield MachineEvent(
            name="GPU tenants",
            read=f"{now.machine_state.name}: {max(more, 0)} more processes than before, {max(taken, 0)} MiB more taken",
            so_what="They took turns with the models on the same units, and took memory from them.",
            do_this="Wait for them, or set CUDA_VISIBLE_DEVICES to another GPU, and repeat what is red or undecided.",
            touches=(TIMES, ENDS, ERRORS),
        )


def _throttling(card: GpuCard) -> Iterator[MachineEvent]:
    held = [reason for reason in card.machine_state.throttle_reasons if reason not in HARMLESS]
    if held:
        heat = f" at {card.machine_state.temperature_c} C" if card.machine_state.temperature_c is not None else ""
        yield MachineEvent(
            name="GPU clocks",
            read=f"{card.machine_state.name}: held down at the end of the run{heat} ({', '.join(held)})",
            so_what="The clock moved while models were timed.",
            do_this="See to cooling and power, or lock it with nvidia-smi --lock-gpu-clocks.",
            touches=(TIMES,),
        )
