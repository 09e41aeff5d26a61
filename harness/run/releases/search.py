"""``bisect --over WHAT``: since when, by releases of torch, by what is installed beside it, or by one of that."""

from collections.abc import Sequence

from packaging.utils import canonicalize_name

from harness.domain.releases import FirstBad
from harness.errors import ConfigError
from harness.releases.dependencies import TORCH
from harness.releases.judging import OVER_RELEASES
from harness.run.cell.selected import SelectedCell
from harness.run.options import Options
from harness.run.releases.dependencies import over_dependencies
from harness.run.releases.first_bad import first_bad, subject_of
from harness.system.progress import Progress


def search_over(
    what: str,
    options: Options,
    progress: Progress,
    *,
    model: str | None = None,
    selected: SelectedCell | None = None,
    releases: Sequence[str] = (),
    build_limit: int | None = None,
) -> FirstBad:
    """Search the first step from the old environment to the new one at which a model goes bad.

    Args:
        what: ``"releases"`` of torch, ``"dependencies"``: all that differs beside torch, or the name of one of those.
        model: its name; may be left out where only one is given or selected.
        selected: a cell of a finished run, in place of ``model`` and ends; that run's report tells of it from now on.
        releases: those to choose from, the first and the last the ends unless the options name them, or versions of the
            one dependency; empty: what the package index has.
        build_limit: environments between the ends that may be built; None allows what halving needs.

    Raises:
        ConfigError: a name, the configuration or a file is wrong.
        EnvironmentUnavailable: an end could not be provisioned, or the package index cannot be asked.
    """
    if options.resume is not None:
        raise ConfigError("--resume beside --over", "repeat the same command: what was answered is kept")
    if "new_profile" in options.overrides:
        raise ConfigError("--new-profile beside --over: a search has one profile", "name it with --profile")
    if "latency" in options.overrides:
        raise ConfigError("--latency beside --over: what is only slower is not searched for there", "leave it out")
    of_torch = what == OVER_RELEASES.name or canonicalize_name(what) == TORCH
    ends = releases if of_torch else ()
    subject = subject_of(options, progress, model=model, selected=selected, ends=ends)
    if of_torch:
        return first_bad(subject, releases, progress, build_limit=build_limit)
    return over_dependencies(subject, what, releases, progress, build_limit=build_limit)
