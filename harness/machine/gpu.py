"""Asks ``nvidia-smi`` about the GPUs: driver, cards, clocks, what limits them, and who else uses them."""

import os
import re
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.core.machine import GpuCard, Gpus, GpuState
from harness.machine.files import text_of
from harness.machine.processes import run

DEADLINE_S = 10.0
# Drivers from 535 on call the reasons events; later ones may forget the old name.
REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
# The bits of nvmlClocksEventReasons in nvml.h; the last two are in NVIDIA's Python binding alone.
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
    0x200: "board limit",
    0x400: "reliability",
}


def look(uuid: str | None, own: Collection[int]) -> GpuState | None:
    which = (f"--id={uuid}",) if uuid else ()
    status, text = _first_known((_STATE.format(reasons=reasons) for reasons in REASONS), *which, deadline_s=DEADLINE_S)
    if status != 0:
        return None
    processes = ask("--query-compute-apps=gpu_uuid,pid", deadline_s=DEADLINE_S)[1] if uuid else ""
    return state_in(text, pids_in(processes, uuid or ""), own)


def pids_in(text: str, uuid: str) -> list[int]:
    """Return the processes on one GPU, from lines of ``UUID, PID``."""
    lines = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    return [int(line[1]) for line in lines if len(line) == 2 and line[0] == uuid and line[1].isdigit()]


def state_in(text: str, pids: Collection[int], own: Collection[int]) -> GpuState | None:
    """Return what an answer of ``nvidia-smi`` says, None where it is not one on a single GPU.

    Inside a container the numbers of processes may be those of another namespace: then as many as the benchmark has are
    taken for its own.
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


def ask(query: str, *which: str, deadline_s: float) -> tuple[int | None, str]:
    """Return ``nvidia-smi``'s exit status (None: had to be ended) and output, where it tells its errors too."""
    command = ("nvidia-smi", query, "--format=csv,noheader,nounits", *which)
    try:
        done = run(command, limit_s=deadline_s)
    except subprocess.TimeoutExpired:
        return None, f"nvidia-smi did not answer in {deadline_s:g} s"
    except OSError as error:
        return None, f"nvidia-smi cannot be started: {error.strerror}"
    return done.returncode, done.stdout


def _first_known(questions: Iterable[str], *which: str, deadline_s: float) -> tuple[int | None, str]:
    """Return the answer to the first of ``questions`` that has no field unknown to this ``nvidia-smi``."""
    status, text = None, ""
    for fields in questions:
        status, text = ask(f"--query-gpu={fields}", *which, deadline_s=deadline_s)
        if "not a valid field" not in text:
            break
    return status, text


PROC: Final = Path("/proc")
DEV: Final = Path("/dev")
SURVEY_DEADLINE_S: Final = 5.0
HIDDEN: Final = "CUDA_VISIBLE_DEVICES hides every GPU"

_NODE: Final = re.compile(r"nvidia\d+")
_CONTROL: Final = ("nvidiactl", "nvidia-uvm")
_CARD: Final = "uuid,{capability},compute_mode,mig.mode.current,memory.used,ecc.errors.uncorrected.volatile.total"
_STATE: Final = "name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu"
_CARD_FIELDS: Final = 6
# In place of a value of a GPU that nothing can use; what a GPU does not have is "[N/A]" or "[Not Supported]".
_BROKEN: Final = re.compile(r"\[(GPU is lost|GPU requires \w+)\]")
# Cut to 15 characters, as the kernel keeps names: DCGM's engine, tools and exporter, Nsight and its old kin.
_PROFILERS: Final = re.compile(r"nv-hostengine|dcgm.*|nsys.*|ncu|nv-nsight.*|nsight.*|nvprof|cuda-gdb|compute-sanitiz")


def survey(proc: Path = PROC, dev: Path = DEV, visible: str | None = None) -> Gpus:
    """Return what the machine shows of its GPUs; ``nvidia-smi`` is asked if there is a device file."""
    gpus = without_asking(proc, dev)
    if not gpus.nodes:
        return gpus
    # Drivers before 510 do not know the capability.
    cards = (_CARD.format(capability=capability) for capability in ("compute_cap", "count"))
    states = [_STATE.format(reasons=reasons) for reasons in REASONS]
    questions = (f"{card},{state}" for card in cards for state in states)
    status, text = _first_known(questions, deadline_s=SURVEY_DEADLINE_S)
    complaint = _complaint(text)
    if not cards_in(text, ""):
        return replace(gpus, trouble=complaint or f"nvidia-smi ended with status {status}")
    _, processes = ask("--query-compute-apps=gpu_uuid,pid", deadline_s=SURVEY_DEADLINE_S)
    every = cards_in(text, processes)
    left = visible_of(every, visible)
    broken = next((card.trouble for card in left or every if card.trouble), "")
    return replace(gpus, cards=left, trouble=complaint or broken or ("" if left else HIDDEN))


def _complaint(text: str) -> str:
    """Return the first line that is no card, else empty; a warning on an infoROM is none: torch does not use it."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("WARNING") and not cards_in(line, "")), "")


def without_asking(proc: Path = PROC, dev: Path = DEV) -> Gpus:
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
    rows = ([field.strip() for field in line.split(",")] for line in text.splitlines())
    return tuple(card for row in rows if (card := _card(row, processes)) is not None)


def visible_of(cards: Sequence[GpuCard], visible: str | None) -> tuple[GpuCard, ...]:
    """Return the cards CUDA_VISIBLE_DEVICES leaves, numbered as ``nvidia-smi`` does (not as CUDA_DEVICE_ORDER)."""
    if visible is None:
        return tuple(cards)
    left = []
    for word in (part.strip() for part in visible.split(",")):
        matching = [card for number, card in enumerate(cards) if word == str(number) or _is_named(card, word)]
        if not matching:  # CUDA stops at the first that it does not know
            break
        left += [card for card in matching if card not in left]
    return tuple(left)


def _is_named(card: GpuCard, word: str) -> bool:
    if word.startswith("MIG-"):
        # MIG-GPU-UUID/1/0; drivers from 470 on give an instance a UUID of its own, of which the list says nothing.
        return card.mig and (card.uuid in word or not word.startswith("MIG-GPU-"))
    return word.startswith("GPU-") and card.uuid.startswith(word)


def _card(row: Sequence[str], processes: str) -> GpuCard | None:
    if len(row) <= _CARD_FIELDS:
        return None
    uuid, capability, mode, mig, used, ecc_errors = row[:_CARD_FIELDS]
    machine_state = state_in(", ".join(row[_CARD_FIELDS:]), pids_in(processes, uuid), ())
    if machine_state is None:
        return None
    broken = _BROKEN.search(", ".join(row))
    return GpuCard(
        uuid=uuid,
        capability=capability if re.fullmatch(r"\d+\.\d", capability) else "",
        machine_state=machine_state,
        compute_mode=mode,
        mig=mig == "Enabled",
        memory_used_mib=_number(used),
        ecc_errors=_number(ecc_errors),
        trouble=f"{machine_state.name}: {broken[1]}" if broken else "",
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
