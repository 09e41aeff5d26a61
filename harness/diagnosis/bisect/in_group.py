"""Answers for a model that is well alone and fails where it is brought up as a server does: which nodes make that."""

from dataclasses import replace

from harness.diagnosis.bisect.judging import CallInQuestion, failing_call
from harness.diagnosis.bisect.program import ProgramSearch
from harness.diagnosis.reduce.in_group import ByLaunch
from harness.diagnosis.reduce.oracles import Sides
from harness.diagnosis.reproduce.in_group import with_reproducer_beside
from harness.domain.diagnosis import Bisection, Symptom
from harness.domain.outcome import Outcome
from harness.domain.verdict import CellVerdict
from harness.probing.facts import Attributed
from harness.scenarios import INITIALIZATIONS
from harness.startup.attribution import attribution_words

# What a single run shows by how it ends.
SHOWN_AS = {"hang": Symptom.HANG, "crash": Symptom.CRASH, "concurrent_error": Symptom.ERROR}
NOT_TRIED = "no reproducer: the model by itself, in one thread of a process, does not show it"


def beside(cell: CellVerdict, search: ProgramSearch) -> Bisection:
    """Return which nodes show by themselves what the model does in the scenario of ``cell``, and what cures it."""
    # What the search itself would make or rewrite looks at the model alone.
    answer, tried = _searched(cell, replace(search, reproduce=False, rewrites=False), reproduce=search.reproduce)
    return answer if tried else replace(answer, notes=(*answer.notes, NOT_TRIED))


def _searched(cell: CellVerdict, search: ProgramSearch, *, reproduce: bool) -> tuple[Bisection, bool]:
    """Return (the answer, whether a program of it was tried)."""
    found, facts = search.found, search.facts
    words = INITIALIZATIONS[cell.scenario].words
    symptom = next((SHOWN_AS[item.kind] for item in cell.findings if item.kind in SHOWN_AS), None)
    needs = facts.attributions.get((found.model, cell.scenario))
    if symptom is None:
        kinds = ", ".join(dict.fromkeys(item.kind.replace("_", " ") for item in cell.findings)) or str(cell.status)
        search.found = replace(
            found, notes=(f"{words}: {kinds}: nodes are looked for where it hangs, crashes or raises",)
        )
        return search.cured([]), False
    told = (*((attribution_words(needs, cell.scenario),) if needs is not None else ()), *facts.worker_notes)
    if needs is None or not needs.reproduced or found.model not in needs.minimal_models:
        search.found = replace(found, notes=(*told, "no node was looked for: it is not known what it takes to fail"))
        return search.cured([]), False
    sides = Sides(facts, search.effects)
    scenario = INITIALIZATIONS[cell.scenario]
    oracle = ByLaunch(sides=sides, model=found.model, symptom=symptom, scenario=scenario, needs=needs)
    search.found = replace(found, notes=told)
    answer = search.reduced(symptom, _asked(found.model, cell.scenario, facts), oracle=oracle)
    reduction = answer.reduction
    if reduction is not None:
        answer = replace(answer, reduction=replace(reduction, waited_s=None))  # it is proven, or waited for as always
    if not reproduce:
        return answer, False
    return with_reproducer_beside(answer, symptom, facts, search.effects, scenario=scenario, needs=needs), True


def _asked(model: str, scenario: str, facts: Attributed) -> CallInQuestion:
    """Return the call that failed, where the old release has made it alone too; else the first one."""
    result, golden = facts.initialized[model, scenario].new.result, facts.baselines[model].golden
    asked = failing_call(result, None) if result.outcome is not Outcome.COMPLETED else None
    if asked is not None and golden is not None and (asked.input_set, asked.call) in golden.calls:
        return asked
    return CallInQuestion(input_set=facts.artifact(model).input_sets[0].name, call=0)
