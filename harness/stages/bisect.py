"""From a model's cell to an answer: whose doing it is, and which search finds that by its symptom."""

from dataclasses import replace
from pathlib import Path

from harness.domain.bisection import Answer, Bisection, SwitchTried
from harness.domain.inspection import StaticFinding, Weight
from harness.domain.outcome import Outcome, Status
from harness.domain.verdict import CellVerdict
from harness.policy.divergence import failing_call
from harness.policy.mitigations import MITIGATIONS
from harness.runtime.registries import registries_of
from harness.runtime.static_check import inspect_file
from harness.stages.diverge import NODE_FLOOR_S, diverge
from harness.stages.facts import Effects, Facts
from harness.stages.mitigate import verdict_under
from harness.stages.reproduce import reproducers
from harness.stages.requests import deadline_after

REACHES = {
    "straight": "on the way from a method",
    "branch": "in a branch",
    "uncalled": "in code that no method calls",
}


def bisect(model: str, facts: Facts, effects: Effects, *, reproduce: bool = True) -> Bisection:
    """Return whose doing it is that ``model`` does not pass alone in the new release; its cells are judged already.

    Args:
        reproduce: whether to make reproducers, which costs two imports of torch for each culprit.
    """
    cell = next(cell for cell in facts.verdicts[model] if cell.scenario == "alone")
    found = Bisection(
        model=model,
        old=effects.environments["old"].name,
        new=effects.environments["new"].name,
        answer=Answer.UNDECIDED,
        symptom=tuple(finding.message for finding in cell.findings) or ((cell.note,) if cell.note else ()),
    )
    if cell.status in (Status.PASS, Status.XPASS, Status.SAME_FAIL):
        how = "it passes alone" if cell.status is not Status.SAME_FAIL else "both releases fail alike"
        return replace(found, answer=Answer.NOTHING, notes=(how,))
    if model not in facts.alone or cell.status not in (Status.FAIL, Status.XFAIL):
        return replace(found, notes=(f"the cell is {cell.status}: there is no difference to hunt",))
    result = facts.alone[model].models[0]
    if result.outcome is Outcome.LOAD_ERROR:
        return _load(found, facts, effects)
    asked = failing_call(result, facts.comparisons.get((model, "alone")))
    if asked is None:
        where = result.phase or "start"
        return replace(found, notes=(f"it does not get as far as a call ({where}): no node to blame",))
    parted = diverge(model, asked, facts, effects)
    found = replace(found, divergence=parted.divergence)
    if parted.divergence.culprits:
        made = reproducers(parted, facts, effects) if reproduce else ()
        return replace(found, answer=Answer.OPERATOR, reproducers=made)
    if parted.divergence.shows or parted.divergence.probes[1] == 0 or parted.divergence.notes:
        return found
    return replace(found, answer=Answer.EXECUTOR, switches=_switches(model, cell, facts, effects))


def _switches(model: str, cell: CellVerdict, facts: Facts, effects: Effects) -> tuple[SwitchTried, ...]:
    """Return which JIT switch takes the symptom away, each probed once in a process of its own."""
    effects.progress.stage("which switch cures", len(MITIGATIONS))
    settings = facts.plan.settings
    floor_s = min(NODE_FLOOR_S, settings.deadlines.floor_s)
    deadline = deadline_after(replace(settings.deadlines, floor_s=floor_s), facts.baselines[model].results)
    tried = []
    for name in MITIGATIONS:
        verdict, effective = verdict_under(model, cell.cell, name, facts, effects, deadline=deadline)
        note = "" if effective else "no such switch in this release, or it has no effect"
        if verdict.status is not Status.PASS:
            note = note or verdict.findings[0].message
        tried.append(SwitchTried(name=name, cures=effective and verdict.status is Status.PASS, note=note))
        effects.progress.step(name)
    return tuple(tried)


def _load(found: Bisection, facts: Facts, effects: Effects) -> Bisection:
    """Answer from the archive's own code and what both releases register; nothing is run for it."""
    effects.progress.stage("which operators does the release refuse")
    registries = registries_of(effects.environments, effects.native_folder.parent)
    path = facts.artifact(found.model).path
    inspected = inspect_file(path, registries)
    verdict = inspected.verdicts.get("new")
    stops = [item for item in verdict.findings if item.weight is Weight.STOPS] if verdict is not None else []
    if not stops:
        why = inspected.failure.text if inspected.failure is not None else "its code names nothing that is refused"
        return replace(found, notes=(f"{Path(path).name}: {why}",))
    return replace(found, answer=Answer.LOADING, refusals=tuple(_refusal(item) for item in stops))


def _refusal(item: StaticFinding) -> str:
    where = f" at {item.place.member}:{item.place.line} in {item.place.function}" if item.place is not None else ""
    reach = f" ({REACHES[item.reach.value]})" if item.reach is not None else ""
    done = f"; {item.what_to_do}" if item.what_to_do else ""
    return f"{item.subject}{where}{reach}: {item.text}{done}"
