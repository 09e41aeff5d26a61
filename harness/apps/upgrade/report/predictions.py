"""What was predicted of a model's artifact without loading it, beside what happened."""

from collections.abc import Sequence
from pathlib import Path

from harness.core.prediction import StaticReport
from harness.core.probe import TORCH_LOAD, ModelResult
from harness.probing.facts import Complete, Effects, Probed, profile_of
from harness.verdict.prediction import predicted


def static_report(name: str, facts: Complete, effects: Effects) -> StaticReport | None:
    """Return what was predicted of a model's artifact beside what happened; None where nothing was read."""
    file = facts.predictions.get(name)
    if file is None:
        return None
    sides = {
        side: predicted(file, side, environment.name, _loaded_in(side, name, facts), draws=facts.draws(name))
        for side, environment in effects.environments.items()
    }
    loops = file.facts.loops if file.facts is not None else {}
    return StaticReport(artifact=effects.shown(Path(file.path)), sides=sides, loops=loops)


def _loaded_in(side: str, name: str, facts: Probed) -> Sequence[ModelResult]:
    if profile_of(side, facts.plan).load == TORCH_LOAD:  # it may refuse what torch.jit.load takes
        return ()
    if side == "new":
        return facts.alone[name].models[:1] if name in facts.alone else ()
    return facts.baselines[name].results if name in facts.baselines else ()
