"""The report as a comment on a pull request: at most 20 lines of markdown, each cause once."""

from collections.abc import Iterator, Sequence

from harness.core.report import CellTrend, RunReport
from harness.report.backends.markdown import render_markdown
from harness.report.document import Cell, Document, Fact, Part, Row, Table, Verdict, place
from harness.report.documents.screen import news_parts
from harness.report.excess import by_excess
from harness.report.words.phrases import beyond_words, shorten
from harness.report.words.red_cells import run_directory
from harness.report.words.since import gone_models
from harness.report.words.summary import count_words, decision_words, headline, known_failures, pair_words, reason_words
from harness.report.words.to_upgrade import expectation, rewritten_files, steps

MARK = "<!-- torchscript-gate -->"
"""First line: by it a bot finds its comment again and replaces it."""
CAUSES_SHOWN, NAMED = 6, 3
CHANGES = (CellTrend.NEW, CellTrend.GREW, CellTrend.FIXED)
_TEXT_LIMIT, _REASON_LIMIT = 160, 400


def render_comment(report: RunReport, *, directory: str = "", page: str = "") -> str:
    """Return the comment; with any number of models far below the 65,536 characters that GitHub takes.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        page: address of its page on the web, to which the rows then lead: each cause, and the first of its cells.
    """
    first = list(_since(report))
    shown = CAUSES_SHOWN - len(first) - bool(first)
    # Causes that keep it from green come first, each with a step; a path within the run, whose folder stands below.
    to_do = {at: f"{at}. {step.whole}" for at, step in enumerate(steps(report, "."), start=1)}
    rows = [
        Row(
            cells=(
                Cell(shorten(cause.title, _TEXT_LIMIT), link=page and f"{page}#cause-{at}"),
                Cell(f"{len(cause.models)}: {_listed(cause.models)}", link=page and f"{page}#{place(cause.cells[0])}"),
                beyond_words(cause.beyond) if cause.beyond is not None else "",
                to_do.get(at, shorten(cause.fix, _TEXT_LIMIT)),
            )
        )
        for at, cause in enumerate(report.causes[:shown], start=1)
    ]
    rest = len(report.causes) - shown
    rows += [Row(cells=(f"and {rest} more", "", "", ""))] if rest > 0 else []
    heads = ("cause", "models", "over the limit", "to upgrade" if to_do else "fix")
    table = [Table(heads=heads, rows=tuple(rows), numbers=(2,))] if rows else []
    then = [Fact("then", expectation(report))] if expectation(report) else []
    then += [Fact("price", shorten(text, _REASON_LIMIT)) for text in rewritten_files(report)[:1]]
    news = [
        Fact(
            f"{len(part.blocks)} {part.title}",
            _listed([block.text for block in part.blocks if isinstance(block, Fact)]),
        )
        for part in news_parts(report, by_excess(report))
        if part.blocks
    ]
    beside = (Fact("models", count_words(report)), *news)
    whole = page or f"{run_directory(report, directory)}/report.html"
    document = Document(
        title=shorten(pair_words(report), _TEXT_LIMIT),
        verdict=Verdict(
            word=shorten(headline(report), _TEXT_LIMIT),
            means=decision_words(report),
            reason=shorten(reason_words(report), _REASON_LIMIT),
        ),
        parts=(
            Part(title="", blocks=(*first, *table, *then, *beside, Fact("all of it", whole, form="path", link=page))),
        ),
    )
    return f"{MARK}\n{render_markdown(document, depth=3, live=False)}"


def _since(report: RunReport) -> Iterator[Fact]:
    """Yield what a reader of a change asks first: what it has broken, made worse and mended, and what was known."""
    if report.baseline is not None:
        told = []
        for change in CHANGES:
            why = {item.model: item.why for item in reversed(report.baseline.changes) if item.change is change}
            models = [f"{model} ({why[model]})" if why[model] else model for model in reversed(why)]
            prefix = "" if change is CellTrend.NEW else f"{change.words}: "
            told += [f"{prefix}{_listed(models)}"] if models else [] if prefix else ["nothing"]
        gone = gone_models(report)
        told += [f"no longer there: {_listed(gone)}"] if gone else []
        yield Fact("new since the baseline:", "; ".join(told))
    known = [f"{model} ({who})" for model, who in known_failures(report).items()]
    if known:
        yield Fact("known, let pass:", _listed(known))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(shorten(name, 90) for name in names[:NAMED]) + more
