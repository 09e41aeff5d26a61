"""Searches the settings under which a red cell is well again, and says what each of them costs."""

from dataclasses import dataclass, replace

from harness.diagnosis.cure.price import PRICED, Bill, answers_uncured, bills
from harness.diagnosis.cure.trial import Trial, how_often
from harness.diagnosis.cure.verdict import ONCE, unverifiable_cell
from harness.domain.cure import Cure, Setting
from harness.domain.diagnosis import Said
from harness.domain.outcome import Status
from harness.domain.plan import LatencyBudget
from harness.domain.verdict import CellVerdict
from harness.probing.facts import Attributed, Effects, new_profile
from harness.search.budget import Stop
from harness.search.minimal_sets import Indices, minimal_sets
from harness.settings.mitigations import JIT_SWITCHES, NOT_CURABLE, candidates
from harness.startup.scenarios import INITIALIZATIONS
from harness.system import clock

# Where no setting cures alone: so many sets, and so long for those of two. What hangs under most of them costs seconds
# each.
MOST_SETS = 200
PAIRS_S = 300.0
QUICK = LatencyBudget(looks=(2,), blocks=5, model_s=5.0)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the search came to.

    Attributes:
        cell: the red cell; None where there is none.
        cures: what was tried, the curing sets first, cheapest first; of larger sets only those that cure.
        price_note: why there is no price, or none against the uncured new release.
        ended: why the search ended early.
        notes: what else a reader should know.
    """

    cell: CellVerdict | None = None
    cures: tuple[Cure, ...] = ()
    price_note: str = ""
    ended: str = ""
    notes: tuple[str, ...] = ()


def cure(
    model: str,
    facts: Attributed,
    effects: Effects,
    *,
    everything: bool = False,
    scenario: str = "",
    seen: tuple[int, int] = ONCE,
) -> tuple[Cure, ...]:
    """Return what became of ``model`` under the settings that could cure it, the curing ones first, cheapest first.

    Its cells are judged already. Empty where nothing is red, or where no setting can matter.

    Args:
        everything: every setting and pairs of them, with the server group; else the JIT switches, of the model alone.
        scenario, seen: see ``search``.
    """
    return search(model, facts, effects, everything=everything, scenario=scenario, seen=seen).cures


def search(
    model: str,
    facts: Attributed,
    effects: Effects,
    *,
    everything: bool = True,
    scenario: str = "",
    pairs: bool = False,
    seen: tuple[int, int] = ONCE,
) -> Found:
    """Return what a search for settings came to.

    Args:
        everything: see ``cure``.
        scenario: of the cell that is to be cured; empty: the first red one that decides.
        pairs: whether pairs are tried also where one setting cures.
        seen: in how many runs of how many the model was seen to fail alone; asked again where it was but once, and
            everything is tried.
    """
    red = [cell for cell in facts.verdicts[model] if cell.status in (Status.FAIL, Status.XFAIL)]
    cell = next((cell for cell in red if (cell.scenario == scenario if scenario else cell.decides)), None)
    if cell is None:
        return Found()
    unproven = unverifiable_cell(cell, facts) if cell.scenario in INITIALIZATIONS else ""
    past = [finding.kind.replace("_", " ") for finding in cell.findings if finding.kind in NOT_CURABLE]
    if past or unproven:
        why = f"no setting of a server changes this: {past[0]}" if past else unproven
        return Found(cell=cell, notes=(why,))
    settings = JIT_SWITCHES if not everything else _candidates(model, cell, facts)
    if everything and settings and cell.scenario == "alone" and seen == ONCE:
        seen = how_often(model, cell, facts, effects)
    trial = Trial(
        model=model, cell=cell, settings=settings, facts=facts, effects=effects, everything=everything, seen=seen
    )
    size = 2 if everything else 1
    found = minimal_sets(
        len(settings),
        trial.ask,
        budget=MOST_SETS,
        size=size,
        all_sizes=pairs,
        together=trial.get_along,
        stop=_after(PAIRS_S),
    )
    tried = {
        indices: replace(trial.told[indices], minimal=found.is_minimal(indices))
        for indices, said in found.answers.items()
        if len(indices) == 1 or said is Said.PASSES
    }
    larger = [said for indices, said in found.answers.items() if len(indices) > 1]
    in_vain, untold = larger.count(Said.FAILS), larger.count(Said.UNTESTABLE)
    counts = {"pairs of the others do not cure either": in_vain, "pairs could not be tested": untold}
    notes = tuple(f"{count} {what}" for what, count in counts.items() if count)
    priced, note = _priced(model, tried, trial, facts, effects, everything=everything)
    return Found(cell=cell, cures=priced, price_note=note, ended=found.ended, notes=notes)


def _after(limit_s: float) -> Stop:
    """Return what says, so many seconds after it was first asked, that a search should end."""
    began: list[int] = []

    def stop(_: int) -> bool:
        began.append(clock.monotonic_ns())
        return began[-1] - began[0] > limit_s * 1e9

    return stop


def _candidates(model: str, cell: CellVerdict, facts: Attributed) -> tuple[Setting, ...]:
    scenario = INITIALIZATIONS.get(cell.scenario)
    fingerprint = facts.fingerprints.get("new")
    probe = facts.alone.get(model)
    return candidates(
        new_profile(facts.plan),
        device=facts.plan.device,
        isa=(fingerprint.isa if fingerprint is not None else None) or "",
        shared=scenario is not None and not scenario.processes,
        pools=scenario.pools if scenario is not None else None,
        old=facts.baselines[model].numerics,
        new=probe.data.get("numerics", {}) if probe is not None else {},
    )


def _priced(
    model: str, tried: dict[Indices, Cure], trial: Trial, facts: Attributed, effects: Effects, *, everything: bool
) -> tuple[tuple[Cure, ...], str]:
    """Return the cures with what they cost, ranked, and why there is no price, or none against the uncured release."""
    budget = facts.plan.settings.latency
    curing = [indices for indices, found in tried.items() if found.cures]
    others = [found for found in tried.values() if not found.cures]
    if not curing:
        return tuple(others), ""
    if everything and budget.budget == "off":
        return (*(tried[indices] for indices in curing), *others), "no price was asked for (--latency off)"
    if not everything:
        budget = replace(QUICK, pin=budget.pin)
    costs = bills(model, [trial.chosen(indices) for indices in curing], facts, effects, budget=budget)
    priced = [_with_bill(tried[indices], bill) for indices, bill in zip(curing, costs, strict=True)]
    note = "" if answers_uncured(model, facts) else "the uncured new release does not answer: prices are to the old one"
    kept = [found for found in priced if found.cures]
    others += [found for found in priced if not found.cures]
    return (*sorted(kept, key=_cost), *others), note if kept else ""


def _with_bill(found: Cure, bill: Bill) -> Cure:
    """Return a cure with its price; it is none where the model does not answer under load."""
    if bill.failed:
        return replace(found, cures=False, paste={}, note=bill.problem)
    return replace(found, prices=bill.prices, note="; ".join(filter(None, [found.note, bill.problem])))


def _cost(found: Cure) -> tuple[bool, tuple[float, ...], int]:
    """Rank: what was measured first; then by the quantities in their order, as far as they are sure; then by size.

    What the interval does not tell from no change is none: noise must not rank.
    """
    ratios = []
    for name in PRICED:
        price = found.price(name)
        ratio = price.to_old if price is not None else None
        ratios.append(round(ratio.ratio, 2) if ratio is not None and not ratio.low <= 1 <= ratio.high else 1.0)
    return not found.prices, tuple(ratios), len(found.names)
