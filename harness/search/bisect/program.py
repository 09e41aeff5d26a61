"""Finds which node, or which few together, make a model fail that does load; and what mitigates that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.core.diagnosis import BisectAnswer, Bisection, Symptom, TracedNode
from harness.probing.facts import Attributed, Effects
from harness.search.bisect.divergence import diverge
from harness.search.mitigation.search import search
from harness.search.mitigation.trial import ONCE, clean_repeats_alone
from harness.search.reduce.oracles import Oracle
from harness.search.reduce.program import reduce_program
from harness.search.reproduce.operator import MOST, reproducers
from harness.search.reproduce.program import reproduce_program, reproduce_whole
from harness.search.rewrite.nodes import rewrite
from harness.verdict.bisection import CallInQuestion


@dataclass(kw_only=True)
class ProgramSearch:
    """The searches about one model; ``found`` is what they have said so far.

    ``scenario``: of the cell that it is about; ``reproduce``, ``mitigations``, ``rewrites``: which of them are wanted.
    """

    found: Bisection
    facts: Attributed
    effects: Effects
    scenario: str
    reproduce: bool
    mitigations: bool
    rewrites: bool

    def called(self, symptom: Symptom, failing: CallInQuestion) -> Bisection:
        """Ask one call node by node; where that names no node, ask which nodes show it together."""
        diverged = diverge(self.found.model, failing, self.facts, self.effects)
        divergence = diverged.divergence
        self.found = replace(self.found, divergence=divergence)
        if divergence.culprits:
            made = reproducers(diverged, self.facts, self.effects) if self.reproduce else ()
            self.found = replace(self.found, answer=BisectAnswer.OPERATOR, reproducers=made)
            return self.mitigated([(fault.node,) for fault in divergence.culprits])
        if not divergence.shows and divergence.probes[1] > 0 and not divergence.notes:
            self.found = replace(self.found, answer=BisectAnswer.EXECUTOR)
        traced = divergence.probes[1] > 0 and not divergence.confirmed
        return self.reduced(symptom, failing) if traced else self.mitigated([])

    def slow(self) -> Bisection:
        """Ask which nodes carry the time; the values of any call will do."""
        (first, *_) = self.facts.artifact(self.found.model).input_sets
        return self.reduced(Symptom.LATENCY, CallInQuestion(input_set=first.name, call=0))

    def reduced(self, symptom: Symptom, failing: CallInQuestion, *, oracle: Oracle | None = None) -> Bisection:
        """Ask which nodes show the symptom together; ``oracle``: see ``reduce_program``."""
        reduction = reduce_program(self.found.model, symptom, failing, self.facts, self.effects, oracle=oracle)
        self.found = replace(self.found, reduction=reduction)
        now_and_then = any(culprit.fails < culprit.runs for culprit in reduction.culprits)
        if reduction.culprits and (self.found.answer is BisectAnswer.UNDECIDED or now_and_then):
            # One call node by node without it does not clear the nodes of what shows only now and then.
            self.found = replace(self.found, answer=BisectAnswer.NODES)
        rarest = min(reduction.culprits, key=lambda culprit: culprit.fails / culprit.runs, default=None)
        seen = ONCE if rarest is None or symptom is Symptom.LATENCY else (rarest.fails, rarest.runs)
        self.mitigated([culprit.nodes for culprit in reduction.culprits], seen=seen)
        return self.reproduced() if self.reproduce else self.found

    def mitigated(self, groups: Sequence[Sequence[TracedNode]], *, seen: tuple[int, int] = ONCE) -> Bisection:
        """Ask which settings or operators take the symptom away; ``seen``: (runs, of how many) it showed in."""
        model, facts, effects = self.found.model, self.facts, self.effects
        if self.mitigations:
            tried = search(model, facts, effects, everything=False, scenario=self.scenario, seen=seen)
            self.found = replace(self.found, mitigations=tried.mitigations)
        if self.rewrites and groups:
            repeats, _ = clean_repeats_alone(seen)
            self.found = replace(self.found, rewrites=rewrite(model, groups, facts, effects, repeats=repeats))
        return self.found

    def reproduced(self) -> Bisection:
        """Make a reproducer of each of the first culprits; of the whole where there are none."""
        reduction, model = self.found.reduction, self.found.model
        assert reduction is not None
        culprits = reduction.culprits[:MOST]
        self.effects.progress.stage("reproducers", max(1, len(culprits)))
        mitigations, symptom = self.found.mitigations, reduction.symptom
        made = [
            reproduce_program(
                culprit, symptom, self.facts, self.effects, index=index, model=model, mitigations=mitigations
            )
            for index, culprit in enumerate(culprits)
        ]
        if not made:
            why = "; ".join(reduction.notes)
            made = [reproduce_whole(model, self.facts, self.effects, symptom=symptom, mitigations=mitigations, why=why)]
        self.found = replace(self.found, reproducers=tuple(made))
        return self.found
