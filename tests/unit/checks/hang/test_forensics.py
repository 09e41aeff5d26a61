"""Looking into real processes: deadlocked, busy, crashed; with each tool alone, and with tools that misbehave."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.core.hang import Evidence, HangKind, HangProof, ThreadStack
from harness.checks.hang import debuggers, forensics
from harness.worker import wire
from tests.programs import stub

NATIVE = Path(__file__).resolve().parents[4] / "harness" / "native"
WORKER = NATIVE.parent / "worker"
PROOF = HangProof(kind=HangKind.BLOCKED, silent_s=3.0, window_s=1.0)

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

PROGRAM = r"""
#include "stacks/stacks.hpp"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
std::mutex first, second;
volatile unsigned long turns;
std::atomic<int> holding{0};
__attribute__((noinline)) int overflow(int depth) {
  volatile char filler[64];
  filler[0] = char(depth);
  return depth < 0 ? 0 : overflow(depth + 1) + filler[0];
}
__attribute__((noinline)) void write_to_null() { *(volatile int*)0x10 = 1; }
__attribute__((noinline)) void spin_here() { for (;;) turns = turns + 1; }
__attribute__((noinline)) void take_both(std::mutex& one, std::mutex& other) {
  std::lock_guard<std::mutex> hold(one);
  ++holding;
  while (holding.load() < 2) usleep(1000);
  std::lock_guard<std::mutex> wait(other);
}
int main(int count, char** arguments) {
  const char* mode = arguments[1];
  if (count < 3) gate::stacks::install("stacks.txt");
  std::thread one([&] {
    gate::stacks::ThreadGuard guard;
    if (!strcmp(mode, "mutexes")) take_both(first, second);
    usleep(30000);
    if (!strcmp(mode, "null")) write_to_null();
    if (!strcmp(mode, "abort")) abort();
    if (!strcmp(mode, "overflow")) printf("%d", overflow(1));
    if (!strcmp(mode, "divide")) printf("%d", count / (count - 2));
    spin_here();
  });
  std::thread other([&] {
    sigset_t all;
    sigfillset(&all);
    if (!strcmp(mode, "deaf")) pthread_sigmask(SIG_BLOCK, &all, nullptr);
    if (!strcmp(mode, "mutexes")) take_both(second, first);
    for (;;) sleep(1000);
  });
  while (!strcmp(mode, "mutexes") && holding.load() < 2) usleep(1000);
  puts("started");
  fflush(stdout);
  one.join();
  other.join();
}
"""

PYTHON = r"""
import faulthandler, json, os, signal, sys, threading
sys.path.insert(0, %r)
import native_stacks
if len(sys.argv) > 2:
    assert native_stacks.arm(sys.argv[2], "stacks.txt") == ""
stacks = open("stacks.txt", "a")
faulthandler.enable(file=stacks, all_threads=True)
faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
events = open("events.jsonl", "a")
def say():
    begin = {"ev": "begin", "ident": threading.get_ident(), "tid": threading.get_native_id()}
    events.write(json.dumps(begin) + "\n")
    events.flush()
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(3)
def take_both(one, other):
    say()
    with one:
        both.wait()
        with other:
            pass
def spin():
    number = 1
    while True:
        number = hash(str(number * 3))
for locks in (first, second), (second, first):
    threading.Thread(target=take_both, args=locks, daemon=True).start()
say()
both.wait()
print("started", flush=True)
if sys.argv[1] == "crash":
    import ctypes
    ctypes.string_at(16)
spin()
""" % str(WORKER)


def build(folder: Path, source: str, *options: str) -> Path:
    (folder / "source.cpp").write_text(source)
    target = folder / "target"
    command = ("g++", "-std=c++17", "-O1", "-g0", "-Werror", "-Wall", "-Wextra", f"-I{NATIVE}", *options)
    subprocess.run([*command, str(folder / "source.cpp"), "-o", str(target), "-pthread"], check=True, timeout=60)
    return target


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("program"), PROGRAM)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = (NATIVE / "stacks" / "stacks.cpp").read_text()
    return build(tmp_path_factory.mktemp("library"), source, "-fPIC", "-shared")


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program in ``tmp_path`` and returns once it has said that it has started."""
    started = []

    def begin(*command: object) -> "subprocess.Popen[bytes]":
        child = subprocess.Popen(
            [str(part) for part in command], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"started\n"
        time.sleep(0.1)
        return child

    yield begin
    for child in started:
        child.kill()
        child.wait(10)
        assert child.stdout is not None
        child.stdout.close()


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Leaves only the named programs to be found, and returns the folder in which more can be put."""

    def leave(*names: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in names:
            path = debuggers.find(name)
            if path is None:
                pytest.skip(f"needs {name}")
            (folder / name).symlink_to(path)
        monkeypatch.setenv("PATH", f"{folder}:/nowhere")
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        return folder

    return leave


def fake(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def stack_with(evidence: Evidence, function: str) -> ThreadStack:
    found = [stack for stack in evidence.stacks if any(function in frame.function for frame in stack.frames)]
    assert found, [[frame.function for frame in stack.frames] for stack in evidence.stacks]
    return found[0]


def test_deadlocked_program_dumps_itself_and_both_threads_stand(program: Path, start: Start, tmp_path: Path) -> None:
    child = start(program, "mutexes")
    begin = time.monotonic()
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert time.monotonic() - begin < 10
    assert (evidence.tool, evidence.remarks, evidence.files) == ("the worker itself", (), ("stacks.txt",))
    assert evidence.proof is PROOF
    waiting = [stack for stack in evidence.stacks if any("take_both" in frame.function for frame in stack.frames)]
    assert len(waiting) == 2
    for stack in waiting:
        assert stack.moved is False
        assert [frame.function for frame in stack.frames if "mutex_lock" in frame.function]
    assert child.poll() is None, "it lives on"


def test_names_of_local_functions_are_found_and_demangled(program: Path, start: Start, tmp_path: Path) -> None:
    child = start(program, "mutexes")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    stack = stack_with(evidence, "take_both")
    assert "take_both(std::mutex&, std::mutex&)" in [frame.function for frame in stack.frames]
    assert any("::_M_run()" in frame.function for frame in stack.frames), "a local template, not exported"


def test_a_thread_that_blocks_signals_is_seen_by_a_debugger_only(
    program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    only("eu-stack", "c++filt")
    child = start(program, "deaf")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert evidence.tool == "the worker itself, eu-stack"
    assert evidence.remarks == ()
    assert all(stack.frames for stack in evidence.stacks)
    assert len(evidence.stacks) == 3


def test_a_thread_that_blocks_signals_is_named_where_no_debugger_is(
    program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    only()
    child = start(program, "deaf")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert evidence.tool == "the worker itself"
    assert evidence.remarks == (
        "some threads did not answer the worker's own request for stacks",
        "eu-stack is not installed: apt-get install elfutils",
    )
    assert stack_with(evidence, "spin_here").frames[0].function == "spin_here", "readable without c++filt"


def test_program_that_is_not_armed_is_not_sent_a_signal_that_would_end_it(
    program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    only("eu-stack", "c++filt")
    child = start(program, "mutexes", "unarmed")
    (tmp_path / wire.STACKS).write_text(f"== gate stacks armed SIGUSR1 pid {child.pid}\n")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert child.poll() is None
    assert evidence.tool == "eu-stack"
    assert stack_with(evidence, "take_both").moved is False
    assert evidence.files == ("stacks-1.eu-stack.txt", "stacks-2.eu-stack.txt")
    assert all((tmp_path / name).is_file() for name in evidence.files)


def test_gdb_is_the_last_resort(program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]) -> None:
    only("gdb", "c++filt")
    child = start(program, "mutexes", "unarmed")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert evidence.tool == "gdb"
    assert "eu-stack is not installed: apt-get install elfutils" in evidence.remarks
    assert stack_with(evidence, "take_both").moved is None, "one sample only"


def test_without_any_tool_the_remarks_say_how_to_get_one(
    program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    only()
    child = start(program, "mutexes", "unarmed")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert (evidence.tool, evidence.stacks, evidence.files) == ("", (), ())
    assert evidence.remarks == ("eu-stack is not installed: apt-get install elfutils",)


def test_a_debugger_that_hangs_is_ended_with_its_children(
    program: Path, start: Start, tmp_path: Path, only: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = only()
    fake(folder, "eu-stack", f"/bin/sleep 1000 & echo $! > '{tmp_path}/child'; /bin/sleep 1000")
    hasty = dataclasses.replace(debuggers.EU_STACK, deadline_s=0.3)
    monkeypatch.setitem(forensics.CHOICES, "libtorch", (hasty,))
    child = start(program, "mutexes", "unarmed")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert evidence.remarks == ("eu-stack did not end within 0.3 s and was ended",)
    assert stub.eventually(lambda: not stub.is_alive(int((tmp_path / "child").read_text())))


def test_forbidden_ptrace_is_explained(program: Path, start: Start, tmp_path: Path, only: Callable[..., Path]) -> None:
    folder = only()
    fake(folder, "eu-stack", "echo 'eu-stack: dwfl_linux_proc_report pid 1: Permission denied' >&2; exit 2")
    fake(folder, "gdb", "touch asked")
    child = start(program, "mutexes", "unarmed")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="libtorch")
    assert len(evidence.remarks) == 1
    assert evidence.remarks[0].startswith("ptrace is forbidden")
    assert not (tmp_path / "asked").exists(), "gdb would be refused as well"


def test_process_that_has_ended_leaves_nothing(start: Start, tmp_path: Path) -> None:
    child = start("/bin/sh", "-c", "echo started")
    child.wait(10)
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="python")
    assert evidence.stacks == ()


def test_python_shows_native_and_python_frames_of_each_thread(library: Path, start: Start, tmp_path: Path) -> None:
    child = start(sys.executable, "-c", PYTHON, "hang", library)
    begin = time.monotonic()
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="python")
    assert time.monotonic() - begin < 10
    assert (evidence.tool, evidence.remarks, evidence.files) == ("the worker itself", (), ("stacks.txt",))
    assert len(evidence.stacks) == 3
    waiting = stack_with(evidence, "take_both")
    languages = [frame.language for frame in waiting.frames]
    assert "PyThread_acquire_lock_timed" in [frame.function for frame in waiting.frames]
    assert languages.index("python") > 0
    assert waiting.moved is False
    busy = stack_with(evidence, "spin")
    assert busy.tid == child.pid
    assert busy.moved is True


@pytest.mark.parametrize("tool", ["pystack", "py-spy", "eu-stack"])
def test_python_without_the_library_is_looked_into_by_a_debugger(
    tool: str, start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    interpreter = sys.executable
    only(tool, "c++filt")
    child = start(interpreter, "-c", PYTHON, "hang")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="python")
    assert (evidence.tool, evidence.remarks) == (tool, ())
    assert evidence.files[0] == "stacks.txt"
    assert len(evidence.files) == 3
    waiting = stack_with(evidence, "take_both")
    assert "PyThread_acquire_lock_timed" in [frame.function for frame in waiting.frames]
    assert (waiting.moved, waiting.tid == child.pid) == (False, False)


def test_python_without_any_tool_still_shows_pythons_own_view(
    start: Start, tmp_path: Path, only: Callable[..., Path]
) -> None:
    interpreter = sys.executable
    only()
    child = start(interpreter, "-c", PYTHON, "hang")
    evidence = forensics.investigate(child.pid, tmp_path, PROOF, runtime="python")
    assert evidence.tool == "faulthandler"
    assert evidence.remarks == (
        "eu-stack is not installed: apt-get install elfutils",
        "pystack is not installed: pip install pystack",
        "py-spy is not installed: pip install py-spy",
    )
    assert stack_with(evidence, "take_both").tid not in (0, child.pid)
    assert stack_with(evidence, "spin").tid == child.pid


@pytest.mark.parametrize(
    ("mode", "name", "function"),
    [
        ("null", "SIGSEGV", "write_to_null()"),
        ("abort", "SIGABRT", "abort"),
        ("overflow", "SIGSEGV", "overflow(int)"),
        ("divide", "SIGFPE", "::_M_run()"),
    ],
)
def test_crash_leaves_signal_thread_and_frames(
    mode: str, name: str, function: str, program: Path, start: Start, tmp_path: Path
) -> None:
    child = start(program, mode)
    assert child.wait(10) == -signal.Signals[name]
    evidence = forensics.crash_evidence(tmp_path, name)
    assert (evidence.tool, evidence.signal, evidence.files) == ("the worker itself", name, ("stacks.txt",))
    faulting = evidence.stacks[0]
    assert faulting.tid == evidence.faulting_tid != child.pid
    assert any(frame.function.endswith(function) for frame in faulting.frames[:4])
    assert {stack.tid for stack in evidence.stacks[1:]} >= {child.pid}
    said = " ".join(evidence.remarks)
    assert ("0x10, a null pointer" in said) == (mode == "null")
    assert ("probably overflowed" in said) == (mode == "overflow")


def test_crash_of_python_shows_both_views_and_no_handler(library: Path, start: Start, tmp_path: Path) -> None:
    child = start(sys.executable, "-c", PYTHON, "crash", library)
    assert child.wait(10) == -signal.SIGSEGV
    evidence = forensics.crash_evidence(tmp_path, "SIGSEGV")
    assert evidence.faulting_tid == child.pid
    names = [frame.function for frame in evidence.stacks[0].frames]
    assert "raise" not in names
    assert "string_at" in names
    assert evidence.stacks[0].frames[names.index("<module>")].language == "python"
    assert evidence.remarks == ("the address that could not be reached is 0x10, a null pointer",)


def test_crash_of_python_without_the_library_shows_pythons_view(start: Start, tmp_path: Path) -> None:
    child = start(sys.executable, "-c", PYTHON, "crash")
    assert child.wait(10) == -signal.SIGSEGV
    evidence = forensics.crash_evidence(tmp_path, "SIGSEGV")
    assert evidence.faulting_tid == child.pid
    assert stack_with(evidence, "string_at").tid == child.pid


def test_killed_process_has_no_stack_and_the_remark_says_why(tmp_path: Path) -> None:
    evidence = forensics.crash_evidence(tmp_path, "SIGKILL")
    assert (evidence.stacks, evidence.signal) == ((), "SIGKILL")
    assert "memory" in evidence.remarks[0]


def test_a_forked_child_dumps_into_its_own_file(library: Path, tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(WORKER)!r})
import native_stacks
assert native_stacks.arm({str(library)!r}, "parent.txt") == ""
if os.fork() == 0:
    assert native_stacks.arm({str(library)!r}, "child.txt") == ""
    native_stacks.guard_thread()
    os.kill(os.getpid(), signal.SIGUSR2)
    os._exit(0)
os.wait()
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=20)
    assert (tmp_path / "parent.txt").read_text().count("\n") == 1
    assert "request SIGUSR2" in (tmp_path / "child.txt").read_text()


def test_a_library_that_cannot_be_loaded_is_a_reason_in_words(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(WORKER)!r}); import native_stacks; print(native_stacks.arm('/missing', 'x'))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert ran.stdout.startswith("/missing cannot be loaded: ")
    assert os.listdir(tmp_path) == []
