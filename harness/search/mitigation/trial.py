"""One red cell under settings: are they in effect, is it well again, is nobody else broken?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.artifacts.tensors.outputs import same_answers
from harness.checks.outputs.compare import compare_alone, worst_comparison
from harness.checks.outputs.findings import differs
from harness.checks.startup.attribution_words import unverifiable
from harness.checks.startup.initialize import initialize_together, takes_part, works_alone
from harness.checks.startup.launch import Launcher
from harness.core.diagnosis import Setting
from harness.core.outcome import Outcome, Status
from harness.core.probe import Deadline, ModelResult, ProbeResult, ServingProfile
from harness.core.verdict import CellVerdict, Mitigation
from harness.probing.alone import patient
from harness.probing.facts import Answered, Attributed, Effects, Judged, Probed, Provisioned, new_profile
from harness.probing.verification import legible_outputs
from harness.search.delta_debugging import chance_of_missing, repeats_needed
from harness.serving.scenarios import INITIALIZATIONS
from harness.serving.settings.mitigations import NOT_MITIGABLE, applied
from harness.serving.settings.paste_lines import lines_to_paste
from harness.verdict.cell import judge_alone
from harness.verdict.cells import judge_initialized

# The failure of the model was seen once; that it is gone must not be chance.
ONCE = (1, 1)
# What shows only beside other models may be chance: one clean run of the group proves nothing. The failure's rate asks
# for more, and this many are the budget.
CONCURRENT_REPEATS = 3
CLEAN_RUNS_AT_MOST = 20
# Where no initialization is red, a setting must still not break one.
UNLESS_RED = "concurrent"
# The model is asked again as it is, until it has failed so often, or so often in all: among many settings one would
# seem to mitigate what shows in half of the runs.
FAILS_THAT_TELL_A_RATE = 3
RUNS_FOR_A_RATE = 10


@dataclass(frozen=True, kw_only=True)
class Trial:
    cell: CellVerdict
    deadline: Deadline
    seen: tuple[int, int] = ONCE
    initializations: tuple[str, ...] = ()
    group: bool = True

    @property
    def in_both(self) -> bool:
        """Whether the old release fails alike, so that there is no answer of it to compare with."""
        return self.cell.status is Status.SAME_FAIL and self.cell.scenario == "alone"


def why_not_mitigable(cells: Sequence[CellVerdict]) -> str:
    """Return what about red cells does not depend on how a loaded graph is executed; empty where a setting may."""
    kinds = (finding.kind for cell in cells for finding in cell.findings if finding.kind in NOT_MITIGABLE)
    return next((kind.replace("_", " ") for kind in kinds), "")


def why_unverifiable(cells: Sequence[CellVerdict], facts: Attributed) -> str:
    """Return why nobody could tell that the failure of an initialization is gone; empty where one could."""
    for cell in cells:
        attribution = facts.attributions.get((cell.model, cell.scenario)) if cell.scenario in INITIALIZATIONS else None
        if attribution is not None and (why := unverifiable(attribution)):
            return f"{why} ({INITIALIZATIONS[cell.scenario].words})"
    return ""


def try_settings(trial: Trial, settings: Sequence[Setting], facts: Attributed, effects: Effects) -> Mitigation:
    """Return what becomes of the cell under the settings, all of them at once; the model is asked alone first."""
    mitigation = _alone(trial, settings, facts, effects)
    if mitigation.mitigates and (trial.group or trial.initializations):
        mitigation = _beside(trial, mitigation, settings, facts, effects)
    if not mitigation.mitigates:
        return mitigation
    waived = [f"{setting.name}: {setting.waives}" for setting in settings if setting.waives]
    paste = lines_to_paste(settings, device=facts.plan.runs_on.torch)
    return replace(mitigation, note="; ".join(filter(None, [mitigation.note, *waived])), paste=paste)


def how_often(cell: CellVerdict, facts: Attributed, effects: Effects) -> tuple[int, int]:
    """Return in how many runs of how many the model fails alone; runs are made only where it was seen but once."""
    if (known := seen_to_fail(cell.model, cell.scenario, facts)) != ONCE:
        return known
    effects.progress.stage("how often it fails", FAILS_THAT_TELL_A_RATE - 1)
    trial = Trial(cell=cell, deadline=patient(cell.model, facts))
    fails, judged = ONCE
    repeat = 0
    while fails < FAILS_THAT_TELL_A_RATE and repeat < RUNS_FOR_A_RATE:
        repeat += 1
        verdict, probe, _ = _verdict_under(trial, (), facts, effects, repeat=repeat)
        fails += not _answers_at_last(trial, probe) if trial.in_both else verdict.status is Status.FAIL
        judged += trial.in_both or verdict.status in (Status.FAIL, Status.PASS)
        effects.progress.step(f"{fails} of {judged}")
    return fails, judged


def profile_with(facts: Provisioned, settings: Sequence[Setting]) -> ServingProfile:
    return applied(new_profile(facts.plan), settings)


def tried(cell: CellVerdict, settings: Sequence[Setting]) -> Mitigation:
    names = tuple(setting.name for setting in settings)
    switches = {name: value for setting in settings for name, value in setting.switches.items()}
    return Mitigation(
        cell=cell.cell, model=cell.model, name=" + ".join(names), settings=names, switches=switches, mitigates=False
    )


def _alone(trial: Trial, settings: Sequence[Setting], facts: Attributed, effects: Effects) -> Mitigation:
    mitigation = tried(trial.cell, settings)
    repeats, rarely = clean_repeats_alone(trial.seen) if trial.cell.scenario == "alone" else (1, "")
    partly = _fails_partly(facts.baselines[trial.cell.model].results)
    for repeat in range(repeats):
        verdict, probe, without_effect = _verdict_under(trial, settings, facts, effects, repeat=repeat)
        if without_effect:
            return replace(mitigation, untestable=True, note=without_effect)
        if not (_answers_at_last(trial, probe) if trial.in_both else _is_well(verdict, partly=partly)):
            as_unchanged = _as_before(trial, probe, facts)
            note = f"{_still(verdict, trial.cell)}{', every bit as without it' if as_unchanged else ''}"
            untestable = verdict.status is not Status.FAIL and not trial.in_both
            return replace(mitigation, untestable=untestable, unaffected=as_unchanged, note=note)
    return replace(mitigation, mitigates=True, repeats=repeats, note=rarely)


def _beside(
    trial: Trial, mitigation: Mitigation, settings: Sequence[Setting], facts: Attributed, effects: Effects
) -> Mitigation:
    """Bring up the server group; no mitigation at the first time that the model or a neighbour does not pass."""
    notes, clean = [mitigation.note], []
    for scenario in trial.initializations or (UNLESS_RED,):
        repeats, rarely = _clean_repeats(trial.cell.model, scenario, facts) if trial.initializations else (1, "")
        launcher = Launcher(
            scenario=INITIALIZATIONS[scenario],
            side="new",
            facts=facts,
            effects=effects,
            settings=tuple(settings),
        )
        for repeat in range(repeats):
            what = f"{mitigation.name}, {launcher.scenario.words} {repeat + 1} of {repeats}"
            effects.progress.tick(f"{trial.cell.model}: {what}")
            broken, sick = _group_under(trial, launcher, repeat, facts)
            if sick or broken:
                return replace(mitigation, mitigates=False, breaks=broken, note=sick or f"breaks {', '.join(broken)}")
        if trial.initializations:
            notes.append(rarely)
            clean.append(repeats)
    return replace(mitigation, repeats=min(clean, default=mitigation.repeats), note="; ".join(filter(None, notes)))


def _is_well(verdict: CellVerdict, *, partly: bool) -> bool:
    return verdict.status is Status.PASS or (verdict.status is Status.SAME_FAIL and partly)


def _answers_at_last(trial: Trial, probe: ProbeResult) -> bool:
    return next(item for item in probe.models if item.model == trial.cell.model).outcome is Outcome.COMPLETED


def _fails_partly(old: Sequence[ModelResult]) -> bool:
    """Whether the old release fails in some requests and answers others: then to fail like it is no worse."""
    failed = {request.input_set for result in old for request in result.failed_requests}
    answered = {call.input_set for result in old for call in result.calls}
    return bool(failed) and bool(answered - failed)


def _verdict_under(
    trial: Trial, settings: Sequence[Setting], facts: Answered, effects: Effects, *, repeat: int
) -> tuple[CellVerdict, ProbeResult, str]:
    """Return (verdict on the model alone under the settings, its probe, why they are not in effect or empty)."""
    model = trial.cell.model
    profile = profile_with(facts, settings)
    request = facts.requests.run("new", [facts.artifact(model)], trial.deadline, profile=profile, repeat=repeat)
    probe = effects.runner(replace(request, look=False))  # where it hangs has been told of the model without them
    verdict = judge_alone(
        trial.cell.cell,
        old=facts.baselines[model].results,
        new=probe.models[0],
        comparison=compare_alone(model, probe, facts.baselines[model], facts),
        old_name=effects.environments["old"].name,
        new_name=effects.environments["new"].name,
        exit_detail=probe.exit_detail,
    )
    return verdict, probe, _without_effect(probe, settings, effects)


def _as_before(trial: Trial, probe: ProbeResult, facts: Probed) -> bool:
    """Whether every answer has the same bits as without settings, in a model that fails every time."""
    model, (fails, judged) = trial.cell.model, trial.seen
    unchanged = facts.alone.get(model)
    if unchanged is None or fails < judged or {*probe.outcomes, *unchanged.outcomes} != {Outcome.COMPLETED}:
        return False
    return same_answers(*(legible_outputs(answered.directory, model) for answered in (probe, unchanged)))


def _without_effect(probe: ProbeResult, settings: Sequence[Setting], effects: Effects) -> str:
    """Return settings not applied or reading back otherwise: a switch may do nothing (docs/evidence.md#switches)."""
    switches: Mapping[str, Mapping[str, object]] = probe.data.get("switches", {})
    for setting in settings:
        for name in setting.values:
            entry = switches.get(f"env {name}" if name in setting.env else name, {})
            if not entry.get("supported") or entry.get("read_back") != entry.get("requested"):
                why = entry.get("reason") or (f"it reads back {entry['read_back']}" if "read_back" in entry else "")
                nothing = f"{effects.environments['new'].name} has no such switch, or it has no effect"
                return f"{nothing}: {why}" if why else nothing
    return ""


def _still(verdict: CellVerdict, cell: CellVerdict) -> str:
    """Return what is left of the symptom of ``cell``, in words: ``still hang``; or what is wrong in place of it."""
    before = {finding.kind for finding in cell.findings}
    words = dict.fromkeys(
        f"still {finding.kind.replace('_', ' ')}" if finding.kind in before else finding.message
        for finding in verdict.findings
    )
    return ", ".join(words) or f"{verdict.status} alone"


def _group_under(trial: Trial, launcher: Launcher, repeat: int, facts: Attributed) -> tuple[tuple[str, ...], str]:
    """Return (neighbours that do not pass under the settings, what the model itself does wrong beside them)."""
    model, scenario, effects = trial.cell.model, launcher.scenario, launcher.effects
    group = next((members for members in facts.plan.groups.values() if model in members), (model,))
    attribution = facts.attributions.get((model, scenario.name))
    left_out = (
        attribution.left_out if attribution is not None else ()
    )  # they fail as they did before, and it failed without them
    members = [
        name
        for name in group
        if (name == model or works_alone(name, facts)) and takes_part(scenario, name, facts) and name not in left_out
    ]
    initialized = initialize_together(launcher, members, facts, repeat=repeat)
    broken, sick = [], "" if model in initialized else "was not reached beside its server group"
    for name, item in initialized.items():
        as_alone = facts.comparisons.get((name, "alone"))
        comparison = worst_comparison(name, scenario.name, item.new.answers, as_alone, facts, differs=differs)
        before = next(cell for cell in facts.verdicts[name] if cell.scenario == "alone")
        alone = replace(before, status=Status.PASS)
        verdict = judge_initialized(
            scenario.name,
            alone,
            item,
            comparison=comparison,
            draws=facts.draws(name),
            facts=facts,
            effects=effects,
        )
        if verdict.status is not Status.PASS and name == model and (item.new.result.failed or not trial.in_both):
            sick = verdict.findings[0].message if verdict.findings else str(verdict.status)
        elif verdict.status is not Status.PASS and _was_green(name, facts):
            broken.append(name)
    return tuple(broken), sick


def _was_green(name: str, facts: Judged) -> bool:
    return all(cell.status is Status.PASS for cell in facts.verdicts[name] if cell.scenario != "latency")


def _clean_repeats(model: str, scenario: str, facts: Attributed) -> tuple[int, str]:
    """Return the clean runs a rare failure takes to count as gone, else it is chance; and a note where capped."""
    rounds = facts.plan.settings.init_rounds
    seen = seen_to_fail(model, scenario, facts)
    repeats = max(CONCURRENT_REPEATS, min(CLEAN_RUNS_AT_MOST, -(-_needed(seen) // rounds)))
    return repeats, _by_chance(repeats * rounds, seen)


def clean_repeats_alone(seen: tuple[int, int]) -> tuple[int, str]:
    """Return what ``_clean_repeats`` does, for a model alone that was ``seen`` to fail in so many of so many runs."""
    repeats = min(CLEAN_RUNS_AT_MOST, _needed(seen))
    return repeats, _by_chance(repeats, seen)


def _needed(seen: tuple[int, int]) -> int:
    return repeats_needed(fails=seen[0], judged=seen[1])


def _by_chance(runs: int, seen: tuple[int, int]) -> str:
    fails, judged = seen
    if runs >= _needed(seen):
        return ""
    chance = 100 * chance_of_missing(runs, fails=fails, judged=judged)
    return (
        f"only {runs} clean runs of the {_needed(seen)} that a failure in {fails} of {judged} asks for: "
        f"with {chance:.0f} % it would have stayed away by itself"
    )


def seen_to_fail(model: str, scenario: str, facts: Attributed) -> tuple[int, int]:
    attribution = facts.attributions.get((model, scenario))
    for tally in (attribution.whole, attribution.runs) if attribution is not None else ():
        if tally.fails:
            return tally.fails, tally.judged
    item = facts.initialized.get((model, scenario))
    fails = max(1, item.new.failed_rounds) if item is not None else 1
    return fails, max(fails, item.new.rounds) if item is not None else 1
