"""Which releases of torch lie between two, and in which order; pure."""

import re
from collections.abc import Iterable, Sequence

from packaging.version import InvalidVersion, Version

from harness.core.errors import ConfigError
from harness.environments.pythons import parse_release

NAME_THEM = "name the releases: --releases 2.1.2 2.2.2 2.6.0"


def requirement(old: str, new: str, without: Sequence[str] = ()) -> str:
    """Return the requirement of torch between two releases, both included, that is none of ``without``."""
    oldest, newest = sorted((Version(Version(old).public), Version(Version(new).public)))
    return ",".join([f"torch>={oldest}", f"<={newest}", *(f"!={release}" for release in without)])


def resolved(output: str) -> str | None:
    """Return the version in what a resolver printed (``torch==2.6.0+cpu`` gives ``2.6.0``), None without one."""
    match = re.search(r"^torch==(\S+)", output, re.MULTILINE)
    return parse_release(Version(match[1]).public) if match is not None else None


def between(versions: Iterable[str], old: str, new: str) -> tuple[str, ...]:
    """Return the final versions among ``versions`` from ``old`` to ``new``, both included, in the order of the way.

    Patch releases count, pre-releases do not; where ``new`` is the earlier one, the way goes back. Both ends are there
    as they were written, whether or not they were found.
    """
    first, last = Version(old), Version(new)
    oldest, newest = sorted((Version(first.public), Version(last.public)))
    inside = {version for text in versions if oldest < (version := Version(Version(text).public)) < newest}
    final = sorted((version for version in inside if not version.is_prerelease), reverse=first > last)
    return (old, *(parse_release(str(version)) for version in final), new)


def in_order(named: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    """Return ``named`` releases in order between the ends. Raises ``ConfigError``: outside, or named twice."""
    if old == new:
        raise ConfigError(f"both ends are {old}", "name two releases with --old and --new")
    inner = [name for name in named if name not in (old, new)]
    twice = next((name for name in inner if inner.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is named twice", "name each release once")
    versions = {name: _version(name) for name in (old, *inner, new)}
    if any(version is None for version in versions.values()):
        return (old, *inner, new)
    ends = sorted(version for name in (old, new) if (version := versions[name]) is not None)
    known = [(version, name) for name in inner if (version := versions[name]) is not None]
    outside = next((name for version, name in known if not ends[0] < version < ends[1]), None)
    if outside is not None:
        raise ConfigError(f"{outside} does not lie between {old} and {new}", "leave it out, or name other ends")
    return (old, *(name for _, name in sorted(known, reverse=versions[old] == ends[1])), new)


def _version(name: str) -> Version | None:
    try:
        return Version(name)
    except InvalidVersion:
        return None
