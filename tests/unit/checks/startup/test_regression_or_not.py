"""Failures of known rates in either release, through all stages from the first run to the verdict: what they are called.

``tests/integration/checks/startup/test_regression_or_not.py`` asks the same of real processes.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from harness.verdict.decide import judge_row
from harness.verdict.cells import judge_attributed, judge_cells
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeRequest, ProbeResult, model_of
from harness.probing.alone import patient, probe_alone
from harness.probing.facts import Attributed, OldAnswers
from harness.search.failure_attribution import attribute_failures
from harness.checks.startup.initialize import initialize_groups
from tests.unit.builders.stages import Runner, continued, effects, facts_of, probed, result

HANG, CRASH = Outcome.HANG, Outcome.CRASH
HELD_UP = 0.5  # of the other models of a process that hangs: still at work


@dataclass(frozen=True)
class Ending:
    """How a model ends, alone or once threads bring it up, and in which share of processes of either release."""

    old: float
    new: float
    outcome: Outcome = HANG
    phase: str = "load"
    phase_before: str = "load"


Endings = Mapping[str, Mapping[str, Ending]]
"""Scenario -> model -> how it ends."""


def releases(endings: Endings, seed: int) -> Callable[[ProbeRequest], ProbeResult]:
    """Return what a process does; the first one of the new release shows what is wrong with ``m``."""
    processes: Counter[str] = Counter()

    def answer(request: ProbeRequest) -> ProbeResult:
        side, alone = request.side, request.script is None
        threads = request.script.threads if request.script is not None else ()
        processes[side] += 1
        chance = random.Random(f"{seed} {side} {processes[side]}")
        names = [run.artifact.model for run in request.runs]
        scenario = "while_serving" if any(step[0] == "serve" for steps in threads for step in steps) else "concurrent"
        scenario = "alone" if alone else scenario
        ended = {}
        for model, item in endings.get(scenario, {}).items():
            due = chance.random() < (item.new if side == "new" else item.old)
            due = due or (side == "new" and item.new > 0 and model == "m" and processes["new"] == 1)
            if due and len(threads) != 1 and model in map(model_of, names):
                ended[model] = item
        end = next((item.outcome for item in ended.values()), Outcome.COMPLETED)
        held_up = {name for name in sorted(set(map(model_of, names))) if end is HANG and chance.random() < HELD_UP}

        def fate(name: str) -> tuple[Outcome, str]:
            item = ended.get(model_of(name))
            if item is not None and item.outcome is end:
                return end, item.phase if side == "new" else item.phase_before
            return (HANG, "load") if model_of(name) in held_up else (Outcome.NOT_RUN if ended else end, "")

        models = [result(name, outcome, phase=phase) for name in names for outcome, phase in [fate(name)]]
        return probed(*models, side=side, outcome=end)

    return answer


def judged(endings: Endings, *, members: str = "am", seed: int = 0) -> Attributed:
    facts = facts_of(*members, scenarios=("alone", *endings))
    gate = effects(Runner(releases(endings, seed)))
    facts = continued(facts, initialize_groups(facts, gate))
    facts = continued(facts, judge_cells(facts, gate))
    return judge_attributed(attribute_failures(facts, gate), gate)


def judged_alone(item: Ending, seed: int) -> Attributed:
    """Return what becomes of ``m`` alone, which two runs of the old release and one of the new one have shown."""
    gate = effects(Runner(releases({"alone": {"m": item}}, seed)))
    facts = facts_of("m", scenarios=("alone",))
    asked = [facts.requests.run("old", [facts.artifact("m")], patient("m", facts), repeat=index) for index in range(2)]
    old = OldAnswers(results=tuple(gate.runner(request).models[0] for request in asked))
    facts = continued(facts, probe_alone(replace(facts, baselines={"m": old}), gate))
    facts = continued(facts, judge_cells(facts, gate))
    return judge_attributed(attribute_failures(facts, gate), gate)


def status(facts: Attributed, scenario: str = "concurrent", model: str = "m") -> Status:
    return next(cell.status for cell in facts.verdicts[model] if cell.scenario == scenario)


SCENARIOS = ("concurrent", "while_serving")
RATES = (0.1, 0.2, 0.5, 0.8, 1.0)
# Which models are brought up before and after it; the other one hangs in every process of one release.
PLACES = {
    "first": ("ma", None),
    "last": ("am", None),
    "beside one of the old release": ("xma", Ending(1.0, 0.0)),
    "beside one of the new release": ("max", Ending(0.0, 1.0)),
    "beside one of both": ("xma", Ending(1.0, 1.0)),
}
# Each of 5 rates at 3 of the places in 2 releases; scenario, order and outcome take turns.
CASES = [
    (rate, list(PLACES)[(at + turn) % len(PLACES)], SCENARIOS[(at + turn) % 2], CRASH if (at + turn) % 3 == 2 else HANG)
    for at, rate in enumerate(RATES)
    for turn in range(3)
]
SEEDS = range(4)


def said(rate: float, place: str, scenario: str, outcome: Outcome, *, in_old: bool) -> Counter[Status]:
    members, other = PLACES[place]
    endings = {"m": Ending(rate if in_old else 0.0, rate, outcome)}
    endings |= {"x": other} if other is not None else {}
    return Counter(status(judged({scenario: endings}, members=members, seed=seed), scenario) for seed in SEEDS)


@pytest.mark.parametrize(("rate", "place", "scenario", "outcome"), CASES)
def test_failure_of_both_releases_is_never_a_regression(
    rate: float, place: str, scenario: str, outcome: Outcome
) -> None:
    found = said(rate, place, scenario, outcome, in_old=True)
    assert found[Status.FAIL] == 0
    assert found[Status.SAME_FAIL] == len(SEEDS) or rate < 0.5


@pytest.mark.parametrize(("rate", "place", "scenario", "outcome"), CASES)
def test_failure_of_the_new_release_only_is_never_excused(
    rate: float, place: str, scenario: str, outcome: Outcome
) -> None:
    found = said(rate, place, scenario, outcome, in_old=False)
    assert found[Status.SAME_FAIL] == 0
    assert found[Status.FAIL] == len(SEEDS) or rate < 0.5


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_failure_of_both_releases_in_one_scenario_hides_no_new_one_in_another(scenario: str) -> None:
    (other,) = set(SCENARIOS) - {scenario}
    found = judged({scenario: {"m": Ending(1.0, 1.0)}, other: {"m": Ending(0.0, 1.0)}})
    assert (status(found, scenario), status(found, other)) == (Status.SAME_FAIL, Status.FAIL)
    assert judge_row("m", found.verdicts["m"]).status is Status.FAIL


def test_rare_failure_of_the_old_release_excuses_none_that_is_certain() -> None:
    found = [status(judged({"concurrent": {"m": Ending(0.1, 1.0)}}, seed=seed)) for seed in range(12)]
    assert found.count(Status.FAIL) >= 10  # of 12; tests/unit/checks/startup/test_rates.py computes how many to expect


def test_failure_in_a_call_of_the_old_release_excuses_none_in_loading() -> None:
    endings = {"concurrent": {"m": Ending(1.0, 1.0, phase="load", phase_before="call")}}
    assert status(judged(endings)) is Status.FAIL


def test_crash_of_the_old_release_excuses_no_hang() -> None:
    def release(request: ProbeRequest) -> ProbeResult:
        outcome = HANG if request.side == "new" else CRASH
        return releases({"concurrent": {"m": Ending(1.0, 1.0, outcome)}}, 0)(request)

    facts, gate = facts_of("a", "m"), effects(Runner(release))
    facts = continued(facts, initialize_groups(facts, gate))
    facts = continued(facts, judge_cells(facts, gate))
    assert status(judge_attributed(attribute_failures(facts, gate), gate)) is Status.FAIL


def test_what_was_seen_once_is_not_decided_and_says_both_rates() -> None:
    found = judged({"concurrent": {"m": Ending(0.0, 1e-9)}})
    cell = next(cell for cell in found.verdicts["m"] if cell.scenario == "concurrent")
    assert cell.status is Status.INCONCLUSIVE
    assert "not decided whether it is a regression: it fails in 0 of 30 runs (0 to 12 %)" in cell.note
    assert judge_row("m", found.verdicts["m"]).status is Status.INCONCLUSIVE


# alone

RATES_ALONE = [(old, new) for old, new in itertools.product((0.0, 0.1, 0.3, 0.5, 1.0), repeat=2) if old or new]
OUTCOMES = itertools.cycle((HANG, CRASH, Outcome.RUNTIME_ERROR))


@pytest.mark.parametrize(("old", "new", "outcome"), [(*rates, next(OUTCOMES)) for rates in RATES_ALONE])
def test_model_that_fails_alone_is_told_by_its_rates(old: float, new: float, outcome: Outcome) -> None:
    found = {status(judged_alone(Ending(old, new, outcome), seed), "alone") for seed in range(6)}
    assert found <= {Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE}
    assert Status.FAIL not in found or new > old
    assert Status.SAME_FAIL not in found or old
    assert found == {Status.FAIL} or old or new < 0.5
    assert found == {Status.SAME_FAIL} or new > old or new < 0.5


def test_certain_failure_takes_three_runs_of_the_new_release_and_five_more_of_the_old_one() -> None:
    rates = judged_alone(Ending(0.0, 1.0), 0).attributions["m", "alone"].rates
    assert rates is not None and (rates.new.fails, rates.new.runs, rates.old.passes) == (3, 3, 7)


def test_failure_at_a_call_that_chance_chooses_is_the_same_in_both_releases() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        chance = random.Random(f"{request.side} {request.repeat}")
        phase = f"call {chance.randrange(8)} of example"
        return probed(result(outcome=CRASH, phase=phase), side=request.side, outcome=CRASH)

    facts, gate = facts_of("m", scenarios=("alone",)), effects(Runner(answer))
    facts = continued(facts, probe_alone(facts, gate))
    facts = continued(facts, judge_cells(facts, gate))
    assert status(facts, "alone") is Status.FAIL
    assert status(judge_attributed(attribute_failures(facts, gate), gate), "alone") is Status.SAME_FAIL
