"""What a run was judged by: its policy, its waivers and the cells that they cover, and the run it is compared with."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from harness.core.findings import MEASURES
from harness.core.measurement import limit_words
from harness.core.plan import ERROR, FLOOR, OWN, PolicyRule
from harness.core.policy import PolicyReport
from harness.core.quantities import COMMON, STEADY
from harness.core.report import RunReport
from harness.core.text import amount, first_few, joined
from harness.core.verdict import WaiverState, WaiverUse
from harness.report.document import (
    ALL,
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    MORE,
    OPEN,
    QUIET,
    USUAL,
    Block,
    Cell,
    Fact,
    Part,
    Row,
    Table,
    facts,
    outside,
    place,
    placed,
)
from harness.report.documents.fleet import CHANGE_TONES
from harness.report.documents.waivers import bound_words, is_soon, known_waivers, place_words, waiver_tone
from harness.report.words.phrases import percent, scenario_words
from harness.report.words.policy import policy_lines, shown_above
from harness.report.words.since import difference_lines, since_lines
from harness.verdict.waivers.apply import range_words
from harness.verdict.waivers.uses import days_words

CHANGES_SHOWN, CELLS_SHOWN, KNOWN_SHOWN = 200, 6, 3


def policy_part(report: RunReport) -> Part:
    """Return what the policy asked, what it made of the run, and on a page all that it says."""
    policy = report.policy
    said = Part(
        title=f"What {policy.source} says",
        folded=True,
        importance=ALL,
        opened=not (policy.demands or policy.regated or any(cell.ruled for cell in report.judgement.cells)),
        blocks=(*facts(_facts(policy), ALL), *_rules(policy)),
    )
    lines = [
        Fact(label, text, placed(USUAL, at, 15) if at < 3 else DETAIL)
        for at, (label, text) in enumerate(policy_lines(report, listed=CHANGES_SHOWN, shown=shown_above(report)))
    ]
    return Part(title="Policy", id="policy", noun="policy line", importance=FIRST, blocks=(*lines, said))


def _facts(policy: PolicyReport) -> Iterator[tuple[str, str]]:
    settings = policy.settings
    steady = settings.limits.get(STEADY, policy.steady)
    undecided = f"an undecided one does not decide below {limit_words(policy.undecided)}"
    floor_s = settings.limits.get(FLOOR, policy.floor_s)
    floor = f" and by {amount(floor_s, 's')} per call" if floor_s else ""
    yield "steady latency", f"fails beyond {limit_words(steady)}{floor}; {undecided}"
    others = {name: limit for name, limit in settings.limits.items() if name not in (STEADY, FLOOR, COMMON)}
    yield "limits", _limits_words(others)
    common = settings.limits.get(COMMON, policy.common)
    yield "common slowdown", f"fails beyond {limit_words(common)}" if math.isfinite(common) else ""
    yield "of a model", "its own part is held against its limit" if settings.latency == OWN else ""
    yield "severity", _severity_words(settings.severity)
    yield "also gate", ", ".join(settings.gates)
    needs = [f"a verdict in {scenario_words(name)}" for name in settings.required_scenarios]
    needs += [f"{settings.minimum_models} models judged"] if settings.minimum_models else []
    needs += [f"{100 * settings.minimum_coverage:.3g} % of those selected judged"] if settings.minimum_coverage else []
    yield "needs", ", ".join(needs)
    yield "rollback", "a model that cannot be rolled back fails the run" if settings.rollback == "fail" else ""
    yield "accepts", ", ".join(settings.accepted_mitigations)
    yield "waivers", "one that nothing needs fails its cell" if settings.unused_waivers == "fail" else ""


def _limits_words(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_limit_words(name, limit)}" for name, limit in sorted(limits.items()))


def _limit_words(name: str, limit: float) -> str:
    if name == FLOOR:
        return amount(limit, "s")
    return f"{limit:.3g}" if name == ERROR else limit_words(limit)


def _severity_words(severity: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} counts as {weight}" for kind, weight in sorted(severity.items()))


def _rules(policy: PolicyReport) -> Iterator[Table]:
    rows = tuple(Row(cells=(rule.models, _rule_words(rule))) for rule in policy.settings.rules)
    if rows:
        yield Table(
            heads=("models", "what holds"), rows=rows, caption="For some models, in place of that", importance=ALL
        )


def _rule_words(rule: PolicyRule) -> str:
    needs = ", ".join(f"a verdict in {scenario_words(name)}" for name in rule.required_scenarios)
    gates = f"{', '.join(rule.gates)} gate" if rule.gates else ""
    return joined(_limits_words(rule.limits), _severity_words(rule.severity), gates, needs)


WAIVER_ORDER = (BAD, OPEN, GOOD, QUIET)
WAIVER_HEADS = ("model", "finding", "where", "covers", "seen", "until", "owner", "reason", "issue", "state")


def waivers_fact(report: RunReport) -> Iterator[Fact]:
    """Yield for the head of a page what became of the waivers, and whose are needed."""
    uses = report.waivers
    if not uses:
        return
    counts = Counter(use.state for use in uses)
    words = [f"{counts[state]} {state.value}" for state in WaiverState if counts[state]]
    soon, known = sum(is_soon(use) for use in uses), known_waivers(uses)
    words += [f"{soon} about to expire"] if soon else []
    words += [first_few(known, KNOWN_SHOWN)] if known else []
    tones = {waiver_tone(use) for use in uses}
    tone = BAD if BAD in tones else OPEN if soon or OPEN in tones else GOOD
    yield Fact("waivers", ", ".join(words), ALL, tone=tone)


def waivers_part(report: RunReport) -> Part:
    """Return what each waiver did, those first that need somebody, and the cells that are known failures or were."""
    uses = [use for use in report.waivers if use.state is not WaiverState.NOT_JUDGED]
    quiet = len(report.waivers) - len(uses)
    uses.sort(key=lambda use: (WAIVER_ORDER.index(waiver_tone(use)), not is_soon(use)))
    stages = {cell.cell: scenario_words(cell.scenario) for cell in report.judgement.cells}
    rows = tuple(Row(cells=_use(use, stages), importance=DETAIL) for use in uses)
    tables: list[Block] = []
    if rows:
        tables.append(
            Table(heads=WAIVER_HEADS, rows=rows, noun="waiver", importance=DETAIL, caption="What each waiver did")
        )
    if quiet:
        tables.append(Fact("", f"Of {quiet} more nothing was judged that could need them.", DETAIL))
    return Part(title="Waivers", id="waivers", importance=DETAIL, blocks=tuple(tables))


def _use(use: WaiverUse, stages: Mapping[str, str]) -> tuple[str | Cell, ...]:
    waiver = use.waiver
    seen = _size(waiver.kind, use.size) if use.size is not None else ""
    named = ", ".join(stages.get(cell, cell) for cell in use.cells[:CELLS_SHOWN])
    more = len(use.cells) - CELLS_SHOWN
    where = f"{named}{f' and {more} more' if more > 0 else ''}"
    covers = joined(bound_words(waiver) or "any size", f"torch {range_words(waiver) or 'any'}")
    broad = f"; broad: {', '.join(use.broad)}" if use.broad else ""
    until = f"{waiver.expires.isoformat()}, {days_words(use.days_left)}"
    return (
        waiver.model,
        waiver.kind,
        place_words(waiver),
        f"{covers}{broad}",
        Cell(
            ": ".join(filter(None, (seen, where))) or "nothing",
            link=f"#{place(use.cells[0])}" if use.cells and use.cells[0] in stages else "",
        ),
        until,
        waiver.owner,
        waiver.reason,
        Cell(waiver.issue, link=outside(waiver.issue)),
        Cell(use.state.value, tone=waiver_tone(use)),
    )


def _size(kind: str, size: float) -> str:
    return percent(size) if MEASURES.get(kind) == "ratio" else f"{size:.3g} of the largest value"


def since_part(report: RunReport) -> Part:
    """Return what has changed since another run, cell by cell where it matters."""
    found = report.baseline
    if found is None:
        return Part(title="Since the baseline")
    differences = [Fact("differs", text, MORE) for text in difference_lines(found)]
    lines = [
        Fact(label, text, placed(FIRST - 60, at, 30) if at < 4 else DETAIL)
        for at, (label, text) in enumerate(
            line for line in since_lines(report, listed=CHANGES_SHOWN) if line[0] not in ("baseline", "differs")
        )
    ]
    nothing = [] if found.changes else [Fact("", "No cell has changed.", DETAIL)]
    blocks = (*differences, *lines, *nothing)
    return Part(title="Since the baseline", id="baseline", noun="baseline line", importance=FIRST, blocks=blocks)


def since_tone(report: RunReport) -> str:
    """Return the tone of what has changed since another run: of the worst change."""
    changes = report.baseline.changes if report.baseline is not None else ()
    tones = {CHANGE_TONES[item.change] for item in changes}
    return next((tone for tone in (BAD, OPEN) if tone in tones), GOOD)
