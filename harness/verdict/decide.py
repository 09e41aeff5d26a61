"""From rows to a decision, here and nowhere else."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from harness.core.findings import SEVERITY, WORST_FIRST, Severity, cell_reason
from harness.core.measurement import RatioEstimate
from harness.core.models import UnjudgedFile
from harness.core.outcome import Decision, Status
from harness.core.prediction import RollbackAnswer, RollbackReport
from harness.core.text import counted, first_few, joined
from harness.core.verdict import CellVerdict, Finding, Judgement, Mitigation, PlantedDefectResult, RowVerdict
from harness.serving.settings.mitigations import MITIGATIONS
from harness.verdict.counting import OVER_LIMIT, UNDECIDED, counts_of, exceeded
from harness.verdict.exit_codes import exit_code
from harness.verdict.inputs import is_guessed, is_rewritten

NAMED = 3
UNJUDGED: Final = "unjudged_file"
HOLDING: Final = (Severity.FAIL, Severity.INCONCLUSIVE)
GREEN = (Decision.UPGRADE_OK, Decision.OK_WITH_MITIGATION)


def judge_row(model: str, cells: Sequence[CellVerdict], mitigations: Sequence[Mitigation] = ()) -> RowVerdict:
    deciding = [cell for cell in cells if cell.decides]
    statuses = {cell.status for cell in deciding}
    status = next((status for status in WORST_FIRST if status in statuses), Status.INCONCLUSIVE)
    reason = ""
    if status is not Status.PASS:
        worst = next((cell for cell in deciding if cell.status is status), None)
        reason = cell_reason(worst) if worst is not None else "no cell of this model was judged"
    with_mitigations = tuple(_with_mitigations(cell, mitigations) for cell in cells)
    return RowVerdict(model=model, status=status, cells=with_mitigations, reason=reason, mitigations=tuple(mitigations))


def _with_mitigations(cell: CellVerdict, mitigations: Sequence[Mitigation]) -> CellVerdict:
    """Return the cell with the switches that mitigate it named in what diverges only after the first calls."""
    if not mitigations:
        return cell
    names = ", ".join(item.name for item in mitigations if item.mitigates) or "none of the switches tried"
    findings = tuple(
        replace(finding, detail={**finding.detail, "mitigated_by": names})
        if finding.kind == "late_divergence"
        else finding
        for finding in cell.findings
    )
    return replace(cell, findings=findings)


def decide(
    rows: Sequence[RowVerdict],
    planted_defects: Sequence[PlantedDefectResult],
    *,
    vacuous: str = "",
    left_out: str = "",
    planted_defects_required: bool = True,
    accepted: Sequence[str] = (),
    rollback: RollbackReport | None = None,
    unmet: str = "",
    findings: Sequence[Finding] = (),
    severity: Mapping[str, str] = MappingProxyType({}),
) -> Judgement:
    """Return the decision of a run.

    Args:
        vacuous: why the run cannot be green whatever its rows say (same torch on both sides, CPU used where
            another device was asked for, ...), or empty.
        left_out: what the run left out because it was told to, or empty; a decision that lets one upgrade says so.
        planted_defects_required: False only for a rerun of one cell, which answers about that cell and no upgrade.
        accepted: mitigations that policy accepts and that were applied to the new side.
        rollback: whether one can roll back; decides only where policy says that it does.
        unmet: what the policy asks of the run as a whole and the run has not, in words.
    """
    decision, reason = _decide(rows, planted_defects, vacuous, planted_defects_required=planted_defects_required)
    blind = any(not item.caught for item in planted_defects)
    if rollback is not None and rollback.gates:
        decision, reason = _with_rollback(decision, reason, rollback, blind=blind)
    failing, unclear, named, warned = (
        "; ".join(item.message for item in findings if severity.get(item.kind, SEVERITY[item.kind]) == weight)
        for weight in (Severity.FAIL, Severity.INCONCLUSIVE, Severity.NAMED, Severity.WARN)
    )
    if failing and decision is not Decision.NOTHING_TESTED and not blind:
        decision, reason = Decision.BLOCKED, f"{reason}; {failing}" if decision is Decision.BLOCKED else failing
    elif unclear and decision in GREEN:
        decision, reason = Decision.INCONCLUSIVE, unclear
    if unmet and planted_defects_required:
        more = f"the policy asks for more: {unmet}"
        decision, reason = (Decision.INCONCLUSIVE, more) if decision in GREEN else (decision, f"{more}; {reason}")
    if decision is Decision.UPGRADE_OK and not planted_defects_required:
        decision, reason = _decide_cell(rows)
    if left_out and decision in GREEN:
        reason = f"{reason}; not asked for: {left_out}"
    if decision is Decision.UPGRADE_OK and accepted:
        decision = Decision.OK_WITH_MITIGATION
        not_asked = f"; not asked for: {left_out}" if left_out else ""
        reason = f"with {', '.join(accepted)}, which policy accepts{not_asked}"
        code = exit_code(Decision.UPGRADE_OK)
    else:
        code = exit_code(decision)
    over = (*([named] if named else []), *(item.words for item in exceeded(rows)))
    if over and decision in (*GREEN, Decision.CELL_OK):
        reason = f"{reason}; over its limit: {first_few(over, NAMED, '; ')}"
    return Judgement(
        decision=decision,
        reason=f"{reason}; warning: {warned}" if warned and decision in GREEN else reason,
        exit_code=int(code),
        rows=tuple(rows),
        planted_defects=tuple(planted_defects),
        accepted_mitigations=tuple(accepted),
        mitigation=_mitigation(rows, accepted) if decision is Decision.OK_WITH_MITIGATION else "",
        vacuous=vacuous,
        left_out=left_out,
        of_cell=not planted_defects_required,
        findings=tuple(findings),
        counts=counts_of(rows),
        exceeded=over,
    )


def unjudged_words(files: Sequence[UnjudgedFile], models: int) -> str:
    """Return which files beside so many models have no verdict: ``not judged: 2 of 5 files (a.pt, b.bin)``."""
    total = counted(len(files) + models, "file")
    return f"not judged: {len(files)} of {total} ({first_few([item.path for item in files], NAMED)})" if files else ""


def unjudged_findings(files: Sequence[UnjudgedFile], models: int, severity: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the finding on files that no verdict speaks of, where the policy has that decide."""
    holds = files and severity.get(UNJUDGED) in HOLDING
    return (Finding(kind=UNJUDGED, message=unjudged_words(files, models)),) if holds else ()


def _decide(
    rows: Sequence[RowVerdict],
    planted_defects: Sequence[PlantedDefectResult],
    vacuous: str,
    *,
    planted_defects_required: bool,
) -> tuple[Decision, str]:
    judged = [row for row in rows if row.status is not Status.UNSUPPORTED]
    if not judged:
        return Decision.NOTHING_TESTED, "no model was judged"
    missed = [planted_defect.name for planted_defect in planted_defects if not planted_defect.caught]
    if missed:
        return Decision.INCONCLUSIVE, f"the gate missed its own planted defects: {', '.join(missed)}"
    if planted_defects_required and not planted_defects:
        return Decision.INCONCLUSIVE, "no planted defect was probed, so nothing shows that the gate can see"
    failed = [row for row in rows if row.status in (Status.FAIL, Status.XPASS)]
    if failed:
        unmitigated = [row for row in failed if not is_mitigated(row)]
        if unmitigated:
            return Decision.BLOCKED, joined(_blocked_reason(unmitigated, len(failed)), vacuous)
        if not vacuous:
            open_rows = [row.model for row in rows if row.status is Status.INCONCLUSIVE]
            if open_rows:
                left = first_few(open_rows, NAMED)
                return Decision.INCONCLUSIVE, f"{_mitigation_reason(failed)}; not decided for {left}"
            return Decision.OK_WITH_MITIGATION, _mitigation_reason(failed)
        return Decision.BLOCKED, joined(_blocked_reason(failed, len(failed)), vacuous)
    if vacuous:
        return Decision.INCONCLUSIVE, vacuous
    unclear = [row.model for row in rows if row.status is Status.INCONCLUSIVE]
    if unclear:
        return Decision.INCONCLUSIVE, f"not decided for {first_few(unclear, NAMED)}"
    if not any(row.status in (Status.PASS, Status.XFAIL) for row in rows):
        return Decision.NOTHING_TESTED, "what fails here fails in the old release too, so nothing could regress"
    if not any(row.status is Status.PASS or _is_waived(row) for row in rows):
        return Decision.NOTHING_TESTED, "no model passes: the policy lets pass whatever fails"
    return Decision.UPGRADE_OK, _passing_words(rows)


def _passing_words(rows: Sequence[RowVerdict]) -> str:
    counts = counts_of(rows)
    rest = sum(row.status is not Status.PASS for row in rows)
    parts = [counted(counts.get(Status.PASS.value, 0), "model passes", "models pass")]
    parts += [f"{rest} {_rest_words(rows)}"] if rest else []
    parts += [f"{counts[OVER_LIMIT]} over a limit that does not block"] if OVER_LIMIT in counts else []
    parts += [f"{counts[UNDECIDED]} undecided"] if UNDECIDED in counts else []
    guessed = sum(row.status is Status.PASS and is_guessed(row) for row in rows)
    parts += [f"{guessed} of them asked with guessed inputs only"] if guessed else []
    rewritten = sum(row.status is Status.PASS and is_rewritten(row) for row in rows)
    parts += [f"{rewritten} of them rewritten, at a price that this run does not show"] if rewritten else []
    open_ = _open_words(rows)
    return ", ".join(parts) + (f" ({'; '.join(open_)})" if open_ else "")


def is_mitigated(row: RowVerdict) -> bool:
    """Whether a switch mitigates a failing row: all of it. Of what fails by the policy alone, no switch was asked."""
    by_policy = any(cell.status is Status.FAIL and cell.judged not in (None, Status.FAIL) for cell in row.cells)
    return not by_policy and any(mitigation.mitigates for mitigation in row.mitigations)


def _with_rollback(decision: Decision, reason: str, rollback: RollbackReport, *, blind: bool) -> tuple[Decision, str]:
    """Return the decision where policy asks for the rollback; ``blind``: a planted defect was missed."""
    if rollback.answer is RollbackAnswer.YES or decision is Decision.NOTHING_TESTED:
        return decision, reason
    if rollback.answer is RollbackAnswer.NO and not blind:
        closed = f"cannot roll back: {rollback.reason}"
        return Decision.BLOCKED, f"{reason}; {closed}" if decision is Decision.BLOCKED else closed
    if decision in GREEN:
        return Decision.INCONCLUSIVE, f"not known whether one can roll back: {rollback.reason}"
    return decision, reason


def _decide_cell(rows: Sequence[RowVerdict]) -> tuple[Decision, str]:
    """Return the decision of a run that repeats a cell and found nothing wrong: there, open is open."""
    undecided = [cell for row in rows for cell in row.cells if cell.status is Status.INCONCLUSIVE]
    if undecided:
        return Decision.INCONCLUSIVE, f"still not decided: {undecided[0].cell}"
    did = "fails and is waived" if any(_is_waived(row) for row in rows) else "passes"
    return Decision.CELL_OK, f"what was repeated {did}; it says nothing about the whole upgrade"


def _open_words(rows: Sequence[RowVerdict]) -> list[str]:
    """Return what was left open without deciding the run, per scenario."""
    cells = [cell for row in rows for cell in row.cells if cell.status is Status.INCONCLUSIVE and not cell.decides]
    counts = Counter(cell.scenario for cell in cells)
    return [f"{name.replace('_', ' ')} of {count} not decided" for name, count in sorted(counts.items())]


def _rest_words(rows: Sequence[RowVerdict]) -> str:
    words = {Status.SAME_FAIL: "failed before", Status.UNSUPPORTED: "unsupported"}
    present = [text for status, text in words.items() if any(row.status is status for row in rows)]
    known = [row for row in rows if row.status is Status.XFAIL]
    present += ["waived"] if any(_is_waived(row) for row in known) else []
    present += ["let pass by the policy"] if not all(_is_waived(row) for row in known) else []
    return " or ".join(present)


def _is_waived(row: RowVerdict) -> bool:
    known = [cell for cell in row.cells if cell.status is Status.XFAIL]
    return row.status is Status.XFAIL and not any(cell.ruled and not cell.waived for cell in known)


def _blocked_reason(rows: Sequence[RowVerdict], failed: int) -> str:
    first = min(rows, key=_gravity)
    more = f" (and {failed - 1} more)" if failed > 1 else ""
    return f"{first.model}: {first.reason}{more}"


def _gravity(row: RowVerdict) -> int:
    """Return the place of a row's gravest failure among the kinds: no answer, then another one, then a late one."""
    kinds = [finding.kind for cell in row.cells if cell.status is Status.FAIL for finding in cell.findings]
    return min((list(SEVERITY).index(kind) for kind in kinds if kind in SEVERITY), default=len(SEVERITY))


def _mitigation_reason(failed: Sequence[RowVerdict]) -> str:
    parts = []
    for name, mitigated in _mitigated_by(failed).items():
        highest = _highest_price(name, mitigated)
        price = f"steady latency {highest.words}" if highest is not None else "price not measured"
        parts.append(f"{name} mitigates {first_few([row.model for row in mitigated], NAMED)}, {price}")
    if len(parts) > 1:
        parts.append("these switches were not probed together")
    return "; ".join(parts)


def _mitigation(rows: Sequence[RowVerdict], accepted: Sequence[str]) -> str:
    """Return a headline's setting and its cost; accepted ones are set, and priced by the benchmark, already."""
    failed = [row for row in rows if row.status in (Status.FAIL, Status.XPASS)]
    parts = [f"{name}, accepted by the policy" for name in accepted]
    for name, mitigated in _mitigated_by(failed).items():
        highest = _highest_price(name, mitigated)
        parts.append(f"{name}, latency {highest.words}" if highest is not None else f"{name}, price not measured")
    return "; ".join(parts)


def _mitigated_by(failed: Sequence[RowVerdict]) -> dict[str, list[RowVerdict]]:
    """Return the mitigations to report, by name, each with the rows that it mitigates."""
    mitigation_of = chosen_mitigations(failed)
    return {
        name: [row for row in failed if mitigation_of.get(row.model) == name]
        for name in sorted(set(mitigation_of.values()))
    }


def _highest_price(name: str, rows: Sequence[RowVerdict]) -> RatioEstimate | None:
    prices = [
        item.price
        for row in rows
        for item in row.mitigations
        if item.name == name and item.mitigates and item.price is not None
    ]
    return max(prices, key=lambda price: price.ratio, default=None)


def chosen_mitigations(failed: Sequence[RowVerdict]) -> dict[str, str]:
    """Return one mitigation per failed model that one helps: the fewest different ones, found greedily.

    A switch is process-wide, so one switch that mitigates all is worth more than the cheapest for each. Of those that
    mitigate as many the cheapest is taken, and of those without a price the first in the table of settings.
    """
    open_rows = {
        row.model: {mitigation.name for mitigation in row.mitigations if mitigation.mitigates} for row in failed
    }
    order = {name: place for place, name in enumerate(MITIGATIONS)}
    tried = sorted(set().union(*open_rows.values()), key=lambda name: (order.get(name, len(order)), name))
    chosen: dict[str, str] = {}
    while open_rows:
        counts = {name: sum(name in mitigations for mitigations in open_rows.values()) for name in tried}
        if not any(counts.values()):
            break
        most = [name for name in tried if counts[name] == max(counts.values())]
        best = min(most, key=lambda name: _cost(name, [row for row in failed if row.model in open_rows]))
        for model in [model for model, mitigations in open_rows.items() if best in mitigations]:
            chosen[model] = best
            del open_rows[model]
    return chosen


def _cost(name: str, rows: Sequence[RowVerdict]) -> float:
    highest = _highest_price(name, rows)
    return highest.ratio if highest is not None else math.inf
