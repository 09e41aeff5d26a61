"""The libraries of one LibTorch, taken together: what they export, what they need and what they bring."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.artifacts.shared_objects import SharedObject

# Namespaces of PyTorch within mangled names, and its C interfaces.
API = re.compile(r"_Z\w*?(?<!\d)(?:2at|3c10|5torch|6caffe2)(?=[A-Z\d])|aoti_torch_|THP|torch_")
# Of 90,000 strong functions in libtorch_cpu.so of 2.6.0, 24,000 are MKL's inner ones, which no server defines.
INNER = re.compile(r"_?(?:mkl|MKL|vm[sdlcz]|V[MS])")
# Names of symbol versions that the system's libraries define: GLIBC_2.28, GLIBCXX_3.4.29, CXXABI_1.3.13.
SYSTEM = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)")
OPENMP = re.compile(r"lib(?:gomp|omp|iomp5)\b.*\.so")


@dataclass(frozen=True, kw_only=True, slots=True)
class LibTorch:
    """One release's libraries, as its wheel or its zip has them in ``lib``.

    Attributes:
        name: ``2.6.0``, or the folder or file that was named.
        brings: names by which others find the libraries in its folder.
        needs: libraries that it needs and does not bring: the system's, and CUDA's.
        exported: mangled names of PyTorch's own interface; ``defined``: those of all strong functions, also of what is
            linked into it (protobuf, glog, Sleef), without MKL's.
        declares: whether its headers name a symbol, by its mangled name; always False where it has none.
        versions: the highest version of the system's symbols that it needs: ``{"GLIBC": "2.28"}``.
    """

    name: str
    brings: tuple[str, ...]
    needs: tuple[str, ...]
    exported: frozenset[str]
    defined: frozenset[str]
    declares: Callable[[str], bool] = lambda _: False
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def openmp(self) -> str:
        """The OpenMP runtime that it loads; empty where it needs none."""
        return next((name for name in (*self.brings, *self.needs) if OPENMP.match(name)), "")


def is_api(name: str) -> bool:
    """Whether a mangled name looks like one of PyTorch's."""
    return API.match(name) is not None


def of_libraries(
    name: str, libraries: Iterable[SharedObject], declares: Callable[[str], bool] = lambda _: False
) -> LibTorch:
    """Take the libraries of a folder together, and its headers.

    Of inline functions and templates (weak symbols) those outside of PyTorch's namespaces are left out: who uses
    ``std::vector<at::Tensor>`` has it compiled in.
    """
    libraries = tuple(libraries)
    brings = tuple(sorted({library.name for library in libraries}))
    strong = {symbol for library in libraries for symbol in library.strong if not INNER.match(symbol)}
    api = {
        symbol
        for library in libraries
        for symbol in library.exported
        if is_api(symbol)
        and (symbol in library.strong or not symbol.startswith(("_ZNSt", "_ZNKSt", "_ZTISt", "_ZTVSt")))
    }
    # CUDA kernels are thousands of templates that no server names.
    cuda = {symbol for library in libraries if "cuda" in library.name for symbol in library.exported - library.strong}
    return LibTorch(
        name=name,
        brings=brings,
        needs=tuple(sorted({needed for library in libraries for needed in library.needed} - {*brings})),
        exported=frozenset(api - cuda),
        defined=frozenset(strong),
        declares=declares,
        versions=highest(library.versions for library in libraries),
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
