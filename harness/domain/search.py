"""What a search asks for and what it is told."""

from dataclasses import dataclass
from enum import StrEnum


class Said(StrEnum):
    """The three answers to "does the symptom show?"; UNTESTABLE is never read as one of the others."""

    FAILS = "fails"
    PASSES = "passes"
    UNTESTABLE = "untestable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one run said; ``outcome`` tells failures apart, e.g. ``"hang"``, and is empty where nobody can."""

    said: Said
    outcome: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What repeated runs of one thing said.

    Attributes:
        fails, passes, untestable: how many runs said so.
        differently: runs that failed, but not as the failure that is searched for.
        outcomes: the outcomes of all failures, each once, in the order in which they came.
    """

    fails: int = 0
    passes: int = 0
    untestable: int = 0
    differently: int = 0
    outcomes: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """Runs that showed the failure or did not: what a rate refers to."""
        return self.fails + self.passes

    @property
    def runs(self) -> int:
        """All runs."""
        return self.judged + self.untestable + self.differently
