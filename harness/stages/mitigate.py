"""Probes red cells again with JIT switches off: does it cure, does it break a neighbour, what does it cost?"""

from collections.abc import Mapping
from dataclasses import replace

from harness.domain.measurement import LatencyMeasurement
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import Deadline, ServingProfile
from harness.domain.verdict import CellVerdict, Mitigation
from harness.planning.scenarios import INITIALIZATIONS
from harness.policy.attribution import unverifiable
from harness.policy.cells import judge_alone
from harness.policy.latency import judge_latency
from harness.policy.mitigations import MITIGATIONS, TRIED_BY_DEFAULT
from harness.policy.speed import NOT_REGRESSED, REGRESSED, classify
from harness.runtime import pool
from harness.search.repeated import chance_of_missing, repeats_needed
from harness.stages.alone import deadline_of
from harness.stages.compare import compare_model, worst_comparison
from harness.stages.duel import contest
from harness.stages.facts import Effects, Facts, new_profile
from harness.stages.initialize import initialize_together, takes_part, works_alone
from harness.stages.judge import judge_initialized
from harness.stages.launch import Launcher

# The outcome of these does not depend on how the graph is executed.
NOT_CURABLE = ("load_error", "structure", "dtype", "export_error")
# What shows only beside other models may be chance: one clean run of the group is no cure. The failure's rate asks for
# more, and this many are the budget.
CONCURRENT_REPEATS = 3
CLEAN_RUNS_AT_MOST = 20
# Where no initialization is red, a switch must still not break one.
UNLESS_RED = "concurrent"
PRICE_ARMS = {"old": "old", "new": "new"}


def mitigate(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with the mitigations tried on every red cell that a switch could cure."""
    red = {name: found for name, cells in facts.verdicts.items() if (found := _curable(cells))}
    if not red or "old" not in effects.environments:
        return facts
    work = [(name, cells, switch) for name, cells in red.items() for switch in TRIED_BY_DEFAULT]
    effects.progress.stage("mitigations of red cells", len(work))

    def attempt(item: tuple[str, tuple[CellVerdict, ...], str]) -> Mitigation:
        tried = _attempt(*item, facts, effects)
        effects.progress.step(f"{tried.model}: {tried.name}")
        return tried

    tried = pool.each(attempt, work, jobs=facts.plan.settings.jobs)
    tried = _priced(tried, facts, effects)
    return replace(facts, mitigations={name: tuple(item for item in tried if item.model == name) for name in red})


def _curable(cells: tuple[CellVerdict, ...]) -> tuple[CellVerdict, ...]:
    """Return the red cells of a model; none if one of them is past curing."""
    red = tuple(cell for cell in cells if cell.status is Status.FAIL and cell.decides)
    return () if any(finding.kind in NOT_CURABLE for cell in red for finding in cell.findings) else red


def profile_with(facts: Facts, name: str) -> ServingProfile:
    """Return the new side's profile with mitigation ``name`` on top."""
    profile = new_profile(facts.plan)
    return replace(profile, switches={**profile.switches, **MITIGATIONS[name]})


def _attempt(model: str, red: tuple[CellVerdict, ...], name: str, facts: Facts, effects: Effects) -> Mitigation:
    """Probe the model alone, and its server group in every initialization in which it failed, under the switch."""
    tried = Mitigation(cell=red[0].cell, model=model, name=name, switches=MITIGATIONS[name], cures=False)
    initializations = [cell for cell in red if cell.scenario in INITIALIZATIONS]
    unproven = next((note for cell in initializations if (note := _unverifiable(cell, facts))), "")
    if unproven:
        return replace(tried, note=unproven)
    problem = _alone_under(model, red[0], name, facts, effects)
    if problem:
        return replace(tried, note=problem)
    notes = []
    for scenario in [cell.scenario for cell in initializations] or [UNLESS_RED]:
        launcher = Launcher(
            scenario=INITIALIZATIONS[scenario],
            side="new",
            profile=profile_with(facts, name),
            facts=facts,
            effects=effects,
        )
        repeats, note = clean_repeats(model, scenario, facts) if initializations else (1, "")
        for repeat in range(repeats):
            effects.progress.tick(f"{model}: {name}, {launcher.scenario.words} {repeat + 1} of {repeats}")
            broken, sick = _group_under(model, launcher, repeat)
            if sick or broken:
                return replace(tried, breaks=broken, note=sick or f"breaks {', '.join(broken)}")
        notes += [note] if note else []
    return replace(tried, cures=True, note="; ".join(notes))


def _unverifiable(cell: CellVerdict, facts: Facts) -> str:
    found = facts.attributions.get((cell.model, cell.scenario))
    why = unverifiable(found) if found is not None else ""
    return f"{why} ({INITIALIZATIONS[cell.scenario].words})" if why else ""


def clean_repeats(model: str, scenario: str, facts: Facts) -> tuple[int, str]:
    """Return how often the group must come up clean before its failure counts as gone, and a note where that is capped.

    What shows only now and then would be gone by chance: the rarer it shows, the more clean runs it takes.
    """
    rounds = facts.plan.settings.init_rounds
    fails, judged = _seen(model, scenario, facts)
    needed = repeats_needed(fails=fails, judged=judged)
    repeats = max(CONCURRENT_REPEATS, min(CLEAN_RUNS_AT_MOST, -(-needed // rounds)))
    runs = repeats * rounds
    if runs >= needed:
        return repeats, ""
    chance = 100 * chance_of_missing(runs, fails=fails, judged=judged)
    return repeats, (
        f"only {runs} clean runs of the {needed} that a failure in {fails} of {judged} asks for: "
        f"with {chance:.0f} % it would have stayed away without the switch too"
    )


def _seen(model: str, scenario: str, facts: Facts) -> tuple[int, int]:
    """Return in how many runs of how many the failure showed: when it was attributed, else in the rounds."""
    found = facts.attributions.get((model, scenario))
    for tally in (found.whole, found.runs) if found is not None else ():
        if tally.fails:
            return tally.fails, tally.judged
    item = facts.initialized.get((model, scenario))
    fails = max(1, item.new.failed_rounds) if item is not None else 1
    return fails, max(fails, item.new.rounds) if item is not None else 1


def _alone_under(model: str, cell: CellVerdict, name: str, facts: Facts, effects: Effects) -> str:
    """Return why the model alone is not well under the switch, empty if it is."""
    declaration = next(item for item in facts.plan.models if item.name == model)
    alone, has_effect = verdict_under(model, cell.cell, name, facts, effects, deadline=deadline_of(declaration, facts))
    if not has_effect:
        return f"{effects.environments['new'].name} has no such switch, or it has no effect"
    if alone.status is Status.PASS:
        return ""
    kinds = dict.fromkeys(f"still {finding.kind.replace('_', ' ')}" for finding in alone.findings)
    return ", ".join(kinds) or f"{alone.status} alone"


def verdict_under(
    model: str, cell: str, name: str, facts: Facts, effects: Effects, *, deadline: Deadline
) -> tuple[CellVerdict, bool]:
    """Return the verdict on the model alone under mitigation ``name``, and whether its switches had an effect."""
    request = facts.requests.run("new", [facts.artifact(model)], deadline, profile=profile_with(facts, name))
    probe = effects.runner(request)
    completed = probe.models[0].outcome is Outcome.COMPLETED
    verdict = judge_alone(
        cell,
        old=facts.baselines[model].results,
        new=probe.models[0],
        comparison=compare_model(model, "alone", probe.directory, facts.baselines[model], facts) if completed else None,
        old_name=effects.environments["old"].name,
        new_name=effects.environments["new"].name,
        exit_detail=probe.exit_detail,
    )
    return verdict, all(_has_effect(probe.data.get("switches", {}).get(switch, {})) for switch in MITIGATIONS[name])


def _has_effect(entry: Mapping[str, object]) -> bool:
    """Whether a switch was applied and reads back as it was asked for (FIELD.md: one may exist and do nothing)."""
    return bool(entry.get("supported")) and entry.get("read_back") == entry.get("requested")


def _group_under(model: str, launcher: Launcher, repeat: int) -> tuple[tuple[str, ...], str]:
    """Return (neighbours that do not pass under the switch, what the model itself does wrong beside them)."""
    scenario, facts, effects = launcher.scenario, launcher.facts, launcher.effects
    group = next((members for members in facts.plan.groups.values() if model in members), (model,))
    found = facts.attributions.get((model, scenario.name))
    left_out = found.left_out if found is not None else ()  # they fail as they did before, and it failed without them
    members = [
        name
        for name in group
        if (name == model or works_alone(name, facts)) and takes_part(scenario, name, facts) and name not in left_out
    ]
    came = initialize_together(launcher, members, repeat=repeat)
    broken, sick = [], "" if model in came else "was not reached beside its server group"
    for name, item in came.items():
        comparison = worst_comparison(name, scenario.name, item.new.answers, facts)
        before = next(cell for cell in facts.verdicts[name] if cell.scenario == "alone")
        alone = replace(before, status=Status.PASS)
        verdict = judge_initialized(scenario.name, alone, item, comparison=comparison, facts=facts, effects=effects)
        if verdict.status is not Status.PASS and name == model:
            sick = verdict.findings[0].message if verdict.findings else str(verdict.status)
        elif verdict.status is not Status.PASS and _was_green(name, facts):
            broken.append(name)
    return tuple(broken), sick


def _was_green(name: str, facts: Facts) -> bool:
    return all(cell.status is Status.PASS for cell in facts.verdicts[name] if cell.scenario != "latency")


def _priced(tried: list[Mitigation], facts: Facts, effects: Effects) -> list[Mitigation]:
    """Duel what a switch cured, under the switch, against the old release; a slow cell is cured only by time."""
    budget = facts.plan.settings.latency
    if budget.budget == "off":
        return tried
    priced = list(tried)
    for name in TRIED_BY_DEFAULT:
        cured = {item.model: index for index, item in enumerate(tried) if item.name == name and item.cures}
        if not cured:
            continue
        prices = _prices(list(cured), name, facts, effects)
        for model, index in cured.items():
            priced[index] = _with_price(tried[index], prices[model], facts)
    return priced


def _prices(models: list[str], name: str, facts: Facts, effects: Effects) -> Mapping[str, LatencyMeasurement]:
    return contest(
        {model: (facts.artifact(model), facts.artifact(model)) for model in models},
        facts,
        effects,
        profile=profile_with(facts, name),
        arms=PRICE_ARMS,
        label=f"price of {name}",
        confirm=False,
        extras=bool(facts.plan.settings.policy.gates),
    )


def _with_price(item: Mitigation, measured: LatencyMeasurement, facts: Facts) -> Mitigation:
    """Return the mitigation with its price; where the cell was slow, it cures only if nothing about it is slow now."""
    if measured.problem:
        return replace(item, cures=False, note=f"under load: {measured.problem}")
    slow = next((cell for cell in facts.verdicts[item.model] if _is_slow(cell)), None)
    if slow is None:
        return replace(item, price=measured.steady)
    settings = facts.plan.settings
    now = judge_latency(slow.cell, measured, settings.latency, settings.policy)
    if now.status is Status.PASS:
        return replace(item, price=measured.steady)
    speed = classify(measured.steady, settings.latency.limit)
    words = measured.steady.words if measured.steady is not None else "not measured"
    note = f"{'still slow' if speed == REGRESSED else speed}: {words}"
    if speed == NOT_REGRESSED:  # so it is a gated quantity
        note = now.findings[0].message
    return replace(item, price=measured.steady, cures=False, note=note)


def _is_slow(cell: CellVerdict) -> bool:
    return cell.status is Status.FAIL and any(finding.kind == "latency" for finding in cell.findings)
