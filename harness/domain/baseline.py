"""What has changed since another run, cell by cell. Told beside a decision; it is no part of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.outcome import Decision, Status


class Change(StrEnum):
    """What a cell came to since the other run, in the order in which a reader wants them."""

    NEW = "new"
    FLAKY = "flaky"
    UNDECIDED = "undecided"
    FIXED = "fixed"
    GONE = "gone"
    ADDED = "added"
    NOT_COMPARABLE = "not_comparable"
    UNCHANGED = "unchanged"

    @property
    def words(self) -> str:
        """For a reader: ``not comparable``."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, kw_only=True, slots=True)
class CellChange:
    """One cell in both runs.

    Attributes:
        was, now: its status as the reports have it; None where that run does not have the cell.
        why: what the change is read from; empty where the two statuses say it all.
    """

    cell: str
    model: str
    scenario: str
    change: Change
    was: Status | None = None
    now: Status | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineReport:
    """A run beside an earlier one.

    Attributes:
        run: name of the other run; ``decision`` and ``started_at`` are its own.
        differences: what else is not alike in the two runs, a sentence each.
        other_artifacts: models whose artifact is another one than it was.
        changes: in the order of ``Change``; cells that are unchanged only where there is something to say of them.
        counts: change -> how many cells, those that are unchanged too.
    """

    run: str
    started_at: str
    decision: Decision
    differences: tuple[str, ...] = ()
    other_artifacts: tuple[str, ...] = ()
    changes: tuple[CellChange, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
