"""Whole runs on a device that torch does not have: the fake accelerator, healthy and with each fault that servers meet."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.outcome import Decision, Outcome, Status
from harness.core.probe import ProbeResult
from harness.environments.builder import default_environment_root
from harness.core.errors import ExitCode
from harness.store import codec, probe_files
from harness.store.run_folder import PROBES
from harness.worker import wire
from tests.accelerator.build import build
from tests.integration.gate import PROJECT, Run, finished, harness
from tests.integration.devices.test_fake_accelerator import interpreter

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OLD, NEW = "2.1.2", "2.6.0"
# Profile of the new side -> (fault, the kind of finding that it must end in): the ninth kernel belongs to the load.
FAULTS = {
    "late_error_of_a_load": ("late_error:9", "load_error"),
    "late_error_of_a_call": ("late_error:40", "call_error"),
    "hang": ("hang:40", "hang"),
    "lost": ("lost:40", "call_error"),
    "out_of_memory": ("out_of_memory:9", "out_of_memory"),
}
# Models of one process, of which the third alone has so many kernels, and so many tensors at the same time.
IN_A_BATCH = {
    "late_error_in_a_batch": ("late_error:150", "call_error"),
    "hang_in_a_batch": ("hang:150", "hang"),
    "lost_in_a_batch": ("lost:150", "call_error"),
    "out_of_memory_in_a_batch": ("out_of_memory:60", "out_of_memory"),
}
# Four models of one process of the C++ worker: more than one of them does alone, so it fails beside others only.
IN_A_SERVER = {
    "late_error_in_a_server": ("late_error:60", "concurrent_error"),
    "hang_in_a_server": ("hang:60", "hang"),
    "lost_in_a_server": ("lost:60", "concurrent_error"),
    "out_of_memory_in_a_server": ("out_of_memory:40", "out_of_memory"),
}
NAMES = ("one", "two", "long", "four", "five")
MODEL = """
@model("{name}", timed=False)
def {name}():
    return Sample({module}, example=(torch.randn(4, 8),), other_values=(torch.randn(4, 8),))
"""
MODULE = """
import torch
from torch import nn

from fixtures.declare import Sample, model


class Long(nn.Module):
    def forward(self, x):
        parts = [x]
        for _ in range(80):
            parts.append(parts[-1] * 1.01)
        return torch.stack(parts).sum(0)

"""
DRAWING = """
import torch
from torch import nn

from fixtures.declare import Sample, model


class Drawing(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


@model("drawing", timed=False)
def drawing():
    return Sample(Drawing(), example=(torch.randn(4, 8),), other_values=(torch.randn(4, 8),))
"""
IN_CPP = ("--set", "devices.fakedev.cpp=true", "--runtime", "libtorch", "--scenario", "sequential")
PINS = {"cudnn": False, "cudnn_tf32": False, "matmul_precision": "highest"}
CONFIGURATION = """
[tool.compat.devices.fakedev]
streams = true
events = true
memory = true
graphs = true
contexts = true
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose environments bring the device, with a profile for each fault."""
    text = (PROJECT / "pyproject.toml").read_text() + CONFIGURATION
    for release in (OLD, NEW):
        library = build(interpreter(release), default_environment_root() / "native") / "fakedev.py"
        text += f'\n[tool.compat.environments."{release}"]\nlibraries = ["{library}"]\n'
    for name, (fault, _) in {**FAULTS, **IN_A_BATCH, **IN_A_SERVER}.items():
        text += f'\n[tool.compat.serving.profiles.{name}]\nenv = {{ FAKEDEV_FAULT = "{fault}" }}\n'
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(text)
    (folder / "five").mkdir()
    modules = {"long": "Long()"}
    declared = (MODEL.format(name=name, module=modules.get(name, "nn.Linear(8, 8)")) for name in NAMES)
    (folder / "five" / "__init__.py").write_text(MODULE + "\n".join(declared))
    return folder


SMALL = ("--fixtures", str(PROJECT / "fixtures" / "zoo"), "-k", "two_tower and not served")


def given_to(project: Path, *words: str) -> tuple[str, ...]:
    """Return the words of a run there; ``words``: further options."""
    sides = ("--project", str(project), "compat", "--old", OLD, "--new", NEW, "--device", "fakedev", "--latency", "off")
    return (*sides, *words)


def on_the_device(project: Path, reports: Path, *words: str, models: tuple[str, ...] = SMALL) -> Run:
    """Run ``models`` there; ``words``: further options."""
    done = harness(*given_to(project), *models, "--deadline", "6", "--out", str(reports), *words, timeout_s=900)
    return finished(done, reports)


def test_healthy_model_passes_there_with_captures_and_no_report_says_gpu(project: Path, tmp_path: Path) -> None:
    scenarios = ("--scenario", "alone", "--scenario", "concurrent", "--scenario", "cuda_graphs")
    run = on_the_device(project, tmp_path, *scenarios)
    assert run.code == 0, run.out + run.err
    assert run.report.judgement.decision is Decision.UPGRADE_OK
    assert run.report.device == "fakedev"
    assert all(planted.caught for planted in run.report.judgement.planted_defects)
    assert {model.concurrent for model in run.report.models} == {Outcome.COMPLETED}
    assert {cell.scenario for row in run.report.judgement.rows for cell in row.cells} >= {"alone", "cuda_graphs"}
    fingerprint = run.report.new.fingerprint
    assert fingerprint is not None and not fingerprint.gpu
    assert "GPU" not in run.out


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_the_device_in_the_new_release_alone_blocks_and_is_named(
    project: Path, tmp_path: Path, name: str
) -> None:
    run = on_the_device(project, tmp_path, "--scenario", "alone", "--new-profile", name)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    assert run.kinds("two_tower") == {FAULTS[name][1]}, run.out


def probes_that_called(run: Run) -> list[tuple[dict[str, Any], ProbeResult]]:
    """Return the probes that loaded and called models, each beside its request."""
    folders = probe_files.folders(run.folder / PROBES)
    asked = {folder: json.loads(probe_files.read(folder, wire.REQUEST)) for folder in folders if is_probe(folder)}
    return [
        (request, codec.read_json(folder / probe_files.RESULT, ProbeResult, read=probe_files.read_result))
        for folder, request in asked.items()
        if request["verb"] == "run"
    ]


def probes_of(run: Run, side: str) -> list[ProbeResult]:
    """Return the probes of a release that loaded one of the models alone."""
    found = [probe for request, probe in probes_that_called(run) if request["script"] is None]
    return [probe for probe in found if probe.side == side and probe.models[0].model in NAMES]


def pid_of(probe: ProbeResult) -> int:
    first = probe_files.read(Path(probe.directory), wire.EVENTS).splitlines()[0]
    return int(json.loads(first)["pid"])


def is_probe(folder: Path) -> bool:
    return not folder.name.startswith(("zygote-", "batch-"))


def five_on_the_device(project: Path, reports: Path, *words: str) -> Run:
    models = ("--fixtures", str(project / "five"), "--jobs", "1", "--scenario", "alone")
    return on_the_device(project, reports, *words, models=models)


def test_five_models_share_a_context_in_the_new_release_and_one_for_each_repeat_in_the_old(
    project: Path, tmp_path: Path
) -> None:
    run = five_on_the_device(project, tmp_path)
    assert run.report.judgement.decision is Decision.UPGRADE_OK, run.out + run.err
    new, old = probes_of(run, "new"), probes_of(run, "old")
    assert (len(new), sum(probe.contexts for probe in new)) == (5, 1)
    assert (len(old), len({pid_of(probe) for probe in new}), len({pid_of(probe) for probe in old})) == (10, 1, 2)
    assert any(note.startswith("contexts on fakedev: ") for note in run.report.notes)


@pytest.mark.parametrize("name", IN_A_BATCH)
def test_fault_in_the_middle_of_a_batch_blocks_for_the_model_that_also_has_it_alone(
    project: Path, tmp_path: Path, name: str
) -> None:
    run = five_on_the_device(project, tmp_path, "--new-profile", name)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    statuses = {row.model: row.status for row in run.report.judgement.rows}
    assert statuses == {name: Status.FAIL if name == "long" else Status.PASS for name in NAMES}, run.out
    assert run.kinds("long") == {IN_A_BATCH[name][1]}, run.out
    pids = {probe.models[0].model: pid_of(probe) for probe in probes_of(run, "new")}
    assert (pids["one"], pids["four"]) == (pids["two"], pids["five"])
    assert len(set(pids.values())) == 3


def for_cpp() -> tuple[str, ...]:
    """Return the options that name what the C++ worker opens."""
    native = default_environment_root() / "native"
    named = (f"{release}={build(interpreter(release), native) / 'libfakedev.so'}" for release in (OLD, NEW))
    return tuple(word for library in named for word in ("--library", library))


@pytest.mark.parametrize("name", IN_A_SERVER)
def test_fault_of_the_device_that_only_a_cpp_server_meets_blocks_and_is_named(
    project: Path, tmp_path: Path, name: str
) -> None:
    models = ("--fixtures", str(project / "five"), "-k", "not long", "--set", "devices.fakedev.contexts=false")
    run = on_the_device(project, tmp_path, *for_cpp(), *IN_CPP, "--new-profile", name, models=models)
    assert run.report.judgement.decision is Decision.BLOCKED, run.out + run.err
    assert [scenario.worker for scenario in run.report.scenarios] == ["libtorch"]
    kinds = {kind for model in NAMES if model != "long" for kind in run.kinds(model)}
    assert IN_A_SERVER[name][1] in kinds, run.out


def test_model_that_draws_on_the_device_answers_alike_in_both_workers_and_their_pins_read_back(
    project: Path, tmp_path: Path
) -> None:
    fixtures = tmp_path / "drawing"
    fixtures.mkdir()
    (fixtures / "__init__.py").write_text(DRAWING)
    pins = [word for name, value in PINS.items() for word in ("--set", f"serving.numerics.{name}={json.dumps(value)}")]
    words = (*for_cpp(), *pins, *IN_CPP)
    run = on_the_device(project, tmp_path / "reports", *words, models=("--fixtures", str(fixtures)))
    assert run.report.judgement.decision is Decision.UPGRADE_OK, run.out + run.err
    assert [scenario.worker for scenario in run.report.scenarios] == ["libtorch"]
    answered = [probe for request, probe in probes_that_called(run) if request["runs"]]
    assert {probe.side for probe in answered} == {"old", "new"}
    assert all({name: probe.data["numerics"][name] for name in PINS} == PINS for probe in answered)


def test_cpp_worker_that_is_given_the_devices_python_file_alone_is_refused_with_what_to_give(
    project: Path, tmp_path: Path
) -> None:
    done = harness(*given_to(project, *IN_CPP), *SMALL, "--out", str(tmp_path), timeout_s=900)
    assert done.returncode == ExitCode.ENVIRONMENT, done.stdout + done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "no library that it opens without Python registers the device fakedev" in said
    assert "name the shared object (.so) that registers fakedev in C++ with --library" in said
