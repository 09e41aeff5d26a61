"""Can we roll back? What the new release writes is read for the old one, and probed there where that is asked for."""

from dataclasses import replace
from pathlib import Path

from harness.archive.limits import CannotRead
from harness.domain.fixture import GivenArtifact, ModelDeclaration
from harness.domain.foretold import Answer, ModelRollback, RollbackReport
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure
from harness.domain.verdict import CellVerdict
from harness.planning.way_back import way_back_command
from harness.policy import foretold
from harness.runtime import adoption, pool
from harness.runtime.saved_manifest import manifest_beside, write_manifest
from harness.stages.alone_verdict import judge_one, why_not_made
from harness.stages.baseline import take_baseline
from harness.stages.compare import comparable, compare_model
from harness.stages.export import export_model
from harness.stages.facts import Baseline, Effects, Export, Facts, WayBack, new_profile
from harness.stages.requests import Requests, deadline_after

# A file that ended its process so in one release is not loaded in the other only to be saved again.
TOO_DEAR = (Outcome.HANG, Outcome.OUT_OF_MEMORY)
NO_OLD_RELEASE = "golden outputs stand in for the old release, and cannot say what it loads"


def asks_for_the_way_back(facts: Facts) -> bool:
    """Whether the run answers it: not where nobody wants it, where the run itself is a rollback, or on one torch."""
    prints = facts.fingerprints
    same = "old" in prints and prints["old"].identity == prints["new"].identity
    return facts.plan.settings.rollback != "off" and facts.plan.direction != "forward" and not same


def export_again(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with what the new release writes of each model; nothing of those that it cannot be asked for."""
    if not asks_for_the_way_back(facts) or "old" not in effects.environments:
        return facts
    plan, requests = facts.plan, facts.requests
    effects.progress.stage(f"export in {effects.environments['new'].name}, for the rollback", len(plan.models))

    def export(declaration: ModelDeclaration) -> Export:
        if declaration.given is not None:
            done = _save_again(declaration, declaration.given, facts, effects, requests)
        else:
            done = export_model(declaration, facts, effects, requests, "new")
        effects.progress.step(declaration.name)
        return done

    exports = pool.each(export, plan.models, jobs=plan.settings.jobs)
    ways = {done.declaration.name: WayBack(export=done) for done in exports if done.outcome is not Outcome.UNSUPPORTED}
    return replace(facts, ways_back=ways)


def _save_again(
    declaration: ModelDeclaration, given: GivenArtifact, facts: Facts, effects: Effects, requests: Requests
) -> Export:
    """Return what the new release writes of an artifact that it has loaded."""
    adopted = facts.exports[declaration.name]
    if adopted.artifact is None:
        return adopted
    before = adopted.result.models[0].outcome if adopted.result is not None else Outcome.NOT_RUN
    if before in TOO_DEAR:
        message = f"not tried: {before.value.replace('_', ' ')} when {effects.environments['old'].name} took it over"
        failure = Failure(type="NotTried", message=message, phase="")
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=failure)
    kept = replace(declaration, given=replace(given, path=adopted.artifact.path))
    result = effects.runner(requests.resave(kept, "new"))
    (model,) = result.models
    if model.outcome is not Outcome.COMPLETED:
        return Export(declaration=declaration, outcome=model.outcome, failure=model.failure, result=result)
    try:
        artifact = adoption.saved_again(adopted.artifact, result)
        write_manifest(declaration, artifact)
    except (CannotRead, OSError) as error:
        failure = Failure(type="Unreadable", message=getattr(error, "text", str(error)), phase="save")
        return Export(declaration=declaration, outcome=Outcome.EXPORT_ERROR, failure=failure, result=result)
    return Export(declaration=declaration, outcome=Outcome.COMPLETED, artifact=artifact, result=result)


def probe_ways_back(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with each artifact of the new release loaded and called in the old one, if that is asked for."""
    ways = {name: way for name, way in facts.ways_back.items() if way.export.artifact is not None}
    if facts.plan.settings.rollback != "probe" or not ways:
        return facts
    old, new = effects.environments["old"].name, effects.environments["new"].name
    effects.progress.stage(f"rollback: artifacts of {new} in {old}", len(ways))

    def probe(name: str) -> tuple[str, WayBack]:
        done = _probe(ways[name], facts, effects)
        effects.progress.step(name)
        return name, done

    probed = dict(pool.each(probe, ways, jobs=facts.plan.settings.jobs))
    return replace(facts, ways_back={**facts.ways_back, **probed})


def _probe(way: WayBack, facts: Facts, effects: Effects) -> WayBack:
    """Return what the new release answers, repeated, what the old one does, and the verdict on it."""
    artifact, requests = way.export.artifact, facts.requests
    assert artifact is not None
    new = take_baseline(way.export, facts, effects, requests, "new", profile=new_profile(facts.plan))
    deadline = deadline_after(facts.plan.settings.deadlines, new.results)
    old = effects.runner(requests.run("old", [artifact], deadline))
    way = replace(way, new=new, old=old)
    return replace(way, verdict=_verdict(artifact.model, way, new, facts, effects))


def _verdict(name: str, way: WayBack, new: Baseline, facts: Facts, effects: Effects) -> CellVerdict:
    """Return the verdict on the old release, judged by the new one."""
    assert way.old is not None
    result = way.old.models[0]
    return judge_one(
        replace(facts.plan.cell(name, "alone"), direction="forward").id,
        export=way.export,
        baseline=new,
        probe=way.old,
        comparison=compare_model(name, "alone", way.old.directory, new, facts) if comparable(result, new) else None,
        names=(effects.environments["new"].name, effects.environments["old"].name),
        fingerprints={"old": facts.fingerprints["new"], "new": facts.fingerprints["old"]},
        effects=effects,
    )


def judge_ways_back(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with the answer; none where nobody asks for it."""
    if not asks_for_the_way_back(facts):
        return facts
    probed = any(way.verdict is not None for way in facts.ways_back.values())
    why_not = NO_OLD_RELEASE if "old" not in effects.environments else next(iter(facts.static_notes), "")
    left_out = _left_out(facts, effects)
    report = foretold.judge_rollback(
        [_answer(name, way, effects) for name, way in facts.ways_back.items() if name not in left_out],
        method="probed" if probed else "read",
        gates=facts.plan.settings.policy.rollback == "fail",
        why_not="" if probed else why_not,
        left_out=left_out,
    )
    return replace(facts, rollback=report)


def _left_out(facts: Facts, effects: Effects) -> dict[str, str]:
    """Return the models that fail in the old release as they are and of whose way back nothing is known, with why."""
    if "old" not in effects.environments:
        return {}
    name_of_old = effects.environments["old"].name
    found = {}
    for name, way in facts.ways_back.items():
        baseline = facts.baselines.get(name)
        why = foretold.fails_already(baseline.results, name_of_old) if baseline is not None else ""
        if why and _answer(name, way, effects).answer is Answer.UNKNOWN:
            found[name] = why
    return found


def _answer(name: str, way: WayBack, effects: Effects) -> ModelRollback:
    export = way.export
    if export.artifact is None:
        reason = f"{effects.environments['new'].name} has not written it: {why_not_made(export)}"
        return foretold.way_back(name, None, None, why_neither=reason)
    results = way.old.models[:1] if way.old is not None else ()
    told = None
    if way.file is not None:
        told = foretold.foretold(way.file, "old", effects.environments["old"].name, results)
    found = foretold.way_back(name, told, way.verdict, why_neither="it was not read")
    return replace(found, artifact=effects.shown(Path(export.artifact.path)))


def with_commands(report: RollbackReport, facts: Facts, command: str) -> RollbackReport:
    """Return the report with the command that shows each answer other than yes; ``command`` starts this program."""
    plan = facts.plan
    given = {model.name for model in plan.models if model.given is not None}

    def shown(item: ModelRollback) -> ModelRollback:
        if item.answer is Answer.YES or plan.old is None:
            return item
        artifact = facts.ways_back[item.model].export.artifact if item.model in given else None
        text = way_back_command(
            command,
            plan.arguments,
            old=plan.new,
            new=plan.old,
            model=item.model,
            artifacts=str(manifest_beside(artifact)) if artifact is not None else "",
            written=(plan.settings.new, plan.settings.old),
        )
        return replace(item, command=text)

    return replace(report, models=tuple(shown(item) for item in report.models))
