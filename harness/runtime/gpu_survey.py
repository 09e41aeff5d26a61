"""Surveys the GPUs of this machine: driver, cards, tenants, profilers, and the device links that containers need."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.domain.host import GpuCard, Gpus
from harness.runtime.gpu_look import REASONS, ask, pids_in, scene_in
from harness.runtime.small_files import text_of

PROC: Final = Path("/proc")
DEV: Final = Path("/dev")
DEADLINE_S: Final = 5.0

HIDDEN: Final = "CUDA_VISIBLE_DEVICES hides every GPU"

_NODE: Final = re.compile(r"nvidia\d+")
_CONTROL: Final = ("nvidiactl", "nvidia-uvm")
_CARD: Final = "uuid,{capability},compute_mode,mig.mode.current,memory.used,memory.total"
_SCENE: Final = "name,clocks.sm,clocks.max.sm,{reasons},temperature.gpu"
_CARD_FIELDS: Final = 6
# Cut to 15 characters, as the kernel keeps names: DCGM's engine, tools and exporter, Nsight and its old kin.
_PROFILERS: Final = re.compile(r"nv-hostengine|dcgm.*|nsys.*|ncu|nv-nsight.*|nsight.*|nvprof|cuda-gdb|compute-sanitiz")


def look(proc: Path = PROC, dev: Path = DEV, visible: str | None = None) -> Gpus:
    """Return what the machine shows of its GPUs; asks ``nvidia-smi`` only where there is a device file.

    Args:
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
    """
    found = without_asking(proc, dev)
    if not found.nodes:
        return found
    for reasons in REASONS:
        for capability in ("compute_cap", "count"):  # drivers before 510 do not know the first
            fields = f"{_CARD.format(capability=capability)},{_SCENE.format(reasons=reasons)}"
            status, text = ask(f"--query-gpu={fields}", deadline_s=DEADLINE_S)
            if status == 0:
                _, processes = ask("--query-compute-apps=gpu_uuid,pid", deadline_s=DEADLINE_S)
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
    """Return the driver's version, from the text of ``/proc/driver/nvidia/version``; empty where it is not told."""
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
    scene = scene_in(", ".join(row[_CARD_FIELDS:]), pids_in(processes, uuid), ())
    if scene is None:
        return None
    return GpuCard(
        uuid=uuid,
        capability=capability if re.fullmatch(r"\d+\.\d", capability) else "",
        scene=scene,
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
    """Return whether ``/dev/char/MAJOR:MINOR`` is there for a device file; of what is no device nobody can tell."""
    try:
        told = node.stat()
    except OSError:
        return True
    if not stat.S_ISCHR(told.st_mode):
        return True
    return (links / f"{os.major(told.st_rdev)}:{os.minor(told.st_rdev)}").exists()


def _names(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
