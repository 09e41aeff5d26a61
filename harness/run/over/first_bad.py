"""The first bad release of one model between two: which torch release, patch releases included, broke it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.domain.environment import EnvSpec
from harness.domain.first_bad import FirstBad
from harness.domain.plan import Settings
from harness.environments.builder import EnvironmentBuilder
from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons, verified_python
from harness.environments.pythons import choose_python
from harness.errors import ConfigError
from harness.releases.index import ReleaseIndex
from harness.releases.versions import in_order
from harness.run.options import Options
from harness.run.over.releases import refuse_unused_interpreters, spec_of
from harness.run.over.subject import Subject, bisect_command, run_search
from harness.system.progress import Progress


def first_bad(
    subject: Subject, releases: Sequence[str], progress: Progress, *, build_limit: int | None = None
) -> FirstBad:
    """Search the first release between the old and the new end in which a model shows what it shows in the new one.

    Args:
        releases: to choose from; the ends are the first and the last one unless the options name them. Empty: those
            that the package index has.
        build_limit: environments between the ends that may be built; None allows what halving needs.

    Raises:
        ConfigError: a name, the configuration or a file is wrong.
        EnvironmentUnavailable: an end could not be provisioned, or the package index cannot be asked.
    """
    options, table, settings = subject.options, subject.table, subject.settings
    names, source, notes = _line(releases, options, table, settings, subject.builder)

    def next_command(found: FirstBad) -> str:
        ends = found.conclusion
        if not (ends.last_good and ends.first_bad):
            return ""
        return bisect_command(subject.model.name, ends.last_good, ends.first_bad, options, releases=names)

    return run_search(
        subject,
        specs_of(names, options, table, settings),
        progress,
        source=source,
        notes=notes,
        build_limit=build_limit,
        next_command=next_command,
    )


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


def specs_of(
    names: Sequence[str], options: Options, table: Mapping[str, Any], settings: Settings
) -> dict[str, EnvSpec]:
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
