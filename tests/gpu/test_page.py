"""A GPU record as markdown and as JSON: hostile texts are inert, and the JSON reads back whole."""

import json
from dataclasses import replace

import pytest

from harness.core.environment import Fingerprint
from harness.core.machine import CheckStatus, MachineCheck
from harness.core.outcome import Decision
from harness.core.report import SideReport
from harness.core.errors import RunDirError
from tests.gpu.page import render_record
from tests.gpu.recorded import GpuRecord, RecordedPart, dump_record, load_record
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.snapshots import check_snapshot

GPU = Fingerprint(
    torch="2.11.0+cu130", git_revision="a", cuda="13.0", cudnn="91002", driver="580.159.04", gpu="NVIDIA H100 80GB HBM3"
)
GIVEN = ("--env", "old=/opt/torch/bin/python3", "--env", "new=/tmp/carried/torch/bin/python", "--device", "cuda")
RECORD = GpuRecord(
    name="RECORD-2026-11-23",
    started_at="2026-11-23T23:00:00+00:00",
    device="cuda",
    arguments=GIVEN,
    minutes=25,
    wall_s=1503.2,
    old=SideReport(name="torch 2.11.0", fingerprint=GPU),
    new=SideReport(name="torch 2.12.0", fingerprint=replace(GPU, torch="2.12.0+cu130", git_revision="b")),
    checks=(
        MachineCheck(name="disk", area="resources", read="34 GB free"),
        MachineCheck(
            name="GPU tenants",
            area="GPU",
            status=CheckStatus.WARN,
            about="torch 2.12.0",
            read="one other process",
            so_what="Times are noisy.",
        ),
    ),
    parts=(
        RecordedPart(
            name="models",
            arguments=("compat", *GIVEN, "--until", "correctness"),
            run="models/2026-11-23T23-00-05-old-to-new",
            exit_code=1,
            wall_s=212.4,
            decision=Decision.BLOCKED,
            models={"FAIL": 8, "PASS": 70},
            cells={"alone": {"FAIL": 8, "PASS": 70}, "cuda_graphs": {"PASS": 78}},
            red=tuple((name, "FAIL", f"values: {name}") for name in HOSTILE_NAMES),
            planted=18,
            missed=(("planted_nan", "came out PASS"),),
            processes={"completed": 612, "hang": 1},
            contexts=188,
            time_shares_s={"probes": 180.0, "import": 20.0},
        ),
        RecordedPart(
            name="timing",
            arguments=("compat", *GIVEN),
            run="models/2026-11-23T23-00-05-old-to-new",
            exit_code=1,
            wall_s=95.0,
            decision=Decision.BLOCKED,
            timed={"replay": 11, "steady": 13},
        ),
        RecordedPart(
            name="scenarios",
            arguments=("compat", *GIVEN, "--scenario", "all"),
            run="scenarios/2026-11-23T23-06-05-old-to-new",
            why="the 25 min were over",
            wall_s=1180.0,
            processes={"completed": 133},
        ),
    ),
)


def test_a_record_without_a_gpu_is_called_a_rehearsal() -> None:
    text = render_record(replace(RECORD, device="npu", old=None, new=None))
    assert text.startswith("# Rehearsal of a GPU record, without a GPU: ")
    assert "No GPU was used: a rehearsal on the device npu." in text
    blind = SideReport(name="torch 2.12.0", fingerprint=replace(GPU, gpu=None))
    assert render_record(replace(RECORD, new=blind)).startswith("# Rehearsal of a GPU record, without a GPU: ")


def test_markdown() -> None:
    check_snapshot("gpu_record.md", render_record(RECORD))


def test_json_reads_back_whole_and_says_what_follows() -> None:
    text = dump_record(RECORD)
    assert json.loads(text)["exit_code"] == 1
    assert json.loads(text)["reservations"] == ["scenarios did not come to its end: the 25 min were over"]
    # Undecodable bytes become plain text, as in every JSON file.
    known = replace(RECORD, parts=tuple(replace(part, red=()) for part in RECORD.parts))
    assert load_record(dump_record(known).encode(), file="r.json") == known


def test_a_damaged_record_is_named() -> None:
    with pytest.raises(RunDirError, match=r"r.json is damaged: .*`\$\.parts`"):
        load_record(json.dumps({**json.loads(dump_record(RECORD)), "parts": 3}).encode(), file="r.json")
