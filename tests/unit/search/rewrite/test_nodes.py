"""What is told of a patched archive in releases that are made up: when it fixes, and when not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.core.plan import Cell
from harness.search.bisect.load_error import unseen
from harness.search.mitigation import price
from harness.search.rewrite.nodes import verified
from harness.core.diagnosis import RefusedNode, RewriteReport, Rewritten
from harness.core.measurement import LatencyMeasurement
from harness.core.models import Artifact, InputSet
from harness.core.outcome import Outcome, Status
from harness.core.probe import CallRecord, ProbeRequest, ProbeResult
from harness.core.verdict import CellVerdict, Finding
from harness.probing.facts import Decided, Effects
from harness.artifacts.tensors.outputs import Outputs
from tests.unit.builders.stages import Folder, Runner, artifact, effects, known, planned, probed, result
from tests.unit.builders.tensors import write_answers
from tests.unit.builders.verdicts import ratio

WORDS = Rewritten(rule="one", what="one in other words")
Says = Callable[[ProbeRequest], Outcome | int]


def facts(*, slow: Status | None = None) -> Decided:
    """Return facts of a model whose requests ask two methods, the second one twice as long."""
    found = known(planned("m"))
    sets = (InputSet(name="example"), InputSet(name="encode example", method="encode"))
    calls = tuple(
        CallRecord(input_set=name, call=index, duration_ns=10**8 * factor)
        for name, factor in (("example", 1), ("encode example", 2))
        for index in range(2)
    )
    cell = CellVerdict(
        cell=Cell("m", "latency").id,
        model="m",
        scenario="latency",
        status=slow or Status.PASS,
        findings=(Finding(kind="latency", message="slow"),) if slow else (),
    )
    golden = Outputs(calls={("example", 0): ["int", 1]}, buffer=b"")
    return replace(
        found,
        exports={"m": replace(found.exports["m"], artifact=artifact("m", input_sets=sets))},
        baselines={"m": replace(found.baselines["m"], results=(result("m", calls=calls),), golden=golden)},
        verdicts={"m": (cell,)},
    )


def release(folder: Path, says: Says = lambda request: 1) -> Runner:
    def answer(request: ProbeRequest) -> ProbeResult:
        (run,) = request.runs
        said = says(request)
        outcome = said if isinstance(said, Outcome) else Outcome.COMPLETED
        directory = write_answers(
            folder / str(len(runner.asked)), {"m": ["int", said]} if outcome is Outcome.COMPLETED else {}
        )
        calls = tuple(
            CallRecord(input_set=name, call=index, duration_ns=10 + (request.side == "new"))
            for name, count in run.schedule
            for index in range(count)
        )
        told = probed(result("m", outcome, calls=calls), side=request.side, directory=directory)
        return replace(told, outcome=outcome)

    runner = Runner(answer)
    return runner


def asked(runner: Runner, facts: Decided, folder: Path, *, method: str = "forward") -> Rewritten:
    patched = artifact("m", path=str(folder / "m.pt"), digest="patched", input_sets=facts.artifact("m").input_sets)
    (folder / "m.pt").write_bytes(b"")
    return verified("m", patched, WORDS, facts, _into(folder, runner), repeats=3, method=method)


def _into(folder: Path, runner: Runner) -> Effects:
    run_dir = Folder()
    run_dir.path = folder
    return replace(effects(runner), run_dir=cast(Any, run_dir))


SLOWER = ratio(1.4, 1.6)


@pytest.fixture(autouse=True)
def contests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Artifact, Artifact]]:
    """Return what was timed; the benchmark says of everything that it is half as slow again."""
    asked: list[tuple[Artifact, Artifact]] = []

    def contest(contestants: Mapping[str, tuple[Artifact, Artifact]], *_: Any, label: str, **__: Any) -> Any:
        assert label.endswith(contestants["m"][1].digest), "rounds of another archive would be kept in its folder"
        asked.append(contestants["m"])
        return {"m": LatencyMeasurement(model="m", samples=(), steady=SLOWER)}

    monkeypatch.setattr(price, "contest", contest)
    return asked


def test_a_fix_is_well_in_every_repeat_and_its_method_is_timed(
    tmp_path: Path, contests: list[tuple[Artifact, Artifact]]
) -> None:
    runner = release(tmp_path / "p")
    found = asked(runner, facts(), tmp_path, method="encode")
    assert (found.fixes, found.repeats, found.steady) == (True, 3, SLOWER)
    assert [request.repeat for request in runner.asked if request.side == "new"] == [0, 1, 2]
    ((old, new),) = contests
    assert (old.digest, new.digest) == (facts().artifact("m").digest, "patched")
    assert [side.input_sets[0].method for side in (old, new)] == ["encode", "encode"]


@pytest.mark.parametrize(
    ("problem", "fixes"),
    [("the new process gave no answer within 60 s", False), ("the old process died", True)],
)
def test_what_fails_only_after_many_calls_is_no_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, fixes: bool
) -> None:
    ill = LatencyMeasurement(model="m", samples=(), problem=problem, problem_of="old" if fixes else "new")
    monkeypatch.setattr(price, "contest", lambda *_, **__: {"m": ill})
    found = asked(release(tmp_path / "p"), facts(), tmp_path)
    assert (found.fixes, found.steady, found.note) == (fixes, None, "" if fixes else f"under load: {problem}")


def test_what_is_not_timed_is_called_many_times_and_must_go_on_answering_the_same(tmp_path: Path) -> None:
    known = facts()
    settings = known.plan.settings
    settings = replace(settings, latency=replace(settings.latency, budget="off"))
    untimed = replace(known, plan=replace(known.plan, settings=settings))
    runner = release(tmp_path / "p")
    assert asked(runner, untimed, tmp_path, method="encode").fixes
    last = runner.asked[-1]
    assert last.script is not None
    assert (last.side, last.runs[0].schedule[0][0]) == ("new", "encode example")
    assert last.script.threads[0].count(("answer", "m", "own", 0)) == 25  # five seconds of calls of 0.2 s

    drifts = {"served_otherwise:m": {"calls": 25, "first": 7, "different": 18}}
    drifting = Runner(lambda request: replace(runner(request), data=drifts if request.script else {}))
    found = asked(drifting, untimed, tmp_path)
    assert (found.fixes, found.note) == (False, "answers otherwise after 7 of 25 further calls")


@pytest.mark.parametrize("side", ["old", "new"])
def test_other_answers_in_either_release_are_no_fix(tmp_path: Path, side: str) -> None:
    found = asked(release(tmp_path / "p", lambda request: 2 if request.side == side else 1), facts(), tmp_path)
    assert not found.fixes and ("it is not the same in" in found.note) == (side == "old")
    assert "expected int 1, got int 2" in found.note


@pytest.mark.parametrize("status", [Status.FAIL, Status.XFAIL])
def test_a_slow_cell_is_fixed_by_time_alone_waived_or_not(tmp_path: Path, status: Status) -> None:
    found = asked(release(tmp_path / "p"), facts(slow=status), tmp_path)
    assert (found.fixes, found.steady) == (False, SLOWER)
    assert found.note.startswith("still slow: +50.0 %")


def test_what_no_request_asks_is_reported_of_an_equivalent() -> None:
    node = RefusedNode(method="legacy", address=(1,), operator="aten::gone", schema="", source="")
    said = unseen("m", artifact("m"), RewriteReport(found=(node,)), known(planned("m")), effects())
    assert said == "no request reaches aten::gone: that the values are the same there was not seen"
