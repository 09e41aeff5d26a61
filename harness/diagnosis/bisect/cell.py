"""From a model's cell to an answer: whose doing it is, and which search finds that by its symptom."""

from dataclasses import replace

from harness.diagnosis.bisect.in_group import beside
from harness.diagnosis.bisect.judging import failing_call
from harness.diagnosis.bisect.load_error import refused
from harness.diagnosis.bisect.program import ProgramSearch
from harness.diagnosis.reduce.judging import symptom_of
from harness.diagnosis.reproduce.program import with_reproducer
from harness.domain.diagnosis import BisectAnswer, Bisection
from harness.domain.outcome import Outcome, Status
from harness.domain.verdict import CellVerdict
from harness.probing.facts import Attributed, Effects
from harness.scenarios import INITIALIZATIONS

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
    reduce: bool = True,
    cures: bool = True,
    rewrites: bool = True,
    scenario: str = "",
    passed: int = 0,
) -> Bisection:
    """Return whose doing it is that ``model`` does not pass in the new release; its cells are judged already.

    Args:
        scenario: an initialization, asked about where the model alone is well.
        passed: how often in a row what failed before was well now; 0: it has not failed before.
        reproduce: whether to make reproducers, which costs two imports of torch for each culprit.
        reduce: whether to look for the nodes that show it together, where no single one does by itself.
        cures, rewrites: whether to look for settings, and for other operators, that take the symptom away.
    """
    cell = _cell_of(facts.verdicts[model], scenario)
    found = Bisection(
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
            return replace(found, answer=BisectAnswer.NOTHING, notes=(how,))
        untimed = (NOT_TIMED,) if cell.scenario == "alone" and not passed else ()
        return replace(found, answer=BisectAnswer.NOTHING, symptom=(), notes=(*found.symptom, how, *untimed))
    if cell.status not in RED:
        return replace(found, notes=(f"the cell is {cell.status}: there is no difference to search",))
    if model not in facts.alone:
        return replace(found, notes=(NO_ARTIFACT,))
    search = ProgramSearch(
        found=found,
        facts=facts,
        effects=effects,
        scenario=cell.scenario,
        reproduce=reproduce,
        reduce=reduce,
        cures=cures,
        rewrites=rewrites,
    )
    if cell.scenario in INITIALIZATIONS:
        return beside(cell, search)
    found = _searched(cell, search, facts, effects)
    return with_reproducer(found, facts, effects) if reproduce else found


def _searched(cell: CellVerdict, search: ProgramSearch, facts: Attributed, effects: Effects) -> Bisection:
    found = search.found
    if cell.scenario == "latency":
        return search.slow()
    result = facts.alone[found.model].models[0]
    if result.outcome is Outcome.LOAD_ERROR:
        return refused(found, facts, effects, reproduce=search.reproduce, rewrites=search.rewrites)
    asked = failing_call(result, facts.comparisons.get((found.model, "alone")))
    symptom = symptom_of(result)
    if asked is None or symptom is None:
        where = result.phase or "start"
        return replace(found, notes=(f"it does not get as far as a call ({where}): no node to blame",))
    return search.called(symptom, asked)


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
