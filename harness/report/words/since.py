"""What has changed since another run, as labelled texts; console, markdown and JUnit only lay them out."""

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.core.outcome import Status
from harness.core.report import BaselineReport, CellChange, CellTrend, RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import CellVerdict
from harness.report.words.phrases import scenario_words
from harness.verdict.machine import disturbing, touching

LISTED = 20
NAMES_SHOWN = 5
QUIET = (Status.PASS, Status.SAME_FAIL, Status.UNSUPPORTED)
# What is listed one by one; for the others the number is enough where there are many.
TOLD = (CellTrend.NEW, CellTrend.GREW, CellTrend.FLAKY, CellTrend.UNDECIDED, CellTrend.FIXED, CellTrend.GONE)


def since_words(report: RunReport) -> str:
    """Return how many cells changed in which way since the other run; empty without a baseline."""
    found = report.baseline
    if found is None:
        return ""
    always = (CellTrend.NEW, CellTrend.FIXED)
    said = [f"{count} {words}" for change, words, count in trend_counts(found) if count or change in always]
    return f"{', '.join(said)} (cells), since {found.run}, which was {found.decision.value}"


def trend_counts(found: BaselineReport) -> list[tuple[CellTrend, str, int]]:
    """Return (change, its words, how many cells); what only the other run left open stands apart."""
    counts = []
    for change in CellTrend:
        told = Counter(one.words for one in found.changes if one.change is change)
        apart = [(words, count) for words, count in told.items() if words != change.words]
        rest = found.counts.get(change.value, 0) - sum(count for _, count in apart)
        counts += [(change, change.words, rest), *((change, words, count) for words, count in apart)]
    return counts


def difference_lines(found: BaselineReport) -> tuple[str, ...]:
    """Return what else is not alike in the two runs, a sentence each."""
    names, guessed = found.other_artifacts, found.now_guessed
    return (
        *found.differences,
        *([f"another artifact: {first_few(names, NAMES_SHOWN)}"] if names else []),
        *([f"requests given before, guessed now: {first_few(guessed, NAMES_SHOWN)}"] if guessed else []),
    )


def since_lines(report: RunReport, *, listed: int = LISTED) -> tuple[tuple[str, str], ...]:
    """Return the other run, what is not alike, and the changed cells, in the order that a reader wants them.

    Args:
        listed: how many cells are told one by one.
    """
    found = report.baseline
    if found is None:
        return ()
    lines = [("baseline", since_words(report)), *(("differs", text) for text in difference_lines(found))]
    shown = _together(found)
    lines += [(cells[0].words, _words(cells)) for cells in shown[:listed]]
    left_out = len(found.changes) - sum(len(cells) for cells in shown[:listed])
    return (*lines, ("more", f"{counted(left_out, 'cell')}, in report.json")) if left_out else tuple(lines)


def _together(found: BaselineReport) -> list[list[CellChange]]:
    """Return the changes that are told: as one, cells of a model to which the same has happened, and all quietly gone.

    A run over a few models beside one over hundreds has many of those.
    """
    groups: dict[tuple[object, ...], list[CellChange]] = {}
    for one in told_changes(found):
        quietly = one.change is CellTrend.GONE and one.was in QUIET
        key = (one.change, one.why) if quietly else (one.change, one.model, one.was, one.now, one.why)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def told_changes(found: BaselineReport) -> Sequence[CellChange]:
    """Return the changes to list one by one: those that matter, and remarks on unchanged cells."""
    return [one for one in found.changes if one.change in TOLD or (one.change is CellTrend.UNCHANGED and one.why)]


def _words(cells: Sequence[CellChange]) -> str:
    """Return cells with both statuses, and the reason: ``bert, latency: PASS -> FAIL; ...``."""
    one, names = cells[0], list(dict.fromkeys(cell.model for cell in cells))
    if len(names) > 1:
        return f"{counted(len(cells), 'cell')} of {first_few(names, NAMES_SHOWN)}, none of them red; {one.why}"
    way = " -> ".join(status.value if status is not None else "not there" for status in (one.was, one.now))
    stages = ", ".join(scenario_words(cell.scenario) for cell in cells)
    return f"{one.model}, {stages}: {way}{f'; {one.why}' if one.why else ''}"


def change_of_cell(report: RunReport, cell: CellVerdict) -> tuple[tuple[str, str], ...]:
    """Return the line of a red cell that says whether it was red before; nothing without a baseline."""
    if report.baseline is None:
        return ()
    since = f"since {report.baseline.run}"
    found = next((one for one in report.baseline.changes if one.cell == cell.cell), None)
    if found is None:
        return (("baseline", f"unchanged {since}"),)
    was = f" ({found.was.value} before)" if found.was is not None else ""
    return (("baseline", f"{found.words} {since}{was}{f': {found.why}' if found.why else ''}"),)


def machine_lines(report: RunReport, cell: CellVerdict) -> tuple[tuple[str, str], ...]:
    """Return what happened to the machine meanwhile that a verdict is to be read with."""
    return tuple(("machine", f"{event.name}: {event.read}") for event in touching(report.during_run, cell))


def disturbed_words(report: RunReport) -> str:
    """Return what all times of a run are to be read with; empty where nothing was timed, or the machine was quiet."""
    if not any(model.latency is not None for model in report.models):
        return ""
    return "; ".join(_briefly(report))


def _briefly(report: RunReport) -> Iterator[str]:
    for event in disturbing(report.during_run):
        yield f"{event.name}: {event.read}"
