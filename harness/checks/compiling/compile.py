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
    """What a compiler said of one source with one set of headers."""

    errors: tuple[CompilerError, ...] = ()
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
        return CompiledUnit(file=unit.file, why=after.why), after
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
    if (text := _remembered(known)) is not None:
        return _of_text(text, cached=True)
    with tempfile.TemporaryDirectory(prefix="gate-compile-") as folder:
        names = Path(folder, "read.d")
        try:
            done = _run([*command, "-MD", "-MF", str(names), "-MT", "x"], unit.folder)
        except subprocess.TimeoutExpired:
            return Read(why=f"the compiler did not end within {LIMIT_S:.0f} s")
        except OSError as error:
            return Read(why=f"{command[0]} cannot be run: {error.strerror}")
        own = _own_files(names, unit, headers)
    if own is not None:
        known.parent.mkdir(parents=True, exist_ok=True)
        files = {str(file): _digest(file) for file in own}
        codec.write_atomically(known, json.dumps({"files": files, "text": done.stderr}).encode())
    read = _of_text(done.stderr, cached=False)
    if done.returncode and not read.errors:
        last = next(iter(reversed(done.stderr.strip().splitlines())), f"exit code {done.returncode}")
        return Read(why=f"the compiler refuses its command: {last}")
    return read


def _of_text(text: str, *, cached: bool) -> Read:
    return Read(errors=tuple(errors_in(text)), stopped=STOPS in text, cached=cached)


def _run(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return processes.run(command, limit_s=LIMIT_S, cwd=folder, env={**os.environ, "LC_ALL": "C"})


def _remembered(file: Path) -> str | None:
    try:
        known = json.loads(file.read_bytes())
        same = all(_digest(Path(name)) == digest for name, digest in known["files"].items())
        return str(known["text"]) if same else None
    except (OSError, ValueError, KeyError):
        return None


def _own_files(names: Path, unit: Unit, headers: Headers | None) -> list[Path] | None:
    """Return the files that were read, without those of the headers; None where the compiler did not say."""
    try:
        text = names.read_text(encoding="utf-8").partition(":")[2].replace("\\\n", " ").replace("\\ ", "\0")
    except OSError:
        return None
    files = [unit.folder / name.replace("\0", " ") for name in text.split()]
    folders = headers.folders if headers is not None else ()
    return [file for file in files if not any(file.is_relative_to(folder) for folder in folders)]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
