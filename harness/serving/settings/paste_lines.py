"""The lines that make a setting outside of the gate: Python, C++, Triton's PyTorch backend, environment variables.

A way that cannot make one setting of a set is left out for the set: half of a mitigation is none. ``path``, ``model``,
``inputs`` and ``output`` stand for the reader's own. tests/integration/search/test_paste_lines.py runs and compiles
them.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.core.diagnosis import Setting
from harness.serving.settings.table import TABLE, Code, Kind, Row, Value

PYTHON, CPP, TRITON, ENVIRONMENT = "python", "c++", "triton", "environment"
# The PyTorch backend of Triton sets its pools once, as the first model says that names them.
FIRST_MODEL: Final = "# holds for all models of the server; the first that says it decides"
EVERY_THREAD: Final = "in every thread that calls"
# Profiling, compilation, one that is still slower, one to spare (docs/evidence.md#first-calls).
FIRST_CALLS: Final = 4
_IMPORT: Final = "torch/csrc/jit/serialization/import.h"
# Keys of Triton that begin so say the opposite.
DISABLES: Final = "DISABLE_"


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """One value of one setting, by each way that can make it."""

    python: Code | None = None
    cpp: Code | None = None
    triton: str = ""
    environment: str = ""


def lines_to_paste(settings: Sequence[Setting], *, device: str = "cpu") -> Mapping[str, str]:
    """Return way -> the lines that make all of ``settings``; ways that cannot are left out."""
    parts = [part for setting in settings for part in _parts(setting, device)]
    variables = [f"{name}={value}" for setting in settings for name, value in setting.env.items()]
    outside = [f"in the environment: {line}" for line in variables]
    ways: dict[str, str] = {}
    python = [part.python for part in parts if part.python is not None]
    if parts and len(python) == len(parts):
        ways[PYTHON] = "\n".join([*(f"# {line}" for line in outside), *_python(python)])
    cpp = [part.cpp for part in parts if part.cpp is not None]
    if parts and len(cpp) == len(parts):
        ways[CPP] = "\n".join([*(f"// {line}" for line in outside), *_cpp(cpp)])
    if parts and all(part.triton for part in parts):
        ways[TRITON] = "\n".join([*(f"# {line}" for line in outside), *(part.triton for part in parts)])
    if all(part.environment for part in parts):
        ways[ENVIRONMENT] = "\n".join([*variables, *(part.environment for part in parts)])
    return ways


def _parts(setting: Setting, device: str) -> Iterator[_Ways]:
    for name, value in setting.values.items():
        if TABLE[name].kind is not Kind.VARIABLE:
            yield _ways(TABLE[name], value, device)
    for name in setting.order:
        yield _ways(TABLE[name], True, device)


def _ways(row: Row, value: Value, device: str) -> _Ways:
    written = not value if row.triton.startswith(DISABLES) else value
    first = f"{FIRST_MODEL}\n" if row.kind is Kind.POOL else ""
    return _Ways(
        python=python_of(row, value, device),
        cpp=_filled(row.cpp, value, device, _in_cpp) if row.cpp is not None else None,
        triton=f"{first}{_key(row.triton, written)}" if row.triton else "",
        environment=f"{row.environment}={int(value)}" if row.environment else "",
    )


def python_of(row: Row, value: Value, device: str = "cpu") -> Code | None:
    code = row.python_of.get(value, row.python)
    return _filled(code, value, device, _in_python) if code is not None else None


def _in_python(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _in_cpp(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else _word(value)


def _filled(code: Code, value: Value, device: str, write: Callable[[Value], str]) -> Code:
    filled = {
        "{value}": write(value),
        "{not}": write(not value),
        "{bare}": str(value),
        "{BARE}": str(value).upper(),
        "{device}": device,
    }

    def all_of(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(functools.reduce(lambda line, item: line.replace(*item), filled.items(), line) for line in lines)

    return replace(
        code,
        start=all_of(code.start),
        loaded=all_of(code.loaded),
        guards=all_of(code.guards),
        threads=all_of(code.threads),
    )


def _python(parts: Sequence[Code]) -> Iterator[str]:
    """Yield a program of the parts: what comes once, then loading, then calling, as far as each is concerned."""
    locks = {lock for part in parts for lock in part.locks}
    yield from (["import threading", ""] if locks else [])
    yield "import torch"
    yield ""
    yield from (line for part in parts for line in part.start)
    yield from (["start_up = threading.Lock()  # one for the process", ""] if locks else [])
    loaded = [line for part in parts for line in part.loaded]
    if loaded or "load" in locks:
        yield from ["with start_up:", "    model = torch.jit.load(path)"] if "load" in locks else []
        yield from [] if "load" in locks else ["model = torch.jit.load(path)"]
        yield from loaded
    guards = [line for part in parts for line in part.guards]
    threads = [line for part in parts for line in part.threads]
    if guards or threads:
        yield f"# {EVERY_THREAD}:"
    yield from threads
    if "calls" in locks:
        yield f"with {', '.join(['start_up', *guards])}:"
        yield from [f"    for _ in range({FIRST_CALLS}):  # the first calls", "        model(*inputs)"]
    if guards:
        yield f"with {', '.join(guards)}:"
        yield "    output = model(*inputs)"


def _cpp(parts: Sequence[Code]) -> Iterator[str]:
    """Yield the same in C++; headers first."""
    locks = {lock for part in parts for lock in part.locks}
    loaded = [line for part in parts for line in part.loaded]
    headers = [name for part in parts for name in part.headers]
    headers += [_IMPORT] if loaded or "load" in locks else []
    yield from (f"#include <{name}>" for name in dict.fromkeys(headers))
    yield from (["#include <mutex>", "", "static std::mutex start_up;  // one for the process"] if locks else [])
    yield ""
    yield from (line for part in parts for line in part.start)
    if loaded or "load" in locks:
        yield from ["{", "  const std::lock_guard<std::mutex> guard(start_up);"] if "load" in locks else []
        yield f"{'  ' if 'load' in locks else ''}model = torch::jit::load(path);"
        yield from ["}"] if "load" in locks else []
        yield from loaded
    guards = [line for part in parts for line in (*part.threads, *part.guards)]
    if guards:
        yield f"// {EVERY_THREAD}:"
        yield from guards
    if "calls" in locks:
        yield from ["{", "  const std::lock_guard<std::mutex> guard(start_up);"]
        yield f"  for (int i = 0; i < {FIRST_CALLS}; ++i) model.forward(inputs);  // the first calls"
        yield "}"
    if guards:
        yield "output = model.forward(inputs);"


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key(name: str, value: Value) -> str:
    return f'parameters: {{\n  key: "{name}"\n  value: {{ string_value: "{_word(value)}" }}\n}}'
