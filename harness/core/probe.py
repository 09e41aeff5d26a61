"""A probe: one run of some artifacts in one process of one environment; its request, its script and its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.core.devices import CPU, Device
from harness.core.hang import Evidence
from harness.core.models import Artifact, ArtifactKind, ModelDeclaration
from harness.core.outcome import FINE, Disturbance, Outcome

Step = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """One list of steps per thread; ``docs/formats/wire.md`` says what each step does.

    Attributes:
        threads: at least one; a single thread is the process's main thread.
        barriers: barrier name -> how many threads meet there.
        latches: latch name -> how many ``count_down`` open it.
        calls_through: ``"thread"``, or ``"inter_op"``: every call is launched into torch's inter-op pool.
        keeps: how many of its latest calls each thread keeps the arguments and the outputs of.
        rests: whether serving threads rest between two calls; those that do not compare nothing either.
    """

    threads: tuple[tuple[Step, ...], ...]
    barriers: Mapping[str, int] = field(default_factory=dict)
    latches: Mapping[str, int] = field(default_factory=dict)
    calls_through: str = "thread"
    keeps: int = 0
    rests: bool = True


def copy_name(model: str, index: int) -> str:
    """Return the name under which copy ``index`` of a model acts: its own for 0, then ``MODEL#1``, ``MODEL#2``, ..."""
    return model if index == 0 else f"{model}#{index}"


def model_of(name: str) -> str:
    """Return the model of which ``name`` is a copy."""
    return name.partition("#")[0]


TORCH_JIT_LOAD, TORCH_LOAD = "torch.jit.load", "torch.load"
# How a caller loads an archive; ``harness/worker/run/loading.py`` and ``harness/native/run/loading.hpp`` do it.
LOADERS = (TORCH_JIT_LOAD, TORCH_LOAD, "buffer", "extra_files", "no_map_location", "read_adapter")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingProfile:
    """How production runs a model server; part of every request, both sides.

    Attributes:
        name: as in ``[tool.compat.serving]``; ``"default"`` unless ``--profile`` names another.
        load: how archives are loaded, one of ``LOADERS``; empty: nobody has said it, and torch.jit.load loads them.
        intra_op_threads, inter_op_threads: pool sizes, at least 1.
        runners: calls that a package of AOTInductor answers at once (``num_runners`` of its loader); others wait.
        switches: JIT switches, by the names in ``harness/serving/settings/table.py``.
        numerics: settings that change numbers, likewise; what is not named stays as the release has it.
    """

    name: str = "default"
    load: str = ""
    intra_op_threads: int = 1
    inter_op_threads: int = 1
    runners: int = 1
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    numerics: Mapping[str, bool | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """Seconds one phase may last without progress; ``load_cpu_s``: computing time of a load, None: no limit."""

    load_s: float
    call_s: float
    total_s: float
    load_cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerLimits:
    """What one process may use; None is no limit.

    Attributes:
        memory_bytes: private writable memory, torch's own included.
        memory_is_derived: whether it follows from the machine: then it is no part of what was asked.
        cpu_s: CPU time of all its threads; where it is None the controller derives one from the deadline.
        network: whether sockets other than local ones can be opened.
    """

    memory_bytes: int | None = None
    memory_is_derived: bool = False
    cpu_s: float | None = None
    file_bytes: int | None = None
    network: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRun:
    """What is asked of one artifact.

    Attributes:
        schedule: (input set, number of calls), in order; empty: loaded and not called.
        precision: ``"float64"`` makes it the reference: parameters and floating inputs are converted.
        larger_inputs: the tree of the first input set, in which tensors name the dimensions that may be larger
            (``grows``); None where nobody asks for larger ones.
    """

    artifact: Artifact
    schedule: tuple[tuple[str, int], ...]
    precision: str | None = None
    larger_inputs: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceOrder:
    """One call that is to be made node by node and recorded.

    Attributes:
        mode: ``"free"``; ``"forced"``: every node gets the inputs that ``beside`` has; or ``"patched"``: the nodes at
            ``places`` answer what they answered there, and those at ``unrun`` without being run.
        beside: directory of the probe with the other release's trace, None for the first one.
        tensor_bytes, total_bytes: a larger tensor, and what comes after so much in all, is described and not kept.
        index_bytes: where the description of the nodes would be longer, the call is given up: a loop may never end,
            and the controller holds about eight times as much.
    """

    input_set: str
    call: int
    mode: str = "free"
    beside: str | None = None
    places: tuple[tuple[int, ...], ...] = ()
    unrun: tuple[tuple[int, ...], ...] = ()
    tensor_bytes: int = 64 * 1024**2
    total_bytes: int = 4 * 1024**3
    index_bytes: int = 32 * 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractOrder:
    """A part of one call's program that becomes an archive of its own, with the values that go into it as its request.

    Attributes:
        beside: directory of the probe with a free trace of that call, where the values come from; None: only their
            types are known, so the archive can be loaded and not called.
        place: which run of which block: ``()`` is the graph, ``(12, 0)`` branch or turn 0 of its node 12.
        keep: indices of the nodes of that block that are kept, ascending.
    """

    input_set: str
    beside: str | None
    place: tuple[int, ...] = ()
    keep: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteOrder:
    """Rewrites of an artifact, saved as another archive; without ``edits`` and ``fold`` only what could be is told.

    Attributes:
        edits: names of rules in the worker's registry, each with the address of a node in the inlined graph, see
            ``TracedNode.address``.
        addresses: of nodes; which rules fit them is told.
        operators: what the new release refuses; where such nodes stand is told.
        fold: whether branches that are decided beforehand are left out, and the methods with ``operators`` emptied that
            nobody calls.
    """

    method: str = "forward"
    edits: tuple[tuple[str, tuple[int, ...]], ...] = ()
    addresses: tuple[tuple[int, ...], ...] = ()
    operators: tuple[str, ...] = ()
    fold: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRequest:
    """One process's work. Frozen, canonical as JSON, hashes to its key.

    Attributes:
        verb: one of ``harness.worker.wire.VERBS``.
        environment: ``Fingerprint.contents`` of the environment; makes keys differ by side.
        side: ``"old"`` or ``"new"``: which environment runs it.
        runs: artifacts to load and call (verb ``run``).
        script: what the threads of the process do with them; None: one after another in the main thread.
        runtime: ``"python"``, or ``"libtorch"``: the C++ worker.
        declaration: the model to export, or the given one to adopt (verbs ``export`` and ``adopt``).
        trace: which call of the one artifact in ``runs`` is made node by node (verb ``trace``).
        extract: which part of that artifact becomes an archive (verb ``extract``).
        rewrite: what is rewritten in it (verb ``rewrite``).
        repeat: 0, 1, ...: distinguishes repeats of the same work.
        beside: how many other processes do the same at the same time.
        limits: of the process; None sets none, and derives none.
        look: whether a process that hangs is looked into before it is ended; where many do, that takes most time.
        shares: whether a process may do it that has done others; where contexts of a device are dear it may always.
    """

    verb: str
    side: str
    environment: str
    device: Device = CPU
    profile: ServingProfile = field(default_factory=ServingProfile)
    deadline: Deadline
    runs: tuple[ModelRun, ...] = ()
    script: Script | None = None
    runtime: str = "python"
    declaration: ModelDeclaration | None = None
    trace: TraceOrder | None = None
    extract: ExtractOrder | None = None
    rewrite: RewriteOrder | None = None
    repeat: int = 0
    beside: int = 0
    worker_digest: str = ""
    limits: WorkerLimits | None = None
    look: bool = True
    shares: bool = False

    @property
    def runs_code(self) -> bool:
        """Whether what is loaded runs code of its own at once: programs and packages do, TorchScript does not."""
        given = self.declaration.given if self.declaration is not None else None
        kinds = {run.artifact.kind for run in self.runs} | ({given.kind} if given is not None else set())
        return bool(kinds - {ArtifactKind.TORCHSCRIPT})


FailurePlace = tuple[str, str | None, int | None]
"""Phase, input set and call; a phase is empty, the others None, where that is not known."""


BAD_INPUTS = "BadInputs"
"""The type of a failure where requests that somebody gave are wrong; the worker's message says what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """An error as data: what the environment under test said, and in which phase.

    ``type`` is empty where no release was asked: the gate itself could not use what it was given.
    """

    type: str
    message: str
    phase: str
    traceback: str = ""
    input_set: str | None = None
    call: int | None = None
    disturbance: Disturbance | None = None

    @property
    def first_line(self) -> str:
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return lines[0] if lines else self.type


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRecord:
    """One call of one input set: its time and its output tree (wire encoding, offsets into the bin file)."""

    input_set: str
    call: int
    duration_ns: int
    output: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedRequest:
    """One request that a model did not answer in full: the first call that raised, or where the process ended or hung.

    ``call``: in which the process ended or hung, or which was never made; ``failure``: the error; None where there was
    none.
    """

    input_set: str
    outcome: Outcome
    phase: str
    call: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelResult:
    """What happened to one model in the process.

    Attributes:
        outcome: what happened; of a model that failed in several requests, in the first of them, unless it ended the
            process in another.
        phase: the phase that failed; for a hang or crash the one that never ended; else the last one begun.
        input_set, call: in which the process ended or hung, or which was never made; those of an error are with it.
        failure: the first error, where there was one.
        failed_requests: those that it did not answer in full; empty where it failed before its first call.
        load_ns: duration of ``torch.jit.load``; None if it did not end.
        ready_ns: from the start barrier to the end of warm-up, for concurrent initialization.
        calls: finished calls in order.
        thread: index of the worker thread that ran it.
    """

    model: str
    outcome: Outcome
    phase: str = ""
    input_set: str | None = None
    call: int | None = None
    failure: Failure | None = None
    load_ns: int | None = None
    ready_ns: int | None = None
    calls: tuple[CallRecord, ...] = ()
    thread: int = 0
    failed_requests: tuple[FailedRequest, ...] = ()

    def of_request(self, input_set: str) -> "ModelResult":
        """Return one request's result, as if alone; NOT_RUN if unreached; a failed load is shared by all."""
        own = next((failed for failed in self.failed_requests if failed.input_set == input_set), None)
        if own is not None:
            return replace(
                self.ended(own.outcome),
                phase=own.phase,
                input_set=None if own.call is None else input_set,
                call=own.call,
                failure=own.failure,
                failed_requests=(own,),
            )
        if not self.failed_requests:
            return self
        answered = any(call.input_set == input_set for call in self.calls)
        return self.ended(Outcome.COMPLETED if answered else Outcome.NOT_RUN)

    def ended(self, outcome: Outcome) -> "ModelResult":
        """Return the result with another outcome, and without what failed."""
        return replace(self, outcome=outcome, phase="", input_set=None, call=None, failure=None, failed_requests=())

    @property
    def made_calls(self) -> bool:
        """Whether it got as far as its requests, of which it may have failed in some."""
        return self.outcome is Outcome.COMPLETED or bool(self.failed_requests)

    @property
    def failed(self) -> bool:
        return self.outcome not in FINE

    def fails_like(self, other: "ModelResult") -> bool:
        """Whether both end in the same way, at the same call."""
        return (self.outcome, self.place) == (other.outcome, other.place)

    @property
    def way(self) -> tuple[Outcome, str]:
        """The outcome and the phase; in which call a model fails is a matter of timing."""
        return self.outcome, self.phase

    @property
    def place(self) -> FailurePlace:
        """Where it failed; alone, a certain failure is always there."""
        failed = self if self.failure is None else self.failure
        return self.phase, failed.input_set, failed.call

    @property
    def phase_words(self) -> str:
        """The phase, as in ``call 1 of example`` where the process ended or hung in it."""
        return self.phase if self.call is None else f"{self.phase} {self.call} of {self.input_set}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A phase on the shared monotonic clock; ``cpu_ns``: of its own thread, 0 where it did not end; ``call``: which one
    of its input set, from 0, where it is one.
    """

    phase: str
    begin_ns: int
    end_ns: int
    model: str = ""
    thread: int = 0
    finished: bool = True
    cpu_ns: int = 0
    call: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """What one process did.

    Attributes:
        outcome: COMPLETED if the process said goodbye, even if some model failed; else how it ended.
        directory: the probe's folder, with request, events, outputs, stacks, stdout and stderr.
        models: one result per model asked for.
        data: marks the worker left, by name: ``exported``, ``fingerprint``, ``switches``, ``numerics``.
        max_rss_bytes: peak resident memory of the process, where the kernel told.
        memory_limit_bytes: private writable memory that it was allowed, None without a limit.
        exit_detail: ``"signal SIGSEGV"``, ``"exit code 1"`` or empty.
        stacks: text of the worker's own stack dump, before a kill or at a crash, possibly empty.
        evidence: what was found in a process that hung or crashed.
        memory: (label, resident bytes, threads that the kernel knows) as the script asked, in order.
        contexts: how many processes have begun to use the device for it, where that is dear: none, if it was done in
            one that others have used before; more, if it was repeated.
        failed_after_others: where it has left its files when it failed in such a process, before it came through alone;
            else empty.
        earlier: name of the earlier run that it was made in; empty: this one.
    """

    key: str
    side: str
    outcome: Outcome
    directory: str
    models: tuple[ModelResult, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    spans: Sequence[Span] = ()
    max_rss_bytes: int | None = None
    memory_limit_bytes: int | None = None
    exit_detail: str = ""
    stacks: str = ""
    failure: Failure | None = None
    evidence: Evidence | None = None
    memory: tuple[tuple[str, int, int], ...] = ()
    contexts: int = 0
    failed_after_others: str = ""
    earlier: str = ""

    @property
    def outcomes(self) -> frozenset[Outcome]:
        requests = (request.outcome for item in self.models for request in item.failed_requests)
        return frozenset({self.outcome, *(item.outcome for item in self.models), *requests})
