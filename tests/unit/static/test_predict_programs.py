"""Which release loads an exported program follows from its container, its archive and its schema."""

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.archive import ArchiveFacts, ArchiveFormat, Processor, ProgramContainer, ProgramFacts, Programs
from harness.domain.prediction import Inspection, InspectedFile, Prediction
from harness.errors import ExitCode
from harness.report.text.inspection import render_static
from harness.static.predict import exit_code, predict
from tests.unit.builders.archives import registry

RELU = "aten::relu(Tensor self) -> Tensor"
OLD = replace(registry("2.6.0", RELU), programs=Programs(schema=(8, 2)))
NEW = replace(registry("2.15.0", RELU), programs=Programs(schema=(8, 20), archive="0"))
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
        ({"schema": (8, 21)}, "schema_newer", Prediction.UNKNOWN),
        ({"archive_version": "1"}, "archive_version", Prediction.FAILS),
        ({"archive_version": ""}, "archive_version", Prediction.FAILS),
        ({"operators": ("aten.gone.default",)}, "operator_missing", Prediction.UNKNOWN),
        ({"container": ProgramContainer.COMPILED}, "compiled_code", Prediction.UNKNOWN),
    ],
)
def test_each_reason_fires(changes: dict[str, Any], kind: str, prediction: Prediction) -> None:
    found = predict(facts(**changes), {"new": NEW})["new"]
    assert ([finding.kind for finding in found.findings], found.prediction) == ([kind], prediction)


@pytest.mark.parametrize(
    ("changes", "kind", "prediction"),
    [
        ({"machine": "aarch64"}, "other_machine", Prediction.FAILS),
        ({"machine": "x86_64", "instructions": ("avx512f", "avx2")}, "instructions_missing", Prediction.UNKNOWN),
        ({"machine": "x86_64", "instructions": ("avx2",)}, "compiled_code", Prediction.UNKNOWN),
        ({}, "compiled_code", Prediction.UNKNOWN),
    ],
)
def test_a_package_for_another_machine_or_cpu_is_named_and_its_twin_is_not(
    changes: dict[str, Any], kind: str, prediction: Prediction
) -> None:
    here = Processor(machine="x86_64", instructions=frozenset({"avx2"}))
    found = predict(facts(container=ProgramContainer.COMPILED, **changes), {"new": NEW}, here)["new"]
    assert ([finding.kind for finding in found.findings], found.prediction) == ([kind], prediction)
    assert ("avx512f, which" in found.findings[0].text) == (kind == "instructions_missing")


def test_a_package_tells_for_what_it_was_compiled() -> None:
    package = facts(container=ProgramContainer.COMPILED, machine="aarch64", instructions=("asimd",), on="cpu")
    text = render_static(Inspection(releases={}, files=(InspectedFile(path="net.pt2", facts=package, verdicts={}),)))
    assert "for       aarch64, asimd" in text
    assert "device    cpu" in text


def test_a_newer_schema_is_called_newer() -> None:
    text = predict(facts(schema=(9, 1)), {"new": NEW})["new"].findings[0].text
    assert text == "a newer schema, 9.1; torch 2.15.0 reads 8.20"


def test_a_release_without_torch_export_loads_none() -> None:
    assert predict(facts(), {"old": NEVER})["old"].findings[0].kind == "no_torch_export"


def test_the_exit_code_and_the_text_are_those_of_any_artifact() -> None:
    file = InspectedFile(path="net.pt2", facts=facts(), verdicts=predict(facts(), {"old": OLD, "new": NEW}))
    both = Inspection(releases={"old": "2.6.0", "new": "2.15.0"}, files=(file,))
    assert exit_code(both) is ExitCode.INCOMPATIBLE
    text = render_static(both)
    assert "exported program (.pt2)" in text
    assert "container_unknown" in text
    alone = render_static(Inspection(releases={}, files=(replace(file, verdicts={}),)))
    assert "schema    8.20, written by torch 2.15.0" in alone
    assert "aten.relu.default" in alone
