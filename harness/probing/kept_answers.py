"""Answers that outlive their run: what was asked before, and would be answered alike, is not asked again.

They lie in the user's cache, a folder for each environment on this kind of machine, in it a folder for each answer
under a key that holds all that it depends on (docs/adr/0098-answers-outlive-their-run.md). Only what went well is
kept, so a failure is always one of this run. What must be seen anew is never asked for: planted defects,
initialization, times.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness import __version__
from harness.core.environment import Environment, Fingerprint
from harness.core.errors import RunDirError
from harness.core.models import Artifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.probe import Deadline, ProbeRequest, ProbeResult, ServingProfile
from harness.environments.cache import ANSWERS
from harness.environments.installed import digest_of_installed
from harness.environments.operator_libraries import is_file
from harness.machine.cores import machine_identity
from harness.machine.files import emptied, remove, touch
from harness.probing.lacking import lacked
from harness.probing.processes import worker_environment
from harness.store import codec, probe_files
from harness.worker import wire

SIZE_VARIABLE: Final = "TORCHSCRIPT_GATE_ANSWERS_GB"
USUAL_GB: Final = 2.0
ENTRY: Final = "answer.json"
# What a kept answer may consist of; whatever else lies there was made by its model.
FILES: Final = frozenset(
    {
        *(probe_files.PACKED, f"{wire.OUTPUTS}/{wire.TENSORS_BIN}", f"{wire.OUTPUTS}/{wire.TENSORS_INDEX}"),
        *(f"{wire.INPUTS}/{wire.TENSORS_BIN}", f"{wire.INPUTS}/{wire.TENSORS_INDEX}"),
    }
)
VERBS: Final = ("adopt", "run")
ROOMS: Final = ("core", "probing", "store")
# Of the variables that a worker inherits, those that lead to what it computes with, or say how it writes numbers.
INHERITED: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH")
PART: Final = ".part"
# One answer takes at most such a part of the room.
LARGEST: Final = 8
LOOKED: Final = ".looked"
LOOK_EVERY_S: Final = 600.0


@dataclass(frozen=True, kw_only=True)
class KeptAnswer:
    """What is kept of an answer beside its files: the run that it is of, and the sha256 of each file."""

    run: str
    files: Mapping[str, str]


class KeptAnswers:
    """The answers of earlier runs in a user's cache, and where this run leaves its own.

    Args:
        root: of the cache.
        states: side -> the environment as it is now, see ``state_of``; answers of a side without one are not kept.
        run: the name of this run.
        fresh: whether all is asked again; what is answered replaces what was kept.
        most_bytes: how much is kept in all; what was used least recently goes first.
    """

    def __init__(self, root: Path, states: Mapping[str, str], *, run: str, fresh: bool, most_bytes: int) -> None:
        self._root = root / ANSWERS
        self._states = states
        self._run = run
        self._fresh = fresh
        self._most_bytes = most_bytes

    def take(self, request: ProbeRequest, folder: Path) -> ProbeResult | None:
        """Return the answer to ``request`` that an earlier run has left, its files in ``folder``; None: ask."""
        place = self._place(request)
        if self._fresh or place is None:
            return None
        try:
            known = codec.read_json(place / ENTRY, KeptAnswer)
            emptied(folder)  # a run that is killed now does not take what follows for its own
            codec.write_atomically(folder / probe_files.EARLIER, known.run.encode())
            for name, sha256 in known.files.items():
                if name not in FILES:
                    raise RunDirError(f"{place} holds a foreign {name}", "it is removed")
                (folder / name).parent.mkdir(exist_ok=True)
                content = (place / name).read_bytes()
                if hashlib.sha256(content).hexdigest() != sha256:
                    raise RunDirError(f"{place / name} is damaged", "it is removed")
                (folder / name).write_bytes(content)
            result = codec.read_json(folder / probe_files.RESULT, ProbeResult, read=probe_files.read_result)
        except (OSError, RunDirError):  # none, removed by another run meanwhile, or damaged: it is asked
            shutil.rmtree(place, ignore_errors=True)
            return None
        if not _within(request.deadline, result):
            return None
        for used in (place / ENTRY, place.parent):
            touch(used)
        return result

    def keep(self, request: ProbeRequest, result: ProbeResult) -> None:
        """Keep an answer for later runs where it may be; that it cannot be written is no failure of the run."""
        place, folder = self._place(request), Path(result.directory)
        if place is None or not went_well(request, result) or (place.exists() and not self._fresh):
            return
        part = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}{PART}")
        try:
            names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
            if not FILES.issuperset(names) or any((folder / name).is_symlink() for name in names):
                return
            if sum((folder / name).stat().st_size for name in names) > self._most_bytes // LARGEST:
                return
            emptied(part)
            digests = {}
            for name in names:
                (part / name).parent.mkdir(exist_ok=True)
                content = (folder / name).read_bytes()
                (part / name).write_bytes(content)
                digests[name] = hashlib.sha256(content).hexdigest()
            codec.write_atomically(part / ENTRY, codec.canonical(KeptAnswer(run=self._run, files=digests)))
            if place.exists():
                remove(place)
            part.rename(place)
        except (OSError, RunDirError):
            shutil.rmtree(part, ignore_errors=True)

    def prune(self) -> None:
        """Remove what was used least recently until the rest fits, and what killed runs had begun to keep.

        All runs together look for that once in ``LOOK_EVERY_S``: there may be a hundred thousand answers.
        """
        looked = self._root / LOOKED
        try:
            if time.time() - looked.stat().st_mtime < LOOK_EVERY_S:
                return
        except OSError:
            pass  # nobody has looked
        with contextlib.suppress(OSError):
            looked.touch()
        for part in self._root.glob(f"*/.*{PART}"):
            if not Path("/proc", part.name.split(".")[2]).exists():  # its writer was killed
                shutil.rmtree(part, ignore_errors=True)
        known = []
        for entry in self._root.glob(f"*/*/{ENTRY}"):
            with contextlib.suppress(OSError):
                size = sum(path.lstat().st_size for path in entry.parent.rglob("*"))
                known.append((entry.stat().st_mtime_ns, size, entry.parent))
        too_much = sum(size for _, size, _ in known) - self._most_bytes
        for _, size, place in sorted(known):
            if too_much <= 0:
                return
            shutil.rmtree(place, ignore_errors=True)
            too_much -= size

    def _place(self, request: ProbeRequest) -> Path | None:
        """Return where the answer to ``request`` would lie; None where its key would not hold all it depends on."""
        state = self._states.get(request.side)
        if state is None or not may_outlive(request):
            return None
        key = codec.digest([question(request), _variables(request.profile)])
        return self._root / state / key


def kept_bytes() -> int:
    """Return how much is kept of answers at most, by ``SIZE_VARIABLE``; what is no number counts as nothing."""
    try:
        return int(1e9 * float(os.environ.get(SIZE_VARIABLE) or USUAL_GB))
    except (ValueError, OverflowError):
        return 0


def state_of(environment: Environment, fingerprint: Fingerprint, torch_folder: str) -> str | None:
    """Return a name for an environment as it is now, on this machine, under this version of the gate.

    Two that differ in anything that may change an answer have other names: the interpreter, any file that is installed,
    the CPU. None where a change would not be seen, as of what an operator library of its own is linked to.
    """
    libraries = environment.spec.libraries
    if not torch_folder or any(map(is_file, libraries)):
        return None
    installed = digest_of_installed(Path(torch_folder).parent, alone=bool(libraries))
    if installed is None:
        return None
    identity = [__version__, _controller_digest(), environment.interpreter, libraries]
    digest = codec.digest([identity, fingerprint, installed, machine_identity()])
    plain = "".join(character if character.isalnum() or character in ".+" else "-" for character in fingerprint.torch)
    return f"torch-{plain}-{digest[:12]}"


@functools.cache
def _controller_digest() -> str:
    """Return a digest over the source that makes a result of what a worker has left."""
    harness = Path(__file__).parents[1]
    return codec.digest([path.read_text() for room in ROOMS for path in sorted((harness / room).rglob("*.py"))])


def may_outlive(request: ProbeRequest) -> bool:
    """Whether ``question`` holds all that the answer to ``request`` depends on beside the environment.

    Not what runs code of its own as it is loaded (a program, a package, requests in a Python file), nor what measures
    how processes or threads meet, nor a GPU.
    """
    plain = request.script is None and request.runtime == "python" and request.beside == 0 and not request.runs_code
    if not plain or not request.device.is_cpu or request.verb not in VERBS:
        return False
    declaration = request.declaration
    if declaration is not None:
        return (
            declaration.given is not None and not declaration.given.inputs.endswith(".py") and _by_content(declaration)
        )
    return all(_is_known(run.artifact) for run in request.runs)


def _by_content(declaration: ModelDeclaration) -> bool:
    """Whether the digest of a declaration is of the bytes of its files (``file_copies.by_content``)."""
    return not declaration.package_root and not declaration.source and bool(declaration.source_digest)


def _is_known(artifact: Artifact) -> bool:
    return bool(artifact.digest) and bool(artifact.inputs_digest or not artifact.input_sets)


def question(request: ProbeRequest) -> ProbeRequest:
    """Return ``request`` without what changes from run to run: where files lie, how long is waited, derived limits."""
    limits = request.limits
    if limits is not None and limits.memory_is_derived:
        limits = replace(limits, memory_bytes=None, memory_is_derived=False)
    declaration = request.declaration
    if declaration is not None and declaration.given is not None:
        given = replace(declaration.given, path="", inputs=Path(declaration.given.inputs).suffix)
        declaration = replace(declaration, given=given)
    runs = (replace(run, artifact=replace(run.artifact, path="", inputs_dir="")) for run in request.runs)
    deadline = Deadline(load_s=0.0, call_s=0.0, total_s=0.0)
    return replace(request, limits=limits, declaration=declaration, runs=tuple(runs), deadline=deadline)


def _variables(profile: ServingProfile) -> list[tuple[str, ...]]:
    """Return what variables of a worker say that no request does, with size and time of each file that they name."""
    variables = worker_environment(profile.env)
    parts: list[tuple[str, ...]] = [(name, variables[name]) for name in INHERITED if name in variables]
    words = {
        word
        for name, value in variables.items()
        if name in INHERITED or name in profile.env
        for word in value.split(":")
    }
    for place in sorted(Path(word) for word in " ".join(words).split() if word.startswith("/")):
        with contextlib.suppress(OSError):
            files = sorted(place.iterdir()) if place.is_dir() else [place]
            parts += [(str(path), *_size_and_time(path)) for path in files]
    return parts


def _size_and_time(path: Path) -> tuple[str, str]:
    status = path.stat()
    return str(status.st_size), str(status.st_mtime_ns)


def went_well(request: ProbeRequest, result: ProbeResult) -> bool:
    """Whether everything came through in a process that nobody had to look into; many a model has no float64 run."""
    references = {run.artifact.model for run in request.runs if run.precision is not None}
    failed = any(model.outcome is not Outcome.COMPLETED for model in result.models if model.model not in references)
    clear = result.outcome is Outcome.COMPLETED and result.evidence is None and not result.failed_after_others
    return clear and not failed and not lacked(request, result)


def _within(deadline: Deadline, result: ProbeResult) -> bool:
    """Whether an answer came in such a time that it would have been waited for."""
    loads_s = [1e-9 * model.load_ns for model in result.models if model.load_ns is not None]
    calls_s = [1e-9 * call.duration_ns for model in result.models for call in model.calls]
    most_load_s = min(deadline.load_s, deadline.load_cpu_s or deadline.load_s)
    total_s = sum(loads_s) + sum(calls_s)
    return (
        max(loads_s, default=0.0) <= most_load_s
        and max(calls_s, default=0.0) <= deadline.call_s
        and (total_s <= deadline.total_s)
    )
