"""Probes red cells again with JIT switches off: does it mitigate, does it break a neighbour, what does it cost?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.checks.hang.readings import reading
from harness.checks.latency.benchmark import Time
from harness.checks.latency.budget import total_s
from harness.config.policy import model_budget
from harness.core.diagnosis import Setting
from harness.core.measurement import LatencyMeasurement
from harness.core.models import ArtifactKind
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Mitigation
from harness.machine import pool
from harness.probing.alone import impatiently, patient
from harness.probing.facts import Attributed, Effects, Judged, Mitigated, new_profile
from harness.search.mitigation.price import is_late, is_open, is_slow, timed, why_still_slow
from harness.search.mitigation.trial import (
    Trial,
    profile_with,
    seen_to_fail,
    tried,
    try_settings,
    why_not_mitigable,
    why_unverifiable,
)
from harness.serving.scenarios import INITIALIZATIONS
from harness.serving.settings.differences import NUMERIC
from harness.serving.settings.mitigations import MITIGATIONS, TRIED_BY_DEFAULT, as_before, changes
from harness.verdict.cells import numeric_settings


def mitigate(facts: Attributed, effects: Effects) -> Mitigated:
    red = {
        name: mitigable
        for name, cells in facts.verdicts.items()
        if (mitigable := _mitigable(cells)) and _has_graph(name, facts)
    }
    if not red or "old" not in effects.environments:
        return Mitigated(**Attributed.known(facts), mitigations={})
    work = [(name, cells, mitigation) for name, cells in red.items() for mitigation in _tried_on(name, cells, facts)]
    effects.progress.stage("mitigations of red cells", len(work))

    def attempt(item: tuple[str, tuple[CellVerdict, ...], str]) -> Mitigation:
        mitigation = _attempt(*item, facts, effects)
        effects.progress.step(f"{mitigation.model}: {mitigation.name}")
        return mitigation

    attempted = pool.each(attempt, work, jobs=facts.plan.settings.jobs)
    attempted = _confirmed(attempted, tuple(dict.fromkeys(item.name for item in attempted)), facts, effects)
    by_model = {name: tuple(item for item in attempted if item.model == name) for name in red}
    return Mitigated(**Attributed.known(facts), mitigations=by_model)


def _tried_on(model: str, red: Sequence[CellVerdict], facts: Judged) -> tuple[str, ...]:
    """Return the mitigations that are tried on red cells of one model: first those known to mitigate the like."""
    return tuple(
        dict.fromkeys((*known_mitigations(model, red, facts), *_differing(model, red, facts), *TRIED_BY_DEFAULT))
    )


def _differing(model: str, red: Sequence[CellVerdict], facts: Judged) -> Mapping[str, Setting]:
    """Return the new side's differing settings where numbers differ; only a run can tell whether they are why."""
    if not any(finding.kind in NUMERIC for cell in red if cell.scenario == "alone" for finding in cell.findings):
        return {}
    numeric = numeric_settings(facts, facts.alone[model], facts.exports[model])
    settings = [as_before(setting.name, setting.old) for setting in numeric if setting.differs]
    return {setting.name: setting for setting in settings}


def _setting(name: str, model: str, facts: Judged) -> Setting:
    known = MITIGATIONS.get(name)
    return _differing(model, facts.verdicts[model], facts)[name] if known is None else known


def known_mitigations(model: str, red: Sequence[CellVerdict], facts: Judged) -> tuple[str, ...]:
    """Return the mitigations that red cells' scenarios name, or readings of hangs there, if they change anything."""
    scenarios = [INITIALIZATIONS[cell.scenario] for cell in red if cell.scenario in INITIALIZATIONS]
    of_scenarios = [name for scenario in scenarios for name in scenario.mitigations]
    hung = [facts.initialized[model, cell.scenario].new for cell in red if (model, cell.scenario) in facts.initialized]
    seen = [failure.evidence for item in hung for failure in item.failures if failure.evidence is not None]
    read = [item for evidence in seen if (item := reading(evidence.stacks, evidence.proof)) is not None]
    names = dict.fromkeys((*of_scenarios, *(name for item in read for name in item.mitigations)))
    profile = new_profile(facts.plan)
    return tuple(name for name in names if changes(MITIGATIONS[name], profile))


def try_further(model: str, names: Sequence[str], facts: Mitigated, effects: Effects) -> Mitigated:
    """Return the facts with further mitigations tried, as time allows; None where no switch could mitigate."""
    red = _mitigable(facts.verdicts[model])
    if not red or not names or not _has_graph(model, facts):
        return facts
    effects.progress.stage(f"further mitigations of {model}", len(names))
    attempted = []
    for name in names:
        if is_late(effects):
            break
        attempted.append(_attempt(model, red, name, facts, effects))
        effects.progress.step(name)
    known = facts.mitigations.get(model, ())
    return replace(
        facts, mitigations={**facts.mitigations, model: (*known, *_confirmed(attempted, names, facts, effects))}
    )


def _has_graph(model: str, facts: Judged) -> bool:
    return facts.artifact(model).kind is ArtifactKind.TORCHSCRIPT


def _mitigable(cells: tuple[CellVerdict, ...]) -> tuple[CellVerdict, ...]:
    red = tuple(cell for cell in cells if cell.status is Status.FAIL and cell.decides)
    by_policy = any(cell.judged not in (None, Status.FAIL) for cell in red)  # a switch is tried against what happened
    return () if by_policy or why_not_mitigable(red) else red


def _attempt(
    model: str,
    red: tuple[CellVerdict, ...],
    name: str,
    facts: Attributed,
    effects: Effects,
    *,
    is_faster: bool = False,
) -> Mitigation:
    """Return what becomes of red cells under a switch; slow ones bring up no group until ``is_faster`` is known."""
    settings = [_setting(name, model, facts)]
    if unproven := why_unverifiable(red, facts):
        return replace(tried(red[0], settings), untestable=True, note=unproven)
    trial = Trial(
        cell=red[0],
        deadline=patient(model, facts),
        seen=seen_to_fail(model, "alone", facts),
        initializations=tuple(cell.scenario for cell in red if cell.scenario in INITIALIZATIONS),
        group=is_faster or not any(map(is_slow, red)),
    )
    return try_settings(trial, settings, impatiently(facts), effects)


def _confirmed(
    attempted: Sequence[Mitigation], names: Sequence[str], facts: Attributed, effects: Effects
) -> list[Mitigation]:
    """Return the mitigations with their prices; one that makes a slow cell fast enough is tried beside the others."""

    def beside(item: Mitigation) -> Mitigation:
        red = _mitigable(facts.verdicts[item.model])
        if not item.mitigates or not any(map(is_slow, red)):
            return item
        return replace(_attempt(item.model, red, item.name, facts, effects, is_faster=True), price=item.price)

    return pool.each(beside, _priced(attempted, names, facts, effects), jobs=facts.plan.settings.jobs)


def _priced(attempted: Sequence[Mitigation], names: Sequence[str], facts: Judged, effects: Effects) -> list[Mitigation]:
    """Benchmark mitigations against the old release, within their models' time; only time mitigates slow cells."""
    budget = facts.plan.settings.latency
    if budget.budget == "off":
        return list(attempted)
    priced = list(attempted)
    time = Time(left_s=total_s(budget, len({item.model for item in attempted if item.mitigates})))
    for name in names:
        mitigated = {item.model: index for index, item in enumerate(attempted) if item.name == name and item.mitigates}
        if not mitigated:
            continue
        prices = timed(
            {model: (facts.artifact(model), facts.artifact(model)) for model in mitigated},
            facts,
            effects,
            profile=profile_with(facts, [_setting(name, next(iter(mitigated)), facts)]),
            label=f"price of {name}",
            time=time,
            give_up=[model for model in mitigated if _slow_cell(model, facts) is not None],
        )
        for model, index in mitigated.items():
            priced[index] = _with_price(attempted[index], prices[model], facts)
    return priced


def _slow_cell(model: str, facts: Judged) -> CellVerdict | None:
    cells = (cell for cell in facts.verdicts[model] if cell.status is Status.FAIL)  # what is waived is not gated
    return next((cell for cell in cells if is_slow(cell)), None)


def _with_price(item: Mitigation, measured: LatencyMeasurement, facts: Judged) -> Mitigation:
    if measured.problem:
        return replace(item, mitigates=False, note=f"under load: {measured.problem}")
    item = replace(item, price=measured.steady)
    slow = _slow_cell(item.model, facts)
    why = why_still_slow(slow, measured, facts) if slow is not None else ""
    if not why:
        return item
    return replace(
        item, mitigates=False, untestable=is_open(measured, model_budget(facts.plan, item.model).limit), note=why
    )
