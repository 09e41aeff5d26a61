"""Every format of every command with hostile names in all its texts: it reads back whole, and obeys none of them.

``FORMATS`` must name what the command line offers: a new format without a reader here fails.
"""

import argparse
import csv
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import junitparser
import pytest

from harness.cli.parser import parser
from harness.core.atlas import Kind, OperatorChange, OperatorChanges
from harness.core.cache import CacheCleaning
from harness.core.compiling import ApiChange, BrokenApi, CompileCheck, CompiledUnit, CompileOutcome, CompilerError
from harness.core.fleet import FleetReport
from harness.core.archive import ArchiveFacts, ArchiveFormat, ArchiveProblem, CodePlace
from harness.core.releases import ReleaseResult, Conclusion, Ending, FirstBad, ReleaseAnswer
from harness.core.attach import (
    Attached,
    Attachment,
    KnownHang,
    LoadedLibrary,
    Lock,
    LockKind,
    ProcessState,
    ThreadFacts,
    ThreadGroup,
    Traffic,
    Why,
)
from harness.core.hang import Frame, ThreadStack
from harness.core.interference import Activity, Interference
from harness.core.shadow import Shadow
from harness.core.linking import LinkCheck, LinkedBinary, LinkNote, LinkOutcome, MissingSymbol, SymbolChange
from harness.core.machine import CheckStatus, Checkup, MachineCheck
from harness.core.outcome import Decision, Outcome, Status
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticFinding, StaticVerdict, Weight
from harness.core.report import BaselineReport, CellChange, CellTrend, RunReport
from harness.core.text import visible
from harness.core.timeline import HangSample, ProcessTrace, RunTrace
from harness.core.verdict import Waived
from harness.report.ci.annotations import render_annotations
from harness.report.ci.comment import render_comment
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.ci.sarif import render_compile_sarif, render_link_sarif, render_run_sarif, render_sarif
from harness.report.ci.spreadsheet import render_csv, render_owners_csv
from harness.report.json.report import dump_report
from harness.report.json.results import dump
from tests.unit.builders import caches, interferences, shadows
from harness.report.formats import (
    INTERFERENCE,
    CACHE,
    CACHE_CLEANING,
    COMPILE_CHECK,
    CHECKUP,
    FIRST_BAD,
    FLEET,
    FLEET_PLAN,
    GOLDEN_STATUS,
    INSPECTION,
    ATTACH,
    LINK_CHECK,
    MATRIX,
    MIGRATION,
    OPERATORS,
    REVIEW,
    SHADOW,
    Formats,
    ShownFleetPlan,
)
from harness.report.trace import render_trace
from tests.unit.builders.rendered import render_console, render_html, render_markdown
from tests.unit.builders.fleets import fleet_answer, fleet_plan
from tests.unit.builders.reports import HOSTILE_NAMES, hostile
from tests.unit.builders.golden_reviews import hostile_review, hostile_status
from tests.unit.builders.matrices import hostile as hostile_matrix
from tests.unit.builders.migrations import hostile as hostile_migration
from tests.unit.builders.pages import span
from tests.unit.builders.readers import openmetrics, runner_reads, valid

PROJECT = Path(__file__).resolve().parents[3]
COMMANDS = (
    "::stop-commands::x",
    "##[add-mask]secret",
    "a%0A::error::b",
    "x]]>-->y",
    "{{7*7}}",
    "tag `` ``` \N{ROCKET}",
)
NAMES = (*HOSTILE_NAMES, *COMMANDS)


def report() -> RunReport:
    """Return the hostile report with hostile texts in all that waivers and baselines brought as well."""
    made = hostile()
    rows = []
    for row, name in zip(made.judgement.rows, HOSTILE_NAMES, strict=True):
        waived = Waived(kinds=(name,), owner=name, reason=name, expires="2027-01-31", issue=name, bound=0.5)
        cells = tuple(
            replace(cell, waived=(waived,)) if cell.status is Status.XFAIL else replace(cell, note=NAMES[-index])
            for index, cell in enumerate(row.cells, start=1)
        )
        rows.append(replace(row, cells=cells))
    changes = tuple(
        CellChange(cell=cell.cell, model=cell.model, scenario=cell.scenario, change=CellTrend.NEW, why=name)
        for row, name in zip(rows, HOSTILE_NAMES, strict=True)
        for cell in row.cells
    )
    baseline = BaselineReport(
        run=HOSTILE_NAMES[0],
        started_at=HOSTILE_NAMES[1],
        decision=Decision.BLOCKED,
        differences=NAMES,
        other_artifacts=NAMES,
        changes=changes,
        counts={"new": len(changes)},
    )
    return replace(
        made,
        run=HOSTILE_NAMES[2],
        old=replace(made.old, name=HOSTILE_NAMES[5]),
        judgement=replace(made.judgement, rows=tuple(rows)),
        models=tuple(replace(model, tags=NAMES, where=f"{model.model}:3") for model in made.models),
        baseline=baseline,
        notes=NAMES,
    )


def inspection() -> Inspection:
    """Return a look at files whose every text is hostile."""
    files = []
    for name in NAMES:
        place = CodePlace(member=name, line=1, function=name)
        finding = StaticFinding(kind="operator_missing", weight=Weight.STOPS, subject=name, text=name, place=place)
        told = StaticVerdict(torch="2.6.0", direction="backward", prediction=Prediction.FAILS, findings=(finding,))
        facts = ArchiveFacts(
            path=name, size_bytes=1, format=ArchiveFormat.TORCHSCRIPT, container="zip", root_class=name, methods=(name,)
        )
        files.append(InspectedFile(path=name, facts=facts, verdicts={"new": told}))
        files.append(InspectedFile(path=f"{name}.pt", failure=ArchiveProblem(kind="damaged", text=name), verdicts={}))
    return Inspection(releases={"new": "2.6.0"}, files=tuple(files))


def interference() -> Interference:
    """Return a process that is held up by others whose every text is hostile."""

    def named(number: int, activity: Activity) -> Activity:
        name = HOSTILE_NAMES[number % len(HOSTILE_NAMES)]
        return replace(activity, pid=activity.pid + number, name=name, command=name)

    known = interferences.HELD_UP
    active = tuple(named(number, known.active[0]) for number in range(len(HOSTILE_NAMES)))
    where = dict.fromkeys(HOSTILE_NAMES, 0.1)
    return replace(known, watched=named(0, known.watched), active=active, where=where, associations=(), culprits=())


def attachment() -> Attachment:
    """Return processes whose every text is hostile."""

    def process(pid: int, name: str) -> Attached:
        frame = Frame(function=name, file=name, line=1)
        thread = ThreadFacts(
            tid=pid + 1,
            name=name,
            waits_for=name,
            waits=frozenset({name}),
            lock=Lock(kind=LockKind.MUTEX, address=16, owner=pid, lives=True),
            stack=ThreadStack(tid=pid + 1, name=name, frames=(frame,)),
            phase=name,
        )
        return Attached(
            pid=pid,
            command=name,
            age_s=3.0,
            window_s=2.0,
            state=ProcessState.BLOCKED,
            why=Why.CYCLE,
            culprits=(pid + 1,),
            phase=name,
            threads=(thread,),
            groups=(ThreadGroup(tids=(pid + 1,), like=pid + 1, frames=(name,)),),
            traffic=Traffic(ports=(80,), unanswered=1, oldest_s=3.0, upstream=(name,)),
            torch=(LoadedLibrary(path=name, version=name),),
            openmp=(LoadedLibrary(path=name), LoadedLibrary(path=name)),
            artifacts=(name,),
            known=KnownHang(name=name, title=name, words=name, source=name, lines={name: {"python": name}}),
            tool=name,
            remarks=(name,),
        )

    processes = tuple(process(10 * at, name) for at, name in enumerate(NAMES, start=1))
    return Attachment(asked=NAMES[0], processes=processes)


def shadow() -> Shadow:
    return shadows.hostile(NAMES)


def link_check() -> LinkCheck:
    """Return binaries whose every text is hostile."""
    binaries = tuple(
        LinkedBinary(
            file=name,
            uses=1,
            missing=tuple(
                MissingSymbol(symbol=name, text=name, change=change, successors=(name,), since=name)
                for change in SymbolChange
            ),
            unresolved=(name,),
            absent=(name,),
            fits=(name,),
            notes=(LinkNote(kind="run_path", subject=name, text=name, what_to_do=name),),
        )
        for name in NAMES
    )
    outcomes = {binary.file: LinkOutcome.CHANGE_SOURCE for binary in binaries}
    return LinkCheck(
        old=NAMES[0],
        new=NAMES[1],
        image=NAMES[2],
        binaries=binaries,
        outcomes=outcomes,
        others=NAMES,
        notes=binaries[0].notes,
    )


def operator_changes() -> OperatorChanges:
    """Return changes whose every text is hostile."""
    changes = tuple(
        OperatorChange(
            operator=name,
            kind=Kind.VALUES,
            old=name,
            new=name,
            features=(name,),
            dtypes=(name,),
            tolerances=12.0,
            when={name: name},
            call=name,
            before=name,
            after=name,
        )
        for name in NAMES
    )
    return OperatorChanges(
        old=NAMES[0],
        new=NAMES[1],
        operator=NAMES[2],
        releases=NAMES,
        measured=NAMES[0],
        calls=dict.fromkeys(NAMES, 1),
        changes=changes,
    )


def compile_check() -> CompileCheck:
    """Return sources whose every text is hostile."""
    errors = tuple(CompilerError(file=name, line=3, message=name, api=name) for name in NAMES)
    change = ApiChange(api=NAMES[0], since=NAMES[1], write=NAMES[2], example=NAMES[0], before=NAMES[1], source=NAMES[2])
    return CompileCheck(
        new=NAMES[0],
        standard=17,
        units=tuple(CompiledUnit(file=name, before=errors, after=errors, why=name) for name in NAMES),
        broken=tuple(
            BrokenApi(api=name, errors=errors, units=NAMES, since=name, change=change, verified=True) for name in NAMES
        ),
        outcomes=dict.fromkeys(NAMES, CompileOutcome.BREAKS),
        stopped=NAMES,
    )


def checkup() -> Checkup:
    """Return a machine all of whose readings are hostile."""
    checks = tuple(
        MachineCheck(
            name=name,
            area=name,
            about=name,
            read=name,
            status=CheckStatus.FAIL,
            so_what=name,
            do_this=name,
            blocks=(name,),
        )
        for name in NAMES
    )
    return Checkup(environments=NAMES, checks=checks)


def search() -> FirstBad:
    """Return a search in which releases fail with hostile words."""
    asked = tuple(
        ReleaseResult(release=name, answer=ReleaseAnswer.BAD, runs=1, seconds=1.0, kind=name, reason=name)
        for name in NAMES
    )
    ending = Conclusion(ending=Ending.FOUND, last_good=NAMES[0], first_bad=NAMES[-1])
    return FirstBad(
        model=NAMES[1],
        kind=NAMES[1],
        releases=NAMES,
        source=NAMES[2],
        asked=asked,
        conclusion=ending,
        command=NAMES[3],
        notes=NAMES,
        wall_s=1.0,
        build_limit=1,
    )


def trace() -> RunTrace:
    """Return processes and hanging threads with hostile names."""
    processes = tuple(
        ProcessTrace(
            name=name,
            side="new",
            title=name,
            outcome=Outcome.HANG,
            hang=name,
            spans=(span(name, 5, 9),),
            samples=(HangSample(tid=7, thread=None, words=name, frames=(name,)),),
        )
        for name in NAMES
    )
    return RunTrace(run=NAMES[2], processes=processes)


class _Texts(HTMLParser):
    """The texts of a page, and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.elements: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append("data" if tag == "script" and ("type", "application/json") in attrs else tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.texts += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _page(text: str) -> str:
    page = _Texts(text)
    assert page.elements.count("script") <= 1  # our own
    return "\n".join(page.texts)


def _junit(text: str) -> str:
    said = []
    for suite in junitparser.JUnitXml.fromstring(text.encode()):
        for case in suite:
            said += [case.name, case.classname, *(f"{item.message} {item.text}" for item in case.result)]
    return "\n".join(said)


# A block of code, an escaped character, or a span of code: whichever comes first.
CODE = re.compile(
    r"^ {4,}[^\n]*$|^(`{3,})sh\n.*?^\1$|\\[!-/:-@\[-`{-~]|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL
)


def _markdown(text: str) -> str:
    """Return what a reader sees: outside of code nothing is left that GitHub would take for an element of ours."""
    outside = CODE.sub("", text)
    assert {tag.lower() for tag in re.findall(r"<(\w+)", outside)} <= {"details", "summary", "br", "sub"}
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text))


def _commands(text: str) -> str:
    found = runner_reads(text)
    assert {command.name for command in found} <= {"error", "warning", "notice"}
    assert len(found) == len(text.splitlines())
    return "\n".join(part for command in found for part in (*command.properties.values(), command.data))


def _json_texts(text: str) -> str:
    """Return every text in a JSON document, and that the document itself steers no terminal."""
    assert all(line.isprintable() for line in text.split("\n"))
    said: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            said.extend(value)
            walk(list(value.values()))
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str):
            said.append(value)

    walk(json.loads(text))
    return "\n".join(said)


def _metrics(text: str) -> str:
    return "\n".join(value for family in openmetrics(text) for one in family.samples for value in one.labels.values())


def _ctrf(text: str) -> str:
    valid(text, "ctrf-0.0.json")
    return _json_texts(text)


def _sarif(text: str) -> str:
    valid(text, "sarif-2.1.0-rtm.5.json")
    return _json_texts(text).replace("{{", "{").replace("}}", "}")


def _csv(text: str) -> str:
    """Return the texts of a table that is whole, and in which nothing is a formula."""
    head, *rows = csv.reader(io.StringIO(text))
    assert all(len(row) == len(head) for row in rows)
    assert not [one for row in rows for one in row if one.startswith(("=", "+", "-", "@"))]
    return "\n".join(one for row in rows for one in row)


def _plain(text: str) -> str:
    return text


class Format(NamedTuple):
    """How to make one format, how others read it, and which of the names it must show whole."""

    render: Callable[[], str]
    read: Callable[[str], str] = _plain
    shown: tuple[str, ...] = HOSTILE_NAMES[:3]
    raw: bool = False
    """Whether names are there as they are: in JSON for programs, escaped by JSON alone."""


def _shown(formats: Formats[Any], name: str, made: Callable[[], Any]) -> Callable[[], str]:
    return lambda: formats.render(name, made())


def _plan() -> ShownFleetPlan:
    return ShownFleetPlan(plan=fleet_plan(HOSTILE_NAMES), times=(), command="run")


def _answer() -> FleetReport:
    return fleet_answer(HOSTILE_NAMES)


def _report_json() -> str:
    return dump_report(report()).decode("utf-8", "surrogatepass")


def _cleaning() -> CacheCleaning:
    cache = caches.named(HOSTILE_NAMES)
    return CacheCleaning(folder=cache.folder, now=cache.now, dry_run=False, removed=cache.entries, kept=cache.entries)


FORMATS: dict[tuple[str, str], Format] = {
    ("report", "comment"): Format(lambda: render_comment(report()), _markdown, ()),
    ("report", "csv"): Format(lambda: render_csv(report()), _csv),
    ("report", "sarif"): Format(lambda: render_run_sarif(report()), _sarif),
    ("report", "console"): Format(lambda: render_console(report()), shown=()),
    ("report", "ctrf"): Format(lambda: render_ctrf(report()), _ctrf, (*HOSTILE_NAMES[:2], *COMMANDS)),
    ("report", "github"): Format(lambda: render_annotations(report()), _commands),
    ("report", "html"): Format(lambda: render_html(report()), _page),
    ("report", "json"): Format(_report_json, _json_texts, raw=True),
    ("report", "junit"): Format(lambda: render_junit(report()), _junit),
    ("report", "markdown"): Format(lambda: render_markdown(report()), _markdown),
    ("report", "openmetrics"): Format(lambda: render_openmetrics(report()), _metrics),
    ("report", "trace"): Format(lambda: render_trace(trace()), _json_texts, (*HOSTILE_NAMES[:2], *COMMANDS)),
    ("inspect", "json"): Format(lambda: dump(inspection()), _json_texts, raw=True),
    ("inspect", "sarif"): Format(lambda: render_sarif(inspection()), _sarif),
    ("inspect", "text"): Format(_shown(INSPECTION, "text", inspection), shown=()),
    ("attach", "console"): Format(_shown(ATTACH, "console", attachment), shown=()),
    ("attach", "html"): Format(_shown(ATTACH, "html", attachment), _page),
    ("attach", "json"): Format(lambda: dump(attachment()), _json_texts, raw=True),
    ("attach", "markdown"): Format(_shown(ATTACH, "markdown", attachment), _markdown),
    ("attach --system", "console"): Format(_shown(INTERFERENCE, "console", interference), shown=()),
    ("attach --system", "html"): Format(_shown(INTERFERENCE, "html", interference), _page),
    ("attach --system", "json"): Format(lambda: dump(interference()), _json_texts, raw=True),
    ("attach --system", "markdown"): Format(_shown(INTERFERENCE, "markdown", interference), _markdown),
    ("shadow", "console"): Format(_shown(SHADOW, "console", shadow), shown=()),
    ("shadow", "html"): Format(_shown(SHADOW, "html", shadow), _page),
    ("shadow", "json"): Format(lambda: dump(shadow()), _json_texts, raw=True),
    ("shadow", "markdown"): Format(_shown(SHADOW, "markdown", shadow), _markdown),
    ("link-check", "console"): Format(_shown(LINK_CHECK, "console", link_check), shown=()),
    ("link-check", "html"): Format(_shown(LINK_CHECK, "html", link_check), _page),
    ("link-check", "json"): Format(lambda: dump(link_check()), _json_texts, raw=True),
    ("link-check", "markdown"): Format(_shown(LINK_CHECK, "markdown", link_check), _markdown),
    ("link-check", "sarif"): Format(lambda: render_link_sarif(link_check()), _sarif),
    ("operators", "console"): Format(_shown(OPERATORS, "console", operator_changes), shown=()),
    ("operators", "html"): Format(_shown(OPERATORS, "html", operator_changes), _page),
    ("operators", "json"): Format(lambda: dump(operator_changes()), _json_texts, raw=True),
    ("operators", "markdown"): Format(_shown(OPERATORS, "markdown", operator_changes), _markdown),
    ("compile-check", "console"): Format(_shown(COMPILE_CHECK, "console", compile_check), shown=()),
    ("compile-check", "html"): Format(_shown(COMPILE_CHECK, "html", compile_check), _page),
    ("compile-check", "json"): Format(lambda: dump(compile_check()), _json_texts, raw=True),
    ("compile-check", "markdown"): Format(_shown(COMPILE_CHECK, "markdown", compile_check), _markdown),
    ("compile-check", "sarif"): Format(lambda: render_compile_sarif(compile_check()), _sarif),
    ("doctor", "console"): Format(_shown(CHECKUP, "console", checkup), shown=()),
    ("doctor", "json"): Format(lambda: dump(checkup()), _json_texts, raw=True),
    ("matrix", "console"): Format(_shown(MATRIX, "console", hostile_matrix), shown=()),
    ("matrix", "json"): Format(lambda: dump(hostile_matrix()), _json_texts, raw=True),
    ("matrix", "html"): Format(_shown(MATRIX, "html", hostile_matrix), _page),
    ("matrix", "markdown"): Format(_shown(MATRIX, "markdown", hostile_matrix), _markdown),
    ("migrate", "console"): Format(_shown(MIGRATION, "console", hostile_migration), shown=()),
    ("migrate", "html"): Format(_shown(MIGRATION, "html", hostile_migration), _page),
    ("migrate", "markdown"): Format(_shown(MIGRATION, "markdown", hostile_migration), _markdown),
    ("migrate", "json"): Format(lambda: dump(hostile_migration()), _json_texts, raw=True),
    ("bisect", "console"): Format(_shown(FIRST_BAD, "console", search), shown=()),
    ("bisect", "json"): Format(lambda: dump(search()), _json_texts, raw=True),
    ("cache status", "json"): Format(lambda: dump(caches.named(HOSTILE_NAMES)), _json_texts, raw=True),
    ("cache status", "text"): Format(_shown(CACHE, "text", lambda: caches.named(HOSTILE_NAMES)), shown=()),
    ("cache clean", "json"): Format(lambda: dump(_cleaning()), _json_texts, raw=True),
    ("cache clean", "text"): Format(_shown(CACHE_CLEANING, "text", _cleaning), shown=()),
    ("fleet plan", "json"): Format(lambda: dump(fleet_plan(HOSTILE_NAMES)), _json_texts, raw=True),
    ("fleet plan", "text"): Format(_shown(FLEET_PLAN, "text", _plan), shown=()),
    ("fleet report", "csv"): Format(lambda: render_owners_csv(fleet_answer(HOSTILE_NAMES)), _csv),
    ("fleet report", "html"): Format(_shown(FLEET, "html", _answer), _page),
    ("fleet report", "json"): Format(lambda: dump(fleet_answer(HOSTILE_NAMES)), _json_texts, raw=True),
    ("fleet report", "markdown"): Format(_shown(FLEET, "markdown", _answer), _markdown, ()),
    ("fleet report", "text"): Format(_shown(FLEET, "text", _answer), shown=()),
    ("golden diff", "console"): Format(_shown(REVIEW, "console", hostile_review), shown=()),
    ("golden diff", "html"): Format(_shown(REVIEW, "html", hostile_review), _page),
    ("golden diff", "json"): Format(lambda: dump(hostile_review()), _json_texts, raw=True),
    ("golden diff", "markdown"): Format(_shown(REVIEW, "markdown", hostile_review), _markdown),
    ("golden status", "console"): Format(_shown(GOLDEN_STATUS, "console", hostile_status), shown=()),
    ("golden status", "json"): Format(lambda: dump(hostile_status()), _json_texts, raw=True),
}
# What these offer is written by the renderers above.
SAME_AS = {"diff": "golden diff", "fleet merge": "fleet report", "gate": "report"}
IDS = [f"{verb}-{name}" for verb, name in FORMATS]


def offered(one: argparse.ArgumentParser, verb: str = "") -> Iterator[tuple[str, str]]:
    """Yield (verb, format) of a command and of the actions below it."""
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from offered(below, f"{verb} {name}".strip())
        elif "--format" in action.option_strings:
            yield from ((SAME_AS.get(verb, verb), name) for name in action.choices or ())


def test_no_format_of_the_command_line_is_missing() -> None:
    assert set(offered(parser())) == {(verb, name) for verb, name in FORMATS if verb != "attach --system"}


@pytest.mark.parametrize("form", FORMATS.values(), ids=IDS)
def test_hostile_names_neither_break_nor_steer(form: Format) -> None:
    text = form.render()
    assert text.endswith("\n")
    assert all(line.isprintable() for line in text.split("\n")), "a terminal would obey it"
    text.encode("utf-8")
    said = form.read(text)
    for name in form.shown:
        assert (name if form.raw else visible(" ".join(name.split()) if "\n" in name else name)) in said


def digests() -> str:
    """Return the digest of every format, one per line."""
    made = {f"{verb} {name}": form.render().encode() for (verb, name), form in FORMATS.items()}
    return "\n".join(f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in made.items())


@pytest.mark.slow
def test_every_format_is_the_same_in_another_process() -> None:
    """Sets and hashes have another order in each process that draws its own seed."""
    program = "from tests.unit.report.test_every_format import digests; print(digests())"
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=PROJECT,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    ]
    assert said[0].splitlines() == said[1].splitlines()
    assert len(said[0].splitlines()) == len(FORMATS)
