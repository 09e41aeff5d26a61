"""Causes that are not the release."""

from typing import Any

import pytest

from harness.config.assignments import assigned
from harness.core.environment import Fingerprint
from harness.core.outcome import Status
from harness.serving.settings.differences import (
    DIFFERS,
    Setting,
    concerning,
    isolating_option,
    notes,
    settings,
    with_differences,
    words,
)
from tests.unit.builders.verdicts import finding, verdict


def test_setting_that_differs_names_both_sides_and_the_run_that_tells() -> None:
    said = words(Setting(name="quantized_engine", exporter="fbgemm", old="fbgemm", new="x86"))
    assert said.startswith("quantized_engine is fbgemm on the old side and x86 on the new side")
    assert said.endswith("The same command with --set serving.numerics.quantized_engine=fbgemm tells")


@pytest.mark.parametrize(
    ("name", "old", "written"),
    [
        ("cudnn_tf32", True, "--set serving.numerics.cudnn_tf32=true"),
        ("isa", "AVX2", "--set serving.env.ATEN_CPU_CAPABILITY=avx2"),
        ("intra_op_threads", 4, "--set serving.intra_op_threads=4"),
    ],
)
def test_the_isolating_option_is_written_as_the_configuration_wants_it(name: str, old: Any, written: str) -> None:
    option = isolating_option(name, old)
    assert option == written
    assert assigned([option.removeprefix("--set ")])


def test_exporter_with_another_setting_is_named() -> None:
    said = words(Setting(name="quantized_engine", exporter="qnnpack", old="x86", new="x86"))
    assert "was qnnpack where the model was exported and is x86 where it is served" in said


@pytest.mark.parametrize(
    "setting",
    [
        Setting(name="deterministic", exporter=False, old=False, new=False),
        Setting(name="deterministic", old=None, new=True),
        Setting(name="deterministic", old=True, new=None, exporter=None),
        Setting(name="autocast", exporter="off", old="bfloat16", new="bfloat16"),
    ],
    ids=["same", "old unknown", "new unknown", "autocast of the exporter"],
)
def test_what_does_not_differ_or_is_not_known_is_no_cause(setting: Setting) -> None:
    assert words(setting) == ""
    assert notes((setting,)) == []


def test_settings_come_from_workers_and_fingerprints() -> None:
    sides = {
        "old": Fingerprint(torch="2.1.2", isa="AVX2", intra_op_threads=1),
        "new": Fingerprint(torch="2.6.0", isa="AVX512", intra_op_threads=1),
    }
    found = {item.name: item for item in settings({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "c": 4}, sides)}
    assert (found["a"].exporter, found["a"].old, found["a"].new) == (1, 2, 2)
    assert (found["b"].new, found["c"].old) == (None, None)
    assert [name for name, item in found.items() if item.differs] == ["isa"]


def test_golden_record_has_no_machine() -> None:
    assert not any(item.differs for item in settings({}, {}, {"a": 1}, {"new": Fingerprint(torch="2.6.0", isa="AVX2")}))


CAUSE = Setting(name="isa", old="AVX2", new="AVX512")


def test_cause_is_reported_at_the_first_finding_about_numbers() -> None:
    cell = verdict(Status.FAIL, finding("stride"), finding("values"), finding("late_divergence"))
    told = with_differences(cell, (CAUSE, Setting(name="deterministic", old=True, new=True)))
    assert [len(item.story) for item in told.findings] == [0, 1, 0]
    assert told.findings[1].story[0] == (DIFFERS, words(CAUSE))


def test_findings_that_are_not_about_numbers_have_no_such_cause() -> None:
    cell = verdict(Status.FAIL, finding("load_error"))
    assert with_differences(cell, (CAUSE,)) == cell


@pytest.mark.parametrize(
    ("operator", "concerned"),
    [
        ("quantized::linear", True),
        ("aten::quantize_per_tensor", True),
        ("aten::dequantize.self", True),
        ("aten::linear", False),
    ],
)
def test_quantized_engine_is_no_cause_where_nothing_is_quantized(operator: str, *, concerned: bool) -> None:
    engine, flag = Setting(name="quantized_engine", old="fbgemm", new="x86"), Setting(name="cudnn_tf32", old=1, new=0)
    assert concerning([engine, flag], ["aten::add.Tensor", operator]) == ((engine, flag) if concerned else (flag,))
