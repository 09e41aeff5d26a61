"""How long an artifact loads: an operator that is gone ends it, one that is deprecated is named, a healthy twin has neither."""

from dataclasses import replace

import pytest

from harness.core.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts, Programs
from harness.core.migration import Horizon, Loading, Migrated, MigratedModel, Migration
from harness.core.prediction import Prediction
from harness.report.documents.migration import horizon_facts
from harness.environments.pythons import LAST_KNOWN_RELEASE
from harness.checks.migration.deprecation import ON_LOAD, deprecated_in, line_of, release_facts
from harness.verdict.horizon import horizon
from tests.unit.builders.archives import facts, registry, use

RELU = "aten::relu(Tensor self) -> Tensor"
QR = "aten::qr(Tensor self, bool some=True) -> Tensor"
CHAIN = "aten::chain_matmul(Tensor[] matrices) -> Tensor"
OLD = replace(registry("2.6.0", RELU, QR, CHAIN), programs=Programs(schema=(8, 2)))
NEW = replace(registry("2.15.0+cpu", RELU, CHAIN), programs=Programs(schema=(8, 20), archive="0"))
RELEASES = {"old": OLD, "new": NEW}
PROGRAM = ArchiveFacts(
    path="net.pt2",
    size_bytes=9,
    format=ArchiveFormat.EXPORTED_PROGRAM,
    program=ProgramFacts(container=ProgramContainer.ARCHIVE, archive_version="0", schema=(8, 20)),
)


def test_an_operator_that_the_newest_release_lost_ends_it_there_and_is_named() -> None:
    found = horizon(facts(use("aten::qr", "Tensor")), None, RELEASES, OLD)
    assert found is not None
    assert [(item.release, item.prediction) for item in found.archive] == [
        ("old", Prediction.LOADS),
        ("new", Prediction.FAILS),
    ]
    assert found.archive[1].why == "aten::qr: torch 2.15.0+cpu does not have it"
    assert (found.newest, found.gone) == ("new", ("aten::qr",))
    assert found.deprecated == {}  # it is gone, which says more


def test_an_operator_that_is_still_there_and_warns_is_named_with_what_to_write() -> None:
    found = horizon(facts(use("aten::chain_matmul", "List[Tensor]")), None, RELEASES, OLD)
    assert found is not None
    assert found.deprecated == {"aten::chain_matmul": "torch.linalg.multi_dot"}
    assert found.gone == ()


def test_a_healthy_archive_loads_everywhere_and_names_nothing() -> None:
    found = horizon(facts(use("aten::relu", "Tensor")), None, RELEASES, OLD)
    assert found is not None
    assert {item.prediction for item in found.archive} == {Prediction.LOADS}
    assert (found.program, found.gone, dict(found.deprecated)) == ((), (), {})


def test_a_program_is_judged_by_its_own_rules_without_a_path_in_the_reason() -> None:
    found = horizon(None, PROGRAM, RELEASES, OLD)
    assert found is not None
    assert [item.prediction for item in found.program] == [Prediction.FAILS, Prediction.LOADS]
    assert found.program[0].why.startswith("torch 2.6.0 does not read this container")
    assert found.archive == ()


def test_nothing_read_or_nobody_to_ask_is_no_horizon() -> None:
    assert horizon(None, None, RELEASES, OLD) is None
    assert horizon(facts(use("aten::relu", "Tensor")), None, {}, None) is None


@pytest.mark.parametrize(
    ("torch", "said"),
    [
        ("2.6.0+cu124", "no warning"),
        ("2.9.1", "no warning"),
        ("2.10.0", "DeprecationWarning"),
        ("2.13.0", "DeprecationWarning"),
        ("2.14.0", "FutureWarning"),
        ("2.15.0+cpu", "FutureWarning"),
    ],
)
def test_a_release_says_of_torchscript_what_the_newest_line_up_to_it_says(torch: str, said: str) -> None:
    load, pythons = release_facts("new", torch)
    assert said in load.text and load.release == "new"
    assert load.source.endswith("/torch/jit/_serialization.py")
    assert ("3.14" in pythons.text) is (line_of(torch) >= ON_LOAD[0][0])


@pytest.mark.parametrize("torch", ["99.0.0", "trunk"])
def test_of_a_release_that_nobody_has_looked_at_nothing_is_said(torch: str) -> None:
    assert line_of(LAST_KNOWN_RELEASE) < (99, 0)
    assert release_facts("new", torch) == ()


def test_an_operator_counts_as_deprecated_from_the_release_on_that_warns() -> None:
    assert deprecated_in("2.11.0", ["aten::quantize_per_tensor", "aten::relu"]) == {}
    assert list(deprecated_in("2.15.0", ["aten::quantize_per_tensor", "aten::relu"])) == ["aten::quantize_per_tensor"]


def test_what_was_seen_to_load_is_not_unknown_nor_not_loading() -> None:
    """Reading doubts an archive of unknown form; the releases that have loaded it know better."""
    doubted = replace(facts(use("aten::qr", "Tensor")))
    found = horizon(doubted, PROGRAM, RELEASES, OLD, loaded={"new"}, program_loaded={"old"})
    assert found is not None
    assert [item.prediction for item in found.archive] == [Prediction.LOADS, Prediction.LOADS]
    assert [item.prediction for item in found.program] == [Prediction.LOADS, Prediction.LOADS]


def _of(*predictions: Prediction) -> MigratedModel:
    loadings = tuple(Loading(release=name, prediction=one) for name, one in zip("ab", predictions, strict=True))
    return MigratedModel(model="m", outcome=Migrated.READY, horizon=Horizon(archive=loadings, newest="b"))


def test_what_reading_cannot_tell_is_counted_by_itself_and_not_as_not_loading() -> None:
    loads, fails, unknown = Prediction.LOADS, Prediction.FAILS, Prediction.UNKNOWN
    models = (_of(loads, fails), *[_of(unknown, loads)] * 4)
    migration = Migration(
        device="cpu", profile="default", old="a", new="b", releases={"a": "1", "b": "2"}, loaders=("b",), models=models
    )
    assert horizon_facts(migration) == ("archives: 1 of 5 load (4 more unknown) in a, 4 in b",)
