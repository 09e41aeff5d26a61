"""What data or sizes decide: programs hold both ways of it, or refuse; none answers by the wrong one."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gate import harness

pytestmark = [pytest.mark.integration, pytest.mark.slow]
DECIDING = "tests/integration/checks/migration/deciding"
# Of each pair of files: twelve new processes of three calls each, with data and sizes that no request has.
BESIDE_TORCHSCRIPT = """
import collections, json, random, sys, torch
from torch.utils import _pytree as pytree
torch.manual_seed(7)
random.seed(7)
for name, archive, program in json.loads(sys.argv[1]):
    counts = collections.Counter()
    for _ in range(12):
        module, loaded = torch.jit.load(archive).eval(), torch.export.load(program).module()
        for _ in range(3):
            x = torch.randn(random.choice([1, 2, 3, 6]), 4) + random.choice([-0.3, 0.3, 2.0])
            try:
                with torch.no_grad():
                    wanted = module(x.clone())
            except torch.jit.Error:
                wanted = None
            try:
                with torch.no_grad():
                    given = loaded(x.clone())
            except (RuntimeError, AssertionError):
                counts["refused alike" if wanted is None else "refused"] += 1
                break
            pairs = zip(pytree.tree_leaves(wanted), pytree.tree_leaves(given))
            same = wanted is not None and all(
                torch.allclose(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs
            )
            counts["same" if same else "wrong"] += 1
    print(json.dumps([name, counts]))
"""
LENGTHS = """
import json, sys, torch
torch.manual_seed(3)
for name, archive, program in json.loads(sys.argv[1]):
    module, loaded = torch.jit.load(archive).eval(), torch.export.load(program).module()
    for count, steps in ((1, 1), (4, 1), (2, 13), (6, 4)):
        given = torch.randn(count, steps, 4), torch.randint(1, steps + 1, (count,))
        with torch.no_grad():
            same = [torch.allclose(a, b) for a, b in zip(module(*given), loaded(*given))]
        print(name, count, steps, all(same))
"""
PACKAGE = """
import sys, torch
package = torch._inductor.aoti_load_package(sys.argv[1])
for count in (1, 4, 5, 6):
    x = torch.ones(count, 4)
    try:
        print(count, torch.equal(package(x), x * 2 if count > 5 else x + 1))
    except RuntimeError:
        print(count, "refused")
"""


def migrated(folder: Path, *options: str, new: str = "2.15.0") -> dict[str, Any]:
    sides = ("--old", "2.6.0", "--new", new, "--fixtures", DECIDING, "--out", str(folder))
    done = harness("migrate", *sides, *options)
    assert done.returncode in (0, 1), done.stderr
    return {model["model"]: model for model in json.loads((folder / "migration.json").read_text())["models"]}


def test_programs_hold_both_ways_or_refuse_and_answer_new_data_as_torchscript(
    tmp_path: Path, latest_python: str
) -> None:
    models = migrated(tmp_path, "-k", "joined")
    outcomes = {name: model["outcome"] for name, model in models.items()}
    assert outcomes.pop("argument_handed_on") in ("not convertible", "answers otherwise")
    assert set(outcomes.values()) == {"ready"}, outcomes
    pairs = files_of(tmp_path, {name: models[name] for name in outcomes})
    asked = [latest_python, "-W", "ignore", "-c", BESIDE_TORCHSCRIPT, json.dumps(pairs)]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=600)
    counts = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert set(counts) == set(outcomes)
    for name, of in counts.items():
        assert "wrong" not in of, (name, of)
        assert ("refused" in of) == (name == "one_is_special"), (name, of)
    assert counts["refuses_data"]["refused alike"] > 3


def files_of(folder: Path, models: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, archive, program) of each model."""
    archives = {name: next(folder.glob(f"probes/*/{name}.pt")) for name in models}
    return [(name, str(path), str(folder / models[name]["program"])) for name, path in archives.items()]


@pytest.mark.parametrize("new", ["2.6.0", "2.15.0"])
def test_recurrent_layers_take_every_length(tmp_path: Path, new_python: str, latest_python: str, new: str) -> None:
    models = migrated(tmp_path, "-k", "recurrent", new=new)
    outcomes = {name: model["outcome"] for name, model in models.items()}
    padded = {"2.6.0": "not convertible", "2.15.0": "ready"}[new]
    assert outcomes == {"recurs": "ready", "recurs_packed": "ready", "recurs_padded": padded}
    models = {name: model for name, model in models.items() if model["outcome"] == "ready"}
    python = {"2.6.0": new_python, "2.15.0": latest_python}[new]
    asked = [python, "-W", "ignore", "-c", LENGTHS, json.dumps(files_of(tmp_path, models))]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=600)
    assert [line.split()[-1] for line in ran.stdout.splitlines()] == ["True"] * 4 * len(models), ran.stdout


@pytest.mark.parametrize("new", ["2.6.0", "2.15.0"])
def test_operators_that_a_release_cannot_trace_with_open_sizes_stay_whole(tmp_path: Path, new: str) -> None:
    models = migrated(tmp_path, "-k", "whole", new=new)
    assert {name: (model["outcome"], model["walked"]) for name, model in models.items()} == {
        "spectrum": ("ready", True),
        "encoder_traced": ("ready", True),
    }


def test_torchs_own_converter_is_not_asked_for_what_it_would_lose(tmp_path: Path) -> None:
    models = migrated(tmp_path, "-k", "lost", "--converter", "torch")
    for name in ("refuses_data", "one_is_special"):
        assert models[name]["outcome"] == "not convertible"
        assert "LosesCheck" in models[name]["reason"]


def test_a_package_refuses_the_sizes_that_its_program_refuses(tmp_path: Path, latest_python: str) -> None:
    models = migrated(tmp_path, "-k", "packaged", "--package")
    package = str(tmp_path / models["few_rows"]["package"])
    asked = [latest_python, "-W", "ignore", "-c", PACKAGE, package]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=600)
    assert ran.stdout.splitlines() == ["1 True", "4 True", "5 True", "6 refused"]
