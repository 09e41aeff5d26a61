"""Asks ``nvidia-smi`` about the GPUs: driver, cards, clocks, what limits them, and who else uses them."""

import os
import re
import stat
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.domain.machine import GpuCard, Gpus, GpuState
from harness.system.files import text_of
from harness.system.processes import run

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


def look(uuid: str | None, own: Collection[int]) -> GpuState | None:
    """Return how a GPU does now, None where ``nvidia-smi`` gives no answer in 10 s.

    Args:
        uuid: of the GPU that the benchmark uses. Without it a machine with one GPU is told of, but not who else is on
            it.
        own: processes of the benchmark, still alive.
    """
    which = (f"--id={uuid}",) if uuid else ()
    for reasons in REASONS:
        text = _ask(f"--query-gpu=name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu", *which)
        if text:
            processes = _ask("--query-compute-apps=gpu_uuid,pid") if uuid else None
            return state_in(text, pids_in(processes or "", uuid or ""), own)
    return None


def pids_in(text: str, uuid: str) -> list[int]:
    """Return the processes on one GPU, from lines of ``UUID, PID``."""
    lines = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    return [int(line[1]) for line in lines if len(line) == 2 and line[0] == uuid and line[1].isdigit()]


def state_in(text: str, pids: Collection[int], own: Collection[int]) -> GpuState | None:
    """Return what an answer of ``nvidia-smi`` says, None where it is not one on a single GPU.

    Inside a container the numbers of processes may be those of another namespace: then as many as the benchmark has are
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
    return GpuState(
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
    """Return the exit status of ``nvidia-smi`` and what it wrote; None with the reason if it had to be ended.

    It tells its errors on standard output.
    """
    limit_s = DEADLINE_S if deadline_s is None else deadline_s
    command = ("nvidia-smi", query, "--format=csv,noheader,nounits", *which)
    try:
        done = run(command, limit_s=limit_s)
    except subprocess.TimeoutExpired:
        return None, f"nvidia-smi did not answer in {limit_s:g} s"
    except OSError as error:
        return None, f"nvidia-smi cannot be started: {error.strerror}"
    return done.returncode, done.stdout


PROC: Final = Path("/proc")
DEV: Final = Path("/dev")
SURVEY_DEADLINE_S: Final = 5.0
HIDDEN: Final = "CUDA_VISIBLE_DEVICES hides every GPU"

_NODE: Final = re.compile(r"nvidia\d+")
_CONTROL: Final = ("nvidiactl", "nvidia-uvm")
_CARD: Final = "uuid,{capability},compute_mode,mig.mode.current,memory.used,memory.total"
_STATE: Final = "name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu"
_CARD_FIELDS: Final = 6
# Cut to 15 characters, as the kernel keeps names: DCGM's engine, tools and exporter, Nsight and its old kin.
_PROFILERS: Final = re.compile(r"nv-hostengine|dcgm.*|nsys.*|ncu|nv-nsight.*|nsight.*|nvprof|cuda-gdb|compute-sanitiz")


def survey(proc: Path = PROC, dev: Path = DEV, visible: str | None = None) -> Gpus:
    """Return what the machine shows of its GPUs; asks ``nvidia-smi`` only where there is a device file.

    Args:
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
    """
    found = without_asking(proc, dev)
    if not found.nodes:
        return found
    for reasons in REASONS:
        for capability in ("compute_cap", "count"):  # drivers before 510 do not know the first
            fields = f"{_CARD.format(capability=capability)},{_STATE.format(reasons=reasons)}"
            status, text = ask(f"--query-gpu={fields}", deadline_s=SURVEY_DEADLINE_S)
            if status == 0:
                _, processes = ask("--query-compute-apps=gpu_uuid,pid", deadline_s=SURVEY_DEADLINE_S)
                cards = visible_of(cards_in(text, processes), visible)
                return replace(found, cards=cards, trouble="" if cards or visible is None else HIDDEN)
            if status is None or "not a valid field" not in text:
                return replace(found, trouble=_first_line(text) or f"nvidia-smi ended with status {status}")
    return replace(found, trouble="this nvidia-smi does not know the questions asked")


def without_asking(proc: Path = PROC, dev: Path = DEV) -> Gpus:
    """Return what files tell: no process is started."""
    control = [dev / _CONTROL[0]] if (dev / _CONTROL[0]).exists() else []
    nodes = sorted(path for path in _names(dev) if _NODE.fullmatch(path.name)) or control
    linked = dict.fromkeys([*nodes, *(dev / name for name in _CONTROL if (dev / name).exists())]) if nodes else {}
    return Gpus(
        nodes=tuple(map(str, nodes)),
        driver=driver_in(text_of(proc / "driver" / "nvidia" / "version")),
        profilers=tuple(sorted(set(_profilers(proc)))) if nodes else (),
        unlinked=tuple(str(path) for path in linked if not _is_linked(path, dev / "char")),
    )


def driver_in(text: str) -> str:
    """Return the driver's version, from the text of ``/proc/driver/nvidia/version``; empty if it is not there."""
    match = re.search(r"Kernel Module[^\d\n]*(?:for \S+ +)?(\d+(?:\.\d+)+)", text)
    return match[1] if match else ""


def cards_in(text: str, processes: str) -> tuple[GpuCard, ...]:
    """Return the cards from the answers of ``nvidia-smi``; lines of another form are left out."""
    rows = ([field.strip() for field in line.split(",")] for line in text.splitlines())
    return tuple(card for row in rows if (card := _card(row, processes)) is not None)


def visible_of(cards: Sequence[GpuCard], visible: str | None) -> tuple[GpuCard, ...]:
    """Return the cards that CUDA_VISIBLE_DEVICES leaves.

    Numbers are taken in the order of ``nvidia-smi``; CUDA's own may differ where the cards do (CUDA_DEVICE_ORDER).
    """
    if visible is None:
        return tuple(cards)
    left = []
    for word in (part.strip() for part in visible.split(",")):
        found = [card for number, card in enumerate(cards) if word == str(number) or _is_named(card.uuid, word)]
        if not found:  # CUDA stops at the first that it does not know
            break
        left += found
    return tuple(left)


def _is_named(uuid: str, word: str) -> bool:
    return word.startswith(("GPU-", "MIG-")) and uuid.startswith(word)


def _card(row: Sequence[str], processes: str) -> GpuCard | None:
    if len(row) <= _CARD_FIELDS:
        return None
    uuid, capability, mode, mig, used, total = row[:_CARD_FIELDS]
    machine_state = state_in(", ".join(row[_CARD_FIELDS:]), pids_in(processes, uuid), ())
    if machine_state is None:
        return None
    return GpuCard(
        uuid=uuid,
        capability=capability if re.fullmatch(r"\d+\.\d", capability) else "",
        machine_state=machine_state,
        compute_mode=mode,
        mig=mig == "Enabled",
        memory_used_mib=int(used) if used.isdigit() else None,
        memory_mib=int(total) if total.isdigit() else None,
    )


def _profilers(proc: Path) -> Iterator[str]:
    for folder in _names(proc):
        if folder.name.isdigit():
            name = text_of(folder / "comm").strip()
            if _PROFILERS.fullmatch(name):
                yield name


def _is_linked(node: Path, links: Path) -> bool:
    """Return whether ``/dev/char/MAJOR:MINOR`` is there for a device file; True if it is no device."""
    try:
        status = node.stat()
    except OSError:
        return True
    if not stat.S_ISCHR(status.st_mode):
        return True
    return (links / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}").exists()


def _names(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
