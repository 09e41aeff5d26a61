"""Outputs of the old release that were kept: one interface for golden records and golden bundles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.artifacts.tensors.outputs import Outputs
from harness.core.environment import Fingerprint
from harness.core.golden import Trust
from harness.core.models import Artifact
from harness.core.probe import ServingProfile


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """What the old release answered for one model.

    Attributes:
        repeats, other_threads: its answers in repeats, and with other thread counts; empty if they were not kept.
        reference: of the float64 run, None without one.
        numerics: the settings that change numbers, as its worker reported them.
    """

    golden: Outputs
    repeats: tuple[Outputs, ...] = ()
    other_threads: tuple[Outputs, ...] = ()
    reference: Outputs | None = None
    numerics: Mapping[str, Any] = field(default_factory=dict)


class Provenance(Protocol):
    """What produced the kept outputs of one model."""

    @property
    def producer(self) -> Fingerprint: ...

    @property
    def device(self) -> str:
        """Name of a device; what was made on one never judges another."""
        ...

    @property
    def profile(self) -> ServingProfile | None:
        """The serving profile under which it was made; None if it was not recorded."""
        ...


class Records(Protocol):
    """A source of kept outputs that can replace the old environment."""

    def title(self) -> str: ...

    def names(self) -> tuple[str, ...]: ...

    def record(self, model: str) -> Provenance:
        """Return what produced the kept outputs of ``model``. Raises ``GoldenError``: nothing was kept, or damaged."""
        ...

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return why the outputs of ``models`` are trusted; empty if nobody accepted them, as with bundles."""
        ...

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write artifact and inputs where a worker can read them; its path is empty if the artifact was not kept."""
        ...

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return the kept outputs; ``folder`` is where ``unpack`` wrote."""
        ...
