"""Limits on what is read of a file, the source of its bytes, and the errors that stop reading."""

from dataclasses import dataclass
from typing import Protocol


class CannotRead(Exception):
    """Raised where a file is damaged, hostile or beyond a limit; ``kind`` is a stable word."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Source(Protocol):
    """A file of ``size`` bytes that can be read anywhere; weights are never asked for."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one file may cost; all of it is far above what real artifacts need.

    Attributes:
        members: entries of the zip's directory, whose own size is bounded by ``directory_bytes``.
        code_bytes: of one code file, and ``total_code_bytes`` of all, unpacked; ``debug_bytes``: of what torch keeps
            about where they come from.
        program_bytes: of the JSON of an exported program, or of a library that is packed; ``symbol_bytes``: of one
            table of a library's symbols.
        ratio: unpacked to packed bytes of one member; deflate reaches 1032.
        packed_bytes: of weights that others than torch have packed, unpacked to see whether they can be.
        pickle_bytes: of one pickle; ``pickle_steps``: opcodes in it.
        statement_tokens: in one statement of code; ``named``: calls, functions and classes in all code.
        scopes: characters of qualified names per character of code: long names within each other multiply.
        uses: different ways of calling operators that are kept; ``uses_characters`` of their texts.
    """

    members: int = 100_000
    directory_bytes: int = 32 << 20
    code_bytes: int = 8 << 20
    total_code_bytes: int = 16 << 20
    debug_bytes: int = 64 << 20
    program_bytes: int = 64 << 20
    symbol_bytes: int = 64 << 20
    ratio: int = 200
    packed_bytes: int = 4 << 30
    pickle_bytes: int = 32 << 20
    pickle_steps: int = 2_000_000
    nesting: int = 200
    statement_tokens: int = 250_000
    named: int = 200_000
    scopes: int = 16
    uses: int = 20_000
    uses_characters: int = 8 << 20


LIMITS = Limits()
