"""What ``migrate`` found as one HTML page: outcomes, causes and what one cure unlocks first, and all artifacts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.checks.migration.readiness import by_owner, has_owners, owned, unlocked
from harness.core.errors import ExitCode
from harness.core.fleet import NO_OWNER
from harness.core.migration import Migrated, MigratedModel, Migration, Unlocked
from harness.core.text import counted, prose, visible
from harness.report.page.artifacts import (
    TEXT,
    CountView,
    artifact_cause,
    artifact_data,
    numbers_of,
)
from harness.report.page.engine import digest, own, page_of
from harness.report.page.parts import BAD, GOOD, OPEN
from harness.report.words.fleet import owners_words
from harness.report.words.migration import (
    horizon_facts,
    horizon_words,
    outcomes_words,
    steps_words,
    unlocked_words,
)
from harness.report.words.phrases import exit_words, shorten
from harness.verdict.migration import WORST_FIRST, exit_code

COLUMNS = ("artifact", "owner", "outcome", "stops at", "horizon", "steps")
CAUSES_SHOWN, SHORT, NOTES_SHOWN = 300, 5, 20
TONES = dict.fromkeys(Migrated, BAD) | {Migrated.READY: GOOD, Migrated.UNDECIDED: OPEN}
DECISION = {ExitCode.COMPATIBLE: GOOD, ExitCode.INCOMPATIBLE: BAD, ExitCode.INCONCLUSIVE: OPEN}


@dataclass(frozen=True, kw_only=True, slots=True)
class UnlockedView:
    """One cure; ``owners`` are numbers of owners, by which the script shows one owner's alone."""

    cure: str
    stops: str
    causes: tuple[str, ...]
    whose: str
    owners: str


def render_migration_html(migration: Migration) -> str:
    """Return the page, ending with a newline; identical results give identical bytes."""
    style, script = own("style.css") + own("artifacts.css"), own("artifacts.js")
    known = has_owners(migration)
    owners = sorted({model.owner or NO_OWNER for model in migration.models}) if known else []
    numbers = {owner: at for at, owner in enumerate(owners)}
    models = {model.model: model for model in migration.models}
    status, counts = exit_code(migration), migration.counts
    causes = [
        artifact_cause(
            cause,
            owned(models[name] for name in cause.models) if known else {},
            numbers,
            counted(len(cause.models), "artifact"),
        )
        for cause in migration.causes[:CAUSES_SHOWN]
    ]
    return page_of(
        "migration.html",
        {
            "style": style,
            "style_hash": digest(style),
            "script": script,
            "script_hash": digest(script),
            "tone": DECISION[status],
            "head": f"{counts.get(Migrated.READY, 0)} of {counted(len(models), 'artifact')} can leave TorchScript",
            "old": visible(migration.old),
            "new": visible(migration.new),
            "exit": f"exit code {int(status)}: {exit_words(int(status))}",
            "ran": visible(f"{migration.device}, {migration.profile}; loaded in {', '.join(migration.loaders)}"),
            "notes": tuple(shorten(prose(note), TEXT) for note in migration.notes[:NOTES_SHOWN]),
            "total": len(models),
            "counts": tuple(_counts(migration)),
            "causes": causes,
            "more_causes": len(migration.causes) - len(causes),
            "cures": [_cure(found, numbers) for found in unlocked(migration)],
            "owners": [(visible(owner), outcomes_words(found)) for owner, found in by_owner(migration).items()],
            "short": SHORT,
            "horizon": [shorten(visible(fact), TEXT) for fact in horizon_facts(migration)],
            "facts": [(visible(fact.release), visible(fact.text), visible(fact.source)) for fact in migration.facts],
            "columns": COLUMNS,
            "statuses": tuple(outcome.value for outcome in (*WORST_FIRST, Migrated.READY) if outcome in counts),
            "data": _data(migration, owners),
        },
    )


def _counts(migration: Migration) -> Iterator[CountView]:
    for outcome in (Migrated.READY, *WORST_FIRST):
        number = migration.counts.get(outcome, 0)
        if number or outcome is Migrated.READY:
            yield CountView(number=number, word=outcome.value, tone=TONES[outcome])


def _cure(found: Unlocked, numbers: dict[str, int]) -> UnlockedView:
    return UnlockedView(
        cure=shorten(prose(found.cure), TEXT),
        stops=unlocked_words(found),
        causes=tuple(visible(cause) for cause in found.causes),
        whose=visible(owners_words(found.owners)),
        owners=numbers_of(found.owners, numbers),
    )


def _data(migration: Migration, owners: Sequence[str]) -> str:
    """Return the artifacts, those that are not ready first."""
    causes = {name: cause.id for cause in migration.causes for name in cause.models}

    def row_of(model: MigratedModel) -> tuple[str, ...]:
        return (
            model.model,
            model.owner or NO_OWNER,
            model.outcome.value,
            model.kind,
            horizon_words(model.horizon),
            steps_words(model),
            causes.get(model.model, ""),
            "",
            f"{model.model}: {model.reason}" if model.reason else model.model,
        )

    order = (*WORST_FIRST, Migrated.READY)
    models = sorted(migration.models, key=lambda model: order.index(model.outcome))
    tones = {outcome.value: tone for outcome, tone in TONES.items()}
    return artifact_data(COLUMNS, map(row_of, models), status="outcome", owners=owners, tones=tones, changes={})
