"""The lines to paste do what they say: Python's run and read back in both releases, C++'s compiled, linked and run."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.core.diagnosis import Setting
from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.native import ask_compiler, standard_of
from harness.environments.installer import find_uv
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.paste_lines import CPP, ENVIRONMENT, PYTHON, lines_to_paste
from harness.serving.settings.table import Kind, of_kind
from tests.integration.gate import PROJECT

pytestmark = pytest.mark.integration

DYNAMIC = (
    Setting(name="quantized engine as before", about="", numerics={"quantized_engine": "qnnpack"}),
    Setting(name="autocast to bfloat16", about="", numerics={"autocast": "bfloat16"}),
    Setting(name="fusion on the CPU", about="", switches={"cpu_fusion": True}),
    Setting(name="denormals flushed", about="", numerics={"flush_denormal": True}),
)
SETTINGS = {setting.name: setting for setting in (*MITIGATIONS.values(), *DYNAMIC)}
# What torch says once the lines have run; ``during`` is what it said while the model was called.
CHECKS = {
    "profiling off": "torch._C._jit_set_profiling_mode(True) is False",
    "fuser off": "not torch._C._jit_texpr_fuser_enabled()",
    "profiling executor off": "torch._C._jit_set_profiling_executor(True) is False",
    "optimized execution off": "during['optimize'] is False and torch._C._get_graph_executor_optimize()",
    "oneDNN fusion off": "not torch.jit.onednn_fusion_enabled()",
    "fusion depth 0": "{depth for _, depth in torch.jit.set_fusion_strategy([('STATIC', 1)])} == {0}",
    "inference mode": "during['inference'] is True and not torch.is_inference_mode_enabled()",
    "freeze": "not hasattr(model, 'training')",
    "optimize for inference": "not hasattr(model, 'training')",
    "one intra-op thread": "torch.get_num_threads() == 1",
    "wide inter-op pool": "torch.get_num_interop_threads() == 32",
    "serialized loading": "loads == [True] and not start_up.locked()",
    "serialized first calls": "during['locked'] is True and during['calls'] == 4 and not start_up.locked()",
    "load after the fork": "loads == [False]",
    "one thread after the fork": "torch.get_num_threads() == 1",
    "oneDNN off": "not torch._C._get_mkldnn_enabled()",
    "cuDNN off": "not torch.backends.cudnn.enabled",
    "cuDNN TF32 off": "not torch.backends.cudnn.allow_tf32",
    "full matmul precision": "torch.get_float32_matmul_precision() == 'highest'",
    "deterministic": "torch.are_deterministic_algorithms_enabled()",
    "autocast off": "during['autocast'] is False",
    "denormals kept": "5e-310 * one != 0.0",
    "quantized engine as before": "torch.backends.quantized.engine == 'qnnpack'",
    "autocast to bfloat16": "during['autocast'] is True",
    "denormals flushed": "5e-310 * one == 0.0",
    "fusion on the CPU": "torch._C._jit_can_fuse_on_cpu()",
}
# These say in comments what only the server's own code can do.
COMMENTS = {"join threads before exit", "thread-local capture", "warm-up before capture"}
# One import of torch; each setting has a fork of it, as nothing has run an operator before.
PROGRAM = """
import io, json, os, sys, threading
import torch
lines, checks = json.load(sys.stdin)
class Successor(torch.nn.Module):
    def forward(self, number: int):
        return number + 1
torch.jit.save(torch.jit.script(Successor()), "successor.pt")

def told(name):
    during, loads, one = {"calls": 0}, [], float("1.0")
    space = {"path": "successor.pt", "inputs": (1,), "during": during, "loads": loads, "one": one, "torch": torch}
    def model(number):
        lock = space.get("start_up")
        during.update(optimize=torch._C._get_graph_executor_optimize(), inference=torch.is_inference_mode_enabled())
        during.update(autocast=torch.is_autocast_cpu_enabled(), locked=lock is not None and lock.locked(), calls=during["calls"] + 1)
    space["model"] = model
    load = torch.jit.load
    def noted(path):
        lock = space.get("start_up")
        loads.append(lock is not None and lock.locked())
        return load(path)
    torch.jit.load = noted
    torch.jit.enable_onednn_fusion(True)  # off by default
    exec(lines[name], space)
    return eval(checks[name], space)

found = {}
for name in lines:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(told(name))
        except BaseException as error:
            answer = "%s: %s" % (type(error).__name__, error)
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        found[name] = stream.read()
    os.waitpid(child, 0)
print(json.dumps(found))
"""
# What C++ says of it, for those that it can be asked about.
CPP_CHECKS = {
    "profiling off": "!torch::jit::getProfilingMode()",
    "fuser off": "!torch::jit::tensorExprFuserEnabled()",
    "profiling executor off": "!torch::jit::getExecutorMode()",
    "optimized execution off": "model_said == 2",
    "fusion depth 0": "torch::jit::getFusionStrategy().at(0).second == 0",
    "inference mode": "model_said == 1",
    "freeze": '!model.hasattr("training")',
    "optimize for inference": '!model.hasattr("training")',
    "one intra-op thread": "at::get_num_threads() == 1",
    "wide inter-op pool": "at::get_num_interop_threads() == 32",
    "serialized loading": 'model.hasattr("training")',
    "serialized first calls": "calls == 4",
    "load after the fork": 'model.hasattr("training")',
    "one thread after the fork": "at::get_num_threads() == 1",
    "oneDNN off": "!at::globalContext().userEnabledMkldnn()",
    "cuDNN off": "!at::globalContext().userEnabledCuDNN()",
    "cuDNN TF32 off": "!at::globalContext().allowTF32CuDNN()",
    "full matmul precision": "at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST",
    "deterministic": "at::globalContext().deterministicAlgorithms()",
    "denormals kept": "tiny * one != 0.0",
    "denormals flushed": "tiny * one == 0.0",
    "quantized engine as before": "at::globalContext().qEngine() == at::QEngine::QNNPACK",
}


def pasted(way: str) -> dict[str, str]:
    found = {name: lines_to_paste([setting]).get(way) for name, setting in SETTINGS.items()}
    return {name: text for name, text in found.items() if text is not None and name not in COMMENTS}


def run_python(python: str, folder: Path, lines: Mapping[str, str]) -> dict[str, str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [python, "-W", "ignore", str(program)],
        input=json.dumps([lines, CHECKS]),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_every_setting_has_a_way_and_every_way_is_checked() -> None:
    assert all(lines_to_paste([setting]) for setting in SETTINGS.values())
    used = {key for setting in SETTINGS.values() for key in (*setting.switches, *setting.numerics)}
    assert used == {row.name for kind in (Kind.SWITCH, Kind.NUMERICS) for row in of_kind(kind)}
    assert set(pasted(PYTHON)) == set(CHECKS)
    assert set(pasted(CPP)) == set(CPP_CHECKS)
    for way, mark in ((PYTHON, "#"), (CPP, "//")):
        for name in COMMENTS:
            assert lines_to_paste([SETTINGS[name]])[way].splitlines()[-1].startswith(mark)


@pytest.mark.parametrize("release", [pytest.param("old_python", marks=pytest.mark.slow), "new_python"])
def test_python_lines_take_effect(release: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    lines = pasted(PYTHON)
    assert run_python(request.getfixturevalue(release), tmp_path, lines) == dict.fromkeys(lines, "True")


@pytest.mark.slow
def test_lines_without_effect_are_reported(new_python: str, tmp_path: Path) -> None:
    lines = {
        name: "import torch"
        for name in ("profiling off", "fuser off", "oneDNN off", "oneDNN fusion off", "one intra-op thread")
    }
    lines["serialized loading"] = "import threading\nstart_up = threading.Lock()\nmodel = torch.jit.load(path)"
    assert run_python(new_python, tmp_path, lines) == dict.fromkeys(lines, "False")


def test_environment_variables_take_effect(new_python: str) -> None:
    lines = pasted(ENVIRONMENT)
    env = dict(
        line.split("=", 1)
        for name in ("fuser off", "fuser falls back", "one intra-op thread", "AVX2 kernels")
        for line in lines[name].splitlines()
    )
    code = (
        "import torch; print(torch._C._jit_texpr_fuser_enabled(), torch._C._jit_texpr_fallback_allowed(), "
        "torch.get_num_threads(), 'usage: AVX2' in torch.__config__.show())"
    )
    done = subprocess.run([new_python, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["False", "True", "1", "True"]


def cpp_program(lines: Mapping[str, str]) -> str:
    """Return one program with every snippet in a function; it prints what torch says of each, in a process of its own."""
    split = {name: text.splitlines() for name, text in lines.items()}
    headers = dict.fromkeys(line for text in split.values() for line in text if line.startswith("#include"))
    body = []
    for number, (name, text) in enumerate(split.items()):
        code = "\n".join(f"  {line}" for line in text if not line.startswith("#include"))
        body.append(
            f"static bool f{number}(Model model, const std::string& path, std::vector<c10::IValue> inputs) {{\n"
            f"  c10::IValue output;\n{code}\n  (void)output;\n  return {CPP_CHECKS[name]};\n}}"
        )
    calls = "\n".join(
        f"  if (which == {number}) ok = f{number}(given, argv[1], {{c10::IValue(1)}});" for number in range(len(split))
    )
    return "\n".join(
        [
            *headers,
            "#include <ATen/Context.h>",
            "#include <ATen/Parallel.h>",
            "#include <c10/core/InferenceMode.h>",
            "#include <torch/csrc/jit/api/module.h>",
            "#include <torch/csrc/jit/passes/tensorexpr_fuser.h>",
            "#include <torch/csrc/jit/python/update_graph_executor_opt.h>",
            "#include <torch/csrc/jit/serialization/import.h>",
            "#include <unistd.h>",
            "#include <cstdlib>",
            "#include <iostream>",
            "static int model_said = 0, calls = 0;",
            "static volatile double tiny = 5e-310, one = 1.0;",
            "// A module that notes what holds while it is called.",
            "struct Model : torch::jit::Module {",
            "  using torch::jit::Module::Module;",
            "  Model(torch::jit::Module other) : torch::jit::Module(std::move(other)) {}",
            "  c10::IValue forward(std::vector<c10::IValue> inputs) {",
            "    ++calls;",
            "    model_said = c10::InferenceMode::is_enabled() ? 1 : torch::jit::getGraphExecutorOptimize() ? 0 : 2;",
            "    return torch::jit::Module::forward(std::move(inputs));",
            "  }",
            "};",
            *body,
            "int main(int, char** argv) {",
            "  const int which = std::atoi(argv[2]);",
            "  bool ok = false;",
            "  Model given = torch::jit::load(argv[1]);",
            calls,
            "  std::cout << ok << std::endl;",
            "  _exit(0);",
            "}",
        ]
    )


def compiled(python: str, source: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    asked = "import torch, json; print(json.dumps([torch.__path__[0], torch._C._GLIBCXX_USE_CXX11_ABI]))"
    told = subprocess.run(
        [python, "-W", "ignore", "-c", asked], capture_output=True, text=True, timeout=120, check=True
    )
    root, abi = json.loads(told.stdout)
    include, lib = Path(root) / "include", Path(root) / "lib"
    standard = standard_of(include)
    command = [
        *ask_compiler(standard).command,
        *(f"-std=c++{standard}", "-O0", "-pthread", f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}"),
        *("-isystem", str(include), "-isystem", str(include / "torch/csrc/api/include"), str(source), *more),
        *(() if "-fsyntax-only" in more else (f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltorch_cpu", "-lc10")),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.slow
def test_cpp_lines_are_valid_in_the_new_release(new_python: str, tmp_path: Path) -> None:
    source = tmp_path / "lines.cpp"
    source.write_text(cpp_program(pasted(CPP)))
    done = compiled(new_python, source, "-fsyntax-only")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("release", ["1.13.1", "2.1.2", "2.6.0", "2.15.0"])
def test_cpp_and_python_lines_take_effect_in_every_release(release: str, tmp_path: Path) -> None:
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda name, text: None, uv=find_uv())
    python = builder.build(EnvSpec(name=f"torch {release}", release=release)).interpreter
    told = run_python(python, tmp_path, pasted(PYTHON))
    assert told == dict.fromkeys(told, "True")
    source, program = tmp_path / "lines.cpp", tmp_path / "lines"
    source.write_text(cpp_program(lines := pasted(CPP)))
    done = compiled(python, source, "-o", str(program))
    assert done.returncode == 0, done.stderr[-3000:]
    found = {name: _said(program, tmp_path / "successor.pt", number) for number, name in enumerate(lines)}
    assert found == dict.fromkeys(lines, "1")


def _said(program: Path, archive: Path, number: int) -> str:
    command: Sequence[str] = [str(program), str(archive), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr[-300:]
