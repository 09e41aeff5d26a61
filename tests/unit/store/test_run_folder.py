"""A run's folder: created, locked, resumed, refused."""

import datetime
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec
from harness.core.plan import Deadlines, Plan, Settings
from harness.core.errors import ExitCode, GateError, RunDirError, SelectionError
from harness.store import codec
from harness.store.run_folder import PLAN, REPORT, RunDir, StoredBaseline, find_run
from harness.machine.files import remove
from tests.unit.builders.requests import declaration, write_artifact

NOW = datetime.datetime(2026, 11, 21, 2, 15, 7, tzinfo=datetime.UTC)
SPEC = EnvSpec(name="torch 2.6.0", release="2.6.0")
THE_PLAN = Plan(
    settings=Settings(old="2.1.2", new="2.6.0"),
    old=None,
    new=SPEC,
    device="cpu",
    direction="backward",
    models=(declaration(),),
    planted_defects=(),
    groups={"misc": ("m",)},
)


def finished(reports: Path, title: str, age_s: int = 0) -> Path:
    """Create a run with a plan, closed, started ``age_s`` seconds before ``NOW``."""
    run = RunDir.create(reports, title, NOW - datetime.timedelta(seconds=age_s))
    run.save_plan(THE_PLAN)
    run.close()
    return run.path


def test_new_run_is_named_after_time_and_title(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "reports" / "deep", "2.1.2-to-2.6.0", NOW)
    assert run.path == tmp_path / "reports" / "deep" / "2026-11-21T02-15-07-2.1.2-to-2.6.0"
    assert run.path.is_dir()
    assert run.name == run.path.name
    assert run.probes == run.path / "probes"
    run.close()


@pytest.mark.parametrize("set_back_s", [1, 3600, 86400 * 400])
def test_last_is_the_run_that_began_last_also_where_the_clock_was_set_back(tmp_path: Path, set_back_s: int) -> None:
    (tmp_path / "matrix").mkdir()
    (tmp_path / "9999-99-99T99-99-99").mkdir()
    earlier = finished(tmp_path, "t")
    later = finished(tmp_path, "t", age_s=set_back_s)
    assert earlier.name == "2026-11-21T02-15-07-t"
    assert later.name == "2026-11-21T02-15-08-t"
    assert find_run(tmp_path, "last") == later


@pytest.mark.parametrize("name", ["9999-12-31T23-59-59-t", "2026-99-99T99-99-99-t"])
def test_folder_that_is_named_after_no_time_does_not_count(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert finished(tmp_path, "t").name == "2026-11-21T02-15-07-t"


def test_what_a_killed_process_left_half_written_is_removed_when_its_run_goes_on(tmp_path: Path) -> None:
    run = finished(tmp_path, "t")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    half = run / "probes" / f".result.json.{ended.pid}.140001.part"
    being_written = run / f".report.json.{os.getpid()}.140001.part"
    of_a_model = run / "probes" / ".download.part"
    half.parent.mkdir()
    for path in (half, being_written, of_a_model):
        path.touch()
    RunDir.open(tmp_path, "last").close()
    assert [path.exists() for path in (half, being_written, of_a_model)] == [False, True, True]


def test_runs_of_the_same_second_get_folders_of_their_own(tmp_path: Path) -> None:
    runs = [RunDir.create(tmp_path, "t", NOW) for _ in range(3)]
    assert [run.name.removeprefix("2026-11-21T02-15-07-") for run in runs] == ["t", "t-1", "t-2"]
    for run in runs:
        run.close()


def test_hundred_runs_of_one_second_are_refused(tmp_path: Path) -> None:
    for index in range(100):
        (tmp_path / ("2026-11-21T02-15-07-t" + (f"-{index}" if index else ""))).mkdir()
    with pytest.raises(RunDirError, match="a hundred runs of this second"):
        RunDir.create(tmp_path, "t", NOW)


def test_plan_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "t", NOW)
    run.save_plan(THE_PLAN)
    assert run.load_plan() == THE_PLAN
    run.close()


def test_plan_of_a_later_gate_is_refused(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "t", NOW)
    run.save_plan(THE_PLAN)
    run.close()
    path = run.path / PLAN
    path.write_text(path.read_text().replace('"version":2', '"version":3'))
    with pytest.raises(RunDirError, match=r"plan.json is of another version of the gate \(3\)"):
        run.load_plan()


def test_baselines_are_read_back_as_they_were_stored_also_from_a_copied_run(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "t", NOW)
    given, own = write_artifact(tmp_path / "a"), write_artifact(run.probes / "1")
    kept = {
        name: StoredBaseline(artifact=one, directory=str(run.probes / name)) for name, one in (("a", given), ("1", own))
    }
    run.save_old_answers(kept)
    assert run.baselines() == kept
    run.close()
    there = RunDir(run.path.rename(tmp_path / "elsewhere")).baselines()
    assert there["a"].artifact.path == given.path
    assert Path(there["1"].artifact.path).is_file()
    assert Path(there["1"].artifact.path).is_relative_to(tmp_path / "elsewhere")


def test_missing_and_damaged_plans_are_run_dir_errors(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    with pytest.raises(RunDirError, match="cannot be read"):
        run.load_plan()
    (tmp_path / PLAN).write_text("{}")
    with pytest.raises(RunDirError, match="damaged"):
        run.load_plan()


def test_run_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "t", NOW)
    run.save_plan(THE_PLAN)
    with pytest.raises(RunDirError, match="in use by another process") as caught:
        RunDir.open(tmp_path, run.name)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    run.close()
    RunDir.open(tmp_path, run.name).close()


def test_close_may_be_repeated(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "t", NOW)
    run.close()
    run.close()
    assert run.path.is_dir()


def test_file_in_place_of_the_reports_folder_is_refused(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.write_text("a file")
    with pytest.raises(RunDirError, match="reports cannot be written") as caught:
        RunDir.create(reports, "t", NOW)
    assert "--out" in caught.value.hint
    with pytest.raises(RunDirError, match="cannot be written"):
        RunDir.create(reports / "below", "t", NOW)


def test_lock_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = finished(tmp_path, "t")
    (path / ".lock").unlink()
    (path / ".lock").mkdir()
    with pytest.raises(RunDirError, match="cannot be written: Is a directory"):
        RunDir.open(tmp_path, path.name)


def test_files_are_written_below_the_run(tmp_path: Path) -> None:
    path = RunDir(tmp_path).write("a/b.json", b"x")
    assert path == tmp_path / "a" / "b.json"
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("name", ["taken/b.json", "taken/deep/b.json"])
def test_file_in_place_of_a_folder_of_the_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RunDirError, match="cannot be written"):
        RunDir(tmp_path).write(name, b"x")


def test_run_is_found_by_path_by_name_and_as_the_last(tmp_path: Path) -> None:
    older, newer = finished(tmp_path, "b", age_s=500), finished(tmp_path, "a", age_s=10)
    assert find_run(tmp_path, "last") == newer
    assert find_run(tmp_path, older.name) == older
    assert find_run(tmp_path / "elsewhere", str(older)) == older


def test_folder_without_a_plan_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(SelectionError, match="there is no run 'notes'") as caught:
        find_run(tmp_path, "notes")
    assert "none yet" in caught.value.message and "--out" in caught.value.hint


@pytest.mark.parametrize("reports", ["absent", "empty"])
def test_last_of_no_runs_is_refused(tmp_path: Path, reports: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SelectionError, match="there is no run 'last'"):
        find_run(tmp_path / reports, "last")


def test_unknown_run_names_the_three_newest(tmp_path: Path) -> None:
    names = [finished(tmp_path, title, age_s=age).name for title, age in (("d", 4), ("c", 3), ("b", 2), ("a", 1))]
    with pytest.raises(SelectionError) as caught:
        RunDir.open(tmp_path, "typo")
    assert caught.value.hint.endswith(": " + ", ".join(names[1:]))


def test_run_that_ended_before_its_first_process_is_discarded(tmp_path: Path) -> None:
    path = finished(tmp_path, "t")
    RunDir(path).discard_if_empty()
    assert not path.exists()


def test_run_that_started_a_process_is_kept_with_what_it_logged(tmp_path: Path) -> None:
    path = finished(tmp_path, "t")
    log = path / "probes" / "zygote-old-1" / "stderr"
    log.parent.mkdir(parents=True)
    log.write_text("ImportError: libcudart.so.12\n")
    RunDir(path).discard_if_empty()
    assert log.read_text().startswith("ImportError")


def test_run_with_a_result_is_kept(tmp_path: Path) -> None:
    path = finished(tmp_path, "t")
    (path / "probes" / "k").mkdir(parents=True)
    (path / "probes" / "k" / "result.json").write_text("{}")
    RunDir(path).discard_if_empty()
    assert find_run(tmp_path, path.name) == path


def test_a_shared_folder_is_made_once_kept_and_used_by_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "matrix"
    with RunDir.shared(folder) as store:
        store.write("matrix.json", b"{}")
        with pytest.raises(RunDirError, match="is in use by another process"):
            RunDir.shared(folder)
    with RunDir.shared(folder) as store:
        assert (store.path / "matrix.json").read_bytes() == b"{}"


def test_a_shared_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="cannot be written"):
        RunDir.shared(tmp_path / "file" / "matrix")


def test_last_with_a_report_is_not_the_run_that_ended_before_it(tmp_path: Path) -> None:
    for name, files in (("2026-01", (PLAN, REPORT)), ("2026-02", (PLAN,))):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("{}")
    assert find_run(tmp_path, "last").name == "2026-02"
    assert find_run(tmp_path, "last", with_report=True).name == "2026-01"


def test_a_run_knows_its_command_also_where_two_began_in_one_second(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with RunDir.create(tmp_path, "dlrm-bisect", NOW) as made:
            names.append(made.name)
            assert made.is_of("bisect") and not made.is_of("mitigate")
            made.save_plan(THE_PLAN)
    assert names[1] == f"{names[0]}-1"


PLANTED_IN = (
    ".lock",
    "plan.json",
    "report.json",
    "baselines.json",
    "probes",
    "probes/k",
    "probes/k/result.json",
    "given",
    "given/m-0123.pt",
    "reruns",
)
LEADING_TO = ("file", "folder", "missing", "itself")


@pytest.mark.parametrize("where", PLANTED_IN)
@pytest.mark.parametrize("what", LEADING_TO)
def test_a_run_with_a_link_in_it_is_not_gone_on_with_and_nothing_outside_changes(
    tmp_path: Path, where: str, what: str
) -> None:
    run = finished(tmp_path, "t")
    for name in ("probes/k/result.json", "given/m-0123.pt"):
        RunDir(run).write(name, b"{}")
    outside = tmp_path / "outside"
    RunDir(outside).write("folder/a", b"kept")
    RunDir(outside).write("file", b"kept")
    link = run / where
    if os.path.lexists(link):
        remove(link)
    link.symlink_to(link if what == "itself" else outside / what)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    refusal = f"{re.escape(str(link))} is a link: .*add --trust" if where != "plan.json" or what == "file" else "no run"
    with pytest.raises(GateError, match=refusal):
        RunDir.open(tmp_path, run.name)
    if where == ".lock":
        with pytest.raises(RunDirError, match="cannot be written: Too many levels"):
            RunDir.open(tmp_path, run.name, trusted=True)
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


def test_results_of_many_runs_are_not_added_to_where_a_link_is_among_them(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    with RunDir.shared(tmp_path / "store") as store:
        store.write("probes/k/result.json", b"{}")
    RunDir.shared(tmp_path / "store").close()
    (tmp_path / "store" / "probes" / "other").symlink_to(tmp_path / "outside")
    with pytest.raises(RunDirError, match=r"probes/other is a link: .*with --out"):
        RunDir.shared(tmp_path / "store")


def test_a_run_that_is_a_link_is_not_gone_on_with(tmp_path: Path) -> None:
    run = finished(tmp_path / "elsewhere", "t")
    link = tmp_path / "reports" / run.name
    link.parent.mkdir()
    link.symlink_to(run)
    for name in ("last", run.name, str(link)):
        with pytest.raises(RunDirError, match=f"{re.escape(str(link))} is a link: .*add --trust"):
            RunDir.open(link.parent, name)


def test_a_run_of_another_user_is_gone_on_with_by_trust_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished(tmp_path, "t")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RunDirError, match=rf"{run} belongs to another user \({os.getuid()}\): .*; if you know who"):
        RunDir.open(tmp_path, run.name)
    RunDir.open(tmp_path, run.name, trusted=True).close()


def test_folder_of_a_run_that_was_killed_before_it_had_a_plan_is_removed_by_the_next_one(tmp_path: Path) -> None:
    def begun(title: str, *left: str) -> Path:
        RunDir.create(tmp_path, title, NOW).close()
        (path,) = tmp_path.glob(f"*-{title}")
        for name in left:
            (path / name).touch()
        return path

    empty, other = begun("a", ".plan.json.4194305.1.part"), begun("b", "kept")
    with RunDir.create(tmp_path, "c", NOW) as alive:
        RunDir.create(tmp_path, "d", NOW).close()
        assert (empty.exists(), other.exists(), alive.path.exists()) == (False, True, True)


def test_git_sees_no_run_and_no_shared_results_of_a_folder_that_is_made(tmp_path: Path) -> None:
    finished(tmp_path / "reports", "t")
    RunDir.shared(tmp_path / "other" / "matrix").close()
    for folder in ("reports", "other"):
        assert (tmp_path / folder / ".gitignore").read_text().splitlines()[-1] == "*"
    assert find_run(tmp_path / "reports", "last").parent == tmp_path / "reports"


def test_a_folder_of_runs_that_is_there_is_its_owners(tmp_path: Path) -> None:
    finished(tmp_path, "t")
    assert not (tmp_path / ".gitignore").exists()
