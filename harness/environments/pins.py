"""What a project's own files ask of torch: the release that it pins, and where that is another than is judged."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.core.errors import ConfigError
from harness.core.text import first_few

PINNED: Final = "pinned"
"""As the new release: the one that the project pins."""
PATTERNS: Final = ("requirements*.txt", "constraints*.txt")
FILES: Final = "pyproject.toml or requirements.txt"
NAMED: Final = 3


def torch_pins(folder: Path) -> tuple[tuple[str, SpecifierSet], ...]:
    """Return (file, what it asks of torch) of ``pyproject.toml`` and of requirement files in a project's folder.

    A line with a marker counts where that holds here; what is no requirement of PEP 508 does not.
    """
    pins = {}
    for file, text in _lines(folder):
        try:
            asked = Requirement(text)
        except InvalidRequirement:
            continue
        if asked.name.lower() == "torch" and asked.specifier and (asked.marker is None or asked.marker.evaluate()):
            pins[file, str(asked.specifier)] = asked.specifier
    return tuple((file, specifier) for (file, _), specifier in pins.items())


def pinned_release(folder: Path) -> str:
    """Return the one release that a project pins by ``==``. Raises ``ConfigError``: none, or several."""
    exact: dict[str, list[str]] = {}
    for file, specifier in torch_pins(folder):
        for item in specifier:
            if item.operator in ("==", "===") and "*" not in item.version:
                exact.setdefault(item.version, []).append(file)
    if len(exact) == 1:
        return next(iter(exact))
    where = first_few([f"{release} in {', '.join(files)}" for release, files in exact.items()], NAMED)
    what = f"pins several releases of torch: {where}" if exact else "pins none"
    raise ConfigError(f"new = {PINNED!r}: {folder} {what}", f"name the release, or write torch==RELEASE into {FILES}")


def pin_notes(folder: Path, old: str, new: str) -> tuple[str, ...]:
    """Return a note on each pin that holds of neither release: the run judges another upgrade than the project makes.

    A pin that holds of the old one alone is of a project that has not moved yet.
    """
    if not new:  # an interpreter, which says later what it has
        return ()
    try:
        releases = [Version(release) for release in (old, new) if release]
    except InvalidVersion:
        return ()
    others = [
        (file, pin)
        for file, pin in torch_pins(folder)
        if not any(_any_build(pin).contains(release, prereleases=True) for release in releases)
    ]
    return tuple(
        f"{file} asks for torch{pin}, and this run judges {new}: --new {PINNED} judges what is pinned"
        for file, pin in others
    )


def _any_build(pin: SpecifierSet) -> SpecifierSet:
    """Return the pin without builds: ``2.6.0+cpu`` is 2.6.0, whatever the run installs of it."""
    return SpecifierSet(",".join(f"{item.operator}{item.version.partition('+')[0]}" for item in pin))


def _lines(folder: Path) -> Iterator[tuple[str, str]]:
    pyproject = folder / "pyproject.toml"
    if pyproject.is_file():
        yield from ((pyproject.name, text) for text in _texts(_dependencies(pyproject)))
    for path in sorted(path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            yield path.name, line.partition("#")[0].partition(" --")[0].rstrip("\\ \t")


def _dependencies(path: Path) -> list[Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # whoever reads the configuration says so
        return []
    project = tables.get("project", {})
    own = project if isinstance(project, dict) else {}
    return [own.get("dependencies"), own.get("optional-dependencies"), tables.get("dependency-groups")]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
