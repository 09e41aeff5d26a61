"""Whether a part of a program shows a symptom: the same outcome, other answers, or its share of the time."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.search.reduce.oracles import LEAST_WAIT_S, PATIENT_WAIT_S, ByLaunch, Oracle, Sides, oracle_for
from harness.core.diagnosis import Attribution, Answer, Symptom
from harness.core.models import Artifact, InputSet
from harness.core.outcome import Outcome
from harness.core.probe import CallRecord, Failure, ModelResult, ProbeRequest, ProbeResult, model_of
from harness.serving.scenarios import INITIALIZATIONS
from tests.unit.builders.stages import Runner, artifact, effects, facts_of, known, planned, probed, result
from tests.unit.builders.tensors import Recorder, write_answers

CALL = "call 1 of example"
IN_CALL: dict[str, Any] = {"phase": "call", "input_set": "example", "call": 1}


def part(digest: str = "part") -> Artifact:
    return artifact("m", digest=digest, input_sets=(InputSet(name="example"),))


def calls(*milliseconds: float) -> tuple[CallRecord, ...]:
    return tuple(
        CallRecord(input_set="example", call=index, duration_ns=round(duration * 1e6))
        for index, duration in enumerate(milliseconds)
    )


def asking(
    symptom: Symptom, answer: Callable[[ProbeRequest], ProbeResult], *, made: int | None = None
) -> tuple[Oracle, Runner]:
    runner = Runner(answer)
    return oracle_for(symptom, facts_of("m"), effects(runner), calls=made), runner


def ending(new: ModelResult, old: ModelResult | None = None) -> Callable[[ProbeRequest], ProbeResult]:
    return lambda request: probed(new if request.side == "new" else old or result(calls=calls(1.0)), side=request.side)


def test_a_hang_is_waited_for_as_long_as_tells_it_from_the_old_release() -> None:
    quick, runner = asking(Symptom.HANG, ending(result(outcome=Outcome.HANG, **IN_CALL)), made=2)
    assert quick.prepare(part()) == ""
    assert quick.sides.wait_s == LEAST_WAIT_S
    assert quick.ask(part(), 0).answer is Answer.FAIL
    request = next(item for item in runner.asked if item.side == "new")
    assert request.deadline.call_s == LEAST_WAIT_S
    assert request.runs[0].schedule == (("example", 2),)

    slow, _ = asking(Symptom.HANG, ending(result(), result(calls=calls(400.0))))
    slow.prepare(part())
    assert slow.sides.wait_s == 8.0
    raising, _ = asking(Symptom.ERROR, ending(result()))
    raising.prepare(part())
    assert raising.sides.wait_s == PATIENT_WAIT_S


def test_a_failure_of_another_kind_is_untestable_and_so_is_one_of_the_old_release_too() -> None:
    other, _ = asking(Symptom.HANG, ending(result(outcome=Outcome.CRASH, **IN_CALL)))
    assert other.ask(part(), 0).answer is Answer.UNRESOLVED
    starved, _ = asking(Symptom.HANG, ending(result(outcome=Outcome.STARVED, **IN_CALL)))
    assert starved.ask(part(), 0).answer is Answer.UNRESOLVED
    both, _ = asking(Symptom.HANG, ending(*2 * [result(outcome=Outcome.HANG, **IN_CALL)]))
    assert both.ask(part(), 0).answer is Answer.UNRESOLVED
    assert both.prepare(part()) == f"the old release hangs in {CALL}"
    well, _ = asking(Symptom.HANG, ending(result()))
    assert well.ask(part(), 0).answer is Answer.PASS


def test_an_error_is_told_by_what_it_says() -> None:
    failure = Failure(type="RuntimeError", message="expected 3 of 4", phase="call")
    raising, _ = asking(Symptom.ERROR, ending(result(outcome=Outcome.RUNTIME_ERROR, failure=failure)))
    answer = raising.ask(part(), 0)
    assert (answer.answer, answer.outcome) == (Answer.FAIL, "RuntimeError: expected N of N")
    assert raising.words(part()) == ("completes, 1 ms a call at most", "raises RuntimeError: expected 3 of 4", None)


def answers(folder: Path, values: Mapping[tuple[str, int], float]) -> Callable[[ProbeRequest], ProbeResult]:
    """Return a runner's answers: (side, repeat) -> the number that every call answers."""

    def answer(request: ProbeRequest) -> ProbeResult:
        value = values.get((request.side, request.repeat), values[request.side, 0])
        directory = write_answers(folder / f"{request.side}-{request.repeat}", {"m": ["float", repr(value)]})
        return probed(result(calls=calls(1.0)), side=request.side, directory=directory)

    return answer


def test_other_answers_than_the_old_release_gives_to_the_same_part(tmp_path: Path) -> None:
    same, _ = asking(Symptom.VALUES, answers(tmp_path / "same", {("old", 0): 2.0, ("new", 0): 2.0}))
    assert same.prepare(part()) == "" and same.ask(part(), 0).answer is Answer.PASS
    other, _ = asking(Symptom.VALUES, answers(tmp_path / "other", {("old", 0): 2.0, ("new", 0): 3.0}))
    assert other.ask(part(), 0).answer is Answer.FAIL
    assert "completes" in other.words(part())[0] and "2" in other.words(part())[1]


def test_an_old_release_that_answers_otherwise_each_time_decides_nothing(tmp_path: Path) -> None:
    numbers = {("old", 0): 2.0, ("old", 1): 5.0, ("new", 0): 2.0}
    unsteady, _ = asking(Symptom.VALUES, answers(tmp_path, numbers))
    assert unsteady.prepare(part()) == "the old release answers otherwise each time"


def timed(old: float, new: Mapping[str, Any]) -> Callable[[ProbeRequest], ProbeResult]:
    """Return a runner's answers: digest of a part -> how long its steady call takes in the new release, in ms."""

    def answer(request: ProbeRequest) -> ProbeResult:
        took = old if request.side == "old" else new[request.runs[0].artifact.digest]
        if callable(took):
            took = took(request.repeat)
        return probed(result(calls=calls(50.0, took, took, took)), side=request.side)

    return answer


def test_a_part_that_carries_half_of_the_time_shows_it_and_one_within_the_noise_says_nothing() -> None:
    times = {"whole": 3.0, "most": 2.2, "little": 1.4, "noise": lambda repeat: (1.2, 2.4, 1.4)[repeat % 3]}
    oracle, runner = asking(Symptom.LATENCY, timed(1.0, times))
    assert oracle.prepare(part("whole")) == ""
    said = {name: oracle.ask(part(name), 0).answer for name in times}
    assert said == {
        "whole": Answer.FAIL,
        "most": Answer.FAIL,
        "little": Answer.PASS,
        "noise": Answer.UNRESOLVED,
    }
    old, new, steady = oracle.words(part("most"))
    assert (old, new, steady and steady.words) == ("1 ms a call", "2.2 ms a call", "+120 % [+120, +120]")
    assert runner.asked[-1].runs[0].schedule == (("example", 200),)


def test_a_whole_that_is_as_quick_as_before_is_not_searched() -> None:
    oracle, _ = asking(Symptom.LATENCY, timed(1.0, {"whole": 1.0}))
    assert oracle.prepare(part("whole")) == "it is not slower in every pair of runs"


def test_a_block_within_is_waited_for_as_long_as_the_whole() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        took = 400.0 if request.runs[0].artifact.digest == "whole" else 1.0
        return probed(result(calls=calls(took)), side=request.side)

    oracle, _ = asking(Symptom.HANG, answer)
    assert oracle.prepare(part("whole")) == "" and oracle.prepare(part("block")) == ""
    assert oracle.sides.wait_s == 8.0, "the answer names one time"


def test_what_shows_now_and_then_is_told_by_a_run_in_which_it_did() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        hangs = request.side == "new" and request.repeat == 3
        return probed(result(outcome=Outcome.HANG if hangs else Outcome.COMPLETED, **IN_CALL), side=request.side)

    oracle, _ = asking(Symptom.HANG, answer)
    assert oracle.words(part())[1] == f"hangs in {CALL}"


def test_two_turns_of_a_loop_with_one_archive_and_other_values_are_timed_apart() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        slow = request.side == "new" and request.runs[0].artifact.inputs_digest == "second turn"
        return probed(result(calls=calls(9.0 if slow else 1.0)), side=request.side)

    oracle, _ = asking(Symptom.LATENCY, answer)
    first, second = (replace(part(), inputs_digest=f"{turn} turn") for turn in ("first", "second"))
    assert oracle.prepare(first) == "it is not slower in every pair of runs"
    assert oracle.prepare(second) == "" and oracle.ask(second, 0).answer is Answer.FAIL
    assert oracle.words(second)[:2] == ("1 ms a call", "9 ms a call")


def test_a_part_is_off_by_what_its_model_declares(tmp_path: Path) -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        recorder = Recorder()
        value = 2.001 if request.side == "new" else 2.0
        tree = recorder.tensor(np.array([1.0, value], dtype=np.float32))
        directory = write_answers(tmp_path / request.side, {"m": tree}, recorder.buffer)
        return probed(result(calls=calls(1.0)), side=request.side, directory=directory)

    def answer_under(tolerance: float | None) -> Answer:
        facts = facts_of("m")
        models = tuple(replace(model, tolerance=tolerance) for model in facts.plan.models)
        facts = replace(facts, plan=replace(facts.plan, models=models))
        return oracle_for(Symptom.VALUES, facts, effects(Runner(answer))).ask(part(), 0).answer

    assert (answer_under(None), answer_under(0.01)) == (Answer.FAIL, Answer.PASS)


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
            result(run.artifact.model, outcome, failure=failure, **IN_CALL)
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
    assert (answer.answer, answer.outcome) == (Answer.FAIL, "hang")
    request = next(item for item in release.asked if item.side == "new")
    assert {run.artifact.model: run.artifact.digest for run in request.runs} == {"a": "d1", "m": "part"}
    assert request.script is not None and len(request.script.threads) == 2
    assert asking.ask(artifact("m", digest="well"), 0).answer is Answer.PASS
    how = "concurrent init in 2 threads beside a"
    assert asking.words(artifact("m", digest="part")) == (f"comes up, {how}", f"hangs in {CALL}, {how}", None)


def test_one_model_that_suffices_is_brought_up_by_itself_and_in_one_thread_where_that_does() -> None:
    release = Release(new=("m", Outcome.HANG))
    asking = oracle(release, needs=replace(NEEDS, minimal_models=("m",), minimal_threads=1))
    assert asking.ask(artifact("m", digest="part"), 0).answer is Answer.FAIL
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
    assert oracle(Release(new=("a", Outcome.HANG))).ask(part, 0).answer is Answer.UNRESOLVED
    assert oracle(Release(new=("m", Outcome.CRASH))).ask(part, 0).answer is Answer.UNRESOLVED
    assert oracle(Release(new=("m", Outcome.STARVED))).ask(part, 0).answer is Answer.UNRESOLVED
    both = oracle(Release(new=("m", Outcome.HANG), old=("m", Outcome.HANG)))
    assert both.ask(part, 0).answer is Answer.UNRESOLVED
    assert both.prepare(part) == f"the old release hangs in {CALL}, concurrent init in 2 threads beside a"


def test_an_error_of_a_group_is_known_by_what_it_says() -> None:
    asking = oracle(Release(new=("m", Outcome.RUNTIME_ERROR)), symptom=Symptom.ERROR)
    answer = asking.ask(artifact("m", digest="part"), 0)
    assert (answer.answer, answer.outcome) == (Answer.FAIL, "RuntimeError: quota of N is spent")
