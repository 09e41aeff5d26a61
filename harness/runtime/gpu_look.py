"""Asks ``nvidia-smi`` how a GPU does: its clocks, what holds them down, who else is on it."""

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


def look(uuid: str | None, own: Collection[int]) -> GpuScene | None:
    """Return how a GPU does now, None where ``nvidia-smi`` gives no answer in 10 s.

    Args:
        uuid: of the GPU that the duel uses. Without it a machine with one GPU is told of, but not who else is on it.
        own: processes of the duel, still alive.
    """
    which = (f"--id={uuid}",) if uuid else ()
    for reasons in REASONS:
        text = _ask(f"--query-gpu=name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu", *which)
        if text:
            processes = _ask("--query-compute-apps=gpu_uuid,pid") if uuid else None
            return scene_in(text, pids_in(processes or "", uuid or ""), own)
    return None


def pids_in(text: str, uuid: str) -> list[int]:
    """Return the processes on one GPU, from lines of ``UUID, PID``."""
    lines = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    return [int(line[1]) for line in lines if len(line) == 2 and line[0] == uuid and line[1].isdigit()]


def scene_in(text: str, pids: Collection[int], own: Collection[int]) -> GpuScene | None:
    """Return what an answer of ``nvidia-smi`` says, None where it is not one on a single GPU.

    Inside a container the numbers of processes may be those of another namespace: then as many as the duel has are
    taken for its own.

    Args:
        pids: all processes on it.
    """
    lines = text.splitlines()
    fields = [field.strip() for line in lines for field in line.split(",")]
    if len(lines) != 1 or len(fields) != 5:
        return None
    name, clock, most, reasons, temperature = fields
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


def _ask(query: str, *which: str) -> str | None:
    status, text = ask(query, *which)
    return text if status == 0 else None


def ask(query: str, *which: str, deadline_s: float | None = None) -> tuple[int | None, str]:
    """Return the exit status of ``nvidia-smi`` and what it wrote; None with the reason where it did not end by itself.

    It tells its errors on standard output.
    """
    limit_s = DEADLINE_S if deadline_s is None else deadline_s
    command = ("nvidia-smi", query, "--format=csv,noheader,nounits", *which)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return None, f"nvidia-smi did not answer in {limit_s:g} s"
    except OSError as error:
        return None, f"nvidia-smi cannot be started: {error.strerror}"
    return done.returncode, done.stdout
