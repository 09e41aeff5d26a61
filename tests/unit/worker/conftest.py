"""Modules of the worker, imported here beside a torch that a test makes up."""

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import harness.worker


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of the worker by name; what it has brought is forgotten afterwards."""
    monkeypatch.setitem(sys.modules, "gate_worker", harness.worker)
    before = set(sys.modules)
    yield lambda name: importlib.import_module(f"harness.worker.{name}")
    for name in set(sys.modules) - before:
        del sys.modules[name]
        package, _, last = name.rpartition(".")
        if package.startswith("harness.worker") and package in sys.modules:
            delattr(sys.modules[package], last)
