"""The table of settings: everything about the process of a server that the gate can set otherwise, a row each.

What the controller knows of settings is derived from it: the keys of ``[tool.compat.serving]`` and their types, the
mitigations, the lines to paste, the differences between the sides, the tables of docs/guide/configuration.md. A worker
applies a setting and reads it back by the same name: ``harness/worker/settings``, ``harness/native/settings``, and
``harness/worker/reproduce/settings.py`` of reproducers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

Value = bool | int | str
Values = type[bool] | type[str] | int | tuple[str, ...]


class Kind(StrEnum):
    """What a setting is; the value is the table of the serving profile that holds it, blank for the profile itself."""

    SWITCH = "switches"
    NUMERICS = "numerics"
    VARIABLE = "env"
    POOL = ""
    ORDER = "order of loading and calling"


class Scope(Enum):
    """For what a setting holds."""

    PROCESS = "set once, before anything is loaded"
    THREAD = "set by every thread that calls, for itself"
    MODULE = "done to each module that is loaded"


class Tried(Enum):
    """By whom a mitigation is tried without being named."""

    EVERY_RUN = "every run, on each red cell"
    EVERY_SEARCH = "every search for a cure, that of a bisection too"
    MITIGATE = "the command mitigate"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mitigation:
    """A value that may cure; ``name``: by which policy accepts it; ``about``: what it does, in a few words."""

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


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting.

    Attributes:
        name: in the serving profile and in every worker.
        values: ``bool``, ``str`` for any text, the smallest whole number, or the texts to choose from.
        about: what docs/guide/configuration.md says of it; blank where the page has no row of its own for it.
        mitigations: the values that may cure.
        cuda_only: whether it means nothing without a GPU.
        read_back: whether torch can be asked for its effect.
        includes: other settings whose work it does as well.
        as_before: whether the old release's value may cure where the new one has another by default.
        fingerprint: the field of an environment's fingerprint that shows it.
        operators: a pattern of the only operators whose results it can change; blank: all.
        python, cpp: the code that makes it; None: there is none. ``python_of``: of values that are written otherwise.
        triton: the parameter of Triton's PyTorch backend; one that disables says the opposite.
        environment: the variable that does the same; 0 and 1 stand for false and true.
    """

    name: str
    kind: Kind
    values: Values = bool
    scope: Scope = Scope.PROCESS
    about: str = ""
    mitigations: tuple[Mitigation, ...] = ()
    cuda_only: bool = False
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
        """The key of the configuration that pins it."""
        return ".".join(filter(None, ("serving", self.kind, self.name)))


_EXECUTOR: Final = "torch/csrc/jit/runtime/graph_executor.h"
_FUSER: Final = "torch/csrc/jit/passes/tensorexpr_fuser.h"
_MODULE: Final = "torch/csrc/jit/api/module.h"
_CONTEXT: Final = "ATen/Context.h"
_PARALLEL: Final = "ATen/Parallel.h"
_METHODS: Final = "other methods that are called go into preserved_attrs"
WIDE_POOL: Final = 8

# Mitigations are tried in this order, and of equally good ones the first is chosen: within a kind, the likeliest first.
ROWS: Final = (
    Row(
        name="profiling",
        kind=Kind.SWITCH,
        about="profiling mode",
        mitigations=(Mitigation(name="profiling off", value=False, about="no profiling runs", tried=Tried.EVERY_RUN),),
        python=Code(start=("torch._C._jit_set_profiling_mode({value})",)),
        cpp=Code(headers=(_EXECUTOR,), start=("torch::jit::getProfilingMode() = {value};",)),
        triton="ENABLE_JIT_PROFILING",
    ),
    Row(
        name="texpr_fuser",
        kind=Kind.SWITCH,
        about="tensor-expression fuser",
        mitigations=(
            Mitigation(name="fuser off", value=False, about="no tensor-expression fuser", tried=Tried.EVERY_RUN),
        ),
        python=Code(start=("torch._C._jit_set_texpr_fuser_enabled({value})",)),
        cpp=Code(headers=(_FUSER,), start=("torch::jit::setTensorExprFuserEnabled({value});",)),
        triton="ENABLE_TENSOR_FUSER",
        environment="PYTORCH_TENSOREXPR",
    ),
    Row(
        name="profiling_executor",
        kind=Kind.SWITCH,
        about="profiling executor; false is the legacy executor",
        mitigations=(
            Mitigation(
                name="profiling executor off", value=False, about="the legacy executor", tried=Tried.EVERY_SEARCH
            ),
        ),
        python=Code(start=("torch._C._jit_set_profiling_executor({value})",)),
        cpp=Code(headers=(_EXECUTOR,), start=("torch::jit::getExecutorMode() = {value};",)),
        triton="ENABLE_JIT_EXECUTOR",
    ),
    Row(
        name="optimized_execution",
        kind=Kind.SWITCH,
        scope=Scope.THREAD,
        about="`torch.jit.optimized_execution`, in every thread",
        mitigations=(
            Mitigation(
                name="optimized execution off", value=False, about="no graph optimisation", tried=Tried.EVERY_SEARCH
            ),
        ),
        python=Code(guards=("torch.jit.optimized_execution({value})",)),
        cpp=Code(headers=(_EXECUTOR,), guards=("const torch::jit::GraphOptimizerEnabledGuard optimized({value});",)),
        triton="DISABLE_OPTIMIZED_EXECUTION",
    ),
    Row(
        name="fusion_depth",
        kind=Kind.SWITCH,
        values=0,
        about="depth of the static and the dynamic fusion strategy",
        mitigations=(
            Mitigation(
                name="fusion depth 0", value=0, about="nothing is specialised for fusion", tried=Tried.EVERY_SEARCH
            ),
        ),
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
        name="cpu_fusion",
        kind=Kind.SWITCH,
        about="whether the fuser may fuse on a CPU",
        python=Code(
            start=(
                "torch._C._jit_override_can_fuse_on_cpu({value})",
                "torch._C._jit_set_te_must_use_llvm_cpu({not})",
            )
        ),
    ),
    Row(
        name="inference_mode",
        kind=Kind.SWITCH,
        scope=Scope.THREAD,
        about="`torch.inference_mode`, in every thread",
        mitigations=(Mitigation(name="inference mode", value=True, about="no version counters, no views tracked"),),
        python=Code(guards=("torch.inference_mode({value})",)),
        cpp=Code(headers=("c10/core/InferenceMode.h",), guards=("const c10::InferenceMode inference_mode({value});",)),
        triton="INFERENCE_MODE",
    ),
    Row(
        name="freeze",
        kind=Kind.SWITCH,
        scope=Scope.MODULE,
        about="`torch.jit.freeze` of every module that is loaded",
        mitigations=(Mitigation(name="freeze", value=True, about="parameters become constants after load"),),
        python=Code(loaded=(f"# {_METHODS}", "model = torch.jit.freeze(model.eval())")),
        cpp=Code(headers=(_MODULE,), loaded=(f"// {_METHODS}", "model.eval();", "model = torch::jit::freeze(model);")),
    ),
    Row(
        name="optimize_for_inference",
        kind=Kind.SWITCH,
        scope=Scope.MODULE,
        about="`torch.jit.optimize_for_inference` of every module that is loaded",
        mitigations=(
            Mitigation(
                name="optimize for inference", value=True, about="frozen, and rewritten for this machine after load"
            ),
        ),
        includes=("freeze",),
        python=Code(loaded=("model = torch.jit.optimize_for_inference(model.eval())",)),
        cpp=Code(headers=(_MODULE,), loaded=("model.eval();", "model = torch::jit::optimize_for_inference(model);")),
    ),
    Row(
        name="intra_op_threads",
        kind=Kind.POOL,
        values=1,
        mitigations=(Mitigation(name="one intra-op thread", value=1, about="operators run in one thread"),),
        fingerprint="intra_op_threads",
        python=Code(start=("torch.set_num_threads({value})",)),
        cpp=Code(headers=(_PARALLEL,), start=("at::set_num_threads({value});",)),
        triton="INTRA_OP_THREAD_COUNT",
        environment="OMP_NUM_THREADS",
    ),
    Row(
        name="inter_op_threads",
        kind=Kind.POOL,
        values=1,
        mitigations=(Mitigation(name="wide inter-op pool", value=WIDE_POOL, about="tasks do not wait for each other"),),
        fingerprint="inter_op_threads",
        python=Code(start=("torch.set_num_interop_threads({value})",)),
        cpp=Code(headers=(_PARALLEL,), start=("at::set_num_interop_threads({value});",)),
        triton="INTER_OP_THREAD_COUNT",
    ),
    Row(
        name="load",
        kind=Kind.ORDER,
        mitigations=(Mitigation(name="serialized loading", value=True, about="a mutex around loading"),),
        python=Code(locks=("load",)),
        cpp=Code(locks=("load",)),
    ),
    Row(
        name="calls",
        kind=Kind.ORDER,
        mitigations=(Mitigation(name="serialized first calls", value=True, about="a mutex around warm-up"),),
        python=Code(locks=("calls",)),
        cpp=Code(locks=("calls",)),
    ),
    Row(
        name="quantized_engine",
        kind=Kind.NUMERICS,
        values=("fbgemm", "onednn", "qnnpack", "x86"),
        about="`torch.backends.quantized.engine`; the releases' defaults differ",
        as_before=True,
        operators=r"_?quantized(_decomposed)?::|aten::_?(fake_|de)?quantize",
        python=Code(start=("torch.backends.quantized.engine = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setQEngine(at::QEngine::{BARE});",)),
    ),
    Row(
        name="mkldnn",
        kind=Kind.NUMERICS,
        about="oneDNN's kernels at all",
        mitigations=(Mitigation(name="oneDNN off", value=False, about="no oneDNN kernels"),),
        python=Code(start=("torch.backends.mkldnn.set_flags({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setUserEnabledMkldnn({value});",)),
    ),
    Row(
        name="cudnn",
        kind=Kind.NUMERICS,
        about="cuDNN's kernels at all",
        mitigations=(Mitigation(name="cuDNN off", value=False, about="no cuDNN kernels"),),
        cuda_only=True,
        python=Code(start=("torch.backends.cudnn.enabled = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setUserEnabledCuDNN({value});",)),
        triton="DISABLE_CUDNN",
    ),
    Row(
        name="cudnn_tf32",
        kind=Kind.NUMERICS,
        about="TF32 in cuDNN's convolutions",
        mitigations=(Mitigation(name="cuDNN TF32 off", value=False, about="convolutions in full float32"),),
        cuda_only=True,
        as_before=True,
        python=Code(start=("torch.backends.cudnn.allow_tf32 = {value}",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setAllowTF32CuDNN({value});",)),
    ),
    Row(
        name="matmul_precision",
        kind=Kind.NUMERICS,
        values=("highest", "high", "medium"),
        about="`torch.set_float32_matmul_precision`: TF32 in matrix products on a GPU, bfloat16 on some CPUs",
        mitigations=(Mitigation(name="full matmul precision", value="highest", about="float32 products in float32"),),
        as_before=True,
        python=Code(start=("torch.set_float32_matmul_precision({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setFloat32MatmulPrecision({value});",)),
    ),
    Row(
        name="deterministic",
        kind=Kind.NUMERICS,
        about="`torch.use_deterministic_algorithms`",
        mitigations=(Mitigation(name="deterministic", value=True, about="deterministic algorithms only"),),
        python=Code(start=("torch.use_deterministic_algorithms({value})",)),
        cpp=Code(headers=(_CONTEXT,), start=("at::globalContext().setDeterministicAlgorithms({value}, false);",)),
    ),
    Row(
        name="autocast",
        kind=Kind.NUMERICS,
        values=("off", "bfloat16", "float16"),
        scope=Scope.THREAD,
        about="autocast on the run's device, in every thread",
        mitigations=(Mitigation(name="autocast off", value="off", about="no operator is cast down"),),
        python=Code(guards=('torch.autocast("{device}", dtype=torch.{bare})',)),
        python_of={"off": Code(guards=('torch.autocast("{device}", enabled=False)',))},
    ),
    Row(
        name="flush_denormal",
        kind=Kind.NUMERICS,
        scope=Scope.THREAD,
        about="denormal numbers become zero, in every thread",
        mitigations=(Mitigation(name="denormals kept", value=False, about="denormal numbers are no zeros"),),
        python=Code(threads=("torch.set_flush_denormal({value})",)),
        cpp=Code(headers=(_CONTEXT,), threads=("at::globalContext().setFlushDenormal({value});",)),
    ),
    Row(
        name="PYTORCH_TENSOREXPR_FALLBACK",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(
            Mitigation(name="fuser falls back", value="2", about="fused groups run their operators one by one"),
        ),
    ),
    Row(
        name="ATEN_CPU_CAPABILITY",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(
            Mitigation(name="AVX2 kernels", value="avx2", about="no AVX-512 kernels of torch"),
            Mitigation(name="plain kernels", value="default", about="no vectorised kernels of torch"),
        ),
        fingerprint="isa",
    ),
    Row(
        name="MKL_CBWR",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(Mitigation(name="reproducible MKL", value="COMPATIBLE", about="MKL's compatible code path"),),
        read_back=False,
    ),
    Row(
        name="ONEDNN_MAX_CPU_ISA",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(Mitigation(name="AVX2 oneDNN", value="AVX2", about="no AVX-512 kernels of oneDNN"),),
        read_back=False,
    ),
    Row(
        name="CUDA_MODULE_LOADING",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(
            Mitigation(
                name="eager CUDA modules",
                value="EAGER",
                about="kernels are loaded with their module, not at their first launch",
            ),
        ),
        cuda_only=True,
        read_back=False,
    ),
    Row(
        name="NVIDIA_TF32_OVERRIDE",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(Mitigation(name="no TF32 anywhere", value="0", about="no CUDA library uses TF32"),),
        cuda_only=True,
        read_back=False,
    ),
    Row(
        name="CUBLAS_WORKSPACE_CONFIG",
        kind=Kind.VARIABLE,
        values=str,
        mitigations=(
            Mitigation(name="one cuBLAS workspace", value=":4096:8", about="cuBLAS answers the same in every stream"),
        ),
        cuda_only=True,
        read_back=False,
    ),
)
TABLE: Final[Mapping[str, Row]] = {row.name: row for row in ROWS}


def of_kind(kind: Kind) -> tuple[Row, ...]:
    """Return the rows of one kind."""
    return tuple(row for row in ROWS if row.kind is kind)
