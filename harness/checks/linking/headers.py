"""Which names stand in the headers of a LibTorch: what is exported no more may have become inline."""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.checks.linking.demangled import canonical, demangled, last_names, split

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w+")
# PyTorch's own, below ``include``; beside them lie those of pybind11 and others.
FOLDERS = ("ATen", "c10", "caffe2", "torch")


class Headers:
    """The identifiers of each header."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._files: dict[str, set[int]] = defaultdict(set)
        for number, text in enumerate(texts):
            for word in set(WORD.findall(COMMENT.sub("", text))):
                self._files[word].add(number)

    def declare(self, symbol: str) -> bool:
        """Whether one header has both the name of a symbol and that of its class or namespace."""
        files = [self._files.get(part, set()) for part in _names(symbol)]
        return bool(files) and bool(set.intersection(*files))


@functools.lru_cache(maxsize=1 << 18)
def _names(symbol: str) -> tuple[str, ...]:
    name, _ = split(canonical(demangled(symbol)))
    return tuple(part.lstrip("~") for part in last_names(name)[-2:])


def texts_below(include: Path) -> Iterator[str]:
    """Yield the text of each of PyTorch's headers in a folder ``include``."""
    for folder in FOLDERS:
        for file in sorted((include / folder).rglob("*.h")):
            yield file.read_text(encoding="utf-8", errors="replace")
