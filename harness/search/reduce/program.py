"""Reduces a program to the few nodes that show a symptom: parts are extracted by the old release, run by the new one.

The values that go into a part come from one trace of the old release. The whole, extracted out, has to show the symptom
before any part is asked, and the old release has to be well with it. Where a culprit is a single node with blocks, the
search goes on within the block, as long as the symptom shows there.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.core.diagnosis import Answer, Culprit, Place, Reduction, SearchAnswer, Symptom, TracedNode
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ExtractOrder, TraceOrder
from harness.machine import clock
from harness.probing.facts import Effects, Exported, WithWorker
from harness.search.bisect.divergence import trace_request
from harness.search.bisect.traces import Trace, read_trace
from harness.search.delta_debugging import Budget, BudgetSpent, Group, Isolated, Repeated, isolate
from harness.search.reduce.extract import extract
from harness.search.reduce.oracles import UNRESOLVED, Oracle, oracle_for
from harness.verdict.bisection import CallInQuestion
from harness.verdict.reduction import block_nodes, ending_words, runs_within

# A hang costs its deadline at every test that shows it. With what comes before and after, three minutes suffice.
TIME_S = 90.0
# A single guilty node of n takes log2(n) + 4 tests; nodes that all need each other take one each in the end.
SPARE_TESTS = 70
# Runs of the whole: until it shows, and then until its rate is known. The model itself has shown it before.
RUNS_UNTIL_IT_SHOWS = 10
FAILS_THAT_TELL_A_RATE = 3
RUNS_FOR_A_RATE = 20
# Where a node that fails now and then is missed by itself, a neighbour is blamed with it.
MISS_ALONE = 0.005
# What fails every time so often is taken to do so always: each part is asked once. The answers are checked at the end.
ALWAYS = {Symptom.HANG: 2, Symptom.LATENCY: 1, Symptom.CONVERSION: 1}
ALWAYS_ELSE = 4


def reduce_program(
    model: str,
    symptom: Symptom,
    failing: CallInQuestion,
    facts: WithWorker,
    effects: Effects,
    *,
    oracle: Oracle | None = None,
) -> Reduction:
    """Return which nodes of the model's program show ``symptom`` by themselves in the new release.

    ``failing``: the call whose values go into the parts; ``oracle``: what tells whether a part shows it; by default a
    run of it alone in both releases.
    """
    nothing_yet = Reduction(symptom=symptom, nodes=0, shows=False)
    oracle = oracle or oracle_for(symptom, facts, effects, calls=_calls(model, symptom, failing, facts))
    return _Search(
        model=model, failing=failing, facts=facts, effects=effects, oracle=oracle, found=nothing_yet
    ).reduce()


def _calls(model: str, symptom: Symptom, failing: CallInQuestion, facts: Exported) -> int | None:
    """Return how many calls of a part are enough; None where nobody knows: calls of another input set came before."""
    first = facts.artifact(model).input_sets[0].name == failing.input_set
    return failing.call + 1 if first and symptom is not Symptom.LATENCY else None


@dataclass
class _Search:
    model: str
    failing: CallInQuestion
    facts: WithWorker
    effects: Effects
    oracle: Oracle
    found: Reduction
    trace: Trace = field(default_factory=Trace)
    directory: str = ""
    begin_ns: int = field(default_factory=clock.monotonic_ns)
    end_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self.end_ns = self.effects.end_within(TIME_S)

    def reduce(self) -> Reduction:
        if self.late():
            return self.with_notes("there was no time left to ask which nodes show it")
        order = TraceOrder(input_set=self.failing.input_set, call=self.failing.call)
        probe = self.effects.runner(trace_request(self.model, "old", order, self.facts))
        self.trace, self.directory = read_trace(probe.directory), probe.directory
        if probe.models[0].outcome is not Outcome.COMPLETED:
            return self.with_notes(f"the old release, node by node, {ending_words(probe)}")
        whole = _Block(self, ())
        self.found = replace(self.found, nodes=len(whole.nodes))
        if not whole.nodes:
            return self.with_notes("the graph has no nodes to choose from")
        self.effects.progress.stage(f"which nodes make the {self.found.symptom}", whole.budget)
        try:
            why = whole.verified()
        except BudgetSpent:
            why = "there was no time left to see whether its parts show it"
        if why:
            return self.with_notes(why)
        self.found = replace(self.found, shows=True, waited_s=self.oracle.sides.wait_s)
        culprits, isolated = whole.culprits()
        rest = None if isolated.rest is None else isolated.rest is Answer.PASS
        self.found = replace(self.found, culprits=culprits, rest_passes=rest)
        return self.with_notes()

    def with_notes(self, *notes: str) -> Reduction:
        return replace(self.found, notes=(*self.found.notes, *notes))

    def late(self, _runs: int = 0) -> bool:
        return clock.monotonic_ns() > self.end_ns


class _Block:
    """The nodes of one run of a block, among which the culprits are looked for."""

    def __init__(self, search: _Search, place: Place, outcomes: Collection[str] = ()) -> None:
        """Take the nodes of the block at ``place``; ``outcomes``: see ``Repeated``."""
        self.search, self.place = search, place
        self.nodes: Sequence[TracedNode] = block_nodes(search.trace.nodes, place)
        self.all = tuple(range(len(self.nodes)))
        self.budget = 2 * len(self.nodes).bit_length() + SPARE_TESTS
        most_runs = self.budget * RUNS_FOR_A_RATE + RUNS_UNTIL_IT_SHOWS
        self.repeated = Repeated[tuple[int, ...]](self.run, Budget(most_runs, stop=search.late), outcomes)
        self.clean = self.clean_alone = 1

    def archive(self, items: Sequence[int]) -> Artifact | str:
        keep = tuple(self.nodes[item].place[-1] for item in items)
        search = self.search
        order = ExtractOrder(
            input_set=search.failing.input_set, beside=search.directory, place=self.place, keep=tuple(sorted(keep))
        )
        return extract(search.model, order, search.facts, search.effects)

    def run(self, items: tuple[int, ...], repeat: int) -> SearchAnswer:
        artifact = self.archive(items)
        if isinstance(artifact, str):
            return UNRESOLVED
        self.search.found = replace(self.search.found, runs=self.search.found.runs + 1)
        return self.search.oracle.ask(artifact, repeat)

    def verified(self) -> str:
        """See that the whole is well in the old release and shows the symptom in the new one; return why not."""
        artifact = self.archive(self.all)
        if isinstance(artifact, str):
            return f"its nodes could not be extracted out of it: {artifact}"
        why = self.search.oracle.prepare(artifact)
        if why:
            return f"extracted out, {why}"
        always = ALWAYS.get(self.search.found.symptom, ALWAYS_ELSE)
        tally = self.repeated.measure(self.all, fails=1, at_most=RUNS_UNTIL_IT_SHOWS)
        if not tally.fails:
            return f"extracted out, its nodes did not show it in {tally.runs} runs: it takes the module around them"
        self.repeated.only_failures_like(self.all)
        tally = self.repeated.measure(self.all, fails=always, at_most=always)
        if tally.fails < tally.runs:
            tally = self.repeated.measure(self.all, fails=FAILS_THAT_TELL_A_RATE, at_most=RUNS_FOR_A_RATE)
            self.clean = self.repeated.clean_runs(self.all)
            self.clean_alone = self.repeated.clean_runs(self.all, MISS_ALONE)
        return ""

    def culprits(self) -> tuple[tuple[Culprit, ...], Isolated]:
        """Return the smallest groups of nodes that show it; within a block of a single one, where it shows there."""
        progress = self.search.effects.progress
        search = self.search
        isolated = isolate(
            len(self.nodes),
            lambda items: self.repeated.settle(items, self.clean if len(items) > 1 else self.clean_alone),
            budget=self.budget,
            progress=lambda answer, left: progress.step(f"{answer} ({left} of {len(self.nodes)} nodes left)"),
        )
        over = f"{(search.end_ns - search.begin_ns) * 1e-9:.0f} s are over"
        ended = over if isolated.ended and search.late() else isolated.ended
        search.found = replace(
            search.found,
            nodes=search.found.nodes + (len(self.nodes) if self.place else 0),
            tests=search.found.tests + isolated.tests,
            untestable=search.found.untestable + isolated.unresolved,
            ended="; ".join(dict.fromkeys(filter(None, [search.found.ended, ended]))),
        )
        return tuple(culprit for group in isolated.culprits for culprit in self.within(group)), isolated

    def within(self, group: Group) -> tuple[Culprit, ...]:
        if len(group.items) == 1:
            for place in runs_within(self.search.trace.nodes, self.nodes[group.items[0]]):
                inner = _Block(self.search, place, self.repeated.same)
                try:
                    deeper = inner.culprits()[0] if inner.nodes and not inner.verified() else ()
                except BudgetSpent:
                    deeper = ()
                if deeper:
                    return deeper
        return (self.culprit(group),)

    def culprit(self, group: Group) -> Culprit:
        artifact = self.archive(group.items)
        assert isinstance(artifact, Artifact)  # it was seen to fail
        old, new, steady = self.search.oracle.words(artifact)
        tally, shown = self.repeated.tally(group.items), self.search.effects.shown
        return Culprit(
            place=self.place,
            keep=tuple(self.nodes[item].place[-1] for item in group.items),
            nodes=tuple(self.nodes[item] for item in group.items),
            artifact=shown(Path(artifact.path)),
            inputs=shown(Path(artifact.inputs_dir)),
            minimal=group.minimal,
            fails=tally.fails,
            runs=tally.judged,
            old=old,
            new=new,
            steady=steady,
        )
