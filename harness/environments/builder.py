"""Builds environments under test: each once, several in parallel, with uv or with venv and pip.

Building leaves nothing that a later run would trust by mistake: see ``EnvironmentSlot`` for the marker and the lock.
"""

import hashlib
import json
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import platformdirs
from packaging.version import Version

from harness.core.environment import AUTO_BACKEND, DEFAULT_BACKEND, Environment, EnvSpec
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.environments.installer import (
    backend_args,
    environment_python,
    explain_failure,
    install_commands,
    redacted,
    resolve_command,
    run_installer,
    why_unresolved,
)
from harness.environments.interpreters import find_pythons, inspect_interpreter, verified_python
from harness.environments.pythons import choose_python, parse_release, read_minor, write_minor
from harness.environments.undeclared import importing
from harness.machine import files
from harness.machine.pool import DeadlineExceeded, Patience, raise_failures, run_side_by_side
from harness.store.json import JsonError, from_json

MARKER: Final = "environment.json"
# In the root, shared by every gate that uses what lies there; ``cache clean`` has it alone.
IN_USE: Final = ".in-use"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentSlot:
    """The place of one environment below ``root``.

    Attributes:
        release: torch release in full, ``"2.6.0"``, ``"2.6.0+cpu"``.
        python: ``"3.11"``.
        extras, index_args: as in ``EnvSpec``. Credentials in URLs do not count, so a new token rebuilds nothing.
        torch_backend: where the build that ``release`` names comes from; the same one from elsewhere is the same.
    """

    root: Path
    release: str
    python: str
    extras: tuple[str, ...] = ()
    index_args: tuple[str, ...] = ()
    torch_backend: str = DEFAULT_BACKEND

    @property
    def identity(self) -> dict[str, object]:
        """What makes two environments the same one."""
        return {
            "schema": 1,
            "release": self.release,
            "python": self.python,
            "extras": sorted(self.extras),
            "index_args": [redacted(argument) for argument in self.index_args],
        }

    @property
    def folder(self) -> Path:
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        return self.root / f"torch-{self.release}-cp{self.python.replace('.', '')}-{digest}"

    @property
    def interpreter(self) -> Path:
        """Its Python; a link that must not be resolved."""
        return environment_python(self.folder)

    @property
    def log(self) -> Path:
        return self.folder.with_name(self.folder.name + ".log")

    @property
    def use(self) -> Path:
        """A lock that all who use the environment share; its time says when it was used last."""
        return self.folder.with_name(self.folder.name + ".use")

    def is_built(self) -> bool:
        """Whether the environment is complete, holds what this slot asks for, and its Python still exists."""
        try:
            marker = from_json((self.folder / MARKER).read_bytes(), dict[str, Any])
        except (OSError, JsonError):
            return False
        wanted = self.identity
        return {key: marker.get(key) for key in wanted} == wanted and self.interpreter.exists()

    def mark_built(self) -> None:
        """Write the marker once the torch asked for is there. Raises ``EnvironmentUnavailable``: it is not."""
        torch = self._installed_torch()
        wanted = Version(self.release)
        if torch is None or wanted not in (Version(torch), Version(Version(torch).public)):
            raise EnvironmentUnavailable(
                f"torch {self.release} was asked for, the installer left {torch or 'none'}",
                f"check the extra requirements and the index arguments; full log: {self.log}",
            )
        draft = self.folder / (MARKER + ".draft")
        draft.write_text(json.dumps(self.identity | {"torch": torch}, indent=2, sort_keys=True) + "\n")
        draft.replace(self.folder / MARKER)

    def clear(self) -> None:
        """Remove the environment, marker first, so that no moment shows a damaged one as built. Raises ``OSError``."""
        (self.folder / MARKER).unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def locked(self, patience: Patience) -> AbstractContextManager[int]:
        """Hold this slot's lock across all processes; see ``files.locked``."""
        return files.locked(self.folder.with_name(self.folder.name + ".lock"), patience)

    def _installed_torch(self) -> str | None:
        sites = [str(site) for site in self.folder.glob("lib/python3.*/site-packages")]
        return next((distribution.version for distribution in metadata.distributions(name="torch", path=sites)), None)


T = TypeVar("T")

ROOT_VARIABLE: Final = "TORCHSCRIPT_GATE_ENVS"
DEADLINE_S: Final = 1800.0


APPLICATION: Final = "torchscript-gate"
# Below a project: where environments were kept before users had one cache.
EARLIER_ROOT: Final = Path(".nox", "torch")


def default_environment_root() -> Path:
    """Return where environments are kept: ``$TORCHSCRIPT_GATE_ENVS``, else the user's own cache.

    Raises ``ConfigError``: there is no such user, or this one has no home.
    """
    chosen = os.environ.get(ROOT_VARIABLE)
    try:
        root = Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path(APPLICATION)
    except RuntimeError as error:  # so do newer releases of platformdirs; older ones return what is not absolute
        if chosen:
            raise ConfigError(f"{ROOT_VARIABLE}={chosen}: {error}", "name a folder by its whole path") from error
        root = Path()
    if not root.is_absolute():
        raise ConfigError("this user has no home folder for the cache", f"set HOME, or {ROOT_VARIABLE} to a folder")
    return root


def earlier_root(project: Path) -> Path | None:
    """Return the folder of a project that still holds environments and is not used any more; None: there is none.

    Where ``$TORCHSCRIPT_GATE_ENVS`` is set, somebody has decided where they lie.
    """
    folder = project / EARLIER_ROOT
    return folder if not os.environ.get(ROOT_VARIABLE) and any(folder.glob(f"torch-*/{MARKER}")) else None


class EnvironmentBuilder:
    """Builds environments below ``root``, or returns the ones that are there.

    ``progress`` is called with the spec's name and a short text, from several threads, one at a time; ``uv``: None
    builds with venv and pip instead; ``note``: given a line that is to stay; ``deadline_s``: for one environment,
    waiting for another run's build included; ``free_disk_bytes``: a build is refused when its filesystem has less;
    None: than ``EnvSpec.needed_bytes``.
    """

    def __init__(
        self,
        root: Path,
        *,
        progress: Callable[[str, str], None],
        uv: str | None,
        note: Callable[[str], None] = lambda _: None,
        deadline_s: float = DEADLINE_S,
        free_disk_bytes: int | None = None,
    ) -> None:
        self._root = root.absolute()
        self._report = progress
        self.note = note
        self._uv = uv
        self._deadline_s = deadline_s
        self._free_disk_bytes = free_disk_bytes
        self._reporting = threading.Lock()
        self._locks: dict[Path, int] = {}
        weakref.finalize(self, _release, self._locks)

    @property
    def root(self) -> Path:
        return self._root

    @property
    def uv(self) -> str | None:
        return self._uv

    def is_ready(self, spec: EnvSpec) -> bool:
        """Whether ``build`` would find the environment of ``spec`` there; a ready-made interpreter is."""
        return spec.interpreter is not None or self._slot(spec).is_built()

    def place(self, spec: EnvSpec) -> str:
        """Return the name of the folder of ``spec``: the same for all that is the same environment."""
        return spec.interpreter or self._slot(spec).folder.name

    def build(self, spec: EnvSpec, cancelled: threading.Event | None = None) -> Environment:
        return self.build_all([spec], cancelled)[0]

    def build_all(self, specs: Sequence[EnvSpec], cancelled: threading.Event | None = None) -> list[Environment]:
        """Return the environments in the order of ``specs``, building the missing ones side by side.

        One that is already built costs milliseconds and starts no process; a ready-made interpreter costs one short
        run of it. Where several are missing, each is resolved before any is downloaded. A spec without a Python gets
        the one that ``choose_python`` takes for its release alone. What is returned stays as long as this builder:
        ``cache clean`` leaves it.

        Raises:
            ConfigError: a spec names nonsense for a release, or not exactly one of release and interpreter.
            EnvironmentUnavailable: names every one that failed and why; what was still being built has been ended.
            KeyboardInterrupt: all installers have been killed, and what they left will not be trusted.
            Cancelled: likewise, because ``cancelled`` was set.
        """
        self._use_root(cancelled or threading.Event())
        ready: dict[int, Environment] = {}
        failures: dict[int, Exception] = {}
        missing: dict[int, _Work] = {}
        for index, spec in enumerate(specs):
            _check(spec)
            try:
                if spec.interpreter is not None:
                    ready[index] = _ready_made(spec, spec.interpreter)
                elif (slot := self._slot(spec)).is_built() and self._use(slot):
                    ready[index] = _environment(spec, slot, 0.0)
                else:
                    missing[index] = _Work(self._resolving(spec, slot), self._building(spec, slot))
            except EnvironmentUnavailable as error:
                failures[index] = error
        if len(missing) + len(failures) > 1:  # a typo is told before gigabytes are downloaded
            failures |= run_side_by_side({index: work.resolve for index, work in missing.items()}, cancelled)[1]
        raise_failures([failures[index] for index in sorted(failures)])
        built, not_built = run_side_by_side(
            {index: work.build for index, work in missing.items()}, cancelled, first_failure_cancels=True
        )
        raise_failures([not_built[index] for index in sorted(not_built)])
        ready |= built
        return [ready[index] for index in range(len(specs))]

    def _slot(self, spec: EnvSpec) -> EnvironmentSlot:
        release = parse_release(spec.version)
        python = spec.python or _named(spec, lambda: choose_python([release], list(find_pythons())))
        return EnvironmentSlot(
            root=self._root,
            release=release,
            python=write_minor(read_minor(python)),
            extras=importing(spec).extras,
            index_args=spec.index_args,
            torch_backend=spec.torch_backend,
        )

    def _building(self, spec: EnvSpec, slot: EnvironmentSlot) -> Callable[[threading.Event], Environment]:
        def on_wait() -> None:
            self._progress(spec, "waiting for another run that builds it")

        def work(cancelled: threading.Event) -> Environment:
            started = time.monotonic()
            patience = Patience(deadline=started + self._deadline_s, tick=on_wait, cancelled=cancelled)
            with self._errors(spec, slot):
                self._build(spec, slot, patience)
            built_s = time.monotonic() - started
            self._progress(spec, f"ready after {built_s:.1f} s")
            return _environment(spec, slot, built_s)

        return work

    def _resolving(self, spec: EnvSpec, slot: EnvironmentSlot) -> Callable[[threading.Event], None]:
        def work(cancelled: threading.Event) -> None:
            self._progress(spec, f"resolving torch {slot.release}")
            patience = Patience(deadline=time.monotonic() + self._deadline_s, tick=lambda: None, cancelled=cancelled)
            with self._errors(spec, slot):
                self._make_root()
                python = _named(spec, lambda: verified_python(slot.python, find_pythons()))
                command = resolve_command(self._uv, python, slot.folder, _packages(slot), _index(slot, self._uv))
                status = run_installer(command, slot.log, patience)
                known = {"release": slot.release, "python": slot.python}
                failure = why_unresolved(spec.name, slot.log, uv=self._uv, status=status, **known)
                if failure is not None:
                    raise failure

        return work

    @contextmanager
    def _errors(self, spec: EnvSpec, slot: EnvironmentSlot) -> Iterator[None]:
        """Say what ended a build, and what to do."""
        try:
            yield
        except DeadlineExceeded:
            text = f"{spec.name}: not built within {self._deadline_s:.0f} s"
            raise EnvironmentUnavailable(text, f"see how far it came; full log: {slot.log}") from None
        except OSError as error:
            hint = f"check {self._root}, or set {ROOT_VARIABLE} to another folder"
            raise EnvironmentUnavailable(f"{spec.name}: {error}", hint) from error

    def _build(self, spec: EnvSpec, slot: EnvironmentSlot, patience: Patience) -> None:
        self._make_root()
        with slot.locked(patience) as lock:
            if slot.is_built():
                self._use(slot)
                return
            slot.clear()
            self._check_disk(spec)
            python = _named(spec, lambda: verified_python(slot.python, find_pythons()))
            self._progress(spec, f"installing torch {slot.release} for Python {slot.python}")
            try:
                self._install(spec, slot, python, patience, lock)
                _named(spec, slot.mark_built)
                self._use(slot)
            except BaseException:
                with suppress(OSError):
                    slot.clear()
                raise

    def _install(self, spec: EnvSpec, slot: EnvironmentSlot, python: str, patience: Patience, lock: int) -> None:
        started = time.monotonic()

        def tick() -> None:
            self._progress(spec, f"installing torch {slot.release}, {time.monotonic() - started:.0f} s")

        patience = replace(patience, tick=tick)
        slot.log.write_bytes(b"")
        packages = (*_packages(slot), *_index(slot, self._uv))
        for command in install_commands(self._uv, python, slot.folder, packages):
            status = run_installer(command, slot.log, patience, lock=lock)
            if status != 0:
                raise explain_failure(spec.name, slot.log, status=status, release=slot.release, python=slot.python)

    def _make_root(self) -> None:
        self._root.parent.mkdir(parents=True, exist_ok=True)
        files.make_ignored(self._root)

    def _use_root(self, cancelled: threading.Event) -> None:
        """Keep what is compiled beside environments, as ``_use`` keeps one of them."""

        def tick() -> None:
            self._progress_of("environments", "waiting for the end of: cache clean")

        patience = Patience(deadline=time.monotonic() + self._deadline_s, tick=tick, cancelled=cancelled)
        try:
            self._make_root()
            patience.wait_until(lambda: self._locked(self._root / IN_USE))
        except DeadlineExceeded:
            text = f"{self._root} is being cleaned, for {self._deadline_s:.0f} s now"
            raise EnvironmentUnavailable(text, f"end that command, or set {ROOT_VARIABLE} to another folder") from None
        except OSError:
            return  # nothing is removed where this user writes nothing; who has to write there says that it fails

    def _use(self, slot: EnvironmentSlot) -> bool:
        """Whether the environment is there, and stays as long as this builder."""
        try:
            if not self._locked(slot.use):
                return False
        except OSError:  # of an image that was built for everybody
            return slot.is_built()
        files.touch(slot.use)
        return slot.is_built()

    def _locked(self, path: Path) -> bool:
        if path not in self._locks:
            lock = files.lock_shared(path)
            if lock is None:
                return False
            self._locks[path] = lock
        return True

    def _check_disk(self, spec: EnvSpec) -> None:
        free = shutil.disk_usage(self._root).free
        needed = spec.needed_bytes if self._free_disk_bytes is None else self._free_disk_bytes
        if free < needed:
            raise EnvironmentUnavailable(
                f"{spec.name}: {free / 1e9:.1f} GB are free in {self._root}, "
                f"an environment needs {needed / 1e9:.1f} GB",
                f"free some space, or set {ROOT_VARIABLE} to a folder on a larger disk",
            )

    def _progress(self, spec: EnvSpec, text: str) -> None:
        self._progress_of(spec.name, text)

    def _progress_of(self, name: str, text: str) -> None:
        with self._reporting:
            self._report(name, text)


def _release(locks: dict[Path, int]) -> None:
    for lock in locks.values():
        os.close(lock)


class _Work(NamedTuple):
    """The two steps to a missing environment."""

    resolve: Callable[[threading.Event], None]
    build: Callable[[threading.Event], Environment]


def _packages(slot: EnvironmentSlot) -> tuple[str, ...]:
    return (f"torch=={slot.release}", *slot.extras)


def _index(slot: EnvironmentSlot, uv: str | None) -> tuple[str, ...]:
    return (*slot.index_args, *backend_args(uv, slot.torch_backend))


def _check(spec: EnvSpec) -> None:
    assert spec.torch_backend != AUTO_BACKEND
    if (spec.release is None) == (spec.interpreter is None):
        raise ConfigError(
            f"{spec.name}: an environment is either a torch release or a ready-made interpreter",
            "give exactly one of the two",
        )


def _ready_made(spec: EnvSpec, interpreter: str) -> Environment:
    path = os.path.abspath(os.path.expanduser(interpreter))  # noqa: PTH100, PTH111  resolve() would leave a venv
    _named(spec, lambda: inspect_interpreter(path))
    return Environment(name=spec.name, interpreter=path, spec=spec)


def _named(spec: EnvSpec, action: Callable[[], T]) -> T:
    """Return what ``action`` returns; its failure gets the environment's name in front."""
    try:
        return action()
    except EnvironmentUnavailable as error:
        raise EnvironmentUnavailable(f"{spec.name}: {error.message}", error.hint) from error


def _environment(spec: EnvSpec, slot: EnvironmentSlot, built_s: float) -> Environment:
    return Environment(name=spec.name, interpreter=str(slot.interpreter), spec=spec, built_s=built_s)
