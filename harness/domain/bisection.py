"""What ``bisect`` answers about one red cell."""

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.cure import Cure
from harness.domain.divergence import Divergence
from harness.domain.reduction import Reduction
from harness.domain.rewriting import Rewritten


class Answer(StrEnum):
    """Whose doing a red cell is, as far as was found."""

    NOTHING = "nothing to find"
    OPERATOR = "operator"
    EXECUTOR = "executor"
    LOADING = "loading"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reproducer:
    """A program that runs one operator by itself; ``said`` is what it answered in the old and in the new release.

    ``folder`` is relative to the run and empty where there is none: ``note`` says why.
    """

    operator: str
    folder: str = ""
    old: str = ""
    new: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchTried:
    """A JIT switch, and whether the symptom is gone under it; ``note`` says what is left."""

    name: str
    cures: bool
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """What ``bisect`` found about one model.

    Attributes:
        old, new: names of the environments.
        symptom: the findings of the cell, one line each.
        divergence: where the call was made node by node.
        refusals: for a model that does not load: operator, line and how it is reached, one line each.
        switches: those that were tried, where no operator is to blame.
        reduction: the few nodes whose optimised program shows it.
        cures: settings that take the symptom away, priced; ``rewrites``: of the guilty operators.
        notes: what else a reader should know.
    """

    model: str
    old: str
    new: str
    answer: Answer
    symptom: tuple[str, ...] = ()
    divergence: Divergence | None = None
    refusals: tuple[str, ...] = ()
    switches: tuple[SwitchTried, ...] = ()
    reproducers: tuple[Reproducer, ...] = ()
    reduction: Reduction | None = None
    cures: tuple[Cure, ...] = ()
    rewrites: tuple[Rewritten, ...] = ()
    notes: tuple[str, ...] = ()
