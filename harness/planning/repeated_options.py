"""The words of a command line that every command which repeats a part of its run needs too."""

from collections.abc import Sequence

BEFORE_THE_VERB = ("--project",)
MODELS = ("--artifacts", "--fixtures")
LIBRARY = "--library"
# What says which models there are and how they run; all take a value. Sides, selection and output are the caller's.
REPEATED = (*BEFORE_THE_VERB, *MODELS, LIBRARY, "--device", "--profile", "--set", "--deadline")


def kept(arguments: Sequence[str], names: Sequence[str] = REPEATED) -> list[tuple[str, str]]:
    """Return those options of ``arguments`` that are in ``names``, in order, each with its value."""
    found = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in names:
            found.append((name, value if equals else next(words, "")))
    return found


def around_verb(options: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the words that stand before the verb of a command, and those that stand after it."""
    before = [word for option in options if option[0] in BEFORE_THE_VERB for word in option]
    after = [word for option in options if option[0] not in BEFORE_THE_VERB for word in option]
    return before, after
