"""What ``migrate`` found as markdown: for those who decide what is rewritten, and for owners."""

from collections.abc import Iterator

from harness.checks.migration.readiness import by_owner, has_owners, unlocked
from harness.core.fleet import NO_OWNER
from harness.core.migration import Migrated, Migration
from harness.report.markdown.text import CELL_LIMIT, bullets, code, escape, folded, table_line
from harness.report.words.fleet import owners_words
from harness.report.words.migration import horizon_facts, horizon_words, steps_words
from harness.report.words.phrases import exit_words
from harness.verdict.migration import counts_words, exit_code

MOST_NAMED = 400


def render_migration_markdown(migration: Migration) -> str:
    """Return the whole answer as GitHub-flavoured markdown, ending with a newline."""
    status = int(exit_code(migration))
    lines = [
        f"# Leaving TorchScript: as torch {escape(migration.old)} answers, exported in {escape(migration.new)}",
        "",
        f"**{escape(counts_words(migration.models))}** (exit code {status}: {exit_words(status)})",
        "",
        f"- {escape(migration.device)}, {escape(migration.profile)}; loaded in {escape(', '.join(migration.loaders))}",
        *(f"- {escape(note)}" for note in migration.notes),
        "",
        *_cures(migration),
        *_owners(migration),
        *_causes(migration),
        *_horizon(migration),
        *_artifacts(migration),
    ]
    return "\n".join(lines) + "\n"


def _cures(migration: Migration) -> Iterator[str]:
    found = unlocked(migration)
    if not found:
        return
    yield "## What one cure unlocks"
    yield ""
    yield "An artifact stops at its first obstacle: what would stop it next is not known, but where it says so."
    yield ""
    owned = ["owners"] if has_owners(migration) else []
    yield table_line(("cure", "artifacts that stop here", "that nothing else stops", "causes", *owned))
    yield table_line(("---", "---:", "---:", "---", *(["---"] * len(owned))))
    for one in found:
        causes = ", ".join(code(cause) for cause in one.causes)
        owners = [escape(owners_words(one.owners))] if owned else []
        yield table_line((escape(one.cure), str(len(one.models)), str(len(one.then_ready) or ""), causes, *owners))
    yield ""


def _owners(migration: Migration) -> Iterator[str]:
    found = by_owner(migration)
    if not found:
        return
    outcomes = [outcome for outcome in reversed(Migrated) if outcome in migration.counts or outcome is Migrated.READY]
    yield "## Owners"
    yield ""
    yield table_line(("owner", "artifacts", *(outcome.value for outcome in outcomes)))
    yield table_line(("---", *(["---:"] * (1 + len(outcomes)))))
    for owner, counts in found.items():
        yield table_line(
            (escape(owner), str(sum(counts.values())), *(str(counts.get(outcome, 0)) for outcome in outcomes))
        )
    yield ""


def _causes(migration: Migration) -> Iterator[str]:
    if migration.causes:
        yield "## Causes"
    for cause in migration.causes:
        yield ""
        yield f"### {cause.status.value}: {escape(cause.title)}"
        yield ""
        yield from bullets(
            [("artifacts", str(len(cause.models))), *cause.evidence, *([("cure", cause.cure)] if cause.cure else [])]
        )
    yield ""


def _horizon(migration: Migration) -> Iterator[str]:
    facts = horizon_facts(migration)
    if not facts and not migration.facts:
        return
    yield "## How long they still load"
    yield ""
    yield from bullets([("all", fact) for fact in facts])
    yield from bullets([(fact.release, f"{fact.text} ({fact.source})") for fact in migration.facts])
    yield ""


def _artifacts(migration: Migration) -> Iterator[str]:
    models = sorted(migration.models, key=lambda model: model.outcome is Migrated.READY)
    heads = ("artifact", "owner", "outcome", "stops at", "horizon", "steps")
    lines = [table_line(heads), table_line(["---"] * len(heads))]
    for model in models[:MOST_NAMED]:
        texts = (
            model.owner or NO_OWNER,
            model.outcome.value,
            model.kind,
            horizon_words(model.horizon),
            steps_words(model),
        )
        lines.append(table_line((code(model.model), *(escape(text, CELL_LIMIT) for text in texts))))
    left = len(models) - MOST_NAMED
    lines += ["", f"and {left} more: migration.json has all"] if left > 0 else []
    yield folded(f"all {len(models)} artifacts", lines)
