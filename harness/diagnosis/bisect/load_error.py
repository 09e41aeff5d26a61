"""Answers for a model that the new release does not load: from its own code and what both releases register."""

from dataclasses import replace
from pathlib import Path

from harness.diagnosis.reduce.load_error import pruned, refusals, refused_operators, smallest_refusing
from harness.diagnosis.reproduce.program import reproduce_load
from harness.domain.diagnosis import BisectAnswer, Bisection, Culprit
from harness.domain.prediction import StaticFinding
from harness.probing.facts import Attributed, Effects

REACHES = {
    "straight": "on the way from a method",
    "branch": "in a branch",
    "uncalled": "in code that no method calls",
}


def refused(found: Bisection, facts: Attributed, effects: Effects, *, reproduce: bool, rewrites: bool) -> Bisection:
    """Return what is refused, and where; the smallest archive that still is, and the model without what is refused.

    Args:
        reproduce: whether to make a reproducer; ``rewrites``: whether to look for what loads.
    """
    model = found.model
    effects.progress.stage("which operators does the release refuse")
    path = facts.artifact(model).path
    stops, unread = refusals(path, effects)
    operators = refused_operators(stops)
    if stops:
        found = replace(found, answer=BisectAnswer.LOADING, refusals=tuple(_refusal(item) for item in stops))
    else:
        why = unread or "its code names nothing that is refused"
        found = replace(found, notes=(f"{Path(path).name}: {why}",))
    smallest = smallest_refusing(model, operators, facts, effects)
    if isinstance(smallest, str):
        found = replace(found, notes=(*found.notes, f"no smaller archive that is refused: {smallest}"))
    else:
        found = replace(found, smallest=_shown(smallest, effects))
    mended = pruned(model, operators, facts, effects) if rewrites and stops else None
    found = replace(found, rewrites=() if mended is None else (mended,))
    if not reproduce or found.smallest is None:
        return found
    effects.progress.stage("reproducers", 1)
    return replace(found, reproducers=(reproduce_load(found.smallest, facts, effects, index=0, model=model),))


def _shown(culprit: Culprit, effects: Effects) -> Culprit:
    artifact, inputs = (effects.shown(Path(path)) for path in (culprit.artifact, culprit.inputs))
    return replace(culprit, artifact=artifact, inputs=inputs)


def _refusal(item: StaticFinding) -> str:
    where = f" at {item.place.member}:{item.place.line} in {item.place.function}" if item.place is not None else ""
    reach = f" ({REACHES[item.reach.value]})" if item.reach is not None else ""
    done = f"; {item.what_to_do}" if item.what_to_do else ""
    return f"{item.subject}{where}{reach}: {item.text}{done}"
