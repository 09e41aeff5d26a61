"""Which build of torch the environments of one run get; all get the same kind.

A build for CPUs has other kernels and another thread pool than a CUDA build of the same release, and takes a seventh of
its space. The registry (PyPI) has CUDA builds; PyTorch's own index has both.
"""

import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from harness.config.schema import BUILD_PATTERN
from harness.core.environment import AUTO_BACKEND, CPU_BACKEND, DEFAULT_BACKEND, EnvSpec
from harness.core.errors import EnvironmentUnavailable
from harness.environments.builder import EnvironmentBuilder
from harness.environments.candidates import ask_index, run_briefly, wheel_beside
from harness.environments.installer import PYTORCH_INDEX, pip_for
from harness.environments.interpreters import find_pythons, verified_python
from harness.environments.wheel_requirements import wheel_of
from harness.machine import gpu, pool

ANSWER_S: Final = 5.0
SETTINGS_S: Final = 5.0
_ASK_NO_MORE: Final = 'set torch_backend = "default" under [tool.compat] to ask no more'

# `uv pip install --show-settings`, which is for people: where it is written otherwise, an index counts as configured.
_NO_INDEX_OF_UV: Final = re.compile(
    r"index_locations: IndexLocations \{\s*indexes: \[\],\s*flat_index: \[\],\s*no_index: false,?\s*\}"
)
_BACKEND_OF_UV: Final = re.compile(r"torch_backend: (?:None|Some\(\s*(\w+))")
_INDEX_OF_PIP: Final = re.compile(r"^\S*\.(index-url|extra-index-url|find-links|no-index)=", re.MULTILINE)
_INDEX_OPTIONS: Final = ("-i", "-f", "--index-url", "--extra-index-url", "--find-links", "--no-index")


def with_common_build(specs: Sequence[EnvSpec], builder: EnvironmentBuilder) -> list[EnvSpec]:
    """Return the specs, each with its build; those that are open get the kind that ``common_build`` chooses."""
    backend = common_build(specs, builder)
    return [with_build(spec, backend) for spec in specs]


def with_build(spec: EnvSpec, backend: str) -> EnvSpec:
    """Return the spec with its build: the one that its release names, the configured one, or else ``backend``."""
    named = (spec.release or "").partition("+")[2]
    if named and spec.torch_backend != DEFAULT_BACKEND:
        return replace(spec, torch_backend=named if re.fullmatch(BUILD_PATTERN, named) else DEFAULT_BACKEND)
    return replace(spec, torch_backend=backend) if spec.torch_backend == AUTO_BACKEND else spec


def common_build(specs: Sequence[EnvSpec], builder: EnvironmentBuilder, *, limit_s: float = ANSWER_S) -> str:
    """Return what ``auto`` stands for in environments that are compared with each other; all have their Python.

    ``"cpu"`` on a machine without an NVIDIA GPU, where no index is configured and PyTorch's has all of them; else
    ``"default"``. An index is asked only if something is to be built, for at most ``limit_s`` seconds; what is taken
    then is noted.
    """
    open_ = [spec for spec in specs if spec.release is not None and _is_open(spec)]
    if not open_:
        return DEFAULT_BACKEND
    wanted = os.environ.get("UV_TORCH_BACKEND") or AUTO_BACKEND
    if wanted != AUTO_BACKEND:
        return wanted if re.fullmatch(BUILD_PATTERN, wanted) else DEFAULT_BACKEND
    # The registry has builds for CPUs where the processor is another one.
    if platform.machine() != "x86_64" or gpu.without_asking().nodes:
        return DEFAULT_BACKEND
    if any(_has_cuda(spec) for spec in specs if spec not in open_):
        return DEFAULT_BACKEND
    for_cpu, as_before = (
        [replace(spec, torch_backend=kind) for spec in open_] for kind in (CPU_BACKEND, DEFAULT_BACKEND)
    )
    for ready in (for_cpu, as_before):
        if all(map(builder.is_ready, ready)):
            return ready[0].torch_backend
    configured = _configured(builder.uv, as_before)
    names = " and ".join(dict.fromkeys(spec.name for spec in open_))
    if configured == DEFAULT_BACKEND:
        builder.note(
            f'{names}: from the configured index; set torch_backend = "cpu" under [tool.compat] '
            f"for builds without CUDA from {PYTORCH_INDEX}/cpu"
        )
    if configured != AUTO_BACKEND:
        return configured
    return _asked(for_cpu, names, builder, limit_s)


def _is_open(spec: EnvSpec) -> bool:
    return spec.torch_backend == AUTO_BACKEND and "+" not in (spec.release or "")


def _asked(for_cpu: Sequence[EnvSpec], names: str, builder: EnvironmentBuilder, limit_s: float) -> str:
    pythons = find_pythons()

    def missing(spec: EnvSpec) -> str:
        if builder.is_ready(spec):
            return ""
        try:
            interpreter = verified_python(spec.python or "", pythons)
        except EnvironmentUnavailable:
            return ""  # its build says so
        answer = ask_index(spec, uv=builder.uv, interpreter=interpreter, limit_s=limit_s)
        return "" if answer.found else answer.said

    reasons = [reason for reason in pool.each(missing, for_cpu, jobs=len(for_cpu)) if reason]
    if not reasons:
        builder.note(f"{names}: builds for CPUs, from {PYTORCH_INDEX}/cpu; this machine shows no NVIDIA GPU")
        return CPU_BACKEND
    builder.note(
        f"{names}: from the package index, whose builds are larger ones for CUDA; "
        f"{PYTORCH_INDEX}/cpu: {reasons[0]}; {_ASK_NO_MORE}"
    )
    return DEFAULT_BACKEND


def _has_cuda(spec: EnvSpec) -> bool:
    if spec.interpreter is not None:
        wheel = wheel_beside(spec.interpreter)
    elif spec.torch_backend == DEFAULT_BACKEND and "+" not in (spec.release or ""):
        return True
    else:
        wheel = wheel_of(with_build(spec, DEFAULT_BACKEND).version)
    return wheel is not None and wheel.cuda is not None


def _configured(uv: str | None, specs: Sequence[EnvSpec]) -> str:
    """Return the build that the installer's own configuration asks for: ``"default"`` where it names an index."""
    kinds = {_of_uv(uv, args) if uv is not None else _of_pip(args) for args in {spec.index_args for spec in specs}}
    return kinds.pop() if len(kinds) == 1 else DEFAULT_BACKEND


def _of_uv(uv: str, index_args: Sequence[str]) -> str:
    shown = run_briefly((uv, "pip", "install", "--show-settings", *index_args, "torch"), SETTINGS_S)
    backend = _BACKEND_OF_UV.search(shown)
    if backend is None or _NO_INDEX_OF_UV.search(shown) is None:
        return DEFAULT_BACKEND
    named = (backend[1] or AUTO_BACKEND).lower()
    return named if named == AUTO_BACKEND or re.fullmatch(BUILD_PATTERN, named) else DEFAULT_BACKEND


def _of_pip(index_args: Sequence[str]) -> str:
    if any(argument.partition("=")[0] in _INDEX_OPTIONS for argument in index_args):
        return DEFAULT_BACKEND
    shown = run_briefly((*pip_for(sys.executable, sys.executable), "config", "list"), SETTINGS_S)
    return DEFAULT_BACKEND if _INDEX_OF_PIP.search(shown) else AUTO_BACKEND
