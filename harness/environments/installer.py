"""Installs into an environment: one bounded, killable run of uv or pip, and what its errors mean."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from packaging.version import Version

from harness.core.environment import DEFAULT_BACKEND, ENVIRONMENT_BYTES
from harness.core.errors import EnvironmentUnavailable
from harness.environments.pythons import LAST_KNOWN_RELEASE
from harness.machine import processes
from harness.machine.pool import Patience

_POLL_S: Final = 0.02
_GRACE_S: Final = 1.0

PYTORCH_INDEX: Final = "https://download.pytorch.org/whl"

Commands = tuple[tuple[str, ...], ...]


def find_uv() -> str | None:
    """Return the path of uv: the one of the ``uv`` Python package, else the one on PATH, else None."""
    try:
        return str(importlib.import_module("uv").find_uv_bin())
    except (ImportError, AttributeError, FileNotFoundError):
        return shutil.which("uv")


def install_commands(uv: str | None, python: str, folder: Path, packages: Sequence[str]) -> Commands:
    """Return the commands that create ``folder`` as an environment of ``python`` and install ``packages`` there.

    With uv where its path is given, else with ``venv`` and pip. Nothing is seeded: the environment gets no pip and no
    setuptools beyond what the packages ask for. Nothing is compiled to bytecode either: that costs a pair of
    environments 9 s (torch has 8000 modules), where the first import compiles the 1700 it needs in 2 s. Raises
    ``EnvironmentUnavailable``: there is neither uv nor any pip.
    """
    inside = str(environment_python(folder))
    if uv is not None:
        return (
            (uv, "venv", "--no-progress", "--no-project", "--python", python, str(folder)),
            (uv, "pip", "install", "--no-progress", "--python", inside, *packages),
        )
    options = ("install", "--no-compile", "--progress-bar", "off", "--disable-pip-version-check")
    return (
        (python, "-m", "venv", "--without-pip", str(folder)),
        (*pip_for(python, inside), *options, *packages),
    )


def backend_args(uv: str | None, backend: str) -> tuple[str, ...]:
    """Return the arguments by which torch, and nothing else, comes from PyTorch's own index.

    uv takes the packages of PyTorch from there alone, whatever indexes are configured. pip takes the highest version
    of all indexes: the requirement must name the build.
    """
    if backend == DEFAULT_BACKEND:
        return ()
    return ("--torch-backend", backend) if uv is not None else ("--extra-index-url", f"{PYTORCH_INDEX}/{backend}")


def resolve_command(
    uv: str | None, python: str, folder: Path, packages: Sequence[str], index_args: Sequence[str]
) -> tuple[str, ...]:
    """Return the command whose output ``why_unresolved`` reads; it downloads no package.

    uv ends as the installation of ``packages`` would. pip would download them to tell, so it lists releases of torch.
    """
    if uv is None:
        return list_command(python, index_args)
    options = ("--no-progress", "--python", python, "--dry-run", "--target", str(folder))
    return (uv, "pip", "install", *options, *packages, *index_args)


def list_command(python: str, index_args: Sequence[str]) -> tuple[str, ...]:
    """Return pip's command that lists torch releases for ``python``. Raises ``EnvironmentUnavailable``: no pip."""
    options = ("--pre", "--only-binary", ":all:", "--disable-pip-version-check")
    return (*pip_for(python, python), "index", "versions", "torch", *options, *index_args)


def listed(output: str) -> tuple[str, ...]:
    """Return the versions that ``pip index versions`` printed, the newest first, without build suffixes."""
    match = re.search(r"^Available versions: (.*)$", output, re.MULTILINE)
    texts = match[1].split(",") if match is not None else ()
    return tuple(dict.fromkeys(Version(text.strip()).public for text in texts if text.strip()))


def environment_python(folder: Path) -> Path:
    return folder / "bin" / "python"


def pip_for(python: str, inside: str) -> tuple[str, ...]:
    """Return how to start pip: the wheel bundled with ``python``, which suits it, else the controller's own pip."""
    home = Path(os.path.realpath(python)).parent.parent
    bundled = sorted(home.glob("lib/python3.*/ensurepip/_bundled/pip-*.whl"))
    wheels = bundled or sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if wheels:
        return inside, str(wheels[-1] / "pip")
    if importlib.util.find_spec("pip") is not None:
        return sys.executable, "-m", "pip", "--python", inside
    raise EnvironmentUnavailable("neither uv nor pip was found to build environments with", "pip install uv")


def run_installer(
    command: Sequence[str], log: Path, patience: Patience, *, lock: int | None = None, temporary: Path | None = None
) -> int:
    """Return the exit status of ``command``; its output is appended to ``log``.

    It runs with the user's environment, less what belongs to another Python. It inherits the file descriptor ``lock``:
    should the controller be killed, the lock stays taken until the installer has ended too.

    Args:
        temporary: where its temporary files go, for one that would leave them when it is killed.

    Raises:
        Cancelled, DeadlineExceeded: patience has ended; the group has been killed.
        OSError: the command could not be started.
    """
    with log.open("ab") as sink:
        sink.write(f"$ {redacted(' '.join(command))}\n".encode())
        sink.flush()
        kept = () if lock is None else (lock,)
        env = installer_environment() | ({} if temporary is None else {"TMPDIR": str(temporary)})
        process = processes.start(command, stdout=sink, stderr=subprocess.STDOUT, env=env, pass_fds=kept)
        try:
            patience.wait_until(lambda: process.poll() is not None)
        except BaseException:
            _kill_group(process)
            raise
    return process.returncode


def redacted(text: str) -> str:
    """Return ``text`` with the credentials of URLs replaced by ``***``."""
    return re.sub(r"(\w://)[^/\s@]+@", r"\1***@", text)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole group; its leader is reaped last, so that the group's number cannot be reused before."""
    if process.returncode is not None:
        return
    processes.kill_group(process.pid, signal.SIGTERM)
    limit = time.monotonic() + _GRACE_S
    while time.monotonic() < limit and not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(_POLL_S)
    processes.reap(process)  # not one in the kernel's D state: its environment has no marker


def installer_environment() -> dict[str, str]:
    """Return the user's environment without what belongs to another Python."""
    # UV_TORCH_BACKEND is read where builds are chosen: an environment that another build may be in has another place.
    foreign = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "UV_TORCH_BACKEND", "PIP_USER")
    kept = {name: text for name, text in os.environ.items() if name not in foreign and not name.startswith("PYTHON")}
    return kept | {"NO_COLOR": "1", "UV_NO_WRAP": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}


_LINE_LIMIT: Final = 320


class _Rule(NamedTuple):
    pattern: str
    message: str
    hint: str
    is_unreachable: bool = False


# The first rule that matches anywhere in the output decides; the line it matched is quoted.
_RULES: Final[Sequence[_Rule]] = (
    _Rule(
        r"No space left on device|Disk quota exceeded|os error (28|122)\b|Errno (28|122)\b",
        "the disk is full",
        f"free some space (one takes {ENVIRONMENT_BYTES / 1e9:.0f} GB), or set TORCHSCRIPT_GATE_ENVS to a larger disk",
    ),
    _Rule(
        r"Permission denied|Read-only file system|os error (13|30)\b|Errno (13|30)\b",
        "a file could not be written",
        "check who owns that folder, or set TORCHSCRIPT_GATE_ENVS to one you may write to",
    ),
    _Rule(
        r"has no wheels with a matching",
        "the index has no wheel of {what} for Python {python} on this machine",
        "choose another Python or another release{tags}",
    ),
    _Rule(
        r"there (is|are) no versions? of|only \S+ is available",
        "the index has no {what}",
        f"check the release; the newest this gate knows of is {LAST_KNOWN_RELEASE}",
    ),
    _Rule(
        r"was not found in the (package registry|provided package locations)",
        "the index does not know the package {what}",
        "check its spelling and the index arguments",
    ),
    _Rule(
        r"\(from versions: \d",
        "the index has no {what} for Python {python}",
        "it has {nearby}",
    ),
    _Rule(
        r"Connection refused|dns error|failed to lookup|Temporary failure in name resolution|tcp connect error"
        r"|Failed to establish a new connection|Network is unreachable|invalid peer certificate"
        r"|CERTIFICATE_VERIFY_FAILED|operation timed out|Read timed out|ConnectTimeout|error sending request"
        r"|HTTP status \w+ error|\b[45]\d\d (Client|Server) Error|Failed to fetch",
        "the package index could not be reached",
        "check the network, proxy and index arguments",
        is_unreachable=True,
    ),
    _Rule(
        r"\(from versions: none\)",
        "the index offers no torch for Python {python}, or could not be reached",
        "check the network, proxy and index arguments",
    ),
    _Rule(
        r"requirements are unsatisfiable|ResolutionImpossible|conflicting dependencies",
        "the requirements contradict each other",
        "check the extra requirements",
    ),
)


class Explanation(NamedTuple):
    """What an installer's output means, the decisive line, what to do; ``is_unreachable``: no index answered."""

    message: str
    line: str
    hint: str
    is_unreachable: bool = False


def explained(output: str, *, status: int, release: str, python: str) -> Explanation:
    """Return what the output of an installer that ended with ``status`` means."""
    text = _plain("\n".join(line for line in output.splitlines() if not line.startswith("$ ")))
    for rule in _RULES:
        match = re.search(rule.pattern, text, re.IGNORECASE)
        if match is None:
            continue
        line = _line_around(text, match.start())
        words = {"what": _what(line, release), "python": python, "tags": _tags(text), "nearby": _nearby(line, release)}
        return Explanation(rule.message.format(**words), _cut(line), rule.hint.format(**words), rule.is_unreachable)
    lines = [line for line in text.splitlines() if line.strip()]
    decisive = next(
        (line for line in lines if re.match(r"\s*error\b", line, re.IGNORECASE)), lines[-1] if lines else ""
    )
    return Explanation(f"the installer ended with status {status}", _cut(decisive), "read the log")


def explain_failure(name: str, log: Path, *, status: int, release: str, python: str) -> EnvironmentUnavailable:
    """Return the error of an installer: ``name``, the decisive line of ``log``, and the log as the hint."""
    output = log.read_text(encoding="utf-8", errors="replace")
    explanation = explained(output, status=status, release=release, python=python)
    quoted = f' (the installer says: "{explanation.line}")' if explanation.line else ""
    return EnvironmentUnavailable(f"{name}: {explanation.message}{quoted}", f"{explanation.hint}; full log: {log}")


def why_unresolved(
    name: str, log: Path, *, uv: str | None, status: int, release: str, python: str
) -> EnvironmentUnavailable | None:
    """Return why the installation would fail, by what ``resolve_command`` has added to ``log``; None where it may not.

    A pip before 21.2 lists nothing: what the index has then shows when it installs.
    """
    if uv is None:
        output = log.read_text(encoding="utf-8", errors="replace").rpartition("\n$ ")[2]
        offered = listed(output)
        if release.partition("+")[0] in offered or "unknown command" in output:
            return None
        if status == 0:
            hint = f"it has {_nearest(offered[::-1], release)}; full log: {log}"
            return EnvironmentUnavailable(f"{name}: the index has no torch {release} for Python {python}", hint)
    return explain_failure(name, log, status=status, release=release, python=python) if status else None


def _cut(line: str) -> str:
    quoted = line.strip()
    return quoted[:_LINE_LIMIT] + " ..." if len(quoted) > _LINE_LIMIT else quoted


def _plain(output: str) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    text = re.sub(r"\n\s*[\u2502|]?\s{6,}(?=\S)", " ", text)
    return re.sub(r"[\u00d7\u2500-\u257f\u25b6]+", " ", text)


def _line_around(text: str, index: int) -> str:
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    line = text[start : end if end >= 0 else len(text)]
    return re.sub(r"^\s*(cause|error|caused by)\s*:\s*", "", line, flags=re.IGNORECASE)


def _what(line: str, release: str) -> str:
    match = (
        re.search(r"Because ([\w.\-]+(?:==[^\s,]+)?) (?:has no wheels|was not found)", line)
        or re.search(r"no versions? of ([^\s,]+)", line)
        or re.search(r"requirement ([^\s,]+) \(from", line)
    )
    return match[1].replace("==", " ") if match else f"torch {release}"


def _tags(text: str) -> str:
    tags = re.findall(r"`cp(\d)(\d+)`", text.partition("ABI tags:")[2] or text.partition("ABI tag:")[2])
    return f" (it has wheels for Python {', '.join(f'{a}.{b}' for a, b in dict.fromkeys(tags))})" if tags else ""


def _nearby(line: str, release: str) -> str:
    match = re.search(r"from versions: ([^)]*)", line)
    return _nearest(match[1].split(", ") if match else [], release)


def _nearest(offered: Sequence[str], release: str) -> str:
    """Return those of the same line among the versions that an index offers, the oldest first, else the newest five."""
    same_line = [version for version in offered if version.split(".")[:2] == release.split(".")[:2]]
    return ", ".join(same_line or offered[-5:])
