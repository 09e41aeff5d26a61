"""Builds the C++ worker against an environment's own LibTorch, and small libraries without torch. Cached.

A build is found again by torch with its revision and place, the sources, the flags and the compiler's version.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from harness.environments.installer import run_installer
from harness.machine import files, processes
from harness.machine.pool import DeadlineExceeded, Patience, raise_failures, run_side_by_side

CANDIDATES: Final = ("g++", "clang++", "c++")
# std::to_chars for floating-point numbers exists since libstdc++ 11.
OLDEST_GCC: Final = 11
OLDEST_CLANG: Final = 12
DEFAULT_STANDARD: Final = 17
INSTALL: Final = f"install g++ {OLDEST_GCC} or later (Debian: apt install g++), or set CXX to such a compiler"

# Headers that refuse an older C++ than they need, below ``torch/include``.
_DEMANDING: Final = ("ATen/ATen.h", "c10/util/C++17.h", "torch/headeronly/macros/Macros.h")
_DEMAND: Final = re.compile(r"__cplusplus\s*<\s*(\d{6})L")
_STANDARDS: Final = {201703: 17, 202002: 20, 202302: 23}
_QUESTION_S: Final = 20.0
# In each folder of a build; its time says when that was used last.
LOCK: Final = ".lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """A compiler that knows the C++ asked for: its command, and its version: another version builds anew."""

    command: tuple[str, ...]
    version: str


class NoCompiler(Exception):
    """Raised when no compiler here can build; the text says why and what to do."""


def find_compiler() -> str | None:
    """Return the command line of a C++ compiler: CXX where it is set, else the first of ``CANDIDATES`` on PATH."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return named if shutil.which(shlex.split(named)[0]) else None
    return next((path for name in CANDIDATES if (path := shutil.which(name))), None)


def why_no_compiler() -> str:
    named = os.environ.get("CXX")
    return f"CXX names {named!r}, which is not there" if named else "no C++ compiler was found"


def standard_of(include: Path) -> int:
    """Return the C++ that the headers below ``include`` ask for: 17, 20, 23, never less than 17."""
    years = [0]
    for name in _DEMANDING:
        path = include / name
        if path.is_file():
            years += [int(year) for year in _DEMAND.findall(path.read_text(encoding="utf-8", errors="replace"))]
    newest = max(years)
    return next((standard for year, standard in sorted(_STANDARDS.items()) if newest <= year), max(_STANDARDS.values()))


def ask_compiler(standard: int) -> Compiler:
    """Return this machine's compiler, asked whether it knows C++ ``standard``. Raises ``NoCompiler``."""
    compiler = find_compiler()
    if compiler is None:
        raise NoCompiler(f"{why_no_compiler()}: {INSTALL}")
    command = tuple(shlex.split(compiler))
    try:
        question = (*command, f"-std=c++{standard}", "-dM", "-E", "-x", "c++", "/dev/null")
        answer = processes.run(question, limit_s=_QUESTION_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompiler(f"{compiler} cannot be run ({error}): {INSTALL}") from error
    if answer.returncode != 0:
        raise NoCompiler(f"{compiler} does not know C++{standard} ({first_error(answer.stderr)}): {INSTALL}")
    macros = dict(re.findall(r"^#define (__\w+__) (.*)$", answer.stdout, re.MULTILINE))
    _check_age(compiler, macros)
    return Compiler(command=command, version=macros.get("__VERSION__", answer.stdout[:200]).strip('"'))


def _check_age(name: str, macros: Mapping[str, str]) -> None:
    clang = "__clang_major__" in macros
    oldest = OLDEST_CLANG if clang else OLDEST_GCC
    major = macros.get("__clang_major__" if clang else "__GNUC__", "")
    if major.isdecimal() and int(major) < oldest:
        raise NoCompiler(f"{name} is version {major}, and {oldest} is the oldest that can build this: {INSTALL}")


def first_error(output: str) -> str:
    """Return the first line of a compiler's output that says ``error:`` or ``undefined reference``, else the first."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("$ ")]
    telling = (line for line in lines if re.search(r"error:|undefined reference|cannot find -l", line))
    return next(telling, lines[0] if lines else "it said nothing")


class NotBuilt(Exception):
    """Raised when something cannot be built; the text says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Everything that decides what comes out.

    ``command`` and ``libraries``: what is run, with ``-o FILE`` between the two; ``identity``: what else makes another
    build: versions and digests.
    """

    name: str
    output: str
    command: tuple[str, ...]
    libraries: tuple[str, ...]
    identity: tuple[str, ...]

    @property
    def folder(self) -> str:
        text = json.dumps([self.output, self.command, self.libraries, self.identity])
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_or_compile(recipe: Recipe, folder: Path, patience: Patience) -> tuple[Path, bool]:
    """Return what ``recipe`` builds, below ``folder``, and whether it was there already.

    Raises ``NotBuilt``: the compiler failed; ``Cancelled``, ``DeadlineExceeded``: the compiler's process group has been
    killed; ``OSError``: the folder cannot be written, or the compiler cannot be started.
    """
    place = folder / recipe.folder
    binary = place / recipe.output
    if binary.exists():
        files.touch(place / LOCK)
        return binary, True
    place.mkdir(parents=True, exist_ok=True)
    with files.locked(place / LOCK, patience) as lock:
        if binary.exists():  # another process has built it in the meantime
            return binary, True
        _compile(recipe, binary, patience, lock)
    return binary, False


def _compile(recipe: Recipe, binary: Path, patience: Patience, lock: int) -> None:
    log = binary.with_name("compiler.log")
    log.write_bytes(b"")
    draft = binary.with_name(f".{binary.name}.part")
    command = (*recipe.command, "-o", str(draft), *recipe.libraries)
    temporary = binary.with_name(".temporary")
    shutil.rmtree(temporary, ignore_errors=True)  # of a compiler that was killed
    temporary.mkdir()
    try:
        status = run_installer(command, log, patience, lock=lock, temporary=temporary)
        if status != 0:
            error = first_error(log.read_text(encoding="utf-8", errors="replace"))
            raise NotBuilt(f"{recipe.command[0]} failed on {recipe.name}: {error[:300]}; full log: {log}")
        draft.replace(binary)
    finally:
        draft.unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)


SOURCES: Final = Path(__file__).resolve().parent.parent / "native"
# Headers are named by their path in that folder.
OWN_HEADERS: Final = ("-I", str(SOURCES))
SOURCE_SUFFIXES: Final = (".cpp", ".hpp", ".ld")
# A build takes 10-20 s of two cores; at load 20 that was more than 300 s. Who waits sees ticks, and can interrupt.
DEADLINE_S: Final = 1800.0
CUDA_TOOLKITS: Final = (Path("/usr/local/cuda/include"), Path("/usr/include"))
TRITON: Final = Path("triton/backends/nvidia/include")
NEEDED_HEADER: Final = "torch/csrc/jit/serialization/import.h"


@dataclass(frozen=True, kw_only=True, slots=True)
class LibTorch:
    """The C++ side of an environment's torch.

    Attributes:
        torch: version in full, ``"2.6.0+cu124"``.
        root: the package's folder, with ``include`` and ``lib``.
        cxx11_abi: whether it was built with libstdc++'s newer strings.
    """

    torch: str
    root: Path
    cxx11_abi: bool
    git_revision: str | None = None

    @classmethod
    def from_mark(cls, mark: Mapping[str, Any]) -> Self:
        """Return what a worker has said in its mark ``libtorch``; from an empty mark, one that cannot be built."""
        return cls(
            torch=str(mark.get("torch", "unknown")),
            root=Path(mark.get("root", "/nonexistent")),
            cxx11_abi=bool(mark.get("cxx11_abi", True)),
            git_revision=mark.get("git_revision"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeBuild:
    """What became of a build: ``binary``, or ``why_not`` and what to do about it; ``cached``: nothing had to be
    compiled. It began at ``begin_ns`` of the monotonic clock.
    """

    binary: Path | None
    why_not: str = ""
    seconds: float = 0.0
    cached: bool = False
    begin_ns: int = 0


def build_worker(
    libtorch: LibTorch,
    folder: Path,
    *,
    cuda: bool = False,
    tick: Callable[[], None] = lambda: None,
    cancelled: threading.Event | None = None,
) -> NativeBuild:
    """Return the C++ worker for ``libtorch``, compiled now or before, below ``folder``.

    Two processes that ask for the same build compile once: the other one waits. Whatever ends this call early, be it an
    exception in this thread or ``cancelled`` from another, ends the compiler's process group too. ``cuda``: with CUDA
    graphs and models on a GPU; needs the CUDA headers that came with the wheel. ``tick`` is called about every 2 s.
    Raises ``Cancelled``.
    """
    return _built(lambda: _worker_recipe(libtorch, cuda=cuda), folder, tick, cancelled)


def build_library(source: Path, folder: Path, *, name: str = "") -> NativeBuild:
    """Return the shared library of one file without torch, cached; ``name``: what the dynamic linker knows it as."""

    def build(cancelled: threading.Event) -> NativeBuild:
        return _built(lambda: _library_recipe(source, name), folder, lambda: None, cancelled)

    results, failures = run_side_by_side({0: build})  # an interrupt ends the compiler
    raise_failures(list(failures.values()))
    return results[0]


def _built(
    recipe: Callable[[], Recipe], folder: Path, tick: Callable[[], None], cancelled: threading.Event | None
) -> NativeBuild:
    started = time.monotonic()
    build = partial(NativeBuild, begin_ns=int(started * 1e9))
    try:
        patience = Patience(deadline=started + DEADLINE_S, tick=tick, cancelled=cancelled or threading.Event())
        binary, cached = find_or_compile(recipe(), folder, patience)
    except (NoCompiler, NotBuilt) as error:
        return build(binary=None, why_not=str(error), seconds=time.monotonic() - started)
    except DeadlineExceeded:
        why_not = f"not compiled within {DEADLINE_S:.0f} s: see the log in {folder}, or what else this machine is doing"
        return build(binary=None, why_not=why_not, seconds=time.monotonic() - started)
    except OSError as error:
        why_not = f"{error.filename or folder}: {error.strerror or error}: check the folder and the space left there"
        return build(binary=None, why_not=why_not, seconds=time.monotonic() - started)
    return build(binary=binary, seconds=time.monotonic() - started, cached=cached)


def _worker_recipe(libtorch: LibTorch, *, cuda: bool) -> Recipe:
    include, lib = libtorch.root / "include", libtorch.root / "lib"
    if not (include / NEEDED_HEADER).is_file():
        raise NotBuilt(
            f"torch {libtorch.torch} has no C++ headers ({include / NEEDED_HEADER} is missing): "
            "use an environment with the whole wheel"
        )
    compiler = ask_compiler(standard := standard_of(include))
    headers = [*OWN_HEADERS, "-isystem", str(include), "-isystem", str(include / "torch/csrc/api/include")]
    defines = [f"-D_GLIBCXX_USE_CXX11_ABI={int(libtorch.cxx11_abi)}", f'-DGATE_TORCH="{libtorch.torch}"']
    linked, found_in = ["-ltorch_cpu", "-lc10"], [lib]
    if cuda:
        defines.append("-DGATE_WITH_CUDA")
        headers += _cuda_headers(libtorch)
        # Its kernels register themselves when it is loaded; nothing refers to it by name. What it is linked with
        # (CUDA's runtime; in 1.13 its own second half) is used by its headers.
        linked = ["-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda", "-Wl,--as-needed", *linked]
        linked = ["-Wl,--copy-dt-needed-entries", *linked]
        found_in += sorted(libtorch.root.parent.glob("nvidia/*/lib"))
    return Recipe(
        name=f"torch-{libtorch.torch}" + ("-cuda" if cuda else ""),
        output="worker",
        command=(
            *compiler.command,
            *(f"-std=c++{standard}", "-O1", "-pthread", *defines, *headers, str(SOURCES / "worker.cpp")),
        ),
        libraries=(
            *("-Xlinker", f"--dynamic-list={SOURCES / 'exported.ld'}"),
            f"-L{lib}",
            *(part for path in found_in for part in ("-Xlinker", f"-rpath={path}")),
            *linked,
            "-ldl",
        ),
        identity=(compiler.version, libtorch.git_revision or "", sources_digest(SOURCES)),
    )


def _cuda_headers(libtorch: LibTorch) -> Sequence[str]:
    """Return the options that find CUDA's headers: the wheels', and for ``crt/`` those of Triton or a toolkit.

    NVIDIA's wheels hold the runtime's headers without their ``crt`` folder, which comes with the compiler.
    """
    site = libtorch.root.parent
    runtime = sorted(path.parent for path in site.glob("nvidia/*/include/cuda_runtime_api.h"))
    toolkits = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    toolkits += [path for path in CUDA_TOOLKITS if path not in toolkits]
    runtime = runtime or [path for path in toolkits if (path / "cuda_runtime_api.h").is_file()][:1]
    crt = [path for path in (*runtime, site / TRITON, *toolkits) if (path / "crt" / "host_defines.h").is_file()][:1]
    if not runtime or not crt:
        raise NotBuilt(
            f"CUDA's headers for torch {libtorch.torch} are missing ({'crt/host_defines.h' if runtime else 'all'}): "
            "install the CUDA toolkit, or set CUDA_HOME to it"
        )
    rest = [path for path in sorted(site.glob("nvidia/*/include")) if path not in runtime]
    wheels = [part for path in (*runtime, *rest) for part in ("-isystem", str(path))]
    return [*wheels, "-idirafter", str(crt[0])]


def _library_recipe(source: Path, name: str) -> Recipe:
    compiler = ask_compiler(DEFAULT_STANDARD)
    options = (f"-std=c++{DEFAULT_STANDARD}", "-O1", "-pthread", "-fPIC", "-shared", *OWN_HEADERS)
    return Recipe(
        name=source.stem,
        output=f"lib{source.stem}.so",
        command=(*compiler.command, *options, str(source)),
        libraries=("-ldl", *([f"-Wl,-soname,{name}"] if name else [])),
        identity=(compiler.version, sources_digest(source.parent)),
    )


def sources_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES):
        name, content = str(path.relative_to(folder)), path.read_bytes()
        digest.update(f"{len(name)} {name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


STACK_DUMPER = SOURCES / "stacks" / "stacks.cpp"
WITHOUT_PYTHON = SOURCES / "without_python.cpp"
TORCH_PYTHON = "libtorch_python.so"


def build_workers(
    wanted: Mapping[str, LibTorch], folder: Path, *, cuda: bool, cancelled: threading.Event
) -> dict[str, NativeBuild]:
    """Return one build per name of ``wanted``, side by side. Raises ``Cancelled``, all compilers ended."""

    def build(name: str, cancelled: threading.Event) -> NativeBuild:
        return build_worker(wanted[name], folder, cuda=cuda, cancelled=cancelled)

    names = dict(enumerate(wanted))
    results, failures = run_side_by_side({index: partial(build, name) for index, name in names.items()}, cancelled)
    raise_failures(list(failures.values()))
    return {name: results[index] for index, name in names.items()}


def build_stack_dumper(folder: Path) -> NativeBuild:
    """Return the library that dumps native stacks of Python workers (1 s, once)."""
    return build_library(STACK_DUMPER, folder)


def library_companions(libtorch: LibTorch, folder: Path) -> tuple[str, ...]:
    """Return what the C++ worker opens before an operator library that needs more than the worker itself has.

    Most libraries name torch's Python half among what they need and use nothing of it. A library of its name with
    nothing in it takes its place; one that does use it is refused by the dynamic linker, by name.
    """
    stub = build_library(WITHOUT_PYTHON, folder, name=TORCH_PYTHON).binary
    return (str(libtorch.root / "lib" / "libtorch.so"), *([str(stub)] if stub is not None else []))
