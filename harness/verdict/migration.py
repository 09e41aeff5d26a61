"""What was tried on an artifact -> exactly one outcome with its reason, and the causes of those not ready. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.checks.migration.compilation import not_compiled
from harness.checks.migration.deprecation import line_of
from harness.checks.migration.dimensions import differing, fixed_dimensions, sizes_of, varies
from harness.checks.migration.facts import COMES_THROUGH, Answers, Tried
from harness.checks.migration.obstacles import obstacle
from harness.checks.migration.readiness import LISTS
from harness.checks.migration.words import difference_words, failure_words, first_difference
from harness.core.migration import (
    Dimension,
    Migrated,
    MigratedArtifact,
    MigratedModel,
    Presence,
    Step,
    counts_of,
)
from harness.core.outcome import UNCLEAR, Outcome, Status
from harness.core.probe import ModelResult, ProbeResult
from harness.core.text import PACKAGES, counted, first_few, prose, slug
from harness.core.verdict import Cause
from harness.environments.pythons import Minor
from harness.probing.lacking import lack
from harness.verdict.served_packages import (
    costs_of,
    failure_when_served,
    price_words,
    serving_steps,
    slower_words,
    unclear_when_served,
)
from harness.worker import wire

ONE_BATCH, BATCH_OF_ONE = "one batch size", "batch of 1"
"""Kinds that are looked for before that of lists alone: a program answers every request, and no other batch."""
BUSY = "busy"
"""The kind of a package of which a busy machine could not tell how it is served."""
LONGEST_REASON = 400
MAKING = (wire.CONVERT, wire.COMPILE)
TITLE_LIMIT = 80
NAMED = 3
JUDGE_FIRST = "judge the upgrade first, then migrate what it patched"
OF_THE_UPGRADE = "as TorchScript does"
"""The kind of what answers otherwise as TorchScript in the new release already."""
OF_COMPAT = ("load_error", "ends_process", "fails_before", OF_THE_UPGRADE)
"""Kinds that ``compat`` says more of: no way out of TorchScript is to blame."""
STOPPED: Mapping[str, tuple[str, str]] = {
    "not_exported": ("there is no artifact: {}", ""),
    "no_requests": (
        "no requests, and nothing can be converted without an example: {}",
        "place requests beside the file, or describe them in a models.toml (docs/guide/own-models.md)",
    ),
    "ends_process": ("as TorchScript it was not loaded once more: {}", JUDGE_FIRST),
    "busy_before": ("the old release could not be asked for its answers: {}", "run it again"),
    "fails_before": ("as TorchScript it fails in the old release already: {}", "see it with compat"),
}
SLOWER_ADVICE = "stay with TorchScript for this one, or try torch._inductor's max_autotune when it is packaged"
OLDEST_ADVICE = "convert in the oldest release that must load it: --new {}"
OTHER_RELEASE_ADVICE = "convert in another release: this one does not load what it writes itself"
HOOKS_ADVICE = "do in forward what the hooks do, or convert what is only ever called by forward without them"
METHOD_ADVICE = "a module whose forward is that method, saved as an archive of its own"
VALUES_ADVICE = "requests with the other values, if there are any; or make it a tensor"
GUARD_ADVICE = "requests that decide otherwise, or torch.where or torch.cond in the module"
SIZE_OF_ONE = "size of 1"
KEEPS_SIZES_OPEN: Minor = (2, 15)
TUPLE_ADVICE = "unpack it, or take tuple(program(...)); a caller in C++ takes the tensors one by one anyway"
RESET_ADVICE = "take the state as an input of forward and return it, in place of the method {}"
# What torch.export raises where a request has a size that the program does not take.
REFUSES_SIZE = re.compile(r"Guard failed|Expected input|to be equal to|to be [<>]=|expected .* but got")
WORST_FIRST = (
    Migrated.NOT_CONVERTIBLE,
    Migrated.DIFFERS,
    Migrated.FIXED,
    Migrated.NOT_LOADABLE,
    Migrated.NOT_PACKAGEABLE,
    Migrated.FAILS_SERVED,
    Migrated.SLOWER,
    Migrated.GUARDED,
    Migrated.UNDECIDED,
)
STANDING = {
    Migrated.READY: COMES_THROUGH,
    Migrated.GUARDED: 4,
    Migrated.FIXED: 2,
    Migrated.DIFFERS: 1,
}
"""How far the two ways to convert bring a model; where only tuples are lists, further than one that is guarded."""
WITH_LISTS = 5


def judge(tried: Tried) -> MigratedModel:
    if tried.parts:
        return _together(tried)
    model = MigratedModel(
        model=tried.model,
        outcome=Migrated.READY,
        example=tried.example,
        steps=(*_steps(tried), *serving_steps(tried)),
        costs=costs_of(tried.timed),
        walked=tried.walked,
    )
    for step in (
        _stopped,
        _not_convertible,
        _differs,
        _fixed,
        _not_loadable,
        _not_packageable,
        _fails_served,
        _slower,
        _one_batch,
        _guarded,
        _lists,
    ):
        judged = step(tried, model)
        if judged is not None:
            return replace(judged, reason=_cut(judged.reason, LONGEST_REASON))
    return model


def _together(tried: Tried) -> MigratedModel:
    """Return what several programs come to: what the worst of them does, told with the part that it answers."""
    models = [judge(part) for part in tried.parts]
    worst = min(models, key=lambda model: (*WORST_FIRST, Migrated.READY).index(model.outcome))
    steps = tuple(step for model in models for step in model.steps)
    if worst.outcome is not Migrated.READY:
        part = tried.parts[models.index(worst)].part
        words = part_words(part.method, part.fixed) if part is not None else ""
        reason = _cut(f"{words}: {worst.reason}", LONGEST_REASON)
        return replace(worst, reason=reason, steps=steps)
    parts = [part.part for part in tried.parts if part.part is not None]
    together = replace(worst, steps=steps, walked=all(model.walked for model in models))
    if any(part.mark("converted").get("has_state") for part in tried.parts):
        methods = first_few(list(dict.fromkeys(part.method for part in parts)), NAMED)
        reason = f"calls change a state, and {methods} would be programs with a state each"
        outcome = Migrated.NOT_CONVERTIBLE
        return replace(
            together, outcome=outcome, kind="state", reason=reason, advice=RESET_ADVICE.format("that sets it")
        )
    by_value = [part for part in parts if part.by_value]
    if by_value:
        arguments = list(dict.fromkeys(path for part in by_value for path, _ in part.fixed))
        reason = f"one program for each value of {first_few(arguments, NAMED)} that requests have; others have none"
        return replace(together, outcome=Migrated.GUARDED, kind="values", reason=reason, advice=VALUES_ADVICE)
    return together


def part_words(method: str, fixed: Sequence[tuple[str, str | Presence]]) -> str:
    """Return ``forward, input[1] = 0, input[2] left out``."""
    named = [f"{path} {item.value if isinstance(item, Presence) else f'= {item}'}" for path, item in fixed]
    return ", ".join([method, *named])


def standing(tried: Tried) -> int:
    """Return how far a model that was converted in one way has come."""
    model = judge(tried)
    return WITH_LISTS if model.kind == LISTS else STANDING.get(model.outcome, 0)


def _stopped(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    kind, why = tried.stopped
    if kind:
        words, advice = STOPPED[kind]
        return replace(model, outcome=Migrated.UNDECIDED, kind=kind, reason=words.format(why), advice=advice)
    probe = tried.conversion
    if probe is not None and probe.outcomes & UNCLEAR:
        return _unclear(model, "the conversion", probe)
    return None


def _unclear(model: MigratedModel, what: str, probe: ProbeResult) -> MigratedModel:
    """Return the model undecided by a probe that says nothing: a busy machine, or a failure of ours."""
    outcome = next(iter(sorted(probe.outcomes & UNCLEAR)))
    failure = probe.models[0].failure or probe.failure
    reason = f"{what} could not be judged: {outcome.value}{f': {failure.first_line}' if failure is not None else ''}"
    return replace(model, outcome=Migrated.UNDECIDED, kind=outcome.value, reason=reason, advice="run it again")


def _not_convertible(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    model = replace(model, outcome=Migrated.NOT_CONVERTIBLE)
    others = [item.method for item in tried.input_sets if item.method != "forward"] if tried.part is None else []
    if any(item.method == wire.WITH_HOOKS_METHOD for item in tried.input_sets):
        reason = "its root has hooks, which run where Python calls it, and forward alone can be converted"
        return replace(model, kind="hooks", reason=reason, advice=HOOKS_ADVICE)
    if others:
        reason = f"requests call {first_few(sorted(set(others)), NAMED)}, and forward alone can be converted"
        return replace(model, kind="several methods", reason=reason, advice=METHOD_ADVICE)
    if tried.reset is not None:
        reason = f"it keeps state, which {tried.reset} takes back before each request; only forward can be converted"
        return replace(model, kind="state", reason=reason, advice=RESET_ADVICE.format(tried.reset))
    probe = tried.conversion
    assert probe is not None, tried.model  # else it was stopped
    result = probe.models[0]
    if result.outcome is Outcome.COMPLETED:
        lost = replace(
            model, outcome=Migrated.UNDECIDED, kind="nothing written", reason="what was converted is not there"
        )
        return None if tried.answers else lost
    node = tried.mark("not_converted")
    if result.phase == wire.LOAD:
        reason = f"as TorchScript it does not load in the new release: {failure_words(result, probe)}"
        return replace(model, kind="load_error", reason=reason, advice=JUDGE_FIRST)
    if result.failure is None:
        kind = result.outcome.value
        return replace(model, kind=kind, reason=f"the conversion ends in a {kind}: {failure_words(result, probe)}")
    error = str(node["reason"]) if node else f"{result.failure.type}: {result.failure.message}"
    source = PACKAGES.sub("", str(node.get("source", "")))
    kind, advice = obstacle(str(node.get("kind", "")), error, source)
    place = f"{node['kind']} at {source or 'an unknown place'}: " if node else f"{result.phase_words}: "
    return replace(
        model,
        kind=kind,
        reason=place + prose(_telling(error)),
        advice=advice,
        source=source,
        code=str(node.get("code", "")),
    )


def _telling(error: str) -> str:
    """Return the lines of an error up to the first empty one: what follows is advice to its developer."""
    return error.strip().split("\n\n")[0]


def _differs(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    first = tried.answers[0]
    if first.load.load_ns is None:
        return None
    fixed = dimensions_of(tried)
    others = [name for name in first.calls if not varies(tried.requests[name], fixed)]
    comparison = first.comparison
    if comparison is not None:  # what a size or value that is held explains is told as that
        comparison = replace(comparison, calls=tuple(call for call in comparison.calls if call.input_set in others))
    finding = first_difference(comparison)
    if finding is not None:
        reason = difference_words(comparison)
        if tried.in_torchscript:
            reason += f"; TorchScript itself answers otherwise in {first.release} than the golden"
            return replace(model, outcome=Migrated.DIFFERS, kind=OF_THE_UPGRADE, reason=reason, advice=JUDGE_FIRST)
        advice = RESET_ADVICE.format("that keeps it") if finding.kind == "input_changed" else ""
        return replace(model, outcome=Migrated.DIFFERS, kind="answers otherwise", reason=reason, advice=advice)
    refused = [result for result in _failing(first) if not _refuses_size(tried, result)]
    if refused:
        words = failure_words(refused[0], first.probe)
        sets = first_few([_set_of(first, result) for result in refused], NAMED)
        return replace(model, outcome=Migrated.DIFFERS, kind="call error", reason=f"{sets}: does not answer: {words}")
    return None


def difference(answers: Answers) -> str:
    """Return in what the answers are others than the golden ones, empty where in nothing that counts."""
    return difference_words(answers.comparison)


def _failing(answers: Answers) -> list[ModelResult]:
    """Return the requests that failed; of those that a machine was too busy for nothing is known."""
    return [result for result in answers.calls.values() if result.failed and result.outcome not in UNCLEAR]


def _set_of(answers: Answers, result: ModelResult) -> str:
    return next(name for name, other in answers.calls.items() if other is result)


def _refuses_size(tried: Tried, result: ModelResult) -> bool:
    """Whether a request was refused for a size or value: it has another one than the program, and torch says so."""
    request = tried.requests[_set_of(tried.answers[0], result)]
    if varies(request, dimensions_of(tried)):
        return True
    message = result.failure.message if result.failure is not None else ""
    return bool(REFUSES_SIZE.search(message)) and bool(differing(tried.requests[tried.example], request))


def dimensions_of(tried: Tried) -> tuple[Dimension, ...]:
    try:
        return fixed_dimensions(sizes_of(tried), tried.example, tried.requests)
    except IndexError:  # a hostile artifact has written it
        return ()


def _fixed(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    first = tried.answers[0]
    refused = [_set_of(first, result) for result in _failing(first)]
    fixed = dimensions_of(tried)
    if not fixed and refused:
        fixed = differing(tried.requests[tried.example], tried.requests[refused[0]])
    if not fixed:
        return None
    kind, advice = dimension_advice(fixed, tried.torch or tried.release)
    return replace(
        model,
        outcome=Migrated.FIXED,
        kind=kind,
        reason=f"{first_few([dimension_words(dimension) for dimension in fixed], NAMED, '; ')}",
        advice=advice,
        dimensions=fixed,
    )


def dimension_words(dimension: Dimension) -> str:
    """Return ``input[0] has size 4 in dimension 0, and requests have 1 and 7 too``."""
    others = first_few(dimension.asked, NAMED)
    if dimension.axis is None:
        return f"{dimension.argument} is the constant {dimension.taken}, and requests have {others} too"
    place = f"is fixed at {dimension.taken} in dimension {dimension.axis}"
    return f"{dimension.argument} {place}, and requests have {others} too"


def dimension_advice(fixed: Sequence[Dimension], release: str) -> tuple[str, str]:
    """Return what is fixed, a stable word, and how to keep it open; ``release``: torch that converts, if known."""
    sizes = [dimension for dimension in fixed if dimension.axis is not None]
    if not sizes:
        return (
            "plain value",
            "make it a tensor: plain values of the example become constants; or one program for each value",
        )
    if all(dimension.taken in ("0", "1") for dimension in sizes):
        return (
            SIZE_OF_ONE,
            "give a request with 2 or more there as well: a size of 1 in the example becomes a constant",
        )
    fixes_them = (0, 0) < line_of(release) < KEEPS_SIZES_OPEN
    newer = "convert in a release that keeps sizes open (2.15.0 does), or " if fixes_them else ""
    dim = f"{{{sizes[0].axis}: torch.export.Dim('batch')}} for {sizes[0].argument}"
    return "size", f"{newer}torch.export.export(module, args, dynamic_shapes=...) with {dim}"


def _not_loadable(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    reasons, undecided = [], None
    for answers in tried.answers:
        if answers.probe.outcomes & UNCLEAR:
            undecided = undecided or _unclear(model, f"the program in {answers.release}", answers.probe)
        elif answers.load.load_ns is None:
            reasons.append(
                (answers.release, f"does not load in {answers.release}: {failure_words(answers.load, answers.probe)}")
            )
        elif answers is not tried.answers[0] and (otherwise := difference(answers) or _call_failure(answers)):
            reasons.append((answers.release, f"loads in {answers.release} and answers otherwise: {otherwise}"))
    if not reasons:
        return undecided
    named = [release for release, _ in reasons]
    return replace(
        model,
        outcome=Migrated.NOT_LOADABLE,
        kind=f"in {', '.join(named)}",
        reason="; ".join(reason for _, reason in reasons),
        advice=OTHER_RELEASE_ADVICE if tried.release in named else OLDEST_ADVICE.format(min(named, key=line_of)),
    )


def _call_failure(answers: Answers) -> str:
    failing = _failing(answers)
    return f"{_set_of(answers, failing[0])}: {failure_words(failing[0], answers.probe)}" if failing else ""


def _not_packageable(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    probe = tried.package
    if probe is None:
        return None
    model = replace(model, outcome=Migrated.NOT_PACKAGEABLE, kind="not packageable")
    if probe.outcomes & UNCLEAR:
        return _unclear(model, "the package", probe)
    result = probe.models[0]
    if result.outcome is not Outcome.COMPLETED:
        error = f"{failure.type}: {failure.message}" if (failure := result.failure) is not None else ""
        kind, reason, advice = not_compiled(error)
        return replace(model, kind=kind or model.kind, reason=reason or failure_words(result, probe), advice=advice)
    if tried.packaged is None:
        return replace(model, reason="nothing was written")
    wrong = _not_answering(tried.packaged, model, "the package")
    if wrong is not None or tried.in_cpp is None:
        return wrong
    in_cpp = replace(model, kind="in C++")
    return _not_answering(tried.in_cpp, in_cpp, "in C++ the package")


def _not_answering(answers: Answers, model: MigratedModel, what: str) -> MigratedModel | None:
    """Return the model with why a package does not load, or what it answers otherwise; undecided where nobody knows."""
    unclear = bool(answers.probe.outcomes & UNCLEAR)
    if answers.load.load_ns is None and not unclear:
        return _not_loaded(answers, model, f"{what} does not load")
    if otherwise := difference(answers) or _call_failure(answers):
        return replace(model, reason=f"{what} answers otherwise: {otherwise}")
    return _unclear(model, what, answers.probe) if unclear else None


def _not_loaded(answers: Answers, model: MigratedModel, what: str) -> MigratedModel:
    words = failure_words(answers.load, answers.probe)
    lacking = lack(words)
    if lacking is not None:
        model = replace(model, kind=lacking.kind, advice=lacking.advice)
    return replace(model, reason=f"{what}: {words}")


def _fails_served(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    failure = failure_when_served(tried)
    if failure is not None:
        return replace(model, outcome=Migrated.FAILS_SERVED, **failure._asdict())
    unclear = unclear_when_served(tried)
    if not unclear:
        return None
    return replace(model, outcome=Migrated.UNDECIDED, kind=BUSY, reason=unclear, advice="run it again")


def _slower(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    words = slower_words(tried)
    return replace(model, outcome=Migrated.SLOWER, kind="slower", reason=words, advice=SLOWER_ADVICE) if words else None


def _one_batch(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    """Tell sizes that the program takes alone and no request varies: what requests show weighs more."""
    probe = tried.other_batch
    if probe is None:
        return None
    if probe.outcomes & UNCLEAR:
        return _unclear(model, "another batch", probe)
    if probe.models[0].outcome is not Outcome.COMPLETED:  # it takes no other one as TorchScript either
        return None
    words = [f"{item.argument} is fixed at {item.taken} in dimension {item.axis}" for item in tried.batch]
    kind, advice = dimension_advice(tried.batch, tried.torch or tried.release)
    return replace(
        model,
        outcome=Migrated.FIXED,
        kind=BATCH_OF_ONE if kind == SIZE_OF_ONE else ONE_BATCH,
        reason=f"{first_few(words, NAMED, '; ')}, as in every request; TorchScript answers others too",
        advice=advice,
        dimensions=tried.batch,
    )


def _guarded(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    """Tell where the program takes what data decides as all requests take it; of another request it raises."""
    decided = [item for item in tried.mark("converted").get("decided", ()) if item["value"] is not None]
    if not decided:
        return None
    nodes = [f"{item['kind']} at {PACKAGES.sub('', item['source']) or 'an unknown place'}" for item in decided]
    reason = f"{first_few(list(dict.fromkeys(nodes)), NAMED)}: taken as in every request; of another the program raises"
    source = PACKAGES.sub("", decided[0]["source"])
    return replace(model, outcome=Migrated.GUARDED, kind="guarded", reason=reason, advice=GUARD_ADVICE, source=source)


def _lists(tried: Tried, model: MigratedModel) -> MigratedModel | None:
    """Tell last that tuples became lists: whatever else there is weighs more, and most callers unpack them anyway."""
    if not tried.answers[0].lists:
        return None
    reason = "answers with a list where TorchScript answers with a tuple; what is in it is the same"
    return replace(model, outcome=Migrated.DIFFERS, kind=LISTS, reason=reason, advice=TUPLE_ADVICE)


def _steps(tried: Tried) -> Iterator[Step]:
    if tried.conversion is not None:
        yield _making(tried, "convert", tried.conversion, mark="converted", evidence=tried.evidence)
    for answers in tried.answers:
        yield _running("run", answers)
    if tried.package is not None:
        yield _making(tried, "package", tried.package, mark="packaged", evidence=tried.package_evidence)
    if tried.packaged is not None:
        yield _running("run package", tried.packaged)
    if tried.in_cpp is not None:
        yield _running("run package in C++", tried.in_cpp)


def _making(tried: Tried, name: str, probe: ProbeResult, *, mark: str, evidence: str) -> Step:
    result = probe.models[0]
    spent = [span.end_ns - span.begin_ns for span in probe.spans if span.phase in MAKING and span.finished]
    size = probe.data.get(mark, {}).get("bytes")
    return Step(
        name=name,
        release=tried.release,
        outcome=result.outcome,
        seconds=spent[0] * 1e-9 if spent else None,
        size_bytes=size if isinstance(size, int) else None,
        reason="" if result.outcome is Outcome.COMPLETED else _cut(failure_words(result, probe), LONGEST_REASON),
        evidence=evidence,
    )


def _running(name: str, answers: Answers) -> Step:
    failing = [answers.load, *answers.calls.values()]
    worst = next((result for result in failing if result.failed), None)
    outcome = worst.outcome if worst is not None else answers.probe.outcome
    reason = difference(answers) if worst is None else failure_words(worst, answers.probe)
    return Step(
        name=name,
        release=answers.release,
        outcome=outcome,
        seconds=answers.load.load_ns * 1e-9 if answers.load.load_ns is not None else None,
        reason=_cut(reason, LONGEST_REASON),
        evidence=answers.evidence,
    )


def causes_of(models: Sequence[MigratedModel]) -> tuple[Cause, ...]:
    """Return the models that are not ready, grouped by what stands in their way.

    What stops most of them comes first; of as many, the outcome that is looked for first; what is undecided comes last.
    """
    groups: dict[tuple[Migrated, str], list[MigratedModel]] = {}
    for model in models:
        if model.outcome is not Migrated.READY:
            groups.setdefault((model.outcome, model.kind), []).append(model)

    def rank(group: tuple[Migrated, str]) -> tuple[bool, int, int, str]:
        outcome, kind = group
        return outcome is Migrated.UNDECIDED, -len(groups[group]), WORST_FIRST.index(outcome), kind

    return tuple(_cause(*group, groups[group]) for group in sorted(groups, key=rank))


def _cause(outcome: Migrated, kind: str, models: Sequence[MigratedModel]) -> Cause:
    models = sorted(models, key=lambda model: not proof_of(model))  # who fails stands before whom it holds back
    first = models[0]
    title = outcome.value if kind == outcome.value else f"{outcome.value}: {kind}"
    evidence = [("what", first.reason)]
    if first.source:
        evidence.append(("source", f"{first.source}{f': {prose(first.code)}' if first.code else ''}"))
    evidence += _price_and_part(models)
    if proof := proof_of(first):
        evidence.append(("evidence", proof))
    return Cause(
        id=slug(title),
        kind=outcome.value,
        status=Status.INCONCLUSIVE if outcome is Migrated.UNDECIDED else Status.FAIL,
        title=_cut(title, TITLE_LIMIT),
        cells=tuple(model.model for model in models),
        models=tuple(model.model for model in models),
        evidence=tuple(evidence),
        fix=first.advice,
    )


def proof_of(model: MigratedModel) -> str:
    """Return the folder of the first probe that did not come through; empty where all did."""
    return next((step.evidence for step in model.steps if step.reason and step.evidence), "")


def _price_and_part(models: Sequence[MigratedModel]) -> Iterator[tuple[str, str]]:
    """Yield what is known beyond the outcome: the price of packages that a server fixes, and the smallest part."""
    if price := price_words(models):
        yield "price", price
    part = next((model.part for model in models if model.part is not None), None)
    if part is not None and part.nodes:
        source = PACKAGES.sub("", part.source)
        yield "smallest", f"{first_few(part.nodes, NAMED)}{f' at {source}' if source else ''}: {part.archive}"
    elif part is not None:
        yield "smallest", f"not found: {part.note}"
    if part is not None and part.reproducer:
        yield "script", f"{part.reproducer}/reproduce.py"


def counts_words(models: Sequence[MigratedArtifact]) -> str:
    """Return ``65 models: 40 ready, 12 not convertible``."""
    counts = counts_of(models)
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in (Migrated.READY, *WORST_FIRST) if outcome in counts]
    return f"{counted(len(models), 'model')}{': ' if parts else ''}{', '.join(parts)}"


def _cut(text: str, limit: int) -> str:
    text = prose(text)
    return text if len(text) <= limit else f"{text[: limit - 3].rstrip()}..."
