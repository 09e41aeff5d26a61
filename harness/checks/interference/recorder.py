"""Looks at all processes of the machine every 10 ms and at little cost: it disturbs what it measures otherwise.

Of each process the kernel is asked for the CPU time of all its threads by its CPU clock (``clock_getcpuclockid``: one
system call without a file, for any user's). Only where that stands still since the last look is ``stat`` read, once:
a thread that has not run since stays in the state that it is in. Processes that have done nothing for long are asked
in turn. PIDs that are new are those up to the newest one, which ``/proc/loadavg`` names.
"""

import contextlib
import os
import time
from collections.abc import Iterable

from harness.checks.interference.recording import Course, Part, ProcessCourse, Recording
from harness.core.errors import ConfigError
from harness.machine.proc_files import accounts_in, numbers_in, read, status_in

INTERVAL_NS = 10_000_000
# Of one core, for the looks.
MOST_OWN = 0.02
# The interval follows what looks cost: wider in proportion where it is more, narrower in such steps where it is half.
AIMED_AT, STEP = 0.9, 1.25
SETTLE_NS = 500_000_000
FIRST_SETTLE_NS = 100_000_000
# What has been idle for so long is asked at every so many looks only; of threads of the watched process, as well.
IDLE_NS = 10_000_000_000
IDLE_THREAD_NS = 1_000_000_000
TURNS, THREAD_TURNS = 20, 5
# Of more threads that are busy, some are asked at each look, in turn.
MOST_THREADS = 32
# A process that was not blocked where it stopped running is asked at one of eight such moments: a mask of their number.
SELDOM_BLOCKED = 7
# New processes are looked for at every so many looks.
NEW_TURNS = 3
# Of so many busy threads each is asked for its state at every look.
ASKED_THREADS = 4
# Threads of the watched process that begin are found after so long.
THREADS_NS = 100_000_000
# Threads of the kernel work for others, also for the watched process, and are not recorded; but for those that move,
# merge, evict or watch the pages of any process.
WALK_MEMORY = ("kcompactd", "kdamond", "khugepaged", "ksmd", "kswapd")
# To find the process that waits most.
CHOOSE_S = 2.0


def cpu_clock(pid: int) -> int:
    """Return the id of a process's CPU clock, as ``clock_getcpuclockid`` of the C library makes it."""
    return ~pid << 3 | 2


class _Process:
    """A process that is looked at, and what it had used at the last look."""

    __slots__ = ("blocked_ns", "clock", "course", "cpu_ns", "is_awake", "looked_ns", "ran_ns", "rests", "unasked")

    def __init__(self, course: ProcessCourse, since_ns: int) -> None:
        self.course = course
        self.clock = cpu_clock(course.pid)
        self.cpu_ns = 0 if course.is_new else time.clock_gettime_ns(self.clock)
        self.looked_ns = since_ns
        self.ran_ns = since_ns if course.is_new else since_ns - IDLE_NS
        self.blocked_ns = self.rests = 0
        self.unasked = 0
        self.is_awake = course.is_new

    def look(self, cpu_ns: int, since_ns: int, now_ns: int) -> None:
        """Record what it has used since a moment at which it had used ``self.cpu_ns``, or that it is blocked since."""
        if cpu_ns != self.cpu_ns:
            self.course.ran.append(Part(since_ns, now_ns, cpu_ns - self.cpu_ns))
            self.unblock(now_ns)
            self.cpu_ns, self.ran_ns, self.is_awake = cpu_ns, now_ns, True
        elif self.is_awake:
            self.is_awake = False
            self.rests += 1
            if self.rests & self.unasked:
                return
            status = status_in(read(f"/proc/{self.course.pid}/stat"))
            is_blocked = status is not None and status.state == "D"
            self.blocked_ns = since_ns if is_blocked else 0
            self.unasked = 0 if is_blocked else min(2 * self.unasked + 1, SELDOM_BLOCKED)
            if status is not None and status.name != self.course.name:  # another program since (exec)
                self.course.name, self.course.command = status.name, _command(self.course.pid) or status.name

    def unblock(self, now_ns: int) -> None:
        if self.blocked_ns:
            self.course.blocked.append(Part(self.blocked_ns, now_ns, now_ns - self.blocked_ns))
            self.blocked_ns = 0


class _Thread:
    """A thread of the watched process; its ``schedstat`` stays open."""

    __slots__ = (
        "accounts",
        "blocked_in",
        "blocked_ns",
        "course",
        "file",
        "folder",
        "is_awake",
        "looked_ns",
        "ran_ns",
        "text",
    )

    def __init__(self, folder: str, now_ns: int) -> None:
        self.folder = folder
        self.file = os.open(f"{folder}/schedstat", os.O_RDONLY)
        self.course = Course()
        self.text = os.pread(self.file, 80, 0)
        self.accounts = accounts_in(self.text)
        self.looked_ns = self.ran_ns = now_ns
        self.blocked_ns, self.blocked_in = 0, ""
        self.is_awake = True

    def look(self, now_ns: int, *, asks: bool) -> tuple[str, int] | None:
        """Return where it was blocked and for how long, where that has ended. Raises ``OSError``: it is gone.

        ``asks``: for its state also where it has just run; else a wait is seen that lasts from one look to the next.
        """
        text = os.pread(self.file, 80, 0)
        ended = None
        if text != self.text:
            accounts = accounts_in(text)
            ran_ns, waited_ns = accounts[0] - self.accounts[0], accounts[1] - self.accounts[1]
            span_ns = now_ns - self.looked_ns
            self.course.ran.append(Part(self.looked_ns, now_ns, ran_ns))
            if waited_ns > span_ns:  # counted when it ends, and begun before the last look
                end_ns = max(now_ns - ran_ns, self.looked_ns)
                self.course.waited.append(Part(end_ns - waited_ns, end_ns, waited_ns))
            elif waited_ns:
                self.course.waited.append(Part(self.looked_ns, now_ns, waited_ns))
            ended = self.unblock(max(now_ns - ran_ns - waited_ns, self.looked_ns))
            self.text, self.accounts, self.ran_ns, self.is_awake = text, accounts, now_ns, True
            if asks:
                self.ask(now_ns)
        elif self.is_awake:
            self.is_awake = False
            if not self.blocked_ns:
                self.ask(self.looked_ns)
        self.looked_ns = now_ns
        return ended

    def ask(self, since_ns: int) -> None:
        """See whether it is blocked, and where; it has not run since a moment. Raises ``OSError``: it is gone."""
        status = status_in(read(f"{self.folder}/stat"))
        if status is None or status.state in "ZX":
            raise ProcessLookupError(self.folder)
        if status.state == "D":
            self.blocked_ns = since_ns
            self.blocked_in = (read(f"{self.folder}/wchan") or b"").decode("ascii", "replace")

    def unblock(self, now_ns: int) -> tuple[str, int] | None:
        if not self.blocked_ns:
            return None
        lost_ns = now_ns - self.blocked_ns
        self.course.blocked.append(Part(self.blocked_ns, now_ns, lost_ns))
        self.blocked_ns = 0
        return self.blocked_in, lost_ns

    def close(self) -> None:
        os.close(self.file)


class Recorder:
    """Records the machine, and of process ``pid`` each thread.

    Raises:
        ConfigError: there is no such process.
    """

    def __init__(self, pid: int, *, interval_ns: int = INTERVAL_NS, most_own: float = MOST_OWN) -> None:
        self._interval_ns = self._least_ns = interval_ns
        self._most_own = most_own
        self._processes: dict[int, _Process] = {}
        self._often: list[_Process] = []
        self._seldom: list[_Process] = []
        self._threads: dict[int, _Thread] = {}
        self._often_threads: list[tuple[int, _Thread]] = []
        self._seldom_threads: list[tuple[int, _Thread]] = []
        watched = _course(pid, is_new=False)
        if watched is None:
            raise ConfigError(
                f"there is no process {pid}", "ps -e shows which there are; in a container, those of it only"
            )
        self._pid = pid
        self._recording = Recording(watched=watched)
        self._load = os.open("/proc/loadavg", os.O_RDONLY)

    def record(self, seconds: float) -> Recording:
        """Look for so many seconds, or until the watched process has ended."""
        recording = self._recording
        begin_ns = now_ns = self._last_ns = self._found_ns = time.monotonic_ns()
        self._newest = self._newest_pid()
        self._find(numbers_in("/proc"), now_ns, is_new=False)
        self._find_threads(now_ns)
        self._sort(now_ns)
        begin_cpu_ns = settled_cpu_ns = time.process_time_ns()
        settled_ns = threads_ns = now_ns
        settle_ns = now_ns + FIRST_SETTLE_NS
        next_ns = now_ns
        turn = 0
        try:
            while now_ns - begin_ns < 1e9 * seconds:
                recording.looks_ns.append(now_ns)
                self._look(now_ns, turn)
                self._last_ns = now_ns
                if now_ns - threads_ns >= THREADS_NS:
                    self._find_threads(now_ns)
                    threads_ns = now_ns
                if not self._threads:
                    recording.ended = True
                    break
                if now_ns >= settle_ns:
                    self._sort(now_ns)
                    cpu_ns = time.process_time_ns()
                    self._adapt((cpu_ns - settled_cpu_ns) / (now_ns - settled_ns))
                    settled_ns, settled_cpu_ns, settle_ns = now_ns, cpu_ns, now_ns + SETTLE_NS
                turn += 1
                next_ns = max(next_ns + self._interval_ns, time.monotonic_ns())
                time.sleep(max(next_ns - time.monotonic_ns(), 0) * 1e-9)
                now_ns = time.monotonic_ns()
        finally:
            recording.own_cpu_ns = time.process_time_ns() - begin_cpu_ns
            self._close(now_ns)
        return recording

    def _look(self, now_ns: int, turn: int) -> None:
        turns = 1 + len(self._often_threads) // MOST_THREADS
        often = self._often_threads[turn % turns :: turns]
        for tid, thread in (*often, *self._seldom_threads[turn % THREAD_TURNS :: THREAD_TURNS]):
            try:
                blocked = thread.look(now_ns, asks=len(self._often_threads) <= ASKED_THREADS)
            except OSError:
                if self._threads.pop(tid, None) is not None:
                    thread.close()
                    self._often_threads = [item for item in self._often_threads if item[0] != tid]
                    self._seldom_threads = [item for item in self._seldom_threads if item[0] != tid]
                continue
            if blocked is not None:
                where, lost_ns = blocked
                self._recording.blocked_in[where] = self._recording.blocked_in.get(where, 0) + lost_ns
        times = self._cpu_times()
        for process, cpu_ns in zip(self._often, times, strict=True):
            if process.is_awake or cpu_ns != process.cpu_ns:
                process.look(cpu_ns, self._last_ns, now_ns)
        woken = []
        for process in self._seldom[turn % TURNS :: TURNS]:
            with contextlib.suppress(OSError):
                process.look(time.clock_gettime_ns(process.clock), process.looked_ns, now_ns)
                process.looked_ns = now_ns
                if process.is_awake:
                    woken.append(process)
        if woken:
            self._often += woken
            self._seldom = [process for process in self._seldom if not process.is_awake]
        if turn % NEW_TURNS:
            return
        newest = self._newest_pid()
        if newest != self._newest:
            new = range(self._newest + 1, newest + 1) if newest > self._newest else numbers_in("/proc")
            self._often += self._find(new, now_ns, is_new=True)
            self._newest = newest
        self._found_ns = now_ns

    def _cpu_times(self) -> list[int]:
        """Return what those have used that are looked at every time, without those that are gone."""
        ask = time.clock_gettime_ns
        while True:
            try:
                return [ask(process.clock) for process in self._often]
            except OSError:
                self._often = [process for process in self._often if self._is_there(process)]

    def _is_there(self, process: _Process) -> bool:
        try:
            time.clock_gettime_ns(process.clock)
        except OSError:
            self._processes.pop(process.course.pid, None)
            return False
        return True

    def _newest_pid(self) -> int:
        return int(os.pread(self._load, 100, 0).split()[-1])

    def _find(self, pids: Iterable[int], now_ns: int, *, is_new: bool) -> list[_Process]:
        found = []
        for pid in pids:
            if pid in self._processes or pid in (self._pid, os.getpid()):
                continue
            try:
                time.clock_gettime_ns(cpu_clock(pid))  # refuses a thread
                course = _course(pid, is_new=is_new)
                if course is None:
                    continue
                process = _Process(course, self._found_ns if is_new else now_ns)
            except OSError:
                continue
            self._processes[pid] = process
            self._recording.others.append(course)
            found.append(process)
        return found

    def _find_threads(self, now_ns: int) -> None:
        with contextlib.suppress(OSError):
            for tid in numbers_in(f"/proc/{self._pid}/task"):
                if tid not in self._threads:
                    with contextlib.suppress(OSError):
                        thread = _Thread(f"/proc/{self._pid}/task/{tid}", now_ns)
                        self._threads[tid] = thread
                        self._recording.threads.append(thread.course)
                        self._often_threads.append((tid, thread))

    def _sort(self, now_ns: int) -> None:
        """Tell what is looked at every time from what is looked at in turn."""
        processes = [process for process in list(self._processes.values()) if self._is_there(process)]
        self._often = [process for process in processes if now_ns - process.ran_ns < IDLE_NS]
        for process in self._often:
            process.looked_ns = now_ns
        self._seldom = [process for process in processes if now_ns - process.ran_ns >= IDLE_NS]
        threads = self._threads.items()
        self._often_threads = [item for item in threads if now_ns - item[1].ran_ns < IDLE_THREAD_NS]
        self._seldom_threads = [item for item in threads if now_ns - item[1].ran_ns >= IDLE_THREAD_NS]

    def _adapt(self, own_share: float) -> None:
        aimed_at = AIMED_AT * self._most_own
        if own_share > aimed_at:
            self._interval_ns = int(self._interval_ns * own_share / aimed_at)
        elif own_share < self._most_own / 2:
            self._interval_ns = max(int(self._interval_ns / STEP), self._least_ns)

    def _close(self, now_ns: int) -> None:
        for process in self._processes.values():
            process.unblock(now_ns)
        for thread in self._threads.values():
            thread.unblock(now_ns)
            thread.close()
        os.close(self._load)
        self._recording.counts_waits = accounts_in(read("/proc/self/schedstat")) != (0, 0)


def _course(pid: int, *, is_new: bool) -> ProcessCourse | None:
    status = status_in(read(f"/proc/{pid}/stat"))
    if status is None or (status.is_kernel_thread and not status.name.startswith(WALK_MEMORY)):
        return None
    cpus: frozenset[int] = frozenset()
    with contextlib.suppress(OSError):
        cpus = frozenset(os.sched_getaffinity(pid))
    return ProcessCourse(
        pid=pid,
        name=status.name,
        command=_command(pid) or status.name,
        parent=status.parent,
        is_new=is_new,
        cpus=cpus,
    )


def _command(pid: int) -> str:
    """Return the command line without the folder of the program; empty where it has none (a thread of the kernel)."""
    program, _, arguments = (read(f"/proc/{pid}/cmdline") or b"").partition(b"\0")
    words = program.rpartition(b"/")[2] + b" " + arguments.replace(b"\0", b" ")
    return words.decode("utf-8", "replace").strip()


def waited_ns(pid: int) -> int:
    """Return for how long the threads of a process have waited for CPUs since they began."""
    try:
        threads = numbers_in(f"/proc/{pid}/task")
    except OSError:
        return 0
    return sum(accounts_in(read(f"/proc/{pid}/task/{tid}/schedstat"))[1] for tid in threads)


def most_waiting(seconds: float = CHOOSE_S) -> int:
    """Return the process that waits most for CPUs within so many seconds, without this one and the kernel's own.

    Raises:
        ConfigError: none of them waits.
    """
    before = {pid: waited_ns(pid) for pid in numbers_in("/proc")}
    time.sleep(seconds)
    grown = {pid: waited_ns(pid) - earlier for pid, earlier in before.items() if pid != os.getpid()}
    for pid in sorted(grown, key=lambda pid: grown[pid], reverse=True):
        status = status_in(read(f"/proc/{pid}/stat"))
        if status is not None and not status.is_kernel_thread and grown[pid]:
            return pid
    raise ConfigError(f"no process waited for a CPU within {seconds:g} s", "name the process: --pid PID")
