"""The words of a command line that every command which repeats a part of its run needs too."""

import posixpath
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from harness.core.environment import EnvSpec

MODELS = ("--artifacts", "--artifact", "--fixtures")
FILES = ("--artifacts", "--artifact")  # as they lie around who types; fixtures are the project's
SEVERAL = ("--artifacts",)  # take every word up to the next option
LIBRARY, ENV = "--library", "--env"
SET = "--set"
OTHER_SIDE = {"old": "new", "new": "old"}
# What says which models there are and how they run; all take a value. Project, sides, selection and output are the
# caller's.
REPEATED = (*MODELS, LIBRARY, "--device", "--profile", SET, "--deadline")


class Typed(NamedTuple):
    """One option as it was typed: its name, its values, and its words."""

    name: str
    values: tuple[str, ...]
    words: tuple[str, ...]


def typed(arguments: Sequence[str], names: Sequence[str] = REPEATED, *, here: str = "") -> Iterator[Typed]:
    """Yield those options of ``arguments`` that are in ``names``, in order.

    ``here``: the working directory in which they were typed: what they name is named from anywhere; empty: as typed.
    """
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name not in names:
            continue
        following = arguments[index + 1 :]
        several = takewhile(lambda text: not text.startswith("-"), following) if name in SEVERAL else following[:1]
        values = tuple(from_anywhere(name, each, here) for each in ((value,) if equals else several))
        yield Typed(name, values, (f"{name}={values[0]}",) if equals else (name, *values))


def from_anywhere(name: str, value: str, here: str) -> str:
    """Return the value of an option as it means the same in any working directory; ``here`` is that of who typed it."""
    known, equals, path = value.partition("=") if name in (LIBRARY, ENV) else ("", "", value)
    if "/" in known or not equals:  # a path alone, which may hold the sign
        known, equals, path = "", "", value
    is_file = "/" in path or path.endswith((".py", ".so"))  # else the name of a module, or of an environment
    is_path = name in FILES or (name in (LIBRARY, ENV) and is_file)
    if not here or not is_path or path.startswith("/") or "://" in path:
        return value
    return f"{known}{equals}{posixpath.normpath(posixpath.join(here, path))}"


def kept(arguments: Sequence[str], names: Sequence[str] = REPEATED, *, here: str = "") -> list[tuple[str, str]]:
    return [(option.name, value) for option in typed(arguments, names, here=here) for value in option.values]


def words_of(options: Sequence[tuple[str, str]]) -> list[str]:
    return [word for option in options for word in option]


def side_options(side: str, spec: EnvSpec, written: str, *, here: str = "") -> list[str]:
    """Return the words that make ``spec`` a side, under the name that the run has for it."""
    if spec.release is not None:
        return [f"--{side}", written or spec.release]
    by_side = spec.name in OTHER_SIDE
    name = side if by_side else spec.name
    called = written if by_side else spec.name
    interpreter = from_anywhere(ENV, f"{name}={spec.interpreter}", here)
    return [*([f"--{side}", called] if called else []), ENV, interpreter]


def names_a_side(name: str, value: str) -> bool:
    """Whether an option says which release a side is: the command says that itself."""
    return name == SET and value.partition("=")[0].strip().strip("\"'") in OTHER_SIDE
