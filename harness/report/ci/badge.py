"""The report as a badge: the JSON that https://shields.io/badges/endpoint-badge draws."""

from harness.decision.counting import counts_of
from harness.domain.outcome import Decision, Status
from harness.domain.report import RunReport
from harness.domain.text import counted, prose
from harness.errors import ExitCode
from harness.report.json.text import json_text
from harness.report.text.table import table_rows
from harness.report.words.phrases import shorten
from harness.report.words.summary import pair_words

_LIMIT = 60
_COLOURS = {
    Decision.UPGRADE_OK: "brightgreen",
    Decision.CELL_OK: "green",
    Decision.OK_WITH_MITIGATION: "yellow",
    Decision.BLOCKED: "red",
    Decision.INCONCLUSIVE: "orange",
    Decision.NOTHING_TESTED: "orange",
}
_GREEN = ("brightgreen", "green")


def render_badge(report: RunReport) -> str:
    """Return the badge as JSON: the pair, the decision and how many models are behind it.

    ``isError`` is true, and the colour none of the green ones, wherever the exit code is not 0.
    """
    judgement = report.judgement
    passed = judgement.exit_code == ExitCode.COMPATIBLE
    colour = _COLOURS[judgement.decision]
    return json_text(
        {
            "schemaVersion": 1,
            "label": shorten(prose(pair_words(report)), _LIMIT),
            "message": shorten(f"{judgement.decision.value.lower()}: {_models(report)}", _LIMIT),
            "color": colour if passed or colour not in _GREEN else "red",
            "isError": not passed,
        }
    )


def _models(report: RunReport) -> str:
    """Return how many models there are, and how many of them are not PASS, the worst first."""
    rows = table_rows(report)
    counts = counts_of([row.verdict for row in rows])
    others = [f"{count} {word}" for word, count in counts.items() if word != Status.PASS.value]
    return ", ".join([counted(len(rows), "model"), *others])
