"""A fleet's plan and answer: of any number of artifacts, and with hostile names in all texts."""

from dataclasses import replace

from harness.core.verdict import Cause
from harness.core.fleet import (
    Examination,
    Fault,
    FleetArtifact,
    FleetCause,
    FleetPlan,
    FleetReport,
    FleetRow,
    FleetUnit,
    PlannedOptions,
    Unjudged,
    ShardDone,
    StoreStatus,
    Wave,
    WaveKind,
)
from harness.core.outcome import Decision, Status
from harness.core.prediction import Prediction
from harness.apps.fleet.answer.since import with_since
from tests.unit.builders.reports import HOSTILE_NAMES

TEAMS = 40


def fleet_plan(names: tuple[str, ...], reasons: int = 3) -> FleetPlan:
    """Return a plan in which every third artifact will not load, each for one of so many reasons."""
    artifacts = tuple(
        FleetArtifact(
            name=name,
            path=f"{name}.pt",
            sha256="0" * 64,
            program=f"{at % 7}",
            weights=f"{at}",
            owner=f"owner {at % 5}",
            predictions={"new": Prediction.LOADS if at % 3 else Prediction.FAILS},
            why="" if at % 3 else f"aten::operator_{at % reasons}: {name}",
            key=f"{at}",
            left_out="" if at % 4 else f"is damaged: {name}",
        )
        for at, name in enumerate(names)
    )
    units = tuple(
        FleetUnit(
            key=item.key,
            artifact=item.name,
            artifacts=(item.name,),
            examination=Examination.FULL,
            profile="",
            risk=0 if item.why else 3,
            cost_s=3.0,
        )
        for item in artifacts
    )
    return FleetPlan(
        harness_version="0",
        store="/models",
        old="2.1.2",
        new="2.6.0",
        releases={"old": "torch 2.1.2", "new": "torch 2.6.0"},
        options=PlannedOptions(overrides={}, assignments=(), environments=(), libraries=()),
        settings="",
        device="cpu",
        profiles={"": ()},
        tiers=("batch", "online"),
        artifacts=artifacts,
        units=units,
        run_s=60.0,
        within_s=3600.0,
        machines=3,
        notes=names,
    )


def fleet_answer(names: tuple[str, ...], causes: int = 3) -> FleetReport:
    """Return an answer in which artifacts fail for so many causes, wait in as many waves, or have a fault."""
    parts = [names[at::causes] for at in range(causes)]
    found = tuple(
        FleetCause(
            cause=Cause(
                id=f"operator-{at}",
                kind="operator",
                status=Status.FAIL,
                title=f"aten::operator_{at} is unknown to torch 2.6.0",
                cells=tuple(f"{name}/alone" for name in part),
                models=part,
                evidence=(("what", f"does not load: {part[0]}"),),
                fix="export again",
                commands=(("explain", "python -m harness compat --explain"),),
            ),
            owners={f"owner {part[0]}": len(part)},
            programs=1,
        )
        for at, part in enumerate(parts)
        if part
    )
    rows = tuple(
        FleetRow(
            name=name,
            path=f"{name}.pt",
            owner=name,
            tier="batch",
            tags=(name,),
            program="0",
            status=Status.FAIL,
            reason=f"does not load: {name}",
            cause=f"operator-{at % causes}",
        )
        for at, name in enumerate(names)
    )
    kinds = tuple(WaveKind)
    waves = tuple(
        Wave(
            kind=kinds[at % len(kinds)],
            needs=f"aten::operator_{at} {part[0]}",
            cost="latency +1.0 %",
            cause=f"operator-{at}",
            fix="export again",
            profile="triton_0" if at % 2 else "",
            owners={part[0]: len(part)},
            artifacts=part,
        )
        for at, part in enumerate(parts)
        if part
    )
    return FleetReport(
        harness_version="0",
        store="/models",
        old="torch 2.1.2",
        new="torch 2.6.0",
        device="cpu",
        decision=Decision.BLOCKED,
        reason=f"{names[0]}: does not load",
        exit_code=1,
        rows=rows,
        causes=found,
        waves=waves,
        faults=tuple(Fault(key=name, label="spurious-vanished", text=name) for name in names),
        machines=("one CPU",),
        notes=names,
        unjudged=tuple(Unjudged(path=name, reason=f"is no TorchScript: {name}") for name in names),
    )


def of_teams(count: int) -> FleetReport:
    """Return an answer of artifacts of 40 teams, every seventh red, beside one in which some of these were not."""
    made = fleet_answer(tuple(f"model_{at:04}" for at in range(count)), causes=12)
    rows = tuple(
        replace(row, owner=f"team_{at % TEAMS:02}")
        if at % 7 == 0
        else replace(row, owner=f"team_{at % TEAMS:02}", status=Status.PASS, cause="", reason="")
        for at, row in enumerate(made.rows)
    )
    red = {row.name for row in rows if row.status is Status.FAIL}
    causes = tuple(
        replace(
            item,
            owners={f"team_{at:02}": 3},
            cause=replace(item.cause, models=tuple(name for name in item.cause.models if name in red)),
        )
        for at, item in enumerate(made.causes)
    )
    now = replace(made, rows=rows, causes=causes, notes=made.notes[:3], faults=made.faults[:8])
    was = tuple(replace(row, status=Status.PASS, content="1") if at % 70 == 0 else row for at, row in enumerate(rows))
    return with_since(now, [replace(now, rows=was)])


def shard_done() -> ShardDone:
    """Return what a call did that left faults with hostile names."""
    faults = tuple(Fault(key=name, label="spurious-vanished", text=name) for name in HOSTILE_NAMES)
    return ShardDone(units=40, known=3, made=29, faults=faults, runs=HOSTILE_NAMES)


def store_status() -> StoreStatus:
    """Return how much a folder keeps."""
    return StoreStatus(
        folder=f"/{'deep/' * 20}store",
        results=4000,
        bytes=10**9,
        programs=1200,
        faults=3,
        by_pair={"torch 2.1.2+cu121 python 3.11 -> torch 2.6.0+cu124 python 3.11 0123abcd": 4000},
        oldest_used="2026-11-25",
    )
