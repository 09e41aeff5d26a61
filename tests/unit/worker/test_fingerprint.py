"""What the worker reads of the driver's version, in the forms of the closed and of the open kernel module."""

import builtins
import io
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

VERSIONS = {
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n": "550.54.14",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)\n": "580.159.04",
    "NVRM version: of another form\n": None,
}


@pytest.mark.parametrize(("text", "version"), VERSIONS.items())
def test_version_of_the_driver(
    text: str, version: str | None, imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    fingerprint = imported("fingerprint")
    files = {"/proc/driver/nvidia/version": io.StringIO(text)}
    with monkeypatch.context() as opening:
        opening.setattr(builtins, "open", files.__getitem__)
        assert fingerprint._driver() == version
