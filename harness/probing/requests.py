"""Builds probe requests from a plan; each has a key, and a form in which the worker reads it."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.core.environment import Fingerprint
from harness.core.models import Artifact, ArtifactKind, ModelDeclaration
from harness.core.plan import Deadlines, LimitSettings, Plan
from harness.core.probe import (
    TORCH_JIT_LOAD,
    Deadline,
    ExtractOrder,
    ModelResult,
    ModelRun,
    ProbeRequest,
    RewriteOrder,
    Script,
    ServingProfile,
    Step,
    TraceOrder,
    WorkerLimits,
    copy_name,
)
from harness.store import codec
from harness.worker import wire

DIGITS = 16
CPU_PATIENCE = 2
# What a server does, in its own way; everything else is the gate's work.
OF_SERVERS = ("run", "benchmark")
# Calls of the input sets after the first: enough to meet a recompilation at another shape and what follows it.
LATER_SET_CALLS = 2
# A call that takes milliseconds may take so many times longer in the new release: compiling it anew is no hang
# (docs/evidence.md#slower-first-calls).
FAST_FACTOR = 200.0
# It is known that something is wrong: a hang is met again and again, and need not be waited out for a minute.
IMPATIENT_FLOOR_S = 10.0
# AOTInductor compiles C++; a small ranker took a minute on a busy machine.
COMPILE_S = 900.0


class Requests:
    """A plan's requests. ``worker_digest`` and fingerprints make results of another worker or torch differ."""

    def __init__(self, plan: Plan, fingerprints: Mapping[str, Fingerprint], worker_digest: str) -> None:
        self._plan = plan
        self._fingerprints = fingerprints
        self._worker_digest = worker_digest
        self._sharing = {model.name for model in plan.models if "run" in model.shares}

    def _request(self, verb: str, side: str, deadline: Deadline, profile: ServingProfile | None = None) -> ProbeRequest:
        profile = profile or self._plan.settings.profile
        return ProbeRequest(
            verb=verb,
            side=side,
            environment=self._fingerprints[side].contents,
            device=self._plan.runs_on,
            profile=profile if verb in OF_SERVERS else with_own_loading(profile),
            deadline=deadline,
            worker_digest=self._worker_digest,
            limits=worker_limits(self._plan.settings.limits, verb),
        )

    def export(self, declaration: ModelDeclaration, side: str = "old") -> ProbeRequest:
        limit = self._plan.settings.deadlines.export_s
        return self._making("export", declaration, side, Deadline(load_s=limit, call_s=limit, total_s=2 * limit))

    def adopt(self, declaration: ModelDeclaration, side: str = "old") -> ProbeRequest:
        """Return the request that takes a given artifact over: its requests are read, or inferred by calling it."""
        deadline = _for_kinds([declaration.kind], floor_deadline(self._plan.settings.deadlines))
        return self._making("adopt", declaration, side, deadline)

    def resave(self, declaration: ModelDeclaration, side: str) -> ProbeRequest:
        """Return the request that loads the file of a given artifact and saves it as the release of ``side`` does."""
        return self._making("resave", declaration, side, floor_deadline(self._plan.settings.deadlines))

    def _making(self, verb: str, declaration: ModelDeclaration, side: str, deadline: Deadline) -> ProbeRequest:
        return replace(self._request(verb, side, deadline), declaration=declaration, shares=verb in declaration.shares)

    def run(
        self,
        side: str,
        artifacts: Sequence[Artifact],
        deadline: Deadline,
        *,
        profile: ServingProfile | None = None,
        script: Script | None = None,
        runtime: str = "python",
        repeat: int = 0,
        beside: int = 0,
    ) -> ProbeRequest:
        """Return the request that does ``script`` with ``artifacts``: without one, load and call all in order."""
        runs = tuple(self.model_run(artifact) for artifact in artifacts)
        if runtime == "python":
            deadline = _for_kinds([artifact.kind for artifact in artifacts], deadline)
        request = self._request("run", side, deadline, profile)
        shares = self._sharing.issuperset(artifact.model for artifact in artifacts)
        return replace(request, runs=runs, script=script, runtime=runtime, repeat=repeat, beside=beside, shares=shares)

    def loaders(self, side: str, artifact: Artifact) -> ProbeRequest:
        request = self._request("loaders", side, floor_deadline(self._plan.settings.deadlines))
        return replace(request, runs=(ModelRun(artifact=artifact, schedule=()),))

    def trace(
        self,
        side: str,
        artifact: Artifact,
        order: TraceOrder,
        deadline: Deadline,
        *,
        profile: ServingProfile | None = None,
    ) -> ProbeRequest:
        """Return the request that makes one call of ``artifact`` node by node, after the calls before it."""
        request = self._request("trace", side, deadline, profile)
        return replace(request, runs=(self.model_run(artifact),), trace=order)

    def extract(self, side: str, artifact: Artifact, order: ExtractOrder, deadline: Deadline) -> ProbeRequest:
        """Return the request that makes an archive of a part of ``artifact``; nothing of it is called."""
        run = ModelRun(artifact=artifact, schedule=())
        return replace(self._request("extract", side, deadline), runs=(run,), extract=order)

    def rewrite(self, artifact: Artifact, order: RewriteOrder, deadline: Deadline) -> ProbeRequest:
        """Return the request that rewrites ``artifact`` in the old release; nothing of it is called."""
        run = ModelRun(artifact=artifact, schedule=())
        return replace(self._request("rewrite", "old", deadline), runs=(run,), rewrite=order)

    def convert(self, side: str, artifact: Artifact, sets: Sequence[str], *, walk: bool = False) -> ProbeRequest:
        """Return the request that makes an exported program of the method that these input sets call.

        The first of ``sets`` is its example. ``walk``: by walking the graph under ``torch.export``, in place of torch's
        own converter.
        """
        limit = self._plan.settings.deadlines.export_s
        request = self._request(
            "walk" if walk else "convert", side, Deadline(load_s=limit, call_s=limit, total_s=2 * limit)
        )
        schedule = tuple((name, 1) for name in sets)
        return replace(request, runs=(ModelRun(artifact=artifact, schedule=schedule),))

    def package(self, side: str, program: Artifact) -> ProbeRequest:
        deadline = Deadline(load_s=COMPILE_S, call_s=COMPILE_S, total_s=2 * COMPILE_S)
        return replace(self._request("package", side, deadline), runs=(ModelRun(artifact=program, schedule=()),))

    def run_exported(
        self, side: str, program: Artifact, deadline: Deadline, *, runtime: str = "python"
    ) -> ProbeRequest:
        """Return the request that loads a program or package once, and calls each input set whatever becomes of others.

        The model itself is loaded only; ``copy_name(model, n)`` shares it and answers the n-th input set, from 1 on.
        """
        name, calls = program.model, self.model_run(program).schedule
        copies = {copy_name(name, index): call for index, call in enumerate(calls, start=1)}
        runs = [ModelRun(artifact=replace(program, model=copy), schedule=(call,)) for copy, call in copies.items()]
        steps: list[Step] = [("load", name)]
        for copy in copies:
            steps += [("share", copy, name), ("calls", copy)]
        if runtime == "python":
            deadline = _for_kinds([program.kind], deadline)
        return replace(
            self._request("run", side, deadline),
            runtime=runtime,
            runs=(ModelRun(artifact=program, schedule=()), *runs),
            script=Script(threads=(tuple(steps),)),
        )

    def with_reference(self, request: ProbeRequest) -> ProbeRequest:
        """Return ``request`` with the float64 run of its artifact after it, under the name ``MODEL@float64``.

        It comes last in its process: whatever becomes of it, the results before it are on record.
        """
        (run,) = request.runs
        artifact = replace(run.artifact, model=reference_name(run.artifact.model))
        reference = replace(run, artifact=artifact, precision="float64")
        return replace(request, runs=(run, reference))

    def benchmark(
        self,
        side: str,
        artifacts: Sequence[Artifact],
        profile: ServingProfile | None = None,
        *,
        runtime: str = "python",
    ) -> ProbeRequest:
        deadline = floor_deadline(self._plan.settings.deadlines)
        runs = tuple(self.model_run(artifact) for artifact in artifacts)
        return replace(self._request("benchmark", side, deadline, profile), runs=runs, runtime=runtime)

    def model_run(self, artifact: Artifact) -> ModelRun:
        if artifact.schedule or not artifact.input_sets:
            return ModelRun(artifact=artifact, schedule=artifact.schedule)
        first, *rest = artifact.input_sets
        later = min(LATER_SET_CALLS, self._plan.settings.calls)
        schedule = ((first.name, self._plan.settings.calls), *((input_set.name, later) for input_set in rest))
        return ModelRun(artifact=artifact, schedule=schedule)


def _for_kinds(kinds: Sequence[ArtifactKind], deadline: Deadline) -> Deadline:
    """Return the deadline with time for a package's loader to ask the compiler, usually known before."""
    if ArtifactKind.PACKAGE not in kinds:
        return deadline
    return replace(deadline, load_s=COMPILE_S, load_cpu_s=None, total_s=deadline.total_s + COMPILE_S)


def with_own_loading(profile: ServingProfile) -> ServingProfile:
    """Return the profile for exports and planted defects: torch.jit.load, and warnings are no errors."""
    env = {name: value for name, value in profile.env.items() if name != "PYTHONWARNINGS"}
    return replace(profile, load="", env=env)


def worker_limits(limits: LimitSettings, verb: str) -> WorkerLimits:
    """Return what a process that serves ``verb`` may use; a factory that exports may fetch its weights."""
    return WorkerLimits(
        memory_bytes=None if limits.memory_gb is None else round(limits.memory_gb * 1e9),
        memory_is_derived=limits.memory_is_derived,
        cpu_s=limits.cpu_s,
        file_bytes=round(limits.file_gb * 1e9),
        network=limits.network or verb == "export",
    )


def reference_name(model: str) -> str:
    """Return the name under which the float64 run of ``model`` is recorded."""
    return f"{model}@float64"


def floor_deadline(deadlines: Deadlines) -> Deadline:
    return Deadline(load_s=deadlines.floor_s, call_s=deadlines.floor_s, total_s=deadlines.total_s)


def impatient(deadlines: Deadlines) -> Deadlines:
    return replace(deadlines, floor_s=min(IMPATIENT_FLOOR_S, deadlines.floor_s))


def deadline_after(deadlines: Deadlines, old: Sequence[ModelResult], *, contention: int = 1) -> Deadline:
    """Return the larger of the floor and ``factor`` x the old release's slowest load and call.

    Where its calls are known to be short, the floor of a call is lower: ``fast_floor_s``, or 200 x its slowest call if
    that is more. A load keeps the floor, for it also depends on disks; the lower one is for the time that it computes.
    With so many threads at work (``contention``), a phase may take as many times longer, waiting for locks.
    """
    load_ns = max((result.load_ns or 0 for result in old), default=0)
    call_ns = max((call.duration_ns for result in old for call in result.calls), default=0)
    scale = deadlines.factor * contention * 1e-9

    def limit_s(known_ns: int) -> float:
        known_s = FAST_FACTOR * contention * 1e-9 * known_ns
        floor_s = min(deadlines.floor_s, max(deadlines.fast_floor_s, known_s)) if known_ns else deadlines.floor_s
        return max(floor_s, scale * known_ns)

    load_s, call_s = max(deadlines.floor_s, scale * load_ns), limit_s(call_ns)
    total_s = max(deadlines.total_s, load_s + call_s)
    return Deadline(load_s=load_s, call_s=call_s, total_s=total_s, load_cpu_s=limit_s(load_ns) if load_ns else None)


def request_key(request: ProbeRequest, code: str = "") -> str:
    """Return 16 hexadecimal digits; equal requests have equal ones.

    A memory limit that follows from the machine is no part of it: it changes with the control group, not the question.
    ``code``: digest of the source that an export depends on besides its fixture file, where that is known.
    """
    limits = request.limits
    if limits is not None and limits.memory_is_derived:
        request = replace(request, limits=replace(limits, memory_bytes=None, memory_is_derived=False))
    return codec.digest([request, code] if code else request)[:DIGITS]


def wire_request(
    request: ProbeRequest,
    stack_dumper: Path | None = None,
    *,
    compiler_checks: Path | None = None,
    libraries: Sequence[str] = (),
) -> dict[str, Any]:
    """Return ``request.json`` as the worker reads it; ``libraries`` are loaded first by a process of its own."""
    return {
        "compiler_checks": None if compiler_checks is None else str(compiler_checks),
        "libraries": libraries,
        "runs_code": request.runs_code,
        "limits": None if request.limits is None else wire_limits(request, request.limits),
        "stack_dumper": None if stack_dumper is None else str(stack_dumper),
        "protocol": wire.PROTOCOL,
        "verb": request.verb,
        "device": request.device.torch,
        "capabilities": request.device.capabilities,
        "pools": {"intra_op": request.profile.intra_op_threads, "inter_op": request.profile.inter_op_threads},
        "switches": dict(request.profile.switches),
        "load": request.profile.load or TORCH_JIT_LOAD,
        "runners": request.profile.runners,
        "env": dict(request.profile.env),
        "numerics": dict(request.profile.numerics),
        "runs": [asdict(run) for run in request.runs],
        "script": _as_dict(request.script),
        "declaration": _as_dict(request.declaration),
        "trace": _as_dict(request.trace),
        "extract": _as_dict(request.extract),
        "rewrite": _as_dict(request.rewrite),
    }


def wire_limits(request: ProbeRequest, limits: WorkerLimits) -> dict[str, Any]:
    """Return the limits as the worker reads them.

    The CPU time that is derived is out of reach for what the deadline ends: it ends what has escaped its group. A
    process of the benchmark lives for as long as there is something to measure.
    """
    cpu_s = limits.cpu_s
    if cpu_s is None and request.verb != "benchmark":
        cpu_s = CPU_PATIENCE * request.deadline.total_s * (os.cpu_count() or 1)
    wired = {**asdict(limits), "cpu_s": None if cpu_s is None else math.ceil(cpu_s)}
    del wired["memory_is_derived"]
    return wired


def _as_dict(
    part: Script | ModelDeclaration | TraceOrder | ExtractOrder | RewriteOrder | None,
) -> dict[str, Any] | None:
    return None if part is None else asdict(part)
