"""Runs probes: a request becomes a folder, a forked child, a watch, and a stored result."""

import contextlib
import dataclasses
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from harness.core.devices import CPU, Device
from harness.core.environment import Environment, Fingerprint
from harness.core.errors import EnvironmentUnavailable, InternalError
from harness.core.hang import Evidence, HangProof
from harness.core.models import ModelDeclaration
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import Deadline, ProbeRequest, ProbeResult, ServingProfile, model_of
from harness.core.timeline import ProcessTrace
from harness.machine.files import emptied, moved
from harness.machine.processes import REAP_DEADLINE_S
from harness.machine.progress import Activity, Progress
from harness.probing import processes, verification
from harness.probing.batches import Batches, BatchWorker, is_healthy, may_share
from harness.probing.conclusion import Ending, conclude
from harness.probing.events import EventLog, OpenPhase
from harness.probing.kept_answers import KeptAnswers
from harness.probing.lacking import lacked
from harness.probing.loaded_libraries import LoadedLibraries
from harness.probing.requests import request_key, wire_request
from harness.probing.unasked_requests import unreached, with_rest
from harness.probing.zygote import Child, Zygote, start
from harness.store import codec, probe_files
from harness.store.results import ResultStore, WhyNot
from harness.worker import wire

ProbeRunner = Callable[[ProbeRequest], ProbeResult]
WORKER_FOLDER = processes.BOOTSTRAP.parent
NATIVE_FOLDER = WORKER_FOLDER.parent / "native"
FORK_DEADLINE_S = 30.0
# A probe that others kept from the CPUs is tried so often again, with so many times the total of before.
STARVED_REPEATS = 2
STARVED_PATIENCE = 3
FINGERPRINT_DEADLINE = Deadline(load_s=60.0, call_s=60.0, total_s=60.0)


@functools.cache
def worker_digest() -> str:
    """Return a digest over the source of both workers, read once: results of another worker are not reused."""
    sources = (*WORKER_FOLDER.rglob("*.py"), *NATIVE_FOLDER.rglob("*.[ch]pp"))
    return codec.digest({str(path.relative_to(WORKER_FOLDER.parent)): path.read_text() for path in sorted(sources)})


class Watchdog(Protocol):
    """Who watches a child from outside, ends it when it is proven to hang, and says what one was doing."""

    def watch(
        self,
        child: Child,
        run_dir: Path,
        deadline: Deadline,
        *,
        investigate: Callable[[int, Path, HangProof], Evidence] | None,
        seen: Callable[[EventLog], None],
    ) -> Ending:
        """Wait for a child, or for the proof that it hangs; ``seen`` is shown its events meanwhile."""
        ...

    def investigate(self, pid: int, run_dir: Path, proof: HangProof, *, runtime: str) -> Evidence:
        """Return what a process that hangs is doing."""
        ...

    def crash_evidence(self, run_dir: Path, signal_name: str) -> Evidence:
        """Return what a process that a signal has ended was doing."""
        ...


def require_seen(device: Device, fingerprint: Fingerprint, name: str) -> None:
    """Raise ``EnvironmentUnavailable`` where torch does not see the device, or sees another maker's."""
    if device.is_cpu:
        return
    if fingerprint.gpu is None and not device.gpu:
        what = f"{name} sees no {device.name}"
        raise EnvironmentUnavailable(what, "name the library that brings it with --library, or run with --device cpu")
    if fingerprint.gpu is None:
        raise EnvironmentUnavailable(
            f"this machine has a GPU and {name} sees none",
            f"check the driver and that it is a {device.build} build, or run with --device cpu",
        )
    if device.gpu and device.nvidia == (fingerprint.cuda is None):
        raise EnvironmentUnavailable(
            f"--device {device.name}: {name} is no {device.build} build of torch", "run with --device cpu"
        )


class ZygoteRunner:
    """A ``ProbeRunner`` over one zygote per side (and per set of environment variables) and the C++ workers.

    Attributes:
        native: side -> the C++ worker that was built for it; ``libtorch``: side -> what a build needs to know.
        libraries: side -> what the operator libraries of its environment turned out to be; only where it has any.
        kept: answers of earlier runs, which a probe that is ``lasting`` may be; None: none are used or left.

    Args:
        folder: where probes leave their folders, named by key.
        watchdog: watches each process from outside; ``harness.checks.hang.watchdog``, which is a room above this one.
        reuse: whether a result that was stored before is returned in place of a new probe (``--resume``).
        stack_dumper: the library that shows native stacks of Python workers, where one was built.
        compiler_checks: where each environment keeps what torch compiles to learn which instructions it may use.
        imported: where ``folder`` outlives a run: what tells which source a declaration depends on besides its own
            file. What cannot be read there is made anew.
        progress: is told what runs.
    """

    def __init__(
        self,
        environments: Mapping[str, Environment],
        folder: Path,
        watchdog: Watchdog,
        *,
        reuse: bool = True,
        stack_dumper: Path | None = None,
        compiler_checks: Path | None = None,
        imported: Callable[[ModelDeclaration], str | None] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._watchdog = watchdog
        self._progress = progress or Progress(enabled=False)
        self._old_load_s: dict[str, float] = {}
        self._environments = environments
        self._folder = folder
        self._reuse = reuse
        self.results = ResultStore(
            folder,
            ProbeResult,
            suffix=f"/{probe_files.RESULT}",
            strict=imported is None,
            read=probe_files.read_result,
        )
        self._zygotes: dict[tuple[str, tuple[tuple[str, str], ...]], Zygote] = {}
        self._started = itertools.count()
        self._running: dict[str, Future[ProbeResult]] = {}
        self._lock = threading.Lock()
        self._starved = threading.Lock()
        self._closed = False
        self._preloads: dict[str, tuple[str, ...]] = {}
        self._natives: set[Child] = set()
        self._batches = Batches(self._start_batch)
        self.native: dict[str, Path] = {}
        self.rounds_ns: list[tuple[int, int]] = []
        self.compiled: list[ProcessTrace] = []
        self._stack_dumper = stack_dumper
        self._compiler_checks = compiler_checks
        self._imported = imported
        self.libtorch: dict[str, Mapping[str, Any]] = {}
        self.libraries: dict[str, LoadedLibraries] = {}
        self.companions: dict[str, tuple[str, ...]] = {}
        self.kept: KeptAnswers | None = None
        self.unreaped: list[str] = []
        self.finished: list[ProbeResult] = []

    def __call__(self, request: ProbeRequest, *, lasting: bool = False) -> ProbeResult:
        """Run ``request``, or return its stored result; who asks for what is running already waits for that.

        ``lasting``: whether an answer of an earlier run will do as well (``kept``), and this one for later runs.
        """
        code = self._imported(request.declaration) if self._imported and request.declaration else ""
        key = request_key(request, code or "")
        with self._lock:
            running = self._running.get(key)
            mine: Future[ProbeResult] | None = None if running is not None else Future()
            if mine is not None:
                self._running[key] = mine
        if mine is None:
            assert running is not None
            return running.result()
        try:
            mine.set_result(self._stored_or_run(request, key, source_known=code is not None, lasting=lasting))
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._running[key]
        self.finished.append(mine.result())
        return mine.result()

    def has(self, request: ProbeRequest) -> bool:
        """Whether ``request`` was asked before in this folder, to its end or not."""
        return self._reuse and (self._folder / request_key(request)).exists()

    def _stored_or_run(self, request: ProbeRequest, key: str, *, source_known: bool, lasting: bool) -> ProbeResult:
        stored = self.results.reusable(
            key,
            fresh=not self._reuse,
            source_known=source_known,
            lacked=functools.partial(lacked, request),
        )
        folder, kept = self._folder / key, self.kept if lasting else None
        known = None if isinstance(stored, WhyNot) else stored
        if known is None and kept is not None:
            known = kept.take(request, folder)
        if known is not None and (earlier := probe_files.earlier_run(folder)):
            known = dataclasses.replace(known, key=key, directory=str(folder), earlier=earlier)
        result = known or self._run(request, key)
        probe_files.compact(folder, failed=not _completed(request, result))
        if known is None and kept is not None:
            kept.keep(request, result)
        return result

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Let probes share processes meanwhile, one after another, where they may; end those afterwards."""
        self._batches.open()
        try:
            yield
        finally:
            self.unreaped.extend(f"batch worker {worker.folder}" for worker in self._batches.close())

    def _run(self, request: ProbeRequest, key: str) -> ProbeResult:
        if self._batches.is_open and may_share(request):
            result = self._share(request, key)
        else:
            result = self._alone(request, key)
        if self._closed:
            raise InternalError("the probe runner was closed in the middle of a probe")  # which may have died of it
        rest = unreached(request, result)
        if rest is not None:
            answered = self(rest)
            result = with_rest(result, answered)
            codec.write_atomically(self._folder / key / probe_files.REST, Path(answered.directory).name.encode())
        if not result.outcomes & UNCLEAR:  # else it is no answer, to keep for ``--resume``
            self.results.save(key, result)
        return result

    def _share(self, request: ProbeRequest, key: str) -> ProbeResult:
        """Run ``request`` in a batch worker; what fails there is repeated alone, and that answer alone counts."""
        worker = self._batches.take(request)
        begun = int(worker.done == 0 and request.device.contexts)
        place = worker.folder / key
        try:
            self._write(request, place)
            child = worker.zygote.fork(place, within=worker.process)
            result = self._watched(child, dataclasses.replace(request, look=False), key, place)
        except BaseException:
            worker.end()
            raise
        if is_healthy(result):
            self._batches.keep(worker)
        elif not worker.end():
            self.unreaped.append(f"batch worker {worker.folder}")
        if _completed(request, result):
            folder = moved(place, self._folder / key)
            return dataclasses.replace(result, directory=str(folder), contexts=begun)
        alone = self._alone(request, key)
        after = ""
        if worker.done and _completed(request, alone) and (place / wire.EVENTS).exists():  # else it never began there
            after = f"{place}, after {worker.done} others"
        return dataclasses.replace(alone, contexts=alone.contexts + begun, failed_after_others=after)

    def _alone(self, request: ProbeRequest, key: str) -> ProbeResult:
        folder = self._folder / key
        results = [self._attempt(request, key, folder)]
        if Outcome.PROTOCOL_ERROR in results[-1].outcomes:
            results.append(self._attempt(request, key, folder))
        patience = 1
        while Outcome.STARVED in results[-1].outcomes and patience < STARVED_PATIENCE**STARVED_REPEATS:
            patience *= STARVED_PATIENCE
            longer = dataclasses.replace(request.deadline, total_s=request.deadline.total_s * patience)
            with self._starved:  # one after another: together they would starve again
                results.append(self._attempt(dataclasses.replace(request, deadline=longer), key, folder))
        return dataclasses.replace(results[-1], contexts=len(results) if request.device.contexts else 0)

    def fingerprint(self, side: str, profile: ServingProfile, device: Device = CPU) -> Fingerprint:
        """Return what an environment says of itself, asked every run. Raises ``EnvironmentUnavailable``."""
        request = ProbeRequest(
            verb="fingerprint",
            side=side,
            environment=self._environments[side].interpreter,
            profile=profile,
            device=device,
            deadline=FINGERPRINT_DEADLINE,
        )
        key = request_key(request)
        result = self._attempt(request, key, self._folder / key)
        if "fingerprint" not in result.data:
            raise EnvironmentUnavailable(
                f"{self._environments[side].name} did not answer: {result.exit_detail or result.outcome}",
                f"see {result.directory}",
            )
        self.libtorch[side] = result.data.get("libtorch", {})
        if "libraries" in result.data:
            self.libraries[side] = LoadedLibraries.from_mark(result.data["libraries"])
        fingerprint = Fingerprint(**result.data["fingerprint"])
        require_seen(device, fingerprint, self._environments[side].name)
        # A device outside of torch is called no GPU.
        return fingerprint if device.gpu else dataclasses.replace(fingerprint, gpu=None)

    def use_native(self, side: str, binary: Path, companions: tuple[str, ...] = ()) -> None:
        """Take ``binary`` for the C++ worker of ``side`` from now on."""
        self.native[side] = binary
        self.companions[side] = companions

    def record_round(self, wall_ns: tuple[int, int], unreaped: Sequence[str]) -> None:
        self.rounds_ns.append(wall_ns)
        self.unreaped.extend(unreaped)

    def release(self, side: str) -> None:
        with self._lock:
            slots = [slot for slot in self._zygotes if slot[0] == side]
            zygotes = [self._zygotes.pop(slot) for slot in slots]
        if not all([zygote.close() for zygote in zygotes]):  # noqa: C419  every one is ended
            self.unreaped.append(f"zygote of {self._environments[side].name}")

    def preload(self, side: str, modules: tuple[str, ...]) -> None:
        """Have the next zygote of ``side`` import slow modules once; nothing of ``side`` may run meanwhile."""
        self._preloads[side] = modules
        self.release(side)

    def close(self) -> None:
        """End every zygote and child; never raises. Whatever could not be reaped is named in ``unreaped``."""
        with self._lock:
            self._closed = True
            zygotes, self._zygotes = self._zygotes, {}
            natives = [child for child in self._natives if not child.ended.is_set()]
        for child in natives:
            child.kill()
        limit = time.monotonic() + REAP_DEADLINE_S
        for child in natives:  # one that somebody still looks into is gone too, and reaped when that has ended
            if not child.exited.wait(max(0.0, limit - time.monotonic())):
                self.unreaped.append(f"C++ worker {child.run_dir}")
        for (side, _), zygote in zygotes.items():
            with contextlib.suppress(Exception):  # whatever it is, the others must be ended
                if zygote.close():
                    continue
            self.unreaped.append(f"zygote of {self._environments[side].name}")

    @property
    def import_cpu_s(self) -> float:
        """CPU time of the most expensive import of torch so far."""
        with self._lock:
            return max((zygote.import_cpu_s for zygote in self._zygotes.values()), default=0.0)

    def start(self, side: str, profile: ServingProfile) -> Zygote:
        slot = (side, tuple(sorted(profile.env.items())))
        with self._lock:
            if self._closed:
                raise InternalError("the probe runner is closed")
            zygote = self._zygotes.get(slot)
            if zygote is None or not zygote.alive:
                if zygote is not None:
                    zygote.close()
                folder = emptied(self._folder / f"zygote-{side}-{next(self._started)}")
                environment = self._environments[side]
                order = {
                    "protocol": wire.PROTOCOL,
                    "verb": "serve",
                    "libraries": environment.spec.libraries,
                    "preload": self._preloads.get(side, ()),
                }
                codec.write_atomically(folder / wire.REQUEST, codec.canonical(order))
                zygote = Zygote(environment.interpreter, folder, profile.env, name=environment.name)
                self._zygotes[slot] = zygote
            return zygote

    def _fork(self, request: ProbeRequest, folder: Path) -> Child:
        zygote = self.start(request.side, request.profile)
        zygote.wait_ready()
        self._write(request, folder)
        child = zygote.fork(folder)
        if not child.started.wait(FORK_DEADLINE_S):
            zygote.close()  # it does not answer any more; all its children end with it
        return child

    def _start_batch(self, request: ProbeRequest, serves: tuple[Any, ...]) -> BatchWorker:
        zygote = self.start(request.side, request.profile)
        zygote.wait_ready()
        folder = emptied(self._folder / f"batch-{request.side}-{next(self._started)}")
        process = zygote.fork(folder, batch=True)
        if not process.started.wait(FORK_DEADLINE_S):
            zygote.close()
        return BatchWorker(serves, zygote, process, folder)

    def _start_native(self, request: ProbeRequest, folder: Path) -> Child:
        self._write(request, folder)
        child = start(self.native[request.side], folder, request.profile.env, kept=request.runs_code)
        with self._lock:
            self._natives.add(child)
            closed = self._closed
        if closed:
            child.kill()
        return child

    def _write(self, request: ProbeRequest, folder: Path) -> None:
        emptied(folder)
        checks = (
            self._compiler_checks and self._compiler_checks / f"compiler-checks-{codec.digest(request.environment)[:8]}"
        )
        order = wire_request(request, self._stack_dumper, compiler_checks=checks)
        loaded = self.libraries.get(request.side)
        if request.runtime == "libtorch" and loaded is not None:
            order["libraries"] = loaded.paths
            order["operators"] = loaded.operators
            order["companions"] = self.companions.get(request.side, ())
        codec.write_atomically(folder / wire.REQUEST, codec.canonical(order))

    def _attempt(self, request: ProbeRequest, key: str, folder: Path) -> ProbeResult:
        child = self._start_native(request, folder) if request.runtime == "libtorch" else self._fork(request, folder)
        return self._watched(child, request, key, folder)

    def _watched(self, child: Child, request: ProbeRequest, key: str, folder: Path) -> ProbeResult:
        investigate = functools.partial(self._watchdog.investigate, runtime=request.runtime) if request.look else None
        try:
            with self._progress.running(_words_of(request)) as activity:
                seen = functools.partial(self._show, activity)
                ending = self._watchdog.watch(child, folder, request.deadline, investigate=investigate, seen=seen)
        finally:
            child.kill()  # has an effect only if the watch failed
            with self._lock:
                self._natives.discard(child)
        if not ending.reaped:
            self.unreaped.append(f"{request.verb} {folder}")
        probe_files.remove_foreign(folder)
        done = conclude(
            request,
            key,
            folder,
            ending,
            self._watchdog.crash_evidence,
            status=child.status,
            max_rss_bytes=child.max_rss_bytes,
        )
        if request.side == "old":
            loads = {model.model: model.load_ns / 1e9 for model in done.models if model.load_ns is not None}
            self._old_load_s.update(loads)
        return verification.verified(request, done)

    def _show(self, activity: Activity, event_log: EventLog) -> None:
        opened = min((phase for phase in event_log.open.values() if phase.model), default=None, key=_begin_of)
        if opened is None:
            return
        model, before = model_of(opened.model), ""
        if opened.phase == wire.LOAD and model in self._old_load_s and "old" in self._environments:
            before = f"{self._old_load_s[model]:.1f} s in {self._environments['old'].name}"
        number = f" {opened.call + 1}" if opened.call is not None else ""
        activity.at(f"{model}: {opened.phase}{number}", opened.begin_ns / 1e9, before=before)


def _begin_of(opened: OpenPhase) -> int:
    return opened.begin_ns


def _words_of(request: ProbeRequest) -> str:
    names = list(dict.fromkeys(model_of(run.artifact.model) for run in request.runs))
    if len(names) > 1:
        return f"{len(names)} models together"
    named = [request.declaration.name] if request.declaration is not None else names
    return " ".join((request.verb, *named))


def _completed(request: ProbeRequest, result: ProbeResult) -> bool:
    """Whether process and models came through, and nobody had to look into it. Many a model has no float64 run."""
    references = {run.artifact.model for run in request.runs if run.precision is not None}
    failed = any(model.failed for model in result.models if model.model not in references)
    return result.outcome is Outcome.COMPLETED and result.evidence is None and not failed
