"""Judges a finished run again under another policy and other waivers: from its report alone, never greener than it.

What was found is not found again: the report keeps findings, comparisons and measurements, and the status of each cell
before policy and waivers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.checks.latency.limits import was_not_asked
from harness.checks.startup.slow_start import slow_start
from harness.config.policy import with_limits
from harness.core.errors import ExitCode
from harness.core.findings import SEVERITY, STATUS_OF, Severity
from harness.core.outcome import Status
from harness.core.plan import INITIALIZATION_LIMIT, LatencyBudget, PolicySettings
from harness.core.policy import ModelPolicy, PolicyReport, Regated, RegatedCell
from harness.core.quantities import INITIALIZATION, STEADY
from harness.core.report import CellTrend, ModelReport, RunReport, ScenarioReport
from harness.core.text import counted, joined
from harness.core.verdict import CellVerdict, Finding, Judgement, Mitigation, RowVerdict, Waiver, WaiverState
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.causes import with_causes
from harness.verdict.decide import HOLDING, decide, judge_row, unjudged_findings
from harness.verdict.demands import demands, unmet
from harness.verdict.enforce import WaiverContext, enforce, judge_timed, settled, without_policy
from harness.verdict.latency import judge_common, may_be_taken_off
from harness.verdict.since import BROKEN_SINCE, gone_models, gone_words
from harness.verdict.waivers.apply import concerns, has_expired, is_for
from harness.verdict.waivers.uses import ran_by, waiver_notes, waiver_uses

GONE: Final = "gone"


def regate(
    report: RunReport,
    settings: PolicySettings,
    policies: Mapping[str, ModelPolicy],
    context: WaiverContext,
    *,
    source: str,
    notes: Sequence[str] = (),
) -> RunReport:
    """Return the report as this policy and these waivers judge it; ``policies`` has one for every row's model."""
    divided = may_be_taken_off(report.common, _budget(report), settings)
    cells = settled(_judged_again(report, policies, context, divided=divided), settings, context)
    live = [item for item in context.waivers if is_for(item, context.ran) and not has_expired(item, context.today)]
    cells = {name: _held_back(own, report, settings, live) for name, own in cells.items()}
    rows = [
        judge_row(row.model, cells[row.model], _still_mitigated(row, cells[row.model])) for row in report.judgement.rows
    ]
    asked = () if report.judgement.of_cell else demands(settings, rows, policies, untimed=_untimed(report))
    rollback = report.rollback
    if rollback is not None:
        rollback = replace(rollback, gates=settings.rollback == "fail")
    judgement = _decided(replace(report, rollback=rollback), rows, settings, unmet(asked))
    policy_report = PolicyReport(
        source=source,
        settings=settings,
        steady=report.policy.steady,
        undecided=report.policy.undecided,
        floor_s=_budget(report).floor_s,
        common=1 + _budget(report).common_limit,
        demands=asked,
        notes=tuple(notes),
        regated=_changed(report, judgement, unmet(asked)),
    )
    steady = settings.limits.get(STEADY, report.policy.steady)
    every = [cell for own in cells.values() for cell in own]
    uses = waiver_uses(every, context.waivers, context.ran, context.today)
    waiver_words = waiver_notes(report.waivers)
    return replace(
        report,
        judgement=judgement,
        policy=policy_report,
        waivers=uses,
        notes=(*(note for note in report.notes if note not in waiver_words), *waiver_notes(uses)),
        rollback=rollback,
        limits={
            **report.limits,
            **settings.quantity_limits,
            STEADY: steady,
            INITIALIZATION: settings.limits.get(INITIALIZATION, INITIALIZATION_LIMIT),
        },
    )


def with_broken(report: RunReport) -> RunReport:
    """Return the report decided with its baseline: what works in neither release any more is undecided, never green."""
    settings = report.policy.settings
    live = [use.waiver for use in report.waivers if use.state not in (WaiverState.EXPIRED, WaiverState.OTHER_PAIR)]
    rows = [
        judge_row(row.model, _held_back(row.cells, report, settings, live), row.mitigations)
        for row in report.judgement.rows
    ]
    same = all(now.cells == row.cells for now, row in zip(rows, report.judgement.rows, strict=True))
    if same and not _of_the_run(report, settings):
        return report
    judgement = _decided(report, rows, settings, unmet(report.policy.demands))
    baseline, status = report.baseline, {cell.cell: cell.status for cell in judgement.cells}
    if baseline is not None:
        changes = tuple(replace(item, now=status.get(item.cell, item.now)) for item in baseline.changes)
        baseline = replace(baseline, changes=changes)
    return with_causes(replace(report, judgement=judgement, baseline=baseline))


def _held_back(
    cells: Sequence[CellVerdict], report: RunReport, settings: PolicySettings, live: Sequence[Waiver]
) -> tuple[CellVerdict, ...]:
    """Return the cells of one model; those that fail in both releases, and worked by the baselines, gate.

    ``live``: the waivers that count today for this pair; one of ``broken_since`` lets them stay as they are.
    """
    changes = report.baseline.changes if report.baseline is not None else ()
    broken = {item.cell: item.why for item in changes if item.change is CellTrend.NEW or item.still_broken}
    waivers, ran = [item for item in live if item.kind == BROKEN_SINCE], ran_by(report)
    weight = Severity(settings.severity.get(BROKEN_SINCE, SEVERITY[BROKEN_SINCE]))

    def held_back(cell: CellVerdict) -> CellVerdict:
        cell = without_policy(cell) if BROKEN_SINCE in cell.kinds else cell
        if not (cell.status is Status.SAME_FAIL and cell.decides and cell.cell in broken and weight in HOLDING):
            return cell
        finding = Finding(kind=BROKEN_SINCE, message=broken[cell.cell], subject=cell.model)
        told = replace(cell, findings=(finding, *cell.findings))
        if any(concerns(waiver, cell, ran) for waiver in waivers):
            return told
        return replace(told, status=STATUS_OF[weight], judged=cell.status, judged_note=cell.note)

    return tuple(map(held_back, cells))


def _untimed(report: RunReport) -> list[str]:
    return [model.model for model in report.models if not model.timed]


def _judged_again(
    report: RunReport, policies: Mapping[str, ModelPolicy], context: WaiverContext, *, divided: bool
) -> dict[str, tuple[CellVerdict, ...]]:
    models, timed = {model.model: model for model in report.models}, _carriers(report)
    return {
        row.model: tuple(
            _cell_again(
                cell,
                models.get(row.model),
                policies[row.model],
                context,
                report,
                timed=timed.get(cell.cell),
                divided=divided,
            )
            for cell in row.cells
        )
        for row in report.judgement.rows
    }


def _cell_again(
    cell: CellVerdict,
    model: ModelReport | None,
    policy: ModelPolicy,
    context: WaiverContext,
    report: RunReport,
    *,
    timed: ScenarioReport | None,
    divided: bool,
) -> CellVerdict:
    """Return one cell under the policy; a latency is judged from its measurement, under the limits of the policy.

    ``timed``: the initialization whose time is told with this cell, if any; ``divided``: whether what all models share
    was judged by itself.
    """
    before = was = _start_again(without_policy(cell), timed, policy)
    if cell.scenario == "latency" and model is not None and model.latency is not None:
        budget = _budget(report)
        before = judge_timed(cell.model, model.latency, budget, policy, divided=divided)
        own = with_limits(budget, policy.settings)
        if before.status is Status.INCONCLUSIVE:
            open_ = was_not_asked(model.latency, own, policy.settings) or _was_reported(was, report)
            before = replace(before, decides=before.decides or open_)
    comparisons = model.comparisons if model is not None else ()
    comparison = next((item for item in comparisons if item.scenario == cell.scenario), None)
    guessed = model.guessed if model is not None else ""
    judged = enforce(before, policy, context, comparison=comparison, guessed=guessed)
    return replace(judged, rounds=cell.rounds, failed_rounds=cell.failed_rounds)


def _carriers(report: RunReport) -> dict[str, ScenarioReport]:
    """Return cell -> initialization whose time it carries: the cell that warned, else (unknown) the group's first."""
    groups = {model.model: model.group for model in report.models}
    timed = {(item.scenario, item.group): item for item in report.scenarios}
    warning: dict[tuple[str, str], CellVerdict] = {}
    for cell in report.judgement.cells:
        place = cell.scenario, groups.get(cell.model, "")
        if place in timed and (place not in warning or "initialization_time" in cell.kinds):
            warning[place] = cell
    return {cell.cell: timed[place] for place, cell in warning.items()}


def _start_again(cell: CellVerdict, timed: ScenarioReport | None, policy: ModelPolicy) -> CellVerdict:
    if timed is None or timed.old is None or timed.old.init_s is None or timed.new.init_s is None:
        return cell
    limit = policy.settings.limits.get(INITIALIZATION, INITIALIZATION_LIMIT)
    words = INITIALIZATIONS[cell.scenario].words
    finding = slow_start(timed.old.init_s, timed.new.init_s, limit, group=timed.group, words=words)
    others = tuple(item for item in cell.findings if item.kind != "initialization_time")
    return replace(cell, findings=(*others, finding) if finding is not None else others)


def _was_reported(was: CellVerdict, report: RunReport) -> bool:
    """Whether the benchmark ended since it could tell its own limit; otherwise it would have gone on."""
    regated = report.policy.regated is not None
    return was.status is not Status.INCONCLUSIVE or (regated and was.decides)


def _still_mitigated(row: RowVerdict, cells: Sequence[CellVerdict]) -> tuple[Mitigation, ...]:
    """Return the mitigations of a row; none mitigates where something fails that the run did not try it on."""
    failed = {cell.cell for cell in row.cells if cell.status is Status.FAIL}
    if all(cell.cell in failed for cell in cells if cell.status is Status.FAIL):
        return row.mitigations
    why = "not tried on what fails under this policy"
    return tuple(replace(item, mitigates=False, note=why) if item.mitigates else item for item in row.mitigations)


def _decided(report: RunReport, rows: Sequence[RowVerdict], settings: PolicySettings, missing: str) -> Judgement:
    before = report.judgement
    common = judge_common(report.common, _budget(report), settings)
    is_rollback = report.direction == "forward"
    if report.rollback is None and settings.rollback == "fail" and not is_rollback:
        missing = joined(missing, "rollback: nobody asked for it in this run")
    applied = before.accepted_mitigations
    refused = [name for name in applied if name not in settings.accepted_mitigations]
    if refused:
        why = f"the new side ran with {', '.join(refused)}, which this policy does not accept"
        missing = joined(missing, why)
    judgement = decide(
        rows,
        before.planted_defects,
        vacuous=before.vacuous,
        left_out=before.left_out,
        planted_defects_required=not report.judgement.of_cell,
        accepted=applied,
        rollback=report.rollback,
        unmet=missing,
        findings=(*([] if common is None else [common]), *_of_the_run(report, settings)),
        severity=settings.severity,
    )
    if before.interrupted:
        return replace(judgement, interrupted=before.interrupted, exit_code=int(ExitCode.INTERRUPTED))
    return judgement


def _of_the_run(report: RunReport, settings: PolicySettings) -> tuple[Finding, ...]:
    """Return which models of the baseline the run lacks, and which files it has not judged, where these decide."""
    if report.judgement.of_cell:
        return ()
    gone = gone_models(report) if settings.severity.get(GONE) in HOLDING else []
    unjudged = unjudged_findings(report.unjudged, len(report.judgement.rows), settings.severity)
    return (*([Finding(kind=GONE, message=gone_words(gone))] if gone else []), *unjudged)


def _budget(report: RunReport) -> LatencyBudget:
    """Return the limits that hold where the policy says nothing: those of the run's configuration."""
    policy = report.policy
    return LatencyBudget(
        limit=round(policy.steady - 1, 12),
        undecided_limit=policy.undecided,
        floor_s=policy.floor_s,
        common_limit=round(policy.common - 1, 12),
    )


def _changed(report: RunReport, now: Judgement, missing: str) -> Regated:
    before = report.judgement
    old = {cell.cell: cell for cell in before.cells}
    changes = tuple(
        RegatedCell(
            cell=cell.cell,
            was=old[cell.cell].status,
            now=cell.status,
            why=_why(old[cell.cell], cell),
        )
        for cell in now.cells
        if cell.status is not old[cell.cell].status
    )
    parts = [f"{counted(len(changes), 'cell')} judged otherwise" if changes else "no cell is judged otherwise"]
    parts += [f"the policy asks for more: {missing}"] if missing else []
    return Regated(
        decision=before.decision,
        reason=before.reason,
        exit_code=before.exit_code,
        changes=changes,
        why="; ".join(parts),
    )


def _why(old: CellVerdict, now: CellVerdict) -> str:
    if now.note:
        return now.note
    if now.findings and now.status is not Status.PASS:
        return now.findings[0].message
    then = old.note or (old.findings[0].message if old.findings else old.status.value)
    return f"no more: {then}"
