"""Can we roll back? What the new release writes is read for the old one, and probed there where that is asked for."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.artifacts.adopted import saved_again
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.manifest import manifest_beside, write_manifest
from harness.checks.hang.story import failure_finding
from harness.checks.outputs.compare import compare_alone
from harness.config.command_words import (
    LIBRARY,
    MODELS,
    OTHER_SIDE,
    REPEATED,
    from_anywhere,
    kept,
    names_a_side,
    side_options,
    words_of,
)
from harness.core.environment import EnvSpec
from harness.core.models import ArtifactKind, GivenArtifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.plan import Cell
from harness.core.prediction import ModelRollback, PredictedLoad, RollbackAnswer, RollbackReport
from harness.core.probe import Failure
from harness.core.verdict import CellVerdict
from harness.machine import pool
from harness.probing.export import export_model
from harness.probing.facts import (
    Answered,
    Effects,
    Export,
    Exported,
    ExportedByBoth,
    Inspected,
    OldAnswers,
    Probed,
    Provisioned,
    RollbackProbe,
    new_profile,
)
from harness.probing.known_ends import TOO_DEAR, known_end
from harness.probing.old_answers import take_old_answers
from harness.probing.requests import Requests, deadline_after
from harness.verdict.alone import judge_one, why_not_made
from harness.verdict.prediction import fails_already, judge_rollback, loading, predicted
from harness.verdict.prediction import rollback as rollback_of


def rollback_command(
    command: str,
    arguments: Sequence[str],
    *,
    old: EnvSpec,
    new: EnvSpec,
    model: str,
    artifacts: str = "",
    written: tuple[str, str] = ("", ""),
    here: str = "",
) -> str:
    """Return the command that exports ``model`` on the side ``old`` and loads it on the side ``new``.

    Args:
        command: how this program is started.
        arguments: of the run that found the break.
        artifacts: a manifest of the file that the later release has saved, where no declaration makes one.
        written: what the run's configuration and command line call ``old`` and ``new``, a release or the NAME of an
            interpreter; NAMEs of libraries may refer to it. Empty: nothing.
        here: the working directory in which the arguments were typed.
    """
    names = [name for name in REPEATED if not artifacts or name not in MODELS]
    options = [_turned(*option) for option in kept(arguments, names, here=here) if not names_a_side(*option)]
    options += [("--artifacts", from_anywhere("--artifacts", artifacts, here))] if artifacts else []
    sides = [*side_options("old", old, written[0], here=here), *side_options("new", new, written[1], here=here)]
    asked = ["compat", *sides, *words_of(options), "-k", model, "--scenario", "alone"]
    return f"{command} {shlex.join(asked)}"


def _turned(name: str, value: str) -> tuple[str, str]:
    """Return an option, an operator library of one side as that of the other; other NAMEs stay."""
    side, equals, library = value.partition("=")
    if name == LIBRARY and equals and side in OTHER_SIDE:
        return name, f"{OTHER_SIDE[side]}={library}"
    return name, value


NOT_SAVED_AGAIN = "a package of AOTInductor is compiled, and no release saves it again"
NO_OLD_RELEASE = "golden outputs stand in for the old release, and cannot say what it loads"


def asks_for_rollback(facts: Provisioned) -> bool:
    """Whether the run answers it: not where nobody wants it, where the run itself is a rollback, or on one torch."""
    prints = facts.fingerprints
    same = "old" in prints and prints["old"].identity == prints["new"].identity
    return facts.plan.settings.rollback != "off" and facts.plan.direction != "forward" and not same


def export_again(facts: Probed, effects: Effects) -> ExportedByBoth:
    """Return the facts with what the new release writes of each model; nothing of those that it cannot be asked for.

    A given file must be loaded for that: how that went alone is known by then.
    """
    if not asks_for_rollback(facts) or "old" not in effects.environments:
        return ExportedByBoth(**Exported.known(facts), rollback_probes={})
    plan, requests = facts.plan, facts.requests
    models = [model for model in plan.models if model.kind is not ArtifactKind.PACKAGE]
    effects.progress.stage(f"export in {effects.environments['new'].name}, for the rollback", len(models))

    def export(declaration: ModelDeclaration) -> Export:
        if declaration.given is not None:
            done = _save_again(declaration, declaration.given, facts, effects, requests)
        else:
            done = export_model(declaration, facts, effects, requests, "new")
        effects.progress.step(declaration.name)
        return done

    exports = pool.each(export, models, jobs=plan.settings.jobs)
    ways = {
        done.declaration.name: RollbackProbe(export=done) for done in exports if done.outcome is not Outcome.UNSUPPORTED
    }
    return ExportedByBoth(**Exported.known(facts), rollback_probes=ways)


def _save_again(
    declaration: ModelDeclaration, given: GivenArtifact, facts: Probed, effects: Effects, requests: Requests
) -> Export:
    """Return what the new release writes of an artifact that it has loaded."""
    adopted = facts.exports[declaration.name]
    if adopted.artifact is None:
        return adopted
    why_not = known_end(declaration.name, facts, effects)
    if why_not:
        failure = Failure(type="NotTried", message=why_not, phase="")
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=failure)
    kept = replace(declaration, given=replace(given, path=adopted.artifact.path))
    result = effects.runner(requests.resave(kept, "new"))
    (model,) = result.models
    if model.outcome is not Outcome.COMPLETED:
        return Export(declaration=declaration, outcome=model.outcome, failure=model.failure, result=result)
    try:
        artifact = saved_again(adopted.artifact, result)
        write_manifest(declaration, artifact)
    except (CannotRead, OSError) as error:
        failure = Failure(type="Unreadable", message=getattr(error, "text", str(error)), phase="save")
        return Export(declaration=declaration, outcome=Outcome.EXPORT_ERROR, failure=failure, result=result)
    return Export(declaration=declaration, outcome=Outcome.COMPLETED, artifact=artifact, result=result)


def probe_rollbacks(inspected: Inspected, facts: Probed, effects: Effects) -> Inspected:
    """Return each artifact of the new release loaded and called in the old one, if that is asked for.

    The new release's answers judge it: where the model is known to hang there, nothing is asked.
    """
    ways = {
        name: way
        for name, way in inspected.rollback_probes.items()
        if way.export.artifact is not None and not _has_no_answer(name, facts)
    }
    if facts.plan.settings.rollback != "probe" or not ways:
        return inspected
    old, new = effects.environments["old"].name, effects.environments["new"].name
    effects.progress.stage(f"rollback: artifacts of {new} in {old}", len(ways))

    def probe(name: str) -> tuple[str, RollbackProbe]:
        done = _probe(ways[name], facts, effects)
        effects.progress.step(name)
        return name, done

    probed = dict(pool.each(probe, ways, jobs=facts.plan.settings.jobs))
    return replace(inspected, rollback_probes={**inspected.rollback_probes, **probed})


def _has_no_answer(name: str, facts: Probed) -> bool:
    return name in facts.alone and facts.alone[name].models[0].outcome in TOO_DEAR


def _probe(way: RollbackProbe, facts: Provisioned, effects: Effects) -> RollbackProbe:
    """Return what the new release answers, repeated, what the old one does, and the verdict on it."""
    artifact, requests = way.export.artifact, facts.requests
    assert artifact is not None
    new = take_old_answers(way.export, facts, effects, requests, "new", profile=new_profile(facts.plan))
    deadline = deadline_after(facts.plan.settings.deadlines, new.results)
    old = effects.runner(requests.run("old", [artifact], deadline))
    way = replace(way, new=new, old=old)
    return replace(way, verdict=_verdict(artifact.model, way, new, facts, effects))


def _verdict(name: str, way: RollbackProbe, new: OldAnswers, facts: Provisioned, effects: Effects) -> CellVerdict:
    """Return the verdict on the old release, judged by the new one."""
    assert way.old is not None
    return judge_one(
        f"{Cell(name, 'alone').id}/forward",
        export=way.export,
        baseline=new,
        probe=way.old,
        comparison=compare_alone(name, way.old, new, facts),
        names=(effects.environments["new"].name, effects.environments["old"].name),
        fingerprints={"old": facts.fingerprints["new"], "new": facts.fingerprints["old"]},
        effects=effects,
    )


def judge_rollback_probes(inspected: Inspected, facts: Answered, effects: Effects) -> RollbackReport | None:
    """Return the answer; none where nobody asks for it."""
    if not asks_for_rollback(facts):
        return None
    probed = any(way.verdict is not None for way in inspected.rollback_probes.values())
    unread = "" if inspected.predictions else next(iter(inspected.static_notes), "")
    why_not = NO_OLD_RELEASE if "old" not in effects.environments else unread
    if not why_not and all(model.kind is ArtifactKind.PACKAGE for model in facts.plan.models):
        why_not = NOT_SAVED_AGAIN
    left_out = _left_out(inspected, facts, effects)
    return judge_rollback(
        [_answer(name, way, facts, effects) for name, way in inspected.rollback_probes.items() if name not in left_out],
        method="probed" if probed else "read",
        gates=facts.plan.settings.policy.rollback == "fail",
        why_not="" if probed else why_not,
        left_out=left_out,
    )


def _left_out(inspected: Inspected, facts: Answered, effects: Effects) -> dict[str, str]:
    """Return the models that fail in the old release as they are and of whose rollback nothing is known, with why."""
    if "old" not in effects.environments:
        return {}
    name_of_old = effects.environments["old"].name
    found = {}
    for name, way in inspected.rollback_probes.items():
        baseline = facts.baselines.get(name)
        if baseline is None or not fails_already(baseline.results):
            continue
        if _answer(name, way, facts, effects).answer is RollbackAnswer.UNKNOWN:
            found[name] = failure_finding(baseline.results[0], name_of_old, stage="alone").message
    return found


def _answer(name: str, way: RollbackProbe, facts: Answered, effects: Effects) -> ModelRollback:
    export = way.export
    if export.artifact is None:
        reason = f"{effects.environments['new'].name} has not written it: {why_not_made(export)}"
        return rollback_of(name, None, None, why_neither=reason)
    results = way.old.models[:1] if way.old is not None else ()
    prediction = None
    if way.file is not None:
        prediction = predicted(way.file, "old", effects.environments["old"].name, results)
    baseline = facts.baselines.get(name)
    loads = loading(baseline.results if baseline is not None else ()) is PredictedLoad.LOADED
    found = rollback_of(name, prediction, way.verdict, loads_already=loads, why_neither="it was not read")
    return replace(found, artifact=effects.shown(Path(export.artifact.path)))


def with_commands(report: RollbackReport, facts: ExportedByBoth, command: str) -> RollbackReport:
    """Return the report with the command that shows each answer other than yes; ``command`` starts this program."""
    plan = facts.plan
    given = {model.name for model in plan.models if model.given is not None}

    def shown(item: ModelRollback) -> ModelRollback:
        if item.answer is RollbackAnswer.YES or plan.old is None:
            return item
        artifact = facts.rollback_probes[item.model].export.artifact if item.model in given else None
        text = rollback_command(
            command,
            plan.arguments,
            old=plan.new,
            new=plan.old,
            model=item.model,
            artifacts=str(manifest_beside(artifact)) if artifact is not None else "",
            written=(plan.settings.new, plan.settings.old),
            here=str(Path.cwd()),
        )
        return replace(item, command=text)

    return replace(report, models=tuple(shown(item) for item in report.models))
