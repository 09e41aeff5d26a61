"""The libraries of one LibTorch, taken together: what they export, what they need and what they bring."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifacts.shared_objects import SharedObject
from harness.core.linking import OPENMP

# Mangled names of what lies in PyTorch's namespaces (vtables, guards and thunks too), and of its C interfaces.
API = re.compile(
    r"_Z(?:T[VTISCWH]|GV|Thn?\d+_|Tvn?\d+_n?\d+_)?N[VK]*[RO]?(?:2at|3c10|5torch|6caffe2)|_Z\d+THP|THP|aoti_torch_|torch_"
)
# Of 90,000 functions in libtorch_cpu.so of 2.6.0, 24,000 are MKL's inner ones, which no server has. Every library has
# the other two.
INNER = re.compile(r"_?(?:mkl|MKL|vm[sdlcz]|V[MS])|_init$|_fini$")
# Names of symbol versions that the system's libraries define: GLIBC_2.28, GLIBCXX_3.4.29, CXXABI_1.3.13.
SYSTEM = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)")


@dataclass(frozen=True, kw_only=True, eq=False)
class LibTorch:
    """One release's libraries, as its wheel or its zip has them in ``lib``; equal to itself only.

    Attributes:
        name: ``2.6.0``, or the folder or file that was named.
        brings: names by which others find the libraries in its folder.
        needs: for each of its libraries what it needs, its own ones and the system's.
        exported: mangled names that others link to, also of what is linked into it (protobuf, glog, Sleef), without
            MKL's; ``defined``: those that it defines for the whole process, so without inline functions.
        declares: whether its headers name a symbol, by its mangled name; always False where it has none.
        versions: the highest version of the system's symbols that it needs: ``{"GLIBC": "2.28"}``.
        machine: as of a ``SharedObject``.
    """

    name: str
    brings: tuple[str, ...]
    needs: Mapping[str, tuple[str, ...]]
    exported: frozenset[str]
    defined: frozenset[str]
    declares: Callable[[str], bool] = lambda _: False
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = "x64"

    @functools.cached_property
    def new_strings(self) -> bool:
        """Whether its interface has libstdc++'s newer strings (``_GLIBCXX_USE_CXX11_ABI=1``)."""
        newer, older = (sum(text in symbol for symbol in self.exported) for text in ("RKNSt7__cxx11", "RKSs"))
        return newer > older

    @functools.cached_property
    def openmp(self) -> str:
        """The OpenMP runtime that it loads; empty where it needs none."""
        return next((name for name in (*self.brings, *self.wanted(self.brings)) if OPENMP.match(name)), "")

    def wanted(self, libraries: Iterable[str]) -> tuple[str, ...]:
        """Return what some of its libraries need, with all that they bring along, and the folder does not have."""
        waiting, seen = list(libraries), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self.needs.get(name, ())
        return tuple(sorted(name for name in seen if name not in self.brings))


def is_api(name: str) -> bool:
    """Whether a mangled name looks like one of PyTorch's."""
    return API.match(name) is not None


def of_libraries(
    name: str, libraries: Iterable[SharedObject], declares: Callable[[str], bool] = lambda _: False
) -> LibTorch:
    """Take the libraries of a folder together, and its headers.

    Of inline functions and templates (weak symbols) those outside of PyTorch's namespaces are left out: who uses
    ``std::vector<at::Tensor>`` has it compiled in. Those of CUDA's libraries are thousands of kernels.
    """
    libraries = tuple(libraries)
    brings = tuple(sorted({name for library in libraries for name in (library.name, Path(library.file).name)}))
    defined = {symbol for library in libraries for symbol in library.strong if not INNER.match(symbol)}
    inline = {
        symbol
        for library in libraries
        if "cuda" not in library.name
        for symbol in library.exported - library.strong
        if is_api(symbol)
    }
    return LibTorch(
        name=name,
        brings=brings,
        needs={
            name: tuple(sorted(library.needed))
            for library in libraries
            for name in (library.name, Path(library.file).name)
        },
        exported=frozenset(defined | inline),
        defined=frozenset(defined),
        declares=declares,
        versions=highest(library.versions for library in libraries),
        machine=next((library.machine for library in libraries), "x64"),
    )


def highest(needs: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Return the highest version of each of the system's symbol families among what libraries need."""
    found: dict[str, str] = {}
    for versions in needs:
        for names in versions.values():
            for family, number in (match.groups() for name in names if (match := SYSTEM.fullmatch(name))):
                if order(number) > order(found.get(family, "0")):
                    found[family] = number
    return found


def order(version: str) -> tuple[int, ...]:
    """Return ``2.28`` as numbers that compare."""
    return tuple(map(int, version.split(".")))
