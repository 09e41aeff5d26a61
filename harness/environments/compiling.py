"""What a release needs to compile packages of AOTInductor beyond what it brings itself; pure."""

from dataclasses import replace
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.domain.environment import EnvSpec

NEEDED_BEFORE: Final = Version("2.11.0")
"""torch/utils/cpp_extension.py, where the compiler finds its paths, imports setuptools in every release. 2.11.0 and
2.15.0 ask for it in their metadata; 2.6.0 and 2.8.0 do so only for Python 3.12 and later."""
SETUPTOOLS: Final = "setuptools<82"
"""As 2.11.0 asks for it."""


def compiling(spec: EnvSpec) -> EnvSpec:
    """Return the spec with what its release needs to compile: the same one where that is there anyway.

    A ready-made interpreter, and an environment that is given in every detail, stay as they are.
    """
    if spec.release is None or spec.exact or Version(spec.release) >= NEEDED_BEFORE:
        return spec
    if any(_name_of(extra) == "setuptools" for extra in spec.extras):
        return spec
    return replace(spec, extras=(*spec.extras, SETUPTOOLS))


def _name_of(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:  # of pip's own kinds, such as a path: the installer says what it thinks of it
        return ""
