"""The version matrix: every release's artifacts in every other release; what is known already is not run again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.apps.matrix.cells import matrix_cells, matrix_rows
from harness.apps.upgrade.plan import plan_of_probes
from harness.artifacts.imported_source import ImportedSource
from harness.checks.hang import watchdog
from harness.config import command_words
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.plan import Plan
from harness.core.releases import GIVEN, Matrix
from harness.machine import clock
from harness.probing.provision import build_environments, opened
from harness.project import Project, shown_path
from harness.report.formats import MATRIX, Shown
from harness.search.release import ask_releases, release_keys
from harness.store.run_folder import RunDir
from harness.verdict.inputs import guess_notes

# Libraries are named per release.
PASSED_ON = tuple(name for name in command_words.REPEATED if name != command_words.LIBRARY)


def matrix(
    project: Project, releases: Sequence[str], golden_in: str | None = None, *, fresh: bool = False
) -> tuple[Matrix, Path]:
    """Run what is not known yet of the matrix over ``releases``; return it and the folder that keeps its results.

    ``golden_in``: the release whose answers are the golden ones of artifacts that are given; by default the configured
    old release where it is among them, else the first. ``fresh``: whether what earlier runs found is asked again.
    """
    settings = project.settings
    named = _named(releases or project.table.get("releases", ()), project)
    home = _home(golden_in, named, settings.old)
    first, *_, last = (item.spec for item in named.values())
    plan = plan_of_probes(project, project.selected(), settings, old=first, new=last)
    with RunDir.shared(project.answers) as store:
        try:
            result = _asked(plan, named, home, store, project, fresh=fresh)
        except KeyboardInterrupt:
            project.progress.note("finished results are kept, and the same command goes on with them")
            raise
        for name, data in MATRIX.rendered_files(result, Shown(directory=shown_path(store.path))):
            store.write(name, data)
    return result, store.path


def _asked(
    plan: Plan, named: Mapping[str, "_Named"], golden_in: str, store: RunDir, project: Project, *, fresh: bool
) -> Matrix:
    """Return the matrix of the plan's models over ``named``, in their order; every result is kept in ``store``."""
    begin_ns = clock.monotonic_ns()
    progress = project.progress
    progress.stage("environments")
    environments = build_environments({name: item.spec for name, item in named.items()}, project.builder)
    keys = release_keys(environments, plan.runs_on)
    ready = opened(
        {keys[name]: environments[name] for name in keys},
        store,
        builder=project.builder,
        progress=progress,
        golden=project.golden_store(),
        waivers=(),
        today=clock.today(),
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
            command=_pair_command(project),
            command_words={name: item.words for name, item in named.items() if item.words},
            notes=(
                *plan.notes,
                *guess_notes({name: item.artifact for name, item in exports.items()}),
                *notes,
                *(f"{folder} holds too much Python source to tell changes: not reused" for folder in source.too_many),
                *(f"could not be ended: {name}" for name in runner.unreaped),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class _Named:
    """One release as named: its name in the matrix, what to build or use, and what a command must be told of it."""

    text: str
    name: str
    spec: EnvSpec
    words: tuple[tuple[str, str], ...]


def _named(texts: Sequence[str], project: Project) -> dict[str, _Named]:
    """Return the releases by their names in the matrix: in full, or the NAME of an ``--env``."""
    by_name: dict[str, _Named] = {}
    for text, spec in project.releases(texts).items():
        options = (
            *((command_words.ENV, argument) for argument in project.interpreters_for(text)),
            *((command_words.LIBRARY, argument) for argument in project.libraries_for(text, texts)),
        )
        words = tuple((name, command_words.from_anywhere(name, value, str(Path.cwd()))) for name, value in options)
        name = spec.release or text
        by_name[name] = _Named(text=text, name=name, spec=spec, words=words)
    if len(by_name) < 2:
        which = f"only {', '.join(by_name)}" if by_name else "no release"
        raise ConfigError(f"a matrix needs two releases, and {which} is named", "such as --releases 2.1.2 2.6.0")
    return by_name


def _home(golden_in: str | None, releases: Mapping[str, _Named], production: str) -> str:
    if golden_in is None:
        ours = (item.name for item in releases.values() if production in (item.text, item.name))
        return next(ours, next(iter(releases)))
    home = next((item.name for item in releases.values() if golden_in in (item.text, item.name)), None)
    if home is None:
        raise ConfigError(f"--golden-in {golden_in}: it is none of the releases", f"one of: {', '.join(releases)}")
    return home


def _pair_command(project: Project) -> str:
    options = command_words.kept(project.arguments, PASSED_ON, here=str(Path.cwd()))
    return project.command("compat", *command_words.words_of(options))
