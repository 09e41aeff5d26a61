"""Texts in one line: one from outside that steers no terminal, and the first of many."""

from collections.abc import Sequence


def visible(text: str) -> str:
    r"""Return ``text`` with everything unprintable as an escape: ``\x1b``, ``\n``, ``\u202e``.

    That covers ANSI sequences, bidirectional overrides, zero-width and private characters, lone surrogates
    and everything XML forbids. The result is one line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def first_few(texts: Sequence[str], most: int, joint: str = ", ") -> str:
    """Return the texts joined; of more than ``most`` the first, and how many more: ``"a, b and 3 more"``.

    Clauses, joined by ``"; "``, end as clauses do: ``"a; b; and 3 more"``.
    """
    left = len(texts) - most
    stop = ";" if joint == "; " else ""
    return joint.join(texts[:most]) + (f"{stop} and {left} more" if left > 0 else "")
