"""What a release needs beside what its metadata asks for, to compile packages and to import libraries; pure."""

from dataclasses import replace
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.core.environment import EnvSpec

DECLARES_SETUPTOOLS: Final = Version("2.11.0")
"""torch/utils/cpp_extension.py, where the compiler finds its paths, imports setuptools in every release. 2.11.0 and
2.15.0 ask for it in their metadata; 2.6.0 and 2.8.0 do so only for Python 3.12 and later."""
SETUPTOOLS: Final = "setuptools<82"
"""As 2.11.0 asks for it."""
BRINGS_PACKAGING: Final = Version("2.3.0")
"""torch/torch_version.py compares versions with packaging, or pkg_resources, and 1.13.1 and 2.1.2 ask for neither: they
fail where something compares, as torch._dynamo does when it is imported, which torchvision 0.16.2 does. 2.6.0 has a
copy of its own (torch/_vendor)."""


def compiling(spec: EnvSpec) -> EnvSpec:
    """Return the spec with what its release needs to compile; a ready-made interpreter stays as it is."""
    return _with(spec, SETUPTOOLS, DECLARES_SETUPTOOLS)


def importing(spec: EnvSpec) -> EnvSpec:
    """Return the spec with what its release needs so that other packages can import it; the same one without any."""
    return _with(spec, "packaging", BRINGS_PACKAGING) if spec.extras else spec


def _with(spec: EnvSpec, requirement: str, before: Version) -> EnvSpec:
    if spec.release is None or Version(spec.release) >= before:
        return spec
    if any(_name_of(extra) == _name_of(requirement) for extra in spec.extras):
        return spec
    return replace(spec, extras=(*spec.extras, requirement))


def _name_of(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:  # of pip's own kinds, such as a path: the installer says what it thinks of it
        return ""
