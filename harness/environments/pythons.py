"""Which CPython can run which torch release: a table of wheels, and the choice for a set of releases.

Pure: the installed Pythons are an argument. The table was read from the package index (Linux x86-64 wheels) with
``pip index versions torch --python-version X``; a release beyond its last row is taken to be like that row.
"""

import re
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from packaging.version import InvalidVersion, Version

from harness.core.errors import ConfigError, EnvironmentUnavailable

Minor = tuple[int, int]

OWN_PYTHON: Final = f"{sys.version_info[0]}.{sys.version_info[1]}"

LAST_KNOWN_RELEASE: Final = "2.15.0"

OLDEST_PYTHON: Final[Minor] = (3, 8)
"""The worker's grammar; older wheels (3.6, 3.7) are left out of the table for this reason."""

NEWEST_PYTHON: Final[Minor] = (3, 13)
"""torch has wheels for 3.14 from 2.9 on, but supports no TorchScript there."""

# First release line of a row -> the oldest and the newest Python with a wheel. A row holds until the next one.
WHEELS: Final[Sequence[tuple[Minor, Minor, Minor]]] = (
    ((1, 4), (3, 8), (3, 8)),
    ((1, 8), (3, 8), (3, 9)),
    ((1, 11), (3, 8), (3, 10)),
    ((1, 13), (3, 8), (3, 11)),
    ((2, 2), (3, 8), (3, 12)),
    ((2, 5), (3, 9), (3, 13)),
    ((2, 9), (3, 10), (3, 14)),
    ((2, 15), (3, 11), (3, 14)),
)


class PythonRange(NamedTuple):
    oldest: Minor
    newest: Minor

    def __contains__(self, minor: object) -> bool:
        return isinstance(minor, tuple) and self.oldest <= minor <= self.newest

    def __str__(self) -> str:
        """Return ``"Python 3.8 to 3.11"``."""
        oldest, newest = write_minor(self.oldest), write_minor(self.newest)
        return f"Python {oldest}" if oldest == newest else f"Python {oldest} to {newest}"


def read_minor(text: str) -> Minor:
    """Return ``(3, 11)`` for ``"3.11"`` or ``"3.11.7"``. Raises ``ConfigError``: no minor version of Python 3."""
    match = re.fullmatch(r"(3)\.(\d+)(?:\.\d+\w*)?", text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is not a Python version", "write one like 3.11")
    return int(match[1]), int(match[2])


def write_minor(minor: Minor) -> str:
    """Return ``"3.11"`` for ``(3, 11)``."""
    return f"{minor[0]}.{minor[1]}"


def parse_release(text: str) -> str:
    """Return a release in full: ``"2.6"`` is ``"2.6.0"``, ``"2.6.0+cpu"`` stays. Raises ``ConfigError``."""
    hint = 'write a release like "2.6.0" or "2.6.0+cpu"'
    try:
        version = Version(text)
    except InvalidVersion:
        raise ConfigError(f"{text!r} is not a torch release", hint) from None
    if len(version.release) not in (2, 3) or version.epoch:
        raise ConfigError(f"{text!r} names no torch release", hint)
    short = ".".join(map(str, version.release))
    padded = ".".join(map(str, (*version.release, 0)[:3]))
    return padded + str(version)[len(short) :]


def python_range(release: str) -> PythonRange:
    """Return the Pythons on which ``release`` has wheels, a worker runs and TorchScript is supported.

    Raises:
        ConfigError: ``release`` is not a torch release.
        EnvironmentUnavailable: the release is older than every wheel for a Python that a worker can run on.
    """
    version = Version(parse_release(release))
    rows = [row for row in WHEELS if row[0] <= (version.major, version.minor)]
    if not rows:
        first = write_minor(WHEELS[0][0])
        raise EnvironmentUnavailable(
            f"torch {release} has no wheel for Python {write_minor(OLDEST_PYTHON)} or newer, which a worker needs",
            f"the oldest release that can be tested is {first}",
        )
    _, oldest, newest = rows[-1]
    return PythonRange(max(oldest, OLDEST_PYTHON), min(newest, NEWEST_PYTHON))


def choose_python(releases: Sequence[str], installed: Sequence[str], *, preferred: str = OWN_PYTHON) -> str:
    """Return the one Python (``"3.11"``) on which all ``releases`` are to be built.

    One Python for both sides keeps the interpreter out of the comparison. ``preferred`` wins if it is installed and
    suits every release, else the newest installed one that does. Raises ``ConfigError``: a release or a Python is not a
    version; ``EnvironmentUnavailable``: no installed Python suits all releases; names each range and what is installed.
    """
    if not releases:
        raise ConfigError("no torch release to choose a Python for", "name at least one release")
    ranges = {release: python_range(release) for release in releases}
    suitable = [minor for minor in map(read_minor, installed) if all(minor in span for span in ranges.values())]
    if not suitable:
        raise _no_python(ranges, installed)
    wanted = read_minor(preferred)
    return write_minor(wanted if wanted in suitable else max(suitable))


def _no_python(ranges: dict[str, PythonRange], installed: Sequence[str]) -> EnvironmentUnavailable:
    needs = ", ".join(f"torch {release} needs {span}" for release, span in ranges.items())
    here = ", ".join(map(write_minor, sorted(set(map(read_minor, installed))))) or "none"
    common = PythonRange(max(s.oldest for s in ranges.values()), min(s.newest for s in ranges.values()))
    if common.oldest <= common.newest:
        best = write_minor(common.newest)
        hint = (
            f"install Python {best} beside this one (the system's package, pyenv, or: uv python install {best}), "
            "or name ready-made interpreters with --env NAME=PYTHON"
        )
    else:
        hint = "no single Python has wheels for all of them: name a ready-made interpreter with --env NAME=PYTHON"
    return EnvironmentUnavailable(f"no installed Python suits: {needs}; installed: {here}", hint)
