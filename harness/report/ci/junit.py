"""The report as JUnit XML, for the readers of Jenkins, GitLab, GitHub actions and Azure.

Root and elements keep to what both the Jenkins and the Ant schema allow. The suite ``gate`` holds one case, the
decision, so that no reader can show a run as green that tested nothing or ended undecided.
"""

import re
from xml.etree import ElementTree as ET

from harness.core.report import RunReport
from harness.core.text import prose, visible
from harness.report.ci.checks import DECISION, PLANTED_DEFECTS, ROLLBACK, Check, State, checks
from harness.report.text.scenarios import group_words, scenario_rows
from harness.report.words.policy import policy_lines
from harness.report.words.predictions import rollback_words, static_words
from harness.report.words.since import since_lines
from harness.report.words.summary import difference_words, pair_words, planted_words
from harness.serving.scenarios import CELL_SCENARIOS

TAGS = {
    State.RED: "failure",
    State.OPEN: "error",
    State.RULED: "skipped",
    State.ASIDE: "skipped",
    State.BEFORE: "skipped",
    State.WAIVED: "skipped",
    State.ABSENT: "skipped",
}
SIDES = {DECISION: "run", ROLLBACK: "old"}
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def render_junit(report: RunReport, *, directory: str = "") -> str:
    """Return the report as a JUnit XML document.

    One suite per scenario that has cells, one for the planted defects, one for the rollback, one for the decision; the
    worst cases first. The time of a case is what its probes took; 0 where it has none.

    Args:
        report: what to show.
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
    """
    root = ET.Element("testsuites")
    suites: dict[str, list[ET.Element]] = {}
    for check in checks(report, directory=directory):
        suites.setdefault(check.suite, []).append(_case(check))
    last = (PLANTED_DEFECTS, ROLLBACK, DECISION)
    other = sorted({*suites} - {*CELL_SCENARIOS, *last})
    for name in (*CELL_SCENARIOS, *other, *last):
        if name in suites:
            _add_suite(root, report, name, suites[name])
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(check: Check) -> ET.Element:
    """Return the case of one check; its body is what the console tells of it."""
    classname = f"{check.suite}/{SIDES.get(check.suite, 'new')}"
    attributes = {"classname": visible(classname), "name": visible(check.name), "time": _time(check.seconds)}
    case = ET.Element("testcase", attributes)
    message = _message(check)
    if check.state is State.GREEN:
        if message:
            ET.SubElement(case, "system-out").text = prose(message)
        return case
    element = ET.SubElement(case, TAGS[check.state], {"message": prose(message)})
    if element.tag != "skipped":
        element.set("type", visible(check.kinds[0] if check.kinds else check.raw))
    lines = (*check.lines, *(("evidence", path) for path in check.evidence))
    element.text = "\n".join(visible(f"{label}: {prose(text)}") for label, text in lines)
    return case


def _time(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def _message(check: Check) -> str:
    """Return why, after the word of the gate where the tag does not say it."""
    if check.suite == DECISION:
        return f"{check.title}: {check.message}"
    named = TAGS.get(check.state) == "skipped" and check.suite != ROLLBACK and check.message != check.raw
    return f"{check.raw}: {check.message}" if named else check.message


def _add_suite(root: ET.Element, report: RunReport, name: str, cases: list[ET.Element]) -> None:
    """Add one suite with its counts, its properties and its cases."""
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")}
    attributes = {
        "name": visible(name),
        "package": "torchscript-gate",
        "id": str(len(root)),
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": _time(sum(float(case.get("time", "0")) for case in cases)),
    }
    stamp = _TIMESTAMP.match(report.started_at)
    if stamp:
        attributes["timestamp"] = stamp[0]
    suite = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    for key, value in (*_properties(report), *_groups(report, name), *(_notes(report) if name == DECISION else ())):
        ET.SubElement(properties, "property", {"name": visible(key), "value": prose(value)})
    suite.extend(cases)
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")


def _notes(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return what there is to tell of the run as a whole."""
    return (*policy_lines(report), *since_lines(report), *(("note", note) for note in report.notes))


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
        ("planted", planted_words(report)),
        *[(name, words) for name, words in (("static check", static_words(report)), ("rollback", back)) if words],
        ("run", report.run),
        ("decision", report.judgement.decision.value),
        ("exit_code", str(report.judgement.exit_code)),
    )
