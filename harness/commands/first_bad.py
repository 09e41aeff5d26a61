"""The first bad release of one model between two: which torch release, patch releases included, broke it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.commands.compat import chosen_device
from harness.commands.options import (
    Options,
    builder_for,
    check_computes_in,
    golden_store,
    known_models,
    own_command,
    settings_of,
)
from harness.commands.releases import library_of, refuse_unused_interpreters, spec_of, store_folder
from harness.domain.environment import EnvSpec
from harness.domain.first_bad import FirstBad
from harness.domain.fixture import ModelDeclaration
from harness.domain.plan import Plan, Settings
from harness.errors import ConfigError, SelectionError
from harness.planning import repeated_options
from harness.planning.pythons import choose_python
from harness.planning.selection import find_model, select
from harness.planning.sides import direction_of
from harness.planning.torch_releases import in_order
from harness.render.first_bad import dump_first_bad
from harness.runtime.environments import EnvironmentBuilder
from harness.runtime.installer import find_uv
from harness.runtime.interpreters import find_pythons, verified_python
from harness.runtime.progress import Progress
from harness.runtime.release_index import ReleaseIndex
from harness.runtime.run_dir import RunDir
from harness.stages.first_bad import search_first_bad

ENV = "--env"


def first_bad(
    options: Options,
    model: str | None,
    releases: Sequence[str],
    progress: Progress,
    *,
    build_limit: int | None = None,
) -> FirstBad:
    """Search the first release between the old and the new end in which ``model`` shows what it shows in the new one.

    Args:
        model: its name; None where only one is given or selected.
        releases: to choose from; the ends are the first and the last one unless the options name them. Empty: those
            that the package index has.
        build_limit: environments between the ends that may be built; None allows what halving needs.

    Raises:
        ConfigError: a name, the configuration or a file is wrong.
        EnvironmentUnavailable: an end could not be provisioned, or the package index cannot be asked.
    """
    if build_limit is not None and build_limit < 0:
        raise ConfigError(f"--builds {build_limit}: expected a number from 0 on", "0 asks only what is built")
    table, settings = settings_of(_with_ends(options, releases))
    known = known_models(options, settings)
    declared = _model(options, known.models, model)
    check_computes_in(options, settings, known)
    builder = builder_for(options, progress)
    names, source, notes = _line(releases, options, table, settings, builder)
    specs = _specs(names, options, table, settings)
    plan = Plan(
        settings=settings,
        old=specs[names[0]],
        new=specs[names[-1]],
        device=chosen_device(settings.device),
        direction=direction_of(specs[names[0]].release, specs[names[-1]].release),
        models=(declared,),
        canaries=(),
        groups={},
        scenarios=("alone",),
        arguments=tuple(options.arguments),
        notes=notes,
    )
    with RunDir.shared(store_folder(options)) as store:
        try:
            found = search_first_bad(
                plan,
                specs,
                source=source,
                store=store,
                builder=builder,
                progress=progress,
                golden=golden_store(options),
                build_limit=build_limit,
            )
        except KeyboardInterrupt:
            progress.note("interrupted; what was answered is kept, and the same command goes on with it")
            raise
        ends = found.conclusion
        if ends.last_good and ends.first_bad:
            between = (ends.last_good, ends.first_bad)
            found = replace(found, command=_bisect(declared.name, *between, options, releases=names))
        store.write(f"first-bad-{declared.name}.json", dump_first_bad(found).encode())
    return found


def _with_ends(options: Options, releases: Sequence[str]) -> Options:
    """Return the options with ends: those named, else the first and the last of ``releases``."""
    if not releases:
        return options
    if len(releases) < 2 and not {"old", "new"} <= set(options.overrides):
        raise ConfigError("one release is no range", "such as --releases 2.1.2 2.3.1 2.6.0")
    return replace(options, overrides={"old": releases[0], "new": releases[-1], **options.overrides})


def _model(options: Options, known: Sequence[ModelDeclaration], name: str | None) -> ModelDeclaration:
    if name is not None:
        return find_model(known, name)
    models = select(known, options.expression)
    if len(models) != 1:
        raise SelectionError(f"{len(models)} models are selected, and one can be searched for", "name it with --model")
    return models[0]


def _line(
    releases: Sequence[str], options: Options, table: Mapping[str, Any], settings: Settings, builder: EnvironmentBuilder
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the releases from the old end to the new one, where the list comes from, and what a reader must know."""
    ends = [_in_full(text, options, table, settings) for text in (settings.old, settings.new)]
    if releases:
        inner = [_in_full(text, options, table, settings) for text in releases]
        named = in_order([text for text in inner if text not in ends], ends[0], ends[1])
        return named, "as named", ()
    specs = [spec_of(text, options, table, settings, names=ends) for text in ends]
    if any(spec.release is None for spec in specs):
        raise ConfigError("a ready-made interpreter has no releases after it", "name the releases with --releases")
    in_order((), ends[0], ends[1])  # refuses equal ends
    pythons = find_pythons()
    python = specs[1].python or choose_python(ends, list(pythons))
    index = ReleaseIndex(
        uv=find_uv(),
        python=python,
        interpreter=verified_python(python, pythons),
        index_args=specs[1].index_args,
        folder=builder.root / "releases",
    )
    listing = index.releases(ends[0], ends[1])
    source = f"package index, Python {python}, asked {listing.asked[:10]}"
    return listing.releases, source, (listing.note,) if listing.note else ()


def _in_full(text: str, options: Options, table: Mapping[str, Any], settings: Settings) -> str:
    return spec_of(text, options, table, settings, names=(text,)).release or text


def _specs(names: Sequence[str], options: Options, table: Mapping[str, Any], settings: Settings) -> dict[str, EnvSpec]:
    """Return the environments, those that are built with one Python for all."""
    refuse_unused_interpreters(options, names)
    specs = {name: spec_of(name, options, table, settings, names=names) for name in names}
    ends = [specs[name] for name in (names[0], names[-1])]
    open_ends = [spec.release for spec in ends if spec.release is not None and spec.python is None]
    if not open_ends:
        open_ends = [spec.release for spec in specs.values() if spec.release is not None and spec.python is None]
    if not open_ends:
        return specs
    python = choose_python(open_ends, list(find_pythons()))
    return {
        name: replace(spec, python=python) if spec.release is not None and spec.python is None else spec
        for name, spec in specs.items()
    }


def _bisect(model: str, good: str, bad: str, options: Options, *, releases: Sequence[str] = ()) -> str:
    """Return the command that looks between two neighbours among ``releases``, with what says how the model is run."""
    before: list[str] = []
    after: list[str] = []
    for option in repeated_options.typed(options.arguments, (*repeated_options.REPEATED, ENV)):
        if option.name == ENV and option.values[0].partition("=")[0] not in (good, bad):
            continue
        if option.name == repeated_options.LIBRARY and library_of(option.values[0], releases) not in (None, good, bad):
            continue
        (before if option.name in repeated_options.BEFORE_THE_VERB else after).extend(option.words)
    words = [*before, "bisect", "--model", model, "--old", good, "--new", bad, *after]
    return f"{own_command()} {shlex.join(words)}"
