"""Which rewrites are tried on what is not convertible, what counts as a cure, and how cures are told. Pure."""

from collections import Counter
from collections.abc import Sequence

from harness.domain.migration import ConversionCure, Migrated, MigratedModel
from harness.domain.outcome import Outcome
from harness.domain.text import counted
from harness.successor.facts import Tried
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
NO_CURE = ("no converter", "load_error", "several methods", "state")


def is_curable(tried: Tried, model: MigratedModel) -> bool:
    """Whether a rewrite of ``forward`` may help: it is the conversion itself that has failed."""
    probe = tried.conversion
    if model.outcome is not Migrated.NOT_CONVERTIBLE or model.kind in NO_CURE or probe is None:
        return False
    return probe.models[0].outcome is not Outcome.COMPLETED and probe.models[0].phase != wire.LOAD


def answers_everything(model: MigratedModel) -> bool:
    """Whether the program answers every request as TorchScript does; lists for tuples are no other answer."""
    return model.outcome is Migrated.READY or (model.outcome is Migrated.DIFFERS and model.kind == LISTS)


def unlocked_words(models: Sequence[MigratedModel]) -> str:
    """Return ``freeze ... (7 of 12 models become ready)`` for each cure of these models; empty where none is cured."""
    groups = Counter((model.cured_by, becomes(model)) for model in models if model.cured_by)
    of_all = f" of {counted(len(models), 'model')}" if len(models) > 1 else ""
    parts = [
        f"{WORDS.get(name, name)} ({count if of_all else 'it'}{of_all} {words if count > 1 else _one(words)})"
        for (name, words), count in groups.most_common()
    ]
    return f"verified: {'; '.join(parts)}" if parts else ""


def becomes(model: MigratedModel) -> str:
    """Return what a cured model comes to, as a verb for several."""
    return "become ready" if model.cured_outcome is Migrated.READY else "become convertible, with lists for tuples"


def _one(words: str) -> str:
    return words.replace("become", "becomes", 1)


def best_refusal(cures: Sequence[ConversionCure]) -> str:
    """Return why the rewrite that got furthest is no cure, in one line; empty where none was tried."""
    told = [cure for cure in cures if cure.reason]
    converted = [cure for cure in told if cure.outcome not in (None, Migrated.NOT_CONVERTIBLE)]
    furthest = converted or [cure for cure in told if cure.outcome is not None] or told
    return f"{furthest[-1].name}: {furthest[-1].reason}" if furthest else ""
