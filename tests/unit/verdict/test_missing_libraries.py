"""An operator that nobody registers: of torch itself, of a library that was given, and of one that was not."""

from collections.abc import Mapping, Sequence

import pytest

from harness.verdict.missing_libraries import with_libraries
from harness.core.outcome import Status
from harness.core.probe import ModelResult
from harness.core.verdict import CellVerdict
from harness.probing.loaded_libraries import LoadedLibraries
from tests.unit.builders.verdicts import finding, load_error, result, verdict

NMS = "Unknown builtin op: torchvision::nms.\nCould not find any similar ops"
LOST = verdict(Status.FAIL, finding("load_error"))
ALIKE = verdict(Status.SAME_FAIL, finding("load_error"))


def loaded(version: str, *operators: str) -> LoadedLibraries:
    return LoadedLibraries(
        names=("torchvision",), paths=(), operators=operators, versions={"torchvision": version} if version else {}
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (NMS, "run with --library torchvision"),
        ("Following ops cannot be found: [torchvision::nms]. Please", "run with --library torchvision"),
        ("Unknown builtin op: torchaudio::forced_align.", "run with --library torchaudio"),
        ("Unknown builtin op: fbgemm::jagged_to_dense.", "run with --library fbgemm_gpu"),
        ("Unknown builtin op: torch_scatter::gather_csr.", "run with --library torch_scatter"),
        (
            "Unknown builtin op: mine::fast.",
            "run with --library NAME, the module or shared object that registers mine::",
        ),
        ("Unknown type name '__torch__.torch.classes.mine.Stack':", "that registers mine::"),
        ("'_OpNamespace' 'torchvision' object has no attribute 'nms'", "run with --library torchvision"),
    ],
)
def test_library_that_was_not_given_is_named_and_nothing_is_decided(message: str, said: str) -> None:
    failed = load_error(message)
    judged = with_libraries(ALIKE, [failed, failed], failed, {})
    assert judged.status is Status.INCONCLUSIVE
    assert judged.findings[0].kind == "library_missing"
    assert said in judged.findings[0].message


def test_golden_records_need_the_library_as_well() -> None:
    assert with_libraries(LOST, [], load_error(NMS), {}).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("message", ["Unknown builtin op: aten::gone.", "Unknown builtin op: prim::is_ort.", "boom"])
def test_what_torch_itself_lacks_is_no_missing_library(message: str) -> None:
    failed = load_error(message)
    assert with_libraries(ALIKE, [failed], failed, {}) == ALIKE


def test_operator_that_only_the_new_release_lacks_stays_a_failure() -> None:
    assert with_libraries(LOST, [result()], load_error(NMS), {}) == LOST


def test_library_that_has_lost_the_operator_says_since_which_release() -> None:
    sides = {"old": loaded("0.16.2", "torchvision::nms"), "new": loaded("0.21.0", "torchvision::roi_align")}
    judged = with_libraries(LOST, [result()], load_error(NMS), sides)
    assert judged.status is Status.FAIL
    assert story(judged) == "torchvision 0.21.0 does not register torchvision::nms; torchvision 0.16.2 does"


def test_library_that_never_had_the_operator_is_not_asked_for_again() -> None:
    sides = {
        side: loaded(version, "torchvision::roi_align") for side, version in (("old", "0.16.2"), ("new", "0.21.0"))
    }
    failed = load_error(NMS)
    (found, *_) = with_libraries(ALIKE, [failed], failed, sides).findings
    assert found.message.startswith(
        "torchvision 0.16.2 and torchvision 0.21.0 (--library) register no torchvision::nms"
    )


FIXED = verdict(Status.SAME_FAIL, finding("load_error"))
MINE, OTHER = load_error("Unknown builtin op: mine::fast."), load_error("Unknown builtin op: other::fast.")
GIVEN = {"new": LoadedLibraries(names=("mine",), paths=(), operators=("mine::fast",))}


@pytest.mark.parametrize(
    ("old", "new", "libraries", "said"),
    [
        (MINE, result(), GIVEN, ["mine::fast in the old"]),
        (MINE, load_error("Unknown builtin op: aten::gone."), {}, ["mine::fast in the old"]),
        (MINE, load_error("expected ident but found 'in' here"), {}, ["mine::fast in the old"]),
        (MINE, OTHER, {}, ["mine::fast in the old", "other::fast in the new"]),
        (MINE, OTHER, GIVEN, ["mine::fast in the old", "other::fast in the new"]),
    ],
)
def test_what_the_old_release_was_not_given_has_not_failed_before(
    old: ModelResult, new: ModelResult, libraries: Mapping[str, LoadedLibraries], said: Sequence[str]
) -> None:
    judged = with_libraries(FIXED, [old], new, libraries)
    assert judged.status is Status.INCONCLUSIVE
    missing = [item.message for item in judged.findings if item.kind == "library_missing"]
    assert [message.partition(" release")[0].rpartition("for it ")[2] for message in missing] == [
        f"in the {where.rpartition(' ')[2]}" for where in said
    ]
    assert all(words.split()[0] in message for words, message in zip(said, missing, strict=True))


def story(judged: CellVerdict) -> str:
    (first, *_) = judged.findings
    return dict(first.story)["library"]
