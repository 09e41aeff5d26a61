"""Whether the source of a server compiles against another LibTorch's headers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CompileOutcome(StrEnum):
    """What became of one translation unit, from the mildest on."""

    COMPILES = "compiles"
    NEEDS_NOTHING = "includes nothing of LibTorch"
    NOT_CHECKED = "not checked"
    BROKEN_BEFORE = "does not compile as it is"
    BREAKS = "breaks"


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilerError:
    """One error as the compiler words it, in ``file``, line ``line``; ``api``: the name or header that it is about."""

    file: str
    line: int
    message: str
    api: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledUnit:
    """One translation unit.

    Attributes:
        before: errors with the build's own headers; ``after``: those that only the new ones bring.
        why: why it was not checked; empty where it was.
        needs: whether it reads a header of LibTorch at all.
    """

    file: str
    before: tuple[CompilerError, ...] = ()
    after: tuple[CompilerError, ...] = ()
    why: str = ""
    needs: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiChange:
    """A change of LibTorch's interface that the gate knows, and what to write.

    Attributes:
        api: the name that is gone or has changed.
        since: the first known release that refuses what was written before.
        write: what compiles in both, for a reader: one line, or a macro on ``TORCH_VERSION_MAJOR``.
        example: a whole source that uses it so; ``before``: one that compiles only before ``since``.
        source: where PyTorch documents it.
    """

    api: str
    since: str
    write: str
    example: str
    before: str
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenApi:
    """All errors about one name, the first place first.

    Attributes:
        since: the first known release without it, empty where none of them tells.
        change: what to write, where the gate knows it; ``verified``: whether that compiled here with both headers.
    """

    api: str
    errors: tuple[CompilerError, ...]
    units: tuple[str, ...]
    since: str = ""
    change: ApiChange | None = None
    verified: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CompileCheck:
    """All translation units that were asked about.

    Attributes:
        new: the release, or the folder with headers; ``standard``: the C++ that it asks for, as 17 or 20.
        raised: how many units were compiled as that C++ because their own was older.
        stopped: units that end at a header that is gone, so that nothing is known of what follows.
        cached: how many were known from an earlier check of the same sources.
    """

    new: str
    standard: int
    units: tuple[CompiledUnit, ...]
    broken: tuple[BrokenApi, ...] = ()
    outcomes: Mapping[str, CompileOutcome] = field(default_factory=dict)
    raised: int = 0
    stopped: tuple[str, ...] = ()
    cached: int = 0
