"""A training team packs models with the old release; a serving team judges them where only the new one is."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from harness.core.environment import Environment
from harness.core.outcome import Decision, Status
from harness.core.errors import ExitCode
from harness.artifacts.bundles import BundleStore, bundle_declaration, write_bundle
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import leaves
from tests.integration.gate import Run, compat, harness
from tests.programs import cli, stub

pytestmark = pytest.mark.integration

MODELS = "tests/integration/apps/golden/packing"


@dataclass(frozen=True)
class Packed:
    """What the training team was told, and the folder that it hands over."""

    code: int
    out: str
    bundles: Path
    runs: Path


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, old_python: str) -> Packed:
    """The bundles of 2.1.2; two of the four models cannot be packed."""
    folder = tmp_path_factory.mktemp("training")
    arguments = ("--env", f"old={old_python}", "--fixtures", MODELS, "--into", str(folder / "bundles"))
    done = harness("pack", *arguments, "--out", str(folder / "runs"))
    return Packed(done.returncode, done.stdout, folder / "bundles", folder / "runs")


@pytest.fixture(scope="module")
def judged(packed: Packed, tmp_path_factory: pytest.TempPathFactory, new_python: str) -> Run:
    """The run of the serving team: 2.6.0 alone, with the two bundles and a third whose outputs were perturbed."""
    folder = tmp_path_factory.mktemp("serving")
    perturbed(packed.bundles / "plain.gate", folder)
    files = ("--artifacts", str(packed.bundles), "--artifacts", str(folder / "perturbed.gate"))
    asked = ("--env", f"new={new_python}", "--scenario", "alone")
    return compat(folder / "runs", *files, *asked, all_planted=False)


def perturbed(path: Path, folder: Path) -> None:
    """Write the bundle at ``path`` again, as that of a model that answered otherwise."""
    store = BundleStore([bundle_declaration(path)])
    (model,) = store.names()
    bundle = store.record(model)
    artifact = store.unpack(model, folder / "unpacked")
    kept = store.remembered(model, folder / "unpacked")
    name = "perturbed"
    write_bundle(
        folder,
        replace(bundle, model=name),
        replace(artifact, model=name),
        replace(kept, golden=shifted(kept.golden), repeats=tuple(map(shifted, kept.repeats)), reference=None),
    )


def shifted(outputs: Outputs) -> Outputs:
    """Return the outputs with the first element of every tensor 0.1 % of the largest further up."""
    buffer = bytearray(memoryview(outputs.buffer))
    places = {spec["offset"]: spec["nbytes"] for tree in outputs.calls.values() for _, spec in leaves(tree)}
    for offset, nbytes in places.items():
        values = np.frombuffer(buffer, dtype=np.float32, count=nbytes // 4, offset=offset)
        values[0] += 1e-3 * np.abs(values).max()
    return replace(outputs, buffer=bytes(buffer))


@pytest.mark.slow
def test_what_cannot_be_packed_is_a_row_and_the_rest_is_packed(packed: Packed) -> None:
    assert packed.code == ExitCode.INCONCLUSIVE
    assert sorted(path.name for path in packed.bundles.iterdir()) == ["counter.gate", "plain.gate"]
    assert "2 of 4 models packed: golden outputs of torch 2.1.2" in packed.out
    words = " ".join(packed.out.split())
    assert "not packed raises at call 0 of example in torch 2.1.2" in words
    assert "not today" in words
    assert "models.py:50 raises RuntimeError: no weights here" in words
    (kept,) = (path for path in packed.runs.iterdir() if path.is_dir())
    assert kept.name in packed.out


def test_a_bundle_says_what_it_is(packed: Packed) -> None:
    found = BundleStore([bundle_declaration(packed.bundles / "counter.gate")]).record("counter")
    assert found.producer.torch.startswith("2.1.2")
    assert (found.device, found.declared.tags, found.declared.tolerance, found.artifact.reset) == (
        "cpu",
        ("packed",),
        1e-4,
        "forget",
    )
    assert "aten::add_.Scalar" in found.artifact.operators
    assert found.numerics


def test_the_new_release_alone_judges_by_bundles(judged: Run) -> None:
    assert judged.report.old.name.startswith("golden bundles made by torch 2.1.2")
    assert judged.report.old.golden
    for model in ("counter", "plain"):
        row = judged.row(model)
        assert row.status is Status.PASS, judged.out
    (counter,) = (model for model in judged.report.models if model.model == "counter")
    assert {call.input_set for call in counter.comparisons[0].calls} == {"example", "wider"}


def test_golden_outputs_that_differ_block_the_upgrade(judged: Run) -> None:
    row = judged.row("perturbed")
    assert row.status is Status.FAIL
    assert {finding.kind for finding in row.cells[0].findings} == {"values"}
    assert judged.report.judgement.decision is Decision.BLOCKED
    assert judged.code == ExitCode.INCOMPATIBLE


def test_an_interrupted_packing_leaves_no_process_and_no_half_file(
    tmp_path: Path, stub_environment: Environment
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    line = cli.Line(project, stub_environment.interpreter, "")
    command = [line.command()[0], "-m", "harness", "--project", str(project), "pack"]
    command += ["--env", f"old={stub_environment.interpreter}", "--old", "old", "--fixtures", str(stub.MODELS)]
    process = cli.started([*command, "--into", str(tmp_path / "bundles")])
    line.wait_for_results(1, process)
    os.kill(process.pid, signal.SIGINT)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == ExitCode.INTERRUPTED
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)
    assert not list(tmp_path.glob("bundles/*"))
    assert not list(line.reports.glob("2*"))
