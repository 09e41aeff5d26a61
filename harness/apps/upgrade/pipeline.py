"""The whole program as a chain of stages: plan -> environments -> export -> probe -> compare -> judge."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from harness.apps.golden.source import records_of
from harness.apps.upgrade.decide import decide_run, tell_so_far
from harness.apps.upgrade.expected import tell_expected, tell_predicted
from harness.apps.upgrade.planted_defects import beside_planted_defects
from harness.apps.upgrade.planted_startup_defects import beside_init_planted_defects
from harness.apps.upgrade.report.make import build_report
from harness.apps.upgrade.rollback import export_again, judge_rollback_probes, probe_rollbacks
from harness.apps.upgrade.way_out import take_out
from harness.checks.hang import watchdog
from harness.checks.latency.benchmark import benchmark, untimed
from harness.checks.outputs.compare import compare
from harness.checks.outputs.findings import differs
from harness.checks.prediction.stage import predict_loading
from harness.checks.startup.initialize import initialize_groups, time_initialization
from harness.checks.startup.native import begin_builds, build_workers
from harness.core.environment import Environment, EnvSpec, Fingerprint
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.core.prediction import RollbackReport
from harness.core.report import RunReport
from harness.environments.sides import direction_of
from harness.machine import clock
from harness.probing.alone import probe_alone
from harness.probing.export import export_models
from harness.probing.facts import (
    Attributed,
    Compared,
    Complete,
    Decided,
    Diagnosed,
    Effects,
    Inspected,
    Judged,
    Provisioned,
    Started,
    TakenOut,
    Timed,
    WithWorker,
)
from harness.probing.kept_answers import KeptAnswers, kept_bytes, state_of
from harness.probing.loaders import look_at_loaders
from harness.probing.old_answers import probe_old_release, repeat_old_answers, was_asked_once
from harness.probing.provision import build_environments, opened, sides, take_fingerprints
from harness.project import Project
from harness.search.explain import explain
from harness.search.failure_attribution import attribute_failures
from harness.search.mitigation.mitigate import mitigate
from harness.store.run_folder import RunDir
from harness.verdict.cells import judge_attributed, judge_cells, without_changed_bytes


class InterruptedRun(KeyboardInterrupt):
    """Raised where a run is interrupted that knows something already; ``report`` has no more than that."""

    def __init__(self, report: RunReport) -> None:
        self.report = report


class _InterruptedAfter(KeyboardInterrupt):
    def __init__(self, facts: Decided) -> None:
        self.facts = facts


def run(plan: Plan, run_dir: RunDir, project: Project) -> RunReport:
    """Run ``plan`` in ``run_dir`` and return its report; results that are stored there already are reused.

    Raises ``InterruptedRun``: a signal has ended it after models were loaded and called.
    """
    begin_ns, started_at = clock.monotonic_ns(), clock.utc_now()
    tell_predicted(plan, project.progress)
    with provisioned(plan, sides(plan), run_dir, project) as (effects, first), _with_earlier_answers(first, effects):

        def report(facts: TakenOut) -> RunReport:
            project.progress.finish()
            return build_report(
                facts,
                effects,
                started_at=started_at.isoformat(timespec="seconds"),
                wall_ns=(begin_ns, clock.monotonic_ns()),
                command=project.command(),
            )

        try:
            return report(take_out(all_stages(first, effects), effects))
        except _InterruptedAfter as interrupted:
            known = Decided.known(interrupted.facts)
            partial = TakenOut(**known, migration=None, judged_by=tuple(effects.runner.finished))
            raise InterruptedRun(report(partial)) from None


@contextlib.contextmanager
def _with_earlier_answers(facts: Provisioned, effects: Effects) -> Iterator[None]:
    """Let probes be answers of earlier runs meanwhile, and leave this run's for later ones."""
    runner, most_bytes = effects.runner, kept_bytes()
    if not most_bytes:
        yield
        return
    named = {side: (effects.environments[side], runner.libtorch[side].get("root", "")) for side in runner.libtorch}
    states = {side: state_of(there, facts.fingerprints[side], folder) for side, (there, folder) in named.items()}
    known = {side: state for side, state in states.items() if state is not None}
    fresh, root = facts.plan.settings.fresh, effects.environment_root
    runner.kept = kept = KeptAnswers(root, known, run=effects.run_dir.name, fresh=fresh, most_bytes=most_bytes)
    try:
        yield
    finally:
        runner.kept = None
        kept.prune()


def all_stages(ready: Provisioned, effects: Effects) -> Decided:
    """Return everything that a run learns, and its decision: each stage takes what the ones before it gave.

    Raises ``_InterruptedAfter``: a signal came after models were loaded and called.
    """
    with begin_builds(ready, effects) as builds:
        exported = export_models(ready, effects)
        answered = probe_old_release(exported, effects, repeats=1)

        def alone() -> tuple[WithWorker, Inspected, tuple[str, ...]]:
            probed = probe_alone(answered, effects)
            loader_notes = look_at_loaders(probed, effects)
            inspected = predict_loading(export_again(probed, effects), effects)
            inspected = probe_rollbacks(inspected, probed, effects)
            return build_workers(probed, effects, inspected.predictions, builds), inspected, loader_notes

        (with_worker, inspected, loader_notes), planted_defects = beside_planted_defects(alone, answered, effects)

    def decided(facts: Diagnosed, rollback: RollbackReport | None, interrupted: str = "") -> Decided:
        complete = Complete(
            **{**Inspected.known(inspected), **Diagnosed.known(facts)},
            planted_defects=planted_defects,
            rollback=rollback,
            loader_notes=loader_notes,
            interrupted=interrupted,
        )
        return decide_run(without_changed_bytes(complete, effects), effects)

    during, compared, judged = "the initialization of server groups", None, None
    try:
        tell_expected(with_worker, effects)
        started, more_planted_defects = beside_init_planted_defects(initialize_groups, with_worker, effects)
        planted_defects = (*planted_defects, *more_planted_defects)
        compared = compare(started, effects, differs)
        tell_so_far(compared, planted_defects, effects)
        during = "timing"
        judged = judge_cells(benchmark(time_initialization(compared, effects), effects), effects)
        during = "the search for what is behind red cells"
        attributed = with_causes_asked(judged, effects)
        diagnosed = explain(mitigate(attributed, effects), effects)
        rollback = judge_rollback_probes(inspected, answered, effects)
    except KeyboardInterrupt as stop:
        if judged is None:
            none_started = Started(**WithWorker.known(with_worker), group_runs=(), initialized={})
            judged = judge_cells(untimed(compared or compare(none_started, effects, differs)), effects)
        searched = Diagnosed(**Judged.known(judged), attributions={}, mitigations={}, explained=(), unexplained=())
        raise _InterruptedAfter(decided(searched, None, during)) from stop
    return decided(diagnosed, rollback)


def judge(
    ready: Provisioned,
    effects: Effects,
    *,
    initialize: Callable[[WithWorker, Effects], Started] = initialize_groups,
    time: Callable[[Compared, Effects], Timed] = benchmark,
) -> Attributed:
    """Return the verdicts that a search begins with: no planted defects, no rollback, and nothing is searched yet."""
    exported = export_models(ready, effects)
    answered = probe_old_release(exported, effects, repeats=1)
    probed = probe_alone(answered, effects)
    with_worker = build_workers(probed, effects)
    started = initialize(with_worker, effects)
    compared = compare(started, effects, differs)
    timed = time(compared, effects)
    judged = judge_cells(timed, effects)
    return without_changed_bytes(with_causes_asked(judged, effects), effects)


def with_causes_asked(judged: Judged, effects: Effects) -> Attributed:
    """Return the facts with what is behind failures, and all that the old release can say of red models.

    Searches judge changes of these by it.
    """
    facts = judge_attributed(attribute_failures(judged, effects), effects)
    red = [name for name, cells in facts.verdicts.items() if any(cell.status is Status.FAIL for cell in cells)]
    lacking = [name for name in red if was_asked_once(name, facts)]
    if not lacking:
        return facts
    return replace(facts, baselines={**facts.baselines, **repeat_old_answers(lacking, facts, effects)})


@contextlib.contextmanager
def provisioned(
    plan: Plan, specs: Mapping[str, EnvSpec], run_dir: RunDir, project: Project
) -> Iterator[tuple[Effects, Provisioned]]:
    """Yield what touches the world, and the first facts, of a plan in the environments ``specs``, by side.

    Every process is ended however the run ends.
    """
    progress, golden = project.progress, records_of(plan, project)
    waivers = project.waivers(plan.settings) if "new" in specs else ()  # else nothing is judged
    try:
        begin_ns = clock.monotonic_ns()
        progress.stage("environments")
        environments = build_environments(specs, project.builder)
        built_ns = clock.monotonic_ns()
        ready = opened(
            environments,
            run_dir,
            builder=project.builder,
            progress=progress,
            golden=golden,
            waivers=waivers,
            today=clock.today(),
            watchdog=watchdog,
        )
        with ready as effects:
            progress.stage("import torch", len(environments))
            fingerprints = take_fingerprints(plan, environments, effects.runner, progress.step)
            if plan.golden is not None:
                recorded = golden.names()
                asked = [model.name for model in plan.models if model.name in recorded] or recorded[:1]
                producers = [golden.record(name).producer for name in asked]
                same = [producer for producer in producers if producer.identity == fingerprints["new"].identity]
                fingerprints["old"] = (same or producers)[0]
            environments = {
                side: replace(environment, name=_telling_name(environment, fingerprints[side]))
                for side, environment in environments.items()
            }
            if "new" in fingerprints:  # ready-made interpreters say only now which releases they hold
                plan = replace(plan, direction=direction_of(fingerprints["old"].torch, fingerprints["new"].torch))
            spans = (("environments", begin_ns, built_ns), ("import", built_ns, clock.monotonic_ns()))
            end_ns = built_ns + int(1e9 * plan.budget_s) if plan.budget_s else None
            import_cpu_s = effects.runner.import_cpu_s
            yield (
                replace(effects, environments=environments, spans=spans, import_cpu_s=import_cpu_s, end_ns=end_ns),
                Provisioned(plan=plan, fingerprints=fingerprints),
            )
    finally:
        progress.finish()


def _telling_name(environment: Environment, fingerprint: Fingerprint) -> str:
    """Return ``torch 2.6.0`` for a built environment, ``NAME (torch 2.6.0+cu124)`` for a ready-made interpreter."""
    if environment.spec.release is not None:
        return environment.name
    torch = f"torch {fingerprint.torch}"
    return torch if environment.name in ("old", "new") else f"{environment.name} ({torch})"
