"""The whole program as a chain of stages: plan -> environments -> export -> probe -> compare -> judge."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date

from harness.apps.matrix.cells import matrix_cells, matrix_rows
from harness.artifacts.imported_source import ImportedSource
from harness.artifacts.old_outputs import Records
from harness.checks.hang import watchdog
from harness.checks.latency.benchmark import benchmark
from harness.checks.outputs.compare import compare
from harness.checks.prediction.check import predict_loading
from harness.checks.startup.initialize import initialize_groups, time_initialization
from harness.checks.startup.native import begin_builds, build_workers
from harness.core.environment import Environment, EnvSpec, Fingerprint
from harness.core.plan import Plan
from harness.core.releases import GIVEN, Matrix
from harness.core.report import RunReport
from harness.core.verdict import Waiver
from harness.environments.builder import EnvironmentBuilder
from harness.environments.sides import direction_of
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.alone import probe_alone
from harness.probing.export import export_models
from harness.probing.facts import (
    Answered,
    Attributed,
    Compared,
    Complete,
    Decided,
    Diagnosed,
    Effects,
    Inspected,
    Provisioned,
    Started,
    Timed,
    WithWorker,
)
from harness.probing.loaders import look_at_loaders
from harness.probing.old_answers import probe_old_release
from harness.probing.provision import build_environments, opened, sides, take_fingerprints
from harness.run.decide import decide_run, tell_so_far
from harness.run.planted_defects import probe_planted_defects
from harness.run.planted_startup_defects import beside_init_planted_defects
from harness.run.report.make import build_report
from harness.run.rollback import export_again, judge_rollback_probes, probe_rollbacks
from harness.run.way_out import take_out
from harness.search.attribute import attribute_failures
from harness.search.explain import explain
from harness.search.mitigation.mitigate import mitigate
from harness.search.release import ask_releases, release_keys
from harness.store.run_folder import RunDir
from harness.verdict.inputs import guess_notes
from harness.verdict.judge import judge_attributed, judge_cells, without_changed_bytes


def run(
    plan: Plan,
    *,
    run_dir: RunDir,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    waivers: tuple[Waiver, ...] = (),
    today: date,
    command: str,
) -> RunReport:
    """Run ``plan`` in ``run_dir`` and return its report; results that are stored there already are reused.

    Args:
        command: what every command about the run begins with.

    Raises:
        EnvironmentUnavailable: an environment could not be provisioned.
        ConfigError: both sides turned out to be the same torch.
    """
    begin_ns, started_at = clock.monotonic_ns(), clock.utc_now()
    ready = provisioned(
        plan, sides(plan), run_dir, builder=builder, progress=progress, golden=golden, waivers=waivers, today=today
    )
    with ready as (effects, first):
        taken_out = take_out(all_stages(first, effects), effects)
        progress.finish()
        return build_report(
            taken_out,
            effects,
            started_at=started_at.isoformat(timespec="seconds"),
            wall_ns=(begin_ns, clock.monotonic_ns()),
            command=command,
        )


def ask_old(
    plan: Plan,
    *,
    run_dir: RunDir,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    today: date,
) -> Answered:
    """Run the stages that need the old environment alone, with nothing but that, and return its answers.

    Raises:
        EnvironmentUnavailable: it could not be provisioned.
    """
    assert plan.old is not None
    alone = {"old": plan.old}
    ready = provisioned(
        plan, alone, run_dir, builder=builder, progress=progress, golden=golden, waivers=(), today=today
    )
    with ready as (effects, first):
        answered = probe_old_release(export_models(first, effects), effects)
        progress.finish()
        return answered


def run_matrix(
    plan: Plan,
    specs: Mapping[str, EnvSpec],
    golden_in: str,
    *,
    store: RunDir,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    today: date,
    fresh: bool = False,
    command: str,
    command_words: Mapping[str, tuple[tuple[str, str], ...]],
) -> Matrix:
    """Return the matrix of the plan's models over the releases ``specs``, in their order.

    Args:
        plan: its sides count for nothing here.
        golden_in: the one of ``specs`` whose answers are the golden ones of artifacts that are given.
        store: keeps every result under its key, for this run and later ones.
        fresh: whether what is known already is asked again.
        command, command_words: see ``Matrix``.

    Raises:
        EnvironmentUnavailable: an environment could not be provisioned or asked.
        ConfigError: two names mean one environment.
    """
    begin_ns = clock.monotonic_ns()
    progress.stage("environments")
    environments = build_environments(specs, builder)
    keys = release_keys(environments, plan.runs_on)
    ready = opened(
        {keys[name]: environments[name] for name in keys},
        store,
        builder=builder,
        progress=progress,
        golden=golden,
        waivers=(),
        today=today,
        watchdog=watchdog,
        reuse=not fresh,
        imported=(source := ImportedSource()),
    )
    with ready as effects:
        runner = effects.runner
        releases, notes = ask_releases(plan, environments, keys, effects, fresh=fresh)
        home = next(release for release in releases if release.name == golden_in)
        rows = matrix_rows(plan, releases, home, effects)
        cells = matrix_cells(rows, releases, effects)
        progress.finish()
        given = any(model.given is not None for model in plan.models)
        exports = {name: item for row in rows if row.name == GIVEN for name, item in row.facts.exports.items()}
        unended = (f"could not be ended: {name}" for name in runner.unreaped)
        unread = (f"{folder} holds too much Python source to tell changes: not reused" for folder in source.too_many)
        return Matrix(
            device=plan.device,
            profile=plan.profile_name,
            releases=tuple(release.described for release in releases),
            exporters=tuple(row.name for row in rows),
            golden_in=golden_in if given else "",
            models=tuple(model.name for model in plan.models),
            cells=cells,
            asked=len({result.key for result in runner.finished}),
            known=len(runner.results.reused),
            wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9,
            command=command,
            command_words=command_words,
            notes=(
                *plan.notes,
                *guess_notes({name: item.artifact for name, item in exports.items()}),
                *notes,
                *unread,
                *unended,
            ),
        )


def all_stages(ready: Provisioned, effects: Effects) -> Decided:
    """Return everything that a run learns, and its decision: each stage takes what the ones before it gave."""
    with begin_builds(ready, effects) as builds:
        exported = export_models(ready, effects)
        answered = probe_old_release(exported, effects)
        planted_defects = probe_planted_defects(answered, effects)
        probed = probe_alone(answered, effects)
        loader_notes = look_at_loaders(probed, effects)
        inspected = predict_loading(export_again(probed, effects), effects)
        inspected = probe_rollbacks(inspected, probed, effects)
        with_worker = build_workers(probed, effects, inspected.predictions, builds)
    started, more_planted_defects = beside_init_planted_defects(initialize_groups, with_worker, effects)
    compared = compare(started, effects)
    tell_so_far(compared, (*planted_defects, *more_planted_defects), effects)
    startup_timed = time_initialization(compared, effects)
    timed = benchmark(startup_timed, effects)
    judged = judge_cells(timed, effects)
    attributed = judge_attributed(attribute_failures(judged, effects), effects)
    mitigated = mitigate(attributed, effects)
    diagnosed = explain(mitigated, effects)
    rollback = judge_rollback_probes(inspected, answered, effects)
    complete = Complete(
        **{**Inspected.known(inspected), **Diagnosed.known(diagnosed)},
        planted_defects=(*planted_defects, *more_planted_defects),
        rollback=rollback,
        loader_notes=loader_notes,
    )
    return decide_run(without_changed_bytes(complete, effects), effects)


def judge(
    ready: Provisioned,
    effects: Effects,
    *,
    initialize: Callable[[WithWorker, Effects], Started] = initialize_groups,
    time: Callable[[Compared, Effects], Timed] = benchmark,
) -> Attributed:
    """Return the verdicts that a search begins with: no planted defects, no rollback, and nothing is searched yet."""
    exported = export_models(ready, effects)
    answered = probe_old_release(exported, effects)
    probed = probe_alone(answered, effects)
    with_worker = build_workers(probed, effects)
    started = initialize(with_worker, effects)
    compared = compare(started, effects)
    timed = time(compared, effects)
    judged = judge_cells(timed, effects)
    return without_changed_bytes(judge_attributed(attribute_failures(judged, effects), effects), effects)


@contextlib.contextmanager
def provisioned(
    plan: Plan,
    specs: Mapping[str, EnvSpec],
    run_dir: RunDir,
    *,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    waivers: tuple[Waiver, ...],
    today: date,
) -> Iterator[tuple[Effects, Provisioned]]:
    """Yield what touches the world, and the first facts, of a plan in the environments ``specs``, by side.

    Every process is ended however the run ends.

    Raises:
        EnvironmentUnavailable: an environment could not be provisioned.
    """
    try:
        begin_ns = clock.monotonic_ns()
        progress.stage("environments")
        environments = build_environments(specs, builder)
        built_ns = clock.monotonic_ns()
        ready = opened(
            environments,
            run_dir,
            builder=builder,
            progress=progress,
            golden=golden,
            waivers=waivers,
            today=today,
            watchdog=watchdog,
        )
        with ready as effects:
            progress.stage("import torch", len(environments))
            fingerprints = take_fingerprints(plan, environments, effects.runner, progress.step)
            if plan.golden is not None:
                producers = [golden.record(model.name).producer for model in plan.models]
                same = [producer for producer in producers if producer.identity == fingerprints["new"].identity]
                fingerprints["old"] = (same or producers)[0]
            environments = {
                side: replace(environment, name=_telling_name(environment, fingerprints[side]))
                for side, environment in environments.items()
            }
            if "new" in fingerprints:  # ready-made interpreters say only now which releases they hold
                plan = replace(plan, direction=direction_of(fingerprints["old"].torch, fingerprints["new"].torch))
            spans = (("environments", begin_ns, built_ns), ("import", built_ns, clock.monotonic_ns()))
            yield (
                replace(effects, environments=environments, spans=spans, import_cpu_s=effects.runner.import_cpu_s),
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
