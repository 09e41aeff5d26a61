"""The person who runs this, as git knows them."""

import getpass
import re
import subprocess
from pathlib import Path

from harness.machine.processes import run

_IDENTITY = re.compile(r"(?P<who>.*<[^<>]*>) \d+ [+-]\d{4}")
_DEADLINE_S = 5


def who(folder: Path) -> str:
    """Return ``Name <address>`` as git would sign a commit in ``folder``; the login name if git has none."""
    try:
        done = run(("git", "var", "GIT_AUTHOR_IDENT"), limit_s=_DEADLINE_S, cwd=folder)
    except (OSError, subprocess.SubprocessError):
        return _login()
    found = _IDENTITY.fullmatch(done.stdout.strip()) if done.returncode == 0 else None
    return found["who"] if found else _login()


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "unknown"
