"""The words of a migration: what one cure takes away, whose artifacts wait, how long they load; in short, for a run."""

from collections.abc import Iterator, Mapping, Sequence

from harness.checks.migration.deprecation import ON_LOAD
from harness.core.migration import (
    Horizon,
    Loading,
    Migrated,
    MigratedModel,
    Migration,
    RunMigration,
    Unlocked,
)
from harness.core.outcome import Outcome
from harness.core.prediction import Prediction
from harness.core.text import counted, joined
from harness.report.words.phrases import seconds
from harness.verdict.migration import counts_words

LOADING_WORDS = {Prediction.LOADS: "loads in", Prediction.FAILS: "not in", Prediction.UNKNOWN: "unknown in"}
# In the table of a run, where it is narrow.
SHORT = {
    Migrated.READY: "ready",
    Migrated.NOT_CONVERTIBLE: "no",
    Migrated.DIFFERS: "differs",
    Migrated.FIXED: "fixed",
    Migrated.NOT_LOADABLE: "no load",
    Migrated.UNDECIDED: "unclear",
}
HAS_LEFT = ("has left", "left")


def loading_words(what: str, found: Sequence[Loading]) -> str:
    """Return ``archive loads in 2.6.0, not in 2.15.0 (aten::qr: torch 2.15.0 does not have it)``."""
    parts = []
    for prediction, words in LOADING_WORDS.items():
        these = [item for item in found if item.prediction is prediction]
        if these:
            whys = dict.fromkeys(item.why for item in these if item.why)
            why = f" ({'; '.join(whys)})" if whys else ""
            parts.append(f"{words} {', '.join(item.release for item in these)}{why}")
    return f"{what} {', '.join(parts)}" if parts else ""


def horizon_words(found: Horizon | None) -> str:
    """Return what reading says of one artifact and its program, in one line; empty where nothing was read."""
    if found is None:
        return ""
    instead = [f"{name} (use {what})" if what else name for name, what in found.deprecated.items()]
    return joined(
        loading_words("archive", found.archive),
        loading_words(".pt2", found.program),
        f"deprecated in {found.newest}: {', '.join(instead)}" if instead else "",
    )


def horizon_facts(migration: Migration) -> tuple[str, ...]:
    """Return how many artifacts still load where, and what releases warn of: ``archives: 78 of 78 load in 2.6.0``."""
    horizons = [model.horizon for model in migration.models if model.horizon is not None]
    newest = next((found.newest for found in horizons), "")
    warned = sum(bool(found.deprecated) for found in horizons)
    found = (
        _loads("archives", [found.archive for found in horizons]),
        _loads(".pt2", [found.program for found in horizons]),
        f"{counted(warned, 'archive')} {'has' if warned == 1 else 'have'} operators that {newest} deprecates"
        if warned
        else "",
        *(f"{release} prints a {said} at loading" for release, said in _warnings(migration)),
    )
    return tuple(filter(None, found))


def _loads(what: str, found: Sequence[Sequence[Loading]]) -> str:
    """Return in how many of the files' releases they load, by release; empty where there is no file."""
    read = [loadings for loadings in found if loadings]
    if not read:
        return ""
    releases = dict.fromkeys(item.release for loadings in read for item in loadings)
    found_in = [(release, [item for one in read for item in one if item.release == release]) for release in releases]
    (first, items), *others = found_in
    more = "".join(f", {_of_them(items)} in {release}" for release, items in others)
    return f"{what}: {_of_them(items, len(read))} in {first}{more}"


def _of_them(items: Sequence[Loading], total: int = 0) -> str:
    """Return ``4 of 5 load (1 more unknown)``: what reading cannot tell is not said to fail."""
    counts = [sum(item.prediction is one for item in items) for one in (Prediction.LOADS, Prediction.UNKNOWN)]
    loads = f"{counts[0]} of {total} load" if total else f"{counts[0]}"
    return f"{loads} ({counts[1]} more unknown)" if counts[1] else loads


def _warnings(migration: Migration) -> Iterator[tuple[str, str]]:
    """Yield each release that warns of loading TorchScript, with the kind of the warning."""
    texts = {text for _, text in ON_LOAD}
    yield from ((fact.release, fact.text.partition(":")[0]) for fact in migration.facts if fact.text in texts)


def unlocked_words(found: Unlocked) -> str:
    """Return ``12 artifacts stop here``, and how many of them nothing else stops, where that is known."""
    count, last = len(found.models), len(found.then_ready)
    then = f"nothing else stops {'it' if count == 1 else 'them' if last == count else f'{last} of them'}"
    return joined(f"{counted(count, 'artifact')} {'stops' if count == 1 else 'stop'} here", then if last else "")


def outcomes_words(counts: Mapping[Migrated, int]) -> str:
    """Return ``3 of 12 ready; 7 not convertible, 2 answers otherwise``."""
    others = [f"{count} {outcome.value}" for outcome, count in counts.items() if outcome is not Migrated.READY]
    return joined(f"{counts.get(Migrated.READY, 0)} of {sum(counts.values())} ready", ", ".join(others))


def steps_words(model: MigratedModel) -> str:
    """Return what each step took, or how it ended: ``convert 1.24 s, run in 2.6.0: load error``."""
    said = []
    for step in model.steps:
        where = f" in {step.release}" if step.name.startswith("run") else ""
        took = f" {seconds(step.seconds)}" if step.seconds is not None else ""
        ended = f": {step.outcome.value.replace('_', ' ')}" if step.outcome is not Outcome.COMPLETED else took
        said.append(f"{step.name}{where}{ended}")
    return ", ".join(said)


def migrated_cells(found: RunMigration | None) -> dict[str, tuple[str, str]]:
    """Return model -> its outcome outside of TorchScript, in words and in short; empty where nothing was converted."""
    if found is None or found.why_not:
        return {}
    outcomes = {model.model: (model.outcome.value, SHORT.get(model.outcome, "no")) for model in found.models}
    return outcomes | dict.fromkeys(found.left, HAS_LEFT)


def run_migration_words(found: RunMigration | None) -> str:
    """Return ``3 models: 2 ready, 1 not convertible (in torch 2.15.0; decides nothing)``; empty where nobody asked."""
    if found is None:
        return ""
    left = len(found.left)
    already = f"{counted(left, 'model')} {'has' if left == 1 else 'have'} left TorchScript already" if left else ""
    asked = f"{counts_words(found.models)} (in {found.release}; decides nothing)" if found.models else ""
    return joined(found.why_not or asked, already)
