"""TorchScript's printed Python as tokens and blocks, in one pass whose time is linear in the length of the text.

Not ``ast``: the text may be hostile, and Python's parser answers some texts with a long silence or a crash. What torch
prints is a small language: one statement per line unless brackets are open, names, literals, calls. A complex number
is one literal: ``1.5+3.j``, ``inf-nanj``.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.artifacts.archive.limits import CannotRead, Limits

REAL = r"\d++(?:\.\d*+)?+(?:[eE][+-]?+\d++)?+"
# No assertion within a possessive group: Python 3.11.2 forgets where it stands when that fails. Qualified names have in
# them what folders and files of Python code are called, which need not be names of Python.
TOKEN = re.compile(
    rf"""(?P<space>[ \t\r]++|\#[^\n]*+)
      | (?P<line>\n)
      | (?P<complex>(?:inf|nan|{REAL})[+-](?:(?:inf|nan)j|{REAL}j)(?!\w))
      | (?P<name>__torch__(?:\.\w++(?:-\w++)*+)++|[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+)
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+')
      | (?P<broken>["'][^\n]*+)
      | (?P<number>(?:\d|\.\d)[\w.]*+(?:(?<=[eE])[+-]\d++)?j?)
      | (?P<open>[(\[{{])
      | (?P<close>[)\]}}])
      | (?P<other>->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSES = {")": "(", "]": "[", "}": "{"}


class Token(NamedTuple):
    """A piece of a statement; ``kind`` is a group of ``TOKEN``."""

    kind: str
    text: str


class Statement(NamedTuple):
    """A logical line: where it begins, how far it is indented, its tokens (never none)."""

    line: int
    indent: int
    tokens: list[Token]


def statements(text: str, limits: Limits) -> Iterator[Statement]:
    """Yield the statements of ``text``. Raises ``CannotRead``: an open string or bracket, or beyond the limits."""
    line, begin, indent, fresh = 1, 1, 0, True
    tokens: list[Token] = []
    brackets: list[str] = []
    for match in TOKEN.finditer(text):
        kind, piece = str(match.lastgroup), match.group()
        if kind == "line":
            line += 1
            if not brackets:
                if tokens:
                    yield Statement(begin, indent, tokens)
                tokens, fresh, indent, begin = [], True, 0, line
            continue
        if kind == "space":
            if fresh:
                indent = len(piece)
            continue
        fresh = False
        if kind == "broken":
            raise CannotRead("damaged_code", f"line {line}: a string that does not end")
        if kind == "open":
            brackets.append(piece)
            if len(brackets) > limits.nesting:
                raise CannotRead("too_large", f"line {line}: more than {limits.nesting} brackets within each other")
        elif kind == "close" and (not brackets or brackets.pop() != CLOSES[piece]):
            raise CannotRead("damaged_code", f"line {line}: a bracket that was not opened")
        tokens.append(Token(kind, piece))
        if len(tokens) > limits.statement_tokens:
            raise CannotRead("too_large", f"line {begin}: a statement of more than {limits.statement_tokens} words")
    if brackets:
        raise CannotRead("damaged_code", f"line {begin}: a bracket that is not closed")
    if tokens:
        yield Statement(begin, indent, tokens)
