"""Where a reproducer cannot say anything: the release that runs it does not see the device of the case."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import harness.worker

ORDER = {
    "libraries": (),
    "profile": {"intra_op_threads": 1, "inter_op_threads": 1, "switches": {}, "numerics": {}},
}
REPORT = SimpleNamespace(phase=lambda name, counts: None)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(sys.modules, "gate_worker", harness.worker)
    before = set(sys.modules)
    yield importlib.import_module("gate_worker.reproduce.settings")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def torch_with(**devices: Any) -> Any:
    return SimpleNamespace(
        set_num_threads=lambda size: None,
        set_num_interop_threads=lambda size: None,
        no_grad=nullcontext,
        **devices,
    )


@pytest.mark.parametrize("devices", [{}, {"npu": SimpleNamespace(is_available=lambda: False)}])
def test_device_that_torch_does_not_see_is_untestable(settings: Any, devices: dict[str, Any]) -> None:
    with pytest.raises(settings.Untestable, match="torch sees no device npu"):
        settings.prepared(torch_with(**devices), {"device": "npu"}, ORDER, REPORT)


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_device_that_torch_sees_is_not(settings: Any, device: str) -> None:
    torch = torch_with(npu=SimpleNamespace(is_available=lambda: True))
    with settings.prepared(torch, {"device": device}, ORDER, REPORT):
        pass
