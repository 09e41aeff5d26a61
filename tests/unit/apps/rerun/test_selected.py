"""A cell of a finished run: how it may be named, what is refused with what to type instead, and what is kept for it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.cli.parser import parser
from harness.search.explained_cells import by_bisection
from harness.core.diagnosis import BisectAnswer, Bisection, Rewritten
from harness.core.outcome import Status
from harness.core.report import Explained
from harness.core.errors import ConfigError, RunDirError, SelectionError
from harness.report.json.report import dump_report
from harness.apps.rerun.selected import (
    SelectedCell,
    as_the_run,
    keep_explanation,
    read_selected_cell,
    save_selected_cell,
    selected_cell,
    verified_rewrites,
)
from harness.apps.rerun.rerun import rerun
from harness.apps.report.files import read_report
from harness.project import Project
from harness.apps.upgrade.plan import make_plan
from harness.store import codec
from harness.store.run_folder import REPORT, RunDir
from harness.machine import clock
from harness.machine.progress import Progress
from tests.unit.builders.reports import blocked

PROJECT = Path(__file__).resolve().parents[4]
SIDES = {"old": "2.1.2", "new": "2.6.0"}
CELL = "dlrm/alone"
QUIET = Progress(enabled=False)


def run(reports: Path, *, report: bool = True, arguments: Sequence[str] = ()) -> Path:
    """Return the folder of a run over dlrm."""
    options = Project(folder=PROJECT, overrides=SIDES, expression="dlrm", out=str(reports), arguments=arguments)
    with RunDir.create(reports, "2.1.2-to-2.6.0", clock.utc_now()) as made:
        made.save_plan(make_plan(options))
        if report:
            made.write(REPORT, dump_report(blocked()))
        return made.path


def ask(reports: Path, options: dict[str, Any] | None = None, **named: Any) -> SelectedCell | None:
    words = {"run": None, "cell": None, "key": None, "model": None, **named}
    return selected_cell(Project(folder=PROJECT, out=str(reports), **(options or {})), "bisect", **words)


def test_a_key_alone_is_of_the_last_run_that_has_a_report(tmp_path: Path) -> None:
    folder = run(tmp_path)
    run(tmp_path, report=False)
    found = ask(tmp_path, key=CELL)
    assert found is not None
    assert (found.folder, found.cell.id, found.model.name) == (folder, CELL, "dlrm")
    assert ask(tmp_path, run=folder.name, cell=CELL) == ask(tmp_path, run=folder.name, key=CELL) == found
    assert ask(tmp_path) is None


def test_a_run_without_a_cell_names_its_red_cells(tmp_path: Path) -> None:
    folder = run(tmp_path)
    with pytest.raises(ConfigError, match="its red cells: fused_ranker/") as refused:
        ask(tmp_path, run=folder.name)
    assert str(refused.value).endswith(f"such as bisect {folder.name} fused_ranker/concurrent")


def test_a_model_that_is_not_timed_has_no_cell_of_its_latency(tmp_path: Path) -> None:
    run(tmp_path)
    latency = CELL.replace("/alone", "/latency")
    with pytest.raises(SelectionError, match="dlrm says timed=False"):
        ask(tmp_path, key=latency)
    with pytest.raises(SelectionError, match=f"this run has no cell {latency}"):
        rerun(Project(folder=PROJECT, out=str(tmp_path)), "last", latency)
    served = latency.replace("dlrm", "served_dlrm")
    assert ask(tmp_path, key=served) is not None


def test_a_run_that_was_interrupted_is_reported_as_such(tmp_path: Path) -> None:
    folder = run(tmp_path, report=False)
    with pytest.raises(ConfigError, match="the run was interrupted"):
        ask(tmp_path, run=folder.name)


def test_a_cell_in_place_of_the_run_says_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"of the last run: bisect --cell {CELL}"):
        ask(tmp_path, run=CELL)


def test_two_cells_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    folder = run(tmp_path)
    with pytest.raises(ConfigError, match="two cells"):
        ask(tmp_path, run=folder.name, cell=CELL, key=CELL.replace("dlrm", "din"))
    with pytest.raises(SelectionError, match="expected model/scenario"):
        ask(tmp_path, key="dlrm")


def test_what_the_run_does_not_have_is_refused_with_what_it_has(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(SelectionError, match="has no model din; it has: dlrm"):
        ask(tmp_path, key=CELL.replace("dlrm", "din"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"overrides": {"old": "2.1.2", "deadlines.floor_s": "5"}}, "--old, --deadline beside a cell"),
        ({"overrides": {"new_profile": "fast"}}, "--new-profile beside a cell"),
        ({"artifacts": ("a.pt",)}, "--artifact beside a cell"),
        ({"environments": ("old=/p",), "assignments": ("jobs=1",)}, "--env, --set beside a cell"),
    ],
)
def test_what_the_run_has_already_is_not_silently_ignored(tmp_path: Path, options: dict[str, Any], named: str) -> None:
    run(tmp_path)
    with pytest.raises(ConfigError, match=named):
        ask(tmp_path, options, key=CELL)
    with pytest.raises(ConfigError, match="--model beside a cell"):
        ask(tmp_path, key=CELL, model="dlrm")


def test_a_search_has_the_interpreters_and_libraries_of_the_run(tmp_path: Path) -> None:
    run(tmp_path, arguments=("compat", "--library", "x.so", "--set", "jobs=1", "--out", "d"))
    asked = ask(tmp_path, key=CELL)
    assert asked is not None
    options = as_the_run(asked, Project(folder=PROJECT))
    assert (options.environments, options.libraries, options.assignments) == ([], ["x.so"], ["jobs=1"])


def test_what_was_found_later_is_in_the_report_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path)
    asked = ask(tmp_path, key=CELL)
    assert asked is not None
    red = next(cell for row in blocked().judgement.rows for cell in row.cells if cell.status is Status.FAIL)
    told = Explained(cell=red.cell, model=red.model, by="bisect", answer="x", lines=(("culprit", "aten::planted"),))
    keep_explanation(asked, told, QUIET, {"bisect.json": b"{}"})
    assert [item.by for item in read_report(Project(folder=PROJECT, out=str(tmp_path)), "last").report.explained] == [
        "bisect",
        "first-bad",
        "bisect",
    ]
    for form in ("console", "markdown", "junit", "json"):
        cli.main(["report", folder.name, "--out", str(tmp_path), "--format", form, "--verbose"])
        assert "aten::planted" in capsys.readouterr().out, form


def test_rewrites_that_the_run_has_verified_are_known(tmp_path: Path) -> None:
    folder = run(tmp_path)
    asked = ask(tmp_path, key=CELL)
    assert asked is not None
    assert verified_rewrites(asked) == ()
    there, gone, in_vain = (
        Rewritten(rule=rule, what=rule, artifact=f"rewrites/{rule}.pt", fixes=rule != "in vain")
        for rule in ("there", "gone", "in vain")
    )
    search = tmp_path / "search"
    (search / "rewrites").mkdir(parents=True)
    for item in (there, in_vain):
        (search / item.artifact).write_bytes(b"PK")
    found = Bisection(model="dlrm", old="o", new="n", answer=BisectAnswer.OPERATOR, rewrites=(in_vain, gone, there))
    (search / "bisect.json").write_bytes(codec.pretty(found))
    keep_explanation(asked, by_bisection(CELL, found, folder=os.path.relpath(search, folder)), QUIET)
    (known,) = verified_rewrites(asked)
    assert (known.rule, Path(known.artifact).read_bytes()) == ("there", b"PK")
    (search / "bisect.json").write_bytes(b"[[[")
    assert verified_rewrites(asked) == ()


def test_a_run_that_cannot_be_written_costs_only_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run(tmp_path)
    asked = ask(tmp_path, key=CELL)
    assert asked is not None
    (folder / "explained").write_text("in the way")
    keep_explanation(asked, Explained(cell=CELL, model="dlrm", by="bisect", answer="x"), Progress())
    assert f"the report of {folder.name} will not tell of it" in capsys.readouterr().err


def test_a_search_of_its_own_knows_which_cell_it_is_about(tmp_path: Path) -> None:
    run(tmp_path)
    asked = ask(tmp_path, key=CELL)
    with RunDir.create(tmp_path / "own", "dlrm-bisect", clock.utc_now()) as own:
        assert read_selected_cell(own, trusted=False) is None
        save_selected_cell(own, asked)
        assert read_selected_cell(own, trusted=False) == asked


@pytest.mark.parametrize("verb", ["bisect", "compat"])
def test_one_artifact_is_one_word_and_may_be_given_again(verb: str) -> None:
    parsed = parser().parse_args([verb, "--artifact", "a.pt", "--artifact=b.pt", "--old", "2.1.2"])
    assert parsed.artifacts == ["a.pt", "b.pt"]
    assert parser().parse_args([verb, "--artifacts", "a.pt", "b.pt"]).artifacts == ["a.pt", "b.pt"]
    assert parser().parse_args([verb]).artifacts == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--builds", "3"), "--releases and --builds belong to --over"),
        (("--over", "releases", "--resume", "last"), "repeat the same command"),
        (("--over", "releases", "--new-profile", "fast"), "a search has one profile"),
        (("--over", "releases", "--latency", "quick"), "only slower is not searched for"),
        (("--over", "releases", "--old", "2.6.0", "--new", "2.6.0", "--model", "dlrm"), "both ends are 2.6.0"),
    ],
)
def test_what_does_not_go_together_is_reported_with_what_to_type(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["--project", str(PROJECT), "bisect", *words, "--out", str(tmp_path)]) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert said in error


def test_timing_that_is_asked_for_of_models_that_are_not_timed_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="--latency quick would answer nothing: every model that is selected says timed"
    ):
        make_plan(Project(folder=PROJECT, overrides={**SIDES, "latency": "quick"}, expression="dlrm and not served"))


def test_a_run_with_a_link_in_it_is_searched_by_trust_only(tmp_path: Path) -> None:
    folder = run(tmp_path)
    (folder / "probes").symlink_to(tmp_path)
    with pytest.raises(RunDirError, match=r"probes is a link: .* add --trust"):
        ask(tmp_path, key=CELL)
    assert ask(tmp_path, {"trusted": True}, key=CELL) is not None
