"""The report as a comment on a pull request: at most 22 lines of markdown, each cause once."""

from collections.abc import Iterator, Sequence

from harness.core.outcome import Status
from harness.core.report import BaselineReport, CellTrend, RunReport
from harness.core.text import first_few
from harness.core.verdict import Cause
from harness.report.backends.markdown import render_markdown
from harness.report.document import Cell, Document, Fact, Part, Row, Table, Verdict, place
from harness.report.documents.screen import news_parts
from harness.report.excess import by_excess
from harness.report.words.in_short import in_short
from harness.report.words.phrases import beyond_words, shorten
from harness.report.words.red_cells import run_directory
from harness.report.words.summary import count_words, decision_words, headline, known_failures, pair_words, reason_words
from harness.report.words.to_upgrade import expectation, owners_of, rewritten_files, steps
from harness.verdict.since import gone_models

MARK = "<!-- torchscript-gate -->"
"""First line: by it a bot finds its comment again and replaces it."""
MOST_LINES, CAUSES_SHOWN, NAMED = 22, 6, 3
AROUND = 8
"""Lines of mark, title, decision and the table's head, and between them."""
CHANGES = (CellTrend.NEW, CellTrend.GREW, CellTrend.FIXED)
_TEXT_LIMIT, _REASON_LIMIT = 160, 400


def render_comment(report: RunReport, *, directory: str = "", page: str = "") -> str:
    """Return the comment; with any number of models far below the 65,536 characters that GitHub takes.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        page: address of its page on the web, to which the rows then lead: each cause, and the first of its cells.
    """
    first = list(_since(report))
    last = list(_after(report, page or f"{run_directory(report, directory)}/report.html", is_link=bool(page)))
    shown = min(CAUSES_SHOWN, MOST_LINES - AROUND - len(first) - bool(first) - len(last))
    shown -= shown < min(len(report.causes), CAUSES_SHOWN)
    # Causes that keep it from green come first, each with a step; a path within the run, whose folder stands below.
    to_do = {at: f"{at}. {step.whole}" for at, step in enumerate(steps(report, "."), start=1)}
    rows = [
        Row(
            cells=(
                Cell(shorten(cause.title, _TEXT_LIMIT), link=page and f"{page}#cause-{at}"),
                Cell(f"{len(cause.models)}: {_models(report, cause)}", link=page and f"{page}#{place(cause.cells[0])}"),
                beyond_words(cause.beyond) if cause.beyond is not None else "",
                to_do.get(at) or shorten(cause.fix or _what(cause), _REASON_LIMIT),
            )
        )
        for at, cause in enumerate(report.causes[:shown], start=1)
    ]
    rest = len(report.causes) - shown
    rows += [Row(cells=(f"and {rest} more", "", "", ""))] if rest > 0 else []
    heads = ("cause", "models", "over the limit", "to upgrade" if to_do else "fix")
    table = [Table(heads=heads, rows=tuple(rows), numbers=(2,))] if rows else []
    document = Document(
        title=shorten(pair_words(report), _TEXT_LIMIT),
        verdict=Verdict(
            word=shorten(headline(report), _TEXT_LIMIT),
            means=decision_words(report),
            reason=shorten(reason_words(report), _REASON_LIMIT),
        ),
        parts=(Part(title="", blocks=(*first, *table, *last)),),
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
        told += [f"undecided now: {_listed(open_)}"] if (open_ := _undecided(report.baseline)) else []
        told += [f"not in this run: {_listed(gone)}"] if gone else []
        yield Fact("new since the baseline:", "; ".join(told))
    known = [f"{model} ({who})" for model, who in known_failures(report).items()]
    if known:
        yield Fact("known, let pass:", _listed(known))


def _after(report: RunReport, whole: str, *, is_link: bool) -> Iterator[Fact]:
    """Yield what stands below the causes, the last of it where the ``whole`` report is."""
    if expectation(report):
        yield Fact("then", expectation(report))
    yield from (Fact("price", shorten(text, _REASON_LIMIT)) for text in rewritten_files(report)[:1])
    yield from (Fact(label, shorten(words, _REASON_LIMIT)) for label, words in in_short(report))
    yield Fact("models", count_words(report))
    yield from _beside(report)
    for part in news_parts(report, by_excess(report)):
        if part.blocks:
            names = [block.text for block in part.blocks if isinstance(block, Fact)]
            yield Fact(f"{len(part.blocks)} {part.title}", _listed(names))
    yield Fact("all of it", whole, form="path", link=whole if is_link else "")


def _undecided(baseline: BaselineReport) -> list[str]:
    """Return the models of which the run does not say what the baseline said."""
    changes = (item for item in baseline.changes if item.change is CellTrend.UNDECIDED)
    return list(dict.fromkeys(item.model for item in changes if item.now is Status.INCONCLUSIVE))


def _beside(report: RunReport) -> Iterator[Fact]:
    """Yield which models a green count says little of: they fail in both releases, or were hardly compared."""
    same = [row.model for row in report.judgement.rows if row.status is Status.SAME_FAIL]
    if same:
        yield Fact("fail in both releases:", _listed(same))
    if report.baseline is not None and report.baseline.now_guessed:
        yield Fact("requests given before, guessed now:", _listed(report.baseline.now_guessed))
    empty = dict.fromkeys(cell.model for cell in report.judgement.cells if "no_value" in cell.kinds)
    if empty:
        yield Fact("answer only NaN, infinity or nothing:", _listed(list(empty)))


def _what(cause: Cause) -> str:
    """Return what is the matter where only that says what to do: of what is not decided."""
    what = next((text for label, text in cause.evidence if label == "what"), "")
    return what if cause.status is Status.INCONCLUSIVE and what != cause.title else ""


def _models(report: RunReport, cause: Cause) -> str:
    owners = owners_of(report, cause)
    return f"{_listed(cause.models)}{f', owner {_listed(owners)}' if owners else ''}"


def _listed(names: Sequence[str]) -> str:
    return first_few([shorten(name, 90) for name in names], NAMED)
