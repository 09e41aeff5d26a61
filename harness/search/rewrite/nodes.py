"""Writes guilty nodes in other operators, and asks both releases whether the patched artifact answers as the golden."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.artifacts.adopted import keep_rewritten
from harness.checks.hang.story import failure_finding
from harness.core.diagnosis import Edit, Rewritten, RuleWords, TracedNode
from harness.core.measurement import LatencyMeasurement
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import RewriteOrder, Script
from harness.core.verdict import Provenance
from harness.machine import clock
from harness.probing.alone import patient
from harness.probing.facts import Attributed, Compared, Effects, new_profile
from harness.search.mitigation.price import SCREENING, is_slow, timed, why_ill, why_still_slow
from harness.search.rewrite.attempt import ask, verdict_on, why_not
from harness.search.rewrite.order import attempts
from harness.verdict.bisection import failing_call
from harness.verdict.mitigation import fix_of_rewrite

FOLDER = "rewrites"
# No further rewrite is tried after that; one that hangs costs its deadline.
TIME_S = 30.0
# A rewrite that costs less is taken; for one that costs more another way is tried.
CHEAP = 1.2
# Each rule is tried on each node; fences are offered for all that stand beside these.
MOST_NODES = 200
# Calls in a row of what is not timed: as many as the old release makes in five seconds, between these two.
LEAST_CALLS, MOST_CALLS, MANY_CALLS_S = 8, 60, 5.0


def rewrite(
    model: str,
    groups: Sequence[Sequence[TracedNode]],
    facts: Attributed,
    effects: Effects,
    *,
    repeats: int,
) -> tuple[Rewritten, ...]:
    """Return the rewrites of the guilty nodes that were tried: those that fix first, the cheapest of them in front.

    ``groups``: nodes that show the symptom without the other groups; a rewrite takes all of them; ``repeats``: how many
    clean runs of the new release it takes.
    """
    groups = [group for group in groups if group]
    if not groups or "old" not in effects.environments:
        return ()
    return _Trial(model=model, groups=groups, facts=facts, effects=effects, repeats=repeats).tried()


@dataclass(kw_only=True)
class _Trial:
    model: str
    groups: Sequence[Sequence[TracedNode]]
    facts: Attributed
    effects: Effects
    repeats: int

    def tried(self) -> tuple[Rewritten, ...]:
        nodes = {node.address: node for group in self.groups for node in group}
        artifact, method = self.facts.artifact(self.model), method_in_question(self.model, self.facts)
        self.effects.progress.stage("rewrites of the guilty nodes")
        report, _, problem = ask(
            artifact, RewriteOrder(method=method, addresses=tuple(nodes)[:MOST_NODES]), self.facts, self.effects
        )
        plans = attempts(self.groups, report.fits)
        if not plans:
            why = problem or "; ".join(dict.fromkeys(f"{item.rule} {item.why}".strip() for item in report.refused))
            names = ", ".join(dict.fromkeys(node.operator for node in nodes.values()))
            return (Rewritten(rule="", what=f"no rule rewrites {names}", nodes=tuple(nodes.values()), note=why),)
        self.effects.progress.stage("rewrites of the guilty nodes", len(plans))
        begin_ns, end_ns = clock.monotonic_ns(), self.effects.end_within(TIME_S)
        rewrites: list[Rewritten] = []
        for number, edits in enumerate(plans):
            if number and clock.monotonic_ns() > end_ns:
                why = f"not tried: {max(0, end_ns - begin_ns) * 1e-9:.0f} s are over"
                rewrites.append(Rewritten(rule="", what="further rewrites", note=why))
                break
            words = described(edits, report.rules)
            order = RewriteOrder(method=method, edits=edits)
            rewrites.append(self.one(order, words))
            self.effects.progress.step(f"{rewrites[-1].rule}: {'fixes' if rewrites[-1].fixes else 'does not fix'}")
            if rewrites[-1].fixes and (rewrites[-1].steady is None or rewrites[-1].steady.ratio <= CHEAP):
                break
        return tuple(sorted(rewrites, key=lambda item: item.rank))

    def one(self, order: RewriteOrder, words: Rewritten) -> Rewritten:
        report, patched, problem = ask(self.facts.artifact(self.model), order, self.facts, self.effects)
        known = {node.address: node for group in self.groups for node in group}
        words = replace(words, nodes=tuple(known.get(node.address, node) for node in report.done))
        if patched is None:
            return replace(words, note=problem)
        return verified(self.model, patched, words, self.facts, self.effects, repeats=self.repeats, method=order.method)


def verified(
    model: str,
    patched: Artifact,
    words: Rewritten,
    facts: Attributed,
    effects: Effects,
    *,
    repeats: int,
    method: str,
) -> Rewritten:
    """Return both releases' word on a patched artifact, kept if it fixes; many calls, timed where that matters."""
    old, _ = verdict_on(model, patched, "old", facts, effects)
    if problem := why_not(old):
        return replace(words, note=f"it is not the same in {effects.environments['old'].name}: {problem}")
    for repeat in range(repeats):
        new, _ = verdict_on(model, patched, "new", facts, effects, repeat=repeat)
        if problem := why_not(new):
            return replace(words, repeats=repeat, note=problem)
    rewritten = replace(words, repeats=repeats)
    slow = next((cell for cell in facts.verdicts[model] if is_slow(cell)), None)
    if slow is not None or facts.plan.is_timed or effects.prices_fixes:
        measured = _timed(model, patched, slug(words.rule), facts, effects, method=method)
        if not measured.problem:
            rewritten = replace(rewritten, steady=measured.steady, call_s=measured.call_s)
        if problem := why_still_slow(slow, measured, facts) if slow is not None else why_ill(measured):
            return replace(rewritten, note=problem)
    elif problem := _under_many_calls(model, patched, facts, effects, method=method):
        return replace(rewritten, note=problem)
    provenance = Provenance(
        origin=model,
        from_digest=facts.artifact(model).digest,
        old=effects.environments["old"].name,
        new=effects.environments["new"].name,
        fix=fix_of_rewrite(rewritten),
    )
    path = keep_rewritten(patched, effects.folder(FOLDER) / f"{slug(words.rule)}-{patched.digest[:8]}", provenance)
    return replace(rewritten, fixes=True, artifact=effects.shown(path))


def _timed(
    model: str, patched: Artifact, name: str, facts: Attributed, effects: Effects, *, method: str
) -> LatencyMeasurement:
    """Return how long a call of ``method`` takes, patched in the new release against as it was in the old one."""
    latency = facts.plan.settings.latency
    return timed(
        {model: (_method_first(facts.artifact(model), method), _method_first(patched, method))},
        facts,
        effects,
        profile=new_profile(facts.plan),
        label=f"time of {name} {patched.digest[:8]}",
        budget=replace(SCREENING, pin=latency.pin, limit=latency.limit),
    )[model]


def _under_many_calls(model: str, patched: Artifact, facts: Attributed, effects: Effects, *, method: str) -> str:
    """Return what goes wrong where the new release calls ``method`` many times in one process; empty: nothing does."""
    durations = [call.duration_ns for result in facts.baselines[model].results for call in result.calls]
    affordable = int(MANY_CALLS_S * 1e9 / max([1, *durations]))
    calls = min(MOST_CALLS, max(LEAST_CALLS, affordable))
    steps = (("load", model), ("calls", model), *[("answer", model, "own", 0)] * calls)
    request = facts.requests.run(
        "new",
        [replace(_method_first(patched, method), schedule=())],
        patient(model, facts),
        profile=new_profile(facts.plan),
        script=Script(threads=(steps,)),
    )
    probe = effects.runner(request)
    (result,) = probe.models
    if result.outcome is not Outcome.COMPLETED:
        name = effects.environments["new"].name
        return failure_finding(result, name, stage="called many times", exit_detail=probe.exit_detail).message
    changed = probe.data.get(f"served_otherwise:{model}")
    return f"answers otherwise after {changed['first']} of {calls} further calls" if changed else ""


def _method_first(artifact: Artifact, method: str) -> Artifact:
    """Return the artifact with the inputs of ``method`` in front: the first ones are called most."""
    return replace(artifact, input_sets=tuple(sorted(artifact.input_sets, key=lambda item: item.method != method)))


def described(edits: Sequence[Edit], rules: Mapping[str, RuleWords]) -> Rewritten:
    names = list(dict.fromkeys(rule for rule, _ in edits))
    known = [rules.get(name, RuleWords(what=name)) for name in names]
    return Rewritten(
        rule=" + ".join(names),
        what="; ".join(words.what for words in known),
        needs="; ".join(words.needs for words in known if words.needs),
    )


def method_in_question(model: str, facts: Compared) -> str:
    """Return the method of the call that shows the symptom; of the first request where no call does."""
    failing = failing_call(facts.alone[model].models[0], facts.comparisons.get((model, "alone")))
    sets = facts.artifact(model).input_sets
    named = [item.method for item in sets if failing is not None and item.name == failing.input_set]
    return next(iter([*named, *(item.method for item in sets)]), "forward")


def slug(rule: str) -> str:
    return rule.replace(" + ", "-and-")
