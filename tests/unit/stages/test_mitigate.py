"""Switches on red cells: what counts as a cure, and what takes it back."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.outcome import Outcome, Status
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ProbeRequest, ProbeResult
from harness.domain.verdict import CellVerdict, Finding, Mitigation
from harness.numerics.compare import Outputs
from harness.planning.scenarios import INITIALIZATIONS
from harness.stages import mitigate as stage
from harness.stages.duel import Fought
from harness.stages.facts import Baseline, Facts
from harness.stages.mitigate import CONCURRENT_REPEATS, mitigate
from harness.worker import wire
from tests.unit.stages.builders import Runner, effects, known, planned, probed, result

GOLDEN = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")
WORKS = {"requested": False, "read_back": False, "supported": True}
SWITCHES = {"profiling": WORKS, "texpr_fuser": WORKS}


class Release:
    """The new release under a switch: ``alone`` and ``grouped`` say what becomes of a model, or what it answers."""

    def __init__(
        self,
        folder: Path,
        *,
        alone: Mapping[str, Outcome | int] | None = None,
        grouped: Mapping[str, Outcome | int] | None = None,
        switches: Mapping[str, object] | None = None,
    ) -> None:
        self._folder, self._switches = folder, switches if switches is not None else SWITCHES
        self._alone, self._grouped = alone or {}, grouped or {}
        self.runner = Runner(self._answer)

    @property
    def groups(self) -> list[ProbeRequest]:
        """The concurrent initializations that were asked of the new release."""
        return [item for item in self.runner.asked if item.script is not None and item.side == "new"]

    def _answer(self, request: ProbeRequest) -> ProbeResult:
        table = self._grouped if request.script is not None else self._alone
        if request.side == "old":
            table = {}
        directory = self._folder / str(len(self.runner.asked))
        (directory / "outputs").mkdir(parents=True)
        (directory / "outputs" / wire.TENSORS_BIN).write_bytes(b"")
        lines, results = [], []
        for run in request.runs:
            name = run.artifact.model
            said = table.get(name, 1)
            outcome = said if isinstance(said, Outcome) else Outcome.COMPLETED
            results.append(result(name, outcome))
            if outcome is Outcome.COMPLETED:
                lines.append(json.dumps({"model": name, "set": "example", "call": 0, "tree": ["int", said]}) + "\n")
        (directory / "outputs" / wire.TENSORS_INDEX).write_text("".join(lines))
        return probed(*results, side=request.side, directory=str(directory), data={"switches": self._switches})


def verdict(facts: Facts, name: str, scenario: str, status: Status = Status.PASS, kind: str = "") -> CellVerdict:
    findings = (Finding(kind=kind, message=f"about {kind}"),) if kind else ()
    cell = facts.plan.cell(name, scenario).id
    return CellVerdict(cell=cell, model=name, scenario=scenario, status=status, findings=findings)


def red(scenario: str = "alone", *, neighbour: Status = Status.PASS, budget: str = "off") -> Facts:
    """Return facts in which ``m`` hangs in ``scenario`` and its neighbour ``n`` has the status ``neighbour``."""
    facts = known(planned("m", "n", settings={"latency": LatencyBudget(budget=budget)}))
    baselines = {name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()}
    verdicts = {
        "m": tuple(
            verdict(facts, "m", item, Status.FAIL if item == scenario else Status.PASS, "hang" * (item == scenario))
            for item in dict.fromkeys(("alone", "concurrent", scenario))
        ),
        "n": (verdict(facts, "n", "alone"), verdict(facts, "n", "concurrent", neighbour)),
    }
    return replace(facts, baselines=baselines, verdicts=verdicts)


def tried(facts: Facts, release: Release) -> dict[str, Mitigation]:
    found = mitigate(facts, effects(release.runner)).mitigations
    assert set(found) == {"m"}
    return {item.name: item for item in found["m"]}


def test_switch_under_which_everything_passes_cures(tmp_path: Path) -> None:
    found = tried(red(), Release(tmp_path))
    assert {name: (item.cures, item.note) for name, item in found.items()} == {
        "profiling off": (True, ""),
        "fuser off": (True, ""),
    }


@pytest.mark.parametrize(
    "entry",
    [
        {"requested": False, "read_back": True, "supported": True},
        {"requested": False, "supported": False, "reason": "no such name"},
        {"requested": False, "supported": True},
    ],
    ids=["reads back otherwise", "unsupported", "not read back"],
)
def test_switch_without_effect_does_not_cure(tmp_path: Path, entry: Mapping[str, object]) -> None:
    found = tried(red(), Release(tmp_path, switches={**SWITCHES, "texpr_fuser": entry}))
    assert (found["profiling off"].cures, found["fuser off"].cures) == (True, False)
    assert found["fuser off"].note == "torch 2.6.0 has no such switch, or it has no effect"


@pytest.mark.parametrize("said", [Outcome.HANG, Outcome.PROTOCOL_ERROR, 2])
def test_model_that_does_not_pass_alone_under_the_switch_is_not_cured(tmp_path: Path, said: Outcome | int) -> None:
    release = Release(tmp_path, alone={"m": said})
    found = tried(red(), release)
    assert not any(item.cures for item in found.values())
    assert found["fuser off"].note.startswith("still ")
    assert release.groups == []


def test_model_that_worked_in_neither_release_is_not_cured_by_completing(tmp_path: Path) -> None:
    facts = red()
    broken = Baseline(results=(result("m", Outcome.CRASH),) * 2, golden=GOLDEN)
    found = tried(replace(facts, baselines={**facts.baselines, "m": broken}), Release(tmp_path))
    assert not any(item.cures for item in found.values())


@pytest.mark.parametrize("said", [Outcome.HANG, Outcome.PROTOCOL_ERROR, 2])
def test_model_that_does_not_pass_beside_its_group_is_not_cured(tmp_path: Path, said: Outcome | int) -> None:
    found = tried(red(), Release(tmp_path, grouped={"m": said}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


@pytest.mark.parametrize("said", [Outcome.LOAD_ERROR, Outcome.PROTOCOL_ERROR, 2])
def test_switch_under_which_a_green_neighbour_does_not_pass_is_no_cure(tmp_path: Path, said: Outcome | int) -> None:
    found = tried(red(), Release(tmp_path, grouped={"n": said}))
    assert [(item.cures, item.breaks, item.note) for item in found.values()] == [(False, ("n",), "breaks n")] * 2


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE, Status.SAME_FAIL])
def test_neighbour_that_was_not_green_is_not_broken_by_a_switch(tmp_path: Path, status: Status) -> None:
    facts = red(neighbour=status)
    found = mitigate(facts, effects(Release(tmp_path, grouped={"n": Outcome.LOAD_ERROR}).runner)).mitigations["m"]
    assert [(item.cures, item.breaks) for item in found] == [(True, ())] * 2


@pytest.mark.parametrize(("scenario", "times"), [("alone", 1), ("concurrent", CONCURRENT_REPEATS)])
def test_group_that_failed_must_be_clean_more_than_once(tmp_path: Path, scenario: str, times: int) -> None:
    release = Release(tmp_path)
    assert all(item.cures for item in tried(red(scenario), release).values())
    repeats = [item.repeat for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert len(repeats) == len(set(repeats)) == times


@pytest.mark.parametrize("scenario", ["sequential", "same_file", "while_serving", "reinit", "processes"])
def test_red_initialization_is_tried_again_as_it_was(tmp_path: Path, scenario: str) -> None:
    release = Release(tmp_path)
    assert all(item.cures for item in tried(red(scenario), release).values())
    script = INITIALIZATIONS[scenario].write(["m", "n"], 4)
    assert release.groups
    assert all(item.script == script for item in release.groups)


@pytest.mark.parametrize("sick", ["m", "m#1", "m#3"])
@pytest.mark.parametrize("said", [Outcome.CRASH, 2])
def test_any_copy_that_does_not_pass_under_the_switch_is_no_cure(
    tmp_path: Path, sick: str, said: Outcome | int
) -> None:
    found = tried(red("same_file"), Release(tmp_path, grouped={sick: said}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ())] * 2
    assert all(item.note for item in found.values())


def test_switch_under_which_a_copy_of_a_green_neighbour_answers_otherwise_is_no_cure(tmp_path: Path) -> None:
    found = tried(red("same_file"), Release(tmp_path, grouped={"n#2": 2}))
    assert [(item.cures, item.breaks) for item in found.values()] == [(False, ("n",))] * 2


@pytest.mark.parametrize("rounds", [1, 2])
def test_every_round_of_the_group_must_be_clean(tmp_path: Path, rounds: int) -> None:
    facts = red("while_serving")
    settings = replace(facts.plan.settings, init_rounds=rounds)
    release = Release(tmp_path)
    assert all(
        item.cures for item in tried(replace(facts, plan=replace(facts.plan, settings=settings)), release).values()
    )
    repeats = [item.repeat for item in release.groups if "texpr_fuser" in item.profile.switches]
    assert len(repeats) == len(set(repeats)) == CONCURRENT_REPEATS * rounds


@pytest.mark.parametrize("problem", ["", "m: the new process died"])
def test_problem_in_the_price_duel_withdraws_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    monkeypatch.setattr(stage, "fight", lambda contestants, *_, **__: dict.fromkeys(contestants, Fought((), problem)))
    found = tried(red(budget="quick"), Release(tmp_path))
    assert [item.cures for item in found.values()] == [not problem] * 2
    assert [item.note for item in found.values()] == [f"under load: {problem}" if problem else ""] * 2
