"""What becomes of binaries that were built against one LibTorch when another one lies in its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LIBTORCH = "libtorch_cpu.so"
OPENMP = re.compile(r"lib(?:gomp|omp|iomp5)\b.*\.so")


class SymbolChange(StrEnum):
    """What the new release has in place of a symbol that is missing there, from the mildest on.

    With the first three the source may well stay as it is: the compiler tells.
    """

    OTHER_ABI = "same meaning, other ABI"
    DECLARED = "in the headers only"
    ADDED_PARAMETERS = "more parameters"
    OTHER_PARAMETERS = "other parameters"
    MOVED = "another namespace"
    GONE = "gone"


class LinkOutcome(StrEnum):
    """What has to be done with one binary, from the mildest on."""

    LINKS = "links"
    UNRESOLVED = "not resolvable here"
    RECOMPILE = "recompile"
    CHANGE_SOURCE = "change the source"


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingSymbol:
    """A symbol that a binary needs, the old release exports and the new one does not.

    Attributes:
        symbol: its mangled name; ``text``: demangled.
        successors: what the new release exports in its place, demangled, the nearest first.
        since: the first release that the gate knows without it, empty where none of them tells.
        in_source: whether the binary's source names it, else inlined code of LibTorch does; None: no source was given.
    """

    symbol: str
    text: str
    change: SymbolChange
    successors: tuple[str, ...] = ()
    since: str = ""
    in_source: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkNote:
    """Something else that a reader must know; ``stops``: whether the process does not start with it as it is.

    Attributes:
        kind: a stable word: ``"run_path"``, ``"duplicate"``, ``"openmp"``, ``"library"``, ``"version"``, ``"weak"``,
            ``"strings"``.
    """

    kind: str
    subject: str
    text: str
    what_to_do: str
    stops: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkedBinary:
    """One executable or library, and what its symbols say.

    Attributes:
        uses: how many of LibTorch's symbols it needs; ``stable``: whether all of them are of the stable C interface.
        unresolved: demangled symbols that neither release, nor a library that it needs, has.
        absent: libraries that it needs and that were not found, without LibTorch's own and those that it brings along.
        fits: known releases that export everything it needs of LibTorch, as ``"2.0.1"``, in their order.
    """

    file: str
    uses: int
    stable: bool = False
    missing: tuple[MissingSymbol, ...] = ()
    unresolved: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()
    notes: tuple[LinkNote, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkCheck:
    """All binaries that were asked about.

    Attributes:
        old, new: the two sides, as they were named; ``guessed``: the old one is what the binaries fit best.
        image: the root in which libraries were looked for, empty for this machine.
        outcomes: file -> what has to be done with it.
        others: files that need nothing of LibTorch.
        unread: file -> why nothing is known of it: cut off, without section headers, or for another machine.
        notes: what the new release needs of the machine or image, whatever the binary.
    """

    old: str
    new: str
    image: str
    guessed: bool = False
    binaries: tuple[LinkedBinary, ...]
    outcomes: Mapping[str, LinkOutcome] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[LinkNote, ...] = ()
