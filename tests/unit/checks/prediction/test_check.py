"""The static check of artifacts, golden bundles too, before anything is loaded; later compared with what happened."""

from dataclasses import replace
from pathlib import Path
from harness.core.archive import ArchiveFormat
from harness.core.golden import ARTIFACT
from harness.core.prediction import Inspection
from harness.artifacts.bundles import write_bundle
from harness.artifacts.files import find_files
from harness.report.formats import INSPECTION
from harness.apps.upgrade.report.predictions import static_report
from harness.checks.prediction.check import inspect_file
from tests.unit.builders.archives import golden
from tests.unit.builders.requests import write_artifact
from tests.unit.builders.bundles import REMEMBERED, described, members_of, write_members
from tests.unit.builders.stages import artifact, continued, effects, known, planned, probed, result
from collections.abc import Mapping
import pytest
from harness.core.archive import OperatorRegistry
from harness.core.models import GivenArtifact
from harness.core.outcome import Outcome, Status
from harness.core.prediction import PredictedLoad, Prediction
from harness.core.probe import TORCH_LOAD, Failure, ServingProfile
from harness.probing.facts import OldAnswers, Export, Decided, RollbackProbe
from harness.checks.prediction.stage import predict_loading, predict_with
from harness.verdict.cells import judge_cells
from tests.unit.builders.archives import CODE, torchscript
from tests.unit.builders.archives import registry


def real_bundle(folder: Path) -> tuple[Path, Path]:
    """Return a bundle with an artifact that torch wrote, and that artifact."""
    artifact = write_artifact(folder / "made-of")
    plain = Path(artifact.path)
    plain.write_bytes(golden("din"))
    return write_bundle(folder, described(), artifact, REMEMBERED), plain


def test_the_artifact_in_a_bundle_is_judged_as_if_it_lay_beside(tmp_path: Path) -> None:
    path, plain = real_bundle(tmp_path)
    inside, outside = inspect_file(str(path), {}).facts, inspect_file(str(plain), {}).facts
    assert inside is not None
    assert outside is not None
    assert inside.operators
    assert replace(inside, path="", container="") == replace(outside, path="", container="")
    assert (inside.container, outside.container) == ("golden_bundle", "zip")


def test_a_reader_sees_that_it_is_a_bundle(tmp_path: Path) -> None:
    path, _ = real_bundle(tmp_path)
    text = INSPECTION.render("text", Inspection(releases={}, files=(inspect_file(str(path), {}),)))
    assert "golden bundle: TorchScript archive" in text


def test_bundles_in_a_folder_are_found(tmp_path: Path) -> None:
    path, plain = real_bundle(tmp_path)
    assert {file.path for file in find_files([str(tmp_path)])} == {str(path), str(plain)}


def test_a_bundle_that_lost_a_member_is_a_failure_and_no_crash(tmp_path: Path) -> None:
    path, _ = real_bundle(tmp_path)
    members = members_of(path)
    write_members(path, {name: data for name, data in members.items() if not name.startswith("inputs")})
    found = inspect_file(str(path), {})
    assert found.failure is not None
    assert found.failure.kind == "damaged"
    assert ARTIFACT in members


def test_an_artifact_that_is_something_else_is_named_for_what_it_is(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "made-of")
    Path(artifact.path).write_text("version https://git-lfs.github.com/spec/v1\n")
    found = inspect_file(str(write_bundle(tmp_path, described(), artifact, REMEMBERED)), {})
    assert found.facts is not None
    assert found.facts.format is ArchiveFormat.LFS_POINTER
    assert found.advice


RELU = "aten::relu(Tensor self) -> Tensor"
OTHER = "aten::gelu(Tensor self) -> Tensor"
REGISTRIES = {"old": registry("2.1.2", RELU), "new": registry("2.6.0", OTHER)}
REFUSED = result("m", Outcome.LOAD_ERROR, phase="load")
LOADED = result("m", load_ns=5)


@pytest.fixture
def facts(tmp_path: Path) -> Decided:
    """A model whose artifact calls relu, that the old release loads and the new one refuses."""
    (tmp_path / "m.pt").write_bytes(torchscript())
    known_facts = known(
        planned("m"), alone={"m": probed(REFUSED)}, baselines={"m": OldAnswers(results=(LOADED, LOADED))}
    )
    (export,) = known_facts.exports.values()
    return replace(known_facts, exports={"m": replace(export, artifact=artifact("m", path=str(tmp_path / "m.pt")))})


def read(facts: Decided, registries: Mapping[str, OperatorRegistry] = REGISTRIES) -> Decided:
    return continued(facts, predict_with(registries, facts, effects()))


def test_each_artifact_is_predicted_for_both_releases(facts: Decided) -> None:
    verdicts = read(facts).predictions["m"].verdicts
    assert {side: verdict.prediction for side, verdict in verdicts.items()} == {
        "old": Prediction.LOADS,
        "new": Prediction.FAILS,
    }


def test_right_predictions_agree_and_keep_the_reason(facts: Decided) -> None:
    report = static_report("m", read(facts), effects())
    assert report is not None
    assert {side: told.agreed for side, told in report.sides.items()} == {"old": True, "new": True}
    verdict = report.sides["new"].verdict
    assert verdict is not None
    assert [(item.kind, item.subject) for item in verdict.findings] == [("operator_missing", "aten::relu")]


def test_an_artifact_that_loads_against_the_prediction_is_a_wrong_one(facts: Decided) -> None:
    report = static_report("m", read(replace(facts, alone={"m": probed(LOADED)})), effects())
    assert report is not None
    assert (report.sides["new"].agreed, report.sides["new"].happened) == (False, PredictedLoad.LOADED)


def test_what_torch_load_refuses_says_nothing_about_what_torch_jit_load_takes(facts: Decided) -> None:
    plan = replace(facts.plan, settings=replace(facts.plan.settings, profile=ServingProfile(load=TORCH_LOAD)))
    report = static_report("m", read(replace(facts, plan=plan, alone={"m": probed(LOADED)})), effects())
    assert report is not None
    assert {side: told.agreed for side, told in report.sides.items()} == {"old": None, "new": None}


def test_repeats_that_do_not_agree_and_probes_that_never_came_test_nothing(facts: Decided) -> None:
    shaky = replace(facts, alone={}, baselines={"m": OldAnswers(results=(LOADED, REFUSED))})
    report = static_report("m", read(shaky), effects())
    assert report is not None
    assert {side: told.agreed for side, told in report.sides.items()} == {"old": None, "new": None}


def test_beside_golden_records_only_the_new_release_is_predicted(facts: Decided) -> None:
    found = continued(facts, predict_with({"new": REGISTRIES["new"]}, facts, effects(sides=("new",))))
    report = static_report("m", found, effects(sides=("new",)))
    assert report is not None and list(report.sides) == ["new"]


def test_a_model_without_an_artifact_is_not_predicted(facts: Decided) -> None:
    (export,) = facts.exports.values()
    found = read(replace(facts, exports={"m": replace(export, artifact=None)}))
    assert found.predictions == {} and static_report("m", found, effects()) is None


def test_what_the_new_release_writes_is_read_as_well(facts: Decided) -> None:
    way = RollbackProbe(export=facts.exports["m"])
    empty = RollbackProbe(export=Export(declaration=way.export.declaration, outcome=Outcome.EXPORT_ERROR))
    found = read(replace(facts, rollback_probes={"m": way, "n": empty})).rollback_probes
    assert found["m"].file is not None and found["m"].file.verdicts["old"].prediction is Prediction.LOADS
    assert found["n"].file is None


def test_a_release_that_cannot_say_what_it_has_leaves_the_run_without_predictions(
    facts: Decided, tmp_path: Path
) -> None:
    found = predict_loading(facts, replace(effects(), native_folder=tmp_path / "envs" / "native"))
    assert found.predictions == {}
    (note,) = found.static_notes
    assert note.startswith("nothing was predicted: ")


def test_a_model_that_opens_files_is_named_in_a_note(facts: Decided, tmp_path: Path) -> None:
    assert not read(facts).static_notes
    code = CODE.replace("torch.relu(x)", "torch.from_file('/dev/shm/x', True, 8)")
    assert code != CODE
    (tmp_path / "m.pt").write_bytes(torchscript(code))
    (note,) = read(facts).static_notes
    assert note.startswith("m: may write or read files")


@pytest.mark.parametrize("word", ["in", "pass", "None", "is"])
def test_a_model_that_no_release_loads_again_is_named_where_it_is_exported(
    word: str, facts: Decided, tmp_path: Path
) -> None:
    (tmp_path / "m.pt").write_bytes(torchscript(CODE.replace("training", word)))
    (note,) = read(facts).static_notes
    assert note.startswith("m: was saved, and code/__torch__/m.py, line 4: ")
    assert f"{word!r} is a word of TorchScript: no release loads it: rename it (the key of a ModuleDict, " in note


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [(RELU, OTHER, Status.FAIL), (RELU, RELU, Status.UNSUPPORTED), (OTHER, OTHER, Status.UNSUPPORTED)],
    ids=["gone", "there", "never there"],
)
def test_a_file_for_another_device_that_will_not_load_on_any_is_red(
    facts: Decided, tmp_path: Path, old: str, new: str, status: Status
) -> None:
    given = replace(facts.plan.models[0], given=GivenArtifact(path=str(tmp_path / "m.pt")))
    failure = Failure(type="Unsupported", message="declared for cuda only", phase="")
    untried = Export(declaration=given, outcome=Outcome.UNSUPPORTED, failure=failure)
    asked = replace(facts, exports={"m": untried}, alone={}, baselines={})
    found = read(asked, {"old": registry("2.1.2", old), "new": registry("2.6.0", new)})
    (cell,) = judge_cells(found, effects()).verdicts["m"]
    report = static_report("m", found, effects())
    assert cell.status is status and report is not None and report.artifact.endswith("m.pt")
    if status is Status.FAIL:
        assert [(item.kind, item.subject) for item in cell.findings] == [("load_error", "aten::relu")]
        assert "will not load" in cell.findings[0].message and "declared for cuda only" in cell.findings[0].message
