"""Opinions on the GPUs: whether they can be reached, who else is on them, and what holds their clocks down. Pure."""

import re
from collections.abc import Iterator, Sequence

from harness.domain.checkup import Check, CheckStatus
from harness.domain.host import Container, GpuCard, Gpus
from harness.policy.machine import HARMLESS
from harness.policy.words import counted

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


def gpu_checks(gpus: Gpus, container: Container, *, device: str, names: Sequence[str]) -> Iterator[Check]:
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


def profiler_checks(gpus: Gpus) -> Iterator[Check]:
    """Yield what is to be said of programs that read the GPU's counters; nothing of this takes time."""
    if not gpus.nodes:
        return
    if not gpus.profilers:
        yield Check(name="profilers", area=AREA, read="none runs here")
        return
    yield Check(
        name="profilers",
        area=AREA,
        read=", ".join(gpus.profilers),
        status=CheckStatus.WARN,
        so_what="Monitoring of counters slows kernels a little and now and then, and a second profiler gets none.",
        do_this="Run dcgmi profile --pause before the run and --resume after it; end other profilers.",
    )


def _none(device: str, names: Sequence[str]) -> Check:
    if device != "cuda":
        return Check(name="GPU", area=AREA, read="none here; runs take the CPU")
    return Check(
        name="GPU",
        area=AREA,
        read='none here, and device is "cuda"',
        status=CheckStatus.FAIL,
        so_what="A run ends before it begins.",
        do_this="Run with --device cpu, or give the container its GPU (docker run --gpus all).",
        blocks=tuple(names),
    )


def _trouble(text: str, wanted: Sequence[str]) -> Check:
    known = next((item for item in TROUBLES if item[0] in text), None)
    so_what, do_this = known[1:] if known else ("The GPU's clocks and tenants cannot be seen.", "Run nvidia-smi.")
    certain = known is not None and bool(wanted)
    return Check(
        name="nvidia-smi",
        area=AREA,
        read=text,
        status=CheckStatus.FAIL if certain else CheckStatus.WARN,
        so_what=so_what,
        do_this=do_this,
        blocks=tuple(wanted) if certain else (),
    )


def _card(card: GpuCard, wanted: Sequence[str]) -> Iterator[Check]:
    name = card.scene.name
    if card.compute_mode == PROHIBITED:
        yield Check(
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
        yield Check(
            name="compute mode",
            area=AREA,
            about=name,
            read=card.compute_mode,
            status=CheckStatus.WARN,
            so_what="One process at a time: the duel keeps two alive, and the second is refused.",
            do_this="Run nvidia-smi --compute-mode=DEFAULT on the host for the time of the run.",
        )
    yield _tenants(card)
    yield _clocks(card)


def _tenants(card: GpuCard) -> Check:
    count, used = card.scene.other_processes, card.memory_used_mib or 0
    memory = f", {used} of {card.memory_mib} MiB taken" if card.memory_mib else ""
    mig = ", cut into MIG instances" if card.mig else ""
    read = f"{counted(count, 'other process', 'other processes')} on it{memory}{mig}"
    if not count and used <= TENANT_MIB:
        return Check(name="tenants", area=AREA, about=card.scene.name, read=read)
    return Check(
        name="tenants",
        area=AREA,
        about=card.scene.name,
        read=read,
        status=CheckStatus.WARN,
        so_what="They take turns with the duel on the same units, so times are noisy, and memory may run out.",
        do_this="Choose another GPU with CUDA_VISIBLE_DEVICES, or wait for them.",
    )


def _clocks(card: GpuCard) -> Check:
    scene = card.scene
    if scene.sm_clock_mhz is None or scene.max_sm_clock_mhz is None:
        shown = "clocks not shown"
    else:
        shown = f"{scene.sm_clock_mhz} of {scene.max_sm_clock_mhz} MHz"
    heat = f", {scene.temperature_c} C" if scene.temperature_c is not None else ""
    held = [reason for reason in scene.throttle_reasons if reason not in HARMLESS]
    why = f" ({', '.join(scene.throttle_reasons)})" if scene.throttle_reasons else ""
    if not held:
        return Check(name="clocks", area=AREA, about=scene.name, read=f"{shown}{heat}{why}")
    return Check(
        name="clocks",
        area=AREA,
        about=scene.name,
        read=f"{shown}{heat}{why}",
        status=CheckStatus.WARN,
        so_what="The clock is held down before the run has begun, and moves while it is timed.",
        do_this="See to cooling and power, then lock it with nvidia-smi --lock-gpu-clocks.",
    )


def _device_links(gpus: Gpus, container: Container) -> Iterator[Check]:
    """Yield whether containers here may lose their GPU: the links in /dev/char can be seen from the host only."""
    systemd = bool(SYSTEMD.search(container.group))
    if container.kind and not systemd:
        return
    if not gpus.unlinked:
        yield Check(name="device links", area=AREA, read="in /dev/char, as containers under systemd need them")
        return
    where = "this container's group is systemd's" if container.kind else f"no links for {', '.join(gpus.unlinked)}"
    yield Check(
        name="device links",
        area=AREA,
        read=where,
        status=CheckStatus.WARN if container.kind or systemd else CheckStatus.UNKNOWN,
        so_what='A container may lose its GPU in the midst of a run ("Failed to initialize NVML: Unknown Error") when '
        "systemd reloads.",
        do_this=LINK_THEM,
    )
