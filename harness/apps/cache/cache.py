"""The cache of the user who runs this: looked at, and cleaned."""

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.config.durations import seconds_of
from harness.core.cache import Cache, CacheCleaning
from harness.core.errors import ConfigError, RunDirError
from harness.environments import cache
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.machine import clock
from harness.machine.files import refusal
from harness.machine.progress import Progress
from harness.project import Project

LONGEST_H = 24 * 3650


def status(project: Project) -> Cache:
    """Return what lies in the cache. Raises ``RunDirError``: it cannot be read."""
    root = default_environment_root()
    with _at_work(project.progress, root, "measuring"):
        return cache.read_cache(root, clock.utc_now(), project.progress.tick)


def cleaned(project: Project, names: Sequence[str], older_than: str | None, *, dry_run: bool) -> CacheCleaning:
    """Remove what is named, or was not used for as long as ``older_than`` says (``"30d"``), or both.

    Raises ``ConfigError``: neither is given, or a name or a time is wrong; ``RunDirError``: something stays.
    """
    if not names and older_than is None:
        raise ConfigError(
            "cache clean: nothing says what is to go", "name it as cache status shows it, or --older-than 30d"
        )
    now = clock.utc_now()
    age_s = seconds_of(older_than, "--older-than", most_h=LONGEST_H) if older_than is not None else None
    chosen = cache.Chosen(names=tuple(names), unused_since=None if age_s is None else now - dt.timedelta(seconds=age_s))
    root = default_environment_root()
    with _at_work(project.progress, root, "measuring" if dry_run else "removing"):
        return cache.clean(root, chosen, now, project.progress.tick, dry_run=dry_run)


@contextlib.contextmanager
def _at_work(progress: Progress, root: Path, stage: str) -> Iterator[None]:
    progress.stage(stage)
    try:
        yield
    except OSError as error:
        path = error.filename or root
        raise RunDirError(f"{path}: {refusal(error)}", f"check who owns it, or set {ROOT_VARIABLE}") from error
    finally:
        progress.finish()
