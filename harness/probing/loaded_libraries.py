"""Operator libraries as the controller sees them: what a worker has loaded, why it could not, what they are."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness.core.environment import Environment
from harness.core.errors import EnvironmentUnavailable
from harness.environments.operator_libraries import is_file
from harness.probing.events import EventTail
from harness.worker import wire

_MISSING = re.compile(r"No module named '([\w.]+)'")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedLibraries:
    """What has become of the libraries of an environment.

    Attributes:
        names: as they were asked for; ``versions``: of those that are modules and say one.
        paths: of all shared objects that came with them.
        threads: how many more threads the zygote has since.
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]
    operators: tuple[str, ...] = ()
    threads: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_mark(cls, mark: Mapping[str, Any]) -> Self:
        """Return what a worker has said in its mark ``libraries``."""
        before, after = mark["threads"]
        return cls(
            names=tuple(mark["names"]),
            paths=tuple(mark["paths"]),
            operators=tuple(mark["operators"]),
            threads=max(after - before, 0),
            versions=dict(mark["versions"]),
        )

    @property
    def words(self) -> str:
        """The libraries with their versions: ``torchvision 0.21.0``."""
        return ", ".join(f"{name} {self.versions.get(name, '')}".strip() for name in self.names)

    def registers(self, operator: str) -> bool:
        space = operator.partition("::")[0]
        return any(name.partition("::")[0] == space for name in self.operators)


def refused(run_dir: Path, environment: str) -> EnvironmentUnavailable | None:
    """Return the error where the worker of ``run_dir`` could not load a library, else None."""
    event_log = EventTail(run_dir / wire.EVENTS).refresh()
    name = str(event_log.marks.get("library", ""))
    failure = event_log.own_failure
    if failure is not None and failure.phase == wire.LIBRARY:
        why = failure.first_line.removeprefix(f"{name}: ")
    elif any(opened.phase == wire.LIBRARY for opened in event_log.open.values()):
        why = "the process ended, or did not come back"
    else:
        return None
    return EnvironmentUnavailable(
        f"{environment}: the operator library {name} cannot be loaded: {why[:300]}", _what_to_do(name, why)
    )


def _what_to_do(name: str, why: str) -> str:
    if not is_file(name):
        missing = _MISSING.search(why)
        package = missing[1].partition(".")[0] if missing else name
        return f"add {package} to [tool.compat.environments] extras, or import {name} there by hand to see more"
    if not os.path.exists(name):  # noqa: PTH110  a path that is too long is no file either
        return "name a file that exists; relative paths of the configuration begin at the project"
    if "undefined symbol" in why or "version `" in why:
        return "build it against this release's LibTorch, and name that build for this release alone"
    return "load it there by hand: torch.ops.load_library(PATH)"


def identity(environment: Environment) -> list[list[object]]:
    """Return what changes if a library does: name, size and time of a file, for a module of its install folder."""
    parts: list[list[object]] = [[name, *_size_and_time(Path(name))] for name in environment.spec.libraries]
    if any(not is_file(name) for name in environment.spec.libraries):
        sites = Path(environment.interpreter).parent.parent.glob("lib/python3*/site-packages")
        parts += [[str(site), *_size_and_time(site)] for site in sites]
    return parts


def _size_and_time(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ()
    return status.st_size, status.st_mtime_ns
