"""Failures that show in a share of all processes, in one release or in both: which of them are called regressions."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.checks.outputs.compare import compare
from harness.checks.outputs.findings import differs
from harness.verdict.cells import judge_attributed, judge_cells
from harness.core.outcome import Status
from harness.checks.latency.benchmark import benchmark
from harness.probing.alone import probe_alone
from harness.probing.facts import Attributed, Compared, Effects, Probed, WithWorker
from harness.probing.old_answers import probe_old_release
from harness.search.failure_attribution import attribute_failures
from harness.checks.startup.initialize import initialize_groups
from harness.checks.startup.native import build_workers
from tests.integration.checks.startup.concurrency import drawn
from tests.integration.checks.startup.concurrency.drawn import DrawnModel
from tests.integration.servers import answered, cell, planned, provisioned

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

CALLS_ALONE = 4  # of the one input set: a shared module answers more, and so does one that serves
KINDS = (
    ("inter_op", "waits", 0),
    ("small_pools", "waits", 0),
    ("shared", "crashes", CALLS_ALONE),
    ("while_serving", "crashes", CALLS_ALONE),
    ("inter_op", "waits", 0),
    ("shared", "crashes", CALLS_ALONE),
)
# (rate in the old release, in the new one).
RATES = ((1.0, 1.0), (0.0, 1.0), (0.5, 0.5), (0.0, 0.3), (0.1, 0.1), (0.0, 0.1))
PLACES = ("by itself", "first", "last", "beside one of the old release", "beside one of the new release")


@dataclass(frozen=True)
class Case:
    """A server group of one scenario: ``sick`` is the model that is judged."""

    name: str
    scenario: str
    sick: DrawnModel
    others: tuple[DrawnModel, ...]
    members: tuple[str, ...]
    rounds: int = 1

    @property
    def right(self) -> Status:
        return Status.SAME_FAIL if self.sick.old else Status.FAIL


def case(number: int) -> Case:
    """Return one of 30: each kind at five rates, at five places among other models."""
    scenario, what, limit = KINDS[number % len(KINDS)]
    column = number // len(KINDS)
    rates = RATES[column if column < 4 else 4 + number % 2]
    place = PLACES[(column + number) % len(PLACES)]
    sick = DrawnModel(f"sick_{number}", what, limit, *rates)
    of_old, of_new = place.endswith("the old release"), place.endswith("the new release")
    others = (DrawnModel(f"other_{number}", what, limit, float(of_old), float(of_new)),) if of_old or of_new else ()
    members = {"by itself": (sick.name,), "first": (sick.name, "steady"), "last": ("steady", sick.name)}
    beside = (*(other.name for other in others), sick.name)
    name = f"{scenario}: {what} {rates[0]:g} to {rates[1]:g}, {place}"
    return Case(name, scenario, sick, others, members.get(place, beside), rounds=1 if rates[1] == 1 else 5)


CASES = [case(number) for number in range(30)]
# The two ways in which one round of each release tells it wrongly. A crash costs less time than a hang.
CRASH = DrawnModel("in_both", "crashes", CALLS_ALONE, 1.0, 1.0, first_in_old=False)
ONCE = DrawnModel("more_often", "crashes", CALLS_ALONE, 0.1, 1.0, first_in_old=True)
WRONG = (
    (Case("in both, but for the first process of the old one", "shared", CRASH, (), (CRASH.name,)), Status.SAME_FAIL),
    (Case("rare before and now certain", "shared", ONCE, (), (ONCE.name,)), Status.FAIL),
)


# Alone in a process, from the first call on.
IN_BOTH = DrawnModel("alone_in_both", "crashes", 0, 0.5, 0.5, first_in_old=False)
ALONE = [
    DrawnModel(f"alone_{100 * old:.0f}_{100 * new:.0f}", "crashes", 0, old, new)
    for old, new in itertools.product((0.0, 0.1, 0.3, 0.5, 1.0), repeat=2)
]


class Gate:
    """The stages of a run once models are exported, for one case after another."""

    def __init__(self, facts: WithWorker, effects: Effects, folder: Path) -> None:
        self.facts, self.effects, self.folder = facts, effects, folder

    def judged(self, case: Case) -> Attributed:
        for model in (case.sick, *case.others):
            drawn.shuffle(self.folder, model)
        models = tuple(model for model in self.facts.plan.models if model.name in case.members)
        plan = replace(
            self.facts.plan,
            models=models,
            scenarios=("alone", case.scenario),
            groups={"group": case.members},
            settings=replace(self.facts.plan.settings, init_rounds=case.rounds),
        )
        facts = replace(self.facts, plan=plan)
        return self.explained(compare(initialize_groups(facts, self.effects), self.effects, differs))

    def judged_alone(self, model: DrawnModel) -> Attributed:
        drawn.shuffle(self.folder, model)
        models = tuple(one for one in self.facts.plan.models if one.name == model.name)
        # One call more, for results that are known already are those of models that have not drawn.
        settings = replace(self.facts.plan.settings, calls=self.facts.plan.settings.calls + 1)
        plan = replace(self.facts.plan, models=models, scenarios=("alone",), groups={}, settings=settings)
        exports = {model.name: self.facts.exports[model.name]}
        old = probe_old_release(replace(self.facts, plan=plan, exports=exports), self.effects)
        probed = Probed.known(probe_alone(old, self.effects))
        begun = WithWorker(**probed, worker="python", worker_notes=())
        return self.explained(compare(initialize_groups(begun, self.effects), self.effects, differs))

    def explained(self, compared: Compared) -> Attributed:
        judged = judge_cells(benchmark(compared, self.effects), self.effects)
        return judge_attributed(attribute_failures(judged, self.effects), self.effects)


def gate_of(cases: Sequence[Case], out: Path, alone: Sequence[DrawnModel]) -> Iterator[Gate]:
    folder = out / "models"
    drawn.write(folder, [*(model for case in cases for model in (case.sick, *case.others)), *alone])
    plan = planned(out, folder, scenarios=("alone", "shared"), overrides={"new_profile": "inference_mode"})
    with provisioned(out, plan) as (first, effects):
        yield Gate(build_workers(probe_alone(answered(first, effects), effects), effects), effects, folder)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    yield from gate_of([case for case, _ in WRONG], tmp_path_factory.mktemp("quick"), [IN_BOTH])


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    yield from gate_of(CASES, tmp_path_factory.mktemp("every"), ())


@pytest.fixture(scope="module")
def all_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    yield from gate_of((), tmp_path_factory.mktemp("alone"), ALONE)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "right"), WRONG, ids=[case.name for case, _ in WRONG])
def test_first_round_of_the_old_release_does_not_decide(quick: Gate, case: Case, right: Status) -> None:
    found = cell(quick.judged(case), case.sick.name, case.scenario)
    assert found.status is right, found


@pytest.mark.slow
@pytest.mark.parametrize("number", range(30), ids=lambda number: CASES[number].name)
def test_no_failure_of_both_releases_fails_and_none_of_the_new_one_is_excused(every: Gate, number: int) -> None:
    case = CASES[number]
    found = cell(every.judged(case), case.sick.name, case.scenario)
    right = {case.right, Status.INCONCLUSIVE} if case.sick.new < 0.3 else {case.right}
    # Who crashes in every process leaves few processes in which a rare failure of another model could show at all.
    assert found.status in right or (found.status is Status.PASS and case.others and not found.failed_rounds), found


@pytest.mark.slow
def test_model_that_crashes_alone_in_half_of_the_processes_of_both_releases_is_no_regression(quick: Gate) -> None:
    found = cell(quick.judged_alone(IN_BOTH), IN_BOTH.name, "alone")
    assert found.status is Status.SAME_FAIL, found


@pytest.mark.slow
@pytest.mark.parametrize("model", ALONE, ids=lambda model: model.name)
def test_model_that_crashes_alone_is_told_by_its_rates(all_alone: Gate, model: DrawnModel) -> None:
    found = cell(all_alone.judged_alone(model), model.name, "alone")
    assert found.status is not Status.FAIL or model.new > model.old, found
    assert found.status is not Status.SAME_FAIL or model.old, found
    assert found.status is Status.FAIL or model.old or model.new < 0.5, found
    assert found.status is Status.SAME_FAIL or not model.old or model.new != model.old or model.new < 0.5, found
    assert found.status is not Status.PASS or not model.new, found
