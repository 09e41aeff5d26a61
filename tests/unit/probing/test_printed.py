"""A worker that prints without end: its streams stay small, and their beginning and their end are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.search.reproduce.files import run_reproducer
from harness.core.environment import Environment
from harness.core.outcome import Outcome
from harness.core.probe import Deadline, WorkerLimits
from harness.checks.hang import watchdog
from harness.probing import printed
from harness.probing.printed import Printed
from harness.probing.runner import ZygoteRunner
from harness.store import probe_files
from harness.worker import wire
from tests.programs import stub

PRINTS = "import os\nfor n in range(30): os.write(1, (b'%07d\\n' % n) * (1 << 17))\nos.write(1, b'the end\\n')"
LONG = printed.HEAD_BYTES + printed.TAIL_BYTES + printed.SLACK_BYTES + 1
SMALL = printed.HEAD_BYTES + printed.TAIL_BYTES + 200


@pytest.mark.parametrize("trims", [True, False])
def test_of_a_long_stream_head_and_tail_are_kept_and_what_is_left_out_is_said(trims: bool, tmp_path: Path) -> None:
    with (tmp_path / "stdout").open("ab") as stdout:
        process = subprocess.Popen([sys.executable, "-c", PRINTS], stdout=stdout)
    with Printed(tmp_path) as streams:
        while trims and process.poll() is None:
            streams.trim()
        process.wait(60)
        if trims:
            streams.trim()
            assert (tmp_path / "stdout").stat().st_blocks * 512 < LONG + (1 << 20)
        (said,) = streams.finish()
    content = (tmp_path / "stdout").read_bytes()
    assert content.startswith(b"0000000\n") and content.endswith(b"0000029\nthe end\n")
    assert said == "it printed 31 MB to stdout; the first and the last 1 MiB are kept"
    assert content.count(b"[the gate left out ") == 1
    assert len(content) < SMALL


def test_a_stream_of_ordinary_length_is_left_as_it_is(tmp_path: Path) -> None:
    content = os.urandom(printed.HEAD_BYTES + printed.TAIL_BYTES)
    (tmp_path / "stderr").write_bytes(content)
    with Printed(tmp_path) as streams:
        streams.trim()
    assert (tmp_path / "stderr").read_bytes() == content


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_no_link_in_place_of_a_stream_is_followed(link: object, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(bytes(8 << 20))
    assert callable(link)
    link(tmp_path / "stdout", foreign)
    with Printed(tmp_path) as streams:
        streams.trim()
    assert foreign.stat().st_size == 8 << 20


@pytest.mark.slow
def test_a_model_that_prints_without_end_is_a_hang_that_says_so(tmp_path: Path, stub_environment: Environment) -> None:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "probes", watchdog)
    artifact = stub.write_artifact(tmp_path / "artifacts", "loud", calls={"1": "print_without_end"})
    try:
        result = runner(stub.run_request([artifact], Deadline(load_s=60.0, call_s=1.5, total_s=60.0)))
    finally:
        runner.close()
    assert result.models[0].outcome is Outcome.HANG
    assert result.evidence is not None
    assert any("MB to stdout; the first and the last 1 MiB are kept" in remark for remark in result.evidence.remarks)
    assert len(probe_files.read(Path(result.directory), wire.STDOUT)) < SMALL


def test_a_reproducer_that_prints_without_end_is_ended_and_stays_small(tmp_path: Path) -> None:
    (tmp_path / "reproduce.py").write_text("while True: print('x' * 100_000)")
    code, said, text = run_reproducer(tmp_path, sys.executable, limits=WorkerLimits(), limit_s=1.0)
    assert (code, said, text) == (None, "no answer after 1 s", "")
    (tmp_path / "reproduce.py").write_text(PRINTS)
    code, said, text = run_reproducer(tmp_path, sys.executable, limits=WorkerLimits(), limit_s=60.0)
    assert (code, said) == (0, "the end (exit code 0)")
    assert len(text) < SMALL
