"""A torch of a page, for programs that are given to any interpreter."""

from pathlib import Path

STUB = """
import contextlib, os, time
__version__ = "{version}"
def set_num_threads(count): pass
def set_num_interop_threads(count): pass
def manual_seed(seed): pass
def no_grad(): return contextlib.nullcontext()
class Tensor: pass
class Argument:
    kwarg_only = False
    name = "x"
class _C:
    profiling = True
    @staticmethod
    def parse_schema(schema):
        import types
        return types.SimpleNamespace(arguments=[Argument()])
    @staticmethod
    def _jit_set_profiling_mode(value):
        before, _C.profiling = _C.profiling, value
        return before
def call(x):
    {body}
class ops:
    class aten:
        class op:
            default = staticmethod(call)
class Module:
    def __init__(self): self._c = self
    def eval(self): pass
    def _get_method(self, name): return call
def full(shape, value): return value
def mul(x, y): return x
def add(x, y): return x
class jit:
    class CompilationUnit:
        def __init__(self, code): pass
        def forward(self, *arguments): return call(*arguments)
    @staticmethod
    def optimized_execution(value): return contextlib.nullcontext()
    @staticmethod
    def load(path, map_location):
        {load}
        return Module()
"""


def stub_torch(site: Path, body: str, load: str = "pass", version: str = "0") -> None:
    """Write a module ``torch`` to ``site`` whose operator and whose every method does ``body`` with ``x``.

    Args:
        load: what ``torch.jit.load`` does before it returns a module.
    """
    site.mkdir(parents=True, exist_ok=True)
    text = STUB.replace("{body}", body).replace("{load}", load).replace("{version}", version)
    (site / "torch.py").write_text(text)


def stub_interpreter(folder: Path, python: str, body: str, load: str = "pass", version: str = "0") -> str:
    """Return a program that is ``python`` with such a torch."""
    stub_torch(folder, body, load, version)
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{python}" "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)
