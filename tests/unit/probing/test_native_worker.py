"""Starting a C++ worker and reaping it; what such a worker does is in tests/integration."""

import os
import signal
from pathlib import Path

import pytest

from harness.errors import EnvironmentUnavailable
from harness.probing import processes, zygote
from tests.programs import stub


def worker(folder: Path, script: str) -> Path:
    binary = folder / "worker"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return binary


def test_worker_that_ends_is_reaped_with_its_status(tmp_path: Path) -> None:
    child = zygote.start(worker(tmp_path, "exit 3"), tmp_path, {})
    assert child.ended.wait(30)
    assert child.exited.is_set()
    assert child.status is not None
    assert os.waitstatus_to_exitcode(child.status) == 3
    assert child.max_rss_bytes


def test_number_of_a_worker_that_has_ended_is_kept_while_somebody_holds_it(tmp_path: Path) -> None:
    """Else a signal that is about to be sent would reach whoever is given that number next."""
    child = zygote.start(worker(tmp_path, "exec sleep 1000"), tmp_path, {})
    with child.held() as pid:
        assert pid is not None
        child.kill()
        assert child.exited.wait(30)
        assert not child.ended.wait(0.3)
        assert processes.birth_of(pid) == child.birth
    assert child.ended.wait(30)
    assert child.status == signal.SIGKILL
    with child.held() as pid:
        assert pid is None


def test_what_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > '{tmp_path}/left'; exit 0"
    child = zygote.start(worker(tmp_path, script), tmp_path, {})
    assert child.ended.wait(30)
    left = int((tmp_path / "left").read_text())
    assert stub.eventually(lambda: not stub.is_alive(left))


def test_worker_that_cannot_be_executed_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match="cannot be started: No such file"):
        zygote.start(tmp_path / "nothing", tmp_path, {})
