"""Lets a compiler read a unit's source against other headers, and remembers what it said of the same text."""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.checks.compiling.diagnostics import errors_in
from harness.checks.compiling.units import Unit
from harness.core.compiling import CompiledUnit, CompilerError
from harness.machine import processes
from harness.store import codec

LIMIT_S = 900.0
# Errors name the first places of each API; a header that is gone stops the unit.
STOPS = "fatal error: "
# Folders of a LibTorch's headers, and what tells that they are: a copy in the sources of a server may lack any other.
FOLDERS = frozenset({"torch", "ATen", "c10", "caffe2"})
MARKS = ("c10/macros/Macros.h", "torch/version.h", "torch/csrc/api/include/torch/version.h")


@dataclass(frozen=True, kw_only=True)
class Headers:
    """One LibTorch's headers.

    Attributes:
        name: how the user calls it; ``folders``: include folders, in their order.
        standard: the C++ that they ask for; ``identity``: what the same headers have in common.
    """

    name: str
    folders: tuple[Path, ...]
    standard: int
    identity: str


@dataclass(frozen=True, kw_only=True)
class Read:
    """What a compiler said of one source with one set of headers.

    Attributes:
        needs: whether a header of these was read; ``other``: the folder of another LibTorch's that was read, too.
    """

    errors: tuple[CompilerError, ...] = ()
    needs: bool = True
    other: str = ""
    stopped: bool = False
    raised: bool = False
    cached: bool = False
    why: str = ""


def check_unit(unit: Unit, headers: Headers, cache: Path) -> tuple[CompiledUnit, Read]:
    """Return what becomes of a unit; with its build's own headers it is read only if the others refuse it."""
    if unit.is_cuda:
        return CompiledUnit(file=unit.file, why="nvcc compiles it"), Read()
    command, raised = unit.against(headers.folders, headers.standard)
    after = replace(_read(unit, command, headers, cache), raised=raised)
    if after.why or not after.errors:
        old = f"it reads another LibTorch's headers: {after.other}" if after.other else ""
        return CompiledUnit(file=unit.file, why=after.why or old, needs=after.needs or bool(old)), after
    before = _read(unit, unit.checked(), None, cache)
    if before.stopped and not after.stopped:  # nothing tells what of the errors was there before
        lacks = before.errors[-1].api or before.errors[-1].message
        return CompiledUnit(file=unit.file, why=f"its own command does not find {lacks}: give it with --flags"), after
    known = {(error.file, error.line, error.message) for error in before.errors}
    news = tuple(error for error in after.errors if (error.file, error.line, error.message) not in known)
    return CompiledUnit(file=unit.file, before=before.errors, after=news), after


def compiles(source: str, unit: Unit, headers: Headers | None) -> bool:
    """Whether a compiler takes ``source`` with the flags of a unit and its own headers (None), or with others."""
    with tempfile.TemporaryDirectory(prefix="gate-compile-") as folder:
        file = Path(folder, "example.cpp")
        file.write_text(source, encoding="utf-8")
        own = Unit(
            file=str(file), folder=unit.folder, command=tuple(word for word in unit.command if word != unit.file)
        )
        command = own.checked() if headers is None else own.against(headers.folders, headers.standard)[0]
        return _run(command, unit.folder).returncode == 0


def _read(unit: Unit, command: Sequence[str], headers: Headers | None, cache: Path) -> Read:
    """Run a command, or return what it said when it read the same files before.

    Files below the headers' own folders are taken for what their identity says: a LibTorch has thousands.
    """
    known = cache / f"{codec.digest([*command, str(unit.folder), headers.identity if headers else ''])[:32]}.json"
    if (remembered := _remembered(known)) is not None:
        return replace(remembered, cached=True)
    with tempfile.TemporaryDirectory(prefix="gate-compile-") as folder:
        names = Path(folder, "read.d")
        try:
            done = _run([*command, "-MD", "-MF", str(names), "-MT", "x"], unit.folder)
        except subprocess.TimeoutExpired:
            return Read(why=f"the compiler did not end within {LIMIT_S:.0f} s")
        except OSError as error:
            return Read(why=f"{command[0]} cannot be run: {error.strerror}")
        files = _files(names, unit)
    folders = headers.folders if headers is not None else ()
    own = [file for file in files or () if not any(file.is_relative_to(folder) for folder in folders)]
    needs, other = files is None or len(own) < len(files), _other_libtorch(own) if headers is not None else ""
    if files is not None:
        known.parent.mkdir(parents=True, exist_ok=True)
        digests = {str(file): _digest(file) for file in own}
        text = {"files": digests, "text": done.stderr, "needs": needs, "other": other}
        codec.write_atomically(known, json.dumps(text).encode())
    read = replace(_of_text(done.stderr), needs=needs, other=other)
    if done.returncode and not read.errors:
        last = next(iter(reversed(done.stderr.strip().splitlines())), f"exit code {done.returncode}")
        return Read(why=f"the compiler refuses its command: {last}")
    return read


def _of_text(text: str) -> Read:
    return Read(errors=tuple(errors_in(text)), stopped=STOPS in text)


def _run(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return processes.run(command, limit_s=LIMIT_S, cwd=folder, env={**os.environ, "LC_ALL": "C"})


def _remembered(file: Path) -> Read | None:
    try:
        known = json.loads(file.read_bytes())
        same = all(_digest(Path(name)) == digest for name, digest in known["files"].items())
        read = replace(_of_text(known["text"]), needs=bool(known["needs"]), other=str(known["other"]))
        return read if same else None
    except (OSError, ValueError, KeyError):
        return None


def _files(names: Path, unit: Unit) -> list[Path] | None:
    """Return the files that were read; None where the compiler did not say."""
    try:
        text = names.read_text(encoding="utf-8").partition(":")[2].replace("\\\n", " ").replace("\\ ", "\0")
    except OSError:
        return None
    return [unit.folder / name.replace("\0", " ") for name in text.split()]


def _other_libtorch(files: Sequence[Path]) -> str:
    """Return the include folder of a LibTorch that one of ``files`` lies in; empty where none does."""
    for file in files:
        if FOLDERS.intersection(file.parts):
            for folder in file.parents:
                if any((folder / header).is_file() for header in MARKS):
                    return str(folder)
    return ""


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
