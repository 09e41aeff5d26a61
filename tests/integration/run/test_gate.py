"""A policy in a real run, and a finished run judged again: the same answer either way."""

import shutil
from pathlib import Path

import pytest

from harness.core.outcome import Decision, Status
from harness.core.report import RunReport
from harness.report.json.report import load_report
from tests.integration.gate import Run, compat, harness

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

LENIENT = """
minimum_models = 2
required_scenarios = ["alone"]
[severity]
values = "warn"
"""
STRICT = """
minimum_models = 3
required_scenarios = ["concurrent"]
"""


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One genuine break, whose values differ, and one model that is well, under a policy that lets values pass."""
    folder = tmp_path_factory.mktemp("lenient")
    policy = folder / "policy.toml"
    policy.write_text(LENIENT)
    words = ("--fixtures", "fixtures/breaks", "-k", "enlarge_thumbnail or pick_frames", "--scenario", "alone")
    return compat(folder / "runs", *words, "--latency", "off", "--policy", str(policy), all_planted=False)


def judged_again(run: Run, folder: Path, *words: str, policy: str | None = None) -> tuple[int, RunReport]:
    """Return the exit code and the report of ``gate``, of a folder that has the report of the run and nothing else."""
    copied = folder / "from-ci"
    copied.mkdir()
    shutil.copy(run.folder / "report.json", copied)
    if policy is not None:
        (folder / "policy.toml").write_text(policy)
        words = (*words, "--policy", str(folder / "policy.toml"))
    done = harness("gate", str(copied), *words, "--format", "json", timeout_s=60)
    assert done.stdout, done.stderr
    return done.returncode, load_report(done.stdout.encode(), file="stdout")


def test_run_says_what_its_policy_let_pass(lenient: Run) -> None:
    assert (lenient.code, lenient.report.judgement.decision) == (0, Decision.UPGRADE_OK), lenient.out
    cell = lenient.row("enlarge_thumbnail").cells[0]
    assert (cell.status, cell.judged) == (Status.XFAIL, Status.FAIL)
    assert lenient.row("pick_frames").status is Status.PASS
    assert lenient.out.count("values counts as warn in place of fail") == 1
    assert "1 model passes, 1 let pass by the policy" in lenient.out
    junit = (lenient.folder / "junit.xml").read_text()
    assert "values counts as warn in place of fail" in junit


def test_same_policy_judges_the_finished_run_alike(lenient: Run, tmp_path: Path) -> None:
    code, report = judged_again(lenient, tmp_path, policy=LENIENT)
    assert code == 0
    assert [row.status for row in report.judgement.rows] == [row.status for row in lenient.report.judgement.rows]
    assert report.judgement.reason == lenient.report.judgement.reason


def test_finished_run_without_its_policy_is_red_again(lenient: Run, tmp_path: Path) -> None:
    code, report = judged_again(lenient, tmp_path, policy="")
    assert (code, report.judgement.decision) == (1, Decision.BLOCKED)
    assert report.policy is not None
    assert report.policy.regated is not None
    (change,) = report.policy.regated.changes
    assert (change.was, change.now) == (Status.XFAIL, Status.FAIL)
    assert change.cell in report.rerun


def test_stricter_policy_asks_for_what_the_run_has_not(lenient: Run, tmp_path: Path) -> None:
    code, report = judged_again(lenient, tmp_path, policy=STRICT + '[severity]\nvalues = "warn"\n')
    assert (code, report.judgement.decision) == (4, Decision.INCONCLUSIVE)
    assert "minimum_models = 3: 2 judged" in report.judgement.reason
    assert "required scenario concurrent: 0 of 2 models tested in it" in report.judgement.reason
