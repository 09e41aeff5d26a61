"""A part of a program in the model's place: brought up as the model has to be, it fails like that or it does not."""

from dataclasses import replace

from harness.diagnosis.reduce.in_group import ByLaunch
from harness.diagnosis.reduce.oracles import Sides
from harness.domain.diagnosis import Attribution, Said, Symptom
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure, ProbeRequest, ProbeResult, model_of
from harness.scenarios import INITIALIZATIONS
from tests.unit.builders.stages import Runner, artifact, effects, known, planned, probed, result

CALL = "call 1 of example"
NEEDS = Attribution(models=("a", "b", "m"), threads=4, reproduced=True, minimal_models=("a", "m"), minimal_threads=2)
RAISED = Failure(type="RuntimeError", message="quota of 9 is spent", phase="call")


class Release:
    """Who ends how, by side; the part ``"well"`` is well everywhere."""

    def __init__(self, **ends: tuple[str, Outcome]) -> None:
        self.ends = ends
        self.asked: list[ProbeRequest] = []

    def __call__(self, request: ProbeRequest) -> ProbeResult:
        self.asked.append(request)
        parts = {model_of(run.artifact.model): run.artifact.digest for run in request.runs}
        name, outcome = self.ends.get(request.side, ("", Outcome.COMPLETED))
        failing = parts.get("m") != "well" and name in parts
        failure = RAISED if outcome is Outcome.RUNTIME_ERROR else None
        found = [
            result(run.artifact.model, outcome, phase=CALL, failure=failure)
            if failing and model_of(run.artifact.model) == name
            else result(run.artifact.model)
            for run in request.runs
        ]
        ended = outcome if failing and failure is None else Outcome.COMPLETED
        return probed(*found, side=request.side, outcome=ended)


def oracle(release: Release, *, needs: Attribution = NEEDS, symptom: Symptom = Symptom.HANG) -> ByLaunch:
    sides = Sides(known(planned("a", "b", "m", scenarios=("alone", "concurrent"))), effects(Runner(release)))
    return ByLaunch(sides=sides, model="m", symptom=symptom, scenario=INITIALIZATIONS["concurrent"], needs=needs)


def test_a_part_is_brought_up_in_the_place_of_its_model_beside_those_that_are_needed() -> None:
    release = Release(new=("m", Outcome.HANG))
    asking = oracle(release)
    assert asking.prepare(artifact("m", digest="part")) == ""
    answer = asking.ask(artifact("m", digest="part"), 0)
    assert (answer.said, answer.outcome) == (Said.FAILS, "hang")
    request = next(item for item in release.asked if item.side == "new")
    assert {run.artifact.model: run.artifact.digest for run in request.runs} == {"a": "d1", "m": "part"}
    assert request.script is not None and len(request.script.threads) == 2
    assert asking.ask(artifact("m", digest="well"), 0).said is Said.PASSES
    how = "concurrent init in 2 threads beside a"
    assert asking.words(artifact("m", digest="part")) == (f"comes up, {how}", f"hangs in {CALL}, {how}", None)


def test_one_model_that_suffices_is_brought_up_by_itself_and_in_one_thread_where_that_does() -> None:
    release = Release(new=("m", Outcome.HANG))
    asking = oracle(release, needs=replace(NEEDS, minimal_models=("m",), minimal_threads=1))
    assert asking.ask(artifact("m", digest="part"), 0).said is Said.FAILS
    request = next(item for item in release.asked if item.side == "new")
    assert [run.artifact.model for run in request.runs] == ["m"]
    assert request.script is not None and len(request.script.threads) == 1
    assert asking.how == "concurrent init in one thread"


def test_each_repeat_is_a_process_of_its_own() -> None:
    release = Release(new=("m", Outcome.HANG))
    asking = oracle(release)
    for repeat in range(3):
        asking.ask(artifact("m", digest="well"), repeat)
    assert len({request.repeat for request in release.asked}) == 3


def test_a_failure_of_a_neighbour_of_another_kind_or_of_the_old_release_too_is_untestable() -> None:
    part = artifact("m", digest="part")
    assert oracle(Release(new=("a", Outcome.HANG))).ask(part, 0).said is Said.UNTESTABLE
    assert oracle(Release(new=("m", Outcome.CRASH))).ask(part, 0).said is Said.UNTESTABLE
    assert oracle(Release(new=("m", Outcome.STARVED))).ask(part, 0).said is Said.UNTESTABLE
    both = oracle(Release(new=("m", Outcome.HANG), old=("m", Outcome.HANG)))
    assert both.ask(part, 0).said is Said.UNTESTABLE
    assert both.prepare(part) == f"the old release hangs in {CALL}, concurrent init in 2 threads beside a"


def test_an_error_is_told_by_what_it_says() -> None:
    asking = oracle(Release(new=("m", Outcome.RUNTIME_ERROR)), symptom=Symptom.ERROR)
    answer = asking.ask(artifact("m", digest="part"), 0)
    assert (answer.said, answer.outcome) == (Said.FAILS, "RuntimeError: quota of N is spent")
