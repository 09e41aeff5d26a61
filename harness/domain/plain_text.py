"""Text from outside as one line that steers no terminal."""


def visible(text: str) -> str:
    r"""Return ``text`` with everything unprintable as an escape: ``\x1b``, ``\n``, ``\u202e``.

    That covers ANSI sequences, bidirectional overrides, zero-width and private characters, lone surrogates
    and everything XML forbids. The result is one line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
