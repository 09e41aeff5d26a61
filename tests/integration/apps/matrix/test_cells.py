"""The version matrix: every pair is judged, predictions stand beside what happened, and nothing known is run again."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import Environment
from tests.integration.gate import harness
from tests.programs import cli, stub


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "matrix.json").read_text())
    return found


def statuses(matrix: dict[str, Any], model: str) -> dict[tuple[str, str], str]:
    return {
        (cell["exporter"], cell["loader"]): cell["status"] if cell["exported"] else "absent"
        for cell in matrix["cells"]
        if cell["model"] == model
    }


@pytest.mark.integration
@pytest.mark.usefixtures("old_python", "new_python")
def test_genuine_breaks_stand_in_their_pairs_and_a_second_run_starts_no_probe(tmp_path: Path) -> None:
    sides = ("matrix", "--releases", "2.1.2", "2.6.0", "--fixtures", "fixtures/breaks", "--out", str(tmp_path))
    names = ("half_on_accelerator", "encode_ragged")
    first = harness(*sides, "-k", " or ".join(names))
    assert first.returncode == 1, first.stderr
    matrix, before = told(tmp_path), cli.stored_results(tmp_path)
    assert statuses(matrix, "half_on_accelerator") == {
        ("2.1.2", "2.1.2"): "PASS",
        ("2.1.2", "2.6.0"): "FAIL",
        ("2.6.0", "2.1.2"): "absent",  # the method that it calls is gone: it cannot be exported there
        ("2.6.0", "2.6.0"): "absent",
    }
    assert statuses(matrix, "encode_ragged") == {
        ("2.1.2", "2.1.2"): "PASS",
        ("2.1.2", "2.6.0"): "PASS",
        ("2.6.0", "2.1.2"): "FAIL",
        ("2.6.0", "2.6.0"): "PASS",
    }
    refused = {"loaded": 0, "did not load": 1, "not known": 0}
    assert matrix["predictions"]["backward"]["will not load"] == refused
    assert matrix["predictions"]["forward"]["will not load"] == refused
    assert matrix["predictions"]["all"]["will load"] == {"loaded": 4, "did not load": 0, "not known": 0}
    assert "prim::is_ort" in first.stdout
    assert "compat --fixtures fixtures/breaks --old 2.1.2 --new 2.6.0 -k half_on_accelerator" in first.stdout
    assert f"0 of {matrix['asked']} results were known already" in first.stdout
    second = harness(*sides, "-k", " or ".join(names))
    assert (second.returncode, cli.stored_results(tmp_path)) == (1, before)
    again = told(tmp_path)
    assert again["known"] == again["asked"] == matrix["asked"]
    assert again["cells"] == matrix["cells"]


def stub_words(folder: Path, *releases: Environment, more: tuple[str, ...] = ()) -> list[str]:
    names = [f"r{index}" for index in range(len(releases))]
    pairs = zip(names, releases, strict=True)
    ready = (word for name, release in pairs for word in ("--env", f"{name}={release.interpreter}"))
    models = ("--fixtures", str(stub.MODELS), "--jobs", "2")
    project = ("--project", str(folder / "project"))
    where = ("--out", str(folder / "store"))
    (folder / "project").mkdir(exist_ok=True)
    return [*project, "matrix", "--releases", *names, *ready, *models, *where, *more]


@pytest.mark.slow
def test_an_interrupted_matrix_goes_on_where_it_was_cut_and_another_release_costs_its_own_pairs_only(
    tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment
) -> None:
    only = ("-k", "well_a or other_answer_in_new or dies_in_new")
    words = stub_words(tmp_path, stub_environment, other_stub_environment, more=only)
    process, limit = cli.started([sys.executable, "-m", "harness", *words]), time.monotonic() + cli.RUN_DEADLINE_S
    while len(cli.stored_results(tmp_path / "store")) < 5:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == 130
    assert "finished results are kept" in done.stderr
    before = cli.stored_results(tmp_path / "store")
    done = cli.here(words)
    assert done.returncode == 1, done.stderr
    after, matrix = cli.stored_results(tmp_path / "store"), told(tmp_path / "store")
    assert {path: after[path] for path in before} == before
    assert matrix["known"] == len(before) >= 5
    assert matrix["asked"] == len(after)
    assert statuses(matrix, "well_a") == dict.fromkeys([(a, b) for a in ("r0", "r1") for b in ("r0", "r1")], "PASS")
    assert statuses(matrix, "other_answer_in_new")["r0", "r1"] == "FAIL"
    assert statuses(matrix, "dies_in_new")["r1", "r1"] == "SAME_FAIL"
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path))
    third = stub.make_environment(tmp_path / "third", version="2.15.0")
    both = (third, stub_environment, other_stub_environment)  # so all have other names, and another order
    done = cli.here(stub_words(tmp_path, *both, more=("-k", "well_a")))
    assert done.returncode == 0, done.stderr
    grown, matrix = cli.stored_results(tmp_path / "store"), told(tmp_path / "store")
    assert {path: grown[path] for path in after} == after
    assert matrix["known"] == 2 * (1 + 2) + 2  # exports and golden runs, and the pairs of those two
    assert len(grown) - len(after) == 1 + 2 + 4  # its own, and its pairs with the other two


HELPED = """from fixtures.declare import Sample, model
from helper import ANSWER
import torch


@model("helped")
def helped():
    return Sample(torch.nn.Module(other_answer=ANSWER), example=(1,))
"""


@pytest.mark.slow
def test_exports_follow_the_source_that_they_come_from_and_nothing_else(
    tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment
) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    (zoo / "models.py").write_text(HELPED)
    (zoo / "helper.py").write_text("ANSWER = 1\n")
    (tmp_path / "project").mkdir()

    def run(*more: str) -> dict[str, Any]:
        done = cli.here(stub_words(tmp_path, stub_environment, other_stub_environment, more=more))
        assert done.returncode == 0, done.stderr
        return told(tmp_path / "store")

    models = ("--fixtures", str(zoo))
    first = run(*models)
    assert first["known"] == 0
    (zoo / "helper.py").touch()
    (zoo / "models.py").touch()
    again = run(*models)
    assert again["known"] == again["asked"] == first["asked"]
    (zoo / "helper.py").write_text("ANSWER = 2\n")
    changed = run(*models)
    assert (changed["known"], changed["cells"][0]["evidence"]) != (first["asked"], first["cells"][0]["evidence"])
    assert changed["known"] == 0
    assert run(*models, "--fresh")["known"] == 0


def test_one_torch_under_two_names_is_no_upgrade(tmp_path: Path, stub_environment: Environment) -> None:
    twin = stub.make_environment(tmp_path / "twin", version="2.1.2")
    done = cli.here(stub_words(tmp_path, stub_environment, twin, more=("-k", "well_a")))
    assert done.returncode == 4, done.stderr
    assert "r1 holds the same torch as r0" in done.stdout
    assert "nothing tested" in done.stdout


@pytest.mark.integration
@pytest.mark.usefixtures("old_python", "new_python")
@pytest.mark.slow
def test_a_file_that_loads_nowhere_is_nothing_tested_and_what_is_no_model_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "cut.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    (folder / "weights.pt").write_text("no artifact")
    asked = ("matrix", "--releases", "2.1.2", "2.6.0", "--artifacts", str(folder), "--out", str(tmp_path / "store"))
    done = harness(*asked)
    assert done.returncode == 4, f"{done.stdout}\n{done.stderr}"
    said = "".join(done.stdout.split())  # where lines break, in a path too, depends on how long that of the folder is
    assert "nothingtested:whatfailsinanotherreleasefailswhereitcomesfromtoo" in said, done.stdout
    assert "weights.pt" in said and "(leftout)" in said, done.stdout
    first = told(tmp_path / "store")
    (folder / "cut.pt").touch()
    done = harness(*asked)
    assert done.returncode == 4, f"{done.stdout}\n{done.stderr}"
    again = told(tmp_path / "store")
    assert again["known"] == again["asked"], (first["cells"], done.stdout)
