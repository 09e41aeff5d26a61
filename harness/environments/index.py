"""Gets the torch releases between two from the package index: through uv, else pip; cached for a day.

The same program, options and configuration as for building environments, so that what is listed can be installed. uv
has no command that lists versions: it is asked for the newest one between two that is none of those it has named.
"""

import datetime as dt
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.core.errors import EnvironmentUnavailable, RunDirError
from harness.environments.installer import installer_environment, list_command, listed, redacted
from harness.environments.versions import NAME_THEM, between, requirement, resolved
from harness.machine import clock, processes
from harness.store import codec

DEADLINE_S: Final = 120.0
FRESH: Final = dt.timedelta(days=1)
NOTHING: Final = "No solution found"
MOST: Final = 200


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What the index said; ``asked`` is the time in ISO format, ``note`` says that it was too long ago."""

    releases: tuple[str, ...]
    asked: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ReleaseIndex:
    """The package index as seen by one installer.

    Attributes:
        uv: its path; None asks pip.
        python: ``"3.11"``: releases without a wheel for it are not listed; ``interpreter``: one of that minor version.
        index_args: as in ``EnvSpec``.
    """

    uv: str | None
    python: str
    interpreter: str
    index_args: tuple[str, ...]
    folder: Path

    def releases(self, old: str, new: str) -> Listing:
        """Return the final releases from ``old`` to ``new`` in that order, both ends included, patch releases too.

        What was heard within a day is not asked again; where the index cannot be reached, an older answer is taken.
        Raises ``EnvironmentUnavailable``: the index cannot be asked, and never was.
        """
        identity = [self.uv is None, self.python, [redacted(text) for text in self.index_args], sorted((old, new))]
        path = self.folder / f"{codec.digest(identity)[:12]}.json"
        known = _remembered(path)
        now = clock.utc_now()
        # of an hour to come is an answer that was asked for before the clock was set back: nobody knows its age
        if known is not None and dt.timedelta(0) <= now - dt.datetime.fromisoformat(known.asked) < FRESH:
            return Listing(releases=between(known.releases, old, new), asked=known.asked)
        try:
            listed_now = self._ask(old, new)
        except EnvironmentUnavailable as error:
            if known is None:
                raise
            note = f"{error.message}: the list of releases is of {known.asked}"
            return Listing(releases=between(known.releases, old, new), asked=known.asked, note=note)
        fresh = Listing(releases=between(listed_now, old, new), asked=now.isoformat(timespec="seconds"))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            codec.write_atomically(path, codec.canonical(fresh))
        except (OSError, RunDirError):
            return fresh  # asked again next time
        return fresh

    def _ask(self, old: str, new: str) -> list[str]:
        return self._ask_uv(self.uv, old, new) if self.uv is not None else self._ask_pip()

    def _ask_uv(self, uv: str, old: str, new: str) -> list[str]:
        options = ("--no-deps", "--no-header", "--no-annotate", "--no-progress", "--python-version", self.python)
        command = (uv, "pip", "compile", *options, "--python", self.interpreter, *self.index_args, "-")
        releases: list[str] = []
        while len(releases) < MOST:
            done = _run(command, requirement(old, new, releases))
            release = resolved(done.stdout) if done.returncode == 0 else None
            if release is None and NOTHING not in done.stderr:
                raise _unreachable("uv", done.stderr)
            if release is None or release in releases:
                break
            releases.append(release)
        return releases

    def _ask_pip(self) -> list[str]:
        done = _run(list_command(self.interpreter, self.index_args), "")
        releases = listed(done.stdout)
        if done.returncode != 0 or not releases:
            raise _unreachable("pip", done.stderr)
        return list(releases)


def _run(command: Sequence[str], text: str) -> "subprocess.CompletedProcess[str]":
    try:
        return processes.run(command, text=text, env=installer_environment(), limit_s=DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise _unreachable(Path(command[0]).name, f"no answer within {DEADLINE_S:.0f} s") from None
    except OSError as error:
        raise _unreachable(Path(command[0]).name, str(error)) from error


def _unreachable(program: str, printed: str) -> EnvironmentUnavailable:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    telling = next((line for line in lines if "etch" in line or "version that satisfies" in line), None)
    quoted = redacted(telling or (lines[-1] if lines else "nothing")).removeprefix("cause: ")
    return EnvironmentUnavailable(
        f'the package index did not say which releases of torch there are ({program} says: "{quoted}")',
        NAME_THEM,
    )


def _remembered(path: Path) -> Listing | None:
    try:
        return codec.read_json(path, Listing)
    except RunDirError:
        return None
