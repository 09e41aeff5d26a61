"""Predictions: each reason fires, and "will load" is said only where nothing is in doubt."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.archive.formats import FAILURES, FORMATS
from harness.core.archive import ArchiveFormat, ArchiveProblem, OperatorRegistry, StorageGroup, Upgrader
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticVerdict, Weight
from harness.core.errors import ExitCode
from harness.verdict.exit_codes import exit_code
from harness.checks.prediction.predict import UNREAD, predict
from harness.checks.prediction.semantics import CHANGES, changes_between
from tests.unit.builders.archives import facts, registry, schema, use

RELU = "aten::relu(Tensor self) -> Tensor"
CHOLESKY = "aten::cholesky(Tensor self, bool upper=False) -> Tensor"
OLD, NEW = registry("2.6.0", RELU, CHOLESKY), registry("2.15.0", RELU)


def verdicts(
    *uses: Any, old: OperatorRegistry = OLD, new: OperatorRegistry = NEW, **changes: Any
) -> dict[str, StaticVerdict]:
    return predict(facts(*uses, **changes), {"old": old, "new": new})


def kinds(verdict: StaticVerdict) -> list[str]:
    return [finding.kind for finding in verdict.findings]


def test_what_both_releases_have_will_load() -> None:
    found = verdicts(use("aten::relu", "Tensor"))
    assert {side: verdict.prediction for side, verdict in found.items()} == {"old": "will load", "new": "will load"}
    assert [found[side].direction for side in ("old", "new")] == ["forward", "backward"]
    assert not found["new"].findings


def test_an_operator_that_is_gone_stops_the_load() -> None:
    found = verdicts(use("aten::cholesky", "Tensor"))
    assert found["old"].prediction is Prediction.LOADS
    assert found["new"].prediction is Prediction.FAILS
    assert kinds(found["new"]) == ["operator_missing"]
    assert found["new"].findings[0].place is not None


def test_an_operator_that_a_library_must_register_stops_the_load_without_it() -> None:
    found = verdicts(use("torchvision::nms", "", "", "float"))
    assert kinds(found["new"]) == ["custom_library_missing"]
    assert found["new"].findings[0].what_to_do == "run with --library torchvision"


@pytest.mark.parametrize("name", ["aten::save", "aten::from_file"])
def test_what_opens_files_of_its_own_choice_is_reported(name: str) -> None:
    knows = {side: registry("2.6.0", f"{name}(str name) -> Tensor", RELU) for side in ("old", "new")}
    found = verdicts(use(name, "str"), **knows)["new"]
    assert kinds(found) == ["touches_files"]
    assert found.findings[0].place is not None
    assert (found.prediction, found.findings[0].weight) == (Prediction.LOADS, Weight.WARNING)
    assert not verdicts(use("aten::relu", "Tensor"), **knows)["new"].findings


def test_an_argument_that_is_not_known_stops_the_load() -> None:
    found = verdicts(use("aten::relu", "Tensor", keywords=("inplace",)))
    assert kinds(found["new"]) == ["arguments_refused"]
    assert "has no argument inplace" in found["new"].findings[0].text


@pytest.mark.parametrize(("argument", "prediction"), [("", Prediction.UNKNOWN), ("int", Prediction.LOADS), ("str", Prediction.FAILS)])  # fmt: skip
def test_an_overload_that_is_gone_leaves_doubt_only_where_it_may_be_meant(
    argument: str, prediction: Prediction
) -> None:
    by_number, by_name = (
        "aten::size.int(Tensor self, int dim) -> int",
        "aten::size.Dimname(Tensor self, str dim) -> int",
    )
    old, new = registry("2.6.0", by_number, by_name), registry("2.15.0", by_number)
    found = verdicts(use("aten::size", "Tensor", argument), old=old, new=new)
    assert found["new"].prediction is prediction
    assert found["old"].prediction is Prediction.LOADS


def test_an_older_archive_is_read_through_its_upgrader() -> None:
    upgrader = Upgrader("div_0_3", 4, schema("aten::div.Tensor(Tensor self, Tensor other) -> Tensor"))
    new = registry("2.6.0", "aten::div.Tensor(Tensor self, Tensor other, *, str mode) -> Tensor", upgraders={"aten::div": (upgrader,)})  # fmt: skip
    call = use("aten::div", "Tensor", "Tensor")
    assert kinds(predict(facts(call), {"new": new})["new"]) == ["upgrader_applies"]
    assert predict(facts(call), {"new": new})["new"].prediction is Prediction.LOADS
    assert predict(facts(call, operator_version="10"), {"new": new})["new"].prediction is Prediction.FAILS


@pytest.mark.parametrize(
    ("changes", "kind", "prediction"),
    [
        ({"archive_version": "11"}, "version_too_new", Prediction.FAILS),
        ({"archive_version": "0"}, "version_too_old", Prediction.FAILS),
        ({"archive_version": None}, "version_unreadable", Prediction.UNKNOWN),
        ({"archive_version": "x"}, "version_unreadable", Prediction.UNKNOWN),
        ({"custom_classes": ("xnnpack.Conv2dOpContext",)}, "custom_class_missing", Prediction.FAILS),
        ({"type_names": ("Generator",)}, "type_unknown", Prediction.FAILS),
        ({"storages": (StorageGroup(dtype="uint16", device="cpu", count=1, nbytes=8),)}, "dtype_unknown", Prediction.FAILS),
        ({"storages": (StorageGroup(dtype="x", device="cpu", count=1, nbytes=None),)}, "dtype_unknown", Prediction.UNKNOWN),
        ({"storages": (StorageGroup(dtype="float32", device="cuda:0", count=1, nbytes=8),)}, "device_baked_in", Prediction.LOADS),
        ({"devices": ("cuda:1",)}, "device_in_code", Prediction.LOADS),
        ({"problems": (ArchiveProblem(kind="duplicate_member", text="x"),)}, "duplicate_member", Prediction.UNKNOWN),
        ({"runs_at_load": ("__torch__.m.A",)}, "runs_at_load", Prediction.LOADS),
        ({"runs_at_load": ("__torch__.m.A",), "loops_at_load": ("__torch__.m.A",)}, "loops_at_load", Prediction.UNKNOWN),
        ({"format": ArchiveFormat.MOBILE}, "mobile_bytecode", Prediction.LOADS),
        ({"problems": (ArchiveProblem(kind="name_refused", text="x"),)}, "name_refused", Prediction.FAILS),
        ({"problems": (ArchiveProblem(kind="code_refused", text="x"),)}, "code_refused", Prediction.FAILS),
        ({"problems": (ArchiveProblem(kind="operators_hidden", text="x"),)}, "operators_hidden", Prediction.LOADS),
        *(({"archive_version": None, "problems": (ArchiveProblem(kind=kind, text="x"),)}, kind, Prediction.FAILS) for kind in sorted(UNREAD)),
        ({"storages": (StorageGroup(dtype="quint4x2", device="cpu", count=1, nbytes=8),)}, "dtype_refused", Prediction.FAILS),
        ({"storages": (StorageGroup(dtype="float32", device="meta", count=1, nbytes=8),)}, "values_missing", Prediction.LOADS),
    ],
)  # fmt: skip
def test_every_other_need_is_reported(changes: dict[str, Any], kind: str, prediction: Prediction) -> None:
    found = verdicts(**changes)["new"]
    assert kinds(found) == [kind]
    assert found.prediction is prediction


def test_a_change_of_results_is_reported_once_with_its_source() -> None:
    draw = "aten::multinomial(Tensor self, int n) -> Tensor"
    found = verdicts(
        use("aten::multinomial", "Tensor", "int"), old=registry("2.6.0", draw), new=registry("2.15.0", draw)
    )
    assert (kinds(found["old"]), kinds(found["new"])) == ([], ["semantics_changed"])
    finding = found["new"].findings[0]
    assert (finding.weight, finding.source) == (Weight.WARNING, "https://github.com/pytorch/pytorch/pull/146174")
    assert found["new"].prediction is Prediction.LOADS


def test_a_change_of_what_only_some_calls_draw_is_a_note() -> None:
    drop = "aten::dropout(Tensor input, float p, bool train) -> Tensor"
    uses = use("aten::dropout", "Tensor", "float", "bool")
    found = verdicts(uses, old=registry("2.6.0", drop), new=registry("2.15.0", drop))
    assert [(item.kind, item.weight) for item in found["new"].findings] == [("semantics_changed", Weight.NOTE)]


def test_changes_are_certain_only_between_the_releases_that_were_tried() -> None:
    def sure(old: str, new: str) -> dict[str, bool]:
        return {change.operator: certain for change, certain in changes_between(old, new)}

    assert sure("2.6.0", "2.15.0")["aten::arange"]
    assert sure("2.15.0+cu132", "2.6.0+cu124")["aten::arange"]
    assert not sure("2.6.0", "2.11.0")["aten::arange"]
    assert "aten::softshrink" not in sure("2.6.0", "2.15.0")
    assert sure("nightly", "2.6.0") == {}
    assert all(change.source.startswith("https://github.com/pytorch/pytorch/") for change in CHANGES)


def test_one_release_alone_is_judged_by_its_registry() -> None:
    assert predict(facts(use("aten::relu", "")), {"new": NEW})["new"].prediction is Prediction.LOADS


def test_a_file_without_code_has_no_verdict() -> None:
    assert predict(facts(format=ArchiveFormat.STATE_DICT), {"new": NEW}) == {}


def test_every_format_has_a_name_and_advice_where_it_cannot_be_judged() -> None:
    assert FORMATS.keys() == set(ArchiveFormat)
    judged = [found for found in ArchiveFormat if not FORMATS[found][1]]
    assert judged == ["torchscript", "mobile", "flatbuffer", "exported_program"]


def test_every_failure_has_advice() -> None:
    source = Path(__file__).parents[4] / "harness"
    texts = [*(source / "artifacts" / "archive").glob("*.py"), source / "artifacts" / "files.py"]
    kinds = {kind for path in texts for kind in re.findall(r'CannotRead\(\s*"(\w+)"', path.read_text())}
    assert kinds - FAILURES.keys() == {"damaged_code", "name_refused"}  # which are problems of one member
    assert FAILURES.keys() <= kinds


@pytest.mark.parametrize(
    ("predictions", "code"),
    [
        ((Prediction.LOADS,), ExitCode.COMPATIBLE),
        ((Prediction.LOADS, Prediction.UNKNOWN), ExitCode.INCONCLUSIVE),
        ((Prediction.UNKNOWN, Prediction.FAILS), ExitCode.INCOMPATIBLE),
    ],
)
def test_the_exit_code(predictions: tuple[Prediction, ...], code: ExitCode) -> None:
    files = tuple(
        InspectedFile(
            path=str(index),
            facts=facts(),
            verdicts={"new": StaticVerdict(torch="2", direction="backward", prediction=item, findings=())},
        )
        for index, item in enumerate(predictions)
    )
    assert exit_code(Inspection(releases={"new": "2"}, files=files)) is code
    unread = InspectedFile(path="x", failure=ArchiveProblem(kind="damaged", text="x"), verdicts={})
    expected = ExitCode.INCOMPATIBLE if code is ExitCode.INCOMPATIBLE else ExitCode.INCONCLUSIVE
    assert exit_code(Inspection(releases={"new": "2"}, files=(*files, unread))) is expected


def test_constant_that_torch_writes_without_its_value_loads_nowhere() -> None:
    known = registry("2.6.0", "prim::ConstantMKLDNNTensor(...) -> (...)", "aten::relu(Tensor self) -> Tensor")
    lost = predict(facts(use("prim::ConstantMKLDNNTensor"), use("aten::relu", "Tensor")), {"new": known})["new"]
    assert lost.prediction is Prediction.FAILS
    assert [finding.kind for finding in lost.findings] == ["value_lost"]
    assert predict(facts(use("aten::relu", "Tensor")), {"new": known})["new"].prediction is Prediction.LOADS


PLAIN = "aten::linspace(Scalar start, Scalar end, int steps, *, int? dtype=None, Device? device=None) -> Tensor"
TENSORS = "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, int? dtype=None, Device? device=None) -> Tensor"


@pytest.mark.parametrize(
    ("end", "prediction"), [("int", Prediction.LOADS), ("float", Prediction.LOADS), ("Tensor", Prediction.UNKNOWN)]
)
def test_an_overload_of_another_release_casts_no_doubt_on_numbers_with_keywords(
    end: str, prediction: Prediction
) -> None:
    knows = {"old": registry("2.1.2", PLAIN), "new": registry("2.6.0", PLAIN, TENSORS)}
    call = use("aten::linspace", "int", end, "int", keywords=("dtype", "device"))
    assert verdicts(call, **knows)["old"].prediction is prediction
