"""Makes a reproducer of an archive: of the few nodes that show a symptom, of what does not load, or of the whole.

Of what fails only while a server is brought up, it is kept only if the program shows it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.artifacts.adopted import archive_code, archive_fields, inputs_digest
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import NOTHING, Outputs
from harness.artifacts.tensors.recorded import read_inputs
from harness.checks.outputs.compare import precision_of
from harness.checks.outputs.tolerances import Precision, shares
from harness.core.diagnosis import Attribution, Bisection, Culprit, Issue, Reproducer, Setting, Symptom, TracedNode
from harness.core.measurement import RatioEstimate
from harness.core.models import Artifact, InputSet
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult, ProbeResult
from harness.core.text import first_few
from harness.core.verdict import Mitigation
from harness.probing.facts import Effects, Exported, Provisioned, Started, Timed, WithWorker
from harness.probing.requests import worker_limits
from harness.probing.verification import legible_outputs
from harness.search.delta_debugging import repeats_needed
from harness.search.reduce.oracles import LEAST_WAIT_S, WAIT_FACTOR, Sides
from harness.search.reproduce.files import ARCHIVE, Tensors, is_small
from harness.search.reproduce.folder import Concurrency, Draft, finished, not_made
from harness.serving.scenarios import Scenario
from harness.serving.settings.mitigations import MITIGATIONS
from harness.verdict.reduction import ending_words, slowest_ns, symptom_of, way_of
from harness.verdict.reproduction import looked_for

MOST_NAMED = 3
DOES = {
    Symptom.HANG: "does not return",
    Symptom.CRASH: "crashes the process",
    Symptom.ERROR: "raises an error",
    Symptom.MEMORY: "takes more memory than there is",
    Symptom.VALUES: "answers otherwise",
    Symptom.LATENCY: "is slower",
    Symptom.CONVERSION: "is not converted",
}
ARGUMENT = re.compile(r"input\[(\d+)\](.*)", re.DOTALL)
# torch.jit.load holds Python's lock, so a race shows more rarely than in C++.
RACY_RUNS = 5
NO_REPRODUCER = "no reproducer"


def reproduce_program(
    culprit: Culprit,
    symptom: Symptom,
    facts: WithWorker,
    effects: Effects,
    *,
    index: int,
    model: str,
    mitigations: Sequence[Mitigation] = (),
    concurrency: Concurrency | None = None,
) -> Reproducer:
    """Return a reproducer of the few nodes, run in both releases; ``index`` is unique in the run, from 0."""
    subject = _Subject(
        artifact=part_artifact(culprit, model, facts, effects),
        symptom=symptom,
        label=label_of(culprit.nodes),
        nodes=culprit.nodes,
        actual=(culprit.new,) if culprit.new else (),
        runs=clean_runs(culprit),
        mitigations=_with_options(mitigations),
        concurrency=concurrency,
        steady=culprit.steady,
        remarks=() if culprit.minimal else ("The search ended before it was known whether each node is needed.",),
    )
    return _made(subject, facts, effects, index)


def reproduce_load(culprit: Culprit, facts: WithWorker, effects: Effects, *, model: str) -> Reproducer:
    subject = _Subject(
        artifact=replace(part_artifact(culprit, model, facts, effects), input_sets=(), schedule=()),
        symptom=Symptom.ERROR,
        label=f"load {label_of(culprit.nodes)}",
        nodes=culprit.nodes,
        actual=(culprit.new,) if culprit.new else (),
    )
    return _made(subject, facts, effects)


def reproduce_whole(
    model: str,
    facts: Timed,
    effects: Effects,
    *,
    index: int = 0,
    symptom: Symptom | None = None,
    mitigations: Sequence[Mitigation] = (),
    why: str = "",
    concurrency: Concurrency | None = None,
) -> Reproducer:
    """Return a reproducer of the whole artifact with its requests: where nothing smaller is known to show it.

    ``symptom``: what is looked for; by default what the model did alone in the new release; ``why``: why there is
    nothing smaller, as a sentence for the issue; concurrency: as what it is brought up.
    """
    artifact = facts.exports[model].artifact
    if artifact is None or model not in facts.alone:
        return Reproducer(operator="the whole artifact", note="there is no artifact to reproduce it with")
    probe = facts.alone[model]
    baseline, measured = facts.baselines.get(model), facts.latency.get(model)
    subject = _Subject(
        artifact=artifact,
        symptom=symptom or _symptom(probe.models[0]),
        label="the whole artifact",
        actual=(concurrency.words if concurrency is not None else ending_words(probe),),
        mitigations=_with_options(mitigations),
        concurrency=concurrency,
        precision=precision_of(model, facts),
        remarks=(why,) if why else (),
        steady=measured.shown if measured is not None else None,
        probe=probe,
        golden=baseline.golden if baseline is not None else None,
        baseline=baseline.results if baseline is not None else (),
    )
    return _made(subject, facts, effects, index)


def with_reproducer(
    bisection: Bisection, facts: Timed, effects: Effects, *, symptom: Symptom | None = None
) -> Bisection:
    """Return an answer with a reproducer of the whole artifact where no smaller one could be made."""
    if any(made.folder for made in bisection.reproducers):
        return bisection
    effects.progress.stage("reproducers", 1)
    why = "; ".join(made.note for made in bisection.reproducers if made.note)
    index = len(bisection.reproducers)
    whole = reproduce_whole(
        bisection.model, facts, effects, index=index, symptom=symptom, mitigations=bisection.mitigations, why=why
    )
    return replace(bisection, reproducers=(*bisection.reproducers, whole))


def clean_runs(culprit: Culprit) -> int:
    """Return how many clean runs say that a failure is gone; one that showed every time is asked once."""
    return 1 if culprit.fails >= culprit.runs else repeats_needed(fails=culprit.fails, judged=culprit.runs)


def label_of(nodes: Sequence[TracedNode]) -> str:
    """Return nodes in a few words: ``aten::cos``, or ``7 nodes (aten::cos, aten::sin)``."""
    names = list(dict.fromkeys(node.operator for node in nodes)) or ["program"]
    shown = first_few(names, MOST_NAMED)
    return f"{len(nodes)} nodes ({shown})" if len(nodes) > 1 else shown


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """An archive, and what is to be shown by it; ``probe``, ``golden`` and ``baseline`` are known of it already."""

    artifact: Artifact
    symptom: Symptom | None
    label: str
    nodes: tuple[TracedNode, ...] = ()
    actual: tuple[str, ...] = ()
    runs: int = 1
    mitigations: tuple[str, ...] = ()
    precision: Precision = None
    remarks: tuple[str, ...] = ()
    probe: ProbeResult | None = None
    golden: Outputs | None = None
    baseline: tuple[ModelResult, ...] = ()
    concurrency: Concurrency | None = None
    steady: RatioEstimate | None = None


def _made(subject: _Subject, facts: WithWorker, effects: Effects, index: int = 0) -> Reproducer:
    artifact, symptom = subject.artifact, subject.symptom
    sides = Sides(facts, effects)
    old = sides.run("old", artifact)
    new = subject.probe
    if new is None and symptom is Symptom.ERROR:
        new = sides.run("new", artifact)
    golden = subject.golden or legible_outputs(old.directory, artifact.model)
    concurrency = subject.concurrency
    failure = concurrency.failure if concurrency is not None else new.models[0].failure if new is not None else None
    tensors = Tensors()
    try:
        requests = requests_of(artifact, golden, facts, tensors)
    except DecodeError as error:
        return Reproducer(operator=subject.label, note=str(error))
    path = Path(artifact.path)
    small = is_small(path)
    note = "" if small else f"{artifact.size_bytes >> 20} MiB, its content's sha256 begins with {artifact.digest[:16]}"
    results = (*old.models, *subject.baseline)
    slowest_s = max(map(slowest_ns, results), default=0) * 1e-9
    load_s = max((result.load_ns or 0 for result in results), default=0) * 1e-9
    limits = worker_limits(facts.plan.settings.limits, "run")
    case: dict[str, Any] = {
        "symptom": looked_for(symptom, failure),
        "tolerances": shares(subject.precision),
        "artifact": {"file": ARCHIVE if small else None, "note": note},
        "memory_bytes": limits.memory_bytes if symptom is Symptom.MEMORY else None,
        "reset": artifact.reset,
        "seed": artifact.seed,
        "requests": requests,
        **({"threads": concurrency.threads, "shared": concurrency.shared} if concurrency is not None else {}),
    }
    draft = Draft(
        kind="program",
        label=subject.label,
        case=case,
        tensors=tensors,
        archive=path if small else None,
        outside=None if small else path,
        wait_s=max(
            LEAST_WAIT_S, WAIT_FACTOR * max(slowest_s, load_s) * (concurrency.threads if concurrency is not None else 1)
        ),
        runs=max(subject.runs, concurrency.runs) if concurrency is not None else subject.runs,
        concurrency=concurrency,
        steady=subject.steady,
        issue=_issue(subject, facts, slowest_s, failure),
        silent={"old": not_made(old), "new": not_made(new)},
    )
    return finished(draft, facts, effects, index=index)


def _issue(subject: _Subject, facts: Provisioned, slowest_s: float, failure: Failure | None) -> Issue:
    before, after = facts.fingerprints["old"], facts.fingerprints["new"]
    loads = failure is not None and failure.phase == "load"
    does = "does not load" if loads else DOES[subject.symptom] if subject.symptom else "does something else"
    what = f"A TorchScript program of {label_of(subject.nodes)}" if subject.nodes else "A TorchScript program"
    fine = f"every call returns, the slowest took {1e3 * slowest_s:.3g} ms" if slowest_s else "it loads"
    actual = subject.actual or ((f"raises {failure.type}: {failure.message}",) if failure is not None else (does,))
    return Issue(
        what=what,
        does=does,
        expected=f"As in torch {before.torch}: {fine}",
        actual=actual,
        nodes=subject.nodes,
        code=archive_code(subject.artifact.path),
        mitigations=subject.mitigations,
        old=before,
        new=after,
        remarks=subject.remarks,
    )


def _symptom(result: ModelResult) -> Symptom | None:
    return Symptom.ERROR if result.outcome is Outcome.LOAD_ERROR else symptom_of(result)


def _with_options(mitigations: Sequence[Mitigation]) -> tuple[str, ...]:
    """Return what mitigates, each with the options that show it, where there are options for all of it."""
    lines = []
    for item in mitigations:
        if item.mitigates and item.minimal:
            settings = [MITIGATIONS[name] for name in item.settings if name in MITIGATIONS]
            whole = len(settings) == len(item.settings) and all(map(_has_options, settings))
            options = [option for setting in settings if whole for option in _options(setting)]
            lines.append(f"{item.name} (`python reproduce.py {' '.join(options)}`)" if options else item.name)
    return tuple(lines)


def _has_options(setting: Setting) -> bool:
    """Whether options make all of a setting: a part of a mitigation would show none."""
    pools = setting.intra_op_threads, setting.inter_op_threads
    return pools == (None, None) and not setting.numerics and not setting.order


def _options(setting: Setting) -> Iterator[str]:
    for name, value in setting.switches.items():
        yield f"--switch {name}={str(value).lower()}"
    for name, text in setting.env.items():
        yield f"--env {name}={text}"


def part_artifact(culprit: Culprit, model: str, facts: Exported, effects: Effects) -> Artifact:
    path = effects.run_dir.path / culprit.artifact
    inputs = effects.run_dir.path / culprit.inputs if culprit.inputs not in ("", ".") else path.parent / "inputs"
    entries = read_inputs(inputs).entries
    return Artifact(
        **archive_fields(path),
        model=model,
        operators=(),
        inputs_dir=str(inputs),
        inputs_digest=inputs_digest(inputs),
        input_sets=tuple(InputSet(name=name, method=method) for name, method, _ in entries),
        seed=facts.artifact(model).seed,
    )


def requests_of(artifact: Artifact, golden: Outputs, facts: Provisioned, tensors: Tensors) -> list[dict[str, Any]]:
    """Return the calls of the schedule with what the old release answered; empty where it is only loaded."""
    schedule = facts.requests.model_run(artifact).schedule
    if not schedule:
        return []
    recorded = read_inputs(Path(artifact.inputs_dir))
    entries = {name: (method, tree) for name, method, tree in recorded.entries}
    requests = []
    for name, calls in schedule:
        method, tree = entries[name]
        known: list[Any] = []  # up to the first that is missing: they are told apart by their place
        while len(known) < calls and (name, len(known)) in golden.calls:
            known.append(golden.calls[name, len(known)])
        requests.append(
            {
                "set": name,
                "method": method,
                "arguments": tensors.taken(tree, recorded.buffer),
                "calls": calls,
                "expected": [tensors.taken(answer, golden.buffer) for answer in known],
                "after": _after(golden, name, len(known), tensors),
            }
        )
    return requests


def _after(golden: Outputs, name: str, calls: int, tensors: Tensors) -> list[dict[str, Any]]:
    """Return by position what each call made of arguments that it changed; None: within it, which is not compared."""
    by_call: list[dict[str, Any]] = []
    for call in range(calls if golden.effects is not None else 0):
        changed = golden.effects.get((name, call), NOTHING).changed if golden.effects is not None else {}
        left: dict[str, Any] = {}
        for path, tree in changed.items():
            where = ARGUMENT.match(path)
            if where is not None:
                left[where[1]] = None if where[2] else tensors.taken(tree, golden.buffer)
        by_call.append(left)
    return by_call


def with_reproducer_beside(
    bisection: Bisection, symptom: Symptom, facts: Timed, effects: Effects, *, scenario: Scenario, needs: Attribution
) -> Bisection:
    """Return an answer with a program that shows it in both releases as it was found, else with a note why not."""
    why = no_way(bisection.model, scenario, needs)
    if why:
        return replace(bisection, notes=(*bisection.notes, f"{NO_REPRODUCER}: {why}"))
    concurrency = concurrency_of(bisection.model, scenario, needs, facts)
    effects.progress.stage("reproducers", 1)
    culprits = bisection.reduction.culprits if bisection.reduction is not None else ()
    if culprits:
        made = reproduce_program(
            culprits[0],
            symptom,
            facts,
            effects,
            index=0,
            model=bisection.model,
            mitigations=bisection.mitigations,
            concurrency=concurrency,
        )
    else:
        made = reproduce_whole(
            bisection.model, facts, effects, symptom=symptom, mitigations=bisection.mitigations, concurrency=concurrency
        )
    if made.folder:
        return replace(bisection, reproducers=(made,))
    many = f"{concurrency.threads} threads" if concurrency.threads > 1 else "one thread"
    return replace(
        bisection, notes=(*bisection.notes, f"{NO_REPRODUCER}: a Python program with {many} did not show it")
    )


def no_way(model: str, scenario: Scenario, needs: Attribution) -> str:
    """Return why no program of one model in one process can be made; empty where one can be tried."""
    if scenario.processes or scenario.graphs:
        return f"{scenario.words}: the program does not do that"
    beside = [name for name in needs.minimal_models if name != model]
    if beside:
        return f"it shows beside {', '.join(beside)} only, and the program has one model"
    if scenario.native_only and scenario.pools is None:
        return "only C++ can make calls in the inter-op pool"
    return ""


def concurrency_of(model: str, scenario: Scenario, needs: Attribution, facts: Started) -> Concurrency:
    """Return as what the program has to bring the model up."""
    result = facts.initialized[model, scenario.name].new.result
    threads = max(1, needs.minimal_threads)
    runs = repeats_needed(fails=needs.runs.fails, judged=needs.runs.judged) if needs.runs.fails else 1
    failed = result.outcome is not Outcome.COMPLETED
    how = f"{scenario.words} in {threads} threads" if threads > 1 else f"{scenario.words} in one thread"
    return Concurrency(
        threads=threads,
        shared=scenario.name == "shared",
        pools=scenario.pools,
        words=f"{way_of(result)}, {how}" if failed else how,
        failure=result.failure if failed else None,
        runs=max(runs, RACY_RUNS) if threads > 1 else runs,
    )
