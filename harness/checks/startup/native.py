"""Decides which worker initializes: the C++ one, built against both releases, or the Python one, and why.

And which models are brought up in a Python server too: those whose loading or calls may wait for another thread.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.predict import TORCHS_CLASSES
from harness.core.archive import TORCHS_MODULES, ArchiveFacts
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.prediction import InspectedFile
from harness.core.probe import TORCH_LOAD
from harness.environments import native
from harness.environments.native import LibTorch, NativeBuild
from harness.machine.pool import Background
from harness.probing.facts import Effects, Exported, Probed, Provisioned, WithWorker, profile_of
from harness.probing.requests import floor_deadline
from harness.serving.scenarios import INITIALIZATIONS

PYTHON_LOADS = (
    "loading was not concurrent: the Python worker's torch.jit.load holds the GIL from begin to end, so only first "
    "calls and warm-up overlapped"
)
MEND = "mend that"
WAITING = frozenset({"prim::fork", "aten::wait"})
NOTHING_READ: Mapping[str, InspectedFile] = {}


Build = Callable[..., dict[str, NativeBuild]]
Companions = Callable[[LibTorch, Path], tuple[str, ...]]


def begin_builds(
    facts: Provisioned, effects: Effects, build: Build = native.build_workers
) -> Background[dict[str, NativeBuild]]:
    """Begin to compile the C++ workers, beside what the run does meanwhile; nothing where the plan needs none."""
    needed = _needs_worker(facts, effects) and facts.plan.settings.runtime != "python"
    needed = needed and facts.plan.runs_on.cpp and not _loads_as_python_alone_can(facts, effects)
    libtorch = _libtorch(effects) if needed else {}
    folder, cuda = effects.native_folder, facts.plan.runs_on.nvidia
    return Background(lambda cancelled: build(libtorch, folder, cuda=cuda, cancelled=cancelled))


def _needs_worker(facts: Provisioned, effects: Effects) -> bool:
    plan = facts.plan
    times = plan.is_timed and "old" in effects.environments and any(model.timed for model in plan.models)
    return times or any(name in INITIALIZATIONS for name in plan.scenarios)


def _loads_as_python_alone_can(facts: Provisioned, effects: Effects) -> bool:
    return any(profile_of(side, facts.plan).load == TORCH_LOAD for side in effects.environments)


def _libtorch(effects: Effects) -> dict[str, LibTorch]:
    return {side: LibTorch.from_mark(effects.runner.libtorch[side]) for side in effects.environments}


def build_workers(
    facts: Probed,
    effects: Effects,
    predictions: Mapping[str, InspectedFile] = NOTHING_READ,
    begun: Background[dict[str, NativeBuild]] | None = None,
    *,
    build: Build = native.build_workers,
    companions: Companions = native.library_companions,
) -> WithWorker:
    """Return the facts with the runtime that initializes, and that is timed, and the models that Python serves too.

    ``begun``: by ``begin_builds``; without it they are compiled now. Raises ``EnvironmentUnavailable``: the C++ worker
    was asked for by name and one of the two cannot be built, or, asked for alone, lacks what a library registers from
    Python; ``ConfigError``: it was asked for by name, and archives are to be loaded by torch.load, or it has no such
    device.
    """
    worker, why = _worker(facts, effects, predictions, begun, build=build, companions=companions)
    return WithWorker(
        **Probed.known(facts),
        worker=worker,
        worker_notes=(why,) if why else (),
        for_python=frozenset(_served_by_python(facts, predictions)),
        predictions=predictions,
    )


def _worker(
    facts: Probed,
    effects: Effects,
    predictions: Mapping[str, InspectedFile],
    begun: Background[dict[str, NativeBuild]] | None,
    *,
    build: Build,
    companions: Companions,
) -> tuple[str, str]:
    """Return the runtime, and why it is not the one a reader would expect; empty where it is."""
    runtime = facts.plan.settings.runtime
    by_name = runtime in ("libtorch", "both")
    if not _needs_worker(facts, effects):
        return "python", ""
    if _loads_as_python_alone_can(facts, effects):
        if by_name:
            raise ConfigError(
                f'serving.load = "torch.load" and runtime = "{runtime}": only Python has torch.load',
                'write runtime = "python", or a load that C++ has',
            )
        return "python", f'serving.load = "torch.load" is Python\'s; {PYTHON_LOADS}'
    if not facts.plan.runs_on.cpp:
        if by_name:
            raise ConfigError(
                f'runtime = "{runtime}": the C++ worker does not run on {facts.plan.device}', 'write runtime = "python"'
            )
        return "python", f"the C++ worker does not run on {facts.plan.device}; {PYTHON_LOADS}"
    if runtime == "python":
        return "python", f'runtime = "python" was asked for; {PYTHON_LOADS}'
    effects.progress.stage("C++ worker", len(effects.environments))
    name = {side: environment.name for side, environment in effects.environments.items()}
    with begun or begin_builds(facts, effects, build) as building:
        builds = building.result(tick=lambda: effects.progress.tick("compiling"))
    for side, built in builds.items():
        effects.book_compilation(side, f"the C++ worker of {name[side]}", built)
        how = "cached" if built.cached else f"built in {built.seconds:.0f} s"
        effects.progress.step(f"{name[side]}: {how if built.binary is not None else 'cannot be built'}")
    refused = [f"{name[side]}: {built.why_not}" for side, built in builds.items() if built.binary is None]
    if refused and by_name:
        raise EnvironmentUnavailable(f"no C++ worker for {refused[0]}", "mend that, or run with --runtime python")
    if refused:
        return "python", f"no C++ worker ({refused[0]}); {PYTHON_LOADS}"
    libtorch = _libtorch(effects)
    for side, built in builds.items():
        if built.binary is not None:
            has_libraries = side in effects.runner.libraries
            beside = companions(libtorch[side], effects.native_folder) if has_libraries else ()
            effects.runner.use_native(side, built.binary, beside)
    for side in effects.runner.libraries:
        why_not, mend = _cannot_open(side, facts, effects, predictions)
        if why_not and runtime == "libtorch":
            raise EnvironmentUnavailable(
                f"no C++ worker for {name[side]}: {why_not}", f"{mend}, or run with --runtime python"
            )
        if why_not:
            return "python", f"no C++ worker ({name[side]}: {why_not}); {PYTHON_LOADS}"
    return "libtorch", ""


def _served_by_python(facts: Exported, predictions: Mapping[str, InspectedFile]) -> Iterator[str]:
    """Yield the models that the scenarios of a Python server are about: all of them where that is what serves."""
    if any(name in INITIALIZATIONS and INITIALIZATIONS[name].python_only for name in facts.plan.scenarios):
        for name, export in facts.exports.items():
            named = facts.plan.settings.runtime in ("python", "both")
            if export.artifact is not None and (named or _may_wait(export.artifact, predictions)):
                yield name


def _may_wait(artifact: Artifact, predictions: Mapping[str, InspectedFile]) -> bool:
    """Whether loading or calling may wait for another thread; torch's own ``__setstate__`` waits for nobody."""
    if not WAITING.isdisjoint(operator.partition(".")[0] for operator in artifact.operators):
        return True
    read = _read(artifact, predictions)
    return read is not None and not all(name.startswith(TORCHS_MODULES) for name in read.runs_at_load)


def _read(artifact: Artifact, predictions: Mapping[str, InspectedFile]) -> ArchiveFacts | None:
    known = predictions.get(artifact.model)
    return known.facts if known is not None else inspect_file(artifact.path, {}).facts


def _cannot_open(
    side: str, facts: Exported, effects: Effects, predictions: Mapping[str, InspectedFile]
) -> tuple[str, str]:
    """Return why the C++ worker of ``side`` may lack what libraries bring, and what mends it; empty where it does not.

    Libraries are opened without Python there: what needs it, or is registered from Python, is missing. That may be
    operators and classes that artifacts use, or the device itself.
    """
    deadline = floor_deadline(facts.plan.settings.deadlines)
    tried = effects.runner(facts.requests.run(side, (), deadline, runtime="libtorch"))
    if "no_device" in tried.data:
        device = facts.plan.device
        whys = [f" ({path}: {why})" for path, why in tried.data["libraries"]["not_opened"].items()]
        return (
            f"no library that it opens without Python registers the device {device}{''.join(whys[:1])}",
            f"name the shared object (.so) that registers {device} in C++ with --library, beside the Python half of it",
        )
    if tried.outcome is not Outcome.COMPLETED:
        return f"opening the operator libraries ended in {tried.exit_detail or tried.outcome.value}", MEND
    libraries = tried.data["libraries"]
    used = {
        operator.partition(".")[0]
        for export in facts.exports.values()
        if export.artifact is not None
        for operator in export.artifact.operators
    }
    missing = sorted(used.intersection(libraries["missing"]))
    if not missing and libraries["not_opened"]:
        missing = sorted(_library_classes(facts, predictions))  # only a library that is opened registers them
    if not missing:
        return "", ""
    whys = [f": {why}" for why in libraries["not_opened"].values()]
    return f"without Python it has no {', '.join(missing)}{''.join(whys[:1])}", MEND


def _library_classes(facts: Exported, predictions: Mapping[str, InspectedFile]) -> set[str]:
    classes = set()
    for export in facts.exports.values():
        read = _read(export.artifact, predictions) if export.artifact is not None else None
        classes |= set(read.custom_classes) if read is not None else set()
    return {name for name in classes if name.partition(".")[0] not in TORCHS_CLASSES}
