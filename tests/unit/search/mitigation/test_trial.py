"""What counts as a mitigation, and what takes it back: alone, in every repeat, and beside the server group."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.plan import Cell
from harness.search.mitigation.mitigate import mitigate
from harness.search.mitigation.trial import CLEAN_RUNS_AT_MOST, CONCURRENT_REPEATS
from harness.core.diagnosis import Attribution, Tally
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeRequest, ProbeResult
from harness.probing.facts import Decided, OldAnswers
from harness.serving.scenarios import INITIALIZATIONS
from harness.search.delta_debugging import repeats_needed
from tests.unit.builders.mitigating import GOLDEN, SWITCHES, Release, red, tried, verdict
from tests.unit.builders.stages import Runner, effects, result


@pytest.mark.parametrize(
    "entry",
    [
        {"requested": False, "read_back": True, "supported": True},
        {"requested": False, "supported": False, "reason": "no such name"},
        {"requested": False, "supported": True},
    ],
    ids=["reads back otherwise", "unsupported", "not read back"],
)
def test_switch_without_effect_does_not_mitigation(tmp_path: Path, entry: Mapping[str, object]) -> None:
    found = tried(red(), Release(tmp_path, switches={**SWITCHES, "texpr_fuser": entry}))
    assert (found["profiling off"].mitigates, found["fuser off"].mitigates) == (True, False)
    assert found["fuser off"].note.startswith("torch 2.6.0 has no such switch, or it has no effect")


@pytest.mark.parametrize(
    ("said", "note"),
    [
        (Outcome.HANG, "still hang"),
        (Outcome.PROTOCOL_ERROR, "protocol error in start in torch 2.6.0, alone"),
        (2, "output: expected int 1, got int 2"),
    ],
)
def test_model_that_does_not_pass_alone_under_the_switch_is_not_mitigated(
    tmp_path: Path, said: Outcome | int, note: str
) -> None:
    release = Release(tmp_path, alone={"m": said})
    found = tried(red(), release)
    assert not any(item.mitigates for item in found.values())
    assert found["fuser off"].note == note
    assert release.groups == []


def test_what_comes_back_in_a_repeat_is_not_mitigated(tmp_path: Path) -> None:
    release = Release(tmp_path)
    healthy, release.runner = release.runner, Runner(lambda request: sick(request) or healthy(request))

    def sick(request: ProbeRequest) -> ProbeResult | None:
        returns = request.repeat == 3 and request.script is None
        return replace(healthy(request), models=(result("m", Outcome.HANG),)) if returns else None

    found = tried(red(), release)
    assert [(item.mitigates, item.note) for item in found.values()] == [(False, "still hang")] * 2


def test_model_that_worked_in_neither_release_is_not_mitigated_by_completing(tmp_path: Path) -> None:
    facts = red()
    broken = OldAnswers(results=(result("m", Outcome.CRASH),) * 2, golden=GOLDEN)
    found = tried(replace(facts, baselines={**facts.baselines, "m": broken}), Release(tmp_path))
    assert not any(item.mitigates for item in found.values())


@pytest.mark.parametrize("said", [Outcome.HANG, Outcome.PROTOCOL_ERROR, 2])
def test_model_that_does_not_pass_beside_its_group_is_not_mitigated(tmp_path: Path, said: Outcome | int) -> None:
    found = tried(red(), Release(tmp_path, grouped={"m": said}))
    assert [(item.mitigates, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


@pytest.mark.parametrize("said", [Outcome.LOAD_ERROR, Outcome.PROTOCOL_ERROR, 2])
def test_switch_under_which_a_green_neighbour_does_not_pass_is_no_mitigation(
    tmp_path: Path, said: Outcome | int
) -> None:
    found = tried(red(), Release(tmp_path, grouped={"n": said}))
    assert [(item.mitigates, item.breaks, item.note) for item in found.values()] == [(False, ("n",), "breaks n")] * 2


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE, Status.SAME_FAIL])
def test_neighbour_that_was_not_green_is_not_broken_by_a_switch(tmp_path: Path, status: Status) -> None:
    facts = red(neighbour=status)
    found = mitigate(facts, effects(Release(tmp_path, grouped={"n": Outcome.LOAD_ERROR}).runner)).mitigations["m"]
    assert [(item.mitigates, item.breaks) for item in found] == [(True, ())] * 2


def clean_runs(facts: Decided, release: Release) -> int:
    """Return how many initializations were brought up under a switch; none of them is a stored result."""
    found = tried(facts, release)
    assert all(item.mitigates for item in found.values())
    repeats = [(item.script, item.repeat) for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert all(repeats.count(one) == 1 for one in repeats)
    return len(repeats)


@pytest.mark.parametrize(("scenario", "times"), [("alone", 1), ("concurrent", repeats_needed(fails=1, judged=1))])
def test_group_that_failed_must_be_clean_more_than_once(tmp_path: Path, scenario: str, times: int) -> None:
    assert clean_runs(red(scenario), Release(tmp_path)) == times


def attributed(facts: Decided, scenario: str, **changes: Any) -> Decided:
    """Return facts in which the failure of ``m`` was searched for again."""
    found = Attribution(**{"models": ("m", "n"), "threads": 4, "reproduced": True, **changes})
    return replace(facts, attributions={**facts.attributions, ("m", scenario): found})


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"reproduced": False, "whole": Tally(passes=9)},
            "cannot be verified: the failure did not show again in 9 repeats (concurrent init)",
        ),
        (
            {"reproduced": None, "whole": Tally(untestable=2)},
            "cannot be verified: the failure was not seen again (concurrent init)",
        ),
    ],
)
def test_what_did_not_fail_again_is_not_mitigated_by_passing(
    tmp_path: Path, changes: Mapping[str, Any], note: str
) -> None:
    release = Release(tmp_path)
    found = tried(attributed(red("concurrent"), "concurrent", **changes), release)
    assert [(item.mitigates, item.note) for item in found.values()] == [(False, note)] * 2
    assert release.runner.asked == []


@pytest.mark.parametrize(
    ("tally", "runs"),
    [
        (Tally(fails=3), CONCURRENT_REPEATS),
        (Tally(fails=20), CONCURRENT_REPEATS),
        (Tally(fails=3, passes=3, untestable=1, differently=1), repeats_needed(fails=3, judged=6)),
    ],
)
def test_rarer_failure_must_stay_away_longer(tmp_path: Path, tally: Tally, runs: int) -> None:
    facts = attributed(red("concurrent"), "concurrent", whole=tally, runs=Tally(fails=1, passes=11))
    assert clean_runs(facts, Release(tmp_path)) == runs


def test_model_that_was_known_to_fail_before_is_not_in_the_way_of_a_mitigation(tmp_path: Path) -> None:
    """It would hang in every clean run, and it failed again without it."""
    facts = attributed(
        red("concurrent", neighbour=Status.SAME_FAIL), "concurrent", whole=Tally(fails=3), left_out=("n",)
    )
    release = Release(tmp_path, grouped={"n": Outcome.HANG})
    assert clean_runs(facts, release) == CONCURRENT_REPEATS
    assert {run.artifact.model.partition("#")[0] for item in release.groups for run in item.runs} == {"m"}


def test_clean_runs_are_capped_and_the_note_says_so(tmp_path: Path) -> None:
    facts = attributed(red("concurrent"), "concurrent", whole=Tally(fails=1, passes=11))
    release = Release(tmp_path)
    assert clean_runs(facts, release) == CLEAN_RUNS_AT_MOST < repeats_needed(fails=1, judged=12)
    notes = {item.note for item in tried(facts, Release(tmp_path / "again")).values()}
    asked = f"only {CLEAN_RUNS_AT_MOST} clean runs of the 44 that a failure in 1 of 12 asks for"
    assert notes == {f"{asked}: with 15 % it would have stayed away by itself"}


def also_red(facts: Decided, scenario: str) -> Decided:
    more = verdict(facts, "m", scenario, Status.FAIL, "crash")
    cells = tuple(cell for cell in facts.verdicts["m"] if cell.scenario != scenario)
    return replace(facts, verdicts={**facts.verdicts, "m": (*cells, more)})


def test_every_red_initialization_must_pass_under_the_switch(tmp_path: Path) -> None:
    facts = also_red(red("concurrent"), "same_file")
    release = Release(tmp_path, grouped={"m#1": Outcome.CRASH})  # a copy that only same_file has
    found = tried(facts, release)
    assert [(item.mitigates, item.cell) for item in found.values()] == [(False, Cell("m", "concurrent").id)] * 2
    assert clean_runs(facts, Release(tmp_path / "healthy")) == 2 * repeats_needed(fails=1, judged=1)


def test_red_cell_alone_does_not_hide_a_red_initialization(tmp_path: Path) -> None:
    facts = also_red(red("alone"), "same_file")
    assert not any(item.mitigates for item in tried(facts, Release(tmp_path, grouped={"m#1": 2})).values())
    release = Release(tmp_path / "healthy")
    assert clean_runs(facts, release) == repeats_needed(fails=1, judged=1)
    scripts = [item.script for item in release.groups]
    assert all(script == INITIALIZATIONS["same_file"].write(["m", "n"], 4) for script in scripts)


def test_one_initialization_that_did_not_fail_again_leaves_the_model_without_a_mitigation(tmp_path: Path) -> None:
    facts = also_red(red("concurrent"), "same_file")
    facts = attributed(facts, "concurrent", whole=Tally(fails=3))
    facts = attributed(facts, "same_file", reproduced=False, whole=Tally(passes=9))
    found = tried(facts, Release(tmp_path))
    assert not any(item.mitigates for item in found.values())
    assert {item.note for item in found.values()} == {
        "cannot be verified: the failure did not show again in 9 repeats (same file N times)"
    }


@pytest.mark.parametrize("scenario", ["sequential", "reinit", "processes"])
def test_red_initialization_is_tried_again_as_it_was(tmp_path: Path, scenario: str) -> None:
    release = Release(tmp_path)
    assert all(item.mitigates for item in tried(red(scenario), release).values())
    script = INITIALIZATIONS[scenario].write(["m", "n"], 4)
    assert release.groups
    assert all(item.script == script for item in release.groups)


@pytest.mark.parametrize(("sick", "said"), [("m", 2), ("m#1", Outcome.CRASH), ("m#3", 2)])
def test_any_copy_that_does_not_pass_under_the_switch_is_no_mitigation(
    tmp_path: Path, sick: str, said: Outcome | int
) -> None:
    found = tried(red("same_file"), Release(tmp_path, grouped={sick: said}))
    assert [(item.mitigates, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_round_of_the_group_must_be_clean(tmp_path: Path, rounds: int) -> None:
    facts = red("while_serving")
    settings = replace(facts.plan.settings, init_rounds=rounds)
    release = Release(tmp_path)
    assert all(
        item.mitigates for item in tried(replace(facts, plan=replace(facts.plan, settings=settings)), release).values()
    )
    repeats = [item.repeat for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert len(repeats) == len(set(repeats)) == {1: 5, 2: 6}[rounds]  # 1 failure in 1 run asks for 5 clean ones
