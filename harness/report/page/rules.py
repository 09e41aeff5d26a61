"""What a run was judged by: its waivers and the cells that they cover, its policy, and the run it is compared with."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.core.findings import MEASURES, SEVERITY, Severity
from harness.core.measurement import limit_words
from harness.core.outcome import Status
from harness.core.plan import ERROR, FLOOR, OWN, PolicyRule, PolicySettings
from harness.core.policy import PolicyReport, Regated
from harness.core.quantities import COMMON, STEADY
from harness.core.report import BaselineReport, CellChange, RunReport
from harness.core.text import amount, joined, prose, visible
from harness.core.verdict import WaiverState, WaiverUse
from harness.report.page.parts import (
    BAD,
    CHANGE_TONES,
    GOOD,
    LINES_SHOWN,
    OPEN,
    QUIET,
    Fact,
    TableLine,
    outside,
    place,
    tone,
)
from harness.report.text.table import table_rows
from harness.report.words.phrases import percent, scenario_words, shorten
from harness.report.words.red_cells import finding_words
from harness.verdict.waivers.entries import WAIVER_KINDS
from harness.verdict.waivers.uses import SOON_DAYS, days_words

CELLS_SHOWN = 6
_WAIVER_LIMIT = 300
_STATES = {
    WaiverState.USED: GOOD,
    WaiverState.EXCEEDED: BAD,
    WaiverState.EXPIRED: BAD,
    WaiverState.OTHER_PAIR: QUIET,
    WaiverState.UNUSED: OPEN,
    WaiverState.NOT_JUDGED: QUIET,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverView:
    """One waiver: whom it is for, what it covers and what was seen, and what it did.

    ``cells`` are stages and where they are told, ``more`` of them are not listed; ``soon``: it ends within days.
    """

    model: str
    kind: str
    covers: str
    seen: str
    cells: tuple[tuple[str, str], ...]
    more: int
    broad: str
    owner: str
    until: str
    soon: bool
    reason: str
    issue: str
    state: str
    tone: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiversView:
    """The section: every waiver, and the cells that are known failures or were."""

    uses: tuple[WaiverView, ...]
    cells: tuple[TableLine, ...]


def waivers_view(report: RunReport) -> WaiversView:
    """Return the section about waivers; both parts are empty where a run has none."""
    stages = {cell.cell: visible(scenario_words(cell.scenario)) for cell in report.judgement.cells}
    uses = tuple(_use(use, stages) for use in _ranked(report.waivers))
    return WaiversView(uses=uses, cells=tuple(_cells(report)))


def _ranked(uses: Sequence[WaiverUse]) -> Sequence[WaiverUse]:
    """Return the waivers that need somebody first, each group in the order of the file."""
    order = {BAD: 0, OPEN: 1, GOOD: 2, QUIET: 3}
    return sorted(uses, key=lambda use: (order[waiver_tone(use)], not is_soon(use)))[:LINES_SHOWN]


def waiver_tone(use: WaiverUse) -> str:
    """Return the tone of what a waiver did; one that has expired and that nothing needed is only to be removed."""
    return OPEN if use.state is WaiverState.EXPIRED and not use.cells else _STATES[use.state]


def is_soon(use: WaiverUse) -> bool:
    """Return whether a waiver ends within days."""
    return 0 <= use.days_left <= SOON_DAYS


def _use(use: WaiverUse, stages: Mapping[str, str]) -> WaiverView:
    waiver = use.waiver
    pair = " → ".join(text or "any" for text in (waiver.old, waiver.new))
    covers = [f"up to {_size(waiver.kind, waiver.bound)}" if waiver.bound is not None else ""]
    covers += [f"torch {pair}" if waiver.old or waiver.new else "", scenario_words(waiver.scenario)]
    covers += [waiver.device, f"profile {waiver.profile}" if waiver.profile else ""]
    return WaiverView(
        model=shorten(visible(waiver.model), 80),
        kind=visible(waiver.kind),
        covers=shorten(prose(", ".join(text for text in covers if text)), _WAIVER_LIMIT),
        seen=_size(waiver.kind, use.size) if use.size is not None else "",
        cells=tuple((stages.get(cell, visible(cell)), place(cell)) for cell in use.cells[:CELLS_SHOWN]),
        more=max(0, len(use.cells) - CELLS_SHOWN),
        broad=shorten(prose(", ".join(use.broad)), _WAIVER_LIMIT),
        owner=shorten(prose(waiver.owner), 80),
        until=f"{waiver.expires.isoformat()}, {days_words(use.days_left)}",
        soon=is_soon(use),
        reason=shorten(prose(waiver.reason), _WAIVER_LIMIT),
        issue=outside(waiver.issue),
        state=use.state.value,
        tone=waiver_tone(use),
    )


def _size(kind: str, size: float) -> str:
    return percent(size) if MEASURES.get(kind) == "ratio" else f"{size:.3g} of the largest value"


def _cells(report: RunReport) -> Iterator[TableLine]:
    """Yield the cells that a waiver covers, or covered until it expired."""
    for row in table_rows(report):
        for cell in row.verdict.cells if row.verdict is not None else ():
            messages = [item.message for item in cell.findings if item.kind in WAIVER_KINDS]
            if messages or cell.status in (Status.XFAIL, Status.XPASS):
                news = [message for message in messages if message not in cell.note]
                words = joined(cell.note, *news)
                said = "; ".join(finding_words(item) for item in cell.findings if _is_failing(item.kind))
                texts = (
                    shorten(visible(cell.model), 80),
                    visible(scenario_words(cell.scenario)),
                    shorten(prose(said), _WAIVER_LIMIT),
                    shorten(prose(words), 2 * _WAIVER_LIMIT),
                )
                yield TableLine(texts=texts, status=cell.status.value, tone=tone(cell.status))


def _is_failing(kind: str) -> bool:
    return SEVERITY.get(kind) is Severity.FAIL


_TEXT_LIMIT = 400
_NAME_LIMIT = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyView:
    """What stands in the section about the policy.

    Attributes:
        facts: what it says for all models; ``rules``: (models, what holds for them in its place).
        demands: what it asks of the whole run, with what there is.
        ruled: findings that weigh otherwise, with the status of their cell.
        regated: what the run had decided itself, where another policy has judged it since; empty where none has.
        changes: cells that are judged otherwise than by the run itself.
    """

    source: str
    facts: tuple[Fact, ...]
    rules: tuple[tuple[str, str], ...]
    demands: tuple[TableLine, ...]
    ruled: tuple[TableLine, ...]
    regated: str
    changes: tuple[TableLine, ...]
    notes: tuple[str, ...]


def policy_view(report: RunReport, policy: PolicyReport) -> PolicyView:
    """Return the section about the policy of a run."""
    regated = policy.regated
    return PolicyView(
        source=shorten(visible(policy.source), _NAME_LIMIT),
        facts=tuple((label, shorten(prose(text), _TEXT_LIMIT)) for label, text in _facts(policy) if text),
        rules=tuple((shorten(prose(rule.models), _NAME_LIMIT), _rule_words(rule)) for rule in policy.settings.rules),
        demands=tuple(
            TableLine(
                texts=(shorten(prose(item.what), _TEXT_LIMIT), shorten(prose(item.found), _TEXT_LIMIT)),
                status="met" if item.met else "not met",
                tone=GOOD if item.met else BAD,
            )
            for item in policy.demands
        ),
        ruled=tuple(_ruled(report))[:LINES_SHOWN],
        regated=_regated_words(regated) if regated is not None else "",
        changes=tuple(_changes(regated))[:LINES_SHOWN] if regated is not None else (),
        notes=tuple(shorten(prose(note), _TEXT_LIMIT) for note in policy.notes),
    )


def _facts(policy: PolicyReport) -> Iterator[tuple[str, str]]:
    settings = policy.settings
    steady = settings.limits.get(STEADY, policy.steady)
    undecided = f"an undecided one does not decide below {limit_words(policy.undecided)}"
    floor_s = settings.limits.get(FLOOR, policy.floor_s)
    floor = f" and by {amount(floor_s, 's')} per call" if floor_s else ""
    yield "steady latency", f"fails beyond {limit_words(steady)}{floor}; {undecided}"
    yield (
        "limits",
        _limits_words({name: limit for name, limit in settings.limits.items() if name not in (STEADY, FLOOR, COMMON)}),
    )
    common = settings.limits.get(COMMON, policy.common)
    yield "common slowdown", f"fails beyond {limit_words(common)}" if math.isfinite(common) else ""
    yield "of a model", "its own part is held against its limit" if settings.latency == OWN else ""
    yield "severity", _severity_words(settings.severity)
    yield "also gate", ", ".join(settings.gates)
    yield "needs", _needs_words(settings)
    yield "rollback", "a model that cannot be rolled back fails the run" if settings.rollback == "fail" else ""
    yield "accepts", ", ".join(settings.accepted_mitigations)
    yield "waivers", "one that nothing needs fails its cell" if settings.unused_waivers == "fail" else ""


def _needs_words(settings: PolicySettings) -> str:
    needs = [f"a verdict in {scenario_words(name)}" for name in settings.required_scenarios]
    needs += [f"{settings.minimum_models} models judged"] if settings.minimum_models else []
    needs += [f"{100 * settings.minimum_coverage:.3g} % of those selected judged"] if settings.minimum_coverage else []
    return ", ".join(needs)


def _limits_words(limits: Mapping[str, float]) -> str:
    said = (f"{name} {_limit_words(name, limit)}" for name, limit in sorted(limits.items()))
    return ", ".join(said)


def _limit_words(name: str, limit: float) -> str:
    if name == FLOOR:
        return amount(limit, "s")
    return f"{limit:.3g}" if name == ERROR else limit_words(limit)


def _severity_words(severity: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} counts as {weight}" for kind, weight in sorted(severity.items()))


def _rule_words(rule: PolicyRule) -> str:
    needs = ", ".join(f"a verdict in {scenario_words(name)}" for name in rule.required_scenarios)
    gates = f"{', '.join(rule.gates)} gate" if rule.gates else ""
    parts = (_limits_words(rule.limits), _severity_words(rule.severity), gates, needs)
    return shorten(prose(joined(*parts)), _TEXT_LIMIT)


def _ruled(report: RunReport) -> Iterator[TableLine]:
    """Yield what the policy made of findings, in the order of the table."""
    for row in table_rows(report):
        for cell in row.verdict.cells if row.verdict is not None else ():
            for item in cell.ruled:
                texts = (
                    shorten(visible(cell.model), _NAME_LIMIT),
                    visible(scenario_words(cell.scenario)),
                    f"{visible(item.kind)}: {item.was} → {item.now}",
                    shorten(prose(joined(item.by, item.why)), _TEXT_LIMIT),
                )
                yield TableLine(texts=texts, status=cell.status.value, tone=tone(cell.status))


def _regated_words(regated: Regated) -> str:
    own = f"The run itself had decided {regated.decision.value} (exit code {regated.exit_code}): {regated.reason}"
    return shorten(prose(f"{own}. {regated.why}"), 2 * _TEXT_LIMIT)


def _changes(regated: Regated) -> Iterator[TableLine]:
    for item in regated.changes:
        texts = (shorten(visible(item.cell), 2 * _NAME_LIMIT), item.was.value, shorten(prose(item.why), _TEXT_LIMIT))
        yield TableLine(texts=texts, status=item.now.value, tone=tone(item.now))


CHANGES_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineView:
    """The other run, what else is not alike in both, and the cells that have changed; ``left_out`` of them are not."""

    title: str
    differences: tuple[str, ...]
    artifacts: str
    changes: tuple[TableLine, ...]
    left_out: int


def baseline_view(found: BaselineReport) -> BaselineView:
    """Return the section about the other run."""
    others = ", ".join(found.other_artifacts)
    return BaselineView(
        title=prose(f"{found.run}, started {found.started_at}: {found.decision.value}"),
        differences=tuple(shorten(prose(text), _TEXT_LIMIT) for text in found.differences),
        artifacts=shorten(prose(others), _TEXT_LIMIT),
        changes=tuple(_line(change) for change in found.changes[:CHANGES_SHOWN]),
        left_out=max(0, len(found.changes) - CHANGES_SHOWN),
    )


def _line(item: CellChange) -> TableLine:
    was, now = (status.value if status is not None else "not there" for status in (item.was, item.now))
    texts = (
        shorten(visible(item.model), 80),
        visible(scenario_words(item.scenario)),
        was,
        now,
        shorten(prose(item.why), _TEXT_LIMIT),
    )
    return TableLine(texts=texts, status=item.change.words, tone=CHANGE_TONES[item.change])
