"""One misbehaviour each, by name: what a model, or the import of torch, may do to the process it runs in."""

import ctypes
import itertools
import os
import signal
import sys
import time
from typing import Callable, Dict, Iterator, List, Optional, Tuple

FOREVER_S = 10000
ACTIONS = {}  # type: Dict[str, Callable[[Optional[str]], None]]
left = []  # type: List[str]


def action(function: Callable[[Optional[str]], None]) -> Callable[[Optional[str]], None]:
    ACTIONS[function.__name__] = function
    return function


def act(name: Optional[str], note: Optional[str] = None) -> None:
    """Do what ``name`` says; nothing for None."""
    if name is not None:
        ACTIONS[name](note)


def leave_word(note: Optional[str], text: str) -> None:
    if note is not None:
        with open(note + ".part", "w") as stream:
            stream.write(text)
        os.rename(note + ".part", note)


def descriptors() -> Iterator[Tuple[int, str]]:
    for name in os.listdir("/proc/self/fd"):
        try:
            yield int(name), os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass


@action
def nap(note: Optional[str]) -> None:
    time.sleep(0.015)


@action
def hang_asleep(note: Optional[str]) -> None:
    time.sleep(FOREVER_S)


@action
def hang_busy(note: Optional[str]) -> None:
    while True:
        pass


@action
def work_for_a_while(note: Optional[str]) -> None:
    end_s = time.process_time() + 0.4
    while time.process_time() < end_s:
        pass


@action
def print_without_end(note: Optional[str]) -> None:
    while True:
        os.write(1, b"x" * 100_000)


@action
def hang_busy_holding_gil(note: Optional[str]) -> None:
    sum(itertools.repeat(0))  # one C loop: no bytecode, no signal check, no switch of threads


@action
def hang_asleep_holding_gil(note: Optional[str]) -> None:
    ctypes.PyDLL(None).sleep(FOREVER_S)


@action
def hang_deaf(note: Optional[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(FOREVER_S)


@action
def hang_stopped(note: Optional[str]) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@action
def hang_while_forking(note: Optional[str]) -> None:
    """A successor every few milliseconds, each with a new number, while the first one waits; a minute at the most.

    A test run that is ended kills nobody, and whoever forks on would have half of the machine for ever.
    """
    end = time.monotonic() + 60
    if os.fork() == 0:
        while time.monotonic() < end and os.fork() == 0:
            time.sleep(0.002)
        os._exit(0)
    time.sleep(FOREVER_S)


@action
def segfault(note: Optional[str]) -> None:
    ctypes.string_at(0)


@action
def abort(note: Optional[str]) -> None:
    os.abort()


@action
def killed_from_outside(note: Optional[str]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@action
def exit_politely(note: Optional[str]) -> None:
    sys.exit(3)


@action
def exit_at_once(note: Optional[str]) -> None:
    os._exit(3)


@action
def exit_as_if_well(note: Optional[str]) -> None:
    os._exit(0)


@action
def raise_error(note: Optional[str]) -> None:
    raise RuntimeError("planted\nsecond line")


@action
def raise_every_third_time(note: Optional[str]) -> None:
    """In the third process that comes here, the sixth, ..."""
    assert note is not None
    with open(note, "a+") as stream:
        stream.write("x")
        stream.flush()
        if stream.tell() % 3 == 0:
            raise RuntimeError("planted, at times")


@action
def raise_once_there_is_word(note: Optional[str]) -> None:
    while note is not None and not os.path.exists(note):
        time.sleep(0.01)
    raise RuntimeError("planted, late")


@action
def leave_an_error(note: Optional[str]) -> None:
    """For whoever asks in this process afterwards."""
    left.append("planted, by an earlier model")


@action
def raise_what_was_left(note: Optional[str]) -> None:
    for message in left:
        raise RuntimeError(message)


@action
def raise_without_message(note: Optional[str]) -> None:
    raise ImportError


@action
def raise_a_warning(note: Optional[str]) -> None:
    raise UserWarning("Failed to initialize NumPy")


@action
def raise_memory_error(note: Optional[str]) -> None:
    raise MemoryError


@action
def raise_allocator_error(note: Optional[str]) -> None:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")


@action
def print_garbage(note: Optional[str]) -> None:
    print('{"ready": fal')
    os.write(1, b"\xff\x00garbage without end")


@action
def flood_stderr(note: Optional[str]) -> None:
    for _ in range(20):
        os.write(2, b"x" * 1000000)


@action
def close_stdin(note: Optional[str]) -> None:
    os.close(0)


@action
def close_everything(note: Optional[str]) -> None:
    os.closerange(0, 4096)


@action
def half_an_event(note: Optional[str]) -> None:
    for descriptor, target in descriptors():
        if target.endswith("events.jsonl"):
            os.write(descriptor, b'{"ev":"end","phase":"ca')


@action
def half_an_event_then_die(note: Optional[str]) -> None:
    half_an_event(note)
    os._exit(3)


@action
def strange_events(note: Optional[str]) -> None:
    for descriptor, target in descriptors():
        if target.endswith("events.jsonl"):
            os.write(descriptor, b'5\n[]\nnull\n{"ev":"end"}\n{"ev":"begin","ns":1}\n{"ev":7,"ns":1}\n\xff\n')


@action
def scribble_on_pipes(note: Optional[str]) -> None:
    """Write to every pipe that can be found: the answers of a benchmark's process go through one."""
    for descriptor, target in descriptors():
        if target.startswith("pipe:"):
            try:
                os.write(descriptor, b"what is this?\n")
            except OSError:
                pass


@action
def fork_once_and_go_on(note: Optional[str]) -> None:
    os.fork()


@action
def leave_grandchild(note: Optional[str]) -> None:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(FOREVER_S)
    leave_word(note, str(pid))


@action
def leave_grandchild_and_hang(note: Optional[str]) -> None:
    leave_grandchild(note)
    time.sleep(FOREVER_S)


@action
def leave_grandchild_in_own_session(note: Optional[str]) -> None:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        leave_word(note, str(os.getpid()))
        time.sleep(FOREVER_S)
    while note is not None and not os.path.exists(note):
        time.sleep(0.01)


def start_daemon(note: Optional[str]) -> None:
    """As daemons start: the parent of a process in a session of its own ends, and so nobody knows it any more."""
    assert note is not None
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            leave_word(note, str(os.getpid()))
            time.sleep(FOREVER_S)
        os._exit(0)
    os.waitpid(pid, 0)
    while not os.path.exists(note):
        time.sleep(0.01)


@action
def leave_a_daemon(note: Optional[str]) -> None:
    start_daemon(note)


@action
def leave_daemons_of_daemons(note: Optional[str]) -> None:
    """Each starts the next one; they end in no order."""
    assert note is not None
    pid = os.fork()
    if pid == 0:
        for depth in ("1", "2", ""):
            os.setsid()
            leave_word(note + depth, str(os.getpid()))
            if os.fork():
                time.sleep(FOREVER_S)
        time.sleep(FOREVER_S)
    while not os.path.exists(note):
        time.sleep(0.01)


@action
def leave_a_daemon_and_crash(note: Optional[str]) -> None:
    start_daemon(note)
    segfault(note)


@action
def leave_a_daemon_and_hang(note: Optional[str]) -> None:
    start_daemon(note)
    hang_asleep(note)


@action
def kill_zygote_once(note: Optional[str]) -> None:
    assert note is not None
    if not os.path.exists(note):
        leave_word(note, "done")
        kill_zygote(note)


@action
def kill_zygote(note: Optional[str]) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOREVER_S)


@action
def stop_zygote_once(note: Optional[str]) -> None:
    assert note is not None
    if not os.path.exists(note):
        leave_word(note, "done")
        os.kill(os.getppid(), signal.SIGSTOP)


DEEP = "[" * 100000 + "\n"


@action
def write_by_bare_names(note: Optional[str]) -> None:
    """Spoil what the worker is writing, if it lies where a bare name leads."""
    for name in ("events.jsonl", "outputs/tensors.jsonl", "stacks.txt", "request.json"):
        if os.path.exists(name):
            append(name, DEEP)


@action
def spoil_event_log(note: Optional[str]) -> None:
    append("../events.jsonl", DEEP + '{"ev":"mark","name":"x","data":{"\\ud800":"\\udfff"},"ns":1}\n')


@action
def spoil_record(note: Optional[str]) -> None:
    append("../outputs/tensors.jsonl", DEEP)


@action
def forge_mark(note: Optional[str]) -> None:
    append("../events.jsonl", '{"ev":"mark","name":"numerics","data":[1],"ns":1}\n')


@action
def forge_completed(note: Optional[str]) -> None:
    append("../probe.zip", "no zip file")


def append(path: str, text: str) -> None:
    with open(path, "a") as stream:
        stream.write(text)
