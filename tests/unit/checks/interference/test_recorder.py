"""Real processes of this machine, as the recorder sees them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.checks.interference.check import check
from harness.checks.interference.recorder import Recorder, most_waiting, waited_ns
from harness.checks.interference.recording import ProcessCourse, Recording
from harness.core.errors import ConfigError
from harness.core.interference import Loss
from tests.programs import neighbours

# Runs every 0.1 s, in processes of its own that end at once, and all the time; beside a thread that is not its first.
PROGRAM = """
import subprocess, sys, threading, time
def often():
    while True:
        end = time.thread_time() + 0.005
        while time.thread_time() < end: pass
        time.sleep(0.05)
threading.Thread(target=often, daemon=True).start()
print("ready", flush=True)
while True:
    subprocess.run(["sleep", "0.03"])
    time.sleep(0.07)
"""


@contextmanager
def started(*words: object) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen((sys.executable, *map(str, words)), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def of(recording: Recording, pid: int) -> ProcessCourse:
    return next(course for course in recording.others if course.pid == pid)


def test_times_are_the_kernels_and_threads_and_short_lived_processes_are_seen() -> None:
    with (
        started(neighbours.__file__, "computes", min(os.sched_getaffinity(0))) as server,
        started("-c", PROGRAM) as other,
    ):
        before_ns = time.clock_gettime_ns(~other.pid << 3 | 2)
        recording = Recorder(server.pid).record(1.2)
        used_ns = time.clock_gettime_ns(~other.pid << 3 | 2) - before_ns
    ran_ns = sum(part.amount_ns for part in of(recording, other.pid).ran)
    assert 0.8 * used_ns - 20_000_000 <= ran_ns <= used_ns
    (thread,) = recording.threads
    assert 0.1 < sum(part.amount_ns for part in thread.ran) / recording.span_ns < 0.6
    slept = [course for course in recording.others if course.parent == other.pid and course.is_new]
    assert len(slept) >= 2 and "sleep" in {course.name for course in slept}
    assert os.getpid() not in {course.pid for course in recording.others} and not recording.ended
    assert recording.counts_waits and recording.own_cpu_ns < 0.15 * recording.span_ns
    found = check(recording, chosen=False)
    assert found.watched.pid == server.pid and "computes" in found.watched.command


def test_a_recording_ends_with_the_process_also_where_nobody_has_reaped_it() -> None:
    process = subprocess.Popen(("sleep", "0.3"))
    recording = Recorder(process.pid).record(5)
    assert recording.ended and 0.1e9 < recording.span_ns < 3e9
    process.wait()
    with pytest.raises(ConfigError, match=f"there is no process {process.pid}"):
        Recorder(process.pid)


def test_looks_that_cost_too_much_are_taken_less_often() -> None:
    recording = Recorder(os.getppid(), most_own=0.004).record(1)
    looks_ns = recording.looks_ns
    assert looks_ns[-1] - looks_ns[-2] > 12_000_000 and recording.own_cpu_ns < 0.02 * recording.span_ns


@pytest.mark.slow
def test_whoever_burns_the_cpu_is_named_and_the_twin_on_another_one_is_not(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        server = stack.enter_context(started(neighbours.__file__, "computes", cpus[0]))
        burner = stack.enter_context(started(neighbours.__file__, "burns", cpus[0], 0.3, 0.1))
        twin = stack.enter_context(started(neighbours.__file__, "burns", cpus[-1], 0.27, 0.1))
        found = check(Recorder(server.pid).record(12), chosen=False)
    assert found.pauses[Loss.CPU].count >= 20, found.pauses
    values = {one.pid: one.p_value for one in found.associations if one.loss is Loss.CPU}
    assert values[burner.pid] < 0.01 < values.get(twin.pid, 1)  # others of a busy machine may take more


@pytest.mark.slow
def test_the_process_that_waits_most_is_found() -> None:
    cpu = max(os.sched_getaffinity(0))
    with (
        started(neighbours.__file__, "burns", cpu, 1, 1) as first,
        started(neighbours.__file__, "burns", cpu, 1, 1) as second,
    ):
        before_ns = waited_ns(first.pid)
        found = most_waiting(1.0)
        # Others of a busy machine may wait longer.
        assert found in (first.pid, second.pid) or waited_ns(found) > 0.5 * (waited_ns(first.pid) - before_ns) > 0
