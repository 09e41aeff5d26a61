"""Programs that hang, or only seem to, each in one way; they write their events by hand.

Usage: still.py RUN_DIR NAME [SECONDS]. Each ``NAME`` has a sick form, that never ends, and a healthy twin, that ends
after SECONDS and says goodbye.
"""

import ctypes
import faulthandler
import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

FOREVER_S = 3600.0
# So long helpers are idle before anything is asked of the process: seen by every watcher.
IDLE_S = 0.7
RUN_DIR = Path(sys.argv[1]) if __name__ == "__main__" else Path()
SECONDS = float(sys.argv[3]) if __name__ == "__main__" and len(sys.argv) > 3 else FOREVER_S
PROGRAMS: dict[str, Callable[[], None]] = {}


def program(function: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS[function.__name__] = function
    return function


def emit(ev: str, **fields: object) -> None:
    line = json.dumps({**fields, "ev": ev, "ns": time.monotonic_ns()}) + "\n"
    os.write(EVENTS, line.encode())


@contextmanager
def phase(name: str, model: str = "", thread: int = 0, **fields: object) -> Iterator[None]:
    ident, tid = threading.get_ident(), threading.get_native_id()
    emit("begin", phase=name, model=model, thread=thread, ident=ident, tid=tid, **fields)
    yield
    emit("end", phase=name, model=model, thread=thread, **fields)


def compute(seconds: float) -> None:
    """Use so much CPU time, in this thread."""
    limit = time.thread_time() + seconds
    while time.thread_time() < limit:
        pass


def together(*targets: Callable[[], None]) -> None:
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def another(code: str, **options: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", code], **options)  # type: ignore[call-overload,no-any-return]


# Blocked.


@program
def abba() -> None:
    """Two threads, each with the lock that the other one wants; the healthy twin lets go in time."""
    locks = threading.Lock(), threading.Lock()
    both = threading.Barrier(2)

    def load(me: int) -> None:
        with phase("load", f"m{me}", me), locks[me]:
            both.wait()
            if locks[1 - me].acquire(timeout=-1 if SECONDS == FOREVER_S else SECONDS):
                locks[1 - me].release()

    together(lambda: load(0), lambda: load(1))


@program
def inherited_gil() -> None:
    """One thread waits in C for a mutex with the global lock in its hands; who has the mutex wants that lock."""
    libc, holding = ctypes.PyDLL(None), threading.Event()
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)

    def load() -> None:
        with phase("load", "owner", 0):
            holding.set()
            time.sleep(0.2)  # here it lets the global lock go; then it needs it to free the mutex
            if SECONDS != FOREVER_S:
                libc.pthread_mutex_unlock(mutex)
            compute(0.3)
            libc.pthread_mutex_unlock(mutex)

    def call() -> None:
        holding.wait()
        with phase("call", "waiter", 1, set="example", call=0):
            if SECONDS != FOREVER_S:
                time.sleep(SECONDS)
            libc.pthread_mutex_lock(mutex)

    together(load, call)


@program
def polls() -> None:
    """Two threads that look every 50 ms whether the other one is ready, and never are."""
    done = threading.Event()

    def load(me: int) -> None:
        with phase("load", f"m{me}", me):
            begin = time.monotonic()
            while not done.wait(0.05) and time.monotonic() - begin < SECONDS:
                pass

    together(lambda: load(0), lambda: load(1))


@program
def stopped() -> None:
    with phase("call", "m", set="example", call=1):
        os.kill(os.getpid(), signal.SIGSTOP)


@program
def own_pipe() -> None:
    """A pipe whose both ends are in this process; in the healthy twin another thread at work writes."""
    reader, writer = os.pipe()

    def read() -> None:
        with phase("load", "m"):
            os.read(reader, 1)

    def write() -> None:
        with phase("load", "other", 1):
            time.sleep(SECONDS)
        os.write(writer, b"x")

    together(read, *([write] if SECONDS != FOREVER_S else []))


@program
def own_pipe_of_a_timer() -> None:
    """The same, and a helper that sleeps since long will write: from outside it looks idle, and the phase blocked."""
    reader, writer = os.pipe()
    threading.Timer(SECONDS + IDLE_S, os.write, (writer, b"x")).start()
    time.sleep(IDLE_S)
    with phase("load", "m"):
        os.read(reader, 1)


@program
def forked_processes() -> None:
    """Of two forked processes one ends at once, and one waits for a lock that nobody frees; the healthy one gives up."""
    lock = threading.Lock()
    lock.acquire()

    def call() -> None:
        with phase("call", "m", 1, set="example", call=0):
            lock.acquire(timeout=-1 if SECONDS == FOREVER_S else SECONDS)

    works: tuple[Callable[[], None], ...] = (call, lambda: None)
    forked = []
    for thread, work in enumerate(works, 1):
        forked.append(os.fork())
        if forked[-1] == 0:
            emit("forked", thread=thread, pid=os.getpid())
            work()
            os._exit(0)
    for pid in forked:
        with phase("barrier"):
            os.waitpid(pid, 0)


@program
def loads_while_serving() -> None:
    """A thread serves and beats; the one that loads waits for a lock that nobody frees."""
    lock, done = threading.Lock(), threading.Event()
    lock.acquire()

    def serve() -> None:
        with phase("serve", "server", 0):
            while not done.is_set():
                compute(0.01)
                time.sleep(0.1)
                emit("beat", model="server", thread=0, calls=1)

    def load() -> None:
        with phase("load", "loader", 1):
            if SECONDS == FOREVER_S:
                lock.acquire()
            time.sleep(SECONDS)
        done.set()

    together(serve, load)


@program
def without_a_phase() -> None:
    """Between two phases the main thread waits for a thread that waits for a lock."""
    with phase("load", "m"):
        pass
    lock = threading.Lock()
    lock.acquire()
    together(lambda: None if lock.acquire(timeout=-1 if SECONDS == FOREVER_S else SECONDS) else None)


@program
def alone_at_the_barrier() -> None:
    barrier = threading.Barrier(2)
    if SECONDS != FOREVER_S:
        threading.Timer(SECONDS, barrier.wait).start()

    def wait() -> None:
        with phase("barrier"):
            barrier.wait()

    together(wait)


@program
def beside_an_idle_pool() -> None:
    """A deadlock in a process with idle helpers: some wait, one polls a timer, one polls the network."""
    lock = threading.Lock()
    lock.acquire()
    ours, theirs = socket.socketpair()

    def listen() -> None:
        ours.settimeout(1.5)
        while True:
            try:
                ours.recv(1)
            except TimeoutError:
                continue

    def tick() -> None:
        while True:
            time.sleep(0.02)

    for helper in (*[lambda: threading.Event().wait()] * 6, tick, listen):
        threading.Thread(target=helper, daemon=True).start()
    time.sleep(IDLE_S)
    with phase("load", "m"):
        lock.acquire(timeout=-1 if SECONDS == FOREVER_S else SECONDS)


@program
def beside_the_helpers_of_cuda() -> None:
    """A deadlock in a phase that has started threads as CUDA's driver does: they poll, some with a limit."""
    libc, lock = ctypes.CDLL(None), threading.Lock()
    lock.acquire()

    def serve_events(name: bytes, limit_ms: int | None) -> None:
        libc.prctl(15, name, 0, 0, 0)  # PR_SET_NAME
        ours, _theirs = os.openpty()  # polled like a device of the driver
        waiting = select.poll()
        waiting.register(ours, select.POLLIN)
        while True:
            waiting.poll(limit_ms)

    with phase("load", "m"):
        for name, limit_ms in ((b"cuda-EvtHandlr", None), (b"cuda00001400006", None), (b"unnamed", 100)):
            threading.Thread(target=serve_events, args=(name, limit_ms), daemon=True).start()
        lock.acquire(timeout=-1 if SECONDS == FOREVER_S else SECONDS)


@program
def retries() -> None:
    """A loop that looks every second whether it may go on."""
    done, begin = threading.Event(), time.monotonic()
    with phase("load", "m"):
        while not done.wait(1.0) and time.monotonic() - begin < SECONDS:
            pass


# Waits that something outside of the process may end.


@program
def sleeps() -> None:
    with phase("load", "m"):
        time.sleep(SECONDS)


@program
def waits_once_with_a_limit() -> None:
    with phase("load", "m"):
        threading.Event().wait(SECONDS)


@program
def hears_nothing() -> None:
    ours, theirs = socket.socketpair()
    if SECONDS != FOREVER_S:
        threading.Timer(SECONDS, theirs.send, (b"x",)).start()
    with phase("load", "m"):
        ours.recv(1)


@program
def polls_a_socket() -> None:
    ours, _theirs = socket.socketpair()
    with phase("load", "m"):
        waiting = select.poll()
        waiting.register(ours, select.POLLIN)
        waiting.poll(1000 * SECONDS)


@program
def reads_from_another_process() -> None:
    writer = another(f"import time; time.sleep({SECONDS}); print()", stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with phase("load", "m"):
        writer.stdout.read(1)


@program
def waits_for_a_child() -> None:
    child = another(f"import time; time.sleep({SECONDS})")
    with phase("load", "m"):
        child.wait()


@program
def child_computes() -> None:
    """The phase waits for a lock of its own; the work is done by a child process."""
    child = another(f"import time\nlimit = time.monotonic() + {SECONDS}\nwhile time.monotonic() < limit: pass")
    lock = threading.Lock()
    lock.acquire()

    def free() -> None:
        child.wait()
        lock.release()

    threading.Thread(target=free, daemon=True).start()
    with phase("load", "m"):
        lock.acquire()


@program
def helper_computes() -> None:
    """The phase waits for a lock of its own; the work is done by a thread of which the worker says nothing."""
    lock = threading.Lock()
    lock.acquire()

    def free() -> None:
        compute(SECONDS)
        lock.release()

    threading.Thread(target=free, daemon=True).start()
    with phase("load", "m"):
        lock.acquire()


def held_elsewhere(path: Path) -> None:
    """Have a child process lock ``path`` for SECONDS."""
    path.touch()
    code = f"import fcntl, time; held = open({str(path)!r}); fcntl.flock(held, 2); print(flush=True); time.sleep({SECONDS})"
    holder = another(code, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()


@program
def waits_for_a_file_lock() -> None:
    path = RUN_DIR / "lock"
    held_elsewhere(path)
    with phase("load", "m"):
        fcntl.flock(path.open(), fcntl.LOCK_EX)


# The phase waits for a lock of its own; a helper, asked to, waits outside for its sake.


def asked(wait: Callable[[], object]) -> None:
    with phase("load", "m"), ThreadPoolExecutor(1) as pool:
        pool.submit(wait).result()


@program
def helper_sleeps() -> None:
    asked(lambda: time.sleep(SECONDS))


@program
def helper_wakes_up_in_a_pool_of_old() -> None:
    """The same with a pool that has been idle for some time before the phase."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        time.sleep(IDLE_S)
        with phase("load", "m"):
            pool.submit(time.sleep, SECONDS).result()


@program
def helper_hears_nothing() -> None:
    ours, theirs = socket.socketpair()
    speaker = another(
        f"import os, time; time.sleep({SECONDS}); os.write({theirs.fileno()}, b'x')", pass_fds=[theirs.fileno()]
    )
    asked(lambda: ours.recv(1))
    speaker.wait()


@program
def helper_waits_for_a_child() -> None:
    asked(lambda: another(f"import time; time.sleep({SECONDS})").wait())


@program
def helper_looks_after_a_child() -> None:
    """``subprocess`` waits with a limit by asking twenty times in a second."""
    asked(lambda: another(f"import time; time.sleep({SECONDS})").wait(FOREVER_S))


@program
def helper_reads_from_another_process() -> None:
    writer = another(f"import time; time.sleep({SECONDS}); print()", stdout=subprocess.PIPE)
    assert writer.stdout is not None
    asked(lambda: writer.stdout and writer.stdout.read(1))


@program
def helper_waits_for_a_file_lock() -> None:
    path = RUN_DIR / "lock"
    held_elsewhere(path)
    asked(lambda: fcntl.flock(path.open(), fcntl.LOCK_EX))


@program
def helper_waits_with_a_limit() -> None:
    asked(lambda: threading.Event().wait(SECONDS))


@program
def retries_until_a_helper_is_done() -> None:
    """It looks every second whether the helper, that waits outside, has done what it was asked for."""
    done = threading.Event()

    def wait() -> None:
        time.sleep(SECONDS)
        done.set()

    with phase("load", "m"):
        threading.Thread(target=wait).start()
        while not done.wait(1.0):
            pass


@program
def retries_until_a_child_is_done() -> None:
    with phase("load", "m"):
        child = another(f"import time; time.sleep({SECONDS})")
        while child.poll() is None:
            threading.Event().wait(1.0)


@program
def writes_to_disk() -> None:
    limit = time.monotonic() + SECONDS
    with phase("save", "m"), (RUN_DIR / "big").open("wb", buffering=0) as stream:
        while time.monotonic() < limit:
            stream.seek(0)
            stream.write(bytes(65536))
            os.fsync(stream.fileno())
            time.sleep(0.05)


# Work.


@program
def computes() -> None:
    with phase("call", "m", set="example", call=0):
        compute(SECONDS)


@program
def livelock() -> None:
    """Two threads run, each giving way to the other one."""

    def load(me: int) -> None:
        with phase("load", f"m{me}", me):
            compute(SECONDS)

    together(lambda: load(0), lambda: load(1))


@program
def slow_but_progressing() -> None:
    limit = time.monotonic() + SECONDS
    call = 0
    while time.monotonic() < limit:
        with phase("call", "m", set="example", call=call):
            time.sleep(0.3)
        call += 1


@program
def overtaken() -> None:
    """One call takes long, those of another thread go on meanwhile."""

    def long_call() -> None:
        with phase("call", "long", 0, set="example", call=0):
            time.sleep(SECONDS)

    together(long_call, slow_but_progressing_beside)


def slow_but_progressing_beside() -> None:
    limit = time.monotonic() + min(SECONDS, FOREVER_S)
    while time.monotonic() < limit:
        with phase("call", "short", 1, set="example", call=0):
            time.sleep(0.1)


@program
def slow_initializations() -> None:
    """Twenty models in twenty threads, and one lock that all want: whoever has it sleeps, computes or reads.

    The first one keeps it for SECONDS, in silence, while the nineteen others stand.
    """
    lock, chance = threading.Lock(), random.Random(os.getpid())
    first = threading.Event()

    def work(seconds: float) -> None:
        limit = time.monotonic() + seconds
        kind = chance.randrange(3)
        while time.monotonic() < limit:
            if kind == 0:
                time.sleep(max(limit - time.monotonic(), 0))
            elif kind == 1:
                compute(0.02)
                time.sleep(0.1)
            else:
                Path(sys.executable).read_bytes()
                time.sleep(0.1)

    def initialize(me: int) -> None:
        with phase("load", f"m{me}", me):
            if me:
                first.wait()
            with lock:
                first.set()
                work(chance.uniform(0, SECONDS / 50) if me else SECONDS)
        for call in range(3):
            with phase("call", f"m{me}", me, set="example", call=call):
                time.sleep(0.02)

    together(*(lambda me=me: initialize(me) for me in range(20)))


if __name__ == "__main__":
    EVENTS = os.open(RUN_DIR / "events.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    faulthandler.register(signal.SIGUSR1, file=(RUN_DIR / "stacks.txt").open("a"), all_threads=True)
    emit("hello", protocol=2, pid=os.getpid(), python="3")
    PROGRAMS[sys.argv[2]]()
    emit("bye")
    os._exit(0)
