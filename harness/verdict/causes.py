"""Groups what needs a reader by its cause, each reported once: a judged run -> causes, the worst first. Pure.

Every red or undecided cell that decides belongs to exactly one cause, and so does everything that is surely beyond a
limit that does not block. Which one follows from its gravest finding and
what is known of its model, not from how others are grouped: so the id of a cause is the same in the next run.
"""

import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.checks.hang.stack_words import INTERPRETER
from harness.checks.outputs.findings import beyond_tolerance
from harness.checks.prediction.semantics import SemanticChange, can_show, changes_between, names_operator
from harness.core.errors import SelectionError
from harness.core.findings import MEASURES, SEVERITY, STATUS_OF, WORST_FIRST, Severity, weight
from harness.core.outcome import Status
from harness.core.plan import ERROR
from harness.core.prediction import SEMANTICS_CHANGED, Prediction, StaticFinding
from harness.core.quantities import QUANTITIES, STEADY, quantity_words
from harness.core.report import Explained, ModelReport, RunReport
from harness.core.text import counted, joined, prose
from harness.core.verdict import Beyond, Cause, CellVerdict, Finding, Fix, Mitigation
from harness.serving.scenarios import TIMING
from harness.serving.settings.differences import DIFFERS
from harness.serving.settings.mitigations import shows
from harness.verdict.commands import bisect_command, is_red, more_command, prune_command, rerun_of_cause, waive_command
from harness.verdict.counting import is_over
from harness.verdict.latency import common_words, is_shared
from harness.verdict.mitigation import fix_of, fix_words
from harness.verdict.prediction import deciding

KINDS = {
    "operator": "the release lacks an operator or a class, or takes other arguments: the artifact does not load",
    "semantics": "an operator that is known to answer otherwise",
    "culprit": "an operator that a search has named",
    "slowdown": "the steady call is slower",
    "limit": "another quantity of the benchmark is beyond a limit of the policy",
    "hang": "threads hang, or the process crashes, at one place",
    "setting": "a setting that differs between the sides",
    "mitigated": "one setting makes it go away",
    "error": "one text of an error",
    "alone": "one model by itself: nothing says what it shares with others",
    "undecided": "a latency that the benchmark could not decide",
}
TITLE_LIMIT = 80
EVIDENCE_LINES = 4
SLUG_LIMIT, SLUG_KEPT = 44, 36
FRAMES_SHARED = 4
UNDECIDED, SLOWER = "undecided-latency", "slower"
# Kinds of causes of which something else says more than what one cell shows.
TOLD_BY_MORE = ("semantics", "hang", "setting", "culprit")
WHY_NOT_WAIVED = ("waiver_expired", "waiver_exceeded", "waiver_elsewhere")
# What is the same in every model that shows it, whatever its text says of that one.
ALIKE = {
    "recompilation": "first calls at another shape recompile, and did not before",
    "quantity_lost": "the old release does it and the new one does not",
}
NAMED = {
    "initialization_time": "initialization time of a server group",
    "memory_growth": "growth of resident memory per call",
}
# These say only that something before them failed.
FOLLOWS = ("not_measured", "not_called")
# The model answers, and otherwise than before.
ANSWERS = ("values", "late_divergence", "error_limit", "nan_placement", "race", "graph_replay", "structure", "dtype")
# Two models that show these need not have anything in common.
OF_THE_MODEL = (*ANSWERS, "input_changed", "hang", "crash")
OF_A_PLACE = ("hang", "crash")
# Their text names the operator, where it is one.
RAISED = ("call_error", "concurrent_error")
STATUS_RANK = {
    status: rank for rank, status in enumerate((Status.FAIL, Status.XPASS, Status.INCONCLUSIVE, Status.PASS))
}
GRAVITY = {kind: place for place, kind in enumerate(SEVERITY)}

# Artifacts choose what the texts of errors say and how long they are: each of these takes linear time.
_EXCEPTION = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception|Interrupt): ")
_FOLDERS = re.compile(r"(?<![\w/.])/(?:[^\s/:'\"]+/)+")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*(?:[eE][-+]?\d+)?")
_NUMBERS = re.compile(r"N(?:(?:, | x |x)N)+")
_UNKNOWN_OPERATOR = re.compile(r"Unknown builtin op: (\w+::\w+)")
_REFUSAL = re.compile(r"valid|argument|found")
_CALLED_OPERATOR = re.compile(r"\b(\w+::\w+)\(")
_NOT_IN_AN_ID = re.compile(r"[^\w.:+]+", re.ASCII)
_OFFSET = re.compile(r"\+0x[0-9a-f]+|\s+x \d+| {2}\(\d+ times\)")


class Key(NamedTuple):
    kind: str
    id: str
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Red:
    """One red cell, its gravest finding and the report's facts; ``status``: PASS beyond limits that do not block."""

    cell: CellVerdict
    status: Status
    finding: Finding | None
    facts: ModelReport | None
    mitigations: tuple[Mitigation, ...]
    explained: tuple[Explained, ...]
    beyond: Beyond | None

    @property
    def order(self) -> tuple[int, float, int, bool, str, str]:
        """The clearest first: what fails, by the most; of one model what it does alone."""
        gravity = GRAVITY.get(self.finding.kind, -1) if self.finding is not None else len(GRAVITY)
        excess = math.inf if self.beyond is None else self.beyond.factor
        rank = STATUS_RANK[self.status]
        return rank, -excess, gravity, self.cell.scenario != "alone", self.cell.model, self.cell.cell


def with_causes(report: RunReport) -> RunReport:
    return replace(report, causes=causes_of(report))


def causes_of(report: RunReport) -> tuple[Cause, ...]:
    """Return the causes of red and undecided cells that decide, worst first; limits that do not block come last."""
    red = sorted(_red_cells(report), key=lambda item: item.order)
    groups: dict[str, list[_Red]] = {}
    keys: dict[str, Key] = {}
    of_model: dict[tuple[str, str], Key] = {}
    followers = []
    for item in red:
        if item.finding is None or item.finding.kind in FOLLOWS:
            followers.append(item)
            continue
        key = _key(item, item.finding, report)
        same = of_model.setdefault((item.cell.model, item.finding.kind), key)
        key = key if key.kind == "hang" else same  # two places at which one model hangs are two causes
        of_model.setdefault((item.cell.model, ""), key)
        keys.setdefault(key.id, key)
        groups.setdefault(key.id, []).append(item)
    for item in followers:
        key = of_model.get((item.cell.model, "")) or _key_of_follower(item)
        keys.setdefault(key.id, key)
        groups.setdefault(key.id, []).append(item)
    causes = [_cause(keys[id_], items, report) for id_, items in groups.items()]
    return tuple(sorted(_with_common(causes, report), key=_place_of))


def _with_common(causes: Sequence[Cause], report: RunReport) -> Iterator[Cause]:
    """Yield the causes; the release-wide slowdown once, with what it makes slow; alone it is a cause without a cell."""
    common = report.common
    failing = next((finding for finding in report.judgement.findings if fails_the_run(finding, report)), None)
    if common is None or (failing is None and common.ratio.low <= 1):
        yield from causes
        return
    words = prose(failing.message if failing is not None else common_words(common))
    if failing is not None and not any(cause.id == SLOWER for cause in causes):
        cells = (
            cell.cell for cell in report.judgement.cells if cell.scenario == TIMING and cell.model in common.models
        )
        yield Cause(
            id=SLOWER,
            kind="slowdown",
            status=Status.FAIL,
            title=_cut(f"all timed models are slower{'' if is_shared(common) else ' on average'} in {report.new.name}"),
            cells=(),
            models=common.models,
            evidence=(("what", words),),
            commands=tuple(("rerun", rerun_of_cause(report, SLOWER, cell)) for cell in itertools.islice(cells, 1)),
        )
    for cause in causes:
        yield replace(cause, evidence=(*cause.evidence, ("common", words))) if cause.id == SLOWER else cause


def fails_the_run(finding: Finding, report: RunReport) -> bool:
    """Whether a finding that is of no single cell blocks the run."""
    severity = report.policy.settings.severity
    return finding.kind == "common_slowdown" and severity.get(finding.kind, Severity.FAIL) == Severity.FAIL


def cause_named(causes: Sequence[Cause], id_: str, run: str) -> Cause:
    """Return one cause. Raises ``SelectionError``: there is none of that id; lists those that exist."""
    named = next((cause for cause in causes if cause.id == id_), None)
    if named is None:
        known = "; ".join(f"{cause.id} ({counted(len(cause.models), 'model')})" for cause in causes)
        raise SelectionError(f"{run} has no cause {id_}", f"its causes: {known}" if known else "nothing in it is red")
    return named


def cause_of(causes: Sequence[Cause], cell: str) -> Cause | None:
    return next((cause for cause in causes if cell in cause.cells), None)


def _place_of(cause: Cause) -> tuple[int, float, int, str]:
    excess = math.inf if cause.excess is None else cause.excess
    return STATUS_RANK[cause.status], -excess, -len(cause.models), cause.id


def _red_cells(report: RunReport) -> Iterator[_Red]:
    facts = {model.model: model for model in report.models}
    for row in report.judgement.rows:
        for cell in row.cells:
            gravest = [(_gravest(cell), cell.status)] if is_red(cell) else []
            gravest += [(finding, Status.PASS) for finding in cell.findings if is_over(cell, finding)]
            own = facts.get(cell.model)
            for finding, status in gravest:
                yield _Red(
                    cell=cell,
                    status=status,
                    finding=finding,
                    facts=own,
                    mitigations=tuple(item for item in row.mitigations if item.cell == cell.cell),
                    explained=tuple(item for item in report.explained if item.cell == cell.cell),
                    beyond=beyond_limit(finding, cell, own, report) if finding is not None else None,
                )


def _gravest(cell: CellVerdict) -> Finding | None:
    """Return the finding that makes a cell what it is; of a waiver that is not needed, that."""
    if cell.status is Status.XPASS:
        return next(iter(cell.findings), None)
    weights = tuple(Severity)

    def order(finding: Finding) -> tuple[bool, int, int]:
        own = weight(cell, finding.kind)
        return STATUS_OF[own] is not cell.status, weights.index(own), GRAVITY.get(finding.kind, -1)

    return min(cell.findings, key=order, default=None)


def beyond_limit(finding: Finding, cell: CellVerdict, facts: ModelReport | None, report: RunReport) -> Beyond | None:
    """Return what of a finding is how far beyond its limit; None if no limit would accept it."""
    measure = MEASURES.get(finding.kind)
    if measure == "ratio" and finding.size is not None:
        limit = finding.limit or report.limits.get(finding.quantity.partition(":")[0])
        return Beyond(value=finding.size, allowed=limit, is_ratio=True) if limit is not None and limit > 1 else None
    if finding.kind == "error_limit":
        limit = report.policy.settings.limits.get(ERROR)
        return Beyond(value=finding.size, allowed=limit, is_ratio=False) if limit and finding.size is not None else None
    if measure != "error" or facts is None:
        return None
    return next((beyond_tolerance(item) for item in facts.comparisons if item.scenario == cell.scenario), None)


def _key(item: _Red, finding: Finding, report: RunReport) -> Key:
    return (
        _key_of_time(item, finding, report)
        or _key_of_operator(item, finding, report)
        or _key_of_place(item, finding)
        or _key_of_setting(item, finding)
        or _key_of_mitigation(item, report)
        or _key_of_text(item, finding)
    )


def _key_of_time(item: _Red, finding: Finding, report: RunReport) -> Key | None:
    if finding.kind == "latency_undecided":
        return Key("undecided", UNDECIDED, "could not tell whether latency is within its limit")
    if finding.kind in ALIKE:
        return Key("limit", finding.kind.replace("_", "-"), ALIKE[finding.kind])
    if finding.kind != "latency" and MEASURES.get(finding.kind) != "ratio" and finding.kind != "memory_growth":
        return None
    if finding.kind == "latency" and finding.quantity in ("", STEADY):
        model = item.cell.model
        if report.common is not None and model in report.common.apart:
            return Key("alone", f"latency-{_named_model(model)}", "slower by itself, unlike the other timed models")
        return Key("slowdown", SLOWER, f"the steady call is slower in {report.new.name}")
    known = finding.quantity.partition(":")[0] in QUANTITIES
    name = finding.quantity if known else finding.kind.replace("_", "-")
    words = NAMED.get(finding.kind) or (quantity_words(name) if known else finding.kind.replace("_", " "))
    return Key("limit", f"limit-{_slug(name)}", _cut(f"{words} is beyond its limit"))


def subject_of(finding: Finding, model: str) -> str:
    """Return what a failure is of, by which one is told from another of its kind; empty where nothing says so.

    That is an operator (several stand with commas between them), else the error in short, else what stacks mean.
    """
    if finding.subject:
        return finding.subject
    if finding.error:
        refused = _refused(finding.error) if finding.kind == "load_error" else None
        return refused[0] if refused else _named(_normal(prose(finding.error), model))
    return finding.standstill.reading if finding.standstill is not None else ""


def is_same(subject: str, finding: Finding, model: str) -> bool:
    """Whether a failure is of no more than ``subject``; a hang or crash may be, where nobody saw its stacks."""
    now = subject_of(finding, model)
    return set(now.split(", ")) <= set(subject.split(", ")) if now else finding.kind in OF_A_PLACE


def _key_of_operator(item: _Red, finding: Finding, report: RunReport) -> Key | None:
    release = report.new.name
    if finding.kind == "load_error":
        return _key_of_refusal(item, finding, release)
    changed = _changes_shown(finding, report)
    named = _culprits(item)
    if named and named[0] not in [change.operator for change in changed]:
        return Key("culprit", f"culprit-{'+'.join(map(_slug, named))}", _cut(f"{', '.join(named)}: named by bisect"))
    for change in changed:
        predicted = any(known.subject == change.operator and known.kind == SEMANTICS_CHANGED for known in _static(item))
        names_it = names_operator(f"{finding.error} {finding.subject}", change.operator)
        if change.operator in named or names_it or (predicted and finding.kind not in RAISED):
            return Key("semantics", f"semantics-{change.operator}", f"known change of {change.operator} in {release}")
    return None


def _key_of_refusal(item: _Red, finding: Finding, release: str) -> Key | None:
    for known in _static(item, stopping=True):
        if "::" in known.subject:
            does = "does not have it" if known.kind == "operator_missing" else _plain(known.text)
            return Key("operator", f"operator-{_slug(known.subject)}", _cut(f"{known.subject}: {release} {does}"))
        return Key("operator", known.kind.replace("_", "-"), _cut(known.text))
    refused = _refused(finding.error)
    return refused and Key("operator", f"operator-{refused[0]}", _cut(f"{refused[0]}: {release} {refused[1]}"))


def _refused(error: str) -> tuple[str, str] | None:
    """Return the operator that an error of loading is about, and what the release does; None where it is of none."""
    missing = _UNKNOWN_OPERATOR.search(error)
    if missing:
        return missing[1], "does not have it"
    refusal = _REFUSAL.search(error)
    refused = _CALLED_OPERATOR.search(error, refusal.end()) if refusal else None
    return (refused[1], "refuses the arguments") if refused else None


def _plain(text: str) -> str:
    """Return the text of a static finding without the release that its title names already."""
    return re.sub(r"^torch \S+ ", "", text)


def _static(item: _Red, *, stopping: bool = False) -> tuple[StaticFinding, ...]:
    """Return what reading the artifact has found for the new release; ``stopping``: why it does not load there."""
    side = item.facts.static.sides.get("new") if item.facts is not None and item.facts.static is not None else None
    if side is None or side.verdict is None:
        return ()
    if stopping:
        return deciding(side.verdict) if side.verdict.prediction is Prediction.FAILS else ()
    return side.verdict.findings


def _changes_shown(finding: Finding, report: RunReport) -> list[SemanticChange]:
    if report.old.fingerprint is None or report.new.fingerprint is None:
        return []
    pair = report.old.fingerprint.torch, report.new.fingerprint.torch
    return [change for change, _ in changes_between(*pair) if can_show(change, finding, *pair)]


def _culprits(item: _Red) -> tuple[str, ...]:
    """Return the operators that a bisection has named, without their overloads."""
    return tuple(dict.fromkeys(name for explained in item.explained for name in explained.operators))


def _key_of_place(item: _Red, finding: Finding) -> Key | None:
    """Return the place at which a process hangs or crashes: what its stacks mean, else their innermost frames."""
    place = finding.standstill
    if finding.kind not in OF_A_PLACE or place is None:
        return None
    does = "hangs" if finding.kind == "hang" else "crashes"
    if place.reading:
        return Key("hang", f"{finding.kind}-{place.reading}", f"{does}: {place.title}")
    stacks = [[_OFFSET.sub("", frame).strip() for frame in frames] for frames in place.stacks]
    if place.is_busy:
        busy = _key_of_busy(item, stacks)
        if busy is not None:
            return busy
    inner = stacks[0][:FRAMES_SHARED] if stacks else []
    if not any(inner):
        return None
    stack = " < ".join(inner)
    id_ = f"{finding.kind}-{_slug(inner[0])[:28]}-{_digest(_normal(stack, item.cell.model))}"
    return Key("hang", id_, _cut(f"{does} in {stack}"))


def _key_of_busy(item: _Red, stacks: Sequence[Sequence[str]]) -> Key | None:
    """Return the code that computes without end, where the interpreter runs it; None where it runs none.

    What it had called just then is chance where its code loops, and so is what the called operator was at. A stack
    without a frame of torch's runtime is cut off: kernels of MKL cannot be unwound.
    """
    loops = item.facts.static.loops if item.facts is not None and item.facts.static is not None else {}
    places = [
        next((index for index, frame in enumerate(frames) if INTERPRETER.match(frame)), None) for frames in stacks
    ]
    cut_off = not any(frame.startswith("jit::") for frames in stacks for frame in frames)
    if loops and (cut_off or any(place is not None for place in places)):
        name = ".".join(min(loops).rsplit(".", 2)[-2:])
        more = f" or {counted(len(loops) - 1, 'more function')}" if len(loops) > 1 else ""
        digest = _digest(" ".join(sorted(loops.values())))
        return Key("hang", f"hang-loop-{digest}", _cut(f"hangs in a loop of {name}{more}"))
    called = next((frames[place - 1] for frames, place in zip(stacks, places, strict=True) if place), "")
    return Key("hang", f"hang-{_slug(called)[:28]}-{_digest(called)}", _cut(f"hangs in {called}")) if called else None


def _key_of_setting(item: _Red, finding: Finding) -> Key | None:
    mitigations = [mitigation.name for mitigation in item.mitigations if mitigation.mitigates]
    for name, words in finding.settings.items():
        if shows(name, mitigations):
            return Key("setting", f"setting-{_slug(name)}", _cut(words))
    return None


def _key_of_mitigation(item: _Red, report: RunReport) -> Key | None:
    mine = [mitigation.name for mitigation in item.mitigations if mitigation.mitigates]
    if not mine:
        return None
    every = [mitigation.name for row in report.judgement.rows for mitigation in row.mitigations if mitigation.mitigates]
    name = max(mine, key=lambda name: (every.count(name), -mine.index(name)))
    return Key("mitigated", f"mitigated-by-{_slug(name)}", _cut(f"gone with {name}"))


def _key_of_text(item: _Red, finding: Finding) -> Key:
    kind = finding.kind.replace("_", "-")
    message = prose(finding.message)
    if finding.kind in OF_THE_MODEL:
        return Key("alone", f"{kind}-{_named_model(item.cell.model)}", _cut(message))
    if finding.error:
        text = prose(finding.error)
        prefix = "error" if SEVERITY.get(finding.kind) is Severity.FAIL else kind
        return Key("error", f"{prefix}-{_named(_normal(text, item.cell.model))}", _cut(text))
    return Key("error", f"{kind}-{_slug(finding.subject)}" if finding.subject else kind, _cut(message))


def _key_of_follower(item: _Red) -> Key:
    """Return the cause of what says only that something was not measured, and nothing else says why."""
    if item.finding is not None:
        return _key_of_text(item, item.finding)
    why = prose(item.cell.note) or f"{item.cell.model}: no finding says why"
    return Key("alone", f"unexplained-{_named_model(item.cell.model)}", _cut(why))


def _normal(text: str, model: str) -> str:
    own = re.sub(rf"(?<!\w){re.escape(model)}(?!\w)", "MODEL", _FOLDERS.sub("", prose(text)))
    return _NUMBERS.sub("N", _NUMBER.sub("N", own))


def _named(words: str) -> str:
    begin = _slug(_EXCEPTION.sub("", words, count=1))[:28].rstrip("-.:")
    return f"{begin.lower()}-{_digest(words)}"


def _named_model(model: str) -> str:
    slug = _slug(model)
    return slug if slug == model else f"{slug[:28]}-{_digest(model)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:4]


def _slug(text: str) -> str:
    slug = _NOT_IN_AN_ID.sub("-", text).strip("-.:")
    return slug if len(slug) <= SLUG_LIMIT else f"{slug[:SLUG_KEPT]}-{_digest(text)}"


def _cut(text: str) -> str:
    text = prose(text)
    return text if len(text) <= TITLE_LIMIT else f"{text[: TITLE_LIMIT - 3].rstrip()}..."


def _cause(key: Key, items: Sequence[_Red], report: RunReport) -> Cause:
    first = items[0]
    statuses = {item.status for item in items}
    remedy, deploy, many = _remedy(items)
    advised = (known.what_to_do for known in _static(first, stopping=True))
    own = first.finding.advice if first.finding is not None else ""
    advice = own or next(filter(None, advised), "")
    return Cause(
        id=key.id,
        kind=key.kind,
        status=next(status for status in WORST_FIRST if status in statuses),
        title=key.title,
        cells=tuple(dict.fromkeys(item.cell.cell for item in items)),
        models=tuple(dict.fromkeys(item.cell.model for item in items)),
        excess=first.beyond.factor if first.beyond is not None else None,
        beyond=first.beyond,
        evidence=tuple(_evidence(key, first))[:EVIDENCE_LINES],
        fix=advice if remedy is None else fix_words(remedy, many, restores=_kind(first) in ANSWERS),
        fix_verified=remedy is not None,
        deploy=deploy,
        remedy=remedy,
        commands=tuple(_commands(key, items, report)),
    )


def _evidence(key: Key, item: _Red) -> Iterator[tuple[str, str]]:
    """Yield the strongest evidence: what is known of the cause, then what the clearest cell shows."""
    if item.finding is None:
        yield "what", prose(item.cell.note) or key.title
        return
    yield from (("waiver", prose(found.message)) for found in item.cell.findings if found.kind in WHY_NOT_WAIVED)
    what = ("what", prose(item.finding.message))
    if key.kind not in TOLD_BY_MORE:
        yield what
    if item.finding.kind == "broken_since":
        yield from (("what", prose(found.message)) for found in item.cell.findings if found is not item.finding)
    asked = {call.input_set for found in (item.facts.comparisons if item.facts else ()) for call in found.calls}
    if len(asked) > 1 and (input_set := item.finding.detail.get("input_set", "")):
        yield "request", f"{prose(input_set)}, of {len(asked)} that were compared"
    known = next((known for known in _static(item) if f"-{_slug(known.subject)}" in key.id), None)
    if known is not None:
        at = f"at {known.place.member}:{known.place.line}" if known.place is not None else ""
        yield "static", joined(prose(known.text), at)
    story = item.finding.story
    meaning, frames = _first(story, "meaning"), _first(story, "frames")
    if key.kind == "hang" and meaning is not None:
        yield meaning
    if key.kind == "setting" and (line := _first(story, DIFFERS)) is not None:
        yield line
    for explained in item.explained:
        yield from (line for line in explained.lines if line[0] in ("culprit", "code", "since"))
    if key.kind == "hang" and frames is not None:
        yield frames
    if known is not None and known.source:
        yield "source", known.source
    if key.kind in TOLD_BY_MORE:
        yield what


def _first(story: Sequence[tuple[str, str]], label: str) -> tuple[str, str] | None:
    return next((line for line in story if line[0] == label), None)


def _kind(item: _Red) -> str:
    return item.finding.kind if item.finding is not None else ""


def _remedy(items: Sequence[_Red]) -> tuple[Fix | None, tuple[tuple[str, str], ...], str]:
    """Return what takes most of the cells away, what of it is deployed, and of how many it is known, in words.

    Settings come before rewrites: they change no file. Of two searches that found the same the one that priced it
    counts, and of several cells the highest price.
    """
    settings: dict[str, list[Fix]] = {}
    paste: dict[str, tuple[tuple[str, str], ...]] = {}
    rewrites: list[Fix] = []
    patched: dict[str, str] = {}
    for item in items:
        mitigations = [tried for tried in item.mitigations if tried.mitigates]
        paste |= {tried.name: tuple(tried.paste.items()) for tried in mitigations}
        searched = sorted(item.explained, key=lambda told: told.by == "baseline")
        sources = [(fix_of(tried), "") for tried in mitigations]
        sources += [(fix, told.patched) for told in searched for fix in told.fixes]
        known: dict[tuple[bool, str], tuple[Fix, str]] = {}
        for fix, archive in sources:
            key = (fix.rewrites, fix.name)
            if key not in known or (known[key][0].price is None and fix.price is not None):
                known[key] = fix, archive
        for fix, _ in known.values():
            if not fix.rewrites:
                settings.setdefault(fix.name, []).append(fix)
        best = next(((fix, archive) for fix, archive in known.values() if fix.rewrites), None)
        if best is not None:
            rewrites.append(best[0])
            patched |= {item.cell.model: best[1]} if best[1] else {}
    chosen = max(settings.values(), key=len) if settings else rewrites
    if not chosen:
        return None, (), ""
    breaks = tuple(sorted({model for fix in chosen for model in fix.breaks}))
    prices = [fix.price for fix in chosen if fix.price is not None]
    highest = max(prices, key=lambda price: price.ratio, default=None)
    remedy = replace(chosen[0], price=highest, breaks=breaks)
    if settings:
        many = f"mitigates {len(chosen)} of {len(items)} cells" if len(items) > 1 else ""
        return remedy, paste.get(remedy.name, ()), many
    models = {item.cell.model for item in items}
    many = f"of {len(patched)} of {len(models)} models" if 0 < len(patched) < len(models) else ""
    return remedy, tuple(patched.items()), many


def _commands(key: Key, items: Sequence[_Red], report: RunReport) -> Iterator[tuple[str, str]]:
    if key.kind == "undecided" and (more := more_command(report)):
        yield "go on", more
    if items[0].status is Status.XPASS:
        yield "prune", prune_command(report, items[0].cell.cell)
    yield "rerun", rerun_of_cause(report, key.id, items[0].cell.cell)
    bisect = next((command for item in items if (command := bisect_command(report, item.cell))), "")
    searched = [explained for item in items for explained in item.explained if explained.by == "bisect"]
    is_lost = any(fix.rewrites for explained in searched if not explained.patched for fix in explained.fixes)
    if bisect and (not searched or is_lost):
        yield "bisect", bisect
    first = items[0]
    if first.status is Status.FAIL and first.finding is not None and first.finding.kind in ANSWERS:
        yield "accept", waive_command(report, key.id, first.cell.cell, {item.cell.model for item in items})
