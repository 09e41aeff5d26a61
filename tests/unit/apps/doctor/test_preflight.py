"""The doctor's second look: what happened between two looks is told in the report."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.doctor import preflight
from harness.core.machine import CounterReading, Gpus
from harness.core.plan import Settings
from harness.store.run_folder import RunDir
from harness.machine import gpu
from harness.machine.clock import utc_now
from tests.unit.builders.machines import GPUS
from tests.unit.builders.reports import golden, upgrade_ok
from tests.unit.builders.stages import planned

BEFORE = CounterReading(at_s=10.0, cores=2, core_s=100.0, oom_kills=0)


def test_events_are_in_the_report_and_in_its_notes_once() -> None:
    after = replace(BEFORE, at_s=20.0, core_s=120.0, stolen_s=10.0, oom_kills=1)
    report = preflight.with_machine_changes(upgrade_ok(), BEFORE, after)
    assert report.during_run is not None
    assert [event.name for event in report.during_run.events] == ["out of memory", "steal time"]
    assert [note.split(":")[0] for note in report.notes] == ["while it ran, out of memory", "while it ran, steal time"]
    assert preflight.with_machine_changes(report, BEFORE, after).notes == report.notes
    assert report.judgement == upgrade_ok().judgement


def test_a_run_that_timed_nothing_has_no_note_on_times() -> None:
    after = replace(BEFORE, at_s=20.0, core_s=120.0, stolen_s=10.0)
    report = preflight.with_machine_changes(golden(), BEFORE, after)
    assert report.during_run is not None and len(report.during_run.events) == 1
    assert report.notes == golden().notes


@pytest.mark.parametrize(("device", "asked"), [("cpu", 0), ("cuda", 1)])
def test_gpus_are_asked_only_where_the_run_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, asked: int
) -> None:
    questions: list[dict[str, str]] = []

    def answer(**how: str) -> Gpus:
        questions.append(how)
        return GPUS

    monkeypatch.setattr(gpu, "survey", answer)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with RunDir.create(tmp_path, "a-run", utc_now()) as run_dir:
        found = preflight.look(planned(device=device), run_dir)
    assert questions == [{"visible": "0"}] * asked
    assert found.gpus == (GPUS if asked else None)
    assert found.disk_bytes is not None


@pytest.mark.parametrize(("device", "checked"), [("auto", "auto"), ("cuda", "cuda"), ("xpu", "cpu"), ("cpu", "cpu")])
def test_checks_are_about_gpus_of_nvidia(device: str, checked: str) -> None:
    assert preflight._checked(device, Settings(old="2.1.2", new="2.6.0")) == checked
