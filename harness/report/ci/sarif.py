"""An inspection, or the causes of a run, as SARIF 2.1.0, for code scanning.

Of an inspection notes are left out, and the archive's own lines are in the message.

GitHub keeps 5,000 results of a run and refuses a run with more than 25,000:
https://docs.github.com/en/code-security/code-scanning/troubleshooting-sarif-uploads/results-exceed-limit
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from harness import __version__
from harness.core.compiling import BrokenApi, CompileCheck, CompilerError
from harness.core.linking import LinkCheck
from harness.core.outcome import Decision, Status
from harness.core.prediction import InspectedFile, Inspection, StaticFinding, StaticVerdict, Weight
from harness.core.report import RunReport
from harness.core.text import counted, first_few, prose, visible
from harness.core.verdict import Cause
from harness.report.ci.checks import declared, file_and_line
from harness.report.json.text import json_text
from harness.report.words.phrases import NO_REASON
from harness.report.words.summary import headline
from harness.report.words.to_upgrade import owners_of
from harness.verdict.linking import compiles_again

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Weight.STOPS: "error", Weight.DOUBT: "warning", Weight.WARNING: "warning", Weight.NOTE: "note"}
MOST_RESULTS = 5_000
CAUSE_LEVELS = {Status.FAIL: "error", Status.XPASS: "error", Status.INCONCLUSIVE: "warning", Status.PASS: "warning"}
NAMED, MOST_LOCATIONS = 5, 20
DECISION = "decision"
# Code scanning refuses a result that lies nowhere: what no file of it declares stands here.
ELSEWHERE = {"physicalLocation": {"artifactLocation": {"uri": "pyproject.toml"}, "region": {"startLine": 1}}}
UNREADABLE, NOT_JUDGED, UNRESOLVED, BREAKS = "unreadable", "not_torchscript", "unresolved", "breaks"


def render_sarif(inspection: Inspection, *, most_results: int = MOST_RESULTS) -> str:
    """Return the SARIF log, ending with a newline.

    Args:
        most_results: of more than that the worst are kept, and a notification counts the others.
    """
    found = [result for file in inspection.files for result in _results(file)]
    worst = sorted(found, key=lambda result: result["level"] != "error") if len(found) > most_results else found
    return _log(worst, most_results=most_results)


def render_run_sarif(report: RunReport, *, places: Mapping[str, str] | None = None) -> str:
    """Return the log of a run, ending with a newline: one result per cause, at the lines that declare its models.

    A run that is not green has at least one: its decision, where no cause says why.

    Args:
        places: model -> ``file:line`` of its declaration, relative to the root of the repository. None: as the report
            has them, where these are relative.
    """
    known = declared(report) if places is None else places
    missed = any(not defect.caught for defect in report.judgement.planted_defects)
    decision = [_of_decision(report)] if report.judgement.exit_code and (missed or not report.causes) else []
    results = [*decision, *(_of_cause(report, cause, known) for cause in report.causes)]
    return _log(results, exit_code=report.judgement.exit_code)


def render_link_sarif(check: LinkCheck) -> str:
    """Return the log of a check of binaries, ending with a newline: a result for each symbol that one misses."""
    results = [
        _in_file(
            binary.file,
            missing.change.name.lower(),
            "warning" if compiles_again(missing) else "error",
            f"LibTorch {check.new} does not export {missing.text}: {missing.change}"
            + "".join(f"; it has {successor}" for successor in missing.successors),
            fingerprint=missing.symbol,
        )
        for binary in check.binaries
        for missing in binary.missing
    ]
    results += [
        _in_file(
            binary.file,
            UNRESOLVED,
            "error",
            f"neither LibTorch nor a library that is here has {text}",
            fingerprint=text,
        )
        for binary in check.binaries
        for text in binary.unresolved
    ]
    return _log(results)


def render_compile_sarif(check: CompileCheck) -> str:
    """Return the log of a check of sources, ending with a newline: a result for each place that breaks."""
    results = [
        {
            **_in_file(
                error.file, BREAKS, "error", _compiler_words(broken, error), fingerprint=f"{broken.api}:{error.line}"
            ),
            "locations": [_declared(f"{error.file}:{error.line}")],
        }
        for broken in check.broken
        for error in broken.errors
    ]
    return _log(results)


def _compiler_words(broken: BrokenApi, error: CompilerError) -> str:
    return f"{error.message}" + (f"; write {broken.change.write}" if broken.change is not None else "")


def _in_file(file: str, rule: str, level: str, text: str, *, fingerprint: str) -> dict[str, object]:
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": _plain(text)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}],
        "partialFingerprints": {"symbol/v1": fingerprint},
    }


def _of_decision(report: RunReport) -> dict[str, object]:
    open_ = report.judgement.decision is Decision.INCONCLUSIVE
    return {
        "ruleId": DECISION,
        "level": "warning" if open_ else "error",
        "message": {"text": _plain(f"{headline(report)}: {prose(report.judgement.reason or NO_REASON)}")},
        "locations": [ELSEWHERE],
        "partialFingerprints": {"cause/v1": DECISION},
    }


def _of_cause(report: RunReport, cause: Cause, places: Mapping[str, str]) -> dict[str, object]:
    named = prose(first_few(cause.models, NAMED))
    said = [f"{prose(cause.title)}: {counted(len(cause.models), 'model')}: {named}"]
    owners = owners_of(report, cause)
    said += [f"owner: {prose(', '.join(owners))}"] if owners else []
    said += [f"{prose(label)}: {prose(text)}" for label, text in cause.evidence]
    said += [f"fix: {prose(cause.fix)}"] if cause.fix else []
    found = {places[model]: model for model in reversed(cause.models) if places.get(model)}
    return {
        "ruleId": visible(cause.kind),
        "level": CAUSE_LEVELS.get(cause.status, "note"),
        "message": {"text": _plain("\n".join(said))},
        "locations": [_declared(place) for place in [*reversed(found)][:MOST_LOCATIONS]] or [ELSEWHERE],
        "partialFingerprints": {"cause/v1": visible(cause.id)},
        "properties": {
            "models": [visible(model) for model in cause.models],
            "cells": [visible(cell) for cell in cause.cells],
            **({"owners": [visible(owner) for owner in owners]} if owners else {}),
            **({"excess": cause.excess} if cause.excess is not None and math.isfinite(cause.excess) else {}),
        },
    }


def _declared(place: str) -> dict[str, object]:
    file, line = file_and_line(place)
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, **region}}


def _log(
    found: Sequence[Mapping[str, object]], *, most_results: int = MOST_RESULTS, exit_code: int | None = None
) -> str:
    results, left_out = found[:most_results], len(found[most_results:])
    driver = {
        "name": "torchscript-gate",
        "version": __version__,
        "rules": [_rule(rule) for rule in sorted({str(result["ruleId"]) for result in results})],
    }
    run: dict[str, object] = {"tool": {"driver": driver}, "results": results}
    if left_out or exit_code is not None:
        code = {"exitCode": exit_code} if exit_code is not None else {}
        run["invocations"] = [{"executionSuccessful": True, **(_notified(left_out) if left_out else {}), **code}]
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


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
    return {"toolExecutionNotifications": [notification]}


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
    return {"ruleId": rule, "level": level, "message": {"text": _plain(text)}, "locations": [location]}


def _plain(text: str) -> str:
    """Return a message as SARIF reads it: braces stand for placeholders (3.11.5), ``](`` for a link (3.11.6)."""
    lines = "\n".join(visible(line) for line in text.split("\n"))
    return lines.replace("](", "] (").replace("{", "{{").replace("}", "}}")
