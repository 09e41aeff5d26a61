"""Which rewrites are tried on what is not convertible, what counts as one that holds, and how they are told. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.checks.migration.facts import Tried
from harness.core.measurement import signed_percent
from harness.core.migration import ConversionRewrite, Cost, Migrated, MigratedModel
from harness.core.outcome import Outcome
from harness.core.text import counted, first_few
from harness.probing.lacking import LACKS
from harness.worker import wire

# Of the worker's rewrites of a whole archive, the most faithful first: what each fixes, the next ones do as well.
REWRITES = ("freeze", "clone-arguments", "as-requested", "retrace")
WORDS = {
    "freeze": "torch.jit.freeze before conversion",
    "clone-arguments": "a clone of each argument that is changed in place",
    "as-requested": "branches, loops and optional arguments as every request decides them",
    "retrace": "torch.jit.trace of one request, node by node",
}
LISTS = "tuple becomes list"
"""The kind of obstacle that is looked for only where there is no other."""
ONE_BATCH, BATCH_OF_ONE = "one batch size", "batch of 1"
"""Kinds that are looked for before that one alone: a program answers every request, and no other batch."""
BUSY = "busy"
"""The kind of a package of which a busy machine could not tell how it is served."""
NOT_REWRITTEN = ("no converter", "load_error", "hooks", "several methods", "state")
# What rewritten models come to, as a verb for several.
BECOMES: Mapping[Migrated, str] = {
    Migrated.READY: "become ready",
    Migrated.DIFFERS: "become convertible, with lists for tuples",
    Migrated.FIXED: "become convertible, for one batch size",
    Migrated.FAILS_SERVED: "become convertible, and fail when served",
    Migrated.SLOWER: "become convertible, with slower calls",
    Migrated.UNDECIDED: "become convertible; how that is served could not be judged",
}
SERVED_BADLY = (Migrated.FAILS_SERVED, Migrated.SLOWER)
LACKING = tuple(one.kind for one in LACKS)
NAMED = 3


def is_rewritable(tried: Tried, model: MigratedModel) -> bool:
    """Whether a rewrite of ``forward`` may help: it is the conversion itself that has failed."""
    probe = tried.conversion
    if model.outcome is not Migrated.NOT_CONVERTIBLE or model.kind in NOT_REWRITTEN or probe is None:
        return False
    return probe.models[0].outcome is not Outcome.COMPLETED and probe.models[0].phase != wire.LOAD


def answers_everything(model: MigratedModel) -> bool:
    """Whether program and package, by themselves, answer every request as TorchScript does, lists for tuples included.

    How the package does beside others, and how fast it is, is part of what the fix comes to.
    """
    if model.outcome in (Migrated.READY, *SERVED_BADLY):
        return True
    return model.kind in (LISTS, ONE_BATCH, BATCH_OF_ONE) or (model.outcome, model.kind) == (Migrated.UNDECIDED, BUSY)


def rewritten_words(models: Sequence[MigratedModel]) -> str:
    """Return ``freeze ... (7 of 12 models become ready)`` for each rewrite of these models; empty without any."""
    names = Counter(model.rewritten_by for model in models if model.rewritten_by)
    parts = [f"{WORDS.get(name, name)} ({_unlocked_by(name, models)})" for name, _ in names.most_common()]
    return f"verified: {'; '.join(parts)}" if parts else ""


def _unlocked_by(name: str, models: Sequence[MigratedModel]) -> str:
    """Return ``7 of 12 models become ready; 1 becomes convertible, with lists for tuples`` of one rewrite."""
    groups = Counter(becomes(model) for model in models if model.rewritten_by == name).most_common()
    phrases = [(str(count), words if count > 1 else _one(words)) for words, count in groups]
    (count, words), *others = phrases
    first = f"{count} of {counted(len(models), 'model')}" if len(models) > 1 else "it"
    return "; ".join(" ".join(part) for part in ((first, words), *others))


def _one(words: str) -> str:
    return words.replace("become ", "becomes ", 1).replace("and fail ", "and fails ", 1)


def becomes(model: MigratedModel) -> str:
    """Return what a rewritten model becomes, as a verb for several."""
    return BECOMES[model.rewritten_outcome] if model.rewritten_outcome is not None else ""


def price_words(models: Sequence[MigratedModel]) -> str:
    """Return what a warm call of what was rewritten takes beside TorchScript as it is; empty where none was timed.

    Rewritten, or under a setting of the server where it fails when served. Of several models, those are named
    whose interval leaves 1 out; a middle of the others would be one of noise.
    """
    rewritten = [(model.model, model.rewrites[-1].costs) for model in models if model.rewritten_by]
    rewritten += [(model.model, model.costs) for model in models if model.outcome is Migrated.FAILS_SERVED]
    timed = [(name, cost) for name, costs in rewritten if (cost := warm_call(costs)) is not None]
    if not timed:
        return ""
    alone = f"rewritten, a warm call takes {_change(timed[0][1])} beside TorchScript"
    price = alone if len(timed) == 1 else _price_of_several(timed)
    return price if len(timed) == len(rewritten) else f"{price} ({len(timed)} of {len(rewritten)} were timed)"


def _price_of_several(timed: Sequence[tuple[str, Cost]]) -> str:
    certain = [f"{name} {_change(cost)}" for name, cost in timed if _differs(cost)]
    if not certain:
        return f"rewritten, a warm call of none of {len(timed)} certainly differs from that of TorchScript"
    others = len(timed) - len(certain)
    unclear = f"; of {counted(others, 'other')} no difference is certain" if others else ""
    return f"rewritten, a warm call takes beside TorchScript: {first_few(certain, NAMED)}{unclear}"


def _change(cost: Cost) -> str:
    assert cost.ratio is not None
    change = f"{signed_percent(cost.ratio)} %"
    if cost.low is None or cost.high is None or not math.isfinite(cost.high):
        return change
    return f"{change} [{signed_percent(cost.low)}, {signed_percent(cost.high)}]"


def _differs(cost: Cost) -> bool:
    return cost.low is not None and cost.high is not None and not cost.low <= 1 <= cost.high


def says_nothing_of_the_rewrite(model: MigratedModel) -> bool:
    """Whether the machine kept a rewrite from being judged: one that fixes more must not be preferred for that."""
    return model.outcome is Migrated.UNDECIDED or model.kind in LACKING


def best_refusal(attempts: Sequence[ConversionRewrite]) -> str:
    """Return why the rewrite that got furthest does not hold, in one line; empty where none was tried."""
    refused = [attempt for attempt in attempts if attempt.reason]
    converted = [attempt for attempt in refused if attempt.outcome not in (None, Migrated.NOT_CONVERTIBLE)]
    furthest = converted or [attempt for attempt in refused if attempt.outcome is not None] or refused
    return f"{furthest[-1].name}: {furthest[-1].reason}" if furthest else ""


def warm_call(costs: Sequence[Cost]) -> Cost | None:
    return next((cost for cost in costs if cost.quantity == "steady" and cost.ratio is not None), None)
