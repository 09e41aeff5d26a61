"""From a model's cell to an answer: whose doing it is, and which search finds that by its symptom."""

from dataclasses import replace

from harness.checks.startup.attribution_words import attribution_words
from harness.core.diagnosis import BisectAnswer, Bisection, Symptom
from harness.core.outcome import Outcome, Status
from harness.core.verdict import CellVerdict
from harness.probing.facts import Attributed, Effects, Started
from harness.search.bisect.load_error import refused
from harness.search.bisect.program import ProgramSearch
from harness.search.reduce.oracles import ByLaunch, Sides
from harness.search.reproduce.program import with_reproducer, with_reproducer_beside
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.bisection import CallInQuestion, failing_call
from harness.verdict.reduction import symptom_of

WELL = (Status.PASS, Status.XPASS, Status.SAME_FAIL)
ALONE = ("alone", "latency")
NOT_TIMED = "its time was not compared, --latency quick does that"
RED = (Status.FAIL, Status.XFAIL)
NO_ARTIFACT = (
    "no artifact got as far as the new release: there is no operator to look for and no reproducer to make; "
    "its cell tells what went wrong before"
)


def bisect(
    model: str,
    facts: Attributed,
    effects: Effects,
    *,
    reproduce: bool = True,
    mitigations: bool = True,
    rewrites: bool = True,
    scenario: str = "",
    passed: int = 0,
) -> Bisection:
    """Return whose doing it is that ``model`` does not pass in the new release; its cells are judged already.

    ``scenario`` is an initialization, asked about where the model alone is well; ``passed``: how often in a row what
    failed before was well now. Reproducers cost two imports of torch for each culprit.
    """
    cell = _cell_of(facts.verdicts[model], scenario)
    bisection = Bisection(
        model=model,
        old=effects.environments["old"].name,
        new=effects.environments["new"].name,
        answer=BisectAnswer.UNDECIDED,
        symptom=tuple(finding.message for finding in cell.findings) or ((cell.note,) if cell.note else ()),
    )
    if cell.status in WELL:
        how = "it passes alone" if cell.scenario in ALONE else f"it passes in {INITIALIZATIONS[cell.scenario].words}"
        how = "both releases fail alike" if cell.status is Status.SAME_FAIL else how
        if passed:
            how = f"{how}: it passed {passed} of {passed} times now"
        if cell.status is Status.SAME_FAIL:
            return replace(bisection, answer=BisectAnswer.NOTHING, notes=(how,))
        untimed = (NOT_TIMED,) if cell.scenario == "alone" and not passed else ()
        return replace(bisection, answer=BisectAnswer.NOTHING, symptom=(), notes=(*bisection.symptom, how, *untimed))
    if cell.status not in RED:
        return replace(bisection, notes=(f"the cell is {cell.status}: there is no difference to search",))
    if model not in facts.alone:
        return replace(bisection, notes=(NO_ARTIFACT,))
    search = ProgramSearch(
        found=bisection,
        facts=facts,
        effects=effects,
        scenario=cell.scenario,
        reproduce=reproduce,
        mitigations=mitigations,
        rewrites=rewrites,
    )
    if cell.scenario in INITIALIZATIONS:
        return _beside(cell, search)
    bisection = _alone(search)
    symptom = Symptom.LATENCY if cell.scenario == "latency" else None
    return with_reproducer(bisection, facts, effects, symptom=symptom) if reproduce else bisection


def _alone(search: ProgramSearch) -> Bisection:
    bisection, facts = search.found, search.facts
    if search.scenario == "latency":
        return search.slow()
    result = facts.alone[bisection.model].models[0]
    if result.outcome is Outcome.LOAD_ERROR:
        return refused(bisection, facts, search.effects, reproduce=search.reproduce, rewrites=search.rewrites)
    call = failing_call(result, facts.comparisons.get((bisection.model, "alone")))
    symptom = symptom_of(result)
    if call is None or symptom is None:
        where = result.phase_words or "start"
        return replace(bisection, notes=(f"it does not get as far as a call ({where}): no node to blame",))
    return search.called(symptom, call)


def _cell_of(cells: tuple[CellVerdict, ...], scenario: str) -> CellVerdict:
    """Return the cell of the model alone; where that is well, the one of ``scenario``, else of its time if measured.

    ``"latency"`` is that cell whatever the model's answers are: they may be waived.
    """
    if scenario in ALONE:
        named = next((cell for cell in cells if cell.scenario == scenario), None)
        if named is not None:
            return named
    alone = next(cell for cell in cells if cell.scenario == "alone")
    other = next((cell for cell in cells if cell.scenario == (scenario or "latency")), None)
    return other if other is not None and alone.status in WELL else alone


# What a single run shows by how it ends.
SHOWN_AS = {"hang": Symptom.HANG, "crash": Symptom.CRASH, "concurrent_error": Symptom.ERROR}
NOT_TRIED = "no reproducer: the model by itself, in one thread of a process, does not show it"


def _beside(cell: CellVerdict, search: ProgramSearch) -> Bisection:
    """Return which nodes show by themselves what the model does in the scenario of ``cell``, and what mitigates it."""
    bisection, facts, effects = search.found, search.facts, search.effects
    scenario, reproduce = INITIALIZATIONS[cell.scenario], search.reproduce
    symptom = next((SHOWN_AS[item.kind] for item in cell.findings if item.kind in SHOWN_AS), None)
    needs = facts.attributions.get((bisection.model, cell.scenario))
    words = (*((attribution_words(needs, cell.scenario),) if needs is not None else ()), *facts.worker_notes)
    if symptom is None:
        kinds = ", ".join(dict.fromkeys(item.kind.replace("_", " ") for item in cell.findings)) or str(cell.status)
        words = (f"{scenario.words}: {kinds}: nodes are looked for where it hangs, crashes or raises",)
    elif needs is None or not needs.reproduced or bisection.model not in needs.minimal_models:
        words = (*words, "no node was looked for: it is not known what it takes to fail")
    else:
        oracle = ByLaunch(
            sides=Sides(facts, effects), model=bisection.model, symptom=symptom, scenario=scenario, needs=needs
        )
        # What the search itself would make or rewrite looks at the model alone.
        search = replace(search, reproduce=False, rewrites=False, found=replace(bisection, notes=words))
        answer = search.reduced(symptom, _failing_call(bisection.model, cell.scenario, facts), oracle=oracle)
        if answer.reduction is not None:  # it is proven, or waited for as always
            answer = replace(answer, reduction=replace(answer.reduction, waited_s=None))
        if reproduce:
            return with_reproducer_beside(answer, symptom, facts, effects, scenario=scenario, needs=needs)
        return replace(answer, notes=(*answer.notes, NOT_TRIED))
    search.found = replace(bisection, notes=words)
    answer = search.mitigated([])
    return replace(answer, notes=(*answer.notes, NOT_TRIED))


def _failing_call(model: str, scenario: str, facts: Started) -> CallInQuestion:
    """Return the call that failed, where the old release has made it alone too; else the first one."""
    result, golden = facts.initialized[model, scenario].new.result, facts.baselines[model].golden
    call = failing_call(result, None) if result.outcome is not Outcome.COMPLETED else None
    if call is not None and golden is not None and (call.input_set, call.call) in golden.calls:
        return call
    return CallInQuestion(input_set=facts.artifact(model).input_sets[0].name, call=0)
