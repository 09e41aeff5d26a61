"""What a server can set otherwise where a model does not pass: the table of settings, by the names that policy uses.

The JIT switches cure a natural hang (docs/evidence.md#natural-hang). Of the environment variables there are those whose
effect torch can be asked about, and those that are known to change what its libraries do; the table says which is
which.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.domain.cure import Setting
from harness.domain.probe import ServingProfile

WIDE_POOL: Final = 8
_IN_PLACE: Final = "it is in the process's environment; whether the library heeds it, torch cannot be asked"
JIT_SWITCHES: Final = (
    Setting(name="profiling off", about="no profiling runs", switches={"profiling": False}),
    Setting(name="fuser off", about="no tensor-expression fuser", switches={"texpr_fuser": False}),
    Setting(name="profiling executor off", about="the legacy executor", switches={"profiling_executor": False}),
    Setting(name="optimized execution off", about="no graph optimisation", switches={"optimized_execution": False}),
    Setting(name="fusion depth 0", about="nothing is specialised for fusion", switches={"fusion_depth": 0}),
)
_OTHERS: Final = (
    Setting(name="inference mode", about="no version counters, no views tracked", switches={"inference_mode": True}),
    Setting(name="freeze", about="parameters become constants after load", switches={"freeze": True}),
    Setting(
        name="optimize for inference",
        about="frozen, and rewritten for this machine after load",
        switches={"optimize_for_inference": True},
    ),
    Setting(name="one intra-op thread", about="operators run in one thread", intra_op_threads=1),
    Setting(name="wide inter-op pool", about="tasks do not wait for each other", inter_op_threads=WIDE_POOL),
    Setting(name="serialized loading", about="a mutex around loading", one_at_a_time=("load",)),
    Setting(name="serialized first calls", about="a mutex around warm-up", one_at_a_time=("calls",)),
    Setting(name="oneDNN off", about="no oneDNN kernels", numerics={"mkldnn": False}),
    Setting(name="cuDNN off", about="no cuDNN kernels", numerics={"cudnn": False}, cuda_only=True),
    Setting(
        name="cuDNN TF32 off", about="convolutions in full float32", numerics={"cudnn_tf32": False}, cuda_only=True
    ),
    Setting(
        name="full matmul precision", about="float32 products in float32", numerics={"matmul_precision": "highest"}
    ),
    Setting(name="deterministic", about="deterministic algorithms only", numerics={"deterministic": True}),
    Setting(name="autocast off", about="no operator is cast down", numerics={"autocast": "off"}),
    Setting(name="denormals kept", about="denormal numbers are no zeros", numerics={"flush_denormal": False}),
    Setting(
        name="fuser falls back",
        about="fused groups run their operators one by one",
        env={"PYTORCH_TENSOREXPR_FALLBACK": "2"},
    ),
    Setting(name="AVX2 kernels", about="no AVX-512 kernels of torch", env={"ATEN_CPU_CAPABILITY": "avx2"}),
    Setting(name="plain kernels", about="no vectorised kernels of torch", env={"ATEN_CPU_CAPABILITY": "default"}),
    Setting(
        name="reproducible MKL", about="MKL's compatible code path", env={"MKL_CBWR": "COMPATIBLE"}, waives=_IN_PLACE
    ),
    Setting(
        name="AVX2 oneDNN", about="no AVX-512 kernels of oneDNN", env={"ONEDNN_MAX_CPU_ISA": "AVX2"}, waives=_IN_PLACE
    ),
    Setting(
        name="eager CUDA modules",
        about="kernels are loaded with their module, not at their first launch",
        env={"CUDA_MODULE_LOADING": "EAGER"},
        cuda_only=True,
        waives=_IN_PLACE,
    ),
    Setting(
        name="no TF32 anywhere",
        about="no CUDA library uses TF32",
        env={"NVIDIA_TF32_OVERRIDE": "0"},
        cuda_only=True,
        waives=_IN_PLACE,
    ),
    Setting(
        name="one cuBLAS workspace",
        about="cuBLAS answers the same in every stream",
        env={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
        cuda_only=True,
        waives=_IN_PLACE,
    ),
)
MITIGATIONS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in (*JIT_SWITCHES, *_OTHERS)}

# Tried on every red cell of every run; the others can be accepted by policy and are searched by ``mitigate``.
TRIED_BY_DEFAULT: Final = ("profiling off", "fuser off")
# The outcome of these does not depend on how a loaded graph is executed.
NOT_CURABLE: Final = ("load_error", "structure", "dtype", "export_error")
# What of a worker's numeric state is no setting of a server, or has a setting of its own in the table.
_AS_BEFORE_TOO: Final = ("quantized_engine", "matmul_precision", "cudnn_tf32")


def applied(profile: ServingProfile, chosen: Iterable[Setting]) -> ServingProfile:
    """Return the profile with the settings on top, the later ones above."""
    for setting in chosen:
        profile = replace(
            profile,
            switches={**profile.switches, **setting.switches},
            env={**profile.env, **setting.env},
            numerics={**profile.numerics, **setting.numerics},
            intra_op_threads=setting.intra_op_threads or profile.intra_op_threads,
            inter_op_threads=setting.inter_op_threads or profile.inter_op_threads,
        )
    return profile


def candidates(
    profile: ServingProfile,
    *,
    device: str,
    isa: str,
    shared: bool,
    pools: tuple[int, int] | None,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> tuple[Setting, ...]:
    """Return the settings that could matter: of a shared process what orders its threads first, then as in the table.

    Those that change nothing are left out.

    Args:
        profile: of the new side.
        isa: what torch's kernels are chosen for here, as a fingerprint has it.
        shared: whether others load and call in the process in which the symptom shows.
        pools: sizes of the pools there, where they are not the profile's.
        old, new: the numeric state of a worker of either release, by the names of ``ServingProfile.numerics``.
    """
    if pools is not None:
        profile = replace(profile, intra_op_threads=pools[0], inter_op_threads=pools[1])
    found = [
        setting
        for setting in MITIGATIONS.values()
        if not (setting.cuda_only and device == "cpu")
        and (shared if setting.one_at_a_time else _changes(setting, profile, isa, new))
    ]
    found += [
        Setting(name=f"{name} as before", about=f"{value}, as in the old release", numerics={name: value})
        for name in _AS_BEFORE_TOO
        if (value := old.get(name)) is not None and new.get(name) not in (None, value)
    ]
    return tuple(sorted(found, key=lambda setting: not (shared and _orders_threads(setting))))


def _orders_threads(setting: Setting) -> bool:
    pools = setting.intra_op_threads, setting.inter_op_threads
    return bool(setting.one_at_a_time) or pools != (None, None)


def _changes(setting: Setting, profile: ServingProfile, isa: str, new: Mapping[str, Any]) -> bool:
    """Whether anything is otherwise with the setting than it is without."""
    if setting.env.get("ATEN_CPU_CAPABILITY") == isa.lower():
        return False
    if setting.numerics and all(new.get(name) == value for name, value in setting.numerics.items()):
        return False
    if setting.inter_op_threads is not None and profile.inter_op_threads >= setting.inter_op_threads:
        return False
    return applied(profile, [setting]) != profile


def get_along(chosen: Sequence[Setting]) -> bool:
    """Whether settings make sense together: no two of them set the same thing, none does the work of another."""
    names = [
        name
        for setting in chosen
        for name in (
            *setting.switches,
            *setting.env,
            *setting.numerics,
            *(("intra",) if setting.intra_op_threads else ()),
            *(("inter",) if setting.inter_op_threads else ()),
        )
    ]
    freezes = {"freeze", "optimize_for_inference"} <= set(names)
    return len(names) == len(set(names)) and not freezes


def one_at_a_time(chosen: Iterable[Setting]) -> tuple[str, ...]:
    """Return the steps of a script that may only happen one at a time."""
    return tuple(dict.fromkeys(step for setting in chosen for step in setting.one_at_a_time))
