"""The report as a comment on a pull request: at most 20 lines of markdown, each cause once."""

import re
from collections.abc import Iterator, Sequence

from harness.core.report import RunReport
from harness.core.text import prose
from harness.core.verdict import Cause
from harness.report.excess import by_excess, factor_words, slow_starts, start_words, steady_calls
from harness.report.markdown.text import code, escape, table_line
from harness.report.words.phrases import NO_REASON, shorten
from harness.report.words.red_cells import run_directory
from harness.report.words.summary import count_words, decision_words, headline, pair_words

MARK = "<!-- torchscript-upgrade-gate -->"
"""First line: by it a bot finds its comment again and replaces it."""
CAUSES_SHOWN, NAMED = 6, 3
_LIVE = re.compile(r"@\w|#\d|://|\bwww\.|\bGH-\d", re.IGNORECASE)
_NOT_IN_CODE = re.compile(r"[|`]")  # it would end the cell or the span
_TEXT_LIMIT, _REASON_LIMIT = 160, 400


def render_comment(report: RunReport, *, directory: str = "") -> str:
    """Return the comment; with any number of models far below the 65,536 characters that GitHub takes.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
    """
    causes = report.causes
    reason = _inert(report.judgement.reason or NO_REASON, _REASON_LIMIT)
    lines = [
        MARK,
        f"### {_inert(headline(report), _TEXT_LIMIT)}: {_inert(pair_words(report), _TEXT_LIMIT)}",
        "",
        f"{reason} _({_inert(decision_words(report), _TEXT_LIMIT)})_",
        "",
    ]
    if causes:
        lines += [table_line(("cause", "models", "over the limit", "cure")), table_line(("---", "---", "---:", "---"))]
        lines += [_cause(cause) for cause in causes[:CAUSES_SHOWN]]
        rest = len(causes) - CAUSES_SHOWN
        lines += [table_line((f"and {rest} more", "", "", ""))] if rest > 0 else []
        lines.append("")
    page = f"{run_directory(report, directory)}/report.html"
    return "\n".join([*lines, *_beside(report), f"- all of it: {code(page)}"]) + "\n"


def _inert(text: str, limit: int) -> str:
    """Return a text that also notifies nobody and links to nothing: such words stand in code spans, where GitHub does
    not look for them.
    """
    words = shorten(prose(text), limit).split(" ")
    return " ".join(code(_NOT_IN_CODE.sub("?", word)) if _LIVE.search(word) else escape(word) for word in words)


def _cause(cause: Cause) -> str:
    excess = factor_words(cause.excess) if cause.excess is not None else ""
    models = f"{len(cause.models)}: {_listed(cause.models)}"
    return table_line((_inert(cause.title, _TEXT_LIMIT), models, excess, _inert(cause.cure, _TEXT_LIMIT)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(_inert(name, 60) for name in names[:NAMED]) + more


def _beside(report: RunReport) -> Iterator[str]:
    """Yield what the models came to, and which are not decided, clearly faster, or start slower."""
    models = by_excess(report)
    yield f"- models: {count_words(report)}"
    undecided = [item.row.model for item in models if item.undecided]
    faster = [item.model for item in reversed(steady_calls(report, models)) if item.faster]
    for words, names in (("not decided", undecided), ("clearly faster", faster)):
        if names:
            yield f"- {len(names)} {words}: {_listed(names)}"
    starts = slow_starts(report)
    if starts:
        more = f" and {len(starts) - 1} more" if len(starts) > 1 else ""
        yield f"- starts slower: {_inert(start_words(*starts[0]), _TEXT_LIMIT)}{more}"
