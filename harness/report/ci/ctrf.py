"""The report in the Common Test Report Format, for dashboards and bots of CI: https://ctrf.io.

A consumer takes ``failed`` for red and the other states for not red, so the decision is ``failed`` wherever the exit
code is not 0. ``flaky`` has one meaning there, passed after failed attempts, and nothing here passes after it failed:
no test is.
"""

import hashlib
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.core.errors import ExitCode
from harness.core.report import ModelReport, RunReport
from harness.core.text import prose, visible
from harness.report.ci.checks import DECISION, PLANTED_DEFECTS, ROLLBACK, Check, State, checks, declared, file_and_line
from harness.report.ci.openmetrics import seconds_since_epoch
from harness.report.json.text import json_text
from harness.report.words.summary import difference_words, pair_words, planted_words

SPEC_VERSION = "0.0.0"
TOOL = "torchscript-gate"
EXTRA = "torchscript-gate"
"""Namespace of our keys in ``extra``."""

STATUSES = {
    State.RED: "failed",
    State.OPEN: "other",
    State.RULED: "other",
    State.ASIDE: "other",
    State.BEFORE: "other",
    State.WAIVED: "other",
    State.ABSENT: "skipped",
    State.GREEN: "passed",
}


def render_ctrf(report: RunReport, *, directory: str = "", places: Mapping[str, str] | None = None) -> str:
    """Return the report as a CTRF document: one test per cell, planted defect and rollback, and one for the decision.

    Args:
        report: what to show.
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        places: model -> ``file:line`` of its declaration, relative to the root of the repository. None: as the report
            has them, where these are relative.
    """
    known = declared(report) if places is None else places
    facts = {model.model: model for model in report.models}
    found = checks(report, directory=directory)
    tests = [_test(report, check, facts.get(check.model), known.get(check.model, "")) for check in found]
    results = {
        "tool": {"name": TOOL, "version": visible(report.harness_version)},
        "summary": _summary(report, tests),
        "tests": tests,
        "environment": {
            "reportName": visible(report.run) or TOOL,
            "testEnvironment": visible(f"{report.device}, profile {report.profile}"),
            "healthy": report.judgement.exit_code == ExitCode.COMPATIBLE,
            "extra": {EXTRA: _run(report)},
        },
    }
    document: dict[str, Any] = {"reportFormat": "CTRF", "specVersion": SPEC_VERSION, "generatedBy": TOOL}
    text = json_text({**document, "results": results})
    # Another content is another report: version 5 is made of a digest, so that equal reports have equal names.
    name = uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(text.encode()).hexdigest())
    return json_text({**document, "reportId": str(name), "results": results})


def _summary(report: RunReport, tests: list[dict[str, Any]]) -> dict[str, Any]:
    counts = Counter(test["status"] for test in tests)
    start_ms = max(0, round((seconds_since_epoch(report.started_at) or 0) * 1e3))
    wall_ms = round(max(report.wall_s, 0) * 1e3)
    return {
        "tests": len(tests),
        **{status: counts[status] for status in ("passed", "failed", "skipped", "pending", "other")},
        "flaky": 0,
        "suites": len({tuple(test["suite"]) for test in tests}),
        "start": start_ms,
        "stop": start_ms + wall_ms,
        "duration": wall_ms,
    }


def _test(report: RunReport, check: Check, facts: ModelReport | None, place: str) -> dict[str, Any]:
    """Return one test; its duration is what its probes took."""
    file, line = file_and_line(place)
    bad_decision = check.suite == DECISION and check.state is not State.GREEN
    test: dict[str, Any] = {
        "testId": visible(f"{check.suite}::{check.name}"),
        "name": visible(f"{check.suite}/{check.name}" if check.suite in (PLANTED_DEFECTS, ROLLBACK) else check.name),
        "status": "failed" if bad_decision else STATUSES[check.state],
        "rawStatus": visible(check.raw),
        "duration": round(1e3 * check.seconds),
        "suite": [TOOL, visible(check.suite)],
        "type": "compatibility",
        "device": visible(report.device),
        "labels": _labels(check, facts),
    }
    if check.message:
        test["message"] = prose(check.message)
    if check.lines:
        test["trace"] = "\n".join(f"{visible(label)}: {prose(text)}" for label, text in check.lines)
    if check.evidence:
        test["attachments"] = [_attachment(path) for path in check.evidence]
    test |= {"tags": [visible(tag) for tag in facts.tags]} if facts is not None and facts.tags else {}
    test |= {"filePath": visible(file)} if file else {}
    test |= {"line": line} if line else {}
    return test


def _attachment(path: str) -> dict[str, str]:
    kind = "application/json" if path.endswith(".json") else "text/plain"
    return {"name": visible(path.rsplit("/", 1)[-1]), "contentType": kind, "path": visible(path)}


def _labels(check: Check, facts: ModelReport | None) -> dict[str, Any]:
    """Return what one may group and filter by; the values are texts, or lists of them that are not empty."""
    labels: dict[str, Any] = {"state": check.state.value}
    labels |= {"model": visible(check.model)} if check.model else {}
    labels |= {"findings": [visible(kind) for kind in check.kinds]} if check.kinds else {}
    labels |= {"group": visible(facts.group)} if facts is not None and facts.group else {}
    labels |= {"baseline": check.change.value} if check.change is not None else {}
    owners = (facts.owner if facts is not None else "", *(item.owner for item in check.waived))
    labels |= {"owner": [visible(owner) for owner in dict.fromkeys(owners) if owner]} if any(owners) else {}
    if check.waived:
        labels["expires"] = [visible(item.expires) for item in check.waived]
    return labels


def _run(report: RunReport) -> dict[str, Any]:
    """Return what a reader must know of the run."""
    return {
        "pair": visible(pair_words(report)),
        "direction": visible(report.direction),
        "device": visible(report.device),
        "profile": visible(report.profile),
        "decision": report.judgement.decision.value,
        "exit_code": report.judgement.exit_code,
        "reason": prose(report.judgement.reason),
        "planted_defects": prose(planted_words(report)),
        "differences": prose(difference_words(report)),
        "notes": [prose(note) for note in report.notes],
    }
