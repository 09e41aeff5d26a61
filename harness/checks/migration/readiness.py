"""What a fleet needs before it leaves TorchScript: what one piece of advice unlocks, and whose artifacts. Pure."""

from collections import Counter
from collections.abc import Iterable

from harness.core.fleet import NO_OWNER, FleetArtifact
from harness.core.migration import Migrated, MigratedModel, Migration, Unlocked

LISTS = "tuple becomes list"
"""The kind of obstacle that is looked for only where there is no other."""


def unlocked(migration: Migration) -> tuple[Unlocked, ...]:
    """Return what each piece of advice takes away, that for the most artifacts first; without advice none.

    Causes with the same advice count together: one change is for all. An artifact stops at its first obstacle, so
    what stops it next is not known, unless that first one is looked at after all others.
    """
    causes = {name: cause.id for cause in migration.causes for name in cause.models}
    groups: dict[str, list[MigratedModel]] = {}
    for model in migration.models:
        if model.outcome is not Migrated.READY and model.advice:
            groups.setdefault(model.advice, []).append(model)
    order = sorted(groups, key=lambda advice: (-len(groups[advice]), advice))
    return tuple(
        Unlocked(
            advice=advice,
            causes=tuple(dict.fromkeys(causes[model.model] for model in groups[advice])),
            models=tuple(model.model for model in groups[advice]),
            then_ready=tuple(model.model for model in groups[advice] if model.kind == LISTS),
            owners=owned(groups[advice]) if has_owners(migration) else {},
        )
        for advice in order
    )


def has_owners(migration: Migration) -> bool:
    return any(model.owner for model in migration.models)


def owned(models: Iterable[MigratedModel | FleetArtifact]) -> dict[str, int]:
    counts = Counter(model.owner or NO_OWNER for model in models)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def by_owner(migration: Migration) -> dict[str, dict[Migrated, int]]:
    """Return owner -> outcome -> artifacts, whoever has the most that are not ready first; empty without owners."""
    if not has_owners(migration):
        return {}
    groups: dict[str, Counter[Migrated]] = {}
    for model in migration.models:
        groups.setdefault(model.owner or NO_OWNER, Counter())[model.outcome] += 1
    order = sorted(groups, key=lambda owner: (groups[owner][Migrated.READY] - groups[owner].total(), owner))
    return {
        owner: {outcome: groups[owner][outcome] for outcome in Migrated if groups[owner][outcome]} for owner in order
    }
