"""Looks once at what becomes of callers that load archives in other ways than the gate does."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.core.models import ArtifactKind
from harness.core.outcome import Outcome
from harness.core.probe import TORCH_JIT_LOAD, TORCH_LOAD
from harness.probing.facts import Effects, Probed, profile_of

# How a Python caller writes each way.
WRITTEN = {
    TORCH_JIT_LOAD: "torch.jit.load",
    TORCH_LOAD: "torch.load with its default weights_only",
    "buffer": "torch.jit.load of a buffer",
    "extra_files": "torch.jit.load with _extra_files",
    "no_map_location": "torch.jit.load without map_location",
}
NOT_COVERED = "torch.package and the mobile (lite) interpreter are not covered"

Tried = Mapping[str, Mapping[str, Any]]


def look_at_loaders(facts: Probed, effects: Effects) -> tuple[str, ...]:
    """Return what a caller must know that loads otherwise than the gate does; nothing where ``serving.load`` says how.

    One process of each release tries every way on one archive, the smallest that works: a way is refused, or warns,
    whatever is in the archive.
    """
    if any(profile_of(side, facts.plan).load for side in effects.environments):
        return ()
    works = [
        name
        for name, probe in facts.alone.items()
        if probe.models[0].outcome is Outcome.COMPLETED and facts.artifact(name).kind is ArtifactKind.TORCHSCRIPT
    ]
    if not works:
        return ()
    artifact = facts.artifact(min(works, key=lambda name: (_size(facts.artifact(name).path), name)))
    sides = {side: effects.runner(facts.requests.loaders(side, artifact)) for side in effects.environments}
    tried: dict[str, Tried] = {side: probe.data.get("loaders", {}) for side, probe in sides.items()}
    names = {side: environment.name for side, environment in effects.environments.items()}
    return loader_notes(tried["new"], tried.get("old") or None, names)


def _size(path: str) -> float:
    try:
        return Path(path).stat().st_size
    except OSError:  # a given file that is gone by now
        return math.inf


def loader_notes(new: Tried, old: Tried | None, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return notes on ways to load that are worse than before; none where torch.jit.load is refused too."""
    if new.get(TORCH_JIT_LOAD, {"error": "nobody looked"})["error"]:
        return ()
    since = f", and {names['old']} does not" if old is not None else ""
    refused: list[str] = []
    warned: dict[str, list[str]] = {}
    for way, words in WRITTEN.items():
        tried, before = new[way], (old or {}).get(way, {"error": "", "warns": ()})
        if tried["error"]:
            refused += [words] if not before["error"] else []
            continue
        for category in sorted(set(tried["warns"]) - set(before["warns"])):
            warned.setdefault(category, []).append(words)
    notes = [
        f"{names['new']} refuses TorchScript archives in {way}{since}: load them with torch.jit.load" for way in refused
    ]
    notes += [
        f"{names['new']} warns ({category}) in {', '.join(ways)}{since}: under -W error they do not load"
        for category, ways in warned.items()
    ]
    return (*notes[:-1], f"{notes[-1]}; {NOT_COVERED}") if notes else ()
