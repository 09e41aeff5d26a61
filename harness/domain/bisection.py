"""What ``bisect`` answers about one red cell."""

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.cure import Cure
from harness.domain.divergence import Divergence
from harness.domain.reduction import Culprit, Reduction
from harness.domain.rewriting import Rewritten


class Answer(StrEnum):
    """Whose doing a red cell is, as far as was found."""

    NOTHING = "nothing to find"
    OPERATOR = "operator"
    EXECUTOR = "executor"
    NODES = "nodes"
    LOADING = "loading"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reproducer:
    """A program that shows a failure by itself; ``operator`` is what it is about.

    Attributes:
        folder: relative to the run; empty where there is none: ``note`` says why.
        old, new: what it said in either release, under the settings of each.
        note: what else to know of it, such as that the settings make the failure and not the release.
    """

    operator: str
    folder: str = ""
    old: str = ""
    new: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bisection:
    """What ``bisect`` found about one model.

    Attributes:
        old, new: names of the environments.
        symptom: the findings of the cell, one line each.
        divergence: where the call was made node by node.
        refusals: for a model that does not load: operator, line and how it is reached, one line each.
        smallest: the archive of one node that is refused as well, where one could be made.
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
    reproducers: tuple[Reproducer, ...] = ()
    smallest: Culprit | None = None
    reduction: Reduction | None = None
    cures: tuple[Cure, ...] = ()
    rewrites: tuple[Rewritten, ...] = ()
    notes: tuple[str, ...] = ()
