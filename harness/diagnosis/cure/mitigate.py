"""Probes red cells again with JIT switches off: does it cure, does it break a neighbour, what does it cost?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.config.policy import some_gate
from harness.diagnosis.cure.price import TWO_ARMS, is_slow, why_still_slow
from harness.diagnosis.cure.verdict import (
    ONCE,
    UNLESS_RED,
    clean_repeats,
    clean_repeats_alone,
    group_comes_up,
    launcher_under,
    profile_with,
    still,
    unverifiable_cell,
    verdict_under,
)
from harness.domain.measurement import LatencyMeasurement
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict, Mitigation
from harness.latency.benchmark import contest
from harness.probing.alone import deadline_of
from harness.probing.facts import Attributed, Effects, Mitigated
from harness.settings.mitigations import MITIGATIONS, NOT_CURABLE, TRIED_BY_DEFAULT
from harness.startup.scenarios import INITIALIZATIONS
from harness.system import clock, pool


def mitigate(facts: Attributed, effects: Effects) -> Mitigated:
    """Return the facts with the mitigations tried on every red cell that a switch could cure."""
    red = {name: found for name, cells in facts.verdicts.items() if (found := _curable(cells))}
    if not red or "old" not in effects.environments:
        return Mitigated(**Attributed.known(facts), mitigations={})
    work = [(name, cells, switch) for name, cells in red.items() for switch in TRIED_BY_DEFAULT]
    effects.progress.stage("mitigations of red cells", len(work))

    def attempt(item: tuple[str, tuple[CellVerdict, ...], str]) -> Mitigation:
        tried = _attempt(*item, facts, effects)
        effects.progress.step(f"{tried.model}: {tried.name}")
        return tried

    tried = pool.each(attempt, work, jobs=facts.plan.settings.jobs)
    tried = _priced(tried, TRIED_BY_DEFAULT, facts, effects)
    by_model = {name: tuple(item for item in tried if item.model == name) for name in red}
    return Mitigated(**Attributed.known(facts), mitigations=by_model)


def try_further(model: str, names: Sequence[str], facts: Mitigated, effects: Effects) -> Mitigated:
    """Return the facts with further mitigations tried on one model, as many as there is time for.

    None where no switch could cure it.
    """
    red = _curable(facts.verdicts[model])
    if not red or not names:
        return facts
    effects.progress.stage(f"further mitigations of {model}", len(names))
    tried = []
    for name in names:
        if effects.end_ns is not None and clock.monotonic_ns() > effects.end_ns:
            break
        tried.append(_attempt(model, red, name, facts, effects))
        effects.progress.step(name)
    tried = _priced(tried, names, facts, effects)
    known = facts.mitigations.get(model, ())
    return replace(facts, mitigations={**facts.mitigations, model: (*known, *tried)})


def _curable(cells: tuple[CellVerdict, ...]) -> tuple[CellVerdict, ...]:
    """Return the red cells of a model; none if one of them is past curing."""
    red = tuple(cell for cell in cells if cell.status is Status.FAIL and cell.decides)
    by_policy = any(cell.judged not in (None, Status.FAIL) for cell in red)  # a switch is tried against what happened
    return () if by_policy or any(finding.kind in NOT_CURABLE for cell in red for finding in cell.findings) else red


def _attempt(model: str, red: tuple[CellVerdict, ...], name: str, facts: Attributed, effects: Effects) -> Mitigation:
    """Probe the model alone, and its server group in every initialization in which it failed, under the switch."""
    settings = [MITIGATIONS[name]]
    tried = Mitigation(cell=red[0].cell, model=model, name=name, switches=MITIGATIONS[name].switches, cures=False)
    initializations = [cell for cell in red if cell.scenario in INITIALIZATIONS]
    unproven = next((note for cell in initializations if (note := unverifiable_cell(cell, facts))), "")
    if unproven:
        return replace(tried, note=unproven)
    problem = _alone_under(model, red[0], name, facts, effects)
    if problem:
        return replace(tried, note=problem)
    notes = []
    for scenario in [cell.scenario for cell in initializations] or [UNLESS_RED]:
        repeats, note = clean_repeats(model, scenario, facts) if initializations else (1, "")
        launcher = launcher_under(scenario, settings, facts, effects)
        broken, sick = group_comes_up(model, launcher, repeats, facts, label=name)
        if sick or broken:
            return replace(tried, breaks=broken, note=sick or f"breaks {', '.join(broken)}")
        notes += [note] if note else []
    return replace(tried, cures=True, note="; ".join(notes))


def _alone_under(model: str, cell: CellVerdict, name: str, facts: Attributed, effects: Effects) -> str:
    """Return why the model alone is not well under the switch, each time where it is red alone; empty if it is."""
    declaration = next(item for item in facts.plan.models if item.name == model)
    deadline, settings = deadline_of(declaration, facts), [MITIGATIONS[name]]
    repeats, _ = clean_repeats_alone(ONCE) if cell.scenario == "alone" else (1, "")
    for repeat in range(repeats):
        alone, without_effect = verdict_under(
            model, cell.cell, settings, facts, effects, deadline=deadline, repeat=repeat
        )
        if without_effect:
            return without_effect
        if alone.status is not Status.PASS:
            return still(alone, cell)
    return ""


def _priced(tried: list[Mitigation], names: Sequence[str], facts: Attributed, effects: Effects) -> list[Mitigation]:
    """Benchmark what a switch cured, under the switch, against the old release; a slow cell is cured only by time."""
    budget = facts.plan.settings.latency
    if budget.budget == "off":
        return tried
    priced = list(tried)
    for name in names:
        cured = {item.model: index for index, item in enumerate(tried) if item.name == name and item.cures}
        if not cured:
            continue
        prices = _prices(list(cured), name, facts, effects)
        for model, index in cured.items():
            priced[index] = _with_price(tried[index], prices[model], facts)
    return priced


def _prices(models: list[str], name: str, facts: Attributed, effects: Effects) -> Mapping[str, LatencyMeasurement]:
    return contest(
        {model: (facts.artifact(model), facts.artifact(model)) for model in models},
        facts,
        effects,
        profile=profile_with(facts, [MITIGATIONS[name]]),
        arms=TWO_ARMS,
        label=f"price of {name}",
        confirm=False,
        extras=some_gate(facts.plan),
    )


def _with_price(item: Mitigation, measured: LatencyMeasurement, facts: Attributed) -> Mitigation:
    """Return the mitigation with its price; where the cell was slow, it cures only if nothing about it is slow now."""
    if measured.problem:
        return replace(item, cures=False, note=f"under load: {measured.problem}")
    item = replace(item, price=measured.steady)
    cells = (cell for cell in facts.verdicts[item.model] if cell.status is Status.FAIL)  # what is waived is not gated
    slow = next((cell for cell in cells if is_slow(cell)), None)
    why = why_still_slow(slow, measured, facts) if slow is not None else ""
    return replace(item, cures=False, note=why) if why else item
