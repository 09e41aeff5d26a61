"""Operator schemas as torch prints them, parsed: ``aten::sum.dim(Tensor self, int[1]? dim, *, ...) -> Tensor``."""

import functools
import re
from collections.abc import Iterator

from harness.artifacts.archive.limits import CannotRead
from harness.core.archive import Parameter, Schema

HEAD = re.compile(r"(\w+::[\w]+)(?:\.(\w+))?\(")
ALIAS = re.compile(r"\([a-z*|!> -]+\)")
"""``(a)``, ``(a!)``, ``(a -> *)``: says what is written or shared, not what is accepted."""


@functools.lru_cache(maxsize=1 << 13)  # most operators have one schema in all releases
def parse_schema(text: str) -> tuple[str, Schema]:
    head = HEAD.match(text)
    arrow = text.rfind(") -> ")
    if head is None or arrow < head.end() - 1:
        raise CannotRead("damaged", f"no schema: {text[:80]}")
    parameters, keyword_only, takes_more = [], False, False
    for part in _parts(text[head.end() : arrow]):
        if part == "*":
            keyword_only = True
        elif part == "...":
            takes_more = True
        else:
            declared, default, _ = part.partition("=")
            type_, _, name = declared.strip().rpartition(" ")
            parameters.append(Parameter(name, _plain(type_), keyword_only, bool(default)))
    answer = text[arrow + 5 :].strip()
    inner = answer[1:-1] if answer.startswith("(") and answer.endswith(")") else answer
    returns = tuple(_plain(_unnamed(part)) for part in _parts(inner))
    return head[1], Schema(head[2] or "", tuple(parameters), returns, takes_more)


def _plain(type_: str) -> str:
    return ALIAS.sub("", type_).replace("SymInt", "int").strip()


def _unnamed(part: str) -> str:
    """Return a return's type: torch writes ``Tensor values`` where the value has a name."""
    type_, _, name = part.strip().rpartition(" ")
    return type_ if type_ and name.isidentifier() else part.strip()


def _parts(text: str) -> Iterator[str]:
    depth, begin, quoted = 0, 0, ""
    for index, character in enumerate(text):
        if quoted:
            quoted = "" if character == quoted else quoted
        elif character in "\"'":
            quoted = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:index].strip()
            begin = index + 1
    if text[begin:].strip():
        yield text[begin:].strip()
