"""Links planted among stored files: whatever a command writes, no byte outside of what it was given changes.

A run of a given artifact, its golden records, a proposal and a golden bundle are made once. Then one file or folder of
them at a time, or one that a command will make, becomes a link to outside, and every command that writes there is
called. A folder that is named itself (``reports``, ``golden``, that of ``--into``) may be a link, and is not attacked.
"""

import os
import random
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults import stored
from benchmarks.faults._given import MODEL, make_given, run_given
from harness.machine.files import remove

COUNT = 40
CELL = f"{MODEL}/alone"
GOLDEN: Sequence[Sequence[str]] = (
    ("golden", "status"),
    ("golden", "propose", "RUN"),
    ("golden", "accept", "all", "--reason", "x"),
    ("golden", "gc", "--yes"),
)
RUN: Sequence[Sequence[str]] = (
    ("report", "RUN"),
    ("report", "RUN", "--format", "trace"),
    ("gate", "RUN"),
    ("golden", "propose", "RUN"),
    ("rerun", "RUN", CELL),
    ("compat", "--resume", "last"),
)
BUNDLE: Sequence[Sequence[str]] = (
    ("compat", "--artifacts", "BUNDLE", "--scenario", "alone", "--latency", "off"),
    ("pack", "--artifacts", "ARTIFACTS", "--into", "BUNDLES"),
)


@dataclass(frozen=True)
class Area:
    """A folder whose files and folders become links, those in it that a command would make, and the commands."""

    folder: str
    made: Sequence[str]
    commands: Sequence[Sequence[str]]


def attack(count: int, seed: int) -> list[str]:
    """Return the commands that changed something outside, or ended as a bug, one line each."""
    with tempfile.TemporaryDirectory(prefix="gate-links-") as name:
        project, whole, outside = (Path(name, part) for part in ("project", "whole", "outside"))
        project.mkdir()
        failed = made(project)
        if failed:
            return [f"there is nothing to attack: {failed}"]
        shutil.copytree(project, whole, symlinks=True)
        areas = areas_of(project)
        wrong = []
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            area = areas[number % len(areas)]
            place, leads_to = drawn(whole, area, chance)
            for words in area.commands:
                found = attacked(project, whole, outside, place, leads_to, words)
                wrong += [
                    f"{seed} {number} {place} as a link ({leads_to}), {' '.join(words)}: {what}" for what in found
                ]
        return wrong


def made(project: Path) -> str:
    """Make what is attacked; return why that failed."""
    make_given(project)
    run_given(project)
    words: Sequence[Sequence[str]] = (
        ("golden", "propose", "RUN"),
        ("golden", "accept", "all", "--reason", "first answers"),
        ("pack", "--artifacts", "ARTIFACTS", "--into", "BUNDLES"),
    )
    done = [called(project, each) for each in words]
    stored.propose_accepted(project / "golden")
    return next((said.err[-500:] or said.out[-500:] for said in done if said.code), "")


def areas_of(project: Path) -> list[Area]:
    """Return what is attacked: folders by their places in the project."""
    run = str(min(project.glob("reports/2*")).relative_to(project))
    part = f".{{}}.{os.getpid()}.{threading.get_ident()}.part"
    waiting = [f"proposed/{name}" for name in (".part", part.format(".gitignore"))]
    bundle = f"{MODEL}.gate"
    return [
        Area("reports", (), RUN),
        Area(run, ("reruns", "explained", part.format("plan.json")), RUN),
        Area(f"{run}/probes", (), RUN),
        Area("golden", (part.format("index.json"), *waiting), GOLDEN),
        Area("golden", (), GOLDEN),
        Area("bundles", (bundle, f".{bundle}.{os.getpid()}.part", f".{bundle}"), BUNDLE),
    ]


def drawn(project: Path, area: Area, chance: random.Random) -> tuple[str, str]:
    """Return which file or folder becomes a link, and what that leads to."""
    folder = project / area.folder
    below = folder.iterdir() if area.folder in ("reports", "bundles") else folder.rglob("*")
    there = [str(path.relative_to(project)) for path in sorted(below)]
    new = [f"{area.folder}/{name}" for name in area.made]
    place = chance.choice(new if new and chance.random() < 0.5 else there)
    return place, chance.choice(["the same", "missing"] if os.path.lexists(project / place) else ["folder", "missing"])


def attacked(project: Path, whole: Path, outside: Path, place: str, leads_to: str, words: Sequence[str]) -> list[str]:
    """Plant the link, call a command, and return what is wrong then."""
    for folder in (project, outside):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, project, symlinks=True)
    link, target = project / place, outside / "target"
    shutil.copytree(whole, outside / "whole", symlinks=True)
    (target / MODEL).mkdir(parents=True)
    (target / MODEL / "kept").write_text("kept")
    if os.path.lexists(link):
        remove(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to({"the same": outside / "whole" / place, "folder": target, "missing": outside / "new"}[leads_to])
    before = content(outside)
    said = called(project, words)
    after = content(outside)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    wrong = [f"changed {', '.join(changed[:3])}"] if changed else []
    if said.code not in stored.DOCUMENTED or "Traceback" in said.err:
        wrong.append(f"exit code {said.code}: {said.err[-300:]}")
    return wrong


def content(folder: Path) -> Mapping[str, object]:
    """Return what lies in a folder: kind, permissions, time of change and bytes by path."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, status.st_size, data)
    return found


def called(project: Path, words: Sequence[str]) -> stored.Said:
    """Return how a command ended whose words name files of the project."""
    bundles = project / "bundles"
    places = {
        "ARTIFACTS": str(project / "artifacts"),
        "BUNDLE": str(bundles / f"{MODEL}.gate"),
        "BUNDLES": str(bundles),
    }
    return stored.called(project, [places.get(word, word) for word in words])
