"""A cell of a finished run that is red only where the model is brought up as in a server: what to do about it."""

from dataclasses import replace

from harness.diagnosis.bisect.cell import RED, SHOWN_AS, WELL
from harness.domain.diagnosis import BisectAnswer, Bisection
from harness.domain.plan import Plan
from harness.domain.report import RunReport
from harness.errors import SelectionError
from harness.run.cell.asked import SelectedCell, refuse_changed
from harness.run.files import read_report
from harness.run.options import Options
from harness.scenarios import INITIALIZATIONS

IN_VAIN = "none of the switches that the run tried cures it"


def with_server_group(alone: Plan, asked: SelectedCell) -> Plan:
    """Return the plan for the model of a cell, the first one, with the server group that it failed in.

    Args:
        alone: the plan for the model by itself.
    """
    (model,) = alone.models
    group, members = next((group, names) for group, names in asked.plan.groups.items() if model.name in names)
    others = tuple(item for item in asked.plan.models if item.name in members and item.name != model.name)
    refuse_changed(others, "bisect")
    settings = replace(alone.settings, rollback="off")
    return replace(
        alone,
        models=(model, *others),
        groups={group: members},
        scenarios=("alone", asked.cell.scenario),
        settings=settings,
    )


def scenario_of(plan: Plan) -> str:
    """Return the initialization that a plan of ``bisect`` is about; empty where it is about the model alone."""
    return next((name for name in plan.scenarios if name in INITIALIZATIONS), "")


def said_by_the_run(options: Options, asked: SelectedCell) -> Bisection | None:
    """Return what the run itself says of a cell of an initialization; None where nodes can be looked for.

    Raises:
        SelectionError: the run has no such cell.
    """
    cell = asked.cell
    if cell.scenario not in INITIALIZATIONS:
        return None
    report = read_report(options, str(asked.folder)).report
    row = next((row for row in report.judgement.rows if row.model == cell.model), None)
    found = next((item for item in row.cells if item.cell == cell.id), None) if row is not None else None
    if row is None or found is None:
        has = ", ".join(one.cell for one in row.cells) if row is not None else "none of that model"
        raise SelectionError(f"this run has no cell {cell.id}", f"it has {has}")
    if found.status in RED and any(kind in SHOWN_AS for kind in found.kinds):
        return None
    story = tuple(f"{label}: {text}" for finding in found.findings for label, text in finding.story[:3])
    cured = tuple(f"{tried.name} cures it" for tried in row.mitigations if tried.cures) or (IN_VAIN,)
    what = INITIALIZATIONS[cell.scenario].words
    shown = ", ".join(kind.replace("_", " ") for kind in found.kinds)
    why = f"{what}: {shown}: nodes are looked for where it hangs, crashes or raises"
    if found.status in WELL:
        why, cured = f"{what}: the run says {found.status}", ()
    return Bisection(
        model=cell.model,
        old=_name(report, "old"),
        new=_name(report, "new"),
        answer=BisectAnswer.NOTHING if found.status in WELL else BisectAnswer.UNDECIDED,
        symptom=tuple(finding.message for finding in found.findings),
        notes=(why, *story, *cured),
    )


def _name(report: RunReport, side: str) -> str:
    found = report.old if side == "old" else report.new
    return found.name
