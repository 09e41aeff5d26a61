"""Tries rewrites of artifacts that are not convertible; each is verified on the whole way, by the golden outputs.

The old release makes the archive and has to answer the golden outputs with it; then it goes the way of any artifact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.artifacts.adopted import keep_rewritten
from harness.checks.migration.conversion_rewrites import (
    REWRITES,
    answers_everything,
    is_rewritable,
    says_nothing_of_the_rewrite,
)
from harness.checks.migration.facts import Answers, Loader, RewrittenArchives, Tried
from harness.checks.migration.migrate import try_all
from harness.checks.migration.words import failure_words
from harness.checks.outputs.compare import compare_answers
from harness.core.migration import ConversionRewrite, Migrated, MigratedModel
from harness.core.models import Artifact
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import RewriteOrder
from harness.machine import pool
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects
from harness.probing.verification import legible_outputs
from harness.search.rewrite.attempt import ask
from harness.verdict.migration import difference, judge
from harness.worker import wire

FOLDER = "rewrites"


def try_rewrites(
    tried: Sequence[Tried],
    models: Sequence[MigratedModel],
    facts: Answered,
    loaders: Sequence[Loader],
    effects: Effects,
    *,
    package: bool,
    in_cpp: bool = False,
) -> list[MigratedModel]:
    """Return the models, with the rewrites that were tried on those not convertible, in order.

    ``facts`` have the fingerprint of the side ``old``, that of the golden outputs. Programs have to load in the
    releases of ``loaders``; the first one converts. What is rewritten is packaged, served and timed as any artifact.
    """
    examples = {item.model: item.example for item in tried}
    left = [model.model for item, model in zip(tried, models, strict=True) if is_rewritable(item, model)]
    attempts: dict[str, list[ConversionRewrite]] = {name: [] for name in left}
    for rewrite in REWRITES:
        if not left:
            break
        effects.progress.stage(f"fix by {rewrite}", len(left))
        made = dict(_each(left, rewrite, examples, facts, effects))
        archives = {name: artifact for name, (_, artifact) in made.items() if artifact is not None}
        verified = _converted(
            RewrittenArchives(rewrite=rewrite, archives=archives),
            facts,
            loaders,
            effects,
            package=package,
            in_cpp=in_cpp,
        )
        for name in left:
            attempts[name].append(_judged(made[name][0], archives.get(name), verified.get(name), effects))
        done = {name for name, (_, model) in verified.items() if says_nothing_of_the_rewrite(model)}
        done |= {name for name, (attempt, _) in made.items() if attempt.outcome is Migrated.UNDECIDED}
        left = [name for name in left if not attempts[name][-1].archive and name not in done]
    effects.runner.release("old")
    return [_with_rewrites(model, attempts.get(model.model, ())) for model in models]


def _each(
    names: Sequence[str], rewrite: str, examples: Mapping[str, str], facts: Answered, effects: Effects
) -> list[tuple[str, tuple[ConversionRewrite, Artifact | None]]]:
    def one(name: str) -> tuple[str, tuple[ConversionRewrite, Artifact | None]]:
        made = _rewritten(name, rewrite, examples[name], facts, effects)
        effects.progress.step(name)
        return name, made

    return pool.each(one, names, jobs=facts.plan.settings.jobs)


def _rewritten(
    name: str, rewrite: str, example: str, facts: Answered, effects: Effects
) -> tuple[ConversionRewrite, Artifact | None]:
    """Return the archive if the old release answers golden outputs with it, else why not; busy: undecided."""
    order = RewriteOrder(whole=rewrite, example=example)
    report, artifact, why = ask(facts.artifact(name), order, facts, effects)
    words = report.rules.get(rewrite)
    attempt = ConversionRewrite(
        name=rewrite, what=words.what if words else "", needs=words.needs if words else "", fixed=report.fixed
    )
    if artifact is None:
        return replace(attempt, reason=why, outcome=Migrated.UNDECIDED if report.unclear else None), None
    deadline = deadline_of(facts.exports[name].declaration, facts)
    probe = effects.runner(facts.requests.run("old", [artifact], deadline))
    (result,) = probe.models
    if probe.outcomes & UNCLEAR:
        why = f"what TorchScript answers with it could not be judged: {failure_words(result, probe)}"
        return replace(attempt, outcome=Migrated.UNDECIDED, reason=why), None
    if result.outcome is not Outcome.COMPLETED:
        return replace(attempt, reason=f"TorchScript does not answer with it: {failure_words(result, probe)}"), None
    comparison = compare_answers(name, legible_outputs(probe.directory, name), facts.baselines[name], facts)
    otherwise = difference(Answers(release="old", probe=probe, load=result, calls={}, comparison=comparison))
    if otherwise:
        return replace(attempt, reason=f"TorchScript answers otherwise with it: {otherwise}"), None
    return attempt, artifact


def _converted(
    rewritten: RewrittenArchives,
    facts: Answered,
    loaders: Sequence[Loader],
    effects: Effects,
    *,
    package: bool,
    in_cpp: bool,
) -> dict[str, tuple[Tried, MigratedModel]]:
    """Return what the rewritten archives come to on the way of any artifact; the golden outputs stay the same."""
    if not rewritten.archives:
        return {}
    tried = try_all(facts, loaders, effects, package=package, in_cpp=in_cpp, rewritten=rewritten)
    return {item.model: (item, judge(item)) for item in tried}


def _judged(
    attempt: ConversionRewrite, archive: Artifact | None, way: tuple[Tried, MigratedModel] | None, effects: Effects
) -> ConversionRewrite:
    if archive is None or way is None:
        return attempt
    tried, model = way
    attempt = replace(attempt, outcome=model.outcome, reason=model.reason)
    if not answers_everything(model) or tried.conversion is None:
        return attempt
    kept = keep_rewritten(archive, effects.folder(FOLDER) / f"{model.model}-{attempt.name}-{archive.digest[:8]}")
    program = Path(tried.conversion.directory) / (model.model + wire.PROGRAM)
    return replace(
        attempt,
        advice=model.advice,
        archive=effects.shown(kept),
        program=effects.shown(program),
        steps=model.steps,
        costs=model.costs,
    )


def _with_rewrites(model: MigratedModel, attempts: Sequence[ConversionRewrite]) -> MigratedModel:
    if not attempts:
        return model
    model, last = replace(model, rewrites=tuple(attempts)), attempts[-1]
    return replace(model, rewritten_by=last.name, rewritten_outcome=last.outcome) if last.archive else model
