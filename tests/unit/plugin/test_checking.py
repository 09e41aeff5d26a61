"""What the fixture asks of ``compat``, and how a test ends by what that answers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.run.files import Finished
from harness.run.options import Options, settings_of
from harness.domain.outcome import Decision, Status
from harness.domain.report import RunReport
from harness.domain.verdict import Finding, RowVerdict, Waived
from harness.errors import EnvironmentUnavailable
from harness.plugin import fixture
from harness.plugin.fixture import CannotCheck, Checker
from harness.system.progress import Progress
from tests.unit.builders import reports as builders

FINDING = Finding(kind="values", message="output: off by 0.3 of its largest value")
WAIVED = Waived(kinds=("values",), owner="ads", reason="retrained in May", expires="2027-03-01")


def report_of(status: Status, decision: Decision, code: int) -> RunReport:
    cell = builders.verdict("net", "alone", status, *([] if status is Status.PASS else [FINDING]))
    cell = replace(cell, waived=(WAIVED,) if status is Status.XFAIL else ())
    report = builders.upgrade_ok()
    row = RowVerdict(model="net", status=status, cells=(cell,))
    judgement = replace(report.judgement, rows=(row,), decision=decision, exit_code=code, reason="because")
    return replace(report, models=(builders.healthy("net"),), judgement=judgement)


@pytest.fixture
def asked() -> list[Options]:
    """What ``compat`` was asked."""
    return []


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Options]) -> Callable[..., Path]:
    """One check, whose run ends with the report that is given first."""
    kept = tmp_path / "kept"
    kept.mkdir()
    checker = Checker(kept, ["--jobs", "2"], project=tmp_path, say=False)

    def checked(report: RunReport, **arguments: object) -> Path:
        def compat(options: Options, progress: Progress) -> Finished:
            asked.append(options)
            return Finished(report=report, folder=options.reports / "run")

        monkeypatch.setattr(fixture, "compat", compat)
        return checker.check(arguments.pop("artifact", "net.pt"), arguments.pop("inputs", None), **arguments)  # type: ignore[arg-type]

    return checked


GREEN = report_of(Status.PASS, Decision.UPGRADE_OK, 0)


def test_a_green_run_returns_its_folder_and_each_check_has_one_of_its_own(check: Callable[..., Path]) -> None:
    first, second = check(GREEN), check(GREEN)
    assert first.name == second.name == "run" and first != second


def test_sides_are_releases_interpreters_or_what_is_configured(
    check: Callable[..., Path], asked: list[Options]
) -> None:
    check(GREEN)
    check(GREEN, old="2.1.2", new="serving=/opt/python")
    assert [name for name in ("old", "new") if name in asked[0].overrides] == []
    assert (asked[1].overrides["old"], asked[1].overrides["new"]) == ("2.1.2", "serving")
    assert asked[1].environments == ["serving=/opt/python"]


def test_what_a_test_can_afford_is_the_default_and_options_win(
    check: Callable[..., Path], asked: list[Options]
) -> None:
    check(GREEN)
    check(GREEN, options=["--latency", "quick", "--scenario", "concurrent", "--jobs", "4"])
    assert (asked[0].overrides["latency"], asked[0].scenarios, asked[0].overrides["jobs"]) == ("off", ["alone"], "2")
    assert (asked[1].overrides["latency"], asked[1].overrides["jobs"]) == ("quick", "4")
    assert asked[1].scenarios == ["alone", "concurrent"]


def test_what_policy_asks_of_the_whole_fleet_is_not_asked_of_one_model(
    check: Callable[..., Path], asked: list[Options], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(GREEN)
    check(GREEN, options=["--policy", "fleet.toml"])
    wants = 'minimum_models = 20\nrequired_scenarios = ["concurrent"]\nlimits.error = 0.5\n'
    (tmp_path / "fleet.toml").write_text(wants)
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.compat]\nold = '2.1.2'\nnew = '2.6.0'\n[tool.compat.policy]\n{wants}"
    )
    for options in asked:
        _, settings = settings_of(options)
        assert (settings.policy.minimum_models, settings.policy.required_scenarios) == (0, ())
        assert settings.policy.limits == {"error": 0.5}


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE, Status.XPASS])
def test_a_red_cell_is_an_assertion_with_its_text_and_where_the_page_lies(
    check: Callable[..., Path], status: Status
) -> None:
    with pytest.raises(AssertionError) as caught:
        check(report_of(status, Decision.BLOCKED, 1))
    said = str(caught.value)
    assert "off by 0.3" in said.splitlines()[0]
    assert "BLOCKED" in said and "run/report.html" in said


def test_a_run_that_shows_nothing_is_an_assertion_with_the_reason(check: Callable[..., Path]) -> None:
    with pytest.raises(AssertionError, match="INCONCLUSIVE: because"):
        check(report_of(Status.PASS, Decision.INCONCLUSIVE, 4))


def test_no_frame_of_the_gate_is_shown_above_the_text(check: Callable[..., Path]) -> None:
    with pytest.raises(AssertionError) as caught:
        check(report_of(Status.FAIL, Decision.BLOCKED, 1))
    shown = [entry.path for entry in caught.traceback.filter(caught)]
    assert shown and not [path for path in shown if "harness/plugin" in str(path)]


def test_a_waived_difference_makes_the_test_an_expected_failure(check: Callable[..., Path]) -> None:
    with pytest.raises(pytest.xfail.Exception, match="waived: values by ads until 2027-03-01: retrained in May"):
        check(report_of(Status.XFAIL, Decision.UPGRADE_OK, 0))


def test_what_this_machine_cannot_run_is_skipped_and_not_green(check: Callable[..., Path]) -> None:
    with pytest.raises(pytest.skip.Exception, match="UNSUPPORTED: net"):
        check(report_of(Status.UNSUPPORTED, Decision.NOTHING_TESTED, 4))


def test_a_run_that_cannot_be_made_is_no_regression(
    check: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(options: Options, progress: Progress) -> Finished:
        raise EnvironmentUnavailable("the disk is full", "free 5 GB")

    monkeypatch.setattr(fixture, "compat", full)
    with pytest.raises(CannotCheck, match="^the disk is full; free 5 GB$"):
        Checker(tmp_path, [], project=tmp_path, say=False).check("net.pt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scenari0", "alone"], "--scenari0"),
        (["-h"], "^options of compat: expected those of a run, got .* -h"),
        ("--jobs 2", r"expected a list of words; options=\['--jobs', '2'\]"),
    ],
)
def test_an_option_that_compat_does_not_have_is_named(
    check: Callable[..., Path], options: str | list[str], said: str
) -> None:
    with pytest.raises(CannotCheck, match=said):
        check(GREEN, options=options)


def test_what_is_no_artifact_is_told_without_a_look_inside(check: Callable[..., Path]) -> None:
    with pytest.raises(CannotCheck, match="expected a path") as caught:
        check(GREEN, artifact=3)
    assert not [entry.path for entry in caught.traceback.filter(caught) if "harness/plugin" in str(entry.path)]
