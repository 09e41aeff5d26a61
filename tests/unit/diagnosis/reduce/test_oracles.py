"""Whether a part of a program shows a symptom: the same outcome, other answers, or its share of the time."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.diagnosis.reduce.oracles import LEAST_WAIT_S, PATIENT_WAIT_S, Oracle, oracle_for
from harness.domain.diagnosis import Said, Symptom
from harness.domain.models import Artifact, InputSet
from harness.domain.outcome import Outcome
from harness.domain.probe import CallRecord, Failure, ModelResult, ProbeRequest, ProbeResult
from tests.unit.builders.stages import Runner, artifact, effects, facts_of, probed, result
from tests.unit.builders.tensors import Recorder

CALL = "call 1 of example"


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
    quick, runner = asking(Symptom.HANG, ending(result(outcome=Outcome.HANG, phase=CALL)), made=2)
    assert quick.prepare(part()) == ""
    assert quick.sides.wait_s == LEAST_WAIT_S
    assert quick.ask(part(), 0).said is Said.FAILS
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
    other, _ = asking(Symptom.HANG, ending(result(outcome=Outcome.CRASH, phase=CALL)))
    assert other.ask(part(), 0).said is Said.UNTESTABLE
    starved, _ = asking(Symptom.HANG, ending(result(outcome=Outcome.STARVED, phase=CALL)))
    assert starved.ask(part(), 0).said is Said.UNTESTABLE
    both, _ = asking(Symptom.HANG, ending(*2 * [result(outcome=Outcome.HANG, phase=CALL)]))
    assert both.ask(part(), 0).said is Said.UNTESTABLE
    assert both.prepare(part()) == f"the old release hangs in {CALL}"
    well, _ = asking(Symptom.HANG, ending(result()))
    assert well.ask(part(), 0).said is Said.PASSES


def test_an_error_is_told_by_what_it_says() -> None:
    failure = Failure(type="RuntimeError", message="expected 3 of 4", phase="call")
    raising, _ = asking(Symptom.ERROR, ending(result(outcome=Outcome.RUNTIME_ERROR, failure=failure)))
    answer = raising.ask(part(), 0)
    assert (answer.said, answer.outcome) == (Said.FAILS, "RuntimeError: expected N of N")
    assert raising.words(part()) == ("completes, 1 ms a call at most", "raises RuntimeError: expected 3 of 4", None)


def answers(folder: Path, values: Mapping[tuple[str, int], float]) -> Callable[[ProbeRequest], ProbeResult]:
    """Return a runner's answers: (side, repeat) -> the number that every call answers."""

    def answer(request: ProbeRequest) -> ProbeResult:
        value = values.get((request.side, request.repeat), values[request.side, 0])
        directory = folder / f"{request.side}-{request.repeat}"
        (directory / "outputs").mkdir(parents=True, exist_ok=True)
        line = {"model": "m", "set": "example", "call": 0, "tree": ["float", repr(value)]}
        (directory / "outputs" / "tensors.jsonl").write_text(json.dumps(line) + "\n")
        (directory / "outputs" / "tensors.bin").write_bytes(b"")
        return probed(result(calls=calls(1.0)), side=request.side, directory=str(directory))

    return answer


def test_other_answers_than_the_old_release_gives_to_the_same_part(tmp_path: Path) -> None:
    same, _ = asking(Symptom.VALUES, answers(tmp_path / "same", {("old", 0): 2.0, ("new", 0): 2.0}))
    assert same.prepare(part()) == "" and same.ask(part(), 0).said is Said.PASSES
    other, _ = asking(Symptom.VALUES, answers(tmp_path / "other", {("old", 0): 2.0, ("new", 0): 3.0}))
    assert other.ask(part(), 0).said is Said.FAILS
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
    said = {name: oracle.ask(part(name), 0).said for name in times}
    assert said == {
        "whole": Said.FAILS,
        "most": Said.FAILS,
        "little": Said.PASSES,
        "noise": Said.UNTESTABLE,
    }
    assert oracle.words(part("most")) == ("1 ms a call", "2.2 ms a call", 2.2)
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
        return probed(result(outcome=Outcome.HANG if hangs else Outcome.COMPLETED, phase=CALL), side=request.side)

    oracle, _ = asking(Symptom.HANG, answer)
    assert oracle.words(part())[1] == f"hangs in {CALL}"


def test_two_turns_of_a_loop_with_one_archive_and_other_values_are_timed_apart() -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        slow = request.side == "new" and request.runs[0].artifact.inputs_digest == "second turn"
        return probed(result(calls=calls(9.0 if slow else 1.0)), side=request.side)

    oracle, _ = asking(Symptom.LATENCY, answer)
    first, second = (replace(part(), inputs_digest=f"{turn} turn") for turn in ("first", "second"))
    assert oracle.prepare(first) == "it is not slower in every pair of runs"
    assert oracle.prepare(second) == "" and oracle.ask(second, 0).said is Said.FAILS
    assert oracle.words(second) == ("1 ms a call", "9 ms a call", 9.0)


def test_a_part_is_off_by_what_its_model_declares(tmp_path: Path) -> None:
    def answer(request: ProbeRequest) -> ProbeResult:
        directory = tmp_path / request.side
        (directory / "outputs").mkdir(parents=True, exist_ok=True)
        recorder = Recorder()
        value = 2.001 if request.side == "new" else 2.0
        tree = recorder.tensor(np.array([1.0, value], dtype=np.float32))
        line = {"model": "m", "set": "example", "call": 0, "tree": tree}
        (directory / "outputs" / "tensors.jsonl").write_text(json.dumps(line) + "\n")
        (directory / "outputs" / "tensors.bin").write_bytes(recorder.buffer)
        return probed(result(calls=calls(1.0)), side=request.side, directory=str(directory))

    def said(tolerance: float | None) -> Said:
        facts = facts_of("m")
        models = tuple(replace(model, tolerance=tolerance) for model in facts.plan.models)
        facts = replace(facts, plan=replace(facts.plan, models=models))
        return oracle_for(Symptom.VALUES, facts, effects(Runner(answer))).ask(part(), 0).said

    assert (said(None), said(0.01)) == (Said.FAILS, Said.PASSES)
