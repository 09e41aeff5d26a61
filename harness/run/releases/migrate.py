"""Can artifacts leave TorchScript: they are converted in one release, and what comes of it is run in others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.archive.code import CodeMemory
from harness.decision.inputs import guess_notes
from harness.domain.environment import EnvSpec
from harness.domain.migration import Migration
from harness.domain.plan import Plan
from harness.environments.compiling import compiling
from harness.hang import watchdog
from harness.models.imported_source import ImportedSource
from harness.probing.facts import Answered, Effects, Provisioned
from harness.probing.provision import build_environments, opened
from harness.releases.release import Release, ask_releases, make_row, release_keys
from harness.report.formats import MIGRATION, Shown
from harness.run.options import (
    Options,
    builder_for,
    golden_store,
    settings_of,
    shown_path,
)
from harness.run.plan import plan_of_probes
from harness.run.releases.named import refuse_unused_interpreters, spec_of, store_folder
from harness.store.run_folder import RunDir
from harness.successor.judging import causes_of, judge
from harness.successor.migrate import Loader, try_all
from harness.system import clock
from harness.system.progress import Progress


@dataclass(frozen=True, kw_only=True)
class FinishedMigration:
    """What ``migrate`` found, and the folder that keeps its results, as a reader would type it."""

    migration: Migration
    folder: str


def migrate(
    options: Options, releases: Sequence[str], progress: Progress, *, package: bool = False, fresh: bool = False
) -> FinishedMigration:
    """Return what becomes of each artifact outside of TorchScript; what is known already is not run again.

    Args:
        options: ``--old`` names the release whose TorchScript answers are the golden ones, ``--new`` the one that
            converts; without it the newest configured one does.
        releases: others in which the programs are loaded and run.
        package: whether packages of AOTInductor are made as well: that compiles for minutes.
        fresh: whether what earlier runs found is asked again.

    Raises:
        ConfigError: a name, the configuration or a file is wrong.
        EnvironmentUnavailable: a release could not be provisioned.
    """
    table, settings = settings_of(options)
    configured: Sequence[str] = table.get("releases", ())
    new = settings.new if "new" in options.overrides or not configured else configured[-1]
    loaders = tuple(dict.fromkeys((new, *releases)))
    names = tuple(dict.fromkeys((settings.old, *loaders)))
    refuse_unused_interpreters(options, names)
    specs = {name: spec_of(name, options, table, settings, names=names) for name in names}
    if package:
        specs[new] = compiling(specs[new])
    plan = plan_of_probes(options, settings, old=specs[settings.old], new=specs[new])
    with RunDir.shared(store_folder(options)) as store:
        try:
            found = _run(
                _Asked(plan=plan, specs=specs, old=settings.old, loaders=loaders, package=package, fresh=fresh),
                options,
                store,
                progress,
            )
        except KeyboardInterrupt:
            progress.note("interrupted; finished results are kept, and the same command goes on with them")
            raise
        folder = shown_path(store.path)
        for name, data in MIGRATION.rendered_files(found, Shown(directory=folder)):
            store.write(name, data)
    return FinishedMigration(migration=found, folder=folder)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is asked for: see ``migrate``; ``specs`` are the environments by name."""

    plan: Plan
    specs: Mapping[str, EnvSpec]
    old: str
    loaders: Sequence[str]
    package: bool
    fresh: bool


def _run(asked: _Asked, options: Options, store: RunDir, progress: Progress) -> Migration:
    begin_ns, builder = clock.monotonic_ns(), builder_for(options, progress)
    plan, loaders = asked.plan, asked.loaders
    progress.stage("environments")
    environments = build_environments(asked.specs, builder)
    keys = release_keys(environments, plan.runs_on)
    ready = opened(
        {keys[name]: environments[name] for name in keys},
        store,
        builder=builder,
        progress=progress,
        golden=golden_store(options),
        waivers=(),
        today=clock.today(),
        watchdog=watchdog,
        reuse=not asked.fresh,
        imported=(source := ImportedSource()),
    )
    with ready as effects:
        releases, notes = ask_releases(plan, environments, keys, effects, fresh=asked.fresh)
        by_name = {release.name: release for release in releases}
        answered = _answered(plan, by_name[asked.old], releases, effects)
        tried = try_all(
            answered, [Loader(name=name, side=by_name[name].key) for name in loaders], effects, package=asked.package
        )
        progress.finish()
        models = tuple(map(judge, tried))
        return Migration(
            device=plan.device,
            profile=plan.profile_name,
            old=asked.old,
            new=loaders[0],
            releases={release.name: release.fingerprint.torch for release in releases},
            loaders=tuple(loaders),
            packaged=asked.package,
            models=models,
            causes=causes_of(models),
            asked=len({result.key for result in effects.runner.finished}),
            known=len(effects.runner.results.reused),
            wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9,
            notes=(
                *plan.notes,
                *guess_notes({name: export.artifact for name, export in answered.exports.items()}),
                *notes,
                *(f"{folder} holds too much Python source to tell changes: not reused" for folder in source.too_many),
                *(f"could not be ended: {name}" for name in effects.runner.unreaped),
            ),
        )


def _answered(plan: Plan, old: Release, releases: Sequence[Release], effects: Effects) -> Answered:
    """Return the artifacts with their golden outputs: exported, or taken over, by the old release."""
    facts = Provisioned(plan=plan, fingerprints={release.key: release.fingerprint for release in releases})
    row = make_row(old.name, old, plan.models, facts, effects, memory=CodeMemory())
    effects.runner.release(old.key)
    return row.facts
