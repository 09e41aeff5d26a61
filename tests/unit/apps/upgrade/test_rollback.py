"""What the new release writes, in the old one: exported again, read, probed, answered."""

import json
import shlex
from tests.unit.builders.stages import (
    FINGERPRINTS,
    Runner,
    continued,
    declared,
    effects,
    known,
    planned,
    probed,
    result,
)
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.models import ArtifactKind, GivenArtifact
from harness.core.outcome import Outcome, Status
from harness.core.plan import Plan, PolicySettings
from harness.core.prediction import RollbackAnswer, RollbackReport
from harness.core.probe import Failure, ModelResult, ProbeRequest, ProbeResult
from harness.artifacts.manifest import read_manifest
from harness.probing.facts import OldAnswers, Decided
from harness.apps.upgrade.rollback import export_again, judge_rollback_probes, probe_rollbacks, with_commands
from harness.checks.prediction.stage import predict_with
from harness.worker import wire
from tests.unit.builders.archives import torchscript
from tests.unit.builders.archives import registry

RELU = "aten::relu(Tensor self) -> Tensor"
NEW = registry("2.6.0", RELU)
TAKES = {"old": registry("2.1.2", RELU), "new": NEW}
REFUSES = {"old": registry("2.1.2", "aten::gelu(Tensor self) -> Tensor"), "new": NEW}


class Releases:
    """The new release exports and answers 1.0; the old one answers ``old``, or does not load where that is None."""

    def __init__(self, folder: Path, old: float | None = 1.0, refuses: Sequence[str] = ()) -> None:
        self.folder, self.old, self.refuses = folder, old, refuses
        self.started = 0

    def __call__(self, request: ProbeRequest) -> ProbeResult:
        self.started += 1
        folder = self.folder / str(self.started)
        folder.mkdir(parents=True)
        if request.verb in ("export", "resave"):
            return self.write(request, folder)
        names = [run.artifact.model for run in request.runs]
        value = self.old if request.side == "old" else 1.0
        if value is None:
            return probed(*[result(name, Outcome.LOAD_ERROR, phase="load") for name in names], side="old")
        trees = [
            json.dumps({"model": name, "set": "example", "call": 0, "tree": ["float", repr(value)]}) for name in names
        ]
        self.put(folder / wire.OUTPUTS, "\n".join(trees) + "\n")
        return probed(*[result(name, load_ns=1) for name in names], side=request.side, directory=str(folder))

    def write(self, request: ProbeRequest, folder: Path) -> ProbeResult:
        assert request.declaration is not None
        name = request.declaration.name
        if name in self.refuses:
            failure = Failure(type="KeyError", message="7", phase="construct")
            return probed(result(name, Outcome.EXPORT_ERROR, failure=failure), directory=str(folder))
        (folder / f"{name}.pt").write_bytes(torchscript())
        self.put(folder / "inputs", "")
        data = {"exported": {"operators": ["aten::relu"], "input_sets": [["example", "forward"]]}}
        return probed(result(name), directory=str(folder), data=data)

    def put(self, folder: Path, index: str) -> None:
        folder.mkdir()
        (folder / wire.TENSORS_INDEX).write_text(index)
        (folder / wire.TENSORS_BIN).write_bytes(b"")


def exported(releases: Releases, plan: Plan | None = None, **changes: Any) -> tuple[Decided, Runner]:
    runner = Runner(releases)
    facts = replace(known(plan or planned("m")), **changes)
    return continued(facts, export_again(facts, effects(runner))), runner


def answered(facts: Decided, registries: Any = TAKES, runner: Runner | None = None) -> RollbackReport:
    touched = effects(runner)
    inspected = probe_rollbacks(predict_with(registries, facts, touched), facts, touched)
    report = judge_rollback_probes(inspected, facts, touched)
    assert report is not None
    return with_commands(report, inspected, "gate")


def test_every_model_is_exported_in_the_new_release(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path), planned("a", "b"))
    assert {(request.verb, request.side) for request in runner.asked} == {("export", "new")}
    assert set(facts.rollback_probes) == {"a", "b"}
    assert all(way.export.artifact is not None for way in facts.rollback_probes.values())


@pytest.mark.parametrize(
    "plan",
    [planned("m", direction="forward"), planned("m", settings={"rollback": "off"})],
    ids=["the run is a rollback itself", "nobody wants it"],
)
def test_where_it_is_not_asked_nothing_is_exported_and_nothing_answered(plan: Plan, tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path), plan)
    assert not runner.asked and judge_rollback_probes(facts, facts, effects()) is None


def test_the_same_torch_on_both_sides_has_no_rollback(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path), fingerprints=dict.fromkeys(("old", "new"), FINGERPRINTS["new"]))
    assert not runner.asked and judge_rollback_probes(facts, facts, effects()) is None


def test_a_package_is_not_saved_again_and_the_answer_says_so(tmp_path: Path) -> None:
    plan = planned("m", "net")
    package = GivenArtifact(path="/m/net.pt2", kind=ArtifactKind.PACKAGE)
    models = [replace(model, given=package if model.name == "net" else model.given) for model in plan.models]
    beside, runner = exported(Releases(tmp_path / "beside"), replace(plan, models=tuple(models)))
    assert [request.verb for request in runner.asked] == ["export"]
    assert [item.model for item in answered(beside).models] == ["m"]
    alone, runner = exported(Releases(tmp_path / "alone"), replace(plan, models=tuple(models[1:])))
    assert not runner.asked
    report = answered(alone)
    assert (report.answer, report.models) == (RollbackAnswer.UNKNOWN, ())
    assert report.reason == "a package of AOTInductor is compiled, and no release saves it again"


def test_beside_golden_records_it_is_not_known() -> None:
    facts = known(planned("m"))
    only_new = effects(sides=("new",))
    facts = continued(facts, export_again(facts, only_new))
    report = judge_rollback_probes(facts, facts, only_new)
    assert report is not None
    assert (report.answer, report.models) == (RollbackAnswer.UNKNOWN, ())
    assert "golden outputs" in report.reason


def test_a_model_that_the_new_release_cannot_be_asked_for_is_left_out(tmp_path: Path) -> None:
    plan = planned("m", models=(declared("m"), declared("later", requires="2.9"), declared("gpu", devices=("cuda",))))
    facts, _ = exported(Releases(tmp_path), plan, exports={}, baselines={}, alone={})
    assert set(facts.rollback_probes) == {"m"}


def test_reading_answers_without_a_probe(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path))
    report = answered(facts, runner=runner)
    assert (report.answer, report.method, report.gates) == (RollbackAnswer.YES, "read", False)
    assert report.models[0].command == ""
    assert not [request for request in runner.asked if request.verb == "run"]


def test_an_operator_that_the_old_release_lacks_closes_the_rollback(tmp_path: Path) -> None:
    plan = planned("m", settings={"policy": PolicySettings(rollback="fail")}, arguments=("compat", "--fixtures", "zoo"))
    facts, runner = exported(Releases(tmp_path), plan)
    report = answered(facts, REFUSES, runner)
    assert (report.answer, report.gates) == (RollbackAnswer.NO, True)
    assert report.reason.startswith("1 of 1 model: m: aten::relu: torch 2.1.2 does not have it")
    (item,) = report.models
    assert item.command == "gate compat --old 2.6.0 --new 2.1.2 --fixtures zoo -k m --scenario alone"
    assert item.artifact.endswith("/m.pt")


def test_what_the_new_release_does_not_write_is_not_known(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path, refuses=("m",)))
    report = answered(facts, runner=runner)
    assert report.answer is RollbackAnswer.UNKNOWN
    assert report.models[0].reason == "torch 2.6.0 has not written it: fixtures/m.py:1 raises KeyError: 7"


def given(path: str) -> Plan:
    return planned(
        "m",
        models=(declared("m", given=GivenArtifact(path=path), tags=("ads",)),),
        arguments=("compat", "--artifacts", path),
    )


def test_a_given_file_is_loaded_and_saved_again(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path), given("/models/m.pt"))
    (request,) = runner.asked
    assert (request.verb, request.side) == ("resave", "new")
    assert request.declaration is not None and request.declaration.given is not None
    assert request.declaration.given.path == "/a/m.pt"  # as the run keeps it
    saved = facts.rollback_probes["m"].export.artifact
    assert saved is not None and saved.input_sets == facts.artifact("m").input_sets
    assert saved.path != "/a/m.pt" and saved.digest != facts.artifact("m").digest
    said = answered(facts, REFUSES, runner).models[0].command
    manifest = Path(saved.path).with_name("models.toml")
    assert f"--artifacts {shlex.quote(str(manifest))} " in said
    (model,) = read_manifest(manifest.read_text(), file=str(manifest), folder=str(manifest.parent))
    assert (model.name, model.tags) == ("m", ("ads",))
    assert model.given == GivenArtifact(path=saved.path, inputs="/a/inputs/tensors.jsonl")


FAILS = result(outcome=Outcome.LOAD_ERROR, phase="load", failure=Failure(type="E", message="no", phase="load"))


@pytest.mark.parametrize(
    ("before", "left_out"),
    [((FAILS, FAILS), True), ((FAILS, result()), False), ((result(), result()), False), ((), False)],
    ids=["fails in the old release too", "only sometimes", "works there", "was not asked there"],
)
def test_a_model_that_fails_in_the_old_release_anyway_is_left_out(
    before: tuple[ModelResult, ...], left_out: bool, tmp_path: Path
) -> None:
    plan = planned("m", "well", settings={"policy": PolicySettings(rollback="fail")})
    facts, runner = exported(Releases(tmp_path, refuses=("m",)), plan)
    facts = replace(facts, baselines={**facts.baselines, "m": OldAnswers(results=before)})
    report = answered(facts, runner=runner)
    assert [item.model for item in report.models] == (["well"] if left_out else ["m", "well"])
    assert report.answer is (RollbackAnswer.YES if left_out else RollbackAnswer.UNKNOWN)
    assert dict(report.left_out) == ({"m": "does not load in torch 2.1.2, alone: E: no"} if left_out else {})


def test_a_model_that_fails_in_the_old_release_and_is_known_not_to_come_back_is_reported(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path))
    facts = replace(facts, baselines={"m": OldAnswers(results=(FAILS, FAILS))})
    report = answered(facts, REFUSES, runner)
    assert (report.answer, report.left_out) == (RollbackAnswer.NO, {})


def test_where_every_model_fails_in_the_old_release_nothing_is_known(tmp_path: Path) -> None:
    facts, runner = exported(Releases(tmp_path, refuses=("m",)))
    facts = replace(facts, baselines={"m": OldAnswers(results=(FAILS, FAILS))})
    report = answered(facts, runner=runner)
    assert (report.answer, report.reason) == (RollbackAnswer.UNKNOWN, "every model fails in the old release too")


def test_a_given_file_that_was_not_taken_over_has_no_rollback(tmp_path: Path) -> None:
    plan = given("/models/m.pt")
    known_facts = known(plan)
    gone = replace(known_facts.exports["m"], artifact=None, outcome=Outcome.NOT_RUN)
    facts, runner = exported(Releases(tmp_path), plan, exports={"m": gone})
    assert not runner.asked
    assert answered(facts, runner=runner).answer is RollbackAnswer.UNKNOWN


@pytest.mark.parametrize(("before", "asked"), [(Outcome.HANG, 0), (Outcome.OUT_OF_MEMORY, 0), (Outcome.LOAD_ERROR, 1)])
def test_a_file_that_hung_in_one_release_is_not_loaded_in_the_other_to_be_saved(
    before: Outcome, asked: int, tmp_path: Path
) -> None:
    plan = given("/models/m.pt")
    taken = replace(known(plan).exports["m"], result=probed(result("m", before), side="old"))
    facts, runner = exported(Releases(tmp_path), plan, exports={"m": taken})
    assert len(runner.asked) == asked
    report = answered(facts, runner=runner)
    assert report.answer is (RollbackAnswer.YES if asked else RollbackAnswer.UNKNOWN)
    assert asked or before.value.replace("_", " ") in report.reason


@pytest.mark.parametrize(("phase", "asked"), [("load", []), ("call", ["resave"])], ids=["in load", "in a call"])
def test_what_is_known_to_hang_in_the_new_release_is_not_waited_for_again(
    phase: str, asked: list[str], tmp_path: Path
) -> None:
    plan = replace(given("/models/m.pt"), settings=replace(given("/models/m.pt").settings, rollback="probe"))
    hung = {"m": probed(result("m", Outcome.HANG, phase=phase))}
    facts, runner = exported(Releases(tmp_path), plan, alone=hung)
    report = answered(facts, runner=runner)
    assert [request.verb for request in runner.asked] == asked
    told = "torch 2.6.0 has not written it: NotTried: hang in load in torch 2.6.0"
    assert report.models[0].reason == ("" if asked else told)


@pytest.mark.parametrize(
    ("old", "registries", "status", "answer", "agreed"),
    [
        (1.0, TAKES, Status.PASS, RollbackAnswer.YES, True),
        (2.0, TAKES, Status.FAIL, RollbackAnswer.NO, True),
        (None, REFUSES, Status.FAIL, RollbackAnswer.NO, True),
        (None, TAKES, Status.FAIL, RollbackAnswer.NO, False),
    ],
    ids=["answers alike", "answers otherwise", "is refused", "is refused against the prediction"],
)
def test_a_probe_in_the_old_release_is_judged_by_the_new_one(
    old: float | None, registries: Any, status: Status, answer: RollbackAnswer, agreed: bool, tmp_path: Path
) -> None:
    facts, runner = exported(Releases(tmp_path, old), planned("m", settings={"rollback": "probe", "repeats": 2}))
    report = answered(facts, registries, runner)
    (item,) = report.models
    assert item.verdict is not None and item.predicted is not None
    assert (report.method, item.verdict.status, item.answer) == ("probed", status, answer)
    assert item.verdict.cell == "m/alone/forward"
    assert item.predicted.agreed is agreed
    runs = [request.side for request in runner.asked if request.verb == "run"]
    assert runs == ["new", "new", "old"]


@pytest.mark.parametrize(("rollback", "answer"), [("static", RollbackAnswer.UNKNOWN), ("probe", RollbackAnswer.YES)])
def test_where_nothing_could_be_read_a_probe_answers_alone(
    rollback: str, answer: RollbackAnswer, tmp_path: Path
) -> None:
    facts, runner = exported(Releases(tmp_path), planned("m", settings={"rollback": rollback, "repeats": 2}))
    touched = effects(runner)
    unread = replace(facts, static_notes=("nothing was predicted: no answer",))
    report = judge_rollback_probes(probe_rollbacks(unread, facts, touched), facts, touched)
    assert report is not None
    assert (report.answer, report.models[0].predicted) == (answer, None)
    assert report.reason == ("" if answer is RollbackAnswer.YES else "nothing was predicted: no answer")
