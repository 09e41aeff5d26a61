"""Lanes of a round: a process of every arm on cores of its own, which times one model after another."""

import contextlib
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from harness.checks.latency.model_round import FEWEST_FIRST_CALLS, FIRST_CALLS, TOGETHER, ModelRound
from harness.checks.latency.processes import BenchmarkProcess, ProcessLost
from harness.core.environment import Environment
from harness.core.machine import GpuState, MachineState
from harness.core.measurement import CONTROL, PairSample, Problem
from harness.core.plan import LatencyBudget
from harness.core.probe import ProbeRequest
from harness.machine import gpu
from harness.machine.cores import Placement, pin
from harness.machine.load import Watch

START_DEADLINE_S = 180.0
# The threads of an OpenMP pool spin for up to 11 ms after a call (docs/evidence.md#spin), on the cores of the next arm.
SPIN_S = 0.015
NO_WORKERS: Mapping[str, Path] = {}


def combined(states: Sequence[MachineState]) -> MachineState:
    return MachineState(
        cores=tuple(sorted(core for state in states for core in state.cores)),
        why_not_pinned=next((state.why_not_pinned for state in states if state.why_not_pinned), ""),
        stolen=max(state.stolen for state in states),
        others=max(state.others for state in states),
        quota_cores=states[0].quota_cores,
        quota_throttled_s=max(state.quota_throttled_s for state in states),
        gpu=next((state.gpu for state in states if state.gpu is not None), None),
    )


class ReadWriteLock:
    """Lets many go on at the same time, or one alone; whoever wants to be alone comes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = self._wanting = 0
        self._is_alone = False

    @contextlib.contextmanager
    def shared(self, while_waiting: Callable[[], contextlib.AbstractContextManager[None]]) -> Iterator[None]:
        """Wait for whoever is alone or wants to be; ``while_waiting`` is entered only if there is one."""
        with self._changed:
            if self._wanting:
                with while_waiting():
                    self._changed.wait_for(lambda: not self._wanting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for everyone else."""
        with self._changed:
            self._wanting += 1
            self._changed.wait_for(lambda: not self._sharing and not self._is_alone)
            self._is_alone = True
        try:
            yield
        finally:
            with self._changed:
                self._is_alone = False
                self._wanting -= 1
                self._changed.notify_all()


class Lane:
    """The processes of one lane, which are started anew for a model after one that broke them.

    ``starting``: the cores on which these start, all at once, before they are pinned; empty: their own; ``lock``: of
    all lanes of the round: callers at the same time need the cores of the others, who wait meanwhile.
    """

    def __init__(
        self,
        environments: Mapping[str, Environment],
        requests: Mapping[str, ProbeRequest],
        folder: Path,
        *,
        name: str,
        number: int,
        budget: LatencyBudget,
        deadline_s: float,
        placement: Placement,
        native: Mapping[str, Path],
        lock: ReadWriteLock,
        starting: Sequence[int] = (),
    ) -> None:
        self._environments = environments
        self._requests = requests
        self._folder = folder
        self._name = name
        self._number = number
        self._budget = budget
        self._deadline_s = deadline_s
        self._placement = placement
        self._starting = starting
        self._native = native
        self._lock = lock
        self._starts = 0
        self._processes: dict[str, BenchmarkProcess] = {}
        self._why_not_pinned = placement.why_not
        self._gpu_uuid: str | None = None
        self._gpu: GpuState | None = None
        self._watch = Watch(placement.cores)
        self.problems: dict[str, Problem] = {}
        self.why_not_started: Problem | None = None
        self.unreaped: list[str] = []

    def measure(
        self,
        models: deque[str],
        tick: Callable[[str], None],
        *,
        extras: bool,
        controls: Collection[str],
        chance: random.Random,
    ) -> dict[str, PairSample]:
        """Return the samples of the models that it took from the left of ``models``, which all lanes share.

        The calling thread stays on the lane's cores, where it disturbs no other lane. The control times ``controls``
        too; ``chance`` draws the order of blocks.
        """
        samples: dict[str, PairSample] = {}
        try:
            while True:
                try:
                    model = models.popleft()
                except IndexError:
                    break
                if not self._processes:
                    try:
                        self._start()
                    except ProcessLost as lost:
                        self.why_not_started = lost.problem
                        models.appendleft(model)
                        break
                tick(model)
                try:
                    arms = [arm for arm in self._processes if arm != CONTROL or model in controls]
                    samples[model] = self._benchmark(model, arms, chance, extras=extras, is_last=not models)
                except ProcessLost as lost:
                    self.problems[model] = lost.problem
                    self.stop()
        finally:
            self.stop()
        return samples

    def machine_state(self) -> MachineState:
        cores = () if self._why_not_pinned else self._placement.cores
        return self._watch.machine_state(cores=cores, why_not_pinned=self._why_not_pinned, gpu=self._gpu)

    def stop(self) -> None:
        """End the processes; whoever waits for one of them meets ``ProcessLost``."""
        processes, self._processes = self._processes, {}
        self.unreaped += [f"benchmark {process.folder}" for process in processes.values() if not process.close()]

    def _start(self) -> None:
        again = f"-{self._starts}" if self._starts else ""
        self._starts += 1
        cores = () if self._why_not_pinned else self._placement.cores
        for arm, environment in self._environments.items():
            folder = self._folder / f"{self._name}{again}-{arm}"
            request = self._requests[arm]
            native = self._native.get(request.side)
            first = cores and (self._starting or cores)
            self._processes[arm] = BenchmarkProcess(arm, environment, request, folder, cores=first, native=native)
            self._why_not_pinned = self._why_not_pinned or self._processes[arm].why_not_pinned
        if self._why_not_pinned and cores:  # all on the same cores, or none
            for process in self._processes.values():
                process.unpin()
        elif cores:
            pin(0, cores)
        for process in self._processes.values():
            self._gpu_uuid = process.answer(START_DEADLINE_S).get("gpu_uuid")
        if self._starting and not self._why_not_pinned:
            for process in self._processes.values():
                process.pin(cores)

    def _order(self, arm: str, **order: Any) -> dict[str, Any]:
        process = self._processes.get(arm)
        if process is None:
            raise ProcessLost(f"the {arm} process was ended", arm=arm)
        if order["order"] == TOGETHER:  # whose round holds the lock
            return process.order(self._deadline_s, **order)
        with self._lock.shared(partial(self._watch.inattentive, self._pids)):
            return process.order(self._deadline_s, **order)

    @property
    def _pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def _benchmark(
        self, model: str, arms: Sequence[str], chance: random.Random, *, extras: bool, is_last: bool
    ) -> PairSample:
        """Return the sample of one model; what fails once it is timed costs the processes, not the sample."""
        pool = max(request.profile.intra_op_threads for request in self._requests.values())
        model_round = ModelRound(
            model=model,
            arms=arms,
            order=self._order,
            chance=chance,
            budget=self._budget,
            sets=self._later_sets(model),
            callers=() if self._why_not_pinned else self._placement.first(self._budget.threads * pool),
            alone=self._lock.alone,
            graphs=any(request.device.graphs for request in self._requests.values()),
            first_calls=FIRST_CALLS if extras else FEWEST_FIRST_CALLS,
            pause_s=SPIN_S if pool > 1 else 0.0,
        )
        begin = time.monotonic()
        with self._watch.attentive(self._pids):
            model_round.time()
        spent_s = time.monotonic() - begin
        try:
            if extras:  # not watched: its callers leave the cores of the benchmark
                model_round.measure_extras()
            if is_last and self._on_gpu and not model_round.spoilt:
                self._look_at_gpu(model_round)
            if not model_round.spoilt:
                model_round.drop()
        except ProcessLost:
            model_round.spoilt = True
        if model_round.spoilt:
            self.stop()
        return PairSample(
            model=model,
            round=self._number,
            blocks=tuple(model_round.blocks),
            arms=model_round.samples(),
            spent_s=spent_s,
        )

    def _later_sets(self, model: str) -> list[str]:
        runs = [run for request in self._requests.values() for run in request.runs if run.artifact.model == model]
        later = [{name for name, _ in run.schedule[1:]} for run in runs]
        return [name for name, _ in runs[0].schedule[1:] if all(name in names for names in later)] if runs else []

    @property
    def _on_gpu(self) -> bool:
        return any(request.device.nvidia for request in self._requests.values())

    def _look_at_gpu(self, model_round: ModelRound) -> None:
        """Ask for the GPU while blocks run that are not recorded: while it idles nothing holds its clocks down."""
        with ThreadPoolExecutor(1, thread_name_prefix="gpu-look") as asking:
            machine_state = asking.submit(gpu.look, self._gpu_uuid, self._pids)
            while not machine_state.done():
                model_round.work()
        self._gpu = machine_state.result()
