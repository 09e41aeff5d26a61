"""What a golden bundle says of itself: one model, what made it, and by what its outputs are to be judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from harness.domain.artifact import Artifact
from harness.domain.environment import Fingerprint
from harness.domain.probe import ServingProfile

SCHEMA_VERSION = 1
SUFFIX = ".gate"
ARTIFACT = "artifact.pt"
DESCRIPTION = "bundle.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """``bundle.json`` of a golden bundle.

    Attributes:
        model: its name; ``created``: the day in UTC; ``harness_version``: of the gate that packed it.
        producer: fingerprint of the old environment, without its environment variables.
        device, profile: under which the outputs were made.
        artifact: identity, versions, input sets; without paths.
        operators: names that the archive's code calls, as static reading finds them.
        files: sha256 of every other member, by its name.
        tags, devices, unordered, tolerance: as declared, see ``ModelDeclaration``.
        computes_in: dtype in which the model computes where it is not that of its outputs, else None.
        numerics: the settings that change numbers, as the old side's worker told them.
    """

    schema_version: int = SCHEMA_VERSION
    model: str
    harness_version: str
    created: date
    producer: Fingerprint
    device: str
    profile: ServingProfile
    artifact: Artifact
    operators: tuple[str, ...]
    files: Mapping[str, str]
    tags: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu", "cuda")
    unordered: tuple[str, ...] = ()
    tolerance: float | None = None
    computes_in: str | None = None
    numerics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def made_by(self) -> str:
        """What made it, e.g. ``torch 2.1.2+cu121 on 2026-11-21``."""
        return f"torch {self.producer.torch} on {self.created.isoformat()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """What became of one model: its bundle, or ``why`` there is none.

    ``note`` says how the inputs were come by where nobody gave them.
    """

    model: str
    path: str = ""
    size_bytes: int = 0
    why: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """All models, in the order of the plan.

    ``notes`` say what was left out; ``evidence`` is the folder of what the workers left, where it was kept.
    """

    producer: Fingerprint
    device: str
    rows: tuple[Packed, ...]
    notes: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def complete(self) -> bool:
        """Whether every model was packed."""
        return all(row.path for row in self.rows)
