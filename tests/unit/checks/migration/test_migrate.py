"""The way out of TorchScript, step by step, without torch: what is converted, and beside what it is timed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.measurement import LatencyMeasurement
from harness.core.models import Artifact, ArtifactKind
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ProbeRequest, ProbeResult
from harness.core.errors import ConfigError
from harness.serving.scenarios import reordered
from harness.serving.settings.mitigations import orders
from harness.checks.startup.launch import REPEATS_OF_A_ROUND
from harness.checks.migration import migrate, serving
from harness.checks.migration.facts import Loader
from harness.checks.migration.migrate import ENDINGS, try_all
from tests.unit.builders.stages import Runner, artifact, effects, facts_of, probed, result
from tests.unit.verdict.test_migration import request

HERE = (Loader(name="2.15.0", side="new"),)
MADE = {"convert": ArtifactKind.PROGRAM, "package": ArtifactKind.PACKAGE}


class Contests:
    """Stands for the paired benchmark: what it was asked for, label by label."""

    def __init__(self) -> None:
        self.asked: dict[str, Mapping[str, tuple[Artifact, Artifact]]] = {}

    def __call__(
        self, contestants: Mapping[str, tuple[Artifact, Artifact]], *_: Any, label: str, **__: Any
    ) -> Mapping[str, LatencyMeasurement]:
        self.asked[label] = contestants
        return {name: LatencyMeasurement(model=name, samples=()) for name in contestants}


@pytest.fixture
def contests(monkeypatch: pytest.MonkeyPatch) -> Contests:
    """Requests that need no file, and no time that is measured."""
    entries = [(item.name, "forward", request(4, 3)) for item in artifact().input_sets]
    monkeypatch.setattr(migrate, "read_inputs", lambda folder: SimpleNamespace(entries=entries))
    monkeypatch.setattr(serving, "contest", found := Contests())
    return found


def writing(folder: Path) -> Runner:
    """Return a runner in which everything completes, and conversion and packaging write their file."""

    def answer(asked: ProbeRequest) -> ProbeResult:
        name = asked.runs[0].artifact.model
        if asked.verb in MADE:
            (folder / f"{name}{ENDINGS[MADE[asked.verb]]}").write_text(asked.runs[0].artifact.path)
        return probed(*(result(run.artifact.model, load_ns=1) for run in asked.runs), directory=str(folder))

    return Runner(answer)


def test_a_package_is_served_and_timed_beside_the_artifact(tmp_path: Path, contests: Contests) -> None:
    runner = writing(tmp_path)
    (found,) = try_all(facts_of("m"), HERE, effects(runner), package=True, in_cpp=True)
    (timed,) = contests.asked.values()
    (old, new), ending = timed["m"], ENDINGS[ArtifactKind.PACKAGE]
    assert (old.path, new.path) == ("/a/m.pt", str(tmp_path / f"m{ending}"))
    assert found.timed is not None
    assert {way.scenario for way in found.served} == {scenario for scenario, _ in serving.WAYS}
    assert {run.artifact.path for asked in runner.asked if asked.runtime == "libtorch" for run in asked.runs} == {
        new.path
    }


def test_what_a_release_has_no_choice_of_does_not_keep_a_package_from_being_timed(
    tmp_path: Path, contests: Contests
) -> None:
    """The loader of 2.6.0 takes no number of runners."""
    well, no_choice = (
        writing(tmp_path),
        Failure(type="Unsupported", message="one runner for each package", phase="load"),
    )

    def answer(asked: ProbeRequest) -> ProbeResult:
        if asked.runtime == "libtorch" and asked.profile.runners > 1:
            return probed(result("m", Outcome.LOAD_ERROR, phase="load", failure=no_choice), directory=str(tmp_path))
        return well(asked)

    (found,) = try_all(facts_of("m"), HERE, effects(Runner(answer)), package=True, in_cpp=True)
    assert [way.is_no_choice for way in found.served].count(True) == 1
    assert found.timed is not None


@pytest.mark.parametrize("fixed", [True, False])
def test_a_package_that_a_race_of_loads_fails_is_timed_where_a_mutex_fixes_that(
    tmp_path: Path, contests: Contests, fixed: bool
) -> None:
    well = writing(tmp_path)

    def answer(asked: ProbeRequest) -> ProbeResult:
        script = asked.script
        if asked.runtime == "python" or script is None or len(script.threads) == 1:
            return well(asked)
        if fixed and reordered(script, orders([serving.LOADS])) == script:
            return well(asked)
        crashed = [result(run.artifact.model, Outcome.CRASH, phase="load") for run in asked.runs]
        return probed(*crashed, directory=str(tmp_path))

    found = try_all(facts_of("m", "n"), HERE, effects(Runner(answer)), package=True, in_cpp=True)
    assert [one.timed is not None for one in found] == [fixed, fixed]
    assert any(way.result.outcome is Outcome.CRASH for way in found[0].served)


def test_a_fix_is_verified_in_three_times_as_many_rounds_as_the_failure_took_to_show(
    tmp_path: Path, contests: Contests
) -> None:
    well, in_turn = writing(tmp_path), list[int]()

    def answer(asked: ProbeRequest) -> ProbeResult:
        script = asked.script
        if asked.runtime == "python" or script is None or len(script.threads) == 1:
            return well(asked)
        number = asked.repeat // REPEATS_OF_A_ROUND
        if reordered(script, orders([serving.LOADS])) == script:
            in_turn.append(number)
        elif number == serving.ROUNDS - 1:
            crashed = [result(run.artifact.model, Outcome.CRASH, phase="load") for run in asked.runs]
            return probed(*crashed, directory=str(tmp_path))
        return well(asked)

    (found,) = try_all(facts_of("m"), HERE, effects(Runner(answer)), package=True, in_cpp=True)
    assert {way.mitigation for way in found.served if way.result.outcome is Outcome.CRASH} == {("serialized loading",)}
    assert max(in_turn) == serving.TIMES_AS_MANY * serving.ROUNDS - 1


def test_too_little_time_for_the_benchmark_loses_nothing_of_what_was_compiled(
    tmp_path: Path, contests: Contests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ConfigError("latency.total_s of 1 s is too little", "go on with: --resume")

    monkeypatch.setattr(serving, "time_for", refuse)
    notes: list[str] = []
    around = effects(writing(tmp_path))
    monkeypatch.setattr(around.progress, "note", notes.append)
    (found,) = try_all(facts_of("m"), HERE, around, package=True, in_cpp=True)
    assert (found.timed, contests.asked) == (None, {})
    assert notes == ["packages were not timed: latency.total_s of 1 s is too little"]
