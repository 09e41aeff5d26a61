"""Answers for a model that the new release does not load: from its own code and what both releases register."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registries_of
from harness.core.diagnosis import (
    BisectAnswer,
    Bisection,
    Culprit,
    Edit,
    RefusedNode,
    RewriteReport,
    Rewritten,
    RuleWords,
    TracedNode,
)
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.prediction import StaticFinding, Weight
from harness.core.probe import ExtractOrder, Failure, ModelResult, ModelRun, RewriteOrder
from harness.core.text import error_line, error_words
from harness.probing.alone import patient
from harness.probing.facts import Answered, Attributed, Effects, Probed, profile_of
from harness.search.reduce.extract import extract
from harness.search.reproduce.program import reproduce_load
from harness.search.rewrite.attempt import ask, verdict_on, why_not
from harness.search.rewrite.nodes import described, verified
from harness.search.rewrite.order import edits_of_refused

REACHES = {
    "straight": "on the way from a method",
    "branch": "in a branch",
    "uncalled": "in code that no method calls",
}
# Parts that are tried; each costs three processes.
MOST_PARTS = 4
FOLD = RuleWords(what="every call inlined, and what is decided beforehand or called by nobody left out")
OUT_OF_REACH = "what is refused is no operator of its program: a class or a type cannot be rewritten"


def refused(bisection: Bisection, facts: Attributed, effects: Effects, *, reproduce: bool, rewrites: bool) -> Bisection:
    model = bisection.model
    effects.progress.stage("which operators does the release refuse")
    path = facts.artifact(model).path
    stops, unread = refusals(path, effects)
    operators = refused_operators(stops)
    if stops:
        bisection = replace(bisection, answer=BisectAnswer.LOADING, refusals=tuple(_refusal(item) for item in stops))
    else:
        why = unread or "its code names nothing that is refused"
        bisection = replace(bisection, notes=(f"{Path(path).name}: {why}",))
    smallest = smallest_refusing(model, operators, facts, effects)
    if isinstance(smallest, str):
        bisection = replace(bisection, notes=(*bisection.notes, f"no smaller archive that is refused: {smallest}"))
    else:
        bisection = replace(bisection, smallest=_shown(smallest, effects))
    mended = pruned(model, operators, facts, effects) if rewrites and stops else None
    bisection = replace(bisection, rewrites=() if mended is None else (mended,))
    if not reproduce or bisection.smallest is None:
        return bisection
    effects.progress.stage("reproducers", 1)
    return replace(bisection, reproducers=(reproduce_load(bisection.smallest, facts, effects, model=model),))


def _shown(culprit: Culprit, effects: Effects) -> Culprit:
    artifact, inputs = (effects.shown(Path(path)) for path in (culprit.artifact, culprit.inputs))
    return replace(culprit, artifact=artifact, inputs=inputs)


def _refusal(item: StaticFinding) -> str:
    where = f" at {item.place.member}:{item.place.line} in {item.place.function}" if item.place is not None else ""
    reach = f" ({REACHES[item.reach.value]})" if item.reach is not None else ""
    done = f"; {item.what_to_do}" if item.what_to_do else ""
    return f"{item.subject}{where}{reach}: {item.text}{done}"


def smallest_refusing(model: str, operators: Sequence[str], facts: Probed, effects: Effects) -> Culprit | str:
    """Return one refused node as an archive that loads in the old release, refused alike in the new; or why not."""
    artifact, failure = facts.artifact(model), facts.alone[model].models[0].failure
    if not operators or failure is None:
        return "what is refused is no operator, so no part of the program has it by itself"
    effects.progress.stage("the smallest archive that is refused")
    report, _, _ = ask(artifact, RewriteOrder(operators=tuple(operators)), facts, effects)
    sets = {item.method: item.name for item in reversed(artifact.input_sets)}
    parts = [node for node in report.found if node.method in sets][:MOST_PARTS]
    why = f"no method that a request calls has {' or '.join(operators)} once it is loaded"
    for node in parts:
        order = ExtractOrder(
            input_set=sets[node.method], beside=None, place=node.address[:-1], keep=(node.address[-1],)
        )
        part = extract(model, order, facts, effects)
        if isinstance(part, str):
            why = f"no archive of {node.operator} could be made: {part}"
            continue
        effects.progress.step(node.operator)
        before, after = (_loaded(model, part, side, facts, effects) for side in ("old", "new"))
        if before.outcome is Outcome.COMPLETED and after.failure is not None and alike(after.failure, failure):
            return Culprit(
                place=order.place,
                keep=order.keep,
                nodes=(traced(node),),
                artifact=part.path,
                inputs=part.inputs_dir,
                old="it loads",
                new=error_words(after.failure),
            )
        why = _why_not_by_itself(node.operator, before, after, effects)
    return why


def _why_not_by_itself(operator: str, before: ModelResult, after: ModelResult, effects: Effects) -> str:
    old, new = (effects.environments[side].name for side in ("old", "new"))
    if before.failure is not None:
        return f"{operator} by itself does not load in {old} either: {error_line(before.failure)}"
    if after.failure is None:
        return (
            f"{operator} by itself, as {old} saves it, is not refused in {new}: it is how the program is written there"
        )
    return f"{operator} by itself is refused for another reason: {error_line(after.failure)}"


def pruned(model: str, operators: Sequence[str], facts: Attributed, effects: Effects) -> Rewritten | None:
    """Return the model without what the new release refuses, as far as that is possible; None if it has not a baseline.

    What is decided beforehand goes first; then an equivalent of what is refused, where there is a rule; last the branch
    that holds it raises an error in its place, if no request takes it.
    """
    artifact = facts.artifact(model)
    if "old" not in effects.environments or not artifact.input_sets:
        return None
    if not operators:
        return Rewritten(rule="", what="nothing can be pruned", note=OUT_OF_REACH)
    effects.progress.stage("the same without what is refused")
    folding = Rewritten(rule="prune", what=FOLD.what)
    report, folded, problem = ask(artifact, RewriteOrder(operators=tuple(operators), fold=True), facts, effects)
    if folded is None:
        return replace(folding, note=problem)
    rewritten = verified(model, folded, folding, facts, effects, repeats=1, method=artifact.input_sets[0].method)
    effects.progress.step(f"pruned: {rewritten.note or 'it loads'}")
    for cut_first in (False, True):
        if rewritten.fixes or not report.found:
            break
        rewritten = edited(model, folded, report.found, facts, effects, cut_first=cut_first)
        effects.progress.step(f"{rewritten.rule}: {rewritten.note or 'it loads'}")
        if rewritten.fixes and not cut_first:
            rewritten = replace(
                rewritten,
                needs="; ".join(filter(None, [rewritten.needs, unseen(model, folded, report, facts, effects)])),
            )
    return rewritten


def unseen(model: str, folded: Artifact, report: RewriteReport, facts: Attributed, effects: Effects) -> str:
    """Return of which refused nodes no request shows the values: cutting their branches changes nothing."""
    called = {item.method for item in folded.input_sets}
    names = [node.operator for node in report.found if node.method not in called]
    inside = [node for node in report.found if node.branch is not None and node.method in called]
    for method in dict.fromkeys(node.method for node in inside):
        mine = [node for node in inside if node.method == method]
        order = RewriteOrder(method=method, edits=edits_of_refused(mine, (), cut_first=True))
        _, cut, _ = ask(folded, order, facts, effects)
        if cut is not None and not why_not(verdict_on(model, cut, "old", facts, effects)[0]):
            names += [node.operator for node in mine]
    if not names:
        return ""
    return f"no request reaches {', '.join(dict.fromkeys(names))}: that the values are the same there was not seen"


def edited(
    model: str, folded: Artifact, nodes: Sequence[RefusedNode], facts: Attributed, effects: Effects, *, cut_first: bool
) -> Rewritten:
    artifact, edits, words = folded, list[Edit](), dict[str, RuleWords]()
    for method in dict.fromkeys(node.method for node in nodes):
        mine = [node for node in nodes if node.method == method]
        order = RewriteOrder(method=method, addresses=tuple(node.address for node in mine))
        report, _, problem = ask(artifact, order, facts, effects)
        chosen = edits_of_refused(mine, report.fits, cut_first=cut_first)
        words.update(report.rules)
        left = [node.operator for node in mine if not _is_done(node, chosen)]
        if problem or left:
            why = problem or f"no rule rewrites {', '.join(dict.fromkeys(left))}, and none of it is in a branch"
            return Rewritten(rule="prune", what=FOLD.what, nodes=tuple(map(traced, mine)), note=why)
        _, patched, problem = ask(artifact, RewriteOrder(method=method, edits=chosen), facts, effects)
        if patched is None:
            return replace(described(chosen, words), nodes=tuple(map(traced, mine)), note=problem)
        artifact = patched
        edits += chosen
    rewritten = described(edits, words)
    rewritten = replace(rewritten, what=f"{rewritten.what}; {FOLD.what}", nodes=tuple(map(traced, nodes)))
    return verified(model, artifact, rewritten, facts, effects, repeats=1, method=artifact.input_sets[0].method)


def _is_done(node: RefusedNode, edits: Sequence[Edit]) -> bool:
    way = node.branch_address
    return any(address == node.address or (way is not None and address[: len(way)] == way) for _, address in edits)


def refused_operators(stops: Sequence[StaticFinding]) -> tuple[str, ...]:
    """Return the operators among what the new release refuses, without overloads."""
    names = (item.subject.partition(".")[0] for item in stops)
    return tuple(dict.fromkeys(name for name in names if "::" in name))


def refusals(path: str, effects: Effects) -> tuple[list[StaticFinding], str]:
    inspected = inspect_file(path, registries_of(effects.environments, effects.environment_root))
    verdict = inspected.verdicts.get("new")
    stops = [item for item in verdict.findings if item.weight is Weight.STOPS] if verdict is not None else []
    return stops, inspected.failure.text if inspected.failure is not None else ""


def _loaded(model: str, part: Artifact, side: str, facts: Answered, effects: Effects) -> ModelResult:
    request = facts.requests.run(side, [part], patient(model, facts), profile=profile_of(side, facts.plan))
    request = replace(request, runs=(ModelRun(artifact=part, schedule=()),))
    return effects.runner(request).models[0]


def alike(failure: Failure, other: Failure) -> bool:
    """Whether two errors are the same but for the code that they quote."""
    return failure.type == other.type and error_line(failure) == error_line(other)


def traced(node: RefusedNode) -> TracedNode:
    source, _, _ = node.source.partition("\n")
    return TracedNode(
        place=node.address,
        address=node.address,
        kind=node.operator.partition(".")[0],
        schema=node.schema,
        source=source,
    )
