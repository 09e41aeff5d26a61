"""Genuine breaks between registry releases: reported as what they are, explained, on the way back, and waived."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from harness.core.models import BreakMark, ModelDeclaration
from harness.core.outcome import Decision, Status
from harness.core.prediction import ModelRollback, PredictedLoad, Prediction, RollbackAnswer
from harness.core.verdict import WaiverState
from harness.artifacts.fixture_folders import read_fixtures
from harness.report.json.report import load_report
from harness.checks.prediction.semantics import CHANGES
from tests.integration.gate import PROJECT, Run, compat, finished, harness

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

DEFAULT_PAIR = ("2.1.2", "2.6.0")
DRAWS = Path(__file__).with_name("draws.py")


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
    scenarios = () if timed else ("--scenario", "alone")
    run = compat(tmp_path, *sides, "--latency", "quick" if timed else "off", *scenarios, all_planted=timed)
    assert run.code == 1, run.out
    assert run.report.judgement.decision is Decision.BLOCKED
    for model in models:
        assert run.row(model.name).status is Status.FAIL, f"{model.name}: {run.row(model.name)}"
        assert _mark(model).expect in run.kinds(model.name), f"{model.name}: {run.row(model.name).reason}"
        assert f"FAIL  {model.name}" in run.out
    short = harness("report", str(run.folder)).stdout.splitlines()
    assert len(short) <= 60
    assert sum(" --cause " in line for line in short) >= min(len(run.report.causes), 3)
    failing = [cause for cause in run.report.causes if cause.status is Status.FAIL]  # others name what does not block
    told = [model for cause in failing for model in cause.models]
    assert sorted(told) == sorted(model.name for model in models)
    assert run.report.direction == _mark(models[0]).direction


@pytest.mark.slow
def test_what_the_table_says_of_random_numbers_is_so_and_other_draws_are_as_before() -> None:
    listed = harness("env", "2.6.0", "2.15.0").stdout.splitlines()
    pythons = [line.split()[-1] for line in listed if line.startswith("torch ")]
    old, new = (json.loads(subprocess.check_output([python, DRAWS], text=True)) for python in pythons)
    known = {change.operator for change in CHANGES if change.drawn or "random stream" in change.what}
    assert {f"aten::{name}" for name in old[0]} == known
    assert [name for name in old[0] if old[0][name] == new[0][name]] == []
    assert old[1] == new[1]


# One run of breaks in both directions and a healthy twin, with everything that may be asked of it.

MODELS = "enlarge_thumbnail or half_on_accelerator or encode_ragged or upsample_head or gated_norm"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the models of this one, and runs and waivers of its own."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    (folder / "fixtures").symlink_to(PROJECT / "fixtures")
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> Run:
    words = ("--fixtures", "fixtures/breaks", "-k", MODELS, "--scenario", "alone", "--latency", "off", "--verbose")
    asked = ("--explain", "--rollback", "--set", "policy.rollback=fail")
    return finished(
        harness("--project", str(project), "compat", *words, *asked, all_planted=False), project / "reports"
    )


# Each red cell says whose doing it is.


def test_each_red_cell_says_whose_doing_it_is_and_a_passing_model_nothing(run: Run) -> None:
    assert run.code == 1, run.err
    told = {item.model: item for item in run.report.explained}
    assert list(told) == ["half_on_accelerator", "enlarge_thumbnail"]  # the gravest first
    assert told["enlarge_thumbnail"].answer == "operator aten::upsample_bicubic2d.vec"
    assert "culprit   aten::upsample_bicubic2d.vec, torch/nn/functional.py:" in run.out
    for text in ((run.folder / "report.md").read_text(), (run.folder / "junit.xml").read_text()):
        assert "aten::upsample" in text.replace("\\", "") and "torch._C._nn.upsample_bicubic2d(" in text.replace(
            "\\", ""
        )
    assert told["half_on_accelerator"].answer == "loading"
    assert all((run.folder / path).is_file() for item in told.values() for path in item.paths)


@pytest.mark.slow
def test_what_is_found_later_stands_in_the_report_of_the_run(run: Run, project: Path) -> None:
    cell = next(item.cell for item in run.report.explained if item.model == "half_on_accelerator")
    later = harness("--project", str(project), "bisect", "--cell", cell)
    assert later.returncode == 1, later.stderr
    shown = harness("--project", str(project), "report", run.folder.name, "--format", "json")
    (again,) = [item for item in json.loads(shown.stdout)["explained"] if item["cell"] == cell]
    assert again["paths"][-1].startswith("../") and again["paths"][-1].endswith(
        "-half_on_accelerator-bisect/bisect.json"
    )


# Can we roll back?


def way(run: Run, model: str) -> ModelRollback:
    assert run.report.rollback is not None
    return next(item for item in run.report.rollback.models if item.model == model)


def test_every_prediction_came_true_in_both_directions(run: Run) -> None:
    told = [found for model in run.report.models if model.static for found in model.static.sides.values()]
    told += [item.predicted for item in run.report.rollback.models if item.predicted] if run.report.rollback else []
    assert len(told) >= 8
    assert all(found.agreed for found in told), told
    assert {found.prediction for found in told} == {Prediction.LOADS, Prediction.FAILS}
    assert f"predictions of what will load: {len(told)} of {len(told)} right" in run.out


def test_a_model_that_goes_there_and_does_not_come_back_is_reported_with_operator_and_place(run: Run) -> None:
    assert run.row("encode_ragged").status is Status.PASS
    item = way(run, "encode_ragged")
    assert item.answer is RollbackAnswer.NO
    assert item.verdict is not None and item.verdict.status is Status.FAIL
    assert item.predicted is not None and item.predicted.happened is PredictedLoad.REFUSED
    block = run.out[run.out.index("NO ROLLBACK  encode_ragged: torch 2.6.0 -> torch 2.1.2") :].split("\n\n")[0]
    assert "aten::pad_sequence takes 3 positional arguments, not 4" in " ".join(block.split())
    assert "code/__torch__/torch/nn/utils/rnn.py:" in block
    assert item.command in block and "compat --old 2.6.0 --new 2.1.2 --fixtures fixtures/breaks" in item.command
    assert (run.folder / item.artifact).is_file()


def test_its_healthy_twin_comes_back(run: Run) -> None:
    item = way(run, "upsample_head")
    assert (item.answer, item.command) == (RollbackAnswer.YES, "")
    assert item.verdict is not None and item.verdict.status is Status.PASS
    assert "NO ROLLBACK  upsample_head" not in run.out


def test_a_model_that_only_the_new_release_can_express_cannot_come_back(run: Run) -> None:
    assert run.row("gated_norm").status is Status.UNSUPPORTED
    assert way(run, "gated_norm").answer is RollbackAnswer.NO


def test_policy_makes_the_rollback_a_condition(run: Run) -> None:
    assert run.report.judgement.decision is Decision.BLOCKED and run.code == 1
    forward_only = ("--set", "severity.load_error=warn", "--set", "severity.values=warn")
    judged = harness("gate", str(run.folder), *forward_only, "--set", "rollback=fail", "--format", "json")
    report = load_report(judged.stdout.encode(), file="gate")
    assert (judged.returncode, report.judgement.decision) == (1, Decision.BLOCKED)
    assert report.judgement.reason.startswith("cannot roll back: 3 of 5 models: ")  # the thumbnail differs there too


def test_a_model_that_does_not_load_says_why_and_where(run: Run) -> None:
    block = run.out[run.out.index("FAIL  half_on_accelerator\n") :].split("\n\n")[0]
    assert "static    prim::is_ort: torch 2.6.0" in block and "code/__torch__/" in block


# Known by a waiver.

CELL = "enlarge_thumbnail/alone"
WHY = ("--owner", "ads@example.com", "--reason", "border pixels, agreed")
# So that this cell alone decides.
LET_PASS = ("--set", "severity.load_error=warn", "--set", "rollback=warn")


@pytest.mark.slow
def test_a_red_cell_is_known_up_to_its_bound_and_red_above_it(run: Run, project: Path) -> None:
    own = ("--project", str(project))
    red = harness(*own, "gate", str(run.folder), *LET_PASS, "--format", "json")
    assert load_report(red.stdout.encode(), file="gate").judgement.decision is Decision.BLOCKED

    added = harness(*own, "waivers", "add", run.folder.name, CELL, *WHY)
    assert added.returncode == 0, added.stderr
    file = project / "golden" / "waivers.toml"
    text = file.read_text()
    assert 'old = "~=2.1.2"\nnew = "~=2.6.0"\nscenario = "alone"\ndevice = "cpu"\n' in text
    judged = harness(*own, "gate", str(run.folder), *LET_PASS, "--format", "json")
    report = load_report(judged.stdout.encode(), file="gate")
    assert (judged.returncode, report.judgement.decision) == (0, Decision.UPGRADE_OK)
    assert [use.state for use in report.waivers] == [WaiverState.USED]

    again = harness(*own, "rerun", str(run.folder), CELL)
    fresh = finished(again, run.folder / "reruns")
    (cell,) = fresh.row("enlarge_thumbnail").cells
    assert (cell.status, cell.judged) == (Status.XFAIL, Status.FAIL)
    assert [use.state for use in fresh.report.waivers] == [WaiverState.USED]
    assert "waived until" in again.stdout

    bound = next(line for line in text.splitlines() if line.startswith("bound = "))
    file.write_text(text.replace(bound, "bound = 0.001"))
    worse = harness(*own, "gate", str(run.folder), *LET_PASS)
    assert worse.returncode == 1
    said = " ".join(worse.stdout.split())
    assert "the waiver of ads@example.com covers 0.001 of the largest value at most, and this is 0.0998" in said
