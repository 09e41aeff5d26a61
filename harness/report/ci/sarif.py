"""An inspection as SARIF 2.1.0, for code scanning. Notes are left out; the archive's own lines are in the message.

GitHub keeps 5,000 results of a run and refuses a run with more than 25,000:
https://docs.github.com/en/code-security/code-scanning/troubleshooting-sarif-uploads/results-exceed-limit
"""

from collections.abc import Iterator
from urllib.parse import quote

from harness import __version__
from harness.domain.prediction import InspectedFile, Inspection, StaticFinding, StaticVerdict, Weight
from harness.domain.text import visible
from harness.report.json.text import json_text

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Weight.STOPS: "error", Weight.DOUBT: "warning", Weight.WARNING: "warning", Weight.NOTE: "note"}
MOST_RESULTS = 5_000
UNREADABLE, NOT_JUDGED = "unreadable", "not_torchscript"


def render_sarif(inspection: Inspection, *, most_results: int = MOST_RESULTS) -> str:
    """Return the SARIF log, ending with a newline.

    Args:
        most_results: of more than that the worst are kept, and a notification counts the others.
    """
    found = [result for file in inspection.files for result in _results(file)]
    worst = sorted(found, key=lambda result: result["level"] != "error") if len(found) > most_results else found
    results, left_out = worst[:most_results], len(worst[most_results:])
    rules = sorted({str(result["ruleId"]) for result in results})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "torchscript-upgrade-gate",
                        "version": __version__,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                **({"invocations": [_notified(left_out)]} if left_out else {}),
                "results": results,
            }
        ],
    }
    return json_text(log)


def _results(file: InspectedFile) -> Iterator[dict[str, object]]:
    if file.failure is not None:
        yield _result(file, UNREADABLE, "error", f"{file.failure.kind}: {file.failure.text}")
    elif file.advice:
        assert file.facts is not None
        yield _result(file, NOT_JUDGED, "warning", f"{file.facts.format}: {file.advice}")
    for side in sorted(file.verdicts):
        for finding in file.verdicts[side].findings:
            if finding.weight is not Weight.NOTE:
                yield _result(file, finding.kind, LEVELS[finding.weight], _words(file.verdicts[side], finding), finding)


def _notified(left_out: int) -> dict[str, object]:
    text = f"{left_out} more results are left out here, the least of them; --format json has all"
    notification = {"level": "warning", "message": {"text": text}}
    return {"executionSuccessful": True, "toolExecutionNotifications": [notification]}


def _rule(rule: str) -> dict[str, object]:
    text = rule.replace("_", " ")
    return {"id": rule, "name": text.title().replace(" ", ""), "shortDescription": {"text": text}}


def _uri(path: str) -> str:
    """Return a relative reference, or a file URI where the path is absolute (``//x`` would name a host)."""
    quoted = quote(path.encode("utf-8", "surrogateescape"))
    return "file:///" + quoted.lstrip("/") if path.startswith("/") else quoted


def _words(verdict: StaticVerdict, finding: StaticFinding) -> str:
    where = f" (at {finding.place.member}:{finding.place.line})" if finding.place is not None else ""
    advice = f"; {finding.what_to_do}" if finding.what_to_do else ""
    return f"torch {verdict.torch}: {finding.subject}: {finding.text}{where}{advice}"


def _result(
    file: InspectedFile, rule: str, level: str, text: str, finding: StaticFinding | None = None
) -> dict[str, object]:
    location: dict[str, object] = {"physicalLocation": {"artifactLocation": {"uri": _uri(file.path)}}}
    if finding is not None and finding.place is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": visible(finding.place.function), "kind": "function"}]
    # Unescaped braces stand for placeholders (SARIF 3.11.5), brackets before parentheses for a link (3.11.6).
    clean = visible(text).replace("](", "] (").replace("{", "{{").replace("}", "}}")
    return {"ruleId": rule, "level": level, "message": {"text": clean}, "locations": [location]}
