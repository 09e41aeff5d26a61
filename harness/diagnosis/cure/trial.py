"""One red cell under one set of settings after another: are they in effect, is it well again, is nobody else broken?"""

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.config.policy import some_gate
from harness.diagnosis.cure.price import SCREENING, TWO_ARMS, Bill, bills, is_slow, why_still_slow
from harness.diagnosis.cure.verdict import (
    ONCE,
    UNLESS_RED,
    clean_repeats,
    clean_repeats_alone,
    group_comes_up,
    launcher_under,
    profile_with,
    still,
    verdict_under,
)
from harness.domain.cure import Cure, Setting
from harness.domain.diagnosis import Said
from harness.domain.measurement import LatencyMeasurement
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict
from harness.latency.benchmark import contest
from harness.latency.judging import NOT_REGRESSED, REGRESSED, classify
from harness.probing.alone import patient
from harness.probing.facts import Attributed, Effects
from harness.search.minimal_sets import Indices
from harness.settings.mitigations import get_along
from harness.settings.paste_lines import lines_to_paste
from harness.startup.scenarios import INITIALIZATIONS
from harness.system import clock, pool

# The model is asked again as it is, until it has failed so often, or so often in all: among many settings one would
# seem to cure what shows in half of the runs.
FAILS_THAT_TELL_A_RATE = 3
RUNS_FOR_A_RATE = 10
# For benchmarks of single sets whose time one benchmark of all did not decide; each takes about half a minute.
DECIDING_S = 120.0


class Trial:
    """One model under one set of settings after another; ``told`` keeps what became of it.

    Args:
        everything: whether each set must leave the server group well.
        seen: (in how many runs, of how many) the model failed alone, see ``how_often``.
    """

    def __init__(
        self,
        *,
        model: str,
        cell: CellVerdict,
        settings: Sequence[Setting],
        facts: Attributed,
        effects: Effects,
        everything: bool,
        seen: tuple[int, int] = ONCE,
    ) -> None:
        self.told: dict[Indices, Cure] = {}
        self._model = model
        self._cell = cell
        self._settings = settings
        self._facts = facts
        self._effects = effects
        self._everything = everything
        self._seen = seen

    def chosen(self, indices: Indices) -> tuple[Setting, ...]:
        """Return the settings of a set."""
        return tuple(self._settings[index] for index in indices)

    def get_along(self, indices: Indices) -> bool:
        """Whether a set makes sense."""
        return get_along(self.chosen(indices))

    def ask(self, sets: Sequence[Indices]) -> list[Said]:
        """Return what each set says; PASSES: the symptom is gone."""
        asked = sum(len(indices) == len(sets[0]) for indices in self.told)
        what = "settings that may cure" if len(sets[0]) == 1 else f"sets of {len(sets[0])} settings, {asked} asked"
        self._effects.progress.stage(what, len(sets))
        told = dict(zip(sets, pool.each(self._ask, sets, jobs=self._facts.plan.settings.jobs), strict=True))
        if is_slow(self._cell):
            told.update(self._timed([indices for indices, found in told.items() if found.cures], told))
        self.told.update(told)
        return [
            Said.PASSES if told[indices].cures else Said.UNTESTABLE if told[indices].untestable else Said.FAILS
            for indices in sets
        ]

    def _ask(self, indices: Indices) -> Cure:
        settings = self.chosen(indices)
        found = self._alone(Cure(names=tuple(setting.name for setting in settings), cures=False), settings)
        if found.cures and self._cell.scenario in INITIALIZATIONS:
            repeats, rarely = clean_repeats(self._model, self._cell.scenario, self._facts)
            found = self._group(replace(found, note=rarely), settings, self._cell.scenario, repeats)
        elif found.cures and self._everything:
            found = replace(self._group(found, settings, UNLESS_RED, 1), repeats=found.repeats)
        well = "answers, not timed yet" if is_slow(self._cell) else "cures"
        self._effects.progress.step(f"{found.name}: {well if found.cures else 'does not cure'}")
        if not found.cures:
            return found
        waived = [f"{setting.name}: {setting.waives}" for setting in settings if setting.waives]
        paste = lines_to_paste(settings, device=self._facts.plan.device)
        return replace(found, note="; ".join(filter(None, [found.note, *waived])), paste=paste)

    def _alone(self, found: Cure, settings: Sequence[Setting]) -> Cure:
        """Ask of the model alone, as often as its failure asks for where it is there that it fails."""
        repeats, rarely = clean_repeats_alone(self._seen) if self._cell.scenario == "alone" else (1, "")
        for repeat in range(repeats):
            verdict, without_effect = verdict_under(
                self._model,
                self._cell.cell,
                settings,
                self._facts,
                self._effects,
                deadline=patient(self._model, self._facts),
                repeat=repeat,
            )
            if without_effect:
                return replace(found, untestable=True, note=without_effect)
            if verdict.status is not Status.PASS:
                return replace(found, untestable=verdict.status is not Status.FAIL, note=still(verdict, self._cell))
        return replace(found, cures=True, repeats=repeats, note=rarely)

    def _group(self, found: Cure, settings: Sequence[Setting], scenario: str, repeats: int) -> Cure:
        launcher = launcher_under(scenario, settings, self._facts, self._effects)
        broken, sick = group_comes_up(self._model, launcher, repeats, self._facts, label=found.name)
        if sick or broken:
            return replace(found, cures=False, breaks=broken, note=sick or f"breaks {', '.join(broken)}")
        return replace(found, repeats=repeats)

    def _timed(self, sets: Sequence[Indices], told: dict[Indices, Cure]) -> dict[Indices, Cure]:
        """Return what the sets say of a cell that is slow: all in one benchmark, then those left undecided alone.

        The fastest come first: one that is known to cure is worth more than to know of each whether it does.
        """
        asked = self._facts.plan.settings.latency
        budget = replace(SCREENING, pin=asked.pin, limit=asked.limit)
        screened = bills(
            self._model, [self.chosen(indices) for indices in sets], self._facts, self._effects, budget=budget
        )
        timed = {}
        end_ns = clock.monotonic_ns() + int(DECIDING_S * 1e9)
        for indices, bill in sorted(zip(sets, screened, strict=True), key=lambda pair: _steady(pair[1])):
            measured = bill.measured
            if self._everything and _open(measured, budget.limit) and clock.monotonic_ns() < end_ns:
                measured = self._contest(told[indices].name, self.chosen(indices))
            why = why_still_slow(self._cell, measured, self._facts) if measured is not None else bill.problem
            undecided = bool(why) and _open(measured, budget.limit) and not bill.failed
            timed[indices] = replace(told[indices], cures=not why, untestable=undecided, note=why or told[indices].note)
        return timed

    def _contest(self, name: str, settings: Sequence[Setting]) -> LatencyMeasurement:
        artifact = self._facts.artifact(self._model)
        return contest(
            {self._model: (artifact, artifact)},
            self._facts,
            self._effects,
            profile=profile_with(self._facts, settings),
            arms=TWO_ARMS,
            label=f"time under {name}",
            confirm=False,
            extras=some_gate(self._facts.plan),
        )[self._model]


def how_often(model: str, cell: CellVerdict, facts: Attributed, effects: Effects) -> tuple[int, int]:
    """Return in how many runs of how many the model fails alone; it has failed once."""
    effects.progress.stage("how often it fails", FAILS_THAT_TELL_A_RATE - 1)
    fails, judged = ONCE
    repeat = 0
    while fails < FAILS_THAT_TELL_A_RATE and repeat < RUNS_FOR_A_RATE:
        repeat += 1
        verdict, _ = verdict_under(model, cell.cell, (), facts, effects, deadline=patient(model, facts), repeat=repeat)
        fails += verdict.status is Status.FAIL
        judged += verdict.status in (Status.FAIL, Status.PASS)
        effects.progress.step(f"{fails} of {judged}")
    return fails, judged


def _steady(bill: Bill) -> float:
    measured = bill.measured
    return measured.steady.ratio if measured is not None and measured.steady is not None else math.inf


def _open(measured: LatencyMeasurement | None, limit: float) -> bool:
    """Whether the steady call was measured and neither slow nor fast enough for sure."""
    return measured is not None and classify(measured.steady, limit) not in (REGRESSED, NOT_REGRESSED)
