"""Probes the planted defects: a gate that misses them may not judge."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from harness.checks.outputs.compare import compare_answers
from harness.config.policy import model_budget, model_policy
from harness.core.hang import HangKind
from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell
from harness.core.verdict import CellVerdict, Finding, PlantedDefectResult
from harness.machine import pool
from harness.probing.alone import probe_model
from harness.probing.facts import Answered, Effects, Provisioned, Timed
from harness.probing.requests import with_own_loading
from harness.probing.verification import legible_outputs
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.cell import judge_alone
from harness.verdict.latency import judge_latency

Result = TypeVar("Result")

BESIDE = 3
"""Planted defects at a time, beside the probes of models."""


def judge_planted_defect(declaration: ModelDeclaration, verdict: CellVerdict) -> PlantedDefectResult:
    """Return whether the defect came out as a FAIL with a finding of the expected kind."""
    assert declaration.planted_defect is not None
    expected = declaration.planted_defect.expect
    reported = verdict.kinds
    caught = verdict.status is Status.FAIL and expected in reported
    note = "" if caught else f"came out {verdict.status} {_messages(verdict)}".strip()
    return PlantedDefectResult(name=declaration.name, expected=expected, reported=reported, caught=caught, note=note)


def judge_initialized_planted_defect(
    declaration: ModelDeclaration, verdict: CellVerdict, proven: HangKind | None
) -> PlantedDefectResult:
    """Return whether a defect of initialization was reported; a hang there is a deadlock, and must be proven as one.

    Args:
        proven: what kind of hang the evidence shows, None without a proof.
    """
    result = judge_planted_defect(declaration, verdict)
    if not result.caught or result.expected != Outcome.HANG or proven is HangKind.BLOCKED:
        return result
    found = proven.value if proven is not None else "without a proof"
    return replace(result, caught=False, note=f"came out as a hang {found}, not {HangKind.BLOCKED.value}")


def judge_twin(declaration: ModelDeclaration, verdict: CellVerdict) -> PlantedDefectResult:
    """Return whether the healthy twin was left alone."""
    healthy = verdict.status is Status.PASS or (verdict.scenario == "latency" and verdict.status is not Status.FAIL)
    note = "" if healthy else f"came out {verdict.status} {_messages(verdict)}".strip()
    return PlantedDefectResult(name=declaration.name, expected="", reported=verdict.kinds, caught=healthy, note=note)


def _messages(verdict: CellVerdict) -> str:
    messages: Sequence[str] = [finding.message for finding in verdict.findings]
    return f"({messages[0]})" if messages else ""


def beside_planted_defects(
    work: Callable[[], Result], facts: Answered, effects: Effects
) -> tuple[Result, tuple[PlantedDefectResult, ...]]:
    """Return what ``work`` does, and the planted defects that a probe alone can decide: hangs only wait meanwhile."""
    return pool.both(work, lambda: probe_planted_defects(facts, effects))


def probe_planted_defects(facts: Answered, effects: Effects) -> tuple[PlantedDefectResult, ...]:
    """Return a ``PlantedDefectResult`` for each defect and twin that a probe alone can decide."""
    elsewhere = timed_names(facts) | initialized_names(facts)
    declarations = [declaration for declaration in facts.plan.planted_defects if declaration.name not in elsewhere]

    def probe(declaration: ModelDeclaration) -> PlantedDefectResult:
        verdict = _verdict(declaration, facts, effects)
        judge = judge_twin if declaration.planted_defect is None else judge_planted_defect
        return judge(declaration, verdict)

    # Hangs first: they only wait for their deadline, while the others work.
    declarations.sort(key=lambda item: item.planted_defect is None or item.planted_defect.deadline_s is None)
    results = pool.each(probe, declarations, jobs=BESIDE)
    note_missed(results, effects)
    return tuple(results)


def note_missed(results: Iterable[PlantedDefectResult], effects: Effects) -> None:
    """Say at once which planted defects were missed: the run cannot become green any more."""
    for result in results:
        if not result.caught:
            expected = result.expected or "no finding"
            effects.progress.note(f"planted defect {result.name} was not seen: expected {expected}, {result.note}")


def judge_timed_planted_defects(facts: Timed) -> tuple[PlantedDefectResult, ...]:
    """Return the planted defects that only the benchmark can decide; none where no benchmark was run.

    One that should have been timed and was not (it did not export, say) is missed.
    """
    timed = timed_names(facts) if facts.latency else set()
    results = []
    for declaration in facts.plan.planted_defects:
        if declaration.name not in timed:
            continue
        if declaration.name not in facts.latency:
            expected = declaration.planted_defect.expect if declaration.planted_defect is not None else ""
            results.append(
                PlantedDefectResult(
                    name=declaration.name, expected=expected, reported=(), caught=False, note="was not timed"
                )
            )
            continue
        policy = model_policy(facts.plan, declaration.name).settings
        budget = model_budget(facts.plan, declaration.name)
        verdict = judge_latency(declaration.name, facts.latency[declaration.name], budget, policy)
        judge = judge_twin if declaration.planted_defect is None else judge_planted_defect
        results.append(judge(declaration, verdict))
    return tuple(results)


def timed_names(facts: Provisioned) -> set[str]:
    """Return the names of planted defects (and their twins) that are decided by the benchmark."""
    marks = {declaration.name: declaration.planted_defect for declaration in facts.plan.planted_defects}
    slow = {name: mark.twin for name, mark in marks.items() if mark is not None and mark.scenario == "latency"}
    return set(slow) | set(slow.values())


def initialized_names(facts: Provisioned) -> set[str]:
    """Return the names of planted defects that only an initialization shows; their twins are probed alone as well."""
    marks = {declaration.name: declaration.planted_defect for declaration in facts.plan.planted_defects}
    return {name for name, mark in marks.items() if mark is not None and mark.scenario in INITIALIZATIONS}


def not_exported(name: str, twin: str, scenario: str, facts: Answered) -> CellVerdict | None:
    """Return the verdict on a planted defect or twin without an artifact, or whose twin has nothing to judge it by."""
    export = facts.exports[name]
    if export.artifact is not None and twin in facts.baselines:
        return None
    why = export.failure.first_line if export.failure is not None else export.outcome.value
    finding = Finding(kind="export_error", message=f"not exported: {why}")
    cell = Cell(name, scenario).id
    return CellVerdict(cell=cell, model=name, scenario=scenario, status=Status.INCONCLUSIVE, findings=(finding,))


def _verdict(declaration: ModelDeclaration, facts: Answered, effects: Effects) -> CellVerdict:
    twin = declaration.name if declaration.planted_defect is None else declaration.planted_defect.twin
    broken = not_exported(declaration.name, twin, "alone", facts)
    if broken is not None:
        return broken
    switches = _switches(declaration, facts)
    profile = replace(with_own_loading(facts.plan.settings.profile), switches=switches)
    result = probe_model(declaration, facts, effects, profile)
    comparison = None
    if result.models[0].outcome is Outcome.COMPLETED:
        comparison = compare_answers(
            declaration.name, legible_outputs(result.directory, declaration.name), facts.baselines[twin], facts
        )
    return judge_alone(
        Cell(declaration.name, "alone").id,
        old=(),
        new=result.models[0],
        comparison=comparison,
        old_name="",
        new_name=effects.environments["new"].name,
        exit_detail=result.exit_detail,
    )


def _switches(declaration: ModelDeclaration, facts: Provisioned) -> dict[str, bool | int]:
    """Return a planted defect's own switches; its twin runs under the same ones."""
    marks = [declaration.planted_defect] if declaration.planted_defect is not None else []
    others = (
        other.planted_defect for other in facts.plan.planted_defects if other.name not in initialized_names(facts)
    )
    marks += [other for other in others if other is not None and other.twin == declaration.name]
    switches: dict[str, bool | int] = {}
    for mark in marks:
        if mark is not None:
            switches.update(mark.switches)
    return switches
