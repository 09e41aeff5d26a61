"""The table of settings: everything about the process of a server that the gate can set otherwise, a row each.

What the controller knows of settings is derived from it: the keys of ``[tool.compat.serving]`` and their types, the
mitigations, the lines to paste, the differences between the sides, the tables of docs/guide/configuration.md. A worker
applies a setting and reads it back by the same name: ``harness/worker/setters.py``, also in reproducers, and
``harness/native/settings``.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, StrEnum
from typing import Final

Value = bool | int | str
Values = type[bool] | type[str] | int | tuple[str, ...]


class Kind(StrEnum):
    """What a setting is: the profile table that holds it, blank for the profile; orders belong to scripts."""

    SWITCH = "switches"
    NUMERICS = "numerics"
    VARIABLE = "env"
    POOL = ""
    ORDER = "order"


class Scope(Enum):
    """For what a setting holds."""

    PROCESS = "set once, before anything is loaded"
    THREAD = "set by every thread that calls, for itself"
    MODULE = "done to each module that is loaded"


class Tried(Enum):
    """By whom a mitigation is tried without being named."""

    EVERY_RUN = "every run, on each red cell"
    EVERY_SEARCH = "every search for mitigations, that of a bisection too"
    MITIGATE = "the command mitigate"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A value that may take a symptom away; ``name``: by which policy accepts it; ``about``: what it does."""

    name: str
    value: Value
    about: str
    tried: Tried = Tried.MITIGATE


@dataclass(frozen=True, kw_only=True)
class Code:
    """What a setting adds to a program, as templates.

    ``{value}`` is the value as the language writes it, ``{not}`` its negation, ``{bare}`` its text without quotes,
    ``{BARE}`` that in capitals, ``{device}`` where the model runs.

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


@dataclass(frozen=True)
class Row:
    """One setting.

    Attributes:
        values: ``bool``, ``str`` for any text, the smallest whole number, or the texts to choose from.
        about: what docs/guide/configuration.md says of it; blank where the page has no row of its own for it.
        default: what every release has where nothing sets it; None: they differ, or nobody has looked.
        needs: what a device must have for it to mean anything, an attribute of ``Device``; blank: nothing.
        as_before: whether the old release's value may take it away where the new one has another by default.
        fingerprint: the field of an environment's fingerprint that shows it.
        operators: a pattern of the only operators whose results it can change; blank: all.
        python, cpp: the code that makes it; None: there is none. ``python_of``: of values that are written otherwise.
        triton: the parameter of Triton's PyTorch backend; one that disables says the opposite.
        environment: the variable that does the same; 0 and 1 stand for false and true.
    """

    name: str
    kind: Kind
    _: KW_ONLY
    values: Values = bool
    scope: Scope = Scope.PROCESS
    about: str = ""
    mitigations: tuple[Alternative, ...] = ()
    default: Value | None = None
    needs: str = ""
    read_back: bool = True
    includes: tuple[str, ...] = ()
    as_before: bool = False
    fingerprint: str = ""
    operators: str = ""
    python: Code | None = None
    python_of: Mapping[Value, Code] = field(default_factory=dict)
    cpp: Code | None = None
    triton: str = ""
    environment: str = ""

    @property
    def key(self) -> str:
        """The key of the configuration that pins it; blank for an order, which no profile holds."""
        return "" if self.kind is Kind.ORDER else ".".join(filter(None, ("serving", self.kind, self.name)))


_EXECUTOR: Final = "torch/csrc/jit/runtime/graph_executor.h"
_FUSER: Final = "torch/csrc/jit/passes/tensorexpr_fuser.h"
_MODULE: Final = "torch/csrc/jit/api/module.h"
_IMPORT: Final = "torch/csrc/jit/serialization/import.h"
_CONTEXT: Final = "ATen/Context.h"
_PARALLEL: Final = "ATen/Parallel.h"
_METHODS: Final = "other methods that are called go into preserved_attrs"
_AFTER_FORK: Final = "// in each worker process:"
_GUNICORN: Final = "# in each worker process (gunicorn: post_fork, no --preload):"
_WHERE_CAPTURED: Final = "{} where graphs are captured:"
_WARM_UP: Final = (
    "# with torch.{device}.stream(stream):",
    "#     for _ in range(3): model(*inputs)",
    "# with torch.{device}.graph(graph, stream=stream):",
)
_CPP_WARM_UP: Final = (
    "// c10::cuda::CUDAStreamGuard guard(stream);",
    "// for (int i = 0; i < 3; ++i) model.forward(inputs);",
    "// graph.capture_begin();",
)
_BEFORE_EXIT: Final = "{} at the end: stop and join the threads that call, or {}_exit(status)"
# In the deadlock between the GIL and the pool each unfinished task of earlier calls takes a thread: eight were too few
# in one of six runs (docs/servers-bench.md).
WIDE_POOL: Final = 32

# Mitigations are tried in this order, and of equally good ones the first is chosen: within a kind, the likeliest first.
ROWS: Final = (
    Row(
        "profiling",
        Kind.SWITCH,
        about="profiling mode",
        mitigations=(Alternative("profiling off", False, "no profiling runs", Tried.EVERY_RUN),),
        python=Code(start=("torch._C._jit_set_profiling_mode({value})",)),
        cpp=Code(headers=(_EXECUTOR,), start=("torch::jit::getProfilingMode() = {value};",)),
        triton="ENABLE_JIT_PROFILING",
    ),
    Row(
        "texpr_fuser",
        Kind.SWITCH,
        about="tensor-expression fuser",
        mitigations=(Alternative("fuser off", False, "no tensor-expression fuser", Tried.EVERY_RUN),),
        python=Code(start=("torch._C._jit_set_texpr_fuser_enabled({value})",)),
        cpp=Code(headers=(_FUSER,), start=("torch::jit::setTensorExprFuserEnabled({value});",)),
        triton="ENABLE_TENSOR_FUSER",
        environment="PYTORCH_TENSOREXPR",
    ),
    Row(
        "profiling_executor",
        Kind.SWITCH,
        about="profiling executor; false is the legacy executor",
        mitigations=(Alternative("profiling executor off", False, "the legacy executor", Tried.EVERY_SEARCH),),
        python=Code(start=("torch._C._jit_set_profiling_executor({value})",)),
        cpp=Code(headers=(_EXECUTOR,), start=("torch::jit::getExecutorMode() = {value};",)),
        triton="ENABLE_JIT_EXECUTOR",
    ),
    Row(
        "optimized_execution",
        Kind.SWITCH,
        scope=Scope.THREAD,
        about="`torch.jit.optimized_execution`, in every thread",
        mitigations=(Alternative("optimized execution off", False, "no graph optimisation", Tried.EVERY_SEARCH),),
        python=Code(guards=("torch.jit.optimized_execution({value})",)),
        cpp=Code(headers=(_EXECUTOR,), guards=("const torch::jit::GraphOptimizerEnabledGuard optimized({value});",)),
        triton="DISABLE_OPTIMIZED_EXECUTION",
    ),
    Row(
        "fusion_depth",
        Kind.SWITCH,
        values=0,
        about="depth of the static and the dynamic fusion strategy",
        mitigations=(Alternative("fusion depth 0", 0, "nothing is specialised for fusion", Tried.EVERY_SEARCH),),
        python=Code(start=('torch.jit.set_fusion_strategy([("STATIC", {value}), ("DYNAMIC", {value})])',)),
        cpp=Code(
            headers=(_MODULE,),
            start=(
                "torch::jit::FusionStrategy strategy = {",
                "    {torch::jit::FusionBehavior::STATIC, {value}},",
                "    {torch::jit::FusionBehavior::DYNAMIC, {value}}};",
                "torch::jit::setFusionStrategy(strategy);",
            ),
        ),
    ),
    Row(
        "cpu_fusion",
        Kind.SWITCH,
        about="whether the fuser may fuse on a CPU",
        python=Code(
            start=(
                "torch._C._jit_override_can_fuse_on_cpu({value})",
                "torch._C._jit_set_te_must_use_llvm_cpu({not})",
            )
        ),
    ),
    Row(
        "onednn_fusion",
        Kind.SWITCH,
        about="`torch.jit.enable_onednn_fusion`: oneDNN Graph fuses float operators on a CPU, from the second call on",
        mitigations=(Alternative("oneDNN fusion off", False, "no groups of oneDNN Graph"),),
        default=False,
        python=Code(start=("torch.jit.enable_onednn_fusion({value})",)),
    ),
    Row(
        "inference_mode",
        Kind.SWITCH,
        scope=Scope.THREAD,
        about="`torch.inference_mode`, in every thread",
        mitigations=(Alternative("inference mode", True, "no version counters, no views tracked"),),
        python=Code(guards=("torch.inference_mode({value})",)),
        cpp=Code(headers=("c10/core/InferenceMode.h",), guards=("const c10::InferenceMode inference_mode({value});",)),
        triton="INFERENCE_MODE",
    ),
    Row(
        "freeze",
        Kind.SWITCH,
        scope=Scope.MODULE,
        about="`torch.jit.freeze` of every module that is loaded",
        mitigations=(Alternative("freeze", True, "parameters become constants after load"),),
        python=Code(loaded=(f"# {_METHODS}", "model = torch.jit.freeze(model.eval())")),
        cpp=Code(headers=(_MODULE,), loaded=(f"// {_METHODS}", "model.eval();", "model = torch::jit::freeze(model);")),
    ),
    Row(
        "optimize_for_inference",
        Kind.SWITCH,
        scope=Scope.MODULE,
        about="`torch.jit.optimize_for_inference` of every module that is loaded",
        mitigations=(Alternative("optimize for inference", True, "frozen, and rewritten for this machine after load"),),
        includes=("freeze",),
        python=Code(loaded=("model = torch.jit.optimize_for_inference(model.eval())",)),
        cpp=Code(headers=(_MODULE,), loaded=("model.eval();", "model = torch::jit::optimize_for_inference(model);")),
    ),
    Row(
        "intra_op_threads",
        Kind.POOL,
        values=1,
        mitigations=(Alternative("one intra-op thread", 1, "operators run in one thread"),),
        fingerprint="intra_op_threads",
        python=Code(start=("torch.set_num_threads({value})",)),
        cpp=Code(headers=(_PARALLEL,), start=("at::set_num_threads({value});",)),
        triton="INTRA_OP_THREAD_COUNT",
        environment="OMP_NUM_THREADS",
    ),
    Row(
        "inter_op_threads",
        Kind.POOL,
        values=1,
        mitigations=(Alternative("wide inter-op pool", WIDE_POOL, "tasks do not wait for each other"),),
        fingerprint="inter_op_threads",
        python=Code(start=("torch.set_num_interop_threads({value})",)),
        cpp=Code(headers=(_PARALLEL,), start=("at::set_num_interop_threads({value});",)),
        triton="INTER_OP_THREAD_COUNT",
    ),
    Row(
        "load",
        Kind.ORDER,
        mitigations=(Alternative("serialized loading", True, "a mutex around loading"),),
        python=Code(locks=("load",)),
        cpp=Code(locks=("load",)),
    ),
    Row(
        "calls",
        Kind.ORDER,
        mitigations=(Alternative("serialized first calls", True, "a mutex around warm-up"),),
        python=Code(locks=("calls",)),
        cpp=Code(locks=("calls",)),
    ),
    Row(
        "fork",
        Kind.ORDER,
        mitigations=(
            Alternative("load after the fork", True, "each process of a prefork server loads its models itself"),
        ),
        python=Code(start=(_GUNICORN, "model = torch.jit.load(path)")),
        cpp=Code(headers=(_IMPORT,), start=(_AFTER_FORK, "model = torch::jit::load(path);")),
    ),
    Row(
        "forked_threads",
        Kind.ORDER,
        mitigations=(
            Alternative(
                "one thread after the fork", True, "forked processes need no thread that they have not inherited"
            ),
        ),
        python=Code(start=(_GUNICORN, "torch.set_num_threads(1)")),
        cpp=Code(headers=(_PARALLEL,), start=(_AFTER_FORK, "at::set_num_threads(1);")),
    ),
    Row(
        "exit",
        Kind.ORDER,
        mitigations=(
            Alternative("join threads before exit", True, "threads that call models end before the process does"),
        ),
        python=Code(start=(_BEFORE_EXIT.format("#", "os."),)),
        cpp=Code(start=(_BEFORE_EXIT.format("//", ""),)),
    ),
    Row(
        "capture",
        Kind.ORDER,
        mitigations=(
            Alternative("thread-local capture", True, "what other threads do meanwhile ends no capture of a graph"),
        ),
        needs="graphs",
        python=Code(
            start=(
                _WHERE_CAPTURED.format("#"),
                '# with torch.{device}.graph(graph, capture_error_mode="thread_local"):',
            )
        ),
        cpp=Code(
            start=(
                _WHERE_CAPTURED.format("//"),
                "// graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);",
            )
        ),
    ),
    Row(
        "warm_capture",
        Kind.ORDER,
        mitigations=(Alternative("warm-up before capture", True, "calls in the stream of a capture come before it"),),
        needs="graphs",
        python=Code(start=(_WHERE_CAPTURED.format("#"), *_WARM_UP)),
        cpp=Code(start=(_WHERE_CAPTURED.format("//"), *_CPP_WARM_UP)),
    ),
    Row(
        "quantized_engine",
        Kind.NUMERICS,
        values=("fbgemm", "onednn", "qnnpack", "x86"),
        about="`torch.backends.quantized.engine`; the releases' defaults differ",
        as_before=True,
        operators=r"_?quantized(_decomposed)?::|aten::_?(fake_|de)?quantize",
        python=Code(start=("torch.backends.quantized.engine = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setQEngine(at::QEngine::{BARE});",)),
    ),
    Row(
        "mkldnn",
        Kind.NUMERICS,
        about="oneDNN's kernels at all",
        mitigations=(Alternative("oneDNN off", False, "no oneDNN kernels"),),
        python=Code(start=("torch.backends.mkldnn.set_flags({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setUserEnabledMkldnn({value});",)),
    ),
    Row(
        "cudnn",
        Kind.NUMERICS,
        about="cuDNN's kernels at all",
        mitigations=(Alternative("cuDNN off", False, "no cuDNN kernels"),),
        needs="cudnn",
        python=Code(start=("torch.backends.cudnn.enabled = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setUserEnabledCuDNN({value});",)),
        triton="DISABLE_CUDNN",
    ),
    Row(
        "cudnn_tf32",
        Kind.NUMERICS,
        about="TF32 in cuDNN's convolutions",
        mitigations=(Alternative("cuDNN TF32 off", False, "convolutions in full float32"),),
        needs="nvidia",
        as_before=True,
        python=Code(start=("torch.backends.cudnn.allow_tf32 = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setAllowTF32CuDNN({value});",)),
    ),
    Row(
        "matmul_precision",
        Kind.NUMERICS,
        values=("highest", "high", "medium"),
        about="`torch.set_float32_matmul_precision`: TF32 in matrix products on a GPU, bfloat16 on some CPUs",
        mitigations=(Alternative("full matmul precision", "highest", "float32 products in float32"),),
        as_before=True,
        python=Code(start=("torch.set_float32_matmul_precision({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setFloat32MatmulPrecision({value});",)),
    ),
    Row(
        "deterministic",
        Kind.NUMERICS,
        about="`torch.use_deterministic_algorithms`",
        mitigations=(Alternative("deterministic", True, "deterministic algorithms only"),),
        python=Code(start=("torch.use_deterministic_algorithms({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setDeterministicAlgorithms({value}, false);",)),
    ),
    Row(
        "autocast",
        Kind.NUMERICS,
        values=("off", "bfloat16", "float16"),
        scope=Scope.THREAD,
        about="autocast on the run's device, in every thread",
        mitigations=(Alternative("autocast off", "off", "no operator is cast down"),),
        python=Code(guards=('torch.autocast("{device}", dtype=torch.{bare})',)),
        python_of={"off": Code(guards=('torch.autocast("{device}", enabled=False)',))},
    ),
    Row(
        "flush_denormal",
        Kind.NUMERICS,
        scope=Scope.THREAD,
        about="denormal numbers become zero, in every thread",
        mitigations=(Alternative("denormals kept", False, "denormal numbers are no zeros"),),
        python=Code(threads=("torch.set_flush_denormal({value})",)),
        cpp=Code(headers=(_CONTEXT,), threads=("at::globalContext().setFlushDenormal({value});",)),
    ),
    Row(
        "PYTORCH_TENSOREXPR_FALLBACK",
        Kind.VARIABLE,
        values=str,
        mitigations=(Alternative("fuser falls back", "2", "fused groups run their operators one by one"),),
    ),
    Row(
        "ATEN_CPU_CAPABILITY",
        Kind.VARIABLE,
        values=str,
        mitigations=(
            Alternative("AVX2 kernels", "avx2", "no AVX-512 kernels of torch"),
            Alternative("plain kernels", "default", "no vectorised kernels of torch"),
        ),
        fingerprint="isa",
    ),
    Row(
        "MKL_CBWR",
        Kind.VARIABLE,
        values=str,
        mitigations=(Alternative("reproducible MKL", "COMPATIBLE", "MKL's compatible code path"),),
        read_back=False,
    ),
    Row(
        "ONEDNN_MAX_CPU_ISA",
        Kind.VARIABLE,
        values=str,
        mitigations=(Alternative("AVX2 oneDNN", "AVX2", "no AVX-512 kernels of oneDNN"),),
        read_back=False,
    ),
    Row(
        "CUDA_MODULE_LOADING",
        Kind.VARIABLE,
        values=str,
        mitigations=(
            Alternative(
                "eager CUDA modules", "EAGER", "kernels are loaded with their module, not at their first launch"
            ),
        ),
        needs="lazy_modules",
        read_back=False,
    ),
    Row(
        "NVIDIA_TF32_OVERRIDE",
        Kind.VARIABLE,
        values=str,
        mitigations=(Alternative("no TF32 anywhere", "0", "no CUDA library uses TF32"),),
        needs="nvidia",
        read_back=False,
    ),
    Row(
        "CUBLAS_WORKSPACE_CONFIG",
        Kind.VARIABLE,
        values=str,
        mitigations=(Alternative("one cuBLAS workspace", ":4096:8", "cuBLAS answers the same in every stream"),),
        needs="nvidia",
        read_back=False,
    ),
)
TABLE: Final[Mapping[str, Row]] = {row.name: row for row in ROWS}


def of_kind(kind: Kind) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if row.kind is kind)
