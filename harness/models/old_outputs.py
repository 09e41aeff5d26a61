"""Outputs kept of the old release, with one interface for golden records and golden bundles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.domain.environment import Fingerprint
from harness.domain.golden import Trust
from harness.domain.models import Artifact
from harness.domain.probe import ServingProfile
from harness.tensors.outputs import Outputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """What the old release answered with one model.

    Attributes:
        golden: what it is judged by.
        repeats, other_threads: what it answered again, and with other thread counts; empty where nobody kept it.
        reference: of the float64 run, None without one.
        numerics: the settings that change numbers, as its worker reported them.
    """

    golden: Outputs
    repeats: tuple[Outputs, ...] = ()
    other_threads: tuple[Outputs, ...] = ()
    reference: Outputs | None = None
    numerics: Mapping[str, Any] = field(default_factory=dict)


class Provenance(Protocol):
    """Who made what was kept of one model, and where."""

    @property
    def producer(self) -> Fingerprint:
        """The old environment."""
        ...

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda"``; what was made on one never judges the other."""
        ...

    @property
    def profile(self) -> ServingProfile | None:
        """The serving profile under which it was made; None if it was not recorded."""
        ...


class Records(Protocol):
    """A source of kept outputs that can replace the old environment."""

    def title(self) -> str:
        """Return what the report calls it."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return the models of which something was kept."""
        ...

    def record(self, model: str) -> Provenance:
        """Return what produced the kept outputs of ``model``.

        Raises:
            GoldenError: nothing was kept, or it is damaged.
        """
        ...

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return why what was kept of ``models`` is trusted; empty if it was never accepted, as with bundles."""
        ...

    def unpack(self, model: str, destination: Path) -> Artifact | None:
        """Write artifact and inputs where a worker can read them; return the artifact, None where it was not kept."""
        ...

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return what the old release answered; ``folder`` is where ``unpack`` wrote."""
        ...
