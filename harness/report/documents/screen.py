"""The first screen of a run's page: who is furthest over a limit, what is open, faster and slow to start."""

import math
from collections import Counter
from collections.abc import Sequence

from harness.core.report import RunReport
from harness.core.text import first_few
from harness.report.document import BAD, GOOD, OPEN, Fact, Part, anchor
from harness.report.documents.waivers import known_waivers
from harness.report.excess import ModelExcess, slow_starts, start_words, steady_calls
from harness.report.text.table import timed_of
from harness.report.words.phrases import beyond_words, percent

SHOWN, OF_ONE_CAUSE, NOTES_SHOWN, KNOWN_SHOWN, REVISION = 5, 2, 2, 3, 10


def screen_parts(report: RunReport, models: Sequence[ModelExcess]) -> tuple[Part, ...]:
    """Return the parts; ``models`` are all, the furthest over a limit first."""
    return _worst(report, models), *news_parts(report, models)


def _worst(report: RunReport, models: Sequence[ModelExcess]) -> Part:
    """Return the models furthest over a limit, a few of each cause before more of any; bars are logarithms."""
    over = [item for item in models if item.over and item.over[0].factor is not None]
    first = {model: cause.id for cause in reversed(report.causes) for model in cause.models}
    counts: Counter[str] = Counter()
    chosen: list[ModelExcess] = []
    others: list[ModelExcess] = []
    for item in over:
        cause = first.get(item.row.model, item.row.model)
        counts[cause] += 1
        (chosen if counts[cause] <= OF_ONE_CAUSE else others).append(item)
    shown = {item.row.model for item in (*chosen, *others)[:SHOWN]}
    ordered = [item for item in over if item.row.model in shown]
    ordered += [item for item in over if item.row.model not in shown]
    longest = math.log1p(max((item.over[0].factor or 0.0 for item in over), default=0.0)) or 1.0
    blocks = []
    for item in ordered:
        most = item.over[0]
        share = 100 * math.log1p(most.factor or 0.0) / longest
        blocks.append(
            Part(
                title=item.row.model,
                id=anchor(item.row.model),
                word=most.standing,
                tone=BAD if most.fails else OPEN,
                detail=beyond_words(most.beyond, brief=True),
                brief=f"{most.standing}: {most.words}{f', limit {most.limit}' if most.limit else ''}",
                blocks=(Fact(f"{share:.1f}", "%"),),
            )
        )
    known = known_waivers(report.waivers)
    waived = f", beside what is waived: {first_few(known, KNOWN_SHOWN)}" if known else ""
    nothing = f"Nothing measured is over a limit{waived}."
    return Part(title="Furthest over a limit", kind="worst", id="models", nothing=nothing, blocks=tuple(blocks))


def news_parts(report: RunReport, models: Sequence[ModelExcess]) -> tuple[Part, Part, Part]:
    """Return what is undecided, what is clearly faster, and what starts slower, the furthest first."""
    undecided = sorted((item for item in models if item.undecided), key=lambda item: -_open_to(item))
    lines = [
        Fact(
            "",
            f"{item.row.model}{f' up to {percent(_open_to(item))}' if _open_to(item) else ''}",
            link=f"#{anchor(item.row.model)}",
        )
        for item in undecided
    ]
    timed = steady_calls(report, models)
    faster = [
        Fact("", f"{item.model} {item.ratio.words}", link=f"#{anchor(item.model)}")
        for item in reversed(timed)
        if item.faster
    ]
    compared = any(item.old is not None and item.old.init_s and item.new.init_s for item in report.scenarios)
    starts = [Fact("", start_words(*item), link="#initialization") for item in slow_starts(report)]
    return (
        Part(title="not decided", kind="news", tone=OPEN, nothing="Everything was decided.", blocks=tuple(lines)),
        Part(
            title=f"faster ({timed_of(len(timed), len(models))})" if len(timed) < len(models) else "faster",
            kind="news",
            tone=GOOD,
            nothing="Nothing is clearly faster." if timed else "No latency was measured.",
            blocks=tuple(faster),
        ),
        Part(
            title="start slower",
            kind="news",
            tone=OPEN,
            nothing="No server group starts clearly slower." if compared else "No time of a start was compared.",
            blocks=tuple(starts),
        ),
    )


def _open_to(item: ModelExcess) -> float:
    """Return how much slower an undecided model may be, at most; 0 where nobody knows."""
    latency = item.row.facts.latency if item.row.facts is not None else None
    high = latency.shown.high if latency is not None and latency.shown is not None else 0.0
    return high if math.isfinite(high) else 0.0
