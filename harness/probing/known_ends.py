"""What a run knows already of files that end the process that loads them: they are not loaded once more."""

from harness.core.outcome import Outcome
from harness.probing.facts import Effects, Probed
from harness.worker import wire

TOO_DEAR = (Outcome.HANG, Outcome.OUT_OF_MEMORY)


def known_end(name: str, facts: Probed, effects: Effects) -> str:
    """Return how a given file is known to end the process that loads it, in words; empty where it is not."""
    adopted, alone = (
        None if found is None else found.models[0] for found in (facts.exports[name].result, facts.alone.get(name))
    )
    if adopted is not None and adopted.outcome in TOO_DEAR:
        return f"{adopted.outcome.value.replace('_', ' ')} when {effects.environments['old'].name} took it over"
    if alone is not None and alone.outcome in TOO_DEAR and alone.phase == wire.LOAD:
        return f"{alone.outcome.value.replace('_', ' ')} in load in {effects.environments['new'].name}"
    return ""
