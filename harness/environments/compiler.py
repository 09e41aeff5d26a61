"""The C++ compiler of this machine, and a cache of what it built."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.environments.installer import run_installer
from harness.system import files
from harness.system.pool import Patience

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """A compiler that knows the C++ asked for.

    Attributes:
        command: how it is started.
        version: what it says of itself; another version builds anew.
    """

    command: tuple[str, ...]
    version: str


class NoCompiler(Exception):
    """Raised when no compiler here can build; the text says why and what to do."""


def find_compiler() -> str | None:
    """Return the command line of a C++ compiler: CXX where it is set, else the first of ``CANDIDATES`` on PATH."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return named if shutil.which(shlex.split(named)[0]) else None
    return next((found for name in CANDIDATES if (found := shutil.which(name))), None)


def why_no_compiler() -> str:
    """Return why ``find_compiler`` found none."""
    named = os.environ.get("CXX")
    return f"CXX names {named!r}, which is not there" if named else "no C++ compiler was found"


def standard_of(include: Path) -> int:
    """Return the C++ that the headers below ``include`` ask for: 17, 20, 23, never less than 17."""
    years = [0]
    for name in _DEMANDING:
        path = include / name
        if path.is_file():
            years += [int(year) for year in _DEMAND.findall(path.read_text(encoding="utf-8", errors="replace"))]
    asked = max(years)
    return next((standard for year, standard in sorted(_STANDARDS.items()) if asked <= year), max(_STANDARDS.values()))


def ask_compiler(standard: int) -> Compiler:
    """Return the compiler of this machine, after it has said that it knows C++ ``standard``.

    Raises:
        NoCompiler: there is none, it cannot be run, or it is too old.
    """
    found = find_compiler()
    if found is None:
        raise NoCompiler(f"{why_no_compiler()}: {INSTALL}")
    command = tuple(shlex.split(found))
    try:
        answer = subprocess.run(
            (*command, f"-std=c++{standard}", "-dM", "-E", "-x", "c++", "/dev/null"),
            capture_output=True,
            text=True,
            timeout=_QUESTION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompiler(f"{found} cannot be run ({error}): {INSTALL}") from error
    if answer.returncode != 0:
        raise NoCompiler(f"{found} does not know C++{standard} ({first_error(answer.stderr)}): {INSTALL}")
    macros = dict(re.findall(r"^#define (__\w+__) (.*)$", answer.stdout, re.MULTILINE))
    _check_age(found, macros)
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

    Attributes:
        name: for people, in the folder's name.
        output: file name of what is built.
        command, libraries: what is run, with ``-o FILE`` between the two.
        identity: what else makes another build: versions and digests.
    """

    name: str
    output: str
    command: tuple[str, ...]
    libraries: tuple[str, ...]
    identity: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Name of the folder that holds the build."""
        text = json.dumps([self.output, self.command, self.libraries, self.identity])
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_or_compile(recipe: Recipe, folder: Path, patience: Patience) -> tuple[Path, bool]:
    """Return what ``recipe`` builds, below ``folder``, and whether it was there already.

    Raises:
        NotBuilt: the compiler failed.
        Cancelled, DeadlineExceeded: the compiler's process group has been killed.
        OSError: the folder cannot be written, or the compiler cannot be started.
    """
    place = folder / recipe.folder
    binary = place / recipe.output
    if binary.exists():
        return binary, True
    place.mkdir(parents=True, exist_ok=True)
    with files.held(place / ".lock", patience) as lock:
        if binary.exists():  # another process has built it in the meantime
            return binary, True
        _compile(recipe, binary, patience, lock)
    return binary, False


def _compile(recipe: Recipe, binary: Path, patience: Patience, lock: int) -> None:
    log = binary.with_name("compiler.log")
    log.write_bytes(b"")
    draft = binary.with_name(f".{binary.name}.part")
    command = (*recipe.command, "-o", str(draft), *recipe.libraries)
    try:
        status = run_installer(command, log, patience, lock=lock)
        if status != 0:
            said = first_error(log.read_text(encoding="utf-8", errors="replace"))
            raise NotBuilt(f"{recipe.command[0]} failed on {recipe.name}: {said[:300]}; full log: {log}")
        draft.replace(binary)
    finally:
        draft.unlink(missing_ok=True)
