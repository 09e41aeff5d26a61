"""Builds what a run needs in C++ side by side: a worker per release, and the library that dumps native stacks."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from harness.runtime.native_build import SOURCES, LibTorch, NativeBuild, build_library, build_worker
from harness.runtime.side_by_side import raise_failures, run_side_by_side

STACK_DUMPER = SOURCES / "stacks.cpp"
WITHOUT_PYTHON = SOURCES / "without_python.cpp"
TORCH_PYTHON = "libtorch_python.so"


def build_workers(
    wanted: Mapping[str, LibTorch], folder: Path, *, cuda: bool, report: Callable[[str], None]
) -> dict[str, NativeBuild]:
    """Return one build per name of ``wanted``, all at the same time; Ctrl-C ends every compiler.

    Args:
        report: called with a name every 2 s or so while its worker is compiled.
    """

    def build(name: str, cancelled: threading.Event) -> NativeBuild:
        return build_worker(wanted[name], folder, cuda=cuda, tick=lambda: report(name), cancelled=cancelled)

    names = dict(enumerate(wanted))
    results, failures = run_side_by_side({index: partial(build, name) for index, name in names.items()})
    raise_failures(list(failures.values()))
    return {name: results[index] for index, name in names.items()}


def build_stack_dumper(folder: Path) -> Path | None:
    """Return the library that dumps native stacks of Python workers; None where it cannot be built (1 s, once)."""
    results, failures = run_side_by_side(
        {0: lambda cancelled: build_library(STACK_DUMPER, folder, cancelled=cancelled)}
    )
    raise_failures(list(failures.values()))
    return results[0].binary


def library_companions(libtorch: LibTorch, folder: Path) -> tuple[str, ...]:
    """Return what the C++ worker opens before an operator library that needs more than the worker itself has.

    Most libraries name torch's Python half among what they need and use nothing of it. A library of its name with
    nothing in it takes its place; one that does use it is refused by the dynamic linker, by name.
    """
    results, failures = run_side_by_side(
        {0: lambda cancelled: build_library(WITHOUT_PYTHON, folder, name=TORCH_PYTHON, cancelled=cancelled)}
    )
    raise_failures(list(failures.values()))
    stub = results[0].binary
    return (str(libtorch.root / "lib" / "libtorch.so"), *([str(stub)] if stub is not None else []))
