"""Environments under test: what was asked for, what was found, and what is installed in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# The largest one with a CUDA build of torch that was measured takes 5.6 GB (docs/evidence.md#environments).
ENVIRONMENT_BYTES = 6_000_000_000
# One with 2.13.0+cpu takes 0.75 GB (docs/evidence.md#environments); NumPy and the like come on top.
CPU_ENVIRONMENT_BYTES = 1_500_000_000

# Values of ``EnvSpec.torch_backend`` that are no build; uv's words, but for the second.
AUTO_BACKEND: Final = "auto"
DEFAULT_BACKEND: Final = "default"
CPU_BACKEND: Final = "cpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvSpec:
    """An environment as asked for: either a torch release to build, or a ready-made interpreter.

    Attributes:
        name: how the report calls it, e.g. ``"torch 2.1.2"`` or the NAME of ``--env NAME=PYTHON``.
        release: torch release to install, or None for a ready-made interpreter.
        interpreter: path of a ready-made interpreter, or None.
        python: ``"3.11"``; which Python to build with.
        extras: further requirement strings.
        index_args: passed through to ``uv pip install`` / ``pip install``.
        torch_backend: ``"cpu"``, ``"cu126"``: that build, from PyTorch's own index; ``"default"``: the build that the
            installer's index has; ``"auto"``: undecided, see ``with_common_build``; ``build_all`` takes none.
        libraries: operator libraries that its workers load before any artifact: absolute paths of shared objects, and
            names of importable modules.
    """

    name: str
    release: str | None = None
    interpreter: str | None = None
    python: str | None = None
    extras: tuple[str, ...] = ()
    index_args: tuple[str, ...] = ()
    torch_backend: str = DEFAULT_BACKEND
    libraries: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """What the installer is asked for: ``release``, with its build where that is chosen: ``"2.6.0+cpu"``."""
        release = self.release or ""
        if "+" in release or self.torch_backend in (AUTO_BACKEND, DEFAULT_BACKEND):
            return release
        return f"{release}+{self.torch_backend}"

    @property
    def needed_bytes(self) -> int:
        """How much free space its building needs."""
        return CPU_ENVIRONMENT_BYTES if self.version.endswith("+cpu") else ENVIRONMENT_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """An environment that exists: ``interpreter`` can be started."""

    name: str
    interpreter: str
    spec: EnvSpec
    built_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """What an environment says of itself; ``None`` where it cannot tell.

    ``identity`` below is what makes two environments the same release. ``libraries`` are the operator libraries that
    were loaded, each with its version or a digest.
    """

    torch: str
    git_revision: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    driver: str | None = None
    gpu: str | None = None
    cpu: str | None = None
    isa: str | None = None
    glibc: str | None = None
    cxx11_abi: bool | None = None
    python: str = ""
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    quantized_engine: str | None = None
    operator_version: int | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict)
    libraries: str = ""

    @property
    def identity(self) -> str:
        """Torch version and source revision: equal means the same torch."""
        return f"{self.torch}@{self.git_revision or 'unknown'}"

    @property
    def contents(self) -> str:
        """``identity`` and the operator libraries: equal means that a probe finds the same code."""
        return f"{self.identity} with {self.libraries}" if self.libraries else self.identity
