"""A recording as phases, for a trace; pure."""

from collections.abc import Iterator

from harness.checks.interference.check import PAUSE, grid, losses, threshold
from harness.checks.interference.recording import Course, ProcessCourse, Recording, Series, on_grid
from harness.checks.interference.statistics import runs
from harness.core.outcome import Outcome
from harness.core.probe import Span
from harness.core.timeline import ProcessTrace, RunTrace

RUNS, WAITS, BLOCKED = "runs", "waits for a CPU", "blocked"


def timeline(recording: Recording) -> RunTrace:
    """Return when the watched process lost time, what its threads did, and then what every other process did."""
    edges_ns = grid(recording)
    lost, wants = losses(recording, edges_ns)
    watched = recording.watched
    pauses = [
        _span(f"lost: {loss}", edges_ns[[begin, end]], thread)
        for thread, (loss, series) in enumerate(lost.items())
        for begin, end in runs(series >= threshold(series, wants))
    ]
    threads = [span for place, course in enumerate(recording.threads) for span in _spans(course, edges_ns, place)]
    others = sorted(recording.others, key=lambda one: sum(part.amount_ns for part in one.ran), reverse=True)
    return RunTrace(
        run=f"{watched.name} ({watched.pid}) among {len(others)} processes",
        processes=(
            _process(watched, f"pauses of {watched.name} ({watched.pid})", pauses),
            _process(watched, _title(watched), threads),
            *(_process(one, _title(one), _spans(one, edges_ns, 0)) for one in others if one.ran or one.blocked),
        ),
    )


def _process(course: ProcessCourse, title: str, spans: "list[Span] | Iterator[Span]") -> ProcessTrace:
    return ProcessTrace(name=str(course.pid), side="", title=title, outcome=Outcome.COMPLETED, spans=tuple(spans))


def _title(course: ProcessCourse) -> str:
    return f"{course.command} ({course.pid})"


def _spans(course: Course, edges_ns: Series, thread: int) -> Iterator[Span]:
    cell_ns = edges_ns[1] - edges_ns[0]
    ran, waited, blocked = (on_grid(parts, edges_ns) / cell_ns for parts in (course.ran, course.waited, course.blocked))
    is_blocked = blocked >= PAUSE
    waits = (waited >= PAUSE) & ~is_blocked
    for phase, where in ((BLOCKED, is_blocked), (WAITS, waits), (RUNS, (ran > 0) & ~is_blocked & ~waits)):
        for begin, end in runs(where, bridge=0):
            yield _span(phase, edges_ns[[begin, end]], thread, int(ran[begin:end].sum() * cell_ns))


def _span(phase: str, ends_ns: Series, thread: int, cpu_ns: int = 0) -> Span:
    return Span(phase=phase, begin_ns=int(ends_ns[0]), end_ns=int(ends_ns[1]), cpu_ns=cpu_ns, thread=thread)
