"""Could its models leave TorchScript as well? Asked beside a run that is judged already, with what it has at hand."""

import shlex
from dataclasses import replace
from pathlib import Path

from harness.checks.migration.facts import Loader, Tried
from harness.checks.migration.migrate import try_all
from harness.checks.migration.obstacles import NO_CONVERTER
from harness.config.command_words import REPEATED, kept, names_a_side, side_options, words_of
from harness.core.errors import GateError
from harness.core.migration import MigrationOutcome, RunMigration
from harness.core.models import ArtifactKind
from harness.probing.facts import Decided, Effects, Provisioned, TakenOut
from harness.probing.known_ends import known_end
from harness.verdict.migration import judge, proof_of, standing


def take_out(facts: Decided, effects: Effects) -> TakenOut:
    """Return the facts with what each artifact comes to outside of TorchScript in the new release, if one asks.

    Artifacts, requests and golden outputs are those of the run. A file that is known to hang while it is loaded is not
    loaded once more.
    """
    judged_by = tuple(effects.runner.finished)
    migration = None
    if facts.plan.settings.migrate:
        try:
            migration = _taken_out(facts, effects)
        except GateError as error:  # the run is judged all the same
            migration = RunMigration(release=effects.environments["new"].name, why_not=f"could not be asked: {error}")
    return TakenOut(**Decided.known(facts), migration=migration, judged_by=judged_by)


def _taken_out(facts: Decided, effects: Effects) -> RunMigration:
    name = effects.environments["new"].name
    models = [model.name for model in facts.plan.models if model.kind is ArtifactKind.TORCHSCRIPT]
    left = tuple(model.name for model in facts.plan.models if model.name not in models)
    loader = Loader(name=facts.plan.settings.new or name, side="new", torch=facts.fingerprints["new"].torch)
    ends = {
        model: said
        for model in models
        if facts.exports[model].artifact is not None and (said := known_end(model, facts, effects))
    }
    loadable = replace(facts, exports={model: facts.exports[model] for model in models if model not in ends})
    tried = {}
    if loadable.exports:
        ways = try_all(loadable, [loader], effects, package=False, standing=standing)
        tried = {one.model: one for one in ways}
    tried |= {
        model: Tried(model=model, release=loader.name, stopped=("ends_process", said)) for model, said in ends.items()
    }
    outcomes = tuple(_outcome(tried[model], effects) for model in models)
    converted = [one for one in outcomes if tried[one.model].each[0].conversion is not None]
    if converted and all(one.kind == NO_CONVERTER for one in converted):
        return RunMigration(release=name, left=left, why_not=f"{name} has {NO_CONVERTER}: {converted[0].advice}")
    return RunMigration(release=name, models=outcomes, left=left)


def _outcome(tried: Tried, effects: Effects) -> MigrationOutcome:
    model, program = judge(tried), tried.each[0].program
    return MigrationOutcome(
        model=model.model,
        outcome=model.outcome,
        kind=model.kind,
        reason=model.reason,
        advice=model.advice,
        evidence=proof_of(model),
        program=effects.shown(Path(program.path)) if program is not None else "",
    )


def with_command(found: RunMigration, facts: Provisioned, command: str) -> RunMigration:
    """Return what was found with the ``migrate`` of the same models; ``command`` starts this program."""
    plan = facts.plan
    if plan.old is None or not found.models:
        return found
    here = str(Path.cwd())
    options = [option for option in kept(plan.arguments, (*REPEATED, "-k"), here=here) if not names_a_side(*option)]
    sides = [
        *side_options("old", plan.old, plan.settings.old, here=here),
        *side_options("new", plan.new, plan.settings.new, here=here),
    ]
    return replace(found, command=f"{command} {shlex.join(['migrate', *sides, *words_of(options)])}")
