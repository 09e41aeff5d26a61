"""Judges every cell of a run: probes and comparisons become verdicts, under the policy and the waivers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from harness.artifacts.adopted import has_changed
from harness.artifacts.tensors.outputs import changes_between_calls
from harness.checks.startup.readiness import slow_starts
from harness.config.policy import model_policy
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import Attribution
from harness.core.findings import DISTURBANCE, status_of
from harness.core.models import Artifact, ModelDeclaration
from harness.core.outcome import UNCLEAR, Outcome, Status
from harness.core.plan import Cell
from harness.core.probe import ProbeResult
from harness.core.text import error_words, joined
from harness.core.verdict import CellVerdict, Finding
from harness.probing.facts import (
    Answered,
    Attributed,
    Compared,
    Effects,
    Export,
    Failing,
    Initialized,
    Judged,
    Provisioned,
    ScenarioResult,
    Started,
    Timed,
)
from harness.serving.scenarios import INITIALIZATIONS
from harness.serving.settings.differences import Setting
from harness.verdict.alone import judge_one, not_made, settings_between, unsupported_words
from harness.verdict.enforce import WaiverContext, enforce, judge_timed, settled
from harness.verdict.inputs import changed, guess_of, with_changed_operators, with_subjects, with_what_requests_miss
from harness.verdict.latency import may_be_taken_off
from harness.verdict.prediction import refused_file, refused_operators
from harness.verdict.startup import (
    Initialization,
    InitializationResult,
    judge_initialization,
    together,
)
from harness.verdict.waivers.apply import ran_under

AnyJudged = TypeVar("AnyJudged", bound=Judged)
Attributions = Mapping[tuple[str, str], Attribution]
"""(model, scenario) -> what its failure needs in order to show, and how often it does in either release."""
NOTHING_ASKED: Attributions = MappingProxyType({})


def waiver_context(facts: Provisioned, effects: Effects) -> WaiverContext:
    return WaiverContext(waivers=effects.waivers, ran=ran_under(facts.plan, facts.pair), today=effects.today)


def enforced(cell: CellVerdict, facts: Compared, effects: Effects) -> CellVerdict:
    return enforce(
        cell,
        model_policy(facts.plan, cell.model),
        waiver_context(facts, effects),
        comparison=facts.comparisons.get((cell.model, cell.scenario)),
        guessed=guess_of(facts.exports[cell.model].artifact),
    )


def judge_attributed(facts: Attributed, effects: Effects) -> Attributed:
    if not facts.attributions:
        return facts
    return replace(facts, verdicts=judge_cells(facts, effects, facts.attributions).verdicts)


def judge_cells(facts: Timed, effects: Effects, attributions: Attributions = NOTHING_ASKED) -> Judged:
    verdicts = {}
    slow = slow_starts(facts)
    for model in facts.plan.models:
        cells = _with_slow_starts(_cells(model, facts, effects, attributions), slow)
        artifact = facts.exports[model.name].artifact
        operators = () if artifact is None else changed(artifact, facts.pair, draws=facts.draws(model.name))
        refused = refused_operators(facts.predictions.get(model.name))
        cells = tuple(with_subjects(cell, facts.pair, operators, refused) for cell in cells)
        verdicts[model.name] = tuple(enforced(cell, facts, effects) for cell in cells)
    context = waiver_context(facts, effects)
    return Judged(**Timed.known(facts), verdicts=settled(verdicts, facts.plan.settings.policy, context))


def _with_slow_starts(cells: Sequence[CellVerdict], slow: Mapping[tuple[str, str], Finding]) -> tuple[CellVerdict, ...]:
    return tuple(
        replace(cell, findings=(*cell.findings, slow[cell.model, cell.scenario]))
        if (cell.model, cell.scenario) in slow
        else cell
        for cell in cells
    )


def _cells(model: ModelDeclaration, facts: Timed, effects: Effects, attributions: Attributions) -> list[CellVerdict]:
    plan = facts.plan
    blocked = _not_exported(model, facts, effects)
    if blocked is not None:
        return [blocked]
    alone = _alone(model, facts, effects, attributions.get((model.name, "alone")))
    cells = [_with_what_was_not_asked(alone, facts)]
    for scenario in plan.scenarios:
        item = facts.initialized.get((model.name, scenario))
        if item is not None:  # a model that fails alone already is kept out of its server group
            comparison = facts.comparisons.get((model.name, scenario))
            cells.append(
                judge_initialized(
                    scenario,
                    alone,
                    item,
                    comparison=comparison,
                    draws=facts.draws(model.name),
                    attribution=attributions.get((model.name, scenario)),
                    facts=facts,
                    effects=effects,
                )
            )
    if model.name in facts.latency:
        policy = model_policy(plan, model.name)
        budget = plan.settings.latency
        divided = may_be_taken_off(facts.common, budget, plan.settings.policy)
        cells.append(judge_timed(model.name, facts.latency[model.name], budget, policy, divided=divided))
    return cells


def _with_what_was_not_asked(alone: CellVerdict, facts: Started) -> CellVerdict:
    left_out = [
        INITIALIZATIONS[name].words
        for name in facts.plan.scenarios
        if name in INITIALIZATIONS and (alone.model, name) not in facts.initialized
    ]
    if alone.status is not Status.SAME_FAIL or not left_out:
        return alone
    return replace(
        alone, note=joined(alone.note, f"says nothing of {', '.join(left_out)}: not asked of what fails alone")
    )


def judge_initialized(
    scenario: str,
    alone: CellVerdict,
    item: Initialized,
    *,
    comparison: OutputComparison | None,
    draws: bool = False,
    attribution: Attribution | None = None,
    facts: Answered,
    effects: Effects,
) -> CellVerdict:
    """Return the verdict on one model in one initialization of its server group, over all rounds.

    Each way to fail is judged by itself, and so is what it answered where it came through. ``attribution``: what was
    asked about its failure; None where nothing was.
    """
    ways: list[Failing | None] = list(item.new.failures)
    if item.new.answers or not ways:
        ways.append(None)
    baseline = facts.baselines.get(alone.model)
    judged = []
    for failing in ways:
        directory = item.new.directory if failing is None else failing.directory
        way = Initialization(
            cell=Cell(alone.model, scenario).id,
            scenario=INITIALIZATIONS[scenario],
            alone=alone,
            old_alone=baseline.results if baseline is not None else (),
            new=replace(_initialization_result(item.new, failing), evidence=effects.evidence(directory)),
            old=_old_result(item.old, failing),
            new_name=effects.environments["new"].name,
            comparison=comparison,
            old_differs=item.old_differs,
            draws=draws and item.new.threads > 1,
            keeps_state=baseline is not None and baseline.golden is not None and changes_between_calls(baseline.golden),
            attribution=attribution,
        )
        judged.append(judge_initialization(way))
    return replace(together(judged), rounds=item.new.rounds, failed_rounds=item.new.failed_rounds)


def _initialization_result(scenario: ScenarioResult, failing: Failing | None) -> InitializationResult:
    """Return a release's part in one way to fail; without one, its part in the rounds that it completed."""
    source = scenario if failing is None else failing
    result = source.result
    if failing is None and scenario.answers:
        result = replace(result.ended(Outcome.COMPLETED), failed_requests=result.failed_requests)
    return InitializationResult(
        result=result,
        rounds=scenario.rounds,
        failed_rounds=0 if failing is None else failing.rounds,
        graph=scenario.graph,
        served_otherwise=scenario.served_otherwise,
        exit_detail=source.exit_detail,
        seen=source.evidence,
    )


def _old_result(old: ScenarioResult | None, failing: Failing | None) -> InitializationResult | None:
    """Return the old release's same way to fail, else its first; None where no round of it says anything."""
    if old is None or old.rounds == 0:
        return None
    if failing is None:
        return _initialization_result(old, None)
    clear = [failure for failure in old.failures if failure.result.outcome not in UNCLEAR]
    clear.sort(key=lambda failure: failure.result.way != failing.result.way)
    return _initialization_result(old, next(iter(clear), None))


def _alone(model: ModelDeclaration, facts: Compared, effects: Effects, asked: Attribution | None) -> CellVerdict:
    probe = facts.alone[model.name]
    old = effects.environments.get("old")
    verdict = judge_one(
        Cell(model.name, "alone").id,
        export=facts.exports[model.name],
        baseline=facts.baselines[model.name],
        probe=probe,
        comparison=facts.comparisons.get((model.name, "alone")),
        names=(old.name if old is not None else "the golden record", effects.environments["new"].name),
        fingerprints=facts.fingerprints,
        effects=effects,
        rates=asked.rates if asked is not None else None,
    )
    artifact, draws = facts.artifact(model.name), facts.draws(model.name)
    verdict = with_changed_operators(verdict, artifact, facts.pair, draws=draws)
    file = facts.predictions.get(model.name)
    known = changed(artifact, facts.pair, draws=draws)
    verdict = with_what_requests_miss(verdict, artifact, file.facts if file is not None else None, known)
    uncovered = facts.exports[model.name].uncovered
    if uncovered:
        message = f"declares that it covers {', '.join(uncovered)}, and the artifact does not contain it"
        finding = Finding(kind="covers", message=message, evidence=effects.evidence(probe.directory))
        findings = (*verdict.findings, finding)
        status = status_of(findings) if verdict.status is Status.PASS else verdict.status
        verdict = replace(verdict, findings=findings, status=status)
    return verdict


def numeric_settings(facts: Answered, probe: ProbeResult | None, export: Export | None) -> tuple[Setting, ...]:
    baseline = facts.baselines.get(export.declaration.name) if export is not None else None
    return settings_between(export, baseline, probe, facts.fingerprints)


def without_changed_bytes(facts: AnyJudged, effects: Effects) -> AnyJudged:
    """Withdraw verdicts on models whose files changed since they were taken over; asked after the last probe."""
    changed = {
        model.name: (_changed_meanwhile(model, artifact, effects),)
        for model in facts.plan.models
        if (artifact := facts.exports[model.name].artifact) is not None and has_changed(artifact)
    }
    return replace(facts, verdicts={**facts.verdicts, **changed})


def _not_exported(model: ModelDeclaration, facts: Timed, effects: Effects) -> CellVerdict | None:
    export = facts.exports[model.name]
    if export.artifact is not None:
        return None
    status, kind = Status.INCONCLUSIVE, "export_error"
    message = not_made(export, effects.environments.get("old", effects.environments["new"]).name)
    if export.outcome is Outcome.UNSUPPORTED:
        status, kind, message = Status.UNSUPPORTED, "not_measured", unsupported_words(export)
        refused = refused_file(facts.predictions.get(model.name))
        if refused:  # on whatever device
            release = effects.environments["new"].name
            status, kind, message = Status.FAIL, "load_error", f"will not load in {release}: {refused} ({message})"
    evidence = effects.evidence(export.result.directory) if export.result else ""
    error, detail = "", {}
    if export.failure is not None:
        error = error_words(export.failure)
        if export.failure.disturbance is not None:
            detail = {DISTURBANCE: export.failure.disturbance.value}
    return CellVerdict(
        cell=Cell(model.name, "alone").id,
        model=model.name,
        scenario="alone",
        status=status,
        findings=(Finding(kind=kind, message=message, evidence=evidence, error=error, detail=detail),),
    )


def _changed_meanwhile(model: ModelDeclaration, artifact: Artifact, effects: Effects) -> CellVerdict:
    message = f"{effects.shown(Path(artifact.path))} or its inputs were written to while the run was using them"
    return CellVerdict(
        cell=Cell(model.name, "alone").id,
        model=model.name,
        scenario="alone",
        status=Status.INCONCLUSIVE,
        findings=(Finding(kind="not_measured", message=message, subject="written to meanwhile"),),
    )
