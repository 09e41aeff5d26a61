"""Finds the node at which two releases part: one trace of the old release, up to three of the new one.

First the call is made node by node in both releases: if it does not show the symptom, the executor makes it (fusion,
profiling), and no node does. Then the new release runs every node with the inputs that the old one had there: what
differs now is a node's own doing and not inherited. Last the new release runs the call with the culprits' outputs taken
from the old one: if it agrees now, they are all of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.artifacts.tensors.outputs import Outputs, same_answers
from harness.artifacts.tensors.recorded import read_outputs
from harness.checks.outputs.compare import precision_of
from harness.checks.outputs.findings import differs
from harness.checks.outputs.outputs import compare_outputs
from harness.checks.outputs.tolerances import Precision
from harness.core.diagnosis import Divergence, NodeFault, Place, TracedNode
from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest, ProbeResult, TraceOrder
from harness.probing.facts import Answered, Effects, Probed, profile_of
from harness.probing.requests import deadline_after
from harness.search.bisect.traces import Trace, key, read_trace
from harness.verdict.bisection import FRAMES, CallInQuestion, faults, gaps
from harness.worker import wire

# That it hangs has been proven already; a node that hangs only has to be told from one that is slow.
NODE_FLOOR_S = 10.0
# A loop may take other turns in the new release: so many times as many nodes as in the old one, and some hundred more.
MORE_NODES = 4
MORE_INDEX_BYTES = 1 << 18
ENDINGS = {
    Outcome.HANG: "hangs",
    Outcome.CRASH: "crashes the process",
    Outcome.OUT_OF_MEMORY: "takes more memory than there is",
}


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One trace: the probe, what it recorded, and what the call answered."""

    probe: ProbeResult
    trace: Trace
    answer: Outputs

    @property
    def completed(self) -> bool:
        return self.probe.models[0].outcome is Outcome.COMPLETED


@dataclass(frozen=True, kw_only=True)
class Diverged:
    """A divergence, and the trace of the old release that a reproducer is made of."""

    divergence: Divergence
    old: Trace


def diverge(model: str, failing: CallInQuestion, facts: Probed, effects: Effects) -> Diverged:
    return _Search(model, failing, facts, effects).search()


def trace_request(model: str, side: str, order: TraceOrder, facts: Answered) -> ProbeRequest:
    settings = facts.plan.settings
    deadlines = replace(settings.deadlines, floor_s=min(NODE_FLOOR_S, settings.deadlines.floor_s))
    deadline = deadline_after(deadlines, facts.baselines[model].results)
    return facts.requests.trace(side, facts.artifact(model), order, deadline, profile=profile_of(side, facts.plan))


class _Search:
    def __init__(self, model: str, failing: CallInQuestion, facts: Probed, effects: Effects) -> None:
        self.model, self.facts, self.effects = model, facts, effects
        self.precision = precision_of(model, facts)
        self.order = TraceOrder(input_set=failing.input_set, call=failing.call)
        self.found = Divergence(input_set=failing.input_set, call=failing.call)
        effects.progress.stage(f"{failing.input_set} call {failing.call} node by node", 4)

    def search(self) -> Diverged:
        old = self.traced("old", self.order)
        self.found = replace(self.found, nodes=len(old.trace.nodes), probes=(1, 0))
        if not old.completed:
            return self.diverged(old, self.why_not(old))
        self.check(old)
        index_bytes = min(self.order.index_bytes, MORE_NODES * old.trace.index_bytes + MORE_INDEX_BYTES)
        beside = replace(self.order, beside=old.probe.directory, index_bytes=index_bytes)
        free = self.traced("new", beside)
        if not free.trace.nodes:
            return self.diverged(old, self.why_not(free))
        if not self.shows(old, free):
            return self.diverged(old, probes=(1, 1))
        forced = self.traced("new", replace(beside, mode="forced"))
        culprits = self.culprits(old, free, forced)
        self.found = replace(
            self.found,
            shows=True,
            culprits=culprits,
            inherited=max(0, len(_faults(old, free)) - len(culprits)),
            probes=(1, 2),
        )
        notes = (*given_up(old, free), *gaps(old.trace.nodes, forced.trace.nodes, whole=forced.completed))
        suspects = culprits
        if not culprits:
            notes = (*notes, *self.without_culprit(free, forced))
            suspects = _faults(old, forced, rounding=True)
            self.found = replace(self.found, rounding=suspects)
        if suspects:
            places = tuple(place for fault in suspects for place in fault.places)
            unrun = tuple(place for fault in suspects if "ended" in fault.kinds for place in fault.places)
            patched = self.traced("new", replace(beside, mode="patched", places=places, unrun=unrun))
            agrees = not self.shows(old, patched)
            self.found = replace(self.found, confirmed=agrees, probes=(1, 3))
            if agrees and not culprits and is_whole(suspects, old.trace.nodes.values()):
                self.found = replace(self.found, culprits=suspects, rounding=())
        return self.diverged(old, *notes)

    def culprits(self, old: Traced, free: Traced, forced: Traced) -> tuple[NodeFault, ...]:
        """Return who differs with the old release's inputs; where a node raises, a stride may be what it minds."""
        culprits = _faults(old, forced, precision=self.precision)
        if not culprits and self.precision is not None:
            culprits = _faults(old, forced)  # what the model allows itself at its end may be much within it
        if not culprits and not free.completed:
            culprits = _faults(old, forced, strides=True)
        if not culprits:
            culprits = _faults(
                old, forced, one_operator=True
            )  # what is fine for a whole model is much for one operator
        return culprits

    def without_culprit(self, free: Traced, forced: Traced) -> tuple[str, ...]:
        """Return in words where the new release fails although it does not with the old release's inputs."""
        raised = [node for node in free.trace.nodes.values() if node.error and node.kind not in FRAMES]
        failed = free.trace.last or (raised[0] if raised else None)
        again = forced.trace.nodes.get(failed.place) if failed is not None else None
        if failed is None or again is None or again.unchecked or again.error or not again.finished:
            return ()
        return (f"{failed.operator} fails in the new release's own run, and does not with the old one's inputs",)

    def check(self, old: Traced) -> None:
        """Note where the old release itself answers otherwise node by node than in one call."""
        baseline = self.facts.baselines[self.model]
        (call,) = old.answer.calls
        golden = baseline.golden
        if golden is None or call not in golden.calls:
            return
        alone = replace(golden, calls={call: golden.calls[call]}, effects=None)
        if not same_answers(alone, replace(old.answer, effects=None)):
            other = compare_outputs("", "", golden=alone, probe=old.answer, precision=self.precision)
            what = "beyond tolerance" if differs(other) else "in bits"
            note = f"node by node the old release answers otherwise than in one call ({what})"
            self.found = replace(self.found, notes=(*self.found.notes, note))

    def shows(self, old: Traced, new: Traced) -> bool:
        """Whether the call went otherwise than in the old release; other numbers only count where they are searched."""
        if not new.completed or self.facts.alone[self.model].models[0].outcome is not Outcome.COMPLETED:
            return not new.completed
        return differs(compare_outputs("", "trace", golden=old.answer, probe=new.answer, precision=self.precision))

    def traced(self, side: str, order: TraceOrder) -> Traced:
        probe = self.effects.runner(trace_request(self.model, side, order, self.facts))
        self.effects.progress.step(f"{side}, {order.mode}")
        return Traced(
            probe=probe,
            trace=read_trace(probe.directory),
            answer=replace(read_outputs(probe.directory, self.model), effects=None),
        )

    def why_not(self, traced: Traced) -> str:
        probe, last = traced.probe, traced.trace.last
        (result,) = probe.models
        why = f"{result.failure.type}: {result.failure.first_line}" if result.failure else str(result.outcome)
        if result.failure is None and probe.failure is not None:
            why = probe.failure.first_line
        where = f" in {last.operator}" if last is not None else ""
        return f"the {probe.side} release could not make the call node by node: {why}{where}"

    def diverged(self, old: Traced, *notes: str, probes: tuple[int, int] | None = None) -> Diverged:
        divergence = replace(self.found, notes=(*self.found.notes, *(note for note in notes if note)))
        return Diverged(divergence=divergence if probes is None else replace(divergence, probes=probes), old=old.trace)


def is_whole(suspects: Sequence[NodeFault], nodes: Iterable[TracedNode]) -> bool:
    computing = {node.place for node in nodes if node.kind not in FRAMES and not node.kind.startswith("prim::")}
    places = {place for fault in suspects for place in fault.places}
    return len({fault.node.operator for fault in suspects}) == 1 and computing == places


def given_up(old: Traced, new: Traced) -> tuple[str, ...]:
    """Return in words that the new release went on for far longer than the old one; empty where it did not."""
    failure = new.probe.models[0].failure
    if failure is None or failure.type != wire.TRACE_TOO_LONG:
        return ()
    nodes = f"{len(new.trace.nodes)} nodes where the old one runs {len(old.trace.nodes)}"
    return (f"node by node the new release was stopped after {nodes}",)


def _faults(
    old: Traced,
    new: Traced,
    *,
    precision: Precision = None,
    strides: bool = False,
    rounding: bool = False,
    one_operator: bool = False,
) -> tuple[NodeFault, ...]:
    before, after = old.trace, new.trace
    return faults(
        before.nodes,
        after.nodes,
        compare_outputs("", "trace", golden=before.outputs, probe=after.outputs, precision=precision),
        other_digests=_other_digests(before, after),
        strides=strides,
        rounding=rounding,
        one_operator=one_operator,
        ended=ENDINGS.get(new.probe.models[0].outcome, "ends the process"),
    )


def _other_digests(old: Trace, new: Trace) -> Sequence[Place]:
    both = [place for place in old.digests if place in new.digests]
    lost = [place for place in both if not all(key(place) in trace.outputs.calls for trace in (old, new))]
    return [place for place in lost if old.digests[place] != new.digests[place]]
