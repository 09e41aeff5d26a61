"""Operator libraries of one environment, from the configuration and the command line; pure."""

from collections.abc import Collection, Sequence
from pathlib import Path

from harness.config.selection import did_you_mean
from harness.core.errors import ConfigError

SUFFIXES = (".so", ".py")


def libraries_of(
    configured: Sequence[str],
    arguments: Sequence[str],
    *,
    names: Collection[str],
    used: Collection[str],
    project: Path,
) -> tuple[str, ...]:
    """Return the libraries of the environment that goes by ``names``, in order, each once.

    Files of ``configured`` are relative to ``project``; ``arguments`` are ``LIB`` or ``NAME=LIB``, with files relative
    to the working directory. Raises ``ConfigError``: an argument is malformed or names no environment.
    """
    libraries = [located(text, project) for text in configured]
    for argument in arguments:
        name, library = _split(argument)
        if not library.strip():
            raise ConfigError(f"command line: --library {argument}: expected LIB or NAME=LIB, such as ops/libmyops.so")
        if name is not None and name not in used:
            known = sorted(item for item in used if item)
            raise ConfigError(
                f"command line: --library {argument}: no side is called {name!r}",
                f"{did_you_mean(name, known)}one of: {', '.join(known)}",
            )
        if name is None or name in names:
            libraries.append(located(library, Path()))
    return tuple(dict.fromkeys(libraries))


def is_file(text: str) -> bool:
    """Whether ``text`` means a file, a shared object or one of Python, rather than an importable module."""
    return text.endswith(SUFFIXES) or "/" in text


def located(text: str, folder: Path) -> str:
    """Return the absolute path of a file, relative to ``folder`` where it is; a module's name as it is."""
    return str((folder / Path(text).expanduser()).absolute()) if is_file(text) else text


def _split(argument: str) -> tuple[str | None, str]:
    """Return (NAME or None, LIB); an equals sign behind a slash belongs to a path."""
    name, equals, library = argument.partition("=")
    return (name, library) if equals and "/" not in name else (None, argument)
