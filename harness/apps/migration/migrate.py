"""Can artifacts leave TorchScript: they are converted in one release, and what comes of it is run in others."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.apps.upgrade.plan import plan_of_probes
from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.imported_source import ImportedSource
from harness.artifacts.owners import FleetManifest, load_fleet_manifest
from harness.checks.hang import watchdog
from harness.checks.migration.deprecation import release_facts
from harness.checks.migration.facts import Loader, Tried
from harness.checks.migration.known_races import race_notes
from harness.checks.migration.migrate import try_all
from harness.checks.migration.serving import take_worker, why_no_cpp, worker_in_the_making
from harness.checks.prediction.check import inspect_file
from harness.config.command_words import (
    FILES,
    REPEATED,
    from_anywhere,
    kept,
    names_a_side,
    side_options,
    words_of,
)
from harness.core.environment import EnvSpec
from harness.core.migration import Horizon, Migrated, MigratedModel, Migration, PartProgram
from harness.core.models import Artifact, ArtifactKind, ModelDeclaration
from harness.core.plan import Plan
from harness.core.text import first_few
from harness.core.verdict import Cause
from harness.environments.undeclared import compiling
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.facts import Answered, Effects, Provisioned
from harness.probing.provision import build_environments, opened
from harness.project import Project, shown_path
from harness.report.formats import MIGRATION, Shown
from harness.search.release import Release, Row, ask_releases, make_row, release_keys
from harness.search.unconvertible import with_parts
from harness.store.run_folder import RunDir
from harness.verdict.horizon import horizon
from harness.verdict.inputs import changed_operators, guess_notes, guess_of
from harness.verdict.migration import OF_COMPAT, causes_of, judge, standing
from harness.worker import wire

NAMED = 5
PROGRAMS = "programs"
"""The folder of the results with what is to be deployed."""


def migrate(
    project: Project,
    releases: Sequence[str],
    *,
    package: bool = False,
    walk: bool = True,
    fresh: bool = False,
    explain: bool = False,
    manifest: str | None = None,
) -> tuple[Migration, str]:
    """Return what becomes of each artifact outside of TorchScript, and the folder that keeps it, as one would type it.

    What is known already is not run again. ``project``: ``--old`` names the release whose TorchScript answers are the
    golden ones, ``--new`` the one that converts; without it the newest configured one does; ``package``: whether
    packages of AOTInductor are made as well: that compiles for minutes; ``walk``: whether a graph that torch's own
    converter gives up is walked; ``explain``: whether the smallest part that is
    not convertible is looked for, in one artifact of each cause.
    """
    owners = load_fleet_manifest(Path(manifest), file=manifest) if manifest is not None else FleetManifest()
    settings = project.settings
    configured: Sequence[str] = project.table.get("releases", ())
    given = project.sides_given
    new = settings.new if "new" in project.overrides or not configured else configured[-1]
    new = "new" if "new" in given else new
    settings = replace(settings, old="old") if "old" in given else settings
    loaders = tuple(dict.fromkeys((new, *releases)))
    names = tuple(dict.fromkeys((settings.old, *loaders)))
    specs = project.releases(names)
    if package:
        specs[new] = compiling(specs[new])
    plan = _of_torchscript(
        plan_of_probes(project, project.selected(), settings, old=specs[settings.old], new=specs[new])
    )
    with RunDir.shared(project.answers) as store:
        try:
            asked = _Asked(
                plan=plan,
                specs=specs,
                old=settings.old,
                loaders=loaders,
                package=package,
                walk=walk,
                fresh=fresh,
                explain=explain,
                said=owners,
            )
            migration = _run(asked, project, store)
        except KeyboardInterrupt:
            project.progress.note("finished results are kept, and the same command goes on with them")
            raise
        folder = shown_path(store.path)
        for name, data in MIGRATION.rendered_files(migration, Shown(directory=folder)):
            store.write(name, data)
    return migration, folder


def _of_torchscript(plan: Plan) -> Plan:
    left = [model for model in plan.models if model.kind is not ArtifactKind.TORCHSCRIPT]
    notes = [f"{model.name} is {model.kind.words} already (left out)" for model in left]
    models = tuple(model for model in plan.models if model not in left)
    return replace(plan, models=models, notes=(*plan.notes, *notes))


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is asked for: see ``migrate``; ``specs`` are the environments by name."""

    plan: Plan
    specs: Mapping[str, EnvSpec]
    old: str
    loaders: Sequence[str]
    package: bool
    walk: bool
    fresh: bool
    explain: bool
    said: FleetManifest


def _run(asked: _Asked, project: Project, store: RunDir) -> Migration:
    begin_ns, builder, progress = clock.monotonic_ns(), project.builder, project.progress
    plan, loaders = asked.plan, asked.loaders
    progress.stage("environments")
    environments = build_environments(asked.specs, builder)
    keys = release_keys(environments, plan.runs_on)
    ready = opened(
        {
            **{keys[name]: environments[name] for name in keys},
            **{side: environments[name] for side, name in (("old", asked.old), ("new", loaders[0]))},
        },
        store,
        builder=builder,
        progress=progress,
        golden=project.golden_store(),
        waivers=(),
        today=clock.today(),
        watchdog=watchdog,
        reuse=not asked.fresh,
        imported=(source := ImportedSource()),
    )
    with ready as effects:
        releases, notes = ask_releases(plan, environments, keys, effects, fresh=asked.fresh)
        by_name = {release.name: release for release in releases}
        ways = [Loader(name=name, side=by_name[name].key, torch=by_name[name].fingerprint.torch) for name in loaders]
        no_cpp = why_no_cpp(plan, effects, ways[0].side) if asked.package else "no package was asked for"
        with contextlib.nullcontext() if no_cpp else worker_in_the_making(plan, effects, ways[0].side) as making:
            row = _row(plan, by_name[asked.old], releases, effects)
            if making is not None:
                no_cpp = take_worker(making, effects, ways[0].side)
        answered = row.facts
        tried = try_all(
            answered, ways, effects, package=asked.package, in_cpp=not no_cpp, standing=standing if asked.walk else None
        )
        models = list(map(judge, tried))
        if asked.explain:
            both = _in_both(answered, by_name[asked.old], by_name[loaders[0]])
            models = with_parts(tried, models, both, effects)
        progress.stage("read what was written", len(tried))
        owners, idle = _owners(plan.models, asked.said)
        models = [
            replace(
                model,
                horizon=_horizon(item, row, releases, progress),
                owner=owners.get(item.model, ""),
                guessed=guess_of(answered.exports[item.model].artifact),
                **_programs(item, model, store, effects),
            )
            for item, model in zip(tried, models, strict=True)
        ]
        progress.finish()
        return Migration(
            device=plan.device,
            profile=plan.profile_name,
            old=asked.old,
            new=loaders[0],
            releases={release.name: release.fingerprint.torch for release in releases},
            loaders=tuple(loaders),
            packaged=asked.package,
            package_command="" if asked.package else _command("migrate", asked, project, "--package"),
            models=tuple(models),
            causes=tuple(_with_next(cause, models, asked, project) for cause in causes_of(models)),
            facts=tuple(
                fact for release in releases for fact in release_facts(release.name, release.fingerprint.torch)
            ),
            asked=len({result.key for result in effects.runner.finished}),
            known=len(effects.runner.results.reused),
            wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9,
            notes=(
                *([f"packages were not loaded, served or timed in C++: {no_cpp}"] if asked.package and no_cpp else []),
                *_unshown_changes(models, answered, by_name[asked.old], by_name[loaders[0]]),
                *_unshown_ways(tried, models),
                *_races(tried, by_name[loaders[0]]),
                *plan.notes,
                *guess_notes({name: export.artifact for name, export in answered.exports.items()}),
                *notes,
                *idle,
                *(f"{folder} holds too much Python source to tell changes: not reused" for folder in source.too_many),
                *(f"could not be ended: {name}" for name in effects.runner.unreaped),
            ),
        )


def _programs(tried: Tried, model: MigratedModel, store: RunDir, effects: Effects) -> dict[str, Any]:
    """Return the fields of a model that name its programs: those to deploy have a name of their own in the results."""
    deployed = model.outcome in (Migrated.READY, Migrated.GUARDED)

    def place(made: Artifact | None, number: int) -> str:
        if made is None:
            return ""
        part = f".{number}" if tried.parts else ""
        return _linked(made, f"{tried.model}{part}", store) if deployed else effects.shown(Path(made.path))

    made = [(place(one.program, at), place(one.compiled, at)) for at, one in enumerate(tried.each, start=1)]
    programs = tuple(
        PartProgram(method=one.part.method, fixed=one.part.fixed, program=program, package=package)
        for one, (program, package) in zip(tried.each, made, strict=True)
        if tried.parts and one.part is not None
    )
    return {"program": made[0][0], "package": made[0][1], "programs": programs}


def _linked(made: Artifact, name: str, store: RunDir) -> str:
    """Return where a program lies under its artifact's name, relative to the results: no copy of it, where one can."""
    path = Path(PROGRAMS, f"{name}{wire.PACKAGE if made.kind is ArtifactKind.PACKAGE else wire.PROGRAM}")
    target = Path(store.path) / path
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(made.path, target)
    except OSError:  # another file system
        shutil.copyfile(made.path, target)
    return path.as_posix()


def _with_next(cause: Cause, models: Sequence[MigratedModel], asked: _Asked, project: Project) -> Cause:
    """Return a cause with the ``compat`` that says more of its models, where one does."""
    if any(model.kind in OF_COMPAT for model in models if model.model in cause.models):
        return replace(cause, commands=(("next", _command("compat", asked, project, "--explain")),))
    return cause


def _command(verb: str, asked: _Asked, project: Project, *more: str) -> str:
    """Return the command line that asks ``verb`` about the same models and releases."""
    here, new = str(Path.cwd()), asked.loaders[0]
    sides = [
        *side_options("old", asked.specs[asked.old], asked.old, here=here),
        *side_options("new", asked.specs[new], new, here=here),
    ]
    files = [(FILES[0], from_anywhere(FILES[0], name, here)) for name in project.artifacts]
    names = [name for name in (*REPEATED, "-k") if name not in FILES]
    others = [option for option in kept(project.arguments, names, here=here) if not names_a_side(*option)]
    out = ["--out", str(project.reports)] if verb == "migrate" and project.out is not None else []
    return project.command(verb, *sides, *words_of([*files, *others]), *out, *more)


def _unshown_changes(models: Sequence[MigratedModel], answered: Answered, old: Release, new: Release) -> Iterator[str]:
    """Yield which ready models have operators that answer otherwise in the new release, unseen by guessed requests."""
    pair = old.fingerprint.torch, new.fingerprint.torch
    for model in models:
        artifact = answered.exports[model.model].artifact
        if model.outcome is Migrated.READY and artifact is not None and guess_of(artifact):
            yield from (f"{model.model}: {item.message}" for item in changed_operators(artifact, pair, draws=False))


def _unshown_ways(tried: Sequence[Tried], models: Sequence[MigratedModel]) -> Iterator[str]:
    """Yield which ready programs hold a way that no request takes: nobody has compared what it answers."""
    names = [
        model.model
        for item, model in zip(tried, models, strict=True)
        if model.outcome is Migrated.READY
        and any(way["value"] is None for one in item.each for way in one.mark("converted").get("decided", ()))
    ]
    if names:
        words = "a branch of which requests take one way alone, and the other was not compared"
        yield f"{first_few(names, NAMED)} {'has' if len(names) == 1 else 'have'} {words}"


def _races(tried: Sequence[Tried], made_by: Release) -> Iterator[str]:
    if any(item.compiled is not None for item in tried):
        seen_to_fix = {name for item in tried for way in item.served for name in way.mitigation}
        yield from race_notes(made_by.name, made_by.fingerprint.torch, seen_to_fix)


def _row(plan: Plan, old: Release, releases: Sequence[Release], effects: Effects) -> Row:
    """Return the artifacts with their golden outputs: exported, or taken over, by the old release; and read."""
    facts = Provisioned(plan=plan, fingerprints={release.key: release.fingerprint for release in releases})
    row = make_row(old.name, old, plan.models, facts, effects, memory=CodeMemory())
    effects.runner.release(old.key)
    return row


def _in_both(answered: Answered, old: Release, new: Release) -> Answered:
    """Return the facts for what asks two sides, ``old`` and ``new``: searches."""
    sides = {"old": old.fingerprint, "new": new.fingerprint}
    return replace(answered, fingerprints={**answered.fingerprints, **sides})


def _horizon(tried: Tried, row: Row, releases: Sequence[Release], progress: Progress) -> Horizon | None:
    program = None
    if tried.program is not None:
        folder = os.path.realpath(Path(tried.program.path).parent)
        program = inspect_file(tried.program.path, {}, within=folder).facts
    progress.step(tried.model)
    registries = {release.name: release.registry for release in releases if release.registry is not None}
    converted = tried.conversion.models if tried.conversion is not None else ()
    loaded = {tried.release} if any(result.load_ns is not None for result in converted) else set()
    return horizon(
        row.read.get(tried.model),
        program,
        registries,
        row.release.registry,
        loaded=loaded | ({row.release.name} if not tried.stopped[0] else set()),  # which has answered its requests
        program_loaded={result.release for result in tried.answers if result.load.load_ns is not None},
    )


def _owners(models: Sequence[ModelDeclaration], manifest: FleetManifest) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return whose each model is, and notes on what the manifest says of none; a pattern means the path of its file."""
    paths = {model.name: _path_of(model) for model in models}
    owners = {name: str(manifest.of(path).get("owner", "")) for name, path in paths.items()}
    return owners, manifest.idle([path] for path in paths.values())


def _path_of(model: ModelDeclaration) -> str:
    """Return the path of a model's file below the folder that was named; the name of one that is no file."""
    if model.given is None:
        return model.name
    real = Path(os.path.realpath(model.given.path))
    for folder in filter(None, (model.given.within, os.path.realpath(model.package_root))):
        if real.is_relative_to(folder):
            return real.relative_to(folder).as_posix()
    return real.name
