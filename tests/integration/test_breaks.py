"""Genuine breaks between registry releases: the gate must report each one as what it is."""

from collections import defaultdict
from pathlib import Path

import pytest

from harness.domain.models import BreakMark, ModelDeclaration
from harness.domain.outcome import Decision, Status
from harness.models.fixture_folders import read_fixtures
from tests.integration.gate import PROJECT, compat, harness

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

DEFAULT_PAIR = ("2.1.2", "2.6.0")


def _mark(model: ModelDeclaration) -> BreakMark:
    assert model.known_break is not None, f"{model.where}: a break names its releases"
    return model.known_break


def _pairs() -> dict[tuple[str, str, bool], list[ModelDeclaration]]:
    """Breaks by (exporting release, loading release, needs the benchmark); healthy twins are none."""
    pairs = defaultdict(list)
    for model in read_fixtures(PROJECT / "fixtures" / "breaks"):
        if "twin" in model.tags:
            continue
        mark = _mark(model)
        sides = (mark.old, mark.new) if mark.direction == "backward" else (mark.new, mark.old)
        pairs[(*sides, mark.expect == "latency")].append(model)
    return pairs


PAIRS = _pairs()


def _cases() -> list[object]:
    return [
        pytest.param(
            *pair,
            id=f"{pair[0]}-to-{pair[1]}{'-latency' if pair[2] else ''}",
            marks=[
                *([] if pair == (*DEFAULT_PAIR, False) else [pytest.mark.slow]),
                *(
                    [pytest.mark.timed] if pair[2] else []
                ),  # a minute and a half, with prices; test_compat benchmarks too
            ],
        )
        for pair in PAIRS
    ]


def test_the_corpus_holds_every_kind_of_genuine_break() -> None:
    marks = [_mark(model) for models in PAIRS.values() for model in models]
    backward = {mark.expect for mark in marks if mark.direction == "backward"}
    assert {"load_error", "call_error", "values", "latency"} <= backward
    assert any(mark.direction == "forward" for mark in marks)
    assert all(mark.upstream.startswith("https://github.com/pytorch/pytorch/") for mark in marks)


@pytest.mark.parametrize(("exporter", "loader", "timed"), _cases())
def test_the_gate_reports_genuine_breaks(exporter: str, loader: str, timed: bool, tmp_path: Path) -> None:
    models = PAIRS[exporter, loader, timed]
    expression = " or ".join(model.name for model in models)
    sides = ("--old", exporter, "--new", loader, "--fixtures", "fixtures/breaks", "-k", expression)
    run = compat(tmp_path, *sides, "--latency", "quick" if timed else "off")
    assert run.code == 1, run.out
    assert run.report.judgement.decision is Decision.BLOCKED
    for model in models:
        assert run.row(model.name).status is Status.FAIL, f"{model.name}: {run.row(model.name)}"
        assert _mark(model).expect in run.kinds(model.name), f"{model.name}: {run.row(model.name).reason}"
        assert f"FAIL  {model.name}" in run.out
    short = harness("report", str(run.folder)).stdout.splitlines()
    assert len(short) <= 60
    assert sum(" --cause " in line for line in short) >= min(len(run.report.causes), 3)
    told = [model for cause in run.report.causes for model in cause.models]
    assert sorted(told) == sorted(model.name for model in models)
    assert run.report.direction == _mark(models[0]).direction


@pytest.mark.slow
def test_deadlock_of_a_python_server_is_a_regression_with_its_meaning_and_its_cure(tmp_path: Path) -> None:
    words = ("--fixtures", "fixtures/breaks", "-k", "speculative_cascade", "--latency", "off")
    run = compat(tmp_path, "--old", "2.6.0", "--new", "2.15.0", *words)
    assert run.code == 1, run.out
    assert run.row("speculative_cascade_in_line").status is Status.PASS
    cells = {cell.scenario: cell for cell in run.row("speculative_cascade").cells}
    assert cells["while_serving"].status is Status.PASS, "a C++ process has no GIL"
    kept = cells["python_keeping"]
    assert (kept.status, kept.failed_rounds, kept.rounds) == (Status.FAIL, 1, 1)
    (hang,) = kept.findings
    assert (hang.kind, hang.where) == ("hang", "load")
    story = defaultdict(list)
    for label, text in hang.story:
        story[label].append(text)
    assert story["meaning"][0].startswith("torch.jit.load holds Python's global lock (GIL)")
    load, pool = story["frames"][:2]
    assert "ObjLoaderFunc" in load and pool.startswith("PTThreadPool") and "decref" in pool
    (before,) = [item.old for item in run.report.scenarios if item.scenario == "python_keeping"]
    assert before is not None and (before.failed, before.rounds) == (0, 1)
    cure = run.row("speculative_cascade").mitigations[0]
    assert (cure.name, cure.cures, cure.note) == ("wide inter-op pool", True, "")
    assert run.report.judgement.decision is Decision.OK_WITH_MITIGATION
