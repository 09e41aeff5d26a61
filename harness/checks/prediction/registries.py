"""What an environment's torch accepts, read once by a worker and kept next to the environments.

The file is named after the environment and everything that could change the answer: the interpreter, the build of its
torch, and the source of the worker that asks. It gets its name last and in one step.
"""

import hashlib
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.artifacts.archive import elf, packages
from harness.artifacts.archive.code import TYPE_WORDS
from harness.artifacts.archive.elf import read_library
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.packages import TORCHS_FUNCTIONS
from harness.artifacts.files import opened
from harness.checks.prediction.dumps import Dump, parsed
from harness.core.archive import OperatorRegistry
from harness.core.environment import Environment
from harness.core.errors import EnvironmentUnavailable, RunDirError
from harness.environments.interpreters import inspect_interpreter
from harness.machine import files
from harness.machine.pool import DeadlineExceeded, Patience, raise_failures, run_side_by_side
from harness.machine.processes import reap
from harness.probing import loaded_libraries, processes
from harness.probing.events import EventTail
from harness.store import codec
from harness.store.results import ResultStore, WhyNot
from harness.worker import wire

FOLDER = "registries"
DEADLINE_S = 180.0
WORKER = processes.BOOTSTRAP.with_name("operator_registry.py")
READERS = (Path(elf.__file__), Path(packages.__file__))
LOADERS = tuple(processes.BOOTSTRAP.with_name(name) for name in ("libraries.py", "setters.py"))


def registries_of(environments: Mapping[str, Environment], root: Path) -> dict[str, OperatorRegistry]:
    """Return what each environment accepts, asking those that were not asked yet side by side.

    Raises:
        EnvironmentUnavailable, RunDirError: as ``registry_of``.
        KeyboardInterrupt: the workers have been ended.
    """
    work = {side: partial(registry_of, environment, root) for side, environment in environments.items()}
    registries, failures = run_side_by_side(work)
    raise_failures([failures[side] for side in environments if side in failures])
    return {side: registries[side] for side in environments}


def registry_of(environment: Environment, root: Path, cancelled: threading.Event | None = None) -> OperatorRegistry:
    """Return what ``environment`` accepts; arguments and errors as of ``dump_of``."""
    return parsed(dump_of(environment, root, cancelled))


def dump_of(environment: Environment, root: Path, cancelled: threading.Event | None = None) -> Dump:
    """Return what ``environment`` says of itself; the first time a worker imports torch there, which takes seconds.

    Raises ``EnvironmentUnavailable`` where torch or an operator library cannot be loaded or does not answer,
    ``RunDirError`` where the answer cannot be kept below ``root``.
    """
    folder = root / FOLDER
    results, key = ResultStore(folder, Dump), _key(environment)
    dump = results.reusable(key)
    if isinstance(dump, WhyNot):
        patience = Patience(
            deadline=time.monotonic() + DEADLINE_S, tick=lambda: None, cancelled=cancelled or threading.Event()
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with files.locked(folder / f"{key}.lock", patience):
                dump = results.reusable(key)  # another process may have asked meanwhile
                if isinstance(dump, WhyNot):
                    codec.remove_drafts(folder)
                    dump = _ask(environment, files.emptied(folder / f".{key}.asking"), patience)
                    results.save(key, dump)
        except DeadlineExceeded:
            raise EnvironmentUnavailable(
                f"{environment.name} did not say which operators it has within {DEADLINE_S:.0f} s",
                f"see what this says: {environment.interpreter} -c 'import torch'",
            ) from None
        except OSError as error:
            raise RunDirError(
                f"{folder} cannot be written: {error.strerror}", "set TORCHSCRIPT_GATE_ENVS to another folder"
            ) from error
    files.touch(results.path(key))  # used last: ``cache clean`` removes what was not
    return dump


def _key(environment: Environment) -> str:
    torch, build = environment.spec.release, ""
    if torch is None:  # a ready-made one may change under its path
        facts = inspect_interpreter(environment.interpreter)
        torch, build = facts.torch, facts.build
    identity = [
        environment.interpreter,
        torch,
        build,
        *(path.read_text(encoding="utf-8") for path in (WORKER, *LOADERS, *READERS)),
        sorted(TYPE_WORDS),
        loaded_libraries.identity(environment),
    ]
    return f"torch-{torch}-{hashlib.sha256(codec.canonical(identity)).hexdigest()[:12]}"


def _ask(environment: Environment, run_dir: Path, patience: Patience) -> Dump:
    try:
        request: Mapping[str, object] = {
            "protocol": wire.PROTOCOL,
            "verb": "registry",
            "type_names": sorted(TYPE_WORDS),
            "libraries": environment.spec.libraries,
        }
        codec.write_atomically(run_dir / wire.REQUEST, codec.canonical(request))
        _run(environment, run_dir, patience)
        if (run_dir / wire.REGISTRY).exists():
            return _with_functions(codec.read_json(run_dir / wire.REGISTRY, Dump))
        refused = loaded_libraries.refused(run_dir, environment.name)
        if refused is not None:
            raise refused
        failure = EventTail(run_dir / wire.EVENTS).refresh().own_failure
        lines = (run_dir / wire.STDERR).read_text(errors="replace").strip().splitlines()
        why = f"{failure.type}: {failure.first_line}" if failure else lines[-1][:300] if lines else "no output"
        raise EnvironmentUnavailable(
            f"{environment.name} did not say which operators it has: {why}", "check that torch can be imported there"
        )
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)


def _with_functions(dump: Dump) -> Dump:
    """Return the dump with the functions of torch's C interface that its libraries export: read, not asked for."""
    functions: set[str] = set()
    for path in dump.torch_libraries:
        try:
            with opened(path) as source:
                library = read_library(source, LIMITS)
        except CannotRead as error:
            raise EnvironmentUnavailable(f"{path} cannot be read: {error.text}", "install torch again") from error
        offers = library.offers if library is not None else ()
        functions.update(name for name in offers if name.startswith(TORCHS_FUNCTIONS))
    return replace(dump, programs=replace(dump.programs, functions=tuple(sorted(functions))))


def _run(environment: Environment, run_dir: Path, patience: Patience) -> None:
    try:
        worker = processes.start_worker(environment.interpreter, run_dir, {})
    except OSError as error:
        raise EnvironmentUnavailable(
            f"{environment.interpreter} cannot be started: {error.strerror or error}", "name another with --env"
        ) from error
    try:
        patience.wait_until(lambda: worker.poll() is not None)
    finally:
        reap(worker)
