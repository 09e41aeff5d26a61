"""Which names stand in the headers of a LibTorch: what is exported no more may have become inline."""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.checks.linking.demangled import canonical, demangled, last_names, split

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w+")
# ``get_autocast_##name##_dtype`` in a macro; what is shorter without one of its parts could be anything.
PASTED = re.compile(r"\w+(?:\s*##\s*\w+)+")
TELLING = 9
SOURCES = {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp"}
# PyTorch's own, below ``include``; beside them lie those of pybind11 and others.
FOLDERS = ("ATen", "c10", "caffe2", "torch")


class Headers:
    """The identifiers of each header."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._files: dict[str, set[int]] = defaultdict(set)
        pasted: dict[str, set[int]] = defaultdict(set)
        for number, text in enumerate(texts):
            code = COMMENT.sub("", text)
            for word in set(WORD.findall(code)):
                self._files[word].add(number)
            for pattern in _patterns(code):
                pasted[pattern].add(number)
        self._pasted = [(re.compile(pattern), files) for pattern, files in pasted.items()]
        self._of_macros: dict[str, set[int]] = {}

    def declare(self, symbol: str) -> bool:
        """Whether one header has both the name of a symbol and that of its class or namespace."""
        files = [self._files.get(part) or self._files_that_paste(part) for part in _names(symbol)]
        return bool(files) and bool(set.intersection(*files))

    def _files_that_paste(self, name: str) -> set[int]:
        """Return the headers in which a macro puts a name together."""
        if name not in self._of_macros:
            found = [files for pattern, files in self._pasted if pattern.fullmatch(name)]
            self._of_macros[name] = set().union(*found)
        return self._of_macros[name]


def _patterns(code: str) -> Iterator[str]:
    """Yield patterns of the names that macros put together: any of the parts may be the macro's argument."""
    for text in set(PASTED.findall(code)) if "##" in code else ():
        parts = re.split(r"\s*##\s*", text)
        for place in range(len(parts)):
            rest = parts[:place], parts[place + 1 :]
            if sum(map(len, (*rest[0], *rest[1]))) >= TELLING:
                yield rf"{''.join(rest[0])}\w+{''.join(rest[1])}"


@functools.lru_cache(maxsize=1 << 18)
def _names(symbol: str) -> tuple[str, ...]:
    name, _ = split(canonical(demangled(symbol)))
    return tuple(part.lstrip("~") for part in last_names(name)[-2:])


def words_below(folders: Iterable[Path]) -> frozenset[str]:
    """Return the identifiers in the C and C++ files of some folders."""
    files = (file for folder in folders for file in sorted(folder.rglob("*")) if file.suffix in SOURCES)
    return frozenset(
        word
        for file in files
        for word in WORD.findall(COMMENT.sub("", file.read_text(encoding="utf-8", errors="replace")))
    )


def texts_below(include: Path) -> Iterator[str]:
    """Yield the text of each of PyTorch's headers in a folder ``include``."""
    for folder in FOLDERS:
        for file in sorted((include / folder).rglob("*.h")):
            yield file.read_text(encoding="utf-8", errors="replace")
