"""The lines that make a setting outside of the gate: Python, C++, Triton's PyTorch backend, environment variables.

A way that cannot make one setting of a set is left out for the set: half of a cure is none. ``path``, ``model``,
``inputs`` and ``output`` stand for the reader's own. tests/integration/test_paste_lines.py runs and compiles them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.domain.cure import Setting

PYTHON, CPP, TRITON, ENVIRONMENT = "python", "c++", "triton", "environment"
# The PyTorch backend of Triton sets its pools once, as the first model says that names them.
FIRST_MODEL: Final = "# holds for all models of the server; the first that says it decides"
EVERY_THREAD: Final = "in every thread that calls"
# Profiling, compilation, one that is still slower, one to spare (docs/evidence.md#first-calls).
FIRST_CALLS: Final = 4
_EXECUTOR: Final = "torch/csrc/jit/runtime/graph_executor.h"
_MODULE: Final = "torch/csrc/jit/api/module.h"
_IMPORT: Final = "torch/csrc/jit/serialization/import.h"
_CONTEXT: Final = "ATen/Context.h"


@dataclass(frozen=True, kw_only=True)
class _Code:
    """What one setting adds to a program.

    Attributes:
        headers: to include; Python needs torch alone.
        start: once, before anything is loaded; ``loaded``: with each module that was loaded.
        guards: what holds around a call: expressions of ``with``, or declarations.
        threads: before the calls, in every thread.
        locks: ``"load"`` and ``"calls"``, which happen one at a time.
    """

    headers: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """One value of one setting, by each way that can make it."""

    python: _Code | None = None
    cpp: _Code | None = None
    triton: str = ""
    environment: str = ""


def lines_to_paste(settings: Sequence[Setting], *, device: str = "cpu") -> Mapping[str, str]:
    """Return way -> the lines that make all of ``settings``; ways that cannot are left out."""
    parts = [part for setting in settings for part in _parts(setting, device)]
    variables = [f"{name}={value}" for setting in settings for name, value in setting.env.items()]
    outside = [f"in the environment: {line}" for line in variables]
    found: dict[str, str] = {}
    python = [part.python for part in parts if part.python is not None]
    if parts and len(python) == len(parts):
        found[PYTHON] = "\n".join([*(f"# {line}" for line in outside), *_python(python)])
    cpp = [part.cpp for part in parts if part.cpp is not None]
    if parts and len(cpp) == len(parts):
        found[CPP] = "\n".join([*(f"// {line}" for line in outside), *_cpp(cpp)])
    if parts and all(part.triton for part in parts):
        found[TRITON] = "\n".join([*(f"# {line}" for line in outside), *(part.triton for part in parts)])
    if all(part.environment for part in parts):
        found[ENVIRONMENT] = "\n".join([*variables, *(part.environment for part in parts)])
    return found


def _parts(setting: Setting, device: str) -> Iterator[_Ways]:
    for name, value in (*setting.switches.items(), *setting.numerics.items()):
        yield WAYS[name](value, device)
    if setting.intra_op_threads is not None:
        yield _intra_op(setting.intra_op_threads)
    if setting.inter_op_threads is not None:
        yield _inter_op(setting.inter_op_threads)
    if setting.one_at_a_time:
        locked = _Code(locks=setting.one_at_a_time)
        yield _Ways(python=locked, cpp=locked)


def _python(parts: Sequence[_Code]) -> Iterator[str]:
    """Yield a program of the parts: what comes once, then loading, then calling, as far as each is concerned."""
    locks = {lock for part in parts for lock in part.locks}
    yield from (["import threading", ""] if locks else [])
    yield "import torch"
    yield ""
    yield from (line for part in parts for line in part.start)
    yield from (["start_up = threading.Lock()  # one for the process", ""] if locks else [])
    loaded = [line for part in parts for line in part.loaded]
    if loaded or "load" in locks:
        yield from ["with start_up:", "    model = torch.jit.load(path)"] if "load" in locks else []
        yield from [] if "load" in locks else ["model = torch.jit.load(path)"]
        yield from loaded
    guards = [line for part in parts for line in part.guards]
    threads = [line for part in parts for line in part.threads]
    if guards or threads:
        yield f"# {EVERY_THREAD}:"
    yield from threads
    if "calls" in locks:
        yield f"with {', '.join(['start_up', *guards])}:"
        yield from [f"    for _ in range({FIRST_CALLS}):  # the first calls", "        model(*inputs)"]
    if guards:
        yield f"with {', '.join(guards)}:"
        yield "    output = model(*inputs)"


def _cpp(parts: Sequence[_Code]) -> Iterator[str]:
    """Yield the same in C++; headers first."""
    locks = {lock for part in parts for lock in part.locks}
    loaded = [line for part in parts for line in part.loaded]
    headers = [name for part in parts for name in part.headers]
    headers += [_IMPORT] if loaded or "load" in locks else []
    yield from (f"#include <{name}>" for name in dict.fromkeys(headers))
    yield from (["#include <mutex>", "", "static std::mutex start_up;  // one for the process"] if locks else [])
    yield ""
    yield from (line for part in parts for line in part.start)
    if loaded or "load" in locks:
        yield from ["{", "  const std::lock_guard<std::mutex> guard(start_up);"] if "load" in locks else []
        yield f"{'  ' if 'load' in locks else ''}model = torch::jit::load(path);"
        yield from ["}"] if "load" in locks else []
        yield from loaded
    guards = [line for part in parts for line in (*part.threads, *part.guards)]
    if guards:
        yield f"// {EVERY_THREAD}:"
        yield from guards
    if "calls" in locks:
        yield from ["{", "  const std::lock_guard<std::mutex> guard(start_up);"]
        yield f"  for (int i = 0; i < {FIRST_CALLS}; ++i) model.forward(inputs);  // the first calls"
        yield "}"
    if guards:
        yield "output = model.forward(inputs);"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(name: str, value: Any) -> str:
    return f'parameters: {{\n  key: "{name}"\n  value: {{ string_value: "{_word(value)}" }}\n}}'


def _private(setter: str, target: str, key: str, header: str = _EXECUTOR) -> Callable[[Any, str], _Ways]:
    """Return the ways of a JIT switch: a private function of Python, and an assignment or a call in C++."""
    return lambda value, _: _Ways(
        python=_Code(start=(f"torch._C.{setter}({value})",)),
        cpp=_Code(headers=(header,), start=(target.format(_word(value)),)),
        triton=_key(key, value),
        environment=f"PYTORCH_TENSOREXPR={int(value)}" if key == "ENABLE_TENSOR_FUSER" else "",
    )


def _fusion_depth(value: Any, _: str) -> _Ways:
    return _Ways(
        python=_Code(start=(f'torch.jit.set_fusion_strategy([("STATIC", {value}), ("DYNAMIC", {value})])',)),
        cpp=_Code(
            headers=(_MODULE,),
            start=(
                "torch::jit::FusionStrategy strategy = {",
                f"    {{torch::jit::FusionBehavior::STATIC, {value}}},",
                f"    {{torch::jit::FusionBehavior::DYNAMIC, {value}}}}};",
                "torch::jit::setFusionStrategy(strategy);",
            ),
        ),
    )


def _optimized_execution(value: Any, _: str) -> _Ways:
    return _Ways(
        python=_Code(guards=(f"torch.jit.optimized_execution({value})",)),
        cpp=_Code(
            headers=(_EXECUTOR,),
            guards=(f"const torch::jit::GraphOptimizerEnabledGuard optimized({_word(value)});",),
        ),
        triton=_key("DISABLE_OPTIMIZED_EXECUTION", not value),
    )


def _inference_mode(value: Any, _: str) -> _Ways:
    return _Ways(
        python=_Code(guards=(f"torch.inference_mode({value})",)),
        cpp=_Code(
            headers=("c10/core/InferenceMode.h",), guards=(f"const c10::InferenceMode inference_mode({_word(value)});",)
        ),
        triton=_key("INFERENCE_MODE", value),
    )


def _freeze(_: Any, __: str) -> _Ways:
    keep = "other methods that are called go into preserved_attrs"
    return _Ways(
        python=_Code(loaded=(f"# {keep}", "model = torch.jit.freeze(model.eval())")),
        cpp=_Code(headers=(_MODULE,), loaded=(f"// {keep}", "model.eval();", "model = torch::jit::freeze(model);")),
    )


def _optimize_for_inference(_: Any, __: str) -> _Ways:
    return _Ways(
        python=_Code(loaded=("model = torch.jit.optimize_for_inference(model.eval())",)),
        cpp=_Code(headers=(_MODULE,), loaded=("model.eval();", "model = torch::jit::optimize_for_inference(model);")),
    )


def _intra_op(size: int) -> _Ways:
    return _Ways(
        python=_Code(start=(f"torch.set_num_threads({size})",)),
        cpp=_Code(headers=("ATen/Parallel.h",), start=(f"at::set_num_threads({size});",)),
        triton=f"{FIRST_MODEL}\n{_key('INTRA_OP_THREAD_COUNT', size)}",
        environment=f"OMP_NUM_THREADS={size}",
    )


def _inter_op(size: int) -> _Ways:
    return _Ways(
        python=_Code(start=(f"torch.set_num_interop_threads({size})",)),
        cpp=_Code(headers=("ATen/Parallel.h",), start=(f"at::set_num_interop_threads({size});",)),
        triton=f"{FIRST_MODEL}\n{_key('INTER_OP_THREAD_COUNT', size)}",
    )


def _global(python: str, method: str, key: str = "") -> Callable[[Any, str], _Ways]:
    """Return the ways of something that torch's context holds for the whole process."""

    def ways(value: Any, _: str) -> _Ways:
        said = f'"{value}"' if isinstance(value, str) else _word(value)
        return _Ways(
            python=_Code(start=(python.format(f'"{value}"' if isinstance(value, str) else value),)),
            cpp=_Code(headers=(_CONTEXT,), start=(f"at::globalContext().{method.format(said)};",)),
            triton=_key(key, not value) if key else "",
        )

    return ways


def _quantized_engine(value: Any, _: str) -> _Ways:
    return _Ways(
        python=_Code(start=(f'torch.backends.quantized.engine = "{value}"',)),
        cpp=_Code(headers=(_CONTEXT,), start=(f"at::globalContext().setQEngine(at::QEngine::{value.upper()});",)),
    )


def _autocast(value: Any, device: str) -> _Ways:
    how = "enabled=False" if value == "off" else f"dtype=torch.{value}"
    return _Ways(python=_Code(guards=(f'torch.autocast("{device}", {how})',)))


def _flush_denormal(value: Any, _: str) -> _Ways:
    return _Ways(
        python=_Code(threads=(f"torch.set_flush_denormal({value})",)),
        cpp=_Code(headers=(_CONTEXT,), threads=(f"at::globalContext().setFlushDenormal({_word(value)});",)),
    )


WAYS: Final[Mapping[str, Callable[[Any, str], _Ways]]] = {
    "profiling": _private("_jit_set_profiling_mode", "torch::jit::getProfilingMode() = {};", "ENABLE_JIT_PROFILING"),
    "profiling_executor": _private(
        "_jit_set_profiling_executor", "torch::jit::getExecutorMode() = {};", "ENABLE_JIT_EXECUTOR"
    ),
    "texpr_fuser": _private(
        "_jit_set_texpr_fuser_enabled",
        "torch::jit::setTensorExprFuserEnabled({});",
        "ENABLE_TENSOR_FUSER",
        "torch/csrc/jit/passes/tensorexpr_fuser.h",
    ),
    "fusion_depth": _fusion_depth,
    "optimized_execution": _optimized_execution,
    "inference_mode": _inference_mode,
    "freeze": _freeze,
    "optimize_for_inference": _optimize_for_inference,
    "mkldnn": _global("torch.backends.mkldnn.set_flags({})", "setUserEnabledMkldnn({})"),
    "cudnn": _global("torch.backends.cudnn.enabled = {}", "setUserEnabledCuDNN({})", "DISABLE_CUDNN"),
    "cudnn_tf32": _global("torch.backends.cudnn.allow_tf32 = {}", "setAllowTF32CuDNN({})"),
    "matmul_precision": _global("torch.set_float32_matmul_precision({})", "setFloat32MatmulPrecision({})"),
    "deterministic": _global("torch.use_deterministic_algorithms({})", "setDeterministicAlgorithms({}, false)"),
    "quantized_engine": _quantized_engine,
    "autocast": _autocast,
    "flush_denormal": _flush_denormal,
}
