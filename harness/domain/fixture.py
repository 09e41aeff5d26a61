"""What a fixture file declares, as read from its source without running it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

GridValue = bool | int | float | str


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryMark:
    """A planted defect: judged by the golden of its healthy ``twin``, it must raise ``expect``."""

    twin: str
    expect: str
    scenario: str = "alone"
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakMark:
    """A genuine break between two releases, with its upstream source."""

    old: str
    new: str
    expect: str
    upstream: str
    direction: str = "backward"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDeclaration:
    """One model: where its factory is and how it becomes an artifact.

    Attributes:
        name: stable key, unique in its package.
        package_root: absolute folder that goes on ``sys.path`` in the exporter.
        module: dotted name of the fixture module, e.g. ``"fixtures.zoo.recommendation"``.
        factory: name of the decorated function.
        source: path relative to ``package_root``, with ``line`` for messages.
        source_digest: sha256 of the fixture file; part of the export's key.
        how: ``"script"`` or ``"trace"``.
        tags: words for ``-k``; the first is the default server group.
        covers: operators (no overload) that must occur in the artifact.
        requires: first torch release that can express the model, or None.
        devices: where it can run.
        unordered: paths of outputs whose order is no part of the answer, e.g. ``"output[*]"``.
        arguments: what the factory is called with, by the name of the parameter: one combination of a grid.
    """

    name: str
    package_root: str
    module: str
    factory: str
    source: str
    line: int
    source_digest: str
    how: str = "script"
    tags: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    requires: str | None = None
    seed: int = 0
    freeze: bool = False
    reset: str | None = None
    devices: tuple[str, ...] = ("cpu", "cuda")
    unordered: tuple[str, ...] = ()
    arguments: tuple[tuple[str, GridValue], ...] = ()
    canary: CanaryMark | None = None
    known_break: BreakMark | None = None

    @property
    def where(self) -> str:
        """``file:line`` of the declaration."""
        return f"{self.source}:{self.line}"
