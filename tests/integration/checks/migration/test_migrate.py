"""Each planted obstacle on the way out of TorchScript is named, and its twin is ready; nothing known is run again."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.core.outcome import Decision
from tests.integration.gate import PROJECT, compat, finished, harness
from tests.programs import cli

pytestmark = pytest.mark.integration
CONVERTER = ("--converter", "torch")
UNTIMED = ("--until", "correctness")
PLANTED = "tests/integration/checks/migration/migrated"
ZOO_DEADLINE_S = 3600


def found(folder: Path) -> dict[str, Any]:
    migration = json.loads((folder / "migration.json").read_text())
    return {"models": {model["model"]: model for model in migration.pop("models")}, **migration}


def test_obstacles_are_named_as_torch_alone_has_them_their_twins_are_ready_and_a_second_run_starts_nothing(
    tmp_path: Path, new_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where torch._inductor would make a folder, which no probe may
    sides = ("migrate", "--old", "2.6.0", "--new", "2.6.0", "--fixtures", PLANTED, "--out", str(tmp_path), *CONVERTER)
    first = harness(*sides, "-k", "branch_on_data or choice_of_values or size")
    assert first.returncode == 1, first.stderr
    migration, before = found(tmp_path), cli.stored_results(tmp_path)
    outcomes = {name: model["outcome"] for name, model in migration["models"].items()}
    assert outcomes == {
        "branch_on_data": "not convertible",
        "choice_of_values": "ready",
        "size_as_number": "dimensions fixed",
        "size_never_varied": "dimensions fixed",
    }
    assert plain_outcomes(tmp_path, new_python) == outcomes
    program = migration["models"]["choice_of_values"]["program"]
    assert (tmp_path / program).is_file() and f"{tmp_path}/{program}" in first.stdout
    branch = migration["models"]["branch_on_data"]
    assert branch["kind"] == "prim::If"
    assert f"{PLANTED}/models.py:" in branch["source"]
    assert "torch.where" in branch["advice"]
    assert migration["models"]["size_as_number"]["dimensions"] == [
        {"argument": "input[1]", "axis": None, "taken": "4", "asked": ["2"]}
    ]
    one_batch = migration["models"]["size_never_varied"]
    assert one_batch["dimensions"] == [{"argument": "input[0]", "axis": 0, "taken": "4", "asked": ["5"]}]
    assert (one_batch["kind"], "fixed at 4 in dimension 0, as in every request" in one_batch["reason"]) == (
        "one batch size",
        True,
    )
    assert "FAIL  branch_on_data: not convertible: prim::If" in first.stdout
    assert len(first.stdout.splitlines()) <= 60
    again = harness(*sides, "-k", "branch_on_data or choice_of_values or size")
    assert (again.returncode, cli.stored_results(tmp_path)) == (1, before)
    assert f"{migration['asked']} of {migration['asked']} results were known already" in again.stdout


def test_what_is_walked_answers_and_a_branch_of_data_never_answers_wrongly(tmp_path: Path, new_python: str) -> None:
    done = harness(
        *("migrate", "--old", "2.6.0", "--new", "2.6.0", "--fixtures", PLANTED, "--out", str(tmp_path), "-k", "walked"),
    )
    assert done.returncode == 1, done.stderr
    models = found(tmp_path)["models"]
    assert {name: (model["outcome"], model["walked"]) for name, model in models.items()} == {
        "branch_on_constant": ("ready", True),
        "loop_over_list": ("ready", True),
        "branch_alike": ("guarded", True),
        "branch_on_data": ("not convertible", False),
        "calls_counted": ("answers otherwise", False),
        "sums_kept": ("ready", True),
        "length_decides": ("dimensions fixed", False),
    }
    assert f"prim::If at {PLANTED}" in models["branch_alike"]["reason"].replace(f"{PROJECT}/", "")
    call = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
print(program(torch.ones(4, 3)).tolist() == (torch.ones(4, 3) * 2).tolist())
try:
    print(program(-torch.ones(4, 3)))
except RuntimeError as error:
    print("refused")
"""
    program = str(tmp_path / models["branch_alike"]["program"])
    ran = subprocess.run([new_python, "-c", call, program], capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout.split() == ["True", "refused"]


@pytest.mark.slow
def test_a_loop_that_floats_end_takes_as_many_turns_as_its_data_asks_for(tmp_path: Path) -> None:
    sides = ("--old", "2.6.0", "--new", "2.15.0", "--fixtures", PLANTED, "--out", str(tmp_path))
    harness("migrate", *sides, "-k", "settling")
    model = found(tmp_path)["models"]["settles_alike"]
    assert (model["outcome"], model["walked"]) == ("ready", True), model["reason"]
    call = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
for value in (0.1, 2.0, 9.0):
    print(value, program(torch.full((4, 3), value))[1])
"""
    python = harness("env", "2.15.0").stdout.split()[-1]
    asked = [python, "-c", call, str(tmp_path / model["program"])]
    ran = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout.splitlines() == ["0.1 1", "2.0 3", "9.0 5"]


@pytest.mark.usefixtures("new_python")
def test_smallest_part_that_is_not_convertible_is_an_archive_with_a_reproducer(tmp_path: Path) -> None:
    done = harness(
        *("migrate", "--old", "2.6.0", "--new", "2.6.0", "--fixtures", PLANTED, "--out", str(tmp_path), "--explain"),
        *CONVERTER,
        *("-k", "loop_over_list"),
    )
    assert done.returncode == 1, done.stderr
    part = found(tmp_path)["models"]["loop_over_list"]["part"]
    assert part["nodes"] == ["prim::Loop"]
    assert part["minimal"]
    assert (tmp_path / part["archive"]).is_file()
    folder = tmp_path / part["reproducer"]
    program = (folder / "reproduce.py").read_text()
    assert "gate_worker" not in program
    assert "harness" not in program
    issue = (folder / "issue.md").read_text()
    assert issue.startswith("# [export] TS2EPConverter: a TorchScript program of prim::Loop is not converted")
    assert "Not ready to be posted" not in issue
    assert f"{part['reproducer']}/reproduce.py" in done.stdout


@pytest.mark.slow
def test_beside_an_upgrade_outcomes_are_those_of_migrate_and_decide_nothing_and_a_resumed_run_starts_nothing(
    tmp_path: Path,
) -> None:
    models = ("--fixtures", PLANTED, "-k", "branch_on_data or choice_of_values")
    run = compat(tmp_path / "runs", "--migrate", *models, "--scenario", "alone", *UNTIMED, all_planted=False)
    assert (run.code, run.report.judgement.decision) == (0, Decision.UPGRADE_OK), run.out
    migration = run.report.migration
    assert migration is not None
    outcomes = {model.model: model.outcome.value for model in migration.models}
    assert outcomes == {"branch_on_data": "not convertible", "choice_of_values": "ready"}
    assert "1 ready, 1 not convertible" in run.out
    branch, choice = migration.models
    assert "torch.where" in branch.advice
    assert (run.folder / branch.evidence).exists()
    assert (run.folder / choice.program).is_file()
    assert set(run.report.durations_s) == {cell.cell for row in run.report.judgement.rows for cell in row.cells}
    before = cli.stored_results(run.folder)
    again = harness("compat", "--resume", str(run.folder), *UNTIMED, all_planted=False)
    resumed = finished(again, tmp_path / "runs")
    assert (resumed.report.migration, cli.stored_results(run.folder)) == (migration, before), again.stderr
    said = shlex.split(migration.command)[4:]
    done = harness(*said, "--out", str(tmp_path / "matrix"))
    assert done.returncode == 1, done.stderr
    assert {name: model["outcome"] for name, model in found(tmp_path / "matrix")["models"].items()} == outcomes


@pytest.mark.slow
def test_beside_an_upgrade_to_a_release_without_a_converter_one_line_says_so(tmp_path: Path) -> None:
    run = compat(
        tmp_path,
        *("--old", "2.6.0", "--new", "2.1.2", "--migrate", "--fixtures", PLANTED, "-k", "choice_of_values"),
        *("--scenario", "alone", *UNTIMED),
        all_planted=False,
    )
    migration = run.report.migration
    assert migration is not None
    assert (migration.models, migration.command) == ((), "")
    said = " ".join(run.out.split())
    assert said.count("torch 2.1.2 has no converter: convert in a release that has one: --new 2.6.0 or later") == 1


@pytest.mark.slow
def test_a_release_without_a_converter_says_so(tmp_path: Path) -> None:
    done = harness(
        *("migrate", "--old", "2.1.2", "--new", "2.1.2", "--fixtures", PLANTED, "-k", "choice_of_values"),
        *("--out", str(tmp_path)),
    )
    assert done.returncode == 1, done.stderr
    assert found(tmp_path)["models"]["choice_of_values"]["kind"] == "no converter"
    assert "--new 2.6.0 or later" in done.stdout


@pytest.mark.slow
def test_newest_release_keeps_sizes_open_and_the_older_one_does_not_load_what_it_writes(tmp_path: Path) -> None:
    done = harness(
        *("migrate", "--old", "2.6.0", "--new", "2.15.0", "--releases", "2.6.0", "--fixtures", PLANTED),
        *("--out", str(tmp_path)),
    )
    assert done.returncode == 1, done.stderr
    models = found(tmp_path)["models"]
    assert models["number_beyond_int32"]["walked"]  # torch's converter passes the number through int32
    assert [part["method"] for part in models["two_methods"]["programs"]] == ["forward", "score"]
    assert models["shape_of_argument"]["outcome"] == "not convertible"  # its caller would see another shape
    assert models["batch_of_one_first"]["example"] != "single"
    for name in (
        *("choice_of_values", "size_never_varied", "batch_of_one_first"),
        *("number_within_int32", "number_beyond_int32", "shape_in_place"),
    ):
        assert (models[name]["outcome"], models[name]["kind"]) == ("not loadable", "in 2.6.0"), name
    program = next(tmp_path.glob("probes/*/choice_of_values.pt2"))
    read = harness("inspect", str(program), "--old", "2.6.0", "--new", "2.15.0")
    assert read.returncode == 1, read.stdout
    assert "container_unknown" in read.stdout and "1 will load" in read.stdout


@pytest.mark.slow
def test_plain_script_of_torch_alone_comes_to_the_same_outcome_for_every_model_of_the_zoo(tmp_path: Path) -> None:
    sides = ("--old", "2.6.0", "--new", "2.15.0", "--out", str(tmp_path))
    harness("migrate", *sides, "--package", *CONVERTER, timeout_s=ZOO_DEADLINE_S)
    migration = found(tmp_path)
    assert len(migration["models"]) >= 65
    python = harness("env", "2.15.0").stdout.split()[-1]
    told = plain_outcomes(tmp_path, python, "--package")
    for name, model in migration["models"].items():
        if model["kind"] == "tuple becomes list":
            right = {"only lists"}
        elif model["outcome"] in ("fails when served", "slower"):  # the script serves nothing
            right = {"ready", "only lists"}
        else:
            right = {model["outcome"]}
        assert told[name] in right, (name, model["reason"])


@pytest.mark.slow
def test_programs_of_the_zoo_answer_requests_that_nobody_gave(tmp_path: Path, latest_python: str) -> None:
    harness("migrate", "--old", "2.6.0", "--new", "2.15.0", "--out", str(tmp_path), timeout_s=ZOO_DEADLINE_S)
    fresh = PROJECT / "tests" / "integration" / "checks" / "migration" / "migrated" / "fresh.py"
    asked = [latest_python, "-W", "ignore", str(fresh), str(tmp_path)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=ZOO_DEADLINE_S)
    counts = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(counts) >= 60
    assert {name: of for name, of in counts.items() if "wrong" in of or "refused" in of} == {}
    assert sum(of.get("same", 0) for of in counts.values()) >= 8 * len(counts)


def plain_outcomes(folder: Path, python: str, *arguments: str) -> dict[str, str]:
    """Return what the oracle, run with a release's interpreter, says of every artifact in a folder of results."""
    oracle = PROJECT / "tests" / "integration" / "checks" / "migration" / "migrated" / "oracle.py"
    done = subprocess.run(
        [python, str(oracle), str(folder / "probes"), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=ZOO_DEADLINE_S,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())
