"""The concurrency timeline: a lane per thread, phases in colours, and what never ended, marked."""

import math
from collections.abc import Iterator, Sequence

from harness.core.outcome import Outcome
from harness.core.probe import Span
from harness.core.timeline import Timeline
from harness.report.charts.svg import Scale, box, drawing, element, hint, lines, text, ticks
from harness.report.document import Figure
from harness.report.words.phrases import seconds, shorten

WIDTH = 900
PHASES = {"load": "loads", "prepare": "prepares", "call": "calls", "serve": "serves", "barrier": "waits for the start"}
"""Phase -> what a thread does in it, in the legend; every other phase is drawn as ``other``."""
_LEFT, _RIGHT, _LANE, _TOP = 70, 12, 26, 6
_NAMED_LOADS = 40
_SHARED = 6
_GAP = 0.4
_END = {
    Outcome.HANG: "never ended",
    Outcome.STARVED: "did not end",
    Outcome.CRASH: "crashed here",
    Outcome.OUT_OF_MEMORY: "ran out of memory here",
}
# What encloses others is drawn first and what is short last.
_LAYERS = ("serve", "barrier", "prepare", "other", "call", "load")


def common_end(timelines: Sequence[Timeline]) -> int:
    """Return the end of the axis that all can share, in nanoseconds; 0 where one would be a sliver beside another."""
    ends = [max((span.end_ns for span in item.spans), default=0) for item in timelines]
    return max(ends) if ends and max(ends) <= _SHARED * min(ends) else 0


def timeline_chart(timeline: Timeline, shared_end_ns: int = 0) -> str:
    """Return the drawing of one process; empty where nothing was recorded."""
    spans = timeline.spans
    if not spans:
        return ""
    threads = sorted({span.thread for span in spans})
    end_ns = max(shared_end_ns, *(span.end_ns for span in spans))
    across = Scale(0, max(1, end_ns), _LEFT, WIDTH - _RIGHT)
    base = _TOP + _LANE * len(threads)
    parts = [*_axis(across, base, end_ns)]
    for lane, thread in enumerate(threads):
        y = _TOP + _LANE * lane
        parts.append(text(f"thread {thread}", _LEFT - 8, y + 17, "end"))
        mine = [span for span in spans if span.thread == thread]
        parts += _phases([span for span in mine if span.finished], across, y)
        parts += _unfinished([span for span in mine if not span.finished], timeline.outcome, across, y)
    label = f"{len(threads)} threads over {seconds(end_ns * 1e-9)}, {timeline.side} release"
    return drawing(label, WIDTH, base + 22, *parts)


def _axis(across: Scale, base: float, end_ns: int) -> Iterator[str]:
    places = [(across(value_s * 1e9), value_s) for value_s in ticks(0, end_ns * 1e-9, 6)]
    yield lines([(x, _TOP, x, base) for x, _ in places], "grid")
    for x, value_s in places:
        yield text(seconds(value_s), x, base + 14, "middle" if x < across.end - 16 else "end")


def _phases(spans: Sequence[Span], across: Scale, y: float) -> Iterator[str]:
    """Yield one shape per phase, of all its spans; a load has one of its own, with its model, while there is room."""
    kinds: dict[str, list[Span]] = {}
    for span in spans:
        kinds.setdefault(span.phase if span.phase in PHASES else "other", []).append(span)
    for kind in _LAYERS:
        found = kinds.get(kind, [])
        if kind == "load" and len(found) <= _NAMED_LOADS:
            yield from (_load(span, across, y) for span in found)
        elif found:
            drawn = "".join(_bar(begin, end, y, kind) for begin, end in _merged(found, across))
            yield element("path", d=drawn, class_=f"phase {kind}")


def _load(span: Span, across: Scale, y: float) -> str:
    said = hint(f"{span.model}: load, {seconds((span.end_ns - span.begin_ns) * 1e-9)}")
    return element("path", said, d=_bar(across(span.begin_ns), across(span.end_ns), y, "load"), class_="phase load")


def _merged(spans: Sequence[Span], across: Scale) -> Iterator[tuple[float, float]]:
    """Yield where the spans begin and end in the drawing; those that no eye can tell apart are one."""
    begin = end = -math.inf
    for span in sorted(spans, key=lambda item: item.begin_ns):
        if across(span.begin_ns) - end > _GAP:
            if end > 0:
                yield begin, end
            begin = across(span.begin_ns)
        end = max(end, across(span.end_ns))
    yield begin, end


def _bar(begin: float, end: float, y: float, kind: str) -> str:
    """Return the outline of a phase; what encloses others is higher."""
    inset = 2 if kind in ("serve", "barrier") else 5
    return box(begin, y + inset, max(0.6, end - begin), _LANE - 2 * inset)


def _unfinished(spans: Sequence[Span], outcome: Outcome, across: Scale, y: float) -> Iterator[str]:
    """Yield what the thread was in when the process ended; of phases inside one another the innermost has the words."""
    words = _END.get(outcome, "did not end")
    for index, span in enumerate(sorted(spans, key=lambda item: item.begin_ns)):
        x = across(span.begin_ns)
        width = max(3.0, across.end - x)
        named = f"{shorten(span.model, 24)}: {span.phase} {words}"
        said = hint(f"{span.model}: {span.phase} {words}, {seconds((span.end_ns - span.begin_ns) * 1e-9)}")
        yield element("rect", said, x=x, y=y + 3, width=width, height=_LANE - 6, class_="stuck")
        if index == len(spans) - 1:
            room = width > 150
            place = (x + 8, "start") if room else (x - 6, "end") if x > _LEFT + 150 else (_LEFT + 4, "start")
            yield text(named, place[0], y + 17, place[1], "stuck-name")


def timeline_figure(item: Timeline, end_ns: int) -> Figure:
    """Return the drawing of a timeline with its caption; ``end_ns`` is where the axis of those beside it ends."""
    state = item.outcome.value.replace("_", " ") + (f": {item.hang.value}" if item.hang is not None else "")
    threads = len({span.thread for span in item.spans})
    more = f"; {item.left_out} shorter phases are not drawn" if item.left_out else ""
    phases = {span.phase for span in item.spans if span.finished}
    legend = [(name, words) for name, words in PHASES.items() if name in phases]
    legend += [("other", "other phases")] if phases - set(PHASES) else []
    legend += [("stuck", "did not end")] if any(not span.finished for span in item.spans) else []
    return Figure(
        title=f"{item.side} release, {threads} {'thread' if threads == 1 else 'threads'}",
        svg=timeline_chart(item, end_ns),
        note=f"round {item.round}: {state}{more}",
        legend=tuple(legend),
    )
