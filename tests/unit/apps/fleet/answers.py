"""Plans and results of a fleet that ran nowhere: as a run leaves them, of the builders' reports."""

from dataclasses import replace
from pathlib import Path

from harness.verdict.causes import with_causes
from harness.verdict.decide import decide, judge_row
from harness.core.fleet import Examination, Fault, FleetArtifact, FleetPlan, FleetResult, PlannedOptions, Serving
from harness.apps.fleet.answer.merge import Merged
from harness.core.outcome import Status
from harness.core.prediction import Prediction
from harness.core.report import ModelReport, RunReport
from harness.core.verdict import CellVerdict, Mitigation
from harness.apps.fleet.answer.merge import merged
from harness.apps.fleet.plan import PlannedFleet
from harness.apps.fleet.units import DEFAULT_COSTS, RUN_S, Content, content_of, examined, units_of
from harness.apps.fleet.shard import frame_of
from harness.store import codec
from tests.unit.builders.reports import healthy, upgrade_ok, verdict

COMMON = Content(protocol="p", releases={"old": "2.1.2", "new": "2.6.0"}, device="cpu", settings="s", profiles={"": ()})
FRAME = frame_of(upgrade_ok())
SCENARIOS = ("alone", "concurrent")


def artifact(name: str, program: str = "P", weights: str = "", owner: str = "ads", tier: str = "") -> FleetArtifact:
    return FleetArtifact(
        name=name,
        path=f"{owner}/{name}.pt",
        sha256="0",
        program=program,
        weights=weights or name,
        owner=owner,
        tier=tier,
        tags=(owner,),
        predictions={"new": Prediction.LOADS},
        serving=Serving(),
    )


def plan_of(*artifacts: FleetArtifact, tiers: tuple[str, ...] = (), store: str = "/store") -> PlannedFleet:
    found = examined(artifacts, COMMON, tiers)
    plan = FleetPlan(
        harness_version="0",
        store=store,
        old="2.1.2",
        new="2.6.0",
        releases=COMMON.releases,
        options=PlannedOptions(overrides={}, assignments=(), environments=(), libraries=()),
        settings="s",
        device="cpu",
        profiles={"": ()},
        tiers=tiers,
        artifacts=tuple(sorted(found, key=lambda item: item.name)),
        units=units_of(found, DEFAULT_COSTS),
        run_s=RUN_S,
    )
    return PlannedFleet(plan=plan, folder=Path("/fleet"))


def result_of(
    planned: PlannedFleet,
    name: str,
    *red: CellVerdict,
    facts: ModelReport | None = None,
    mitigations: tuple[Mitigation, ...] = (),
    common: Content = COMMON,
) -> FleetResult:
    """What a run found of an artifact: it passes, but for the cells that are given."""
    item = next(item for item in planned.plan.artifacts if item.name == name)
    asked = SCENARIOS if item.examination is Examination.FULL else SCENARIOS[:1]
    wrong = {cell.scenario: cell for cell in red}
    cells = [wrong.get(scenario) or verdict(name, scenario) for scenario in asked]
    return FleetResult(
        key=item.key,
        content=content_of(item, item.examination, common),
        name=name,
        examination=item.examination,
        frame=codec.digest(FRAME),
        row=judge_row(name, cells, mitigations),
        facts=facts or replace(healthy(name), latency=None),
        seconds=2.0,
    )


def judged(report: RunReport) -> RunReport:
    """The report under no policy and without waivers."""
    rows = [judge_row(row.model, row.cells, row.mitigations) for row in report.judgement.rows]
    return with_causes(replace(report, judgement=decide(rows, report.judgement.planted_defects)))


def answer(planned: PlannedFleet, *results: FleetResult, faults: tuple[Fault, ...] = ()) -> Merged:
    return merged(
        planned,
        {item.key: item for item in results},
        {codec.digest(FRAME): FRAME},
        {fault.key: fault for fault in faults},
        judged,
        project=Path("/project"),
    )


def statuses(made: Merged) -> dict[str, Status | None]:
    return {row.name: row.status for row in made.answer.rows}
