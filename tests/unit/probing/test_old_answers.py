"""The old release is asked for the golden, for its noise, and for the settings that it had."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest, ProbeResult
from harness.probing.facts import OldAnswers
from harness.probing.old_answers import probe_old_release, repeat_old_answers, take_old_answers
from harness.probing.requests import IMPATIENT_FLOOR_S
from tests.unit.builders.stages import Runner, declared, effects, known, planned, probed, result
from tests.unit.builders.tensors import write_answers


class OldRelease:
    """Answers with its number of intra-op threads, and says which engine it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = 0

    def __call__(self, request: ProbeRequest) -> ProbeResult:
        self.started += 1
        tree = ["float", repr(float(request.profile.intra_op_threads))]
        directory = write_answers(self.folder / str(self.started), {"m": tree})
        data = {"numerics": {"quantized_engine": "x86"}}
        return probed(result("m"), side="old", directory=directory, data=data)


def baseline(folder: Path, **settings: object) -> tuple[OldAnswers, Runner]:
    runner = Runner(OldRelease(folder))
    run_dir = cast(Any, SimpleNamespace(save_old_answers=lambda found: None))
    asked = probe_old_release(known(planned(settings=settings)), replace(effects(runner), run_dir=run_dir))
    return asked.baselines["m"], runner


def test_every_thread_count_is_one_more_run_and_no_repeat(tmp_path: Path) -> None:
    found, runner = baseline(tmp_path, noise_threads=(2, 4))
    assert [request.profile.intra_op_threads for request in runner.asked] == [1, 1, 2, 4]
    assert [outputs.calls["example", 0][1] for outputs in found.other_threads] == ["2.0", "4.0"]
    assert (len(found.results), len(found.repeats)) == (2, 1)


def test_who_has_hung_once_is_asked_as_often_and_not_waited_for_as_long(tmp_path: Path) -> None:
    runner = Runner(lambda request: probed(result("m", Outcome.HANG, phase="load"), side="old"))
    run_dir = cast(Any, SimpleNamespace(save_old_answers=lambda found: None))
    found = probe_old_release(known(planned(settings={"repeats": 3})), replace(effects(runner), run_dir=run_dir))
    assert [request.deadline.load_s for request in runner.asked] == [60.0, IMPATIENT_FLOOR_S, IMPATIENT_FLOOR_S]
    assert len(found.baselines["m"].results) == 3


def test_settings_of_the_old_release_are_kept(tmp_path: Path) -> None:
    found, runner = baseline(tmp_path)
    assert found.numerics == {"quantized_engine": "x86"}
    assert (len(runner.asked), found.other_threads) == (2, ())


def test_the_twin_of_a_planted_defect_is_always_probed_in_its_own_run(tmp_path: Path) -> None:
    asked = []
    for number, tags in enumerate(((), ("planted", "twin"))):
        runner = Runner(OldRelease(tmp_path / str(number)))
        facts = known(planned())
        export = replace(facts.exports["m"], declaration=declared(tags=tags))
        take_old_answers(export, facts, effects(runner), facts.requests, "old")
        asked.append((len(runner.asked), len(runner.lasting)))
    assert asked == [(2, 2), (1, 0)]


def test_first_question_is_one_run_without_noise(tmp_path: Path) -> None:
    runner = Runner(OldRelease(tmp_path))
    asked = replace(effects(runner), run_dir=cast(Any, SimpleNamespace(save_old_answers=lambda found: None)))
    facts = probe_old_release(known(planned(settings={"noise_threads": (2,)})), asked, repeats=1)
    first = facts.baselines["m"]
    assert (len(runner.asked), len(first.results), first.repeats, first.other_threads) == (1, 1, (), ())
    again = repeat_old_answers(["m"], facts, asked)["m"]
    assert (len(again.results), len(again.repeats), len(again.other_threads)) == (2, 1, 1)


def test_who_fails_the_first_question_has_all_of_them() -> None:
    runner = Runner(lambda request: probed(result("m", Outcome.RUNTIME_ERROR, phase="call"), side="old"))
    run_dir = cast(Any, SimpleNamespace(save_old_answers=lambda found: None))
    asked = replace(effects(runner), run_dir=run_dir)
    found = probe_old_release(known(planned(settings={"repeats": 3})), asked, repeats=1)
    assert len(found.baselines["m"].results) == 3
