"""The translation units of a build: from ``compile_commands.json``, or sources with flags."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError

DATABASE = "compile_commands.json"
SOURCES = {".c++", ".cc", ".cpp", ".cxx"}
# Options that say where something goes; what follows them goes too.
WRITES = {"-o", "-MF", "-MT", "-MQ"}
ALONE = {"-c", "-E", "-S", "-MD", "-MMD", "-MP", "-M", "-MM", "-Werror"}
INCLUDES = ("-isystem", "-I", "-iquote", "-idirafter")
# Each lies in the include folder of every LibTorch.
OF_LIBTORCH = ("c10/macros/Macros.h", "torch/torch.h")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One source: the command that compiles it, in its folder."""

    file: str
    folder: Path
    command: tuple[str, ...]

    @property
    def is_cuda(self) -> bool:
        """Whether another compiler than a C++ one reads it."""
        return self.file.endswith(".cu") or Path(self.command[0]).name == "nvcc"

    def checked(self) -> list[str]:
        """Return the command that only checks the source, as the build has it."""
        words, left = [], list(self.command)
        while left:
            word = left.pop(0)
            if word in WRITES:
                del left[:1]
            elif word not in ALONE and not word.startswith("-Werror=") and not self._is_own(word):
                words.append(word)
        quiet = ("-w", "-fsyntax-only", "-fdiagnostics-color=never")
        return [*words, *quiet, self.file]

    def _is_own(self, word: str) -> bool:
        return Path(word).name == Path(self.file).name and self.folder / word == self.folder / self.file

    def against(self, folders: Sequence[Path], standard: int) -> tuple[list[str], bool]:
        """Return the same against other headers, and whether it was written for an older C++ than they ask for.

        Args:
            folders: where the other LibTorch's headers lie, in place of each folder that has a LibTorch's.
        """
        words, left, raised = [], self.checked(), False
        insert = [word for folder in folders for word in ("-isystem", str(folder))]
        while left:
            word = left.pop(0)
            option = next((option for option in INCLUDES if word.startswith(option)), None)
            if option is not None:
                place = word[len(option) :] or left.pop(0)
                if any((self.folder / place / header).is_file() for header in OF_LIBTORCH):
                    continue
                words += [option, place]
            elif (own := _standard(word)) is not None and own < standard:
                raised = True
            else:
                words.append(word)
        named = any(_standard(word) is not None for word in words)
        wanted = [] if named else [f"-std=c++{standard}"]
        return [words[0], *wanted, *insert, *words[1:]], raised


def _standard(word: str) -> int | None:
    """Return 17 for ``-std=gnu++17``, 20 for ``-std=c++2a``; None for anything else."""
    name = word.removeprefix("-std=").removeprefix("gnu").removeprefix("c").removeprefix("++")
    if not word.startswith("-std="):
        return None
    return {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23}.get(name) or (int(name) if name.isdecimal() else None)


def units_of(named: Sequence[Path], flags: Sequence[str], compiler: Sequence[str]) -> list[Unit]:
    """Return the units of databases, folders that have one, and sources, in order.

    Args:
        flags: of sources that stand in no database; ``compiler``: the command that reads those.

    Raises:
        ConfigError: what was named is not there, is no source, or a database cannot be read.
    """
    units: list[Unit] = []
    for path in named:
        database = path / DATABASE if path.is_dir() else path
        if not path.exists():
            raise ConfigError(f"{path} is not there", f"name sources, or the {DATABASE} of a build")
        if path.is_dir() and not database.is_file():
            raise ConfigError(
                f"{path} has no {DATABASE}", "cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON writes one; or name the sources"
            )
        if database.suffix == ".json":
            units += _of_database(database)
        elif path.suffix in SOURCES:
            units.append(Unit(file=str(path.resolve()), folder=Path.cwd(), command=(*compiler, *flags)))
        else:
            raise ConfigError(f"{path} is no C++ source", f"name {', '.join(sorted(SOURCES))} files, or a {DATABASE}")
    return units


def _of_database(path: Path) -> list[Unit]:
    try:
        entries = json.loads(path.read_bytes())
        return [_unit(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is no database of compile commands: {type(error).__name__}: {error}",
            "expected a JSON list of objects with directory, file, and command or arguments",
        ) from None


def _unit(entry: dict[str, Any]) -> Unit:
    command = tuple(entry["arguments"]) if "arguments" in entry else tuple(shlex.split(entry["command"]))
    if not command:
        raise ValueError("a command is empty")
    return Unit(file=entry["file"], folder=Path(entry["directory"]), command=command)
