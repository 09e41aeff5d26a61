"""Says of artifacts that are not convertible which few nodes are to blame, one artifact for each cause."""

from collections.abc import Sequence
from dataclasses import replace

from harness.checks.migration.facts import Tried
from harness.checks.migration.migrate import CONVERTING
from harness.core.migration import Migrated, MigratedModel, SmallestPart
from harness.probing.facts import Answered, Effects
from harness.search.reduce.conversion import unconvertible_part
from harness.search.reproduce.conversion import reproduce_conversion

BEFORE_CONVERTER = ("no converter", "load_error", "hooks", "several methods", "state")
"""Kinds of what is not convertible, whatever its nodes are."""


def with_parts(
    tried: Sequence[Tried], models: Sequence[MigratedModel], facts: Answered, effects: Effects
) -> list[MigratedModel]:
    """Return the models, the smallest of each obstacle with its smallest part; the old side extracts."""
    chosen: dict[str, tuple[Tried, MigratedModel]] = {}
    for attempt, model in sorted(
        zip(tried, models, strict=True), key=lambda pair: (_size(pair[1], facts), pair[1].model)
    ):
        if stops_in_converter(model):
            chosen.setdefault(model.kind, (attempt, model))
    if not chosen:
        return list(models)
    effects.runner.preload("new", (CONVERTING,))
    parts = {model.model: _part(attempt, model, facts, effects) for attempt, model in chosen.values()}
    effects.runner.release("old")
    effects.runner.release("new")
    return [replace(model, part=parts.get(model.model)) for model in models]


def stops_in_converter(model: MigratedModel) -> bool:
    """Whether the conversion of ``forward`` itself has failed: then a part of its nodes may fail in the same way."""
    return model.outcome is Migrated.NOT_CONVERTIBLE and model.kind not in BEFORE_CONVERTER


def _size(model: MigratedModel, facts: Answered) -> int:
    artifact = facts.exports[model.model].artifact
    return artifact.size_bytes if artifact is not None else 0


def _part(attempt: Tried, model: MigratedModel, facts: Answered, effects: Effects) -> SmallestPart:
    reduction = unconvertible_part(attempt, model, facts, effects)
    if not reduction.culprits:
        return SmallestPart(note="; ".join((*reduction.notes, *filter(None, [reduction.ended]))), tests=reduction.tests)
    culprit = reduction.culprits[0]
    made = reproduce_conversion(culprit, model.model, facts, effects)
    return SmallestPart(
        nodes=tuple(node.operator for node in culprit.nodes),
        source=culprit.nodes[0].source,
        reason=culprit.new,
        archive=culprit.artifact,
        inputs=culprit.inputs,
        reproducer=made.folder,
        minimal=culprit.minimal,
        tests=reduction.tests,
        note=made.note or reduction.ended,
    )
