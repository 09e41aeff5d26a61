"""The first bad release: found among real releases and stubs, in few questions, and never called so without proof."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from tests.integration.gate import PROJECT, harness
from tests.programs import cli, stub

BREAKS = ("--fixtures", "fixtures/breaks")


def told(folder: Path, model: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"first-bad-{model}.json").read_text())
    return found


def answers(found: dict[str, Any]) -> dict[str, str]:
    return {item["release"]: item["answer"] for item in found["asked"]}


@pytest.mark.integration
@pytest.mark.usefixtures("old_python", "new_python")
def test_a_genuine_break_has_its_first_bad_release_and_what_is_known_is_not_probed_again(tmp_path: Path) -> None:
    """``prim::is_ort`` went with 2.4, by the pull request that the fixture names; both ends are neighbours here."""
    asked = ("bisect", "--over", "releases", "--model", "half_on_accelerator", *BREAKS, "--out", str(tmp_path))
    first = harness(*asked, "--old", "2.1.2", "--new", "2.6.0", "--releases", "2.1.2", "2.6.0")
    assert first.returncode == 1, first.stderr
    assert "first bad: torch 2.6.0 (load_error); torch 2.1.2 is good" in first.stdout
    assert "prim::is_ort" in first.stdout
    assert "bisect --model half_on_accelerator --old 2.1.2 --new 2.6.0 --fixtures fixtures/breaks" in first.stdout
    before = cli.stored_results(tmp_path)
    second = harness(*asked, "--releases", "2.1.2", "2.6.0", "--format", "json")
    assert (second.returncode, cli.stored_results(tmp_path)) == (1, before)
    assert json.loads(second.stdout)["conclusion"] == told(tmp_path, "half_on_accelerator")["conclusion"]


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.usefixtures("old_python", "new_python")
def test_its_healthy_twin_has_none(tmp_path: Path) -> None:
    """What 2.1.2 exports of it loads in 2.6.0: only the rollback breaks."""
    asked = ("bisect", "--over", "releases", "--model", "encode_ragged", *BREAKS, "--out", str(tmp_path))
    done = harness(*asked, "--releases", "2.1.2", "2.6.0")
    assert done.returncode == 0, done.stderr
    assert "nothing to search for: torch 2.6.0 is good" in done.stdout
    assert told(tmp_path, "encode_ragged")["kind"] == ""


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "old", "new", "first_bad"),
    [
        ("half_on_accelerator", "2.3.1", "2.4.1", "2.4.0"),  # renamed between the branches of 2.3 and 2.4
        ("attend_within_length", "2.4.1", "2.5.1", "2.5.0"),  # since 2.5.0, by its release notes
    ],
)
def test_known_first_bad_releases_are_found_by_building_them(
    tmp_path: Path, model: str, old: str, new: str, first_bad: str
) -> None:
    done = harness(
        "bisect", "--over", "releases", "--model", model, *BREAKS, "--old", old, "--new", new, "--out", str(tmp_path)
    )
    assert done.returncode == 1, done.stderr
    found = told(tmp_path, model)
    assert found["conclusion"]["first_bad"] == first_bad
    root = default_environment_root()
    builder = EnvironmentBuilder(root, progress=lambda name, text: None, uv=find_uv())
    assert all(builder.is_ready(EnvSpec(name=name, release=name)) for name in answers(found))


MODELS = """
import torch
from fixtures.declare import Sample, model


def program(**what):
    return Sample(torch.nn.Module(**what), example=(1,))


@model("other_since_2_3")
def other_since_2_3():
    return program(other_answer=7, since="2.3.0", every_call="nap")


@model("other_since_2_2")
def other_since_2_2():
    return program(other_answer=7, since="2.2.0")


@model("at_times_since_2_2")
def at_times_since_2_2():
    return program(load="raise_every_third_time", since="2.2.0", note={note!r})


@model("hangs_since_2_4")
def hangs_since_2_4():
    return program(load="hang_asleep", since="2.4.0")


@model("well")
def well():
    return program()


@model("never_well")
def never_well():
    return program(load="raise_error")
"""


class Line:
    """Six stub releases ``r0 ... r5``, of torch 2.0.0 to 2.5.0; in those of ``broken`` torch cannot be imported."""

    def __init__(self, folder: Path, *, broken: Sequence[int] = ()) -> None:
        self.store = folder / "store"
        self.project = folder / "project"
        self.project.mkdir()
        self.models = folder / "models"
        self.models.mkdir()
        (folder / "beside").mkdir()  # a worker makes no files in the folders above the store
        (self.models / "models.py").write_text(MODELS.replace("{note!r}", repr(str(folder / "beside" / "count"))))
        self.releases: Mapping[str, str] = {
            f"r{place}": stub.make_environment(
                folder / f"r{place}", version=f"2.{place}.0", on_import="exit_at_once" if place in broken else None
            ).interpreter
            for place in range(6)
        }

    def words(self, model: str, *more: str) -> list[str]:
        ready = (word for name, python in self.releases.items() for word in ("--env", f"{name}={python}"))
        where = ("--project", str(self.project))
        rest = ("--model", model, "--fixtures", str(self.models), "--out", str(self.store))
        return [*where, "bisect", "--over", "releases", "--releases", *self.releases, *ready, *rest, *more]

    def run(self, model: str, *more: str) -> "subprocess.CompletedProcess[str]":
        return cli.here(self.words(model, *more))


def test_the_first_bad_stub_is_found_and_remembered(tmp_path: Path) -> None:
    line = Line(tmp_path)
    done = line.run("other_since_2_3")
    assert done.returncode == 1, done.stderr
    found = told(line.store, "other_since_2_3")
    assert (found["conclusion"]["ending"], found["conclusion"]["first_bad"]) == ("found", "r3")
    assert answers(found)["r2"] == "good" and answers(found)["r3"] == "bad"
    assert len(found["asked"]) <= 5
    assert "--env r2=" in found["command"] and "--env r5=" not in found["command"]
    before = cli.stored_results(line.store)
    again = line.run("other_since_2_3")
    assert (again.returncode, cli.stored_results(line.store)) == (1, before)
    assert "known from an earlier search" in again.stdout
    assert told(line.store, "other_since_2_3")["conclusion"] == found["conclusion"]


def test_releases_that_cannot_be_tested_are_never_bad(tmp_path: Path) -> None:
    line = Line(tmp_path, broken=[1, 2])
    done = line.run("other_since_2_3")
    assert done.returncode == 4, done.stderr
    found = told(line.store, "other_since_2_3")
    assert found["conclusion"]["one_of"] == ["r1", "r2", "r3"]
    assert answers(found)["r1"] == answers(found)["r2"] == "untestable"
    words = " ".join(done.stdout.split())
    assert "first bad: one of torch r1, r2, r3 (structure); torch r0 is good; r1, r2 could not be tested" in words


def test_a_symptom_that_shows_in_one_of_three_runs_is_found_by_repeats(tmp_path: Path) -> None:
    line = Line(tmp_path)
    done = line.run("at_times_since_2_2")
    assert done.returncode == 1, done.stderr
    found = told(line.store, "at_times_since_2_2")
    assert (found["kind"], found["conclusion"]["first_bad"]) == ("load_error", "r2")
    runs = {item["release"]: item["runs"] for item in found["asked"]}
    assert runs["r5"] == 6  # until it failed twice
    assert runs["r1"] >= 9  # so many clean runs are needed at that rate


@pytest.mark.slow
def test_a_search_for_a_hang_does_not_hang(tmp_path: Path) -> None:
    line = Line(tmp_path)
    done = line.run("hangs_since_2_4", "--deadline", "1")
    assert done.returncode == 1, done.stderr
    found = told(line.store, "hangs_since_2_4")
    assert (found["kind"], found["conclusion"]["last_good"], found["conclusion"]["first_bad"]) == ("hang", "r3", "r4")
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path))


@pytest.mark.parametrize(("model", "code", "ending"), [("well", 0, "not bad"), ("never_well", 4, "old not good")])
def test_ends_are_verified_first_and_nothing_is_asked_between_wrong_ones(
    tmp_path: Path, model: str, code: int, ending: str
) -> None:
    line = Line(tmp_path)
    done = line.run(model)
    assert done.returncode == code, done.stderr
    found = told(line.store, model)
    assert found["conclusion"]["ending"] == ending
    assert set(answers(found)) <= {"r0", "r5"}


@pytest.mark.slow
def test_an_interrupted_search_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    line = Line(tmp_path)
    process = cli.started([sys.executable, "-m", "harness", *line.words("other_since_2_3")])
    limit = time.monotonic() + cli.RUN_DEADLINE_S
    while len(cli.stored_results(line.store)) < 5:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == 130
    assert "what was answered is kept" in done.stderr
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path))
    before = cli.stored_results(line.store)
    done = line.run("other_since_2_3")
    assert done.returncode == 1, done.stderr
    assert told(line.store, "other_since_2_3")["conclusion"]["first_bad"] == "r3"
    after = cli.stored_results(line.store)
    assert {path: after[path] for path in before} == before
