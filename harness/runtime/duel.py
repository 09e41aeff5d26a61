"""One round of a duel: fresh processes of both environments, alive at once, timed in short alternating blocks.

Only one process works at a time, in an order drawn anew for every turn, so that drift of the machine cancels; all on
the same cores, so that what differs between cores does. The processes are fresh, never forks of one zygote: those
would share one memory layout.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.domain.environment import Environment
from harness.domain.machine import GpuScene, MachineScene
from harness.domain.measurement import PairSample
from harness.domain.plan import LatencyBudget
from harness.domain.probe import ProbeRequest
from harness.runtime import gpu_look
from harness.runtime.affinity import ANYWHERE, Placement
from harness.runtime.bout import Bout
from harness.runtime.fighter import Fighter, FighterLost
from harness.runtime.machine import Watch

START_DEADLINE_S = 180.0
# The threads of an OpenMP pool spin for up to 11 ms after a call (docs/evidence.md#spin), on the cores of the next arm.
SPIN_S = 0.015


class Round:
    """One round: an arm per entry of ``requests``, every model in turn.

    Attributes:
        wall_ns: begin and end on the monotonic clock, once it was fought.
        problems: model -> why it has no sample, in words.
        unreaped: processes that could not be ended.
        scene: what the machine was like meanwhile; None before the end.

    Args:
        environments: arm -> environment; arms are ``old``, ``new`` and ``twin``.
        requests: arm -> a request whose ``runs`` are the models; of their schedules the first set is timed.
        number: index of the round; with ``folder`` it seeds the order of models and blocks.
        deadline_s: for any single order.
        placement: the cores of all processes.
    """

    def __init__(
        self,
        environments: Mapping[str, Environment],
        requests: Mapping[str, ProbeRequest],
        folder: Path,
        *,
        number: int,
        budget: LatencyBudget,
        deadline_s: float,
        placement: Placement = ANYWHERE,
    ) -> None:
        self._environments = environments
        self._requests = requests
        self._folder = folder
        self._number = number
        self._budget = budget
        self._deadline_s = deadline_s
        self._placement = placement
        self._random = random.Random(f"{folder} {number}")
        self._starts = 0
        self._fighters: dict[str, Fighter] = {}
        self._why_not_pinned = placement.why_not
        self._gpu_uuid: str | None = None
        self._gpu: GpuScene | None = None
        self.wall_ns = (0, 0)
        self.problems: dict[str, str] = {}
        self.scene: MachineScene | None = None
        self.unreaped: list[str] = []

    def fight(self, models: Sequence[str], tick: Callable[[str], None], *, extras: bool = True) -> list[PairSample]:
        """Return one sample per model, in their order; a model that fails is left out and named in ``problems``.

        The models come in an order drawn anew. What a process keeps from one to the next favours none of them then.

        Args:
            tick: told the name of each model when its turn comes.
            extras: whether the arms also tell of other input sets, of callers at the same time, of CUDA graphs.
        """
        samples: dict[str, PairSample] = {}
        begin_ns = time.monotonic_ns()
        watch = Watch(self._placement.cores)
        try:
            drawn = self._random.sample(models, len(models))
            for model in drawn:
                if not self._fighters:
                    self._start()
                tick(model)
                try:
                    samples[model] = self._duel(model, watch, extras=extras, is_last=model == drawn[-1])
                except FighterLost as lost:
                    self.problems[model] = str(lost)
                    self._stop()
        except FighterLost as lost:
            for model in models:
                if model not in samples:
                    self.problems.setdefault(model, f"the duel could not start: {lost}")
        finally:
            self._stop()
            self.wall_ns = (begin_ns, time.monotonic_ns())
            cores = () if self._why_not_pinned else self._placement.cores
            self.scene = watch.scene(cores=cores, why_not_pinned=self._why_not_pinned, gpu=self._gpu)
        return [samples[model] for model in models if model in samples]

    def _start(self) -> None:
        again = f"-{self._starts}" if self._starts else ""
        self._starts += 1
        cores = () if self._why_not_pinned else self._placement.cores
        for arm, environment in self._environments.items():
            folder = self._folder / f"round-{self._number}{again}-{arm}"
            self._fighters[arm] = Fighter(arm, environment, self._requests[arm], folder, cores=cores)
            self._why_not_pinned = self._why_not_pinned or self._fighters[arm].why_not_pinned
        if self._why_not_pinned and cores:  # all on the same cores, or none
            for fighter in self._fighters.values():
                fighter.unpin()
        for fighter in self._fighters.values():
            self._gpu_uuid = fighter.answer(START_DEADLINE_S).get("gpu_uuid")

    def _stop(self) -> None:
        fighters, self._fighters = self._fighters, {}
        self.unreaped += [f"duel {fighter.folder}" for fighter in fighters.values() if not fighter.close()]

    def _order(self, arm: str, **order: Any) -> dict[str, Any]:
        return self._fighters[arm].order(self._deadline_s, **order)

    def _duel(self, model: str, watch: Watch, *, extras: bool, is_last: bool) -> PairSample:
        """Return the sample of one model; what fails once it is timed costs the processes, not the sample."""
        pool = max(one.profile.intra_op_threads for one in self._requests.values())
        bout = Bout(
            model=model,
            arms=tuple(self._fighters),
            order=self._order,
            chance=self._random,
            budget=self._budget,
            sets=self._later_sets(model),
            callers=() if self._why_not_pinned else self._placement.first(self._budget.threads * pool),
            graphs=self._on_gpu,
            pause_s=SPIN_S if pool > 1 else 0.0,
        )
        begin = time.monotonic()
        with watch.attentive([fighter.pid for fighter in self._fighters.values()]):
            bout.time()
        spent_s = time.monotonic() - begin
        try:
            if extras:  # not watched: its callers leave the cores of the duel
                bout.measure_extras()
            if is_last and self._on_gpu and not bout.spoilt:
                self._look_at_gpu(bout)
            if not bout.spoilt:
                bout.drop()
        except FighterLost:
            bout.spoilt = True
        if bout.spoilt:
            self._stop()
        return PairSample(
            model=model,
            round=self._number,
            blocks=tuple(bout.blocks),
            arms=bout.samples(),
            spent_s=spent_s,
        )

    def _later_sets(self, model: str) -> list[str]:
        """Return the input sets after the first one that every arm has."""
        runs = [run for request in self._requests.values() for run in request.runs if run.artifact.model == model]
        later = [{name for name, _ in run.schedule[1:]} for run in runs]
        return [name for name, _ in runs[0].schedule[1:] if all(name in names for names in later)] if runs else []

    @property
    def _on_gpu(self) -> bool:
        return any(request.device != "cpu" for request in self._requests.values())

    def _look_at_gpu(self, bout: Bout) -> None:
        """Ask for the GPU while blocks run that are not recorded: while it idles nothing holds its clocks down."""
        pids = [fighter.pid for fighter in self._fighters.values()]
        with ThreadPoolExecutor(1, thread_name_prefix="gpu-look") as asking:
            scene = asking.submit(gpu_look.look, self._gpu_uuid, pids)
            while not scene.done():
                bout.work()
        self._gpu = scene.result()
