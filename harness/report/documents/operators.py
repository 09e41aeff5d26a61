"""Changes of operators as a document: how many of what kind, then each with the smallest call that shows it."""

from collections.abc import Iterator, Sequence

from harness.core.atlas import Kind, OperatorChange, OperatorChanges
from harness.core.text import counted
from harness.report.document import ALL, ALWAYS, MORE, Document, Fact, Part, Row, Table, Verdict, commands, facts

LIMITS = (
    "sampled, not proved: an operator without a change answered these calls alike, one that is not named was not"
    " sampled, and a release between two that were measured may have brought the change"
)


def operators_document(result: OperatorChanges) -> Document:
    """Return the document."""
    rows = [
        Row(cells=(str(kind), str(len(of_kind)), str(len({change.operator for change in of_kind}))))
        for kind in Kind
        if (of_kind := [change for change in result.changes if change.kind is kind])
    ]
    changed = {change.operator for change in result.changes}
    words = f"of {counted(len(result.calls), 'overload')}, {len(changed)} answered some call otherwise"
    return Document(
        title=f"Operators: torch {result.old} to {result.new}",
        verdict=Verdict(means=words),
        full="--format json",
        parts=(
            Part(
                title="Changes",
                blocks=(
                    Table(heads=("kind", "changes", "operators"), rows=tuple(rows), numbers=(1, 2), noun="kind"),
                    *facts([("measured", f"{', '.join(result.releases)} on {result.measured}")]),
                    *facts([("calls", f"{sum(result.calls.values())} of {counted(len(result.calls), 'overload')}")]),
                    Fact("limits", LIMITS),
                ),
            ),
            Part(title="Operators", blocks=(_table(result.changes),)),
            Part(title="Examples", blocks=tuple(_examples(result)), noun="change"),
        ),
    )


def _table(changes: Sequence[OperatorChange]) -> Table:
    rows = tuple(
        Row(
            cells=(
                change.operator,
                str(change.kind),
                ", ".join(change.features) or "plain arguments",
                " ".join(change.dtypes),
                change.new,
            ),
            importance=MORE + at,
        )
        for at, change in enumerate(changes)
    )
    return Table(heads=("operator", "what differs", "on", "dtypes", "since"), rows=rows, noun="change")


def _examples(result: OperatorChanges) -> Iterator[Part]:
    for change in result.changes:
        yield _change(change, ALWAYS if result.operator else ALL)


def _change(change: OperatorChange, importance: int) -> Part:
    lines = [
        *facts([("since", f"{change.new}, after {change.old}"), ("dtypes", ", ".join(change.dtypes))]),
        *facts([("when", ", ".join(f"{name}={value}" for name, value in change.when.items()))]),
        *facts([("calls", f"{change.calls}{_size(change)}")]),
        *commands([("Python", change.call)]),
        *facts([(change.old, change.before), (change.new, change.after)]),
    ]
    features = f" on {', '.join(change.features)}" if change.features else ""
    return Part(title=f"{change.operator}{features}: {change.kind}", blocks=tuple(lines), importance=importance)


def _size(change: OperatorChange) -> str:
    return "" if not change.tolerances else f", up to {change.tolerances:.3g} times what rounding explains"
