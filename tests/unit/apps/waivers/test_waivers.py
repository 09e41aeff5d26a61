"""``waivers``: a red cell is waived, listed and pruned, and everything else is refused with a word on what to do."""

import datetime
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.verdict.waivers.apply import Ran
from harness.cli import main
from harness.apps.waivers import waivers
from harness.apps.waivers.waivers import ToWaive
from harness.project import Project
from harness.verdict.waivers.apply import apply_waivers
from harness.verdict.waivers.entries import NEW_FILE, parse_waivers, with_waivers
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Finding, RowVerdict, Ruled, WaiverState
from harness.core.errors import ConfigError, SelectionError
from harness.report.json.report import dump_report
from harness.machine import clock
from tests.unit.builders.verdicts import waiver
from tests.unit.builders.reports import HOSTILE_NAMES, upgrade_ok, verdict

OFF = Finding(kind="values", message="off by 0.1", size=0.0998)
RED, SLOW, GREEN, HANGS = (
    f"{name}/{where}"
    for name, where in (("ranker", "alone"), ("ranker", "latency"), ("fine", "alone"), ("stuck", "concurrent"))
)
WHY: dict[str, Any] = {"owner": "ann", "reason": "known"}


def report() -> RunReport:
    cells = (
        verdict("ranker", "alone", Status.FAIL, OFF),
        verdict("ranker", "latency", Status.INCONCLUSIVE, Finding(kind="latency_undecided", message="open", size=1.2)),
        verdict("fine", "alone"),
        verdict("stuck", "concurrent", Status.FAIL, Finding(kind="hang", message="hangs")),
    )
    return of(*cells)


def of(*cells: CellVerdict) -> RunReport:
    whole = upgrade_ok()
    names = dict.fromkeys(cell.model for cell in cells)
    rows = [
        RowVerdict(model=name, status=Status.FAIL, cells=tuple(c for c in cells if c.model == name)) for name in names
    ]
    return replace(whole, judgement=replace(whole.judgement, rows=tuple(rows)))


@pytest.fixture
def options(tmp_path: Path) -> Project:
    """Return a project without waivers and with the run ``red``."""
    keep(tmp_path, report())
    return Project(folder=tmp_path)


def keep(project: Path, told: RunReport) -> None:
    folder = project / "reports" / "red"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text("{}")
    (folder / "report.json").write_bytes(dump_report(told))


def text(options: Project) -> str:
    return options.waivers_path.read_text(encoding="utf-8")


def test_a_red_cell_is_waived_as_it_was_seen(options: Project) -> None:
    told = waivers.add(options, "red", ToWaive(name=RED), **WHY)
    (use,) = told.uses
    assert (use.waiver.kind, use.waiver.bound, use.waiver.scenario) == ("values", 0.1, "alone")
    assert (use.waiver.old, use.waiver.new) == ("~=2.1.2", "~=2.6.0")
    assert use.waiver.expires == clock.today() + datetime.timedelta(days=90)
    assert (use.state, use.cells, use.broad) == (WaiverState.USED, (RED,), ())
    assert text(options).startswith(NEW_FILE)
    assert parse_waivers(text(options), file="f") == (use.waiver,)


def test_what_people_wrote_in_the_file_stays(options: Project) -> None:
    path = options.waivers_path
    path.parent.mkdir()
    before = "# ours\n\n" + with_waivers("", [waiver()], file="f") + "# and this\n"
    path.write_text(before)
    waivers.add(options, "red", ToWaive(name=RED), **WHY)
    assert text(options).startswith(before)
    assert [item.model for item in parse_waivers(text(options), file="f")] == ["m", "ranker"]


@pytest.mark.parametrize(
    ("cell", "error", "said"),
    [
        (GREEN, ConfigError, "passes: there is nothing to waive"),
        (SLOW, ConfigError, "was not decided"),
        ("nobody/alone", SelectionError, f"its red cells: {RED}, {HANGS}"),
    ],
)
def test_what_is_not_red_is_refused_and_nothing_written(
    options: Project, cell: str, error: type[ConfigError], said: str
) -> None:
    with pytest.raises(error) as caught:
        waivers.add(options, "red", ToWaive(name=cell), **WHY)
    assert said in str(caught.value)
    assert not options.waivers_path.exists()


def test_a_cell_that_the_file_covers_since_is_refused(options: Project) -> None:
    waivers.add(options, "red", ToWaive(name=RED), **WHY)
    before = text(options)
    with pytest.raises(ConfigError, match=r"waivers\.toml already, by ann"):
        waivers.add(options, "red", ToWaive(name=RED), owner="bob", reason="again")
    assert text(options) == before


def test_a_cell_that_is_over_an_earlier_bound_gets_a_larger_one(options: Project) -> None:
    waivers.add(options, "red", ToWaive(name=RED), **WHY)
    keep(options.folder, of(verdict("ranker", "alone", Status.FAIL, replace(OFF, size=0.3))))
    waivers.add(options, "red", ToWaive(name=RED), owner="bob", reason="worse now")
    assert [item.bound for item in parse_waivers(text(options), file="f")] == [0.1, 0.3]


def test_a_cell_whose_waiver_has_ended_since_the_run_is_waived_anew(options: Project) -> None:
    red = verdict("ranker", "alone", Status.FAIL, OFF)
    earlier = waiver(model="ranker", expires=datetime.date(9999, 1, 1))
    waived = apply_waivers(red, (earlier,), Ran("", ""), clock.today())
    assert waived.status is Status.XFAIL
    keep(options.folder, of(waived))
    told = waivers.add(options, "red", ToWaive(name=RED), **WHY)
    assert [(use.waiver.kind, use.state) for use in told.uses] == [("values", WaiverState.USED)]


def test_only_what_is_open_still_is_added(options: Project) -> None:
    waivers.add(options, "red", ToWaive(name=RED), **WHY)
    keep(options.folder, of(verdict("ranker", "alone", Status.FAIL, OFF, Finding(kind="dtype", message="float64"))))
    told = waivers.add(options, "red", ToWaive(name=RED), **WHY)
    assert [use.waiver.kind for use in told.uses] == ["dtype"]


def test_a_broken_file_is_named_and_kept(options: Project) -> None:
    path = options.waivers_path
    path.parent.mkdir()
    path.write_text("[[waiver]\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        waivers.add(options, "red", ToWaive(name=RED), **WHY)
    assert path.read_text() == "[[waiver]\n"


def test_two_adds_at_once_lose_none(options: Project) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda cell: waivers.add(options, "red", ToWaive(name=cell), **WHY), [RED, HANGS]))
    assert {item.kind for item in parse_waivers(text(options), file="f")} == {"values", "hang"}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_models_are_waived_as_they_are_named(tmp_path: Path, name: str) -> None:
    keep(tmp_path, of(verdict(name, "alone", Status.FAIL, replace(OFF, message=name))))
    written = name.replace("\udcff", "\\udcff")  # report.json holds no half character
    cell = f"{written}/alone"
    told = waivers.add(
        Project(folder=tmp_path), "red", ToWaive(name=cell), owner=name.replace("\udcff", ""), reason="r"
    )
    assert [item.model for item in parse_waivers(text(Project(folder=tmp_path)), file="f")] == [written]
    assert told.uses[0].state is WaiverState.USED


def test_waivers_are_listed_with_what_they_did(options: Project) -> None:
    assert waivers.known(options).uses == ()
    waivers.add(options, "red", ToWaive(name=RED), **WHY)
    assert [use.state for use in waivers.known(options).uses] == [WaiverState.NOT_JUDGED]
    assert [use.state for use in waivers.known(options, "red").uses] == [WaiverState.USED]


def test_what_is_over_or_not_needed_is_pruned(options: Project) -> None:
    path = options.waivers_path
    path.parent.mkdir()
    live = waiver(model="fine", expires=datetime.date(9999, 1, 1))
    over = waiver(expires=datetime.date(2020, 1, 1))
    path.write_text(with_waivers("# ours\n", [over, live], file="f"))
    before = path.read_text()
    assert [use.waiver for use in waivers.prune(options, write=False).uses] == [over]
    assert [use.waiver for use in waivers.prune(options, "red", write=False).uses] == [over, live]
    assert path.read_text() == before
    waivers.prune(options, write=True)
    assert parse_waivers(path.read_text(), file="f") == (live,)
    waivers.prune(options, "red", write=True)
    assert path.read_text() == "# ours\n"
    assert waivers.prune(options, "red", write=True).uses == ()


# the command line


def typed(options: Project, *words: str) -> int:
    return main(["--project", str(options.folder), "waivers", *words])


ADD = ("add", "red", RED, "--owner", "ann", "--reason", "known")


def test_add_prints_what_it_wrote_and_how_to_judge_again(options: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(options, *ADD, "--issue", "https://example.org/1", "--expires", "9999-01-01", "--bound", "0.2") == 0
    said = capsys.readouterr().out
    assert "wrote 1 waiver to" in said
    assert f"what they did in {options.folder}/reports/red" in " ".join(said.split())
    assert "up to 0.2 of the largest value; torch ~=2.1.2 to ~=2.6.0" in " ".join(said.split())
    assert "https://example.org/1" in said
    assert "broader than needed" in said
    assert f"gate {shlex.quote(f'{options.folder}/reports/red')}" in said


def test_list_and_prune_print_what_there_is(options: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(options, "list") == typed(options, "prune") == 0
    assert capsys.readouterr().out.split("\n")[0].startswith("no waivers in ")
    typed(options, *ADD)
    keep(options.folder, of(verdict("ranker", "alone")))
    capsys.readouterr()
    assert typed(options, "list", "red") == 0
    assert "not needed" in capsys.readouterr().out
    assert typed(options, "prune", "red") == 0
    assert "write with --yes" in capsys.readouterr().out
    assert typed(options, "prune", "red", "--yes") == 0
    assert "took 1 waiver out of" in capsys.readouterr().out
    assert typed(options, "prune", "last") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("nothing to take out of ") and said.endswith(f"; {options.folder}/reports/red was read")
    assert text(options) == NEW_FILE


@pytest.mark.parametrize(
    "words",
    [
        (*ADD, "--expires", "soon"),
        (*ADD, "--expires", "2020-01-01"),
        (*ADD, "--bound", "big"),
        (*ADD, "--bound", "nan"),
        ("add", "red", RED, "--owner", "", "--reason", "r"),
        ("add", "red", GREEN, "--owner", "a", "--reason", "r"),
        ("add", "none", RED, "--owner", "a", "--reason", "r"),
        ("list", "none"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    options: Project, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(options, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert not options.waivers_path.exists()


@pytest.mark.parametrize("missing", ["--owner", "--reason"])
def test_owner_and_reason_are_required(options: Project, missing: str) -> None:
    words = list(ADD)
    del words[words.index(missing) : words.index(missing) + 2]
    with pytest.raises(SystemExit) as left:
        typed(options, *words)
    assert left.value.code == 2


def many() -> RunReport:
    """Return a run in which two models are slower, one of them differs in two scenarios, and one latency is open."""
    slow = [
        verdict(name, "latency", Status.FAIL, Finding(kind="latency", message="steady latency +9 %", size=size))
        for name, size in (("ranker", 1.2), ("tagger", 1.4))
    ]
    off = [
        verdict("ranker", where, Status.FAIL, Finding(kind="values", message="off", size=size))
        for where, size in (("alone", 0.01), ("concurrent", 0.03))
    ]
    open_ = verdict("other", "latency", Status.INCONCLUSIVE, Finding(kind="latency_undecided", message="?", size=1.1))
    return of(*slow[:1], *off, slow[1], open_)


def test_a_cause_is_waived_with_a_waiver_and_a_bound_per_model(options: Project) -> None:
    keep(options.folder, many())
    told = waivers.add(options, "red", ToWaive(cause="slower"), **WHY)
    made = [(use.waiver.model, use.waiver.kind, use.waiver.scenario, use.waiver.bound) for use in told.uses]
    assert made == [("ranker", "latency", "latency", 1.23), ("tagger", "latency", "latency", 1.44)]


def test_a_model_that_fails_in_two_scenarios_gets_one_waiver_per_kind_with_the_larger_bound(options: Project) -> None:
    keep(options.folder, many())
    told = waivers.add(options, "red", ToWaive(name="ranker"), **WHY)
    made = [(use.waiver.kind, use.waiver.scenario, use.waiver.bound) for use in told.uses]
    assert made == [("latency", "latency", 1.23), ("values", "", 0.03)]
    assert all(use.state is WaiverState.USED for use in told.uses)


def test_models_are_waived_by_an_expression_and_nothing_twice(options: Project) -> None:
    keep(options.folder, many())
    waivers.add(options, "red", ToWaive(cause="slower"), **WHY)
    told = waivers.add(options, "red", ToWaive(models="ranker or tagger"), **WHY)
    assert [(use.waiver.model, use.waiver.kind) for use in told.uses] == [("ranker", "values")]
    with pytest.raises(ConfigError, match="and 3 more are waived in .*, by ann"):
        waivers.add(options, "red", ToWaive(models="ranker or tagger"), **WHY)


@pytest.mark.parametrize(
    ("which", "message", "hint"),
    [
        (ToWaive(cause="slowly"), "red has no cause slowly", "slower (2 models)"),
        (ToWaive(cause="undecided-latency"), "nothing of undecided-latency fails in red", "its red cells: ranker/"),
        (ToWaive(models="nobody"), "nothing of nobody fails in red", "its red cells: ranker/"),
        (ToWaive(name="nobody"), "red has no cell and no model nobody", "its red cells: ranker/"),
    ],
)
def test_what_names_nothing_that_fails_is_refused(options: Project, which: ToWaive, message: str, hint: str) -> None:
    keep(options.folder, many())
    with pytest.raises(SelectionError, match=message) as refusal:
        waivers.add(options, "red", which, **WHY)
    assert hint in refusal.value.hint
    assert not options.waivers_path.exists()


def test_a_cause_that_only_the_policy_of_today_sees_is_waived(options: Project) -> None:
    told = Ruled(kind="values", was="fail", now="warn", by="severity.values of policy.toml")
    passed = replace(verdict("ranker", "alone", Status.PASS, OFF), ruled=(told,), judged=Status.FAIL)
    keep(options.folder, of(passed))
    told_now = waivers.add(options, "red", ToWaive(cause="values-ranker"), **WHY)
    assert [(use.waiver.model, use.waiver.kind, use.waiver.bound) for use in told_now.uses] == [
        ("ranker", "values", 0.1)
    ]


def typed_elsewhere(where: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    where.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(where)
    return main(["waivers", *words])


def test_a_waiver_goes_into_the_project_of_its_run_wherever_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    keep(project, report())
    run = str(project / "reports" / "red")
    assert typed_elsewhere(elsewhere, monkeypatch, "add", run, RED, "--owner", "ann", "--reason", "known") == 0
    assert list(elsewhere.iterdir()) == []
    assert "ranker" in (project / "golden" / "waivers.toml").read_text()
    (again,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("judge the run again: ")]
    assert shlex.split(again)[-4:] == ["--project", str(project), "gate", run]
    assert typed_elsewhere(elsewhere, monkeypatch, "list", run) == 0
    assert "values of ranker" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed_in", "configured", "run", "gets"),
    [
        (".", ".", ".torchscript-gate/reports", "."),  # fetched from CI into a checkout
        ("sub", ".", ".torchscript-gate/reports", "."),
        (".", "sub", "sub/reports", "sub"),  # of a project in a repository of several
        (".", "", ".torchscript-gate/reports", "."),
        ("sub", "", "other/reports", "other"),
        ("sub", "", "downloads", "sub"),  # of no project that lies here
    ],
)
def test_a_run_belongs_to_the_project_around_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed_in: str,
    configured: str,
    run: str,
    gets: str,
) -> None:
    keep(tmp_path / "kept", report())
    for folder in (typed_in, run, gets):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "kept" / "reports" / "red").rename(tmp_path / run / "red")
    if configured:
        (tmp_path / configured / "pyproject.toml").write_text("[tool.compat]\nold = '2.1.2'\n")
    words = ("add", str(tmp_path / run / "red"), RED, "--owner", "ann", "--reason", "known")
    assert typed_elsewhere(tmp_path / typed_in, monkeypatch, *words) == 0
    assert [path.parents[1] for path in tmp_path.rglob("waivers.toml")] == [(tmp_path / gets).resolve()]


def test_a_project_that_is_named_gets_the_waiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path / "theirs", report())
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ("waivers", "add", "theirs/reports/red", RED, "--owner", "ann", "--reason", "known")
    assert main(["--project", "mine", *words]) == 0
    assert [path.parents[1].name for path in tmp_path.rglob("waivers.toml")] == ["mine"]


@pytest.mark.parametrize(
    ("lies_in", "policy"),
    [("project", "{tmp_path}/project/policy.toml"), ("elsewhere", "policy.toml"), ("", "policy.toml")],
)
def test_the_printed_gate_has_the_policy_of_the_run_wherever_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lies_in: str, policy: str
) -> None:
    project = tmp_path / "project"
    keep(project, replace(report(), policy=replace(report().policy, source="policy.toml")))
    (tmp_path / "elsewhere").mkdir()
    if lies_in:
        (tmp_path / lies_in / "policy.toml").write_text("")
    run = str(project / "reports" / "red")
    words = ["add", run, RED, "--owner", "ann", "--reason", "known"]
    assert typed_elsewhere(tmp_path / "elsewhere", monkeypatch, *words) == 0
    (again,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("judge the run again: ")]
    assert shlex.split(again)[-4:] == ["gate", run, "--policy", policy.format(tmp_path=tmp_path)]
