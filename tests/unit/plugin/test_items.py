"""The plugin in a pytest of its own, as a user starts it: items of a finished run, beside the user's tests."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import torchscript_gate_plugin
from harness.core.outcome import Decision, Status
from harness.core.prediction import RollbackAnswer, RollbackReport
from harness.core.report import RunReport
from harness.core.verdict import CellVerdict, Finding, PlantedDefectResult, RowVerdict, Waived
from harness.plugin import fixture, items  # noqa: F401  here, and not once more in each run
from harness.plugin.items import ItemResult, Outcome, decision, row_items
from harness.report.json.report import dump_report
from tests.unit.builders import reports as builders

pytest_plugins = ["pytester"]

NAME = torchscript_gate_plugin.NAME
ROOT = Path(__file__).parents[3]
QUIET = ("-p", "no:hypothesispytest")  # which costs a second each
FINDING = Finding(kind="values", message="output: off by 0.3 of its largest value", where="example call 0 output")
STRICT = """
[tool.pytest.ini_options]
addopts = ["--strict-markers", "--strict-config"]
filterwarnings = ["error"]
xfail_strict = true
"""


def mixed() -> RunReport:
    """Return a run with a cell of every kind."""
    statuses = {
        "good": Status.PASS,
        "bad": Status.FAIL,
        "known": Status.XFAIL,
        "mended": Status.XPASS,
        "open_one": Status.INCONCLUSIVE,
        "other_device": Status.UNSUPPORTED,
        "broken_before": Status.SAME_FAIL,
    }
    rows = []
    for model, status in statuses.items():
        cell = builders.verdict(model, "alone", status, *([] if status is Status.PASS else [FINDING]))
        rows.append(RowVerdict(model=model, status=status, cells=(cell,)))
    report = builders.blocked()
    models = tuple(replace(builders.healthy(model), tags=("ads",) if model == "bad" else ()) for model in statuses)
    return replace(
        report, judgement=replace(report.judgement, rows=tuple(rows)), models=models, rollback=None, explained=()
    )


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A strict project with a test of its own and a finished run."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "80")  # pytest cuts lines there
    pytester.makepyprojecttoml(STRICT)
    pytester.makepyfile(test_team="def test_own(): pass")
    folder = pytester.path / "reports" / "2026-01-01-run"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    (folder / "report.json").write_bytes(dump_report(mixed()))
    return pytester


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*QUIET, *words, plugins=[torchscript_gate_plugin])


def started(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Run pytest in a process of its own: where it matters what is imported there, or who else takes part."""
    return project.runpytest_subprocess("-p", "torchscript_gate_plugin", *QUIET, *words, timeout=120)


def test_without_the_option_nothing_of_the_gate_is_imported_and_nothing_said(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_team="""
        import sys
        def test_own(request):
            assert not [name for name in sys.modules if name.partition(".")[0] in ("harness", "numpy", "msgspec")]
            assert "torchscript_gate_plugin" in sys.modules
        """
    )
    result = started(project, "-W", "error")
    result.assert_outcomes(passed=1)
    assert "torchscript" not in result.stdout.str() + result.stderr.str()


def test_a_package_of_the_project_that_is_called_harness_stays_its_own(project: pytest.Pytester) -> None:
    package = project.mkpydir("harness")
    (package / "mine.py").write_text("ANSWER = 42\n")
    project.makepyfile(
        test_team="""
        import harness.mine
        def test_own(): assert harness.mine.ANSWER == 42
        def test_with_the_fixture(torchscript_compat): pass
        """
    )
    result = started(project)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the package harness in *hides the gate's own*"])


def test_every_cell_is_an_item_beside_the_projects_own_tests(project: pytest.Pytester) -> None:
    result = run(project, "--torchscript-compat=last", "-W", "error", "-rA", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2, failed=4, skipped=2, xfailed=1)  # own, good; bad, mended, open_one, decision
    text = result.stdout.str()
    assert "collected 9 items" in text
    assert "Traceback" not in text and "items.py" not in text.replace("SKIPPED", "")
    result.stdout.fnmatch_lines(
        [
            "*torchscript-compat::bad::alone*",
            "values: output: off by 0.3 of its largest value*",
            "FAIL  bad: load and calls",
            "  rerun     *bad/backward/alone/cpu/default*",
        ]
    )
    result.stdout.fnmatch_lines(["BLOCKED: 4 of 6 models fail*", "*exit code 1*", "*2026-01-01-run/report.html"])
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED*UNSUPPORTED: other_device, load and calls: *",
            "XFAIL torchscript-compat::known::alone - *",
            "FAILED torchscript-compat::bad::alone - Failed: values: output*",
            "FAILED torchscript-compat::mended::alone - *XPASS(strict)*",
        ]
    )
    cases = {
        (case.get("classname"), case.get("name")): case
        for case in ET.parse(project.path / "junit.xml").iter("testcase")
    }
    bad = cases["torchscript-compat.bad", "alone"]
    assert bad.find("failure") is not None
    assert {item.get("name") for item in bad.iter("property")} == {"cell", "rerun"}


@pytest.mark.slow
def test_workers_of_xdist_share_the_one_run(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_team="""
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_own(torchscript_compat, number):
            with pytest.raises(Exception, match="absent.pt") as caught:
                torchscript_compat.check("absent.pt", old="2.1.2", new="2.6.0")
            assert type(caught.value).__name__ == "CannotCheck"
        """
    )
    result = started(project, "--torchscript-compat", "last", "-n", "2", "-W", "error", "test_team.py", NAME)
    result.assert_outcomes(passed=3, failed=4, skipped=2, xfailed=1)
    result.stdout.fnmatch_lines(["BLOCKED: 4 of 6 models fail*", "*2026-01-01-run/report.html"])


def test_names_tags_and_node_ids_select(project: pytest.Pytester) -> None:
    run(project, "--torchscript-compat=last", "-k", "ads").assert_outcomes(failed=1, deselected=8)
    chosen = ("torchscript-compat::good", "torchscript-compat::known::alone")
    run(project, "--torchscript-compat=last", *chosen).assert_outcomes(passed=1, xfailed=1)
    result = run(project, "--torchscript-compat=last", "torchscript-compat::goo")
    result.stdout.fnmatch_lines(["*the run in reports/2026-01-01-run has no torchscript-compat::goo"])
    assert result.ret != 0


def test_a_name_from_a_summary_below_or_above_the_project_can_be_typed_again(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (project.mkdir("below"), project.path.parent):
        monkeypatch.chdir(place)
        words = (f"--rootdir={project.path}", "--torchscript-compat=last", "-q", "-rf")
        output = run(project, *words, "-k", "bad", str(project.path)).stdout.str()
        (name,) = re.findall(r"^FAILED (\S+::bad::alone)", output, re.MULTILINE)
        assert not name.startswith(NAME)
        run(project, *words, name).assert_outcomes(failed=1)


def test_what_failed_last_is_repeated(project: pytest.Pytester) -> None:
    run(project, "--torchscript-compat=last").assert_outcomes(passed=2, failed=4, skipped=2, xfailed=1)
    result = run(project, "--torchscript-compat=last", "--lf", "--runxfail")
    result.assert_outcomes(failed=3, passed=1, deselected=5)  # --runxfail: a mended model is no failure


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--torchscript-compat=nonsense"], "ERROR: --torchscript-compat: nonsense is neither a finished run*"),
        (["--torchscript-compat="], "ERROR: --torchscript-compat: it is empty, as where a variable is not set; name*"),
        (["torchscript-compat::bad::alone"], "ERROR: torchscript-compat::bad::alone*give --torchscript-compat=last*"),
    ],
)
def test_what_names_no_run_is_one_line_and_no_traceback(project: pytest.Pytester, words: list[str], said: str) -> None:
    result = run(project, *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_hostile_names_make_items_and_steer_no_terminal(project: pytest.Pytester) -> None:
    path = project.path / "reports" / "2026-01-01-run" / "report.json"
    path.write_bytes(dump_report(builders.hostile()))
    result = run(project, "--torchscript-compat=last", "-v", "-rA", "--junitxml=junit.xml")
    assert "INTERNALERROR" not in result.stdout.str()
    assert "\x1b" not in result.stdout.str() and "\u202e" not in result.stdout.str()
    assert result.parseoutcomes()["failed"] >= 1
    ET.parse(project.path / "junit.xml")


WAIVED = Waived(
    kinds=("values",),
    owner="ranking",
    reason="retrained in May",
    expires="2027-03-01",
    issue="https://issues/7",
    bound=0.4,
)

MISSED = PlantedDefectResult(name="slow_down", expected="latency", reported=(), caught=False)


def report_of(*cells: CellVerdict, **changes: object) -> RunReport:
    row = RowVerdict(model="net", status=cells[0].status, cells=cells)
    report = builders.upgrade_ok()
    models = (replace(builders.healthy("net"), tags=("ranking",)),)
    return replace(report, models=models, judgement=replace(report.judgement, rows=(row,), **changes))  # type: ignore[arg-type]


def items_of(report: RunReport) -> tuple[ItemResult, ...]:
    return row_items(report, report.judgement.rows[0], directory="reports/R")


def only(status: Status, *findings: Finding, **changes: object) -> ItemResult:
    cell = replace(builders.verdict("net", "alone", status, *findings), **changes)  # type: ignore[arg-type]
    (item,) = items_of(report_of(cell))
    return item


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (Status.PASS, Outcome.PASS),
        (Status.FAIL, Outcome.FAIL),
        (Status.INCONCLUSIVE, Outcome.FAIL),
        (Status.XFAIL, Outcome.XFAIL),
        (Status.XPASS, Outcome.XPASS),
        (Status.SAME_FAIL, Outcome.SKIP),
        (Status.UNSUPPORTED, Outcome.SKIP),
    ],
)
def test_every_status_has_its_outcome(status: Status, outcome: Outcome) -> None:
    assert only(status, *([FINDING] if status is not Status.PASS else [])).outcome is outcome


def test_no_status_is_forgotten_and_only_pass_is_green() -> None:
    green = [status for status in Status if only(status, FINDING).outcome is Outcome.PASS]
    assert green == [Status.PASS]


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE])
def test_what_does_not_decide_the_run_is_skipped_with_its_reason_and_not_green(status: Status) -> None:
    item = only(status, FINDING, decides=False)
    assert item.outcome is Outcome.SKIP
    word = "undecided" if status is Status.INCONCLUSIVE else status.value
    assert item.reason.startswith(f"{word}: net, load and calls: values: output: off by 0.3")


def test_a_red_item_says_model_stage_what_and_how_to_see_it_again() -> None:
    item = only(Status.FAIL, FINDING)
    lines = item.text.splitlines()
    assert lines[0].startswith("values: output: off by 0.3")  # all that a summary has room for
    assert lines[1] == "FAIL  net: load and calls"
    assert lines[-1].split()[0] in ("rerun", "bisect")
    assert f"rerun     {item.rerun}" in item.text and item.cell in item.rerun


def test_each_red_item_tells_its_whole_story() -> None:
    report = builders.blocked()
    items = [item for row in report.judgement.rows for item in row_items(report, row, directory="reports/R")]
    red = [item for item in items if item.outcome is Outcome.FAIL]
    assert len(red) >= 4
    assert not [item.text for item in red if "above" in item.text]  # each of them is read alone


def test_a_waiver_is_reported_with_owner_expiry_reason_and_issue() -> None:
    item = only(Status.XFAIL, FINDING, waived=(WAIVED,))
    assert item.reason == "waived: values up to 0.4 by ranking until 2027-03-01: retrained in May (https://issues/7)"
    assert "off by 0.3" in item.text  # what --runxfail shows


def test_an_old_report_without_the_waiver_says_what_is_waived() -> None:
    assert "off by 0.3" in only(Status.XFAIL, FINDING).reason


@pytest.mark.parametrize("changes", [{"vacuous": "the same torch on both sides"}, {"planted_defects": (MISSED,)}])
def test_a_pass_of_a_run_that_shows_nothing_is_not_green(changes: dict[str, object]) -> None:
    (item,) = items_of(report_of(builders.verdict("net", "alone"), **changes))
    assert item.outcome is Outcome.SKIP
    assert "shows nothing" in item.reason


@pytest.mark.parametrize(
    ("answer", "gates", "outcome"),
    [
        (RollbackAnswer.YES, False, Outcome.PASS),
        (RollbackAnswer.YES, True, Outcome.PASS),
        (RollbackAnswer.NO, False, Outcome.SKIP),
        (RollbackAnswer.NO, True, Outcome.FAIL),
        (RollbackAnswer.UNKNOWN, True, Outcome.FAIL),
    ],
)
def test_the_rollback_is_red_only_where_policy_lets_it_decide(
    answer: RollbackAnswer, gates: bool, outcome: Outcome
) -> None:
    way = builders.model_rollback(
        "net", answer, "" if answer is RollbackAnswer.YES else "aten::new_one: torch 2.1.2 has it not"
    )
    back = RollbackReport(answer=answer, reason="", models=(way,), gates=gates)
    items = items_of(replace(report_of(builders.verdict("net", "alone")), rollback=back))
    assert [(item.name, item.outcome) for item in items] == [("alone", Outcome.PASS), ("rollback", outcome)]
    assert answer is RollbackAnswer.YES or "aten::new_one" in items[1].text + items[1].reason


@pytest.mark.parametrize("made", [builders.upgrade_ok, builders.golden])
def test_the_decision_is_green_where_the_exit_code_is_0(made: object) -> None:
    report = made()  # type: ignore[operator]
    assert report.judgement.exit_code == 0
    assert decision(report, directory="reports/R").outcome is Outcome.PASS


@pytest.mark.parametrize(
    "made",
    [builders.blocked, builders.mitigated, builders.inconclusive, builders.nothing_tested],
    ids=lambda made: made.__name__,
)
def test_every_other_decision_fails_and_says_why(made: object) -> None:
    report = made()  # type: ignore[operator]
    item = decision(report, directory="reports/R")
    assert item.outcome is Outcome.FAIL
    assert item.text.startswith(report.judgement.decision.value)
    assert "reports/R/report.html" in item.text and f"exit code {report.judgement.exit_code}" in item.text


def test_a_mitigation_that_is_not_accepted_is_no_green_decision() -> None:
    assert builders.mitigated().judgement.decision is Decision.OK_WITH_MITIGATION
    assert decision(builders.mitigated(), directory="R").outcome is Outcome.FAIL


def test_hostile_text_steers_no_terminal() -> None:
    report = builders.hostile()
    for row in report.judgement.rows:
        for item in row_items(report, row, directory="reports/\x1b[2J"):
            for text in (item.name, item.reason, item.cell, item.rerun, *item.text.splitlines()):
                assert text.isprintable() or not text, text
