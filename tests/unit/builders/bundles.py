"""Golden bundles made by hand: healthy ones, and those that somebody changed."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.core.golden import RECORD, Declared, GoldenRecord, Source
from harness.core.probe import ServingProfile
from harness.artifacts.bundles import write_bundle
from harness.artifacts.old_outputs import Remembered
from harness.artifacts.tensors.outputs import Outputs, SideEffects
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_artifact


def answers(*values: float, changed: bool = False) -> Outputs:
    """Return two calls that answer the same; with ``changed``, the first one also changes its input."""
    outputs = golden_outputs(float32(*values), float32(*values))
    effects = {key: SideEffects() for key in outputs.calls}
    if changed:
        tree = outputs.calls["example", 0]
        effects["example", 0] = SideEffects(changed={"input[0]": tree}, shared=(("input[0]", "output"),))
    return replace(outputs, effects=effects)


REMEMBERED = Remembered(
    golden=answers(1, 2, 3, changed=True),
    repeats=(answers(1, 2, 4), answers(1, 2, 3)),
    other_threads=(answers(1, 2, 5),),
    reference=golden_outputs(float32(1, 2, 3).astype("float64")),
    numerics={"matmul_precision": "highest"},
)


DECLARED = Declared(tags=("ranking",), unordered=("output[*]",), tolerance=1e-3, computes_in="float16")


def described(model: str = "m", **changes: Any) -> GoldenRecord:
    """Return what a bundle says of itself before it is written."""
    defaults: dict[str, Any] = {
        "model": model,
        "producer": PRODUCER,
        "device": "cpu",
        "source": Source(run="", profile=ServingProfile(env={"SECRET": "token"})),
        "artifact": None,
        "inputs": [],
        "answers": [],
        "files": {},
        "declared": DECLARED,
        "numerics": {"matmul_precision": "highest"},
    }
    return GoldenRecord(**{**defaults, **changes})


def make_bundle(
    folder: Path, model: str = "m", remembered: Remembered = REMEMBERED, *, work: Path | None = None, **changes: Any
) -> Path:
    """Write a healthy bundle of ``model`` into ``folder``; what it is made of lies in ``work``."""
    artifact = write_artifact((work or folder) / "made-of", model)
    return write_bundle(folder, described(model, **changes), artifact, remembered)


def members_of(path: Path) -> dict[str, bytes]:
    """Return the members of a zip."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, changes: Mapping[str, bytes | None], *, record: Mapping[str, Any] | None = None) -> Path:
    """Write a bundle again with other members and right digests; None leaves one out.

    ``record`` overwrites keys of its ``record.json``.
    """
    members = {name: data for name, data in {**members_of(path), **changes}.items() if data is not None}
    if RECORD in members:
        files = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != RECORD}
        told = {**json.loads(members[RECORD]), "files": files, **(record or {})}
        members[RECORD] = json.dumps(told).encode()
    return write_members(path, members)


def write_members(path: Path, members: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> Path:
    """Write a zip of ``members``."""
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path
