"""The report as JUnit XML, for the readers of Jenkins, GitLab, GitHub actions and Azure.

Root and elements keep to what both the Jenkins and the Ant schema allow. The suite ``gate`` holds one case, the
decision, so that no reader can show a run as green that tested nothing or ended undecided.
"""

import re
from xml.etree import ElementTree as ET

from harness.domain.foretold import Answer, ModelRollback, RollbackReport
from harness.domain.outcome import Decision, Status
from harness.domain.plan import SCENARIOS
from harness.domain.report import RunReport
from harness.domain.verdict import CanaryResult, CellVerdict
from harness.errors import ExitCode
from harness.render.foretold import rollback_words, static_words, way_back_lines
from harness.render.red_cells import cell_words, is_red, red_cells, rerun_command
from harness.render.scenario_legend import group_words
from harness.render.scenario_table import scenario_rows
from harness.render.summary import canary_words, decision_words, difference_words, headline, missed_words, pair_words
from harness.render.words import prose, visible

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_UNDECIDED = (Decision.INCONCLUSIVE, Decision.NOTHING_TESTED)


def render_junit(report: RunReport) -> str:
    """Return the report as a JUnit XML document.

    One suite per scenario that has cells, one for the canaries, one for the way back, one for the decision; one case
    per cell, and per model on its way back.
    FAIL and XPASS (its waiver must go) are failures; INCONCLUSIVE is an error where it decides the run; everything
    else that is not PASS is skipped, with the reason. Times are 0: a cell is not measured by itself.
    """
    root = ET.Element("testsuites")
    texts = {cell.cell: (*cell.lines, *(("found", path) for path in cell.found)) for cell in red_cells(report)}
    cells = [(cell, row.reason) for row in report.judgement.rows for cell in row.cells]
    other = sorted({cell.scenario for cell, _ in cells} - {*SCENARIOS})
    for scenario in (*SCENARIOS, *other):
        cases = [_cell_case(report, cell, reason, texts) for cell, reason in cells if cell.scenario == scenario]
        if cases:
            _add_suite(root, report, scenario, cases)
    if report.judgement.canaries:
        _add_suite(root, report, "canaries", [_canary_case(canary) for canary in report.judgement.canaries])
    if report.rollback is not None and report.rollback.models:
        _add_suite(root, report, "rollback", [_way_back_case(report.rollback, item) for item in report.rollback.models])
    _add_suite(root, report, "gate", [_decision_case(report)])
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(classname: str, name: str) -> ET.Element:
    """Return a testcase that passes."""
    return ET.Element("testcase", {"classname": visible(classname), "name": visible(name), "time": "0"})


def _tell(case: ET.Element, tag: str, message: str, body: str, kind: str = "") -> None:
    """Add ``failure``, ``error`` or ``skipped`` to ``case``; ``body`` may have lines."""
    told = ET.SubElement(case, tag, {"message": prose(message)})
    if tag != "skipped":
        told.set("type", visible(kind))
    told.text = "\n".join(visible(line) for line in body.splitlines())


def _cell_case(
    report: RunReport, cell: CellVerdict, reason: str, texts: dict[str, tuple[tuple[str, str], ...]]
) -> ET.Element:
    """Return the case of one cell; its body is what the console tells of it. ``reason`` is its row's."""
    case = _case(f"{cell.scenario}/new", cell.cell)
    message = cell_words(cell, reason)
    if is_red(cell):
        lines = [*texts[cell.cell], ("rerun", rerun_command(report, cell.cell))]
        lines += [("evidence", finding.evidence) for finding in cell.findings if finding.evidence]
        kind = cell.findings[0].kind if cell.findings else cell.status.value
        body = "\n".join(f"{label}: {prose(text)}" for label, text in lines)
        _tell(case, "error" if cell.status is Status.INCONCLUSIVE else "failure", message, body, kind)
    elif cell.status is not Status.PASS:
        text = message if message == cell.status.value else f"{cell.status.value}: {message}"
        _tell(case, "skipped", text, f"rerun: {rerun_command(report, cell.cell)}")
    return case


def _canary_case(canary: CanaryResult) -> ET.Element:
    """Return the case of one canary: not caught is a failure of the gate itself."""
    case = _case("canaries/new", canary.name)
    if not canary.caught:
        body = f"expected: {canary.expected}\nreported: {', '.join(canary.reported) or 'nothing'}"
        _tell(case, "failure", missed_words(canary), body, "canary")
    return case


def _way_back_case(found: RollbackReport, item: ModelRollback) -> ET.Element:
    """Return the case of one model's way back: red only where policy lets it decide."""
    case = _case("rollback/old", item.model)
    if item.answer is Answer.YES:
        return case
    lines = [*way_back_lines(item), *([("shows", item.command)] if item.command else [])]
    body = "\n".join(f"{label}: {prose(text)}" for label, text in lines)
    tag = "skipped" if not found.gates else "failure" if item.answer is Answer.NO else "error"
    words = "cannot be rolled back" if item.answer is Answer.NO else "not known whether it can be rolled back"
    _tell(case, tag, f"{words}: {item.reason}", body, "rollback")
    return case


def _decision_case(report: RunReport) -> ET.Element:
    """Return the case of the whole run; green only where the exit code is 0."""
    judgement = report.judgement
    case = _case("gate/run", "decision")
    message = f"{headline(report)}: {judgement.reason}"
    if judgement.decision in _UNDECIDED:
        _tell(case, "error", message, decision_words(report), judgement.decision.value)
    elif judgement.exit_code != ExitCode.COMPATIBLE:
        _tell(case, "failure", message, decision_words(report), judgement.decision.value)
    else:
        ET.SubElement(case, "system-out").text = prose(message)
    return case


def _add_suite(root: ET.Element, report: RunReport, name: str, cases: list[ET.Element]) -> None:
    """Add one suite with its counts, its properties and its cases."""
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")}
    attributes = {
        "name": visible(name),
        "package": "torchscript-upgrade-gate",
        "id": str(len(root)),
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": "0",
    }
    stamp = _TIMESTAMP.match(report.started_at)
    if stamp:
        attributes["timestamp"] = stamp[0]
    suite = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    notes = tuple(("note", note) for note in report.notes) if name == "gate" else ()
    for key, value in (*_properties(report), *_groups(report, name), *notes):
        ET.SubElement(properties, "property", {"name": visible(key), "value": prose(value)})
    suite.extend(cases)
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")


def _groups(report: RunReport, scenario: str) -> tuple[tuple[str, str], ...]:
    """Return what each server group made of the scenario of a suite."""
    rows = [row for row in scenario_rows(report) if row.facts.scenario == scenario]
    return tuple((f"server group {row.facts.group}", group_words(row)) for row in rows)


def _properties(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know of the run, the same for each suite."""
    back = rollback_words(report)
    return (
        ("pair", pair_words(report)),
        ("old", report.old.fingerprint.identity if report.old.fingerprint else "unknown"),
        ("new", report.new.fingerprint.identity if report.new.fingerprint else "unknown"),
        ("direction", report.direction),
        ("device", report.device),
        ("profile", report.profile),
        ("differences", difference_words(report)),
        ("canaries", canary_words(report)),
        *[(name, words) for name, words in (("static check", static_words(report)), ("roll back", back)) if words],
        ("run", report.run),
        ("decision", report.judgement.decision.value),
        ("exit_code", str(report.judgement.exit_code)),
    )
