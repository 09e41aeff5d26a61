"""What a round tells beside its blocks, and where it ran; over real fighters with a stub of torch."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.environment import Environment
from harness.runtime.affinity import Placement
from harness.runtime.duel import Round
from tests.programs import stub
from tests.unit.runtime.rounds import BUDGET, HERE, fight, make_round, with_sets


def test_the_twin_fights_and_is_spared_the_extras(tmp_path: Path, stub_environment: Environment) -> None:
    request = with_sets(stub.run_request([stub.write_artifact(tmp_path, "a")], stub.PATIENT, verb="duel"), "b", "c")
    arms = ("old", "new", "twin")
    environments, requests = dict.fromkeys(arms, stub_environment), dict.fromkeys(arms, request)
    round_ = Round(environments, requests, tmp_path / "duel", number=0, budget=BUDGET, deadline_s=60.0)
    sample = fight(round_, tmp_path, "a")["a"]
    assert sorted(block.arm for block in sample.blocks if block.turn == 1) == ["new", "old", "twin"]
    for arm, told in sample.arms.items():
        assert {name: len(calls) for name, calls in told.shapes_s.items()} == (
            {} if arm == "twin" else {"b": 8, "c": 8}
        )
        assert (told.request_s is None) == (arm == "twin")


def test_without_extras_no_arm_is_asked_for_them(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {"in_threads": "segfault"}})
    sample = fight(round_, tmp_path, "a", extras=False)["a"]
    assert [told.request_s for told in sample.arms.values()] == [None, None]


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ("raise_error", "new: RuntimeError: planted"),
        ("exit_politely", "new: SystemExit: 3"),
        ("segfault", "the new process died"),
        ("hang_asleep", "the new process gave no answer"),
    ],
)
def test_callers_at_the_same_time_that_fail_name_the_model(
    tmp_path: Path, stub_environment: Environment, action: str, problem: str
) -> None:
    round_ = make_round(tmp_path, stub_environment, {"bad": {"in_threads": action}, "after": {}}, 2.0)
    assert list(fight(round_, tmp_path, "bad", "after")) == ["after"]
    assert problem in round_.problems["bad"]


def test_model_with_a_state_has_one_caller_at_a_time(tmp_path: Path, stub_environment: Environment) -> None:
    request = stub.run_request([stub.write_artifact(tmp_path, "a", in_threads="segfault")], stub.PATIENT, verb="duel")
    requests = dict.fromkeys(("old", "new"), with_sets(request, reset="reset"))
    environments = dict.fromkeys(requests, stub_environment)
    round_ = Round(environments, requests, tmp_path / "duel", number=0, budget=BUDGET, deadline_s=60.0)
    assert [told.request_s for told in fight(round_, tmp_path, "a")["a"].arms.values()] == [None, None]


def test_one_caller_is_no_throughput(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(
        tmp_path, stub_environment, {"a": {"in_threads": "segfault"}}, budget=replace(BUDGET, threads=1)
    )
    assert [told.request_s for told in fight(round_, tmp_path, "a")["a"].arms.values()] == [None, None]


def test_scene_tells_the_cores_and_what_others_used_of_them(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}})
    fight(round_, tmp_path, "a")
    scene = round_.scene
    assert scene is not None
    assert (scene.cores, scene.why_not_pinned, scene.gpu) == ((HERE,), "", None)
    assert 0 <= scene.others <= 1


def test_refused_pin_is_no_error_and_is_told(tmp_path: Path, stub_environment: Environment) -> None:
    nowhere = Placement(cores=(4095,), ranked=(4095,))
    round_ = make_round(tmp_path, stub_environment, {"a": {}}, placement=nowhere)
    sample = fight(round_, tmp_path, "a")["a"]
    assert round_.scene is not None
    assert round_.scene.cores == ()
    assert "Invalid argument" in round_.scene.why_not_pinned
    assert all(told.request_s for told in sample.arms.values())  # its callers run where they like, then


def test_fighters_run_on_the_cores_of_the_round(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}, "bad": {"load": "segfault"}, "b": {}})
    seen: dict[str, list[set[int]]] = {}

    def look(model: str) -> None:
        seen[model] = [os.sched_getaffinity(pid) for pid in stub.processes_naming(tmp_path)]

    round_.fight(["a", "bad", "b"], look)
    assert seen == dict.fromkeys(["a", "bad", "b"], [{HERE}] * 2)


def test_unpinned_round_says_so(tmp_path: Path, stub_environment: Environment) -> None:
    round_ = make_round(tmp_path, stub_environment, {"a": {}}, placement=Placement(why_not="switched off"))
    fight(round_, tmp_path, "a")
    assert round_.scene is not None
    assert (round_.scene.cores, round_.scene.why_not_pinned) == ((), "switched off")
