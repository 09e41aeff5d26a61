"""Environments under test: what was asked for, what was found, and what is installed in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The largest one with a CUDA build of torch that was measured takes 5.6 GB (docs/evidence.md#environments).
ENVIRONMENT_BYTES = 6_000_000_000


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
        libraries: operator libraries that its workers load before any artifact: absolute paths of shared objects, and
            names of importable modules.
    """

    name: str
    release: str | None = None
    interpreter: str | None = None
    python: str | None = None
    extras: tuple[str, ...] = ()
    index_args: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


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
