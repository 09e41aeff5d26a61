"""Who initializes: the C++ worker, or the Python one and why."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.outcome import Outcome
from harness.core.plan import LatencyBudget
from harness.core.probe import TORCH_LOAD, ProbeResult, ServingProfile
from harness.environments.native import LibTorch, NativeBuild
from harness.core.errors import ConfigError, EnvironmentUnavailable, ExitCode
from harness.probing.facts import WithWorker
from harness.probing.loaded_libraries import LoadedLibraries
from harness.checks.prediction.check import inspect_file
from harness.checks.startup.native import PYTHON_LOADS, begin_builds, build_workers
from tests.unit.builders.archives import CODE, MODULE, NOTHING, torchscript, zipped
from tests.unit.builders.stages import Runner, declared, effects, known, planned, probed

BUILT = {side: NativeBuild(binary=Path(f"/native/{side}"), seconds=9.0) for side in ("old", "new")}
NO_COMPILER = NativeBuild(binary=None, why_not="there is no C++ compiler: install g++")


CODE_WITH_CLASS = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  state : __torch__.torch.classes.%s
  def forward(self: __torch__.m.M,
    x: Tensor) -> Tensor:
    return torch.relu(x)
"""


class Builds:
    """A build of every side, with a given end."""

    def __init__(self, ends: Mapping[str, NativeBuild]) -> None:
        self._ends = ends
        self.built: dict[str, LibTorch] = {}
        self.cuda: bool | None = None
        self.folder = Path()

    def __call__(
        self, libtorches: Mapping[str, LibTorch], folder: Path, *, cuda: bool, cancelled: threading.Event
    ) -> dict[str, NativeBuild]:
        self.built, self.folder, self.cuda = dict(libtorches), folder, cuda
        return {side: self._ends[side] for side in libtorches}


def runner(answer: ProbeResult | None = None) -> Runner:
    found = Runner(lambda _: answer or probed())
    found.libtorch = {
        side: {"torch": f"{side}.0", "root": f"/{side}/torch", "cxx11_abi": False} for side in ("old", "new")
    }
    return found


def built(
    runtime: str = "auto",
    scenarios: tuple[str, ...] = ("alone", "concurrent"),
    ends: Mapping[str, NativeBuild] = BUILT,
    sides: tuple[str, ...] = ("old", "new"),
    device: str = "cpu",
) -> tuple[WithWorker, Runner, Builds]:
    builds = Builds(ends)
    probes = runner()
    facts = known(planned(scenarios=scenarios, settings={"runtime": runtime}, device=device))
    return build_workers(facts, effects(probes, sides=sides), build=builds), probes, builds


@pytest.mark.parametrize("runtime", ["auto", "libtorch"])
def test_cpp_worker_initializes_where_both_can_be_built(runtime: str) -> None:
    facts, probes, builds = built(runtime)
    assert (facts.worker, facts.worker_notes) == ("libtorch", ())
    assert probes.native == {"old": Path("/native/old"), "new": Path("/native/new")}
    assert {side: (found.torch, found.root, found.cxx11_abi) for side, found in builds.built.items()} == {
        "old": ("old.0", Path("/old/torch"), False),
        "new": ("new.0", Path("/new/torch"), False),
    }
    assert (builds.folder, builds.cuda) == (Path("/envs/native"), False)


def test_what_was_begun_before_is_waited_for_and_not_built_again() -> None:
    facts, at_work = known(planned(scenarios=("concurrent",))), effects(runner())
    begun, again = begin_builds(facts, at_work, Builds(BUILT)), Builds({})
    assert build_workers(facts, at_work, begun=begun, build=again).worker == "libtorch"
    assert again.built == {}


@pytest.mark.parametrize(("runtime", "scenarios"), [("python", ("concurrent",)), ("auto", ("alone",))])
def test_nothing_is_begun_where_no_cpp_worker_is_needed(runtime: str, scenarios: tuple[str, ...]) -> None:
    builds, settings = Builds(BUILT), {"runtime": runtime, "latency": LatencyBudget(budget="off")}
    with begin_builds(known(planned(scenarios=scenarios, settings=settings)), effects(runner()), builds) as begun:
        assert begun.result() == {}
    assert builds.built == {}


@pytest.mark.parametrize(
    ("latency", "sides", "worker"),
    [("quick", ("old", "new"), "libtorch"), ("quick", ("new",), "python"), ("off", ("old", "new"), "python")],
)
def test_run_that_only_times_builds_too(latency: str, sides: tuple[str, ...], worker: str) -> None:
    builds = Builds(BUILT)
    plan = planned(scenarios=("alone",), settings={"latency": LatencyBudget(budget=latency)})
    assert build_workers(known(plan), effects(runner(), sides=sides), build=builds).worker == worker
    assert bool(builds.built) == (worker == "libtorch")


def test_gpu_run_builds_for_the_gpu() -> None:
    assert built(device="cuda")[2].cuda is True


def test_cpp_worker_is_not_built_for_a_device_that_it_does_not_run_on() -> None:
    facts, _, builds = built(device="xpu")
    assert (facts.worker, builds.built) == ("python", {})
    assert facts.worker_notes[0].startswith("the C++ worker does not run on xpu; loading was not concurrent")
    with pytest.raises(ConfigError, match='runtime = "libtorch": the C'):
        built("libtorch", device="xpu")


def test_beside_golden_records_only_the_new_release_is_built() -> None:
    facts, probes, builds = built(sides=("new",))
    assert (facts.worker, list(builds.built), list(probes.native)) == ("libtorch", ["new"], ["new"])


@pytest.mark.parametrize("side", ["old", "new"])
def test_both_sides_initialize_alike_where_one_cannot_be_built_and_the_report_says_why(side: str) -> None:
    facts, probes, _ = built(ends={**BUILT, side: NO_COMPILER})
    (note,) = facts.worker_notes
    assert (facts.worker, probes.native) == ("python", {})
    name = {"old": "torch 2.1.2", "new": "torch 2.6.0"}[side]
    assert f"no C++ worker ({name}: there is no C++ compiler: install g++)" in note
    assert PYTHON_LOADS in note


@pytest.mark.parametrize("runtime", ["libtorch", "both"])
def test_cpp_worker_that_was_asked_for_and_cannot_be_built_ends_the_run(runtime: str) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"torch 2\.6\.0: there is no C\+\+ compiler") as caught:
        built(runtime, ends={**BUILT, "new": NO_COMPILER})
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert "--runtime python" in caught.value.hint


def test_python_worker_that_was_asked_for_builds_nothing_and_says_what_it_cannot_show() -> None:
    facts, probes, builds = built("python")
    assert (facts.worker, builds.built, probes.native) == ("python", {}, {})
    assert PYTHON_LOADS in facts.worker_notes[0]


def with_libraries(
    tried: ProbeResult, runtime: str = "auto", *, uses: str = "gatetest::double_it"
) -> tuple[WithWorker, Runner]:
    """Build where the new release has an operator library, of which a model uses one operator."""
    probes = runner(tried)
    probes.libraries = {"new": LoadedLibraries(names=("a.so",), paths=("/a.so",), operators=("gatetest::double_it",))}
    facts = known(planned(settings={"runtime": runtime}))
    facts = replace(
        facts,
        exports={
            name: replace(export, artifact=replace(facts.artifact(name), operators=("aten::add.Tensor", uses)))
            for name, export in facts.exports.items()
        },
    )
    worker = build_workers(
        facts,
        effects(probes),
        build=Builds(BUILT),
        companions=lambda libtorch, folder: (str(libtorch.root), str(folder)),
    )
    return worker, probes


def opened(*missing: str, **not_opened: str) -> ProbeResult:
    return probed(data={"libraries": {"not_opened": not_opened, "missing": list(missing)}})


def test_cpp_worker_tries_the_libraries_once_and_without_a_model() -> None:
    facts, probes = with_libraries(opened())
    assert (facts.worker, facts.worker_notes) == ("libtorch", ())
    assert probes.companions == {"old": (), "new": ("/new/torch", "/envs/native")}
    assert [(request.runtime, request.side, request.runs) for request in probes.asked] == [("libtorch", "new", ())]


def test_operator_that_is_missing_without_python_and_used_makes_the_python_worker_initialize() -> None:
    tried = opened("gatetest::double_it", **{"/a.so": "undefined symbol: PyDict_New"})
    facts, _ = with_libraries(tried)
    assert facts.worker == "python"
    assert "without Python it has no gatetest::double_it: undefined symbol: PyDict_New" in facts.worker_notes[0]
    with pytest.raises(EnvironmentUnavailable, match="without Python it has no gatetest::double_it"):
        with_libraries(tried, "libtorch")
    both, _ = with_libraries(tried, "both")
    assert both.worker == "python"
    assert "without Python it has no gatetest::double_it: undefined symbol: PyDict_New" in both.worker_notes[0]


def test_operator_that_is_missing_and_not_used_is_no_obstacle() -> None:
    facts, _ = with_libraries(opened("gatetest::double_it"), uses="aten::mul.Tensor")
    assert facts.worker == "libtorch"


def with_class(path: Path, tried: ProbeResult, *, uses: str) -> WithWorker:
    """Build where the artifact has a custom class, and the new release an operator library."""
    path.write_bytes(torchscript(CODE_WITH_CLASS % uses))
    probes = runner(tried)
    probes.libraries = {"new": LoadedLibraries(names=("a.so",), paths=("/a.so",))}
    facts = known(planned())
    export = replace(facts.exports["m"], artifact=replace(facts.artifact("m"), path=str(path)))
    of_model = replace(facts, exports={"m": export})
    return build_workers(of_model, effects(probes), build=Builds(BUILT), companions=lambda _libtorch, _folder: ())


@pytest.mark.parametrize(
    ("uses", "tried", "worker"),
    [
        ("gatetest.Stack", opened(**{"/a.so": "undefined symbol: PyDict_New"}), "python"),
        ("gatetest.Stack", opened(), "libtorch"),
        ("quantized.LinearPackedParamsBase", opened(**{"/a.so": "undefined symbol: PyDict_New"}), "libtorch"),
    ],
    ids=["of a library that needs Python", "of a library that was opened", "of torch itself"],
)
def test_custom_class_of_a_library_that_is_not_opened_makes_the_python_worker_initialize(
    tmp_path: Path, uses: str, tried: ProbeResult, worker: str
) -> None:
    facts = with_class(tmp_path / "m.pt", tried, uses=uses)
    assert facts.worker == worker
    if worker == "python":
        assert "without Python it has no gatetest.Stack: undefined symbol: PyDict_New" in facts.worker_notes[0]


def test_library_that_ends_the_cpp_worker_makes_the_python_worker_initialize() -> None:
    facts, _ = with_libraries(probed(outcome=Outcome.CRASH, exit_detail="signal SIGSEGV"))
    assert facts.worker == "python"
    assert "opening the operator libraries ended in signal SIGSEGV" in facts.worker_notes[0]


def test_device_that_no_library_registers_without_python_is_named_with_what_to_give() -> None:
    why = {"/a.so": "undefined symbol: PyDict_New"}
    marks = {"libraries": {"not_opened": why, "missing": []}, "no_device": "npu"}
    tried = probed(outcome=Outcome.PROTOCOL_ERROR, exit_detail="exit code 71", data=marks)
    facts, _ = with_libraries(tried)
    assert facts.worker == "python"
    assert "no library that it opens without Python registers the device" in facts.worker_notes[0]
    assert "(/a.so: undefined symbol: PyDict_New)" in facts.worker_notes[0]
    with pytest.raises(EnvironmentUnavailable, match="registers the device") as caught:
        with_libraries(tried, "libtorch")
    assert "the shared object (.so)" in caught.value.hint and "--library" in caught.value.hint


@pytest.mark.parametrize("key", ["profile", "new_profile"])
def test_torch_load_is_left_to_the_python_worker_and_refused_where_the_cpp_one_was_asked_for(key: str) -> None:
    builds = Builds(BUILT)

    def built_for(runtime: str) -> WithWorker:
        settings = {"runtime": runtime, key: ServingProfile(load=TORCH_LOAD)}
        plan = planned(scenarios=("concurrent",), settings=settings)
        return build_workers(known(plan), effects(runner()), build=builds)

    facts = built_for("auto")
    assert (facts.worker, builds.built) == ("python", {})
    assert 'serving.load = "torch.load" is Python\'s' in facts.worker_notes[0]
    with pytest.raises(ConfigError, match="only Python has torch.load"):
        built_for("libtorch")


def test_nothing_is_built_where_nothing_is_initialized_or_timed() -> None:
    builds = Builds(BUILT)
    plan = planned(models=(declared("miniature", timed=False),), scenarios=("alone",))
    facts = build_workers(known(plan), effects(runner()), build=builds)
    assert (facts.worker, builds.built, facts.worker_notes) == ("python", {}, ())


SETSTATE = "  def __setstate__(self: __torch__.%s, s: int) -> NoneType:\n    return None\n"
PYTHON_SERVERS = ("alone", "while_serving", "python_server", "python_keeping")


def for_python(path: Path, *operators: str, runtime: str = "auto", **changes: Any) -> frozenset[str]:
    if not path.exists():
        path.write_bytes(torchscript())
    facts = known(planned(**{"scenarios": PYTHON_SERVERS, "settings": {"runtime": runtime}, **changes}))
    export = replace(facts.exports["m"], artifact=replace(facts.artifact("m"), path=str(path), operators=operators))
    of_model = replace(facts, exports={"m": export})
    return build_workers(of_model, effects(runner()), build=Builds(BUILT)).for_python


@pytest.mark.parametrize("operator", ["prim::fork", "aten::wait"])
def test_model_that_forks_or_waits_is_served_by_python_too(tmp_path: Path, operator: str) -> None:
    assert for_python(tmp_path / "m.pt", "aten::add.Tensor", operator) == {"m"}
    assert for_python(tmp_path / "m.pt", operator, scenarios=("alone", "while_serving")) == frozenset()


def test_model_that_runs_code_of_its_own_at_load_is_served_by_python_too_and_torchs_own_code_counts_for_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.pt").write_bytes(torchscript(CODE + SETSTATE % "m.Net"))
    quantized = {"net/data.pkl": MODULE.replace(b"__torch__.m", b"__torch__.torch.ao.m")}
    quantized["net/code/__torch__/torch/ao/m.py"] = (CODE + SETSTATE % "torch.ao.m.Net").encode()
    (tmp_path / "torchs.pt").write_bytes(zipped({**quantized, "net/constants.pkl": NOTHING, "net/version": b"3\n"}))
    assert for_python(tmp_path / "own.pt") == {"m"}
    read = inspect_file(str(tmp_path / "torchs.pt"), {}).facts
    assert read is not None and read.runs_at_load == ("__torch__.torch.ao.m.Net",)
    assert for_python(tmp_path / "torchs.pt") == frozenset()


@pytest.mark.parametrize(("runtime", "found"), [("auto", 0), ("both", 1), ("python", 1)])
def test_model_that_waits_for_nobody_is_served_by_python_only_where_that_is_said(
    tmp_path: Path, runtime: str, found: int
) -> None:
    assert len(for_python(tmp_path / "m.pt", "aten::add.Tensor", runtime=runtime)) == found
