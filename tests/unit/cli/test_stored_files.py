"""Damaged stored files end a command in one line; the short form of ``nox -s bench -- faults stored``."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.report.json.report import dump_report
from harness.apps.upgrade import plan as planning
from harness.project import Project
from harness.store.run_folder import RunDir
from benchmarks.faults import stored
from tests.unit.builders import golden_records
from tests.unit.builders.reports import blocked

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a finished run, golden records and a proposal, waivers and a policy; nothing was probed."""
    folder = tmp_path_factory.mktemp("stored") / "project"
    (folder / "golden").mkdir(parents=True)
    stored.make_project(folder)
    golden_records.accept(golden_records.propose(folder, "early_exit", 1.0), "early_exit")
    stored.propose_accepted(folder / "golden")
    settings = {"old": "2.1.2", "new": "2.6.0"}
    plan = planning.make_plan(
        Project(folder=PROJECT, overrides=settings, expression="early_exit", arguments=("compat",))
    )
    with RunDir.create(folder / "reports", "t", datetime(2026, 11, 23, tzinfo=UTC)) as run:
        run.save_plan(plan)
        run.save_old_answers({})
        run.write("report.json", dump_report(blocked()))
    return folder


@pytest.mark.slow
def test_no_damage_ends_as_a_bug_or_without_the_name_of_the_file(project: Path) -> None:
    readers = {pattern: commands[:2] for pattern, commands in stored.READERS.items()}
    assert not stored.wrong_endings(project, readers, 40, seed=1)


@pytest.mark.parametrize(
    "content", [b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"", b"[1]", b'{"version": "9.9.9x"}', b'{"version": {}}']
)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report.json", ("report", "RUN")),
        ("report.json", ("gate", "RUN")),
        ("plan.json", ("compat", "--resume", "RUN")),
        ("plan.json", ("golden", "propose", "RUN")),
        ("baselines.json", ("golden", "propose", "RUN")),
    ],
)
def test_a_file_of_the_run_is_named_in_one_line(
    project: Path, name: str, words: tuple[str, ...], content: bytes
) -> None:
    (run,) = (path for path in (project / "reports").iterdir() if path.is_dir())
    before = (run / name).read_bytes()
    (run / name).write_bytes(content)
    said = stored.called(project, words)
    (run / name).write_bytes(before)
    assert (said.code, said.err.count("\n")) == (2, 1), said
    assert said.err.startswith(f"error: {run / name} ")
