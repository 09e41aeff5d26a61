"""Asks ``nvidia-smi`` how a GPU does: its clocks, what holds them down, who else is on it."""

import os
import subprocess
from collections.abc import Collection

from harness.domain.machine import GpuScene

DEADLINE_S = 10.0
# Drivers from 535 on call the reasons events; later ones may forget the old name.
REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
# The bits of nvmlClocksEventReasons in NVIDIA's nvml.h.
REASON_WORDS = {
    0x1: "idle",
    0x2: "clocks set by the user",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clock setting",
}


def look(own: Collection[int]) -> GpuScene | None:
    """Return the GPU that ``CUDA_VISIBLE_DEVICES`` puts first, None where ``nvidia-smi`` gives no answer in 10 s.

    Args:
        own: processes of the duel, still alive.
    """
    for reasons in REASONS:
        text = _ask(f"--query-gpu=name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu")
        if text:
            return scene_in(text, _ask("--query-compute-apps=pid") or "", own)
    return None


def scene_in(gpu: str, processes: str, own: Collection[int]) -> GpuScene | None:
    """Return what two answers of ``nvidia-smi`` say, None where the first is not one.

    Inside a container the numbers of processes may be those of another namespace: then as many as the duel has are
    taken for its own.
    """
    fields = [field.strip() for field in (gpu.splitlines() or [""])[0].split(",")]
    if len(fields) != 5:
        return None
    name, clock, most, reasons, temperature = fields
    pids = [int(line) for line in map(str.strip, processes.splitlines()) if line.isdigit()]
    ours = len(set(pids) & set(own)) or min(len(own), len(pids))
    return GpuScene(
        name=name,
        sm_clock_mhz=_number(clock),
        max_sm_clock_mhz=_number(most),
        throttle_reasons=_reasons_in(reasons),
        other_processes=len(pids) - ours,
        temperature_c=_number(temperature),
    )


def _reasons_in(mask: str) -> tuple[str, ...]:
    try:
        bits = int(mask, 16)
    except ValueError:  # "[N/A]", "[Not Supported]"
        return ()
    return tuple(word for bit, word in REASON_WORDS.items() if bits & bit)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _ask(query: str) -> str | None:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    which = (f"--id={chosen}",) if chosen else ()
    command = ("nvidia-smi", query, "--format=csv,noheader,nounits", *which)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
