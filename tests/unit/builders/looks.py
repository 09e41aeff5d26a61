"""Snapshots made by hand, for the rules that read them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.core.probe import Deadline
from harness.checks.hang.activity import ChildSample, Snapshot, ThreadSample
from harness.checks.hang.proof import Proven, History, Progress
from harness.probing.events import OpenPhase

S = 1_000_000_000
PATIENT = Deadline(load_s=60.0, call_s=60.0, total_s=240.0)


def thread(tid: int, **changes: object) -> ThreadSample:
    """Return a thread that has stood at a lock since ever."""
    return replace(ThreadSample(tid=tid, state="S", runs=5, waits_for="a lock"), **changes)  # type: ignore[arg-type]


def opened(phase: str = "call", tid: int = 11, *, thread: int = 0, begin_s: float = 0.0, model: str = "m") -> OpenPhase:
    """Return an open phase."""
    return OpenPhase(
        phase=phase,
        model=model,
        thread=thread,
        begin_ns=int(begin_s * S),
        ident=tid,
        tid=tid,
        input_set=None,
        call=None,
    )


Sample = Callable[[float], ThreadSample]


def still(tid: int) -> Sample:
    """Return a thread that stands at a lock all the time."""
    return lambda _: thread(tid)


def steadily(tid: int, *, cpu: float = 0.0, queued: float = 0.0, runs: float = 0.0, **fixed: object) -> Sample:
    """Return a thread that uses and waits for a CPU for these shares of the time, and runs so often in a second."""

    def at(second: float) -> ThreadSample:
        return thread(
            tid,
            on_cpu_ns=int(cpu * second * S),
            run_delay_ns=int(queued * second * S),
            runs=None if fixed.get("runs_unknown") else 5 + int(runs * second),
            **{key: value for key, value in fixed.items() if key != "runs_unknown"},
        )

    return at


class Film:
    """What a watchdog sees of a process: threads and progress as functions of the time in seconds.

    Attributes:
        leaves: thread id -> when the thread ends.
        pressure: the share of the time in which somebody on the machine waits for a CPU.
    """

    def __init__(
        self,
        threads: Iterable[Sample],
        phases: Iterable[OpenPhase],
        *,
        deadline: Deadline = PATIENT,
        progress: Callable[[float], float] = lambda _: 0.0,
        beats: Callable[[float], Mapping[int, float]] = lambda _: {},
        children: Callable[[float], tuple[ChildSample, ...]] = lambda _: (),
        io_bytes: Callable[[float], int | None] = lambda _: 0,
        cpus: int = 2,
        pressure: float | None = None,
        notes: frozenset[str] = frozenset(),
    ) -> None:
        self.threads = tuple(threads)
        self.phases = tuple(phases)
        self.history = History(0, deadline)
        self.progress, self.beats, self.children, self.io_bytes = progress, beats, children, io_bytes
        self.cpus, self.notes, self.pressure = cpus, notes, pressure
        self.leaves: dict[int, float] = {}

    def run(self, until_s: float, *, step_s: float = 0.2) -> tuple[float, Proven] | None:
        """Return when something was found, and what; None if all was well until then."""
        for step in range(1, int(until_s / step_s) + 1):
            second = step * step_s
            now_ns = int(second * S)
            progress = Progress(
                phases=self.phases,
                progress_ns=int(self.progress(second) * S),
                beat_ns={index: int(at * S) for index, at in self.beats(second).items()},
            )
            detailed = self.history.wants_detail(progress, now_ns)
            samples = [sample(second) for sample in self.threads]
            samples = [
                sample
                for sample in samples
                if sample.started_ns <= now_ns and second < self.leaves.get(sample.tid, float("inf"))
            ]
            if not detailed:
                samples = [replace(sample, waits_for="") for sample in samples]
            self.history.add(
                progress,
                Snapshot(
                    ns=now_ns,
                    pid=10,
                    threads={sample.tid: sample for sample in samples},
                    children=self.children(second) if detailed else (),
                    io_bytes=self.io_bytes(second) if detailed else None,
                    cpus=self.cpus,
                    pressure_ns=None if self.pressure is None else int(self.pressure * now_ns),
                    detailed=detailed,
                    notes=self.notes,
                ),
            )
            found = self.history.judge(progress, now_ns)
            if found is not None:
                return second, found
        return None
