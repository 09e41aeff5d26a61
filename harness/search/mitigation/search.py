"""Searches the settings under which a red cell is well again, and says what each of them costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from harness.checks.prediction.semantics import can_show, changes_between, names_operator
from harness.core.diagnosis import Answer, Setting
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget
from harness.core.verdict import CellVerdict, Mitigation
from harness.machine import clock, pool
from harness.probing.alone import patient
from harness.probing.facts import Attributed, Effects, Probed, WithWorker, new_profile
from harness.search.delta_debugging import Indices, Stop, minimal_sets
from harness.search.mitigation.price import (
    NOT_TIMED,
    PRICED,
    SCREENING,
    Bill,
    answers_unmitigated,
    bills,
    is_late,
    is_open,
    is_slow,
    timed,
    why_still_slow,
)
from harness.search.mitigation.trial import (
    ONCE,
    Trial,
    how_often,
    profile_with,
    tried,
    try_settings,
    why_not_mitigable,
    why_unverifiable,
)
from harness.serving.scenarios import INITIALIZATIONS, open_orders
from harness.serving.settings.mitigations import JIT_SWITCHES, candidates, get_along

# Where no setting mitigates alone: so many sets, and so long for those of two. What hangs under most costs seconds
# each.
MOST_SETS = 200
PAIRS_S = 300.0
# For benchmarks of single sets whose time one benchmark of all did not decide; each takes about half a minute.
DECIDING_S = 120.0
# For all settings of a slow cell, each of which is timed in fresh processes; and for the JIT switches alone.
SLOW_S, SLOW_QUICK_S = 180.0, 60.0
NO_OLD = "no price, and no answers to compare with: the old release fails too"
NOT_TRIED = "not tried: the time is over"
QUICK = LatencyBudget(looks=(2,), blocks=5, model_s=5.0)


@dataclass(frozen=True, kw_only=True)
class MitigationSearch:
    """What the search came to.

    ``mitigations``: what was tried, what mitigates first, cheapest first; of larger sets only those that mitigate;
    ``price_note``: why there is no price, or none against the new release as it is.
    """

    cell: CellVerdict | None = None
    mitigations: tuple[Mitigation, ...] = ()
    price_note: str = ""
    ended: str = ""
    notes: tuple[str, ...] = ()


def search(
    model: str,
    facts: Attributed,
    effects: Effects,
    *,
    everything: bool = True,
    scenario: str = "",
    pairs: bool = False,
    seen: tuple[int, int] = ONCE,
    anyway: bool = False,
) -> MitigationSearch:
    """Return what became of ``model`` under the settings that could mitigate it; its cells are judged already.

    Args:
        everything: every setting and pairs of them, with the server group; else the JIT switches, of the model alone.
        scenario: of the cell that is to be mitigated; empty: the first red one that decides.
        pairs: whether pairs are tried also where one setting mitigates.
        seen: in how many runs of how many the model was seen to fail alone; asked again where it was but once, and
            everything is tried.
        anyway: whether a cell counts as red in which both releases fail alike: well is then what answers at all.
    """
    bad = (Status.FAIL, Status.XFAIL, *([Status.SAME_FAIL] if anyway else []))
    red = [cell for cell in facts.verdicts[model] if cell.status in bad]
    cell = next((cell for cell in red if (cell.scenario == scenario if scenario else cell.decides)), None)
    if cell is None:
        return MitigationSearch()
    if kind := why_not_mitigable([cell]):
        return MitigationSearch(cell=cell, notes=(f"no setting of a server changes this: {kind}",))
    if unproven := why_unverifiable([cell], facts):
        return MitigationSearch(cell=cell, notes=(unproven,))
    settings = JIT_SWITCHES if not everything else _candidates(model, cell, facts)
    if is_slow(cell):
        effects = replace(effects, end_ns=effects.end_within(SLOW_S if everything else SLOW_QUICK_S))
    if everything and settings and cell.scenario == "alone" and seen == ONCE:
        seen = how_often(cell, facts, effects)
    trial = Trial(
        cell=cell,
        deadline=patient(model, facts),
        seen=seen,
        initializations=(cell.scenario,) if cell.scenario in INITIALIZATIONS else (),
        group=everything,
    )
    known = known_change(cell, facts)
    sets = _Sets(trial=trial, settings=settings, facts=facts, effects=effects, decide=everything, every_pair=pairs)
    size = 2 if everything and (pairs or not known) else 1
    searched = minimal_sets(
        len(settings),
        sets.ask,
        budget=MOST_SETS,
        size=size,
        all_sizes=pairs,
        together=sets.may_mitigate,
        stop=_after(PAIRS_S, effects),
    )
    known_sets = {
        indices: replace(sets.results[indices], minimal=searched.is_minimal(indices))
        for indices, answer in searched.answers.items()
        if len(indices) == 1 or answer is Answer.PASS
    }
    larger = [answer for indices, answer in searched.answers.items() if len(indices) > 1]
    in_vain, untold = larger.count(Answer.FAIL), larger.count(Answer.UNRESOLVED)
    counts = {"pairs of the others do not mitigate either": in_vain, "pairs could not be tested": untold}
    notes = tuple(f"{count} {what}" for what, count in counts.items() if count)
    if everything and not any(mitigation.mitigates for mitigation in known_sets.values()):
        notes += ((known,) if known else ()) or sets.left_out()
    if trial.in_both:
        mitigations = sorted(known_sets.values(), key=lambda mitigation: not mitigation.mitigates)
        return MitigationSearch(
            cell=cell, mitigations=tuple(mitigations), price_note=NO_OLD, ended=searched.ended, notes=notes
        )
    priced, note = _priced(model, known_sets, sets, facts, effects, everything=everything)
    return MitigationSearch(cell=cell, mitigations=priced, price_note=note, ended=searched.ended, notes=notes)


@dataclass(kw_only=True)
class _Sets:
    """The red cell under one set of settings after another; ``results`` keeps what became of it.

    ``decide``: whether a slow cell is timed by itself under what is left undecided; ``every_pair``: whether pairs of
    settings that change nothing alone are tried.
    """

    trial: Trial
    settings: Sequence[Setting]
    facts: Attributed
    effects: Effects
    decide: bool
    every_pair: bool
    results: dict[Indices, Mitigation] = field(default_factory=dict)

    @property
    def cell(self) -> CellVerdict:
        return self.trial.cell

    def chosen(self, indices: Indices) -> tuple[Setting, ...]:
        return tuple(self.settings[index] for index in indices)

    def may_mitigate(self, indices: Indices) -> bool:
        """Whether a set makes sense, and one of its settings alone changes something about what is wrong."""
        return get_along(self.chosen(indices)) and (self.every_pair or not self._changes_nothing(indices))

    def left_out(self) -> tuple[str, ...]:
        """Return how many pairs were not tried because neither of their settings changes anything, in words."""
        pairs = combinations([index for (index, *more) in self.results if not more], 2)
        left = [pair for pair in pairs if pair not in self.results and get_along(self.chosen(pair))]
        count = sum(map(self._changes_nothing, left))
        why = "neither setting makes the call quicker" if is_slow(self.cell) else "neither setting changes a bit"
        return (f"{count} pairs were not tried: {why}",) if count else ()

    def _changes_nothing(self, indices: Indices) -> bool:
        singles = [self.results.get((index,)) for index in indices]
        return len(indices) > 1 and all(single is not None and single.unaffected for single in singles)

    def ask(self, sets: Sequence[Indices]) -> list[Answer]:
        """Return what each set says; PASS: the symptom is gone."""
        before = sum(len(indices) == len(sets[0]) for indices in self.results)
        what = "settings that may mitigate" if len(sets[0]) == 1 else f"sets of {len(sets[0])} settings, {before} asked"
        self.effects.progress.stage(what, len(sets))
        results = dict(zip(sets, pool.each(self._ask, sets, jobs=self.facts.plan.settings.jobs), strict=True))
        if is_slow(self.cell):
            results.update(
                self._timed([indices for indices, mitigation in results.items() if mitigation.mitigates], results)
            )
        self.results.update(results)
        return [
            Answer.PASS
            if results[indices].mitigates
            else Answer.UNRESOLVED
            if results[indices].untestable
            else Answer.FAIL
            for indices in sets
        ]

    def _ask(self, indices: Indices) -> Mitigation:
        if is_late(self.effects):
            return replace(tried(self.cell, self.chosen(indices)), untestable=True, note=NOT_TRIED)
        mitigation = try_settings(self.trial, self.chosen(indices), self.facts, self.effects)
        well = "answers, not timed yet" if is_slow(self.cell) else "mitigates"
        self.effects.progress.step(f"{mitigation.name}: {well if mitigation.mitigates else 'does not mitigate'}")
        return mitigation

    def _timed(self, sets: Sequence[Indices], results: dict[Indices, Mitigation]) -> dict[Indices, Mitigation]:
        """Time all sets in one benchmark, then those left undecided alone; the fastest first: one is enough."""
        latency = self.facts.plan.settings.latency
        budget = replace(SCREENING, pin=latency.pin, limit=latency.limit)
        screened = bills(
            self.cell.model, [self.chosen(indices) for indices in sets], self.facts, self.effects, budget=budget
        )
        timed = {}
        end_ns = self.effects.end_within(DECIDING_S)
        for indices, bill in sorted(zip(sets, screened, strict=True), key=lambda pair: _steady(pair[1])):
            measured = bill.measured
            if self.decide and is_open(measured, budget.limit) and clock.monotonic_ns() < end_ns:
                measured = self._alone_timed(results[indices].name, self.chosen(indices))
            why = why_still_slow(self.cell, measured, self.facts) if measured is not None else bill.problem
            undecided = bool(why) and is_open(measured, budget.limit) and not bill.failed
            before = results[indices]
            timed[indices] = replace(
                before,
                mitigates=not why,
                untestable=undecided or bill.problem == NOT_TIMED,
                unaffected=bool(why) and _is_no_quicker(bill),
                **bill.priced,
                note=why or before.note,
            )
        return timed

    def _alone_timed(self, name: str, settings: Sequence[Setting]) -> LatencyMeasurement:
        model = self.cell.model
        profile, label = profile_with(self.facts, settings), f"time under {name}"
        artifact = self.facts.artifact(model)
        return timed({model: (artifact, artifact)}, self.facts, self.effects, profile=profile, label=label)[model]


def _after(limit_s: float, effects: Effects) -> Stop:
    """Return what says, so many seconds after it was first asked, or after its end, that a search should end."""
    ends: list[int] = []

    def stop(_: int) -> bool:
        ends.append(effects.end_within(limit_s))
        return clock.monotonic_ns() > ends[0]

    return stop


def _candidates(model: str, cell: CellVerdict, facts: Probed) -> tuple[Setting, ...]:
    scenario = INITIALIZATIONS.get(cell.scenario)
    fingerprint = facts.fingerprints.get("new")
    probe = facts.alone.get(model)
    settings = facts.plan.settings
    return candidates(
        new_profile(facts.plan),
        device=facts.plan.runs_on,
        isa=(fingerprint.isa if fingerprint is not None else None) or "",
        orders=open_orders(scenario, mode=settings.capture_mode, warm_calls=settings.capture_warm_calls)
        if scenario is not None
        else (),
        pools=scenario.pools if scenario is not None else None,
        old=facts.baselines[model].numerics,
        new=probe.data.get("numerics", {}) if probe is not None else {},
    )


def _priced(
    model: str, tried: dict[Indices, Mitigation], sets: _Sets, facts: WithWorker, effects: Effects, *, everything: bool
) -> tuple[tuple[Mitigation, ...], str]:
    """Return the mitigations with what they cost, ranked, and why there is no price, or none to the new release."""
    budget = facts.plan.settings.latency
    mitigating = [indices for indices, mitigation in tried.items() if mitigation.mitigates]
    others = [mitigation for mitigation in tried.values() if not mitigation.mitigates]
    if not mitigating:
        return tuple(others), ""
    if everything and budget.budget == "off":
        return (*(tried[indices] for indices in mitigating), *others), "no price was asked for (--latency off)"
    if not everything:
        budget = replace(QUICK, pin=budget.pin)
    costs = bills(model, [sets.chosen(indices) for indices in mitigating], facts, effects, budget=budget)
    priced = [_with_bill(tried[indices], bill) for indices, bill in zip(mitigating, costs, strict=True)]
    note = (
        ""
        if answers_unmitigated(model, facts)
        else "the new release does not answer without a mitigation: prices are to the old one"
    )
    kept = [mitigation for mitigation in priced if mitigation.mitigates]
    others += [mitigation for mitigation in priced if not mitigation.mitigates]
    return (*sorted(kept, key=_cost), *others), note if kept else ""


def _with_bill(mitigation: Mitigation, bill: Bill) -> Mitigation:
    """Return a mitigation with its price; it is none where the model does not answer under load."""
    if bill.failed:
        return replace(mitigation, mitigates=False, paste={}, note=bill.problem)
    if bill.problem == NOT_TIMED and mitigation.prices:  # by the screening of a slow cell
        return mitigation
    return replace(mitigation, **bill.priced, note="; ".join(filter(None, [mitigation.note, bill.problem])))


def _cost(mitigation: Mitigation) -> tuple[bool, tuple[float, ...], int]:
    """Rank by what was measured, then quantities as far as sure (noise must not rank), then size."""
    ratios = []
    for name in PRICED:
        price = mitigation.price_of(name)
        ratio = price.to_old if price is not None else None
        ratios.append(round(ratio.ratio, 2) if ratio is not None and not ratio.low <= 1 <= ratio.high else 1.0)
    return not mitigation.prices, tuple(ratios), len(mitigation.settings)


def _steady(bill: Bill) -> float:
    return bill.steady.ratio if bill.steady is not None else math.inf


def _is_no_quicker(bill: Bill) -> bool:
    to_new = next((price.to_new for price in bill.prices if price.quantity == PRICED[0]), None)
    return to_new is not None and to_new.high >= 1


def known_change(cell: CellVerdict, facts: Probed) -> str:
    """Return which known change of an operator explains the cell, in words; empty where none does."""
    artifact = facts.exports[cell.model].artifact
    operators = {name.partition(".")[0] for name in artifact.operators} if artifact is not None else set[str]()
    for change, _ in changes_between(*facts.pair):
        if change.drawn and not facts.draws(cell.model):
            continue
        for finding in cell.findings:
            raised = finding.kind == "call_error"  # its text names the operator
            if change.operator not in operators or not can_show(change, finding, *facts.pair):
                continue
            if not raised or names_operator(finding.error, change.operator):
                return f"known change of {change.operator}, which no setting undoes: {change.what} ({change.source})"
    return ""
