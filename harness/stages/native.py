"""Decides who initializes: the C++ worker, built against both releases side by side, or the Python one and why."""

from dataclasses import replace

from harness.errors import EnvironmentUnavailable
from harness.planning.scenarios import INITIALIZATIONS
from harness.runtime import native_builds
from harness.runtime.native_build import LibTorch
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
    effects.progress.stage("C++ worker", len(effects.environments))
    name = {side: environment.name for side, environment in effects.environments.items()}
    builds = native_builds.build_workers(
        {side: LibTorch.from_mark(effects.runner.libtorch[side]) for side in name},
        effects.native_folder,
        cuda=facts.plan.device == "cuda",
        report=lambda side: effects.progress.tick(f"{name[side]}: compiling"),
    )
    for side, built in builds.items():
        how = "cached" if built.cached else f"built in {built.seconds:.0f} s"
        effects.progress.step(f"{name[side]}: {how if built.binary is not None else 'cannot be built'}")
    refused = [f"{name[side]}: {built.why_not}" for side, built in builds.items() if built.binary is None]
    if refused and wanted == "libtorch":
        raise EnvironmentUnavailable(f"no C++ worker for {refused[0]}", "or run with --runtime python")
    if refused:
        return replace(facts, worker="python", worker_notes=(f"no C++ worker ({refused[0]}); {PYTHON_LOADS}",))
    effects.runner.native.update({side: built.binary for side, built in builds.items() if built.binary is not None})
    return replace(facts, worker="libtorch")
