"""An environment that a run would need, and what a build of torch and the index say of it. Facts."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """What a build of torch asks of a machine.

    Attributes:
        cuda: ``"12.4"``; None: a build without CUDA.
        architectures: ``"sm_90"`` and ``"compute_90"`` of its kernels; empty where nobody knows.
        glibc: the oldest that it runs with, ``"2.28"``; None where nobody knows.
    """

    cuda: str | None
    architectures: tuple[str, ...] = ()
    glibc: str | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexAnswer:
    """What index or cache has of a release; ``found``: None without an answer in time; ``said``: its own words."""

    found: bool | None = None
    reached: bool = True
    cached: bool = False
    said: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An environment that a run would need.

    Attributes:
        python: the Python that it has or would get; empty where none was found.
        pythons: the Pythons that suit the release, in words; empty for a ready-made interpreter.
        unsuited: whether it would be built with another one, which the configuration names.
        trouble, hint: why there is no Python, or what is wrong with the interpreter.
        wheel: None where nobody knows this build.
    """

    name: str
    built: bool = False
    python: str = ""
    pythons: str = ""
    unsuited: bool = False
    trouble: str = ""
    hint: str = ""
    wheel: Wheel | None = None
    index: IndexAnswer | None = None
