"""Which release loads an exported program follows from its container, its archive and its schema."""

from dataclasses import replace
from typing import Any

import pytest

from harness.core.archive import (
    ArchiveFacts,
    ArchiveFormat,
    ArchiveProblem,
    OperatorRegistry,
    Processor,
    ProgramContainer,
    ProgramFacts,
    Programs,
    SchemaUse,
)
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticVerdict, Weight
from harness.core.errors import ExitCode
from harness.report.formats import INSPECTION
from harness.verdict.exit_codes import exit_code
from harness.checks.prediction.predict import predict, runs_code
from tests.unit.builders.archives import registry

RELU = "aten::relu(Tensor self) -> Tensor"
PYTHON = ("higher_order.cond",)
OLD = replace(registry("2.6.0", RELU), programs=Programs(schema=(8, 2), operators=PYTHON, packages=True))
READS = Programs(
    schema=(8, 20),
    archive="0",
    alternatives={"arg": ("as_tensor", "as_ints")},
    fields={"nodes": ("target", "is_hop_single_tensor_return"), "arg": ("name",)},
    numbers={"dtype": (7, 13)},
    skips_fields=True,
    operators=PYTHON,
    callables=("torch.sym_max",),
    packages=True,
    functions=("aoti_torch_clone",),
)
NEW = replace(registry("2.15.0", RELU), programs=READS)
STRICT = replace(NEW, programs=replace(READS, skips_fields=False))
NEVER = replace(registry("1.13.1", RELU), programs=Programs())
PROGRAM = ProgramFacts(
    container=ProgramContainer.ARCHIVE,
    archive_version="0",
    schema=(8, 20),
    torch="2.15.0",
    operators=("aten.relu.default", "higher_order.cond"),
)


def facts(**changes: Any) -> ArchiveFacts:
    return ArchiveFacts(
        path="net.pt2",
        size_bytes=9,
        format=ArchiveFormat.EXPORTED_PROGRAM,
        container="zip",
        program=replace(PROGRAM, **changes),
    )


def kinds(verdict: StaticVerdict) -> list[str]:
    """Return the kinds of what decides: that a file runs code when it is loaded is said of each that may load."""
    return [finding.kind for finding in verdict.findings if finding.kind != "runs_code"]


@pytest.mark.parametrize(
    ("container", "release", "told"),
    [
        (ProgramContainer.ARCHIVE, NEW, "torch.export.load unpickles parts of it"),
        (ProgramContainer.OLDER, OLD, "torch.export.load unpickles parts of it"),
        (ProgramContainer.COMPILED, NEW, "constructors in it run"),
        (ProgramContainer.ARCHIVE, NEVER, ""),
        (ProgramContainer.COMPILED, NEVER, ""),
        (ProgramContainer.ARCHIVE, OLD, ""),
    ],
)
def test_that_a_file_runs_code_when_it_is_loaded_is_a_warning_where_it_is(
    container: ProgramContainer, release: OperatorRegistry, told: str
) -> None:
    version = (8, 2) if container is ProgramContainer.OLDER else (8, 20)
    found = predict(facts(container=container, schema=version), {"new": release})["new"]
    warned = [finding for finding in found.findings if finding.kind == "runs_code"]
    assert [told in finding.text for finding in warned] == ([True] if told else [])
    assert all(finding.weight is Weight.WARNING for finding in warned)
    assert runs_code(facts(container=container))


def test_an_archive_of_torchscript_is_not_said_to_run_code() -> None:
    archive = replace(facts(), format=ArchiveFormat.TORCHSCRIPT, program=None)
    assert not runs_code(archive)


def test_a_program_of_the_newer_container_does_not_load_before_2_8() -> None:
    found = predict(facts(), {"old": OLD, "new": NEW})
    assert (found["old"].prediction, found["new"].prediction) == (Prediction.FAILS, Prediction.LOADS)
    assert "no item named 'version'" in found["old"].findings[0].text


def test_a_program_of_the_older_container_loads_in_both() -> None:
    found = predict(facts(container=ProgramContainer.OLDER, schema=(8, 2)), {"old": OLD, "new": NEW})
    assert [verdict.prediction for verdict in found.values()] == [Prediction.LOADS, Prediction.LOADS]


@pytest.mark.parametrize(
    ("changes", "kind", "prediction"),
    [
        ({"schema": (9, 1)}, "schema_version", Prediction.FAILS),
        ({"schema": (7, 1)}, "schema_version", Prediction.FAILS),
        ({"uses": SchemaUse(alternatives=(("arg", "as_float_lists"),))}, "schema_newer", Prediction.FAILS),
        ({"uses": SchemaUse(numbers=(("dtype", 35),))}, "value_unknown", Prediction.FAILS),
        ({"lists_of_one": ("higher_order.cond",)}, "result_of_before_2_8", Prediction.FAILS),
        ({"callables": ("torch.sym_sum",)}, "function_unknown", Prediction.FAILS),
        ({"callables": ("torch.fancy",)}, "function_unknown", Prediction.UNKNOWN),
        ({"operators": ("higher_order.scan",)}, "operator_missing", Prediction.FAILS),
        ({"operators": ("mine.fast.default",)}, "custom_library_missing", Prediction.FAILS),
        ({"archive_version": "1"}, "archive_version", Prediction.FAILS),
        ({"archive_version": ""}, "archive_version", Prediction.FAILS),
        ({"operators": ("aten.gone.default",)}, "operator_missing", Prediction.FAILS),
    ],
)
def test_each_reason_fires(changes: dict[str, Any], kind: str, prediction: Prediction) -> None:
    found = predict(facts(**changes), {"new": NEW})["new"]
    assert (kinds(found), found.prediction) == ([kind], prediction)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": (8, 21)},
        {"uses": SchemaUse(fields=(("nodes", "target"),), alternatives=(("arg", "as_ints"), ("arg", "name")))},
        {"uses": SchemaUse(numbers=(("dtype", 7), ("of_another_release", 9)))},
        {"uses": SchemaUse(fields=(("nodes", "later"), ("later", "inner")), alternatives=(("nodes", "later"),))},
        {"callables": ("torch.sym_max",)},
    ],
)
def test_what_the_release_knows_or_skips_loads(changes: dict[str, Any]) -> None:
    assert predict(facts(**changes), {"new": NEW})["new"].prediction is Prediction.LOADS


def test_a_release_that_does_not_skip_fields_refuses_one_that_it_does_not_know() -> None:
    later = {"uses": SchemaUse(fields=(("nodes", "target"), ("nodes", "later"), ("later", "inner")))}
    finding, _ = predict(facts(**later), {"new": STRICT})["new"].findings
    assert (finding.kind, finding.weight) == ("schema_newer", Weight.STOPS)
    assert "nodes.later, which the schema of torch 2.15.0, 8.20, does not have" in finding.text


def test_weights_one_by_one_are_not_read_by_a_release_that_does_not_know_them() -> None:
    one_by_one = facts(weights_listed=True)
    knows = replace(NEW, programs=replace(READS, weights_listed=True))
    assert predict(one_by_one, {"new": NEW})["new"].findings[0].kind == "container_unknown"
    assert predict(one_by_one, {"new": knows})["new"].prediction is Prediction.LOADS


def test_an_archive_without_a_program_loads_nowhere() -> None:
    empty = replace(facts(), problems=(ArchiveProblem(kind="member_missing", text="no models/model.json"),))
    assert predict(empty, {"new": NEW})["new"].prediction is Prediction.FAILS


@pytest.mark.parametrize(
    ("changes", "release", "kind", "prediction"),
    [
        ({"functions": ("aoti_torch_cpu_later",)}, NEW, "function_missing", Prediction.FAILS),
        ({"functions": ("aoti_torch_clone",)}, NEW, "", Prediction.LOADS),
        ({"operators": ("aten.gone.default",)}, NEW, "operator_missing", Prediction.FAILS),
        ({"operators": ("aten.relu",)}, NEW, "", Prediction.LOADS),
        ({"operators": ("mine.fast",)}, NEW, "custom_library_missing", Prediction.FAILS),
        ({}, OLD, "container_unknown", Prediction.FAILS),
        ({"archive_version": ""}, OLD, "", Prediction.LOADS),
        ({"archive_version": ""}, NEW, "", Prediction.LOADS),
        ({"archive_version": "1"}, NEW, "archive_version", Prediction.FAILS),
        ({"on": "cuda"}, NEW, "device_needed", Prediction.UNKNOWN),
        ({"on": "cpu"}, NEW, "", Prediction.LOADS),
        ({}, NEVER, "no_packages", Prediction.FAILS),
    ],
)
def test_a_package_loads_where_all_that_it_asks_of_torch_is_there(
    changes: dict[str, Any], release: OperatorRegistry, kind: str, prediction: Prediction
) -> None:
    of_package = {"container": ProgramContainer.COMPILED, "operators": (), **changes}
    found = predict(facts(**of_package), {"new": release})["new"]
    assert (kinds(found), found.prediction) == ([kind] if kind else [], prediction)


@pytest.mark.parametrize(
    ("changes", "kind", "prediction"),
    [
        ({"machine": "aarch64"}, "other_machine", Prediction.FAILS),
        ({"machine": "x86_64", "instructions": ("avx512f", "avx2")}, "instructions_missing", Prediction.UNKNOWN),
        ({"machine": "x86_64", "instructions": ("avx2",)}, "", Prediction.LOADS),
        ({}, "", Prediction.LOADS),
    ],
)
def test_a_package_for_another_machine_or_cpu_is_named_and_its_twin_is_not(
    changes: dict[str, Any], kind: str, prediction: Prediction
) -> None:
    here = Processor(machine="x86_64", instructions=frozenset({"avx2"}))
    of_package = facts(container=ProgramContainer.COMPILED, operators=(), **changes)
    found = predict(of_package, {"new": NEW}, here)["new"]
    assert (kinds(found), found.prediction) == ([kind] if kind else [], prediction)
    assert any("avx512f, which" in finding.text for finding in found.findings) == (kind == "instructions_missing")


def test_a_package_tells_for_what_it_was_compiled() -> None:
    package = facts(container=ProgramContainer.COMPILED, machine="aarch64", instructions=("asimd",), on="cpu")
    text = INSPECTION.render(
        "text", Inspection(releases={}, files=(InspectedFile(path="net.pt2", facts=package, verdicts={}),))
    )
    shown = " ".join(text.split())
    assert "AOTInductor package" in shown and "for aarch64, asimd" in shown and "device cpu" in shown


def test_a_newer_schema_is_called_newer() -> None:
    text = predict(facts(schema=(9, 1)), {"new": NEW})["new"].findings[0].text
    assert text == "a newer schema, 9.1; torch 2.15.0 reads 8.20"


def test_a_release_without_torch_export_loads_none() -> None:
    assert predict(facts(), {"old": NEVER})["old"].findings[0].kind == "no_torch_export"


def test_the_exit_code_and_the_text_are_those_of_any_artifact() -> None:
    file = InspectedFile(path="net.pt2", facts=facts(), verdicts=predict(facts(), {"old": OLD, "new": NEW}))
    both = Inspection(releases={"old": "2.6.0", "new": "2.15.0"}, files=(file,))
    assert exit_code(both) is ExitCode.INCOMPATIBLE
    text = INSPECTION.render("text", both)
    assert "exported program (.pt2)" in text
    assert "container_unknown" in text
    alone = INSPECTION.render("text", Inspection(releases={}, files=(replace(file, verdicts={}),)))
    assert "schema 8.20, written by torch 2.15.0" in " ".join(alone.split())
    assert "aten.relu.default" in alone
