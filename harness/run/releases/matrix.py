"""The version matrix: every release's artifacts in every other release; what is known already is not run again."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config import command_words
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.plan import Settings
from harness.core.releases import Matrix
from harness.machine import clock
from harness.machine.progress import Progress
from harness.report.formats import MATRIX, Shown
from harness.run.options import (
    Options,
    builder_for,
    golden_store,
    own_command,
    settings_of,
    shown_path,
)
from harness.run.pipeline import run_matrix
from harness.run.plan import plan_of_probes
from harness.run.releases.named import (
    interpreters_for,
    libraries_for,
    refuse_unused_interpreters,
    spec_of,
    store_folder,
)
from harness.store.run_folder import RunDir

# Libraries are named per release.
PASSED_ON = tuple(name for name in command_words.REPEATED if name != command_words.LIBRARY)


@dataclass(frozen=True, kw_only=True)
class FinishedMatrix:
    """A matrix and the folder that keeps its results."""

    matrix: Matrix
    folder: Path


def matrix(
    options: Options, releases: Sequence[str], golden_in: str | None, progress: Progress, *, fresh: bool = False
) -> FinishedMatrix:
    """Run what is not known yet of the matrix over ``releases``, the configured ones if none is named.

    Args:
        golden_in: the release whose answers are the golden ones of artifacts that are given; without one
            the configured old release where it is among them, else the first.
        fresh: whether what earlier runs found is asked again.

    Raises:
        ConfigError: fewer than two releases, or a name, the configuration or a file is wrong.
        EnvironmentUnavailable: a release could not be provisioned.
    """
    table, settings = settings_of(options)
    named = _named(releases or table.get("releases", ()), options, table, settings)
    home = _home(golden_in, named, settings.old)
    specs = {name: item.spec for name, item in named.items()}
    first, *_, last = specs.values()
    plan = plan_of_probes(options, settings, old=first, new=last)
    folder = store_folder(options)
    with RunDir.shared(folder) as store:
        try:
            found = run_matrix(
                plan,
                specs,
                home,
                store=store,
                builder=builder_for(options, progress),
                progress=progress,
                golden=golden_store(options),
                today=clock.today(),
                fresh=fresh,
                command=_pair_command(options.arguments, options.project),
                command_words={name: item.words for name, item in named.items() if item.words},
            )
        except KeyboardInterrupt:
            progress.note("interrupted; finished results are kept, and the same command goes on with them")
            raise
        for name, data in MATRIX.rendered_files(found, Shown(directory=shown_path(folder))):
            store.write(name, data)
    return FinishedMatrix(matrix=found, folder=folder)


@dataclass(frozen=True, kw_only=True)
class _Named:
    """One release as named: its name in the matrix, what to build or use, and what a command must be told of it."""

    text: str
    name: str
    spec: EnvSpec
    words: tuple[tuple[str, str], ...]


def _named(texts: Sequence[str], options: Options, table: Mapping[str, Any], settings: Settings) -> dict[str, _Named]:
    """Return the releases by their names in the matrix: in full, or the NAME of an ``--env``."""
    refuse_unused_interpreters(options, texts)
    found: dict[str, _Named] = {}
    for text in texts:
        spec = spec_of(text, options, table, settings, names=texts)
        named = (
            *((command_words.ENV, argument) for argument in interpreters_for(text, options)),
            *((command_words.LIBRARY, argument) for argument in libraries_for(text, options, texts)),
        )
        words = tuple((name, command_words.from_anywhere(name, value, str(Path.cwd()))) for name, value in named)
        name = spec.release or text
        found[name] = _Named(text=text, name=name, spec=spec, words=words)
    if len(found) < 2:
        which = f"only {', '.join(found)}" if found else "no release"
        raise ConfigError(f"a matrix needs two releases, and {which} is named", "such as --releases 2.1.2 2.6.0")
    return found


def _home(golden_in: str | None, releases: Mapping[str, _Named], production: str) -> str:
    if golden_in is None:
        ours = (item.name for item in releases.values() if production in (item.text, item.name))
        return next(ours, next(iter(releases)))
    home = next((item.name for item in releases.values() if golden_in in (item.text, item.name)), None)
    if home is None:
        raise ConfigError(f"--golden-in {golden_in}: it is none of the releases", f"one of: {', '.join(releases)}")
    return home


def _pair_command(arguments: Sequence[str], project: Path) -> str:
    options = command_words.kept(arguments, PASSED_ON, here=str(Path.cwd()))
    return f"{own_command(project)} {shlex.join(['compat', *command_words.words_of(options)])}"
