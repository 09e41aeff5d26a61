"""Texts for people: safe on a terminal, counted and joined, the line of an error that matters, no private paths."""

import re
from collections.abc import Sequence

from harness.core.probe import BAD_INPUTS, Failure


def visible(text: str) -> str:
    r"""Return ``text`` with everything unprintable as an escape: ``\x1b``, ``\n``, ``\u202e``.

    That covers ANSI sequences, bidirectional overrides, zero-width and private characters, lone surrogates
    and everything XML forbids. The result is one line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def slug(text: str) -> str:
    """Return ``text`` as one word, as for an address: of ``"a value: prim::If"`` ``a-value-prim::If``."""
    return re.sub(r"[^\w.:+]+", "-", text.replace(": ", "-"), flags=re.ASCII).strip("-")


def first_few(texts: Sequence[str], most: int, joint: str = ", ") -> str:
    """Return the first ``most`` texts joined, ``"a, b and 3 more"``; clauses by ``"; "``, ``"a; b; and 3 more"``."""
    left = len(texts) - most
    stop = ";" if joint == "; " else ""
    return joint.join(texts[:most]) + (f"{stop} and {left} more" if left > 0 else "")


MIB = 1 << 20


def times_of(count: int, total: int) -> str:
    """Return ``"2 of 5 rounds"``."""
    return f"{count} of {counted(total, 'round')}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 model`` or ``3 models``; ``plural`` where that is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def joined(*parts: str) -> str:
    """Return the clauses that are not empty, as one sentence."""
    return "; ".join(part for part in parts if part)


def amount(value: float, unit: str) -> str:
    """Return a time in ``"s"`` or a size in ``"bytes"`` with three digits and the prefix that suits it."""
    if unit == "s":
        for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if value >= factor:
                return f"{value / factor:.3g} {name}"
        return f"{value * 1e9:.3g} ns"
    for factor, name in ((float(MIB), "MiB"), (1024.0, "KiB")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.0f} bytes"


MARKED = re.compile(r"^(?P<line>.*)\n(?P<mark>\s*~+)( <--- HERE)", re.MULTILINE)


def marked_expression(failure: Failure) -> str:
    """Return the expression that TorchScript marks with ``~~~ <--- HERE``, the innermost one; empty without a mark."""
    marks = list(MARKED.finditer(failure.message))
    if not marks:
        return ""
    mark = marks[-1]["mark"]
    begin, end = len(mark) - len(mark.lstrip()), len(mark)
    return marks[-1]["line"][begin:end].strip()


def error_line(failure: Failure) -> str:
    """Return the line of a TorchScript error that says what is wrong, not the frame it was wrapped in."""
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    for index, line in reversed(list(enumerate(lines))):
        if line.startswith(("RuntimeError:", "torch.jit.Error:", "AssertionError:", "Exception:", "builtins.")):
            return _whole(line.partition(":")[2].strip() or line, lines[index + 1 :])
    return _whole(lines[0], lines[1:]) if lines else failure.type


def error_words(failure: Failure) -> str:
    """Return the line of an error that says what is wrong, after its type if that is not ours: ``ValueError: what``."""
    line = error_line(failure)
    return line if failure.type in ("", BAD_INPUTS) else f"{failure.type}: {line}"


def _whole(line: str, rest: Sequence[str]) -> str:
    """Return a line with the one behind it where it only announces that: ``aten::f(...) -> Tensor:``."""
    more = rest[0] if line.endswith(":") and rest and not rest[0].startswith("File ") else ""
    return f"{line} {more}".rstrip()


def prose(text: str) -> str:
    """Return ``text`` as one visible line with single spaces between words."""
    return visible(" ".join(text.split()))


# Two folders at least: "/", "a/b" and "1/2" are none. What lies in an installed package may be named from there.
PATH = re.compile(r"(?<![\w./:])~?/(?:[^\s/:;,'\"`()\[\]<>|]+/)+[^\s/:;,'\"`()\[\]<>|]*")
PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


def without_places(text: str) -> str:
    """Return ``text`` with ``...`` in the place of the folders of absolute paths: homes, runs, environments.

    The name of the file stays, and for a file of an installed package its path in there.
    """
    return PATH.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    path = match[0]
    installed = PACKAGES.match(path)
    if installed:
        return f".../{path[installed.end() :]}"
    return f".../{path.rstrip('/').rpartition('/')[2]}"
