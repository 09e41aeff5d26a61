"""What a policy says of one model, and what a policy made of a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.core.outcome import Decision, Status
from harness.core.plan import PolicySettings


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPolicy:
    """A policy with its rules worked in, for one model.

    ``settings``: limits, severities, gates and required scenarios that hold for it; no rules; ``by``: key -> where it
    stands, in words: ``"severity.values"`` -> ``'policy.toml, rule 2 (models = "vision")'``.
    """

    settings: PolicySettings = field(default_factory=PolicySettings)
    by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """One thing that the policy asks of a whole run: what, and what the run has of it."""

    what: str
    found: str
    met: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RegatedCell:
    """One cell that is judged otherwise than the run itself judged it; ``why`` in words."""

    cell: str
    was: Status
    now: Status
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Regated:
    """What a finished run had decided itself, before another policy judged it."""

    decision: Decision
    reason: str
    exit_code: int
    changes: tuple[RegatedCell, ...] = ()
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyReport:
    """The policy that decided a run, and what it made of it.

    Attributes:
        source: where it is written: ``[tool.compat.policy]``, or the file that was named.
        steady: ratio from which the steady call fails where the policy names none; ``undecided``: ratio from which the
            upper bound of an undecided one leaves the run undecided.
        floor_s: a call that is slower by less is no finding, where the policy names none.
        common: ratio from which the slowdown that all models share fails the run.
        demands: what it asks of the whole run.
        notes: what a reader must know of it, e.g. a rule that matches no model.
        regated: None where the run itself was judged by it.
    """

    source: str
    settings: PolicySettings
    steady: float
    undecided: float
    floor_s: float = 0.0
    common: float = math.inf
    demands: tuple[Demand, ...] = ()
    notes: tuple[str, ...] = ()
    regated: Regated | None = None
