"""``attach --system`` from its options to files and exit codes, on a process that is well."""

import argparse
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.apps.attach import system
from harness.core.errors import ConfigError, ExitCode
from harness.machine.proc_files import read, status_in
from harness.verdict.exit_codes import exit_code


@pytest.fixture
def sleeping() -> Iterator[int]:
    process = subprocess.Popen(("sleep", "30"))
    while (status := status_in(read(f"/proc/{process.pid}/stat"))) is not None and status.state != "S":
        time.sleep(0.01)  # until it has begun, for which it may have had to wait
    yield process.pid
    process.kill()
    process.wait()


def parsed(*words: object, out: Path | None = None, form: str = "console") -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    system.add_options(parser, parser.add_mutually_exclusive_group())
    return argparse.Namespace(**vars(parser.parse_args(["--system", *map(str, words)])), out=out, format=form)


def test_a_process_that_waits_for_nobody_is_well_and_the_trace_is_written(
    sleeping: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = system.run(parsed("--pid", sleeping, "--seconds", 2, out=tmp_path))
    assert exit_code(found) is ExitCode.COMPATIBLE and found.seconds > 1.9
    assert "NOT HELD UP  (it hardly waits)" in capsys.readouterr().out
    assert json.loads((tmp_path / "interference.json").read_text())["watched"]["pid"] == sleeping
    titles = {
        event["args"]["name"]
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if event["name"] == "process_name"
    }
    assert {f"sleep 30 ({sleeping})", f"pauses of sleep ({sleeping})"} <= titles and len(titles) > 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pid", 2**22 + 1), "there is no process 4194305"),
        (("--pid", os.getpid(), "--seconds", 1), "--seconds 1; name from 2 to 3600 seconds"),
        (("--pid", os.getpid(), "--seconds", "nan"), "--seconds nan; name from 2 to 3600 seconds"),
    ],
)
def test_what_cannot_be_recorded_is_one_clear_line(words: tuple[object, ...], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        system.run(parsed(*words))
    assert message in str(raised.value) and "\n" not in str(raised.value)
