"""A stand-in for torch that serves to test process handling only: it loads JSON and misbehaves as that says.

An "artifact" is a JSON object (or a zip archive with one, as an export of this stub saves it):

    {"load": ACTION, "calls": {"1": ACTION}, "in_threads": ACTION, "answer": VALUE, "note": PATH, "only_in": RELEASE,
     "since": RELEASE}

ACTION is a name in ``misbehave.ACTIONS``, for ``in_threads`` in calls outside of the main thread; ``note`` is a file
that an action may leave word in; with ``only_in`` all is well in every other release, with ``since`` in every earlier
one; with ``most_calls`` a call too many since the last reset fails. Python 3.8 grammar, like everything that runs in an
environment under test.
"""

import contextlib
import json
import threading
import zipfile
from types import SimpleNamespace
from typing import Any, Callable, ContextManager, Dict, List, Optional

from . import misbehave, version

__version__ = version.__version__

misbehave.act(version.ON_IMPORT)


class Tensor:
    """Never made: values of this stub are plain Python objects."""


class device:  # noqa: N801
    """As in torch."""


class Generator:
    """One that nothing ever draws from."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def manual_seed(self, seed: int) -> "Generator":
        return self

    def get_state(self) -> str:
        return "seeded"


default_generator = Generator()


def equal(left: object, right: object) -> bool:
    """As in torch."""
    return left == right


class Module:
    """What a stub fixture's factory puts into its ``Sample``."""

    def __init__(self, **program: Any) -> None:
        self.program = program

    def eval(self) -> "Module":
        return self


class ScriptModule:
    """A loaded or converted artifact."""

    def __init__(self, program: Dict[str, Any]) -> None:
        self._program = program
        self._calls = self._since_reset = 0
        self._c = SimpleNamespace(_method_names=list, _get_method=self._script_method)  # no graph, so no operators

    def _script_method(self, name: str) -> "Callable[..., object]":
        if name not in ("forward", "reset"):
            raise RuntimeError(f"Method '{name}' is not defined.")
        return getattr(self, name)

    def eval(self) -> "ScriptModule":
        return self

    def to(self, *_: object) -> "ScriptModule":
        return self

    def forward(self, *_: object) -> object:
        action = self._program.get("calls", {}).get(str(self._calls), self._program.get("every_call"))
        self._calls += 1
        self._since_reset += 1
        if self._since_reset > self._program.get("most_calls", self._since_reset):
            raise RuntimeError("the cache is full")
        if _applies(self._program):
            misbehave.act(action, self._program.get("note"))
            if threading.current_thread() is not threading.main_thread():
                misbehave.act(self._program.get("in_threads"), self._program.get("note"))
            if "other_answer" in self._program:
                return self._program["other_answer"]
        return self._program.get("answer", 42)

    def reset(self) -> None:
        """What ``reset="reset"`` of an artifact calls."""
        self._since_reset = 0

    def save(self, path: str) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/version", "3")
            archive.writestr("archive/program.json", json.dumps(self._program))


def _applies(program: Dict[str, Any]) -> bool:
    if _numbers(__version__) < _numbers(program.get("since", "0")):
        return False
    return bool(program.get("only_in", __version__) == __version__)


def _numbers(release: str) -> List[int]:
    return [int(part) for part in release.split(".")]


def _load(path: str, map_location: Optional[str] = None) -> ScriptModule:
    del map_location
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            text = archive.read("archive/program.json").decode()
    else:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    program = json.loads(text)
    if _applies(program):
        misbehave.act(program.get("load"), program.get("note"))
    return ScriptModule(program)


def _script(module: Module) -> ScriptModule:
    return ScriptModule(module.program)


def _nothing(*_: object) -> None:
    pass


def _one() -> int:
    return 1


def no_grad() -> "ContextManager[None]":
    return contextlib.nullcontext()


float64 = "torch.float64"
set_num_threads = set_num_interop_threads = manual_seed = _nothing
get_num_threads = get_num_interop_threads = _one
jit = SimpleNamespace(load=_load, script=_script)
nn = SimpleNamespace(Module=Module)
_C = SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=False, ModuleDict=lambda _: {})
backends = SimpleNamespace(cpu=SimpleNamespace(get_cpu_capability=lambda: "STUB"))
