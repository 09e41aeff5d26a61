"""Decides who initializes: the C++ worker, built against both releases side by side, or the Python one and why."""

from dataclasses import replace

from harness.errors import EnvironmentUnavailable
from harness.planning.scenarios import INITIALIZATIONS
from harness.runtime import pool
from harness.runtime.native_build import LibTorch, NativeBuild, build_worker
from harness.stages.facts import Effects, Facts

PYTHON_LOADS = (
    "loading was not concurrent: the Python worker's torch.jit.load holds the GIL from begin to end, so only first "
    "calls and warm-up overlapped"
)


def build_workers(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with the runtime that initializes.

    Raises:
        EnvironmentUnavailable: ``runtime = "libtorch"`` was asked for and one of the two cannot be built.
    """
    wanted = facts.plan.settings.runtime
    if not any(name in INITIALIZATIONS for name in facts.plan.scenarios):
        return facts
    if wanted == "python":
        return replace(facts, worker="python", worker_notes=(f'runtime = "python" was asked for; {PYTHON_LOADS}',))
    sides = list(effects.environments)
    effects.progress.stage("C++ worker", len(sides))

    def build(side: str) -> NativeBuild:
        name = effects.environments[side].name
        built = build_worker(
            LibTorch.from_mark(effects.runner.libtorch[side]),
            effects.native_folder,
            cuda=facts.plan.device == "cuda",
            tick=lambda: effects.progress.tick(f"{name}: compiling"),
        )
        effects.progress.step(f"{name}: {'cached' if built.cached else f'built in {built.seconds:.0f} s'}")
        return built

    builds = dict(zip(sides, pool.each(build, sides, jobs=len(sides)), strict=True))
    refused = [f"{effects.environments[side].name}: {item.why_not}" for side, item in builds.items() if not item.binary]
    if refused and wanted == "libtorch":
        raise EnvironmentUnavailable(f"no C++ worker for {refused[0]}", "or run with --runtime python")
    if refused:
        return replace(facts, worker="python", worker_notes=(f"no C++ worker ({refused[0]}); {PYTHON_LOADS}",))
    effects.runner.native.update({side: item.binary for side, item in builds.items() if item.binary is not None})
    return replace(facts, worker="libtorch")
