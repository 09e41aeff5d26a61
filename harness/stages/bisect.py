"""From a model's cell to an answer: whose doing it is, and which search finds that by its symptom."""

from dataclasses import replace

from harness.domain.bisection import Answer, Bisection
from harness.domain.outcome import Outcome, Status
from harness.domain.verdict import CellVerdict
from harness.policy.divergence import failing_call
from harness.policy.reduction import symptom_of
from harness.stages.bisect_loading import refused
from harness.stages.bisect_program import Hunt
from harness.stages.facts import Effects, Facts
from harness.stages.reproduce_program import with_reproducer

WELL = (Status.PASS, Status.XPASS, Status.SAME_FAIL)
NOT_TIMED = "its time was not compared, --latency quick does that"
RED = (Status.FAIL, Status.XFAIL)


def bisect(
    model: str,
    facts: Facts,
    effects: Effects,
    *,
    reproduce: bool = True,
    reduce: bool = True,
    cures: bool = True,
    rewrites: bool = True,
) -> Bisection:
    """Return whose doing it is that ``model`` does not pass in the new release; its cells are judged already.

    Args:
        reproduce: whether to make reproducers, which costs two imports of torch for each culprit.
        reduce: whether to look for the nodes that show it together, where no single one does by itself.
        cures, rewrites: whether to look for settings, and for other operators, that take the symptom away.
    """
    cell = _cell_of(facts.verdicts[model])
    found = Bisection(
        model=model,
        old=effects.environments["old"].name,
        new=effects.environments["new"].name,
        answer=Answer.UNDECIDED,
        symptom=tuple(finding.message for finding in cell.findings) or ((cell.note,) if cell.note else ()),
    )
    if cell.status in WELL:
        how = "it passes alone" if cell.status is not Status.SAME_FAIL else "both releases fail alike"
        untimed = () if cell.scenario == "latency" else (NOT_TIMED,)
        return replace(found, answer=Answer.NOTHING, notes=(how, *untimed))
    if model not in facts.alone or cell.status not in RED:
        return replace(found, notes=(f"the cell is {cell.status}: there is no difference to hunt",))
    hunt = Hunt(
        found=found,
        facts=facts,
        effects=effects,
        scenario=cell.scenario,
        reproduce=reproduce,
        reduce=reduce,
        cures=cures,
        rewrites=rewrites,
    )
    found = _hunted(cell, hunt, facts, effects)
    return with_reproducer(found, facts, effects) if reproduce else found


def _hunted(cell: CellVerdict, hunt: Hunt, facts: Facts, effects: Effects) -> Bisection:
    found = hunt.found
    if cell.scenario == "latency":
        return hunt.slow()
    result = facts.alone[found.model].models[0]
    if result.outcome is Outcome.LOAD_ERROR:
        return refused(found, facts, effects, reproduce=hunt.reproduce, rewrites=hunt.rewrites)
    asked = failing_call(result, facts.comparisons.get((found.model, "alone")))
    symptom = symptom_of(result)
    if asked is None or symptom is None:
        where = result.phase or "start"
        return replace(found, notes=(f"it does not get as far as a call ({where}): no node to blame",))
    return hunt.called(symptom, asked)


def _cell_of(cells: tuple[CellVerdict, ...]) -> CellVerdict:
    """Return the cell of the model alone; where that is well and its time was measured, the one of that."""
    alone = next(cell for cell in cells if cell.scenario == "alone")
    timed = next((cell for cell in cells if cell.scenario == "latency"), None)
    return timed if timed is not None and alone.status in WELL else alone
