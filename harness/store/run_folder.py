"""A run's folder under ``reports/``: created, locked, resumed."""

import contextlib
import datetime as dt
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, Self

from harness.core.errors import RunDirError, SelectionError
from harness.core.models import Artifact
from harness.core.plan import Plan
from harness.machine.files import make_ignored, unwritable
from harness.store import codec

PLAN = "plan.json"
PLAN_VERSION = 2
# What the name of a run begins with: its start in UTC.
STAMP = "%Y-%m-%dT%H-%M-%S"
STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-")
REPORT = "report.json"
PROBES = "probes"
# Beside the runs: the newest command that ended before it had one.
ATTEMPT = ".failed-attempt.json"
# In every folder of results; held by whoever writes there.
LOCK = ".lock"
# The newest run, on a command line.
LAST = "last"
BASELINES = "baselines.json"
COMPILED = "compiled.json"
SEARCHES = ("bisect", "mitigate")


@dataclass(frozen=True, kw_only=True)
class StoredBaseline:
    """One model's artifact, and the probe directory that holds its golden outputs."""

    artifact: Artifact
    directory: str


class RunDir:
    """One run's folder. Holds a lock while open, so that two processes never write into the same run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def name(self) -> str:
        """Folder name, e.g. ``2026-11-21T02-15-07-2.1.2-to-2.6.0``."""
        return self.path.name

    def is_of(self, command: str) -> bool:
        """Whether its title ends in ``command``, or in that and a number (two began in one second)."""
        return re.search(rf"-{command}(-\d+)?\Z", self.name) is not None

    @property
    def search(self) -> str:
        """The search that it is a run of; empty for another command's."""
        return next((command for command in SEARCHES if self.is_of(command)), "")

    @property
    def is_running(self) -> bool:
        try:
            with (self.path / LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def probes(self) -> Path:
        return self.path / PROBES

    @classmethod
    def create(cls, reports: Path, title: str, now: dt.datetime) -> "RunDir":
        """Create and lock a new folder under ``reports``.

        Where the clock was set back, it is named after the second that follows the newest one: names are in order.
        Raises ``RunDirError``: it cannot be created.
        """
        try:
            make_ignored(reports)
            _remove_unplanned(reports)
            stamp = _stamp_after(reports, now)
            for attempt in range(100):
                path = reports / (f"{stamp}-{title}" + (f"-{attempt}" if attempt else ""))
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
                return cls(path)._locked()  # noqa: SLF001  its own class
        except OSError as error:
            raise unwritable(f"{reports} cannot be written", error, codec.OTHER_FOLDER) from error
        raise RunDirError(f"{reports} has a hundred runs of this second", "wait a second")

    @classmethod
    def shared(cls, path: Path) -> "RunDir":
        """Return the locked, shared results folder. Raises ``RunDirError``: in use, or not ours (``require_own``)."""
        if os.path.lexists(path):
            require_own(path, hint="remove what is not yours, or name another folder with --out")
        return cls(path)._locked()  # noqa: SLF001  its own class

    @classmethod
    def open(cls, reports: Path, name: str, *, search: str = "", trusted: bool = False) -> "RunDir":
        """Open and lock an existing run, by path or by name under ``reports``; ``last`` is the newest of ``search``.

        ``search``: ``bisect`` or ``mitigate``; empty: a run that judges.

        Raises:
            SelectionError: there is no such run.
            RunDirError: it is somebody else's and not ``trusted``, see ``require_own``.
        """
        if name == LAST:
            name = next((run.name for run in reversed(runs_in(reports)) if RunDir(run).search == search), name)
        folder = find_run(reports, name)
        if not trusted:
            require_own(folder)
        return cls(folder)._locked()  # noqa: SLF001  its own class

    def _locked(self) -> "RunDir":
        try:
            make_ignored(self.path)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._lock = os.fdopen(os.open(self.path / LOCK, flags, 0o644), "r+")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            codec.remove_drafts(self.path)
        except BlockingIOError as error:
            self.close()
            raise RunDirError(f"{self.path} is in use by another process", "wait for it, or start a new run") from error
        except OSError as error:
            self.close()
            raise unwritable(f"{self.path} cannot be written", error, codec.OTHER_FOLDER) from error
        return self

    def write(self, name: str, data: bytes) -> Path:
        path = self.path / name
        codec.write_atomically(path, data, parents=True)
        return path

    def save_plan(self, plan: Plan) -> None:
        fields_by_name = {each.name: getattr(plan, each.name) for each in fields(plan)}
        self.write(PLAN, codec.canonical({"version": PLAN_VERSION, **fields_by_name}))

    def load_plan(self) -> Plan:
        """Return the stored plan. Raises ``RunDirError``: missing or damaged."""
        path = self.path / PLAN
        version, plan = codec.read_json(path, dict[str, Any]).get("version"), codec.read_json(path, Plan)
        if version != PLAN_VERSION:
            raise RunDirError(f"{path} is of another version of the gate ({version})", "read it with that one")
        return plan

    def save_old_answers(self, baselines: Mapping[str, StoredBaseline]) -> None:
        """Store where the golden outputs of each model lie, for ``golden propose``; a copied run has them too."""
        self.write(
            BASELINES, codec.canonical({name: _moved(baseline, self._within) for name, baseline in baselines.items()})
        )

    def baselines(self) -> dict[str, StoredBaseline]:
        """Return where the golden outputs of each model lie. Raises ``RunDirError``: missing or damaged."""
        stored = codec.read_json(self.path / BASELINES, dict[str, StoredBaseline])
        return {
            name: _moved(baseline, lambda path: str(self.path / path) if path else "")
            for name, baseline in stored.items()
        }

    def _within(self, path: str) -> str:
        own = Path(os.path.abspath(self.path))  # noqa: PTH100  links stay links
        return os.path.relpath(path, own) if path and Path(path).is_relative_to(own) else path

    def discard_if_empty(self) -> None:
        """Remove a run that ended before its first process: it could only be mistaken for an interrupted one."""
        if not self.probes.exists():
            shutil.rmtree(self.path)

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        """Return the open run; it is closed with the block."""
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _remove_unplanned(reports: Path) -> None:
    """Remove the folders of runs that were killed before they had a plan, with which nobody can go on."""
    for path in reports.iterdir():
        if not STAMPED.match(path.name) or path.is_symlink() or (path / PLAN).exists() or not (path / LOCK).exists():
            continue
        with contextlib.suppress(OSError, RunDirError), RunDir(path)._locked() as run:  # noqa: SLF001  its own module
            if [item.name for item in path.iterdir()] == [LOCK]:
                run.discard()


def _moved(baseline: StoredBaseline, moved: Callable[[str], str]) -> StoredBaseline:
    artifact = replace(
        baseline.artifact, path=moved(baseline.artifact.path), inputs_dir=moved(baseline.artifact.inputs_dir)
    )
    return StoredBaseline(artifact=artifact, directory=moved(baseline.directory))


def _stamp_after(reports: Path, now: dt.datetime) -> str:
    """Return the stamp of ``now``; where a run there has a later one, the stamp of the second after that."""
    stamp = now.strftime(STAMP)
    newest = max((path.name[: len(stamp)] for path in reports.iterdir() if STAMPED.match(path.name)), default=stamp)
    if newest <= stamp:
        return stamp
    try:
        return (dt.datetime.strptime(newest, STAMP) + dt.timedelta(seconds=1)).strftime(STAMP)  # noqa: DTZ007
    except (ValueError, OverflowError):  # no time: it was made by hand
        return stamp


def begun_since(reports: Path, folder: Path) -> RunDir | None:
    """Return the newest run if it has no report (yet); None if it is ``folder``, the newest with a report."""
    judging = (RunDir(path) for path in reversed(runs_in(reports)))
    newest = next((run for run in judging if not run.search), None)
    return None if newest is None or newest.path.resolve() == folder.resolve() else newest


def keep_attempt(reports: Path, words: str, code: int) -> None:
    """Keep that a command ended with ``code`` and without a run, for ``last`` not to mean the run before it.

    Nothing is written where there is no run, nor where this user may not write.
    """
    if runs_in(reports):
        with contextlib.suppress(OSError, RunDirError):
            codec.write_atomically(reports / ATTEMPT, codec.canonical({"command": words, "exit_code": code}))


def attempt_since(reports: Path, folder: Path) -> str:
    """Return which command has ended without a run since the report in ``folder``, in words; empty: none."""
    kept = reports / ATTEMPT
    try:
        ended = kept.stat().st_mtime
        if ended <= (folder / REPORT).stat().st_mtime:
            return ""
        attempt = codec.read_json(kept, dict[str, Any])
    except (OSError, RunDirError):
        return ""
    when = dt.datetime.fromtimestamp(ended, dt.UTC)
    return f"`{attempt.get('command')}` ended with exit code {attempt.get('exit_code')} at {when:%Y-%m-%d %H:%M:%S} UTC"


def runs_in(reports: Path) -> list[Path]:
    """Return the folders of all runs, the newest last: their names begin with the time."""
    return sorted(path.parent for path in reports.glob(f"*/{PLAN}"))


def require_own(folder: Path, *, hint: str = "if you know who made it, add --trust; or start a new run") -> None:
    """Refuse a run to go on with, or to repeat, that another user has made or that holds links.

    Its plan names interpreters and libraries that would be run, and a link leads to files that would be replaced.
    Raises ``RunDirError``: names what is not this user's, or the link.
    """
    me, waiting = os.geteuid(), [folder]
    try:
        while waiting:
            path = waiting.pop()
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode) or status.st_uid != me:
                what = "is a link" if stat.S_ISLNK(status.st_mode) else f"belongs to another user ({status.st_uid})"
                raise RunDirError(
                    f"{path} {what}: this run may be somebody else's, and its plan says what would be executed",
                    hint,
                )
            if stat.S_ISDIR(status.st_mode):
                waiting.extend(path.iterdir())
    except OSError as error:
        raise RunDirError(f"{folder} cannot be read: {error.strerror or error}", "start a new run") from error


def find_run(reports: Path, name: str, *, with_report: bool = False) -> Path:
    """Return the folder of a run by path, by name, or ``last``.

    ``with_report``: ``last`` is the newest run with a report. A folder with a report and no plan, such as CI may keep,
    counts as a run too, and so does the report itself. Raises ``SelectionError``: there is no such run; names the
    newest ones.
    """
    runs = runs_in(reports)
    reported = [run for run in runs if (run / REPORT).is_file()] if with_report else runs
    if name == LAST and runs:
        return (reported or runs)[-1]
    for candidate in (Path(name), reports / name):
        folder = candidate.parent if with_report and candidate.name == REPORT else candidate
        if (folder / PLAN).is_file() or (with_report and (folder / REPORT).is_file()):
            return folder.absolute()  # of a link the link: whoever writes there looks at it
    if with_report and Path(name).name == REPORT:
        raise SelectionError(f"{name}: no such file", f"name a run, its folder or its {REPORT}")
    if not runs:
        raise SelectionError(
            f"there is no run {name!r}: {reports} has none yet", "compat makes one; or name another folder with --out"
        )
    known = ", ".join(path.name for path in runs[-3:])
    raise SelectionError(f"there is no run {name!r} (no {PLAN} there)", f"newest runs under {reports}: {known}")
