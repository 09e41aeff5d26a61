"""Which measured changes of operators a model may meet: a hint where to look, and never a verdict.

What reading can exclude is left out: an operator that is not called, a dtype that no tensor of the file has, a constant
that the code gives otherwise. So are layouts and shapes that only a request would show.
"""

from collections.abc import Iterable

from harness.checks.prediction.semantics import changes_between
from harness.core.archive import ArchiveFacts, OperatorUse
from harness.core.atlas import Kind, OperatorChange
from harness.core.prediction import ANSWERS_OTHERWISE, StaticFinding, Weight

MOST = 3
"""Of one file."""
HARMLESS = (Kind.ACCEPTED, Kind.STRIDES, Kind.ALIASING, Kind.STREAM)
"""Random streams stand in ``semantics``, which knows of whole families."""
MET: tuple[tuple[str, ...], ...] = ((), ("NaN",), ("infinity",))
"""Peculiarities of arguments that a request may have in production without anybody planning it."""
LEAST = 10.0
"""Tolerances below which other values are for the models whose requests show them."""


def risks(facts: ArchiveFacts, changes: Iterable[OperatorChange], old: str, new: str) -> tuple[StaticFinding, ...]:
    """Return the risks of a file that goes from ``old`` to ``new``, the gravest first."""
    known = {change.operator for change, _ in changes_between(old, new)}
    uses = {use.name: use for use in reversed(facts.operators) if use.name not in known}
    dtypes = {group.dtype for group in facts.storages} | {"float32"}
    ranked: dict[str, StaticFinding] = {}
    for change in changes:
        use = uses.get(change.name)
        if use is not None and change.name not in ranked and _may_meet(change, dtypes):
            ranked[change.name] = _finding(change, use)
    return tuple(ranked.values())[:MOST]


def _may_meet(change: OperatorChange, dtypes: set[str]) -> bool:
    if change.kind in HARMLESS or change.features not in MET:
        return False
    if change.kind is Kind.VALUES and 0 < change.tolerances < LEAST:
        return False
    return not change.dtypes or not dtypes.isdisjoint(change.dtypes)


def _finding(change: OperatorChange, use: OperatorUse) -> StaticFinding:
    constants = ", ".join(f"{name}={value}" for name, value in change.when.items())
    what = f" on {' and '.join(change.features)}" if change.features else ""
    what += f" with {constants}" if constants else ""
    return StaticFinding(
        kind=ANSWERS_OTHERWISE,
        weight=Weight.NOTE,
        subject=use.name,
        text=f"answers otherwise{what} since {change.new}: {change.kind}",
        what_to_do=f"see operators --old {change.old} --new {change.new} --operator {change.name.partition('::')[2]}",
        place=use.place,
        count=use.count,
        reach=use.reach,
    )
