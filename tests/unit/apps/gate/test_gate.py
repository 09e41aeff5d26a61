"""A finished run judged again, from a folder with nothing but its report."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.apps.report.files import read_report
from harness.apps.gate.gate import gate
from harness.project import Project
from harness.core.outcome import Decision, Status
from harness.core.errors import ConfigError, GateError, RunDirError, SelectionError
from harness.report.json.report import dump_report
from harness.store.run_folder import RunDir
from tests.unit.builders.reports import blocked, upgrade_ok

LET_PASS = """
[severity]
hang = "warn"
values = "warn"
"""


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    folder = tmp_path / "from-ci"
    folder.mkdir()
    (folder / "report.json").write_bytes(dump_report(upgrade_ok()))
    return folder


def options(project: Path, policy: str | None = None, **more: Any) -> Project:
    if policy is None:
        return Project(folder=project, **more)
    path = project / "policy.toml"
    path.write_text(policy)
    return Project(folder=project, policy_file=str(path), **more)


def test_folder_with_a_report_and_nothing_else_is_enough(tmp_path: Path, downloaded: Path) -> None:
    before = (downloaded / "report.json").read_bytes()
    found = gate(options(tmp_path, "minimum_models = 9"), str(downloaded)).report
    assert (found.judgement.decision, found.judgement.exit_code) == (Decision.INCONCLUSIVE, 4)
    assert found.policy is not None
    assert found.policy.source.endswith("policy.toml")
    assert [(item.what, item.met) for item in found.policy.demands] == [("minimum_models = 9", False)]
    assert gate(options(tmp_path), str(downloaded)).report.judgement.decision is Decision.UPGRADE_OK
    assert [path.name for path in downloaded.iterdir()] == ["report.json"]
    assert (downloaded / "report.json").read_bytes() == before


def test_policy_of_the_project_counts_where_no_file_is_named(tmp_path: Path, downloaded: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.compat.policy]\nminimum_models = 9\n")
    found = gate(options(tmp_path), str(downloaded)).report
    assert found.judgement.decision is Decision.INCONCLUSIVE
    assert found.policy is not None
    assert found.policy.source == "[tool.compat.policy]"
    assert gate(options(tmp_path, ""), str(downloaded)).report.judgement.decision is Decision.UPGRADE_OK


def test_rule_that_matches_no_model_of_the_run_is_reported(tmp_path: Path, downloaded: Path) -> None:
    policy = '[[rules]]\nmodels = "visoin"\nlimits = { steady = 1.1 }\n'
    found = gate(options(tmp_path, policy), str(downloaded)).report
    assert found.policy is not None
    assert 'rule 1 of the policy (models = "visoin") matches none of 3 models' in found.policy.notes


def test_newly_red_cell_comes_with_the_command_that_shows_it(tmp_path: Path, downloaded: Path) -> None:
    found = gate(options(tmp_path, "limits = { steady = 1.000001 }"), str(downloaded)).report
    red = [cell for row in found.judgement.rows for cell in row.cells if cell.status is Status.INCONCLUSIVE]
    assert red
    for cell in red:
        assert f"rerun {shlex.quote(str(downloaded))} {cell.cell} --latency thorough --policy" in found.rerun[cell.cell]


def test_a_key_of_the_policy_is_set_for_once_and_what_it_leaves_open_is_one_command(
    tmp_path: Path, downloaded: Path
) -> None:
    found = gate(options(tmp_path, assignments=["policy.limits.steady=1.000001"]), str(downloaded)).report
    assert found.policy is not None
    assert found.policy.source == "[tool.compat.policy] with --set limits.steady=1.000001"
    again = f"rerun {shlex.quote(str(downloaded))} --undecided --set limits.steady=1.000001"
    assert found.notes[0].startswith(
        "this policy leaves 2 cells to ask again (detector, speech_encoder), in one command: "
    )
    assert found.notes[0].endswith(again)
    (cause,) = found.causes
    assert (cause.id, cause.models) == ("undecided-latency", ("detector", "speech_encoder"))
    assert cause.commands[0][1].endswith("--cause undecided-latency --latency thorough --set limits.steady=1.000001")


def test_waivers_of_a_file_are_held_against_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    report = blocked()
    (folder / "report.json").write_bytes(dump_report(report))
    assert gate(options(tmp_path), str(folder)).report.judgement.exit_code == 1
    with pytest.raises(ConfigError, match=r"known\.toml cannot be read: No such file"):
        gate(options(tmp_path), str(folder), waivers=str(tmp_path / "known.toml"))
    red = next(row for row in report.judgement.rows if row.status is Status.FAIL)
    kinds = {item.kind for cell in red.cells if cell.status is Status.FAIL for item in cell.findings}
    entries = [
        f'[[waiver]]\nmodel = "{red.model}"\nkind = "{kind}"\nreason = "r"\nowner = "ann"\nexpires = 9999-12-31\n'
        for kind in sorted(kinds)
    ]
    known = tmp_path / "known.toml"
    known.write_text("\n".join(entries))
    found = gate(options(tmp_path), str(folder), waivers=str(known)).report
    assert next(row for row in found.judgement.rows if row.model == red.model).status is not Status.FAIL


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        ("typo", ConfigError, 'policy.severity.valuez: unknown kind of finding; did you mean "values"'),
        ("missing", ConfigError, "No such file or directory; name a TOML file"),
        ("waivers of the gate", ConfigError, "policy.severity.waiver_expired: unknown kind of finding"),
        ("no run", SelectionError, "no run"),
        ("no report", RunDirError, "has no report.json"),
    ],
)
def test_mistake_is_explained(tmp_path: Path, downloaded: Path, make: str, error: type[GateError], words: str) -> None:
    given, run = options(tmp_path, ""), str(downloaded)
    if make == "typo":
        given = options(tmp_path, '[severity]\nvaluez = "warn"')
    elif make == "missing":
        given = Project(folder=tmp_path, policy_file=str(tmp_path / "absent.toml"))
    elif make == "waivers of the gate":
        given = options(tmp_path, '[severity]\nwaiver_expired = "fail"')
    elif make == "no run":
        run = "2031"
    else:
        (downloaded / "report.json").rename(downloaded / "plan.json")
    with pytest.raises(error, match=words.replace("?", r"\?")):
        gate(given, run)


def test_policy_file_is_the_whole_policy(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.compat.policy]\nminimum_models = 9\n")
    settings = (options(tmp_path, LET_PASS)).settings
    assert (settings.policy.minimum_models, settings.policy.severity) == (0, {"hang": "warn", "values": "warn"})
    assert settings.policy_file.endswith("policy.toml")
    with pytest.raises(ConfigError, match="the file is the whole policy"):
        (options(tmp_path, LET_PASS, assignments=("policy.minimum_models=3",))).settings


def test_last_run_that_was_interrupted_is_not_passed_by_the_one_before(tmp_path: Path) -> None:
    for name in ("2026-01-2.1.2-to-2.6.0", "2026-02-2.1.2-to-2.6.0", "2026-03-m-bisect"):
        (tmp_path / "reports" / name).mkdir(parents=True)
        (tmp_path / "reports" / name / "plan.json").write_text("{}")
    older, newer, search = sorted((tmp_path / "reports").iterdir())
    (older / "report.json").write_bytes(dump_report(upgrade_ok()))
    with pytest.raises(RunDirError, match="it ended before that.*finish it: .* compat --resume .*2026-02"):
        gate(options(tmp_path), "last")
    with (
        RunDir.open(tmp_path / "reports", newer.name),
        pytest.raises(RunDirError, match="it is still running.*wait for it"),
    ):
        gate(options(tmp_path), "last")
    with pytest.raises(RunDirError, match="is a run of bisect"):
        gate(options(tmp_path), search.name)
    assert gate(options(tmp_path), older.name).folder == older
    (newer / "plan.json").unlink()
    assert gate(options(tmp_path), "last").folder == older  # a search has no report, ever


def test_report_with_a_model_twice_is_refused(tmp_path: Path, downloaded: Path) -> None:
    report = blocked()
    rows = (*report.judgement.rows, *upgrade_ok().judgement.rows, report.judgement.rows[0])
    merged = replace(report, judgement=replace(report.judgement, rows=rows))
    (downloaded / "report.json").write_bytes(dump_report(merged))
    with pytest.raises(RunDirError, match=f"has {rows[0].model} twice"):
        gate(options(tmp_path), str(downloaded))


def test_causes_are_formed_again_when_a_report_is_read_and_when_it_is_judged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "report.json").write_bytes(dump_report(replace(blocked(), causes=())))
    for patched in (folder / item.patched for item in blocked().explained if item.patched):
        patched.parent.mkdir(parents=True)
        patched.touch()
    read = read_report(options(tmp_path), str(folder)).report
    plain = [replace(cause, commands=()) for cause in read.causes]  # which run here, wherever it was made
    assert plain == [replace(cause, commands=()) for cause in blocked().causes]
    judged = gate(options(tmp_path, LET_PASS), str(folder)).report
    red = {cause.id for cause in judged.causes if cause.status is not Status.PASS}
    assert red < {cause.id for cause in read.causes}
    assert "hang" not in {cause.kind for cause in judged.causes}
