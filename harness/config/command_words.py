"""The words of a command line that every command which repeats a part of its run needs too."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from harness.domain.environment import EnvSpec

BEFORE_THE_VERB = ("--project",)
MODELS = ("--artifacts", "--artifact", "--fixtures")
SEVERAL = ("--artifacts",)  # take every word up to the next option
LIBRARY = "--library"
SET = "--set"
OTHER_SIDE = {"old": "new", "new": "old"}
# What says which models there are and how they run; all take a value. Sides, selection and output are the caller's.
REPEATED = (*BEFORE_THE_VERB, *MODELS, LIBRARY, "--device", "--profile", SET, "--deadline")


class Typed(NamedTuple):
    """One option as it was typed: its name, its values, and its words."""

    name: str
    values: tuple[str, ...]
    words: tuple[str, ...]


def typed(arguments: Sequence[str], names: Sequence[str] = REPEATED) -> Iterator[Typed]:
    """Yield those options of ``arguments`` that are in ``names``, in order."""
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name not in names:
            continue
        following = arguments[index + 1 :]
        several = takewhile(lambda text: not text.startswith("-"), following) if name in SEVERAL else following[:1]
        values = (value,) if equals else tuple(several)
        yield Typed(name, values, (word,) if equals else (word, *values))


def kept(arguments: Sequence[str], names: Sequence[str] = REPEATED) -> list[tuple[str, str]]:
    """Return those options of ``arguments`` that are in ``names``, in order, each of their values with the name."""
    return [(option.name, value) for option in typed(arguments, names) for value in option.values]


def around_verb(options: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the words that stand before the verb of a command, and those that stand after it."""
    before = [word for option in options if option[0] in BEFORE_THE_VERB for word in option]
    after = [word for option in options if option[0] not in BEFORE_THE_VERB for word in option]
    return before, after


def side_options(side: str, spec: EnvSpec, written: str) -> list[str]:
    """Return the words that make ``spec`` a side, under the name that the run has for it."""
    if spec.release is not None:
        return [f"--{side}", written or spec.release]
    by_side = spec.name in OTHER_SIDE
    name = side if by_side else spec.name
    called = written if by_side else spec.name
    return [*([f"--{side}", called] if called else []), "--env", f"{name}={spec.interpreter}"]


def names_a_side(name: str, value: str) -> bool:
    """Whether an option says which release a side is: the command says that itself."""
    return name == SET and value.partition("=")[0].strip().strip("\"'") in OTHER_SIDE
