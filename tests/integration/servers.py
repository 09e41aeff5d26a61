"""Server groups brought up below the command line: the stages of the gate, in this process, one after another."""

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from harness.checks.hang import watchdog
from harness.apps.upgrade.decide import decide_run
from harness.apps.upgrade.plan import make_plan
from harness.project import Project
from harness.checks.outputs.compare import compare
from harness.checks.outputs.findings import differs
from harness.verdict.cells import judge_cells
from harness.core.plan import Plan
from harness.checks.latency.benchmark import benchmark
from harness.checks.startup.initialize import initialize_groups
from harness.core.probe import ServingProfile
from harness.core.verdict import CellVerdict, PlantedDefectResult
from harness.artifacts import fixture_folders
from harness.probing.facts import Answered, Complete, Decided, Effects, Judged, Provisioned, Started, WithWorker
from harness.probing.export import export_models
from harness.probing.old_answers import probe_old_release
from harness.probing.provision import build_environments, opened, sides, take_fingerprints
from harness.checks.startup.launch import Launcher
from harness.serving.scenarios import INITIALIZATIONS
from harness.store.run_folder import RunDir
from harness.machine import clock
from harness.machine.progress import Progress
from tests.integration.gate import PROJECT


def planned(
    out: Path,
    fixtures: str | Path,
    *,
    scenarios: Sequence[str] = (),
    also: Sequence[str | Path] = (),
    libraries: Sequence[str] = (),
    overrides: Mapping[str, object] = MappingProxyType({}),
) -> Plan:
    """Return the plan of a run without planted defects; ``also`` are folders of models that are in no server group."""
    given = {"fixtures": str(fixtures), "latency": "off", **overrides}
    options = Project(folder=PROJECT, overrides=given, scenarios=scenarios, libraries=libraries, out=str(out))
    plan = make_plan(options)
    more = tuple(model for folder in also for model in fixture_folders.read_fixtures(PROJECT / folder))
    return replace(plan, planted_defects=(), models=(*plan.models, *more))


@contextlib.contextmanager
def provisioned(out: Path, plan: Plan) -> Iterator[tuple[Provisioned, Effects]]:
    """Both releases with their zygotes; afterwards every process has ended."""
    progress = Progress(io.StringIO(), enabled=False)
    builder = Project(folder=PROJECT, progress=progress).builder
    environments = build_environments(sides(plan), builder)
    with RunDir.create(out, "servers", clock.utc_now()) as run_dir:
        with opened(
            environments,
            run_dir,
            builder=builder,
            progress=progress,
            golden=contextlib.nullcontext(),  # type: ignore[arg-type]
            waivers=(),
            today=clock.utc_now().date(),
            watchdog=watchdog,
        ) as effects:
            fingerprints = take_fingerprints(plan, environments, effects.runner, lambda _: None)
            yield Provisioned(plan=plan, fingerprints=fingerprints), effects
        assert not effects.runner.unreaped


def answered(facts: Provisioned, effects: Effects) -> Answered:
    """Return the facts with the models exported and the old release's answers."""
    return probe_old_release(export_models(facts, effects), effects)


def judged(facts: WithWorker, effects: Effects) -> Judged:
    """Return the facts with the server groups brought up and judged; why they failed is not searched for."""
    return judged_started(initialize_groups(facts, effects), effects)


def judged_started(facts: Started, effects: Effects) -> Judged:
    """Return the facts with the server groups, brought up already, judged."""
    return judge_cells(benchmark(compare(facts, effects, differs), effects), effects)


def decided(facts: Judged, planted_defects: Sequence[PlantedDefectResult], effects: Effects) -> Decided:
    """Return the decision about what was judged, with nothing in between that nobody asked for."""
    complete = Complete(
        **Judged.known(facts),
        attributions={},
        mitigations={},
        explained=(),
        unexplained=(),
        rollback_probes={},
        static_notes=(),
        planted_defects=tuple(planted_defects),
        rollback=None,
    )
    return decide_run(complete, effects)


def launcher(scenario: str, facts: WithWorker, effects: Effects, *, side: str = "new", **profile: object) -> Launcher:
    """Return one side of a scenario under the configured serving profile with changes."""
    changed: ServingProfile = replace(facts.plan.settings.profile, **profile)  # type: ignore[arg-type]
    return Launcher(scenario=INITIALIZATIONS[scenario], side=side, profile=changed, facts=facts, effects=effects)


def cell(facts: Judged, model: str, scenario: str) -> CellVerdict:
    """Return the verdict on one model in one scenario."""
    return next(cell for cell in facts.verdicts[model] if cell.scenario == scenario)
