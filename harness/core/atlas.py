"""Changes of operators from release to release, as they were measured call by call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What differs between two releases' answers of one call, what would hurt most first."""

    LOST = "crash or hang"
    REFUSED = "refused"
    DTYPE = "dtype"
    SHAPE = "shape"
    NAN = "NaN elsewhere"
    INFINITY = "infinities elsewhere"
    VALUES = "values"
    ORDER = "order"
    STREAM = "random stream"
    ALIASING = "aliasing"
    STRIDES = "strides"
    ACCEPTED = "accepted"


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorChange:
    """An overload that answers otherwise in ``new``, the first release measured that does, than in ``old``.

    Attributes:
        operator: ``"aten::softshrink"``, ``"aten::add.Tensor"``.
        features: what is peculiar about the arguments that show it; empty: plain ones do.
        dtypes: of the first tensor, empty without one.
        calls: how many of those measured show it.
        tolerances: largest difference of values in units of what rounding explains; 0 where that is not asked.
        when: parameter -> the constant that all calls had that show it, and some had otherwise that do not.
        call: the smallest that shows it, in Python; empty where it ends a process: that is told in words only.
        before, after: what the two releases answer it.
    """

    operator: str
    kind: Kind
    old: str
    new: str
    features: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    calls: int = 1
    tolerances: float = 0.0
    when: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""
    before: str = ""
    after: str = ""

    @property
    def name(self) -> str:
        """The operator as code names it: without the overload."""
        return self.operator.partition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Atlas:
    """What was measured.

    Attributes:
        releases: in order; each was compared with the one before it.
        measured: where and how.
        calls: overload -> how many calls of it both releases of each pair answered, twice.
        changes: what hurts most first.
    """

    releases: tuple[str, ...]
    measured: str
    calls: Mapping[str, int]
    changes: tuple[OperatorChange, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorChanges:
    """What the atlas has on the way from one release to another.

    ``operator``: the only one that was asked for, empty for all; ``calls``: as of ``Atlas``, of those asked for.
    """

    old: str
    new: str
    operator: str = ""
    releases: tuple[str, ...]
    measured: str
    calls: Mapping[str, int]
    changes: tuple[OperatorChange, ...]
