"""Where a reproducer cannot say anything: the release that runs it does not see the device of the case."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

ORDER = {
    "libraries": (),
    "profile": {"intra_op_threads": 1, "inter_op_threads": 1, "switches": {}, "numerics": {}},
}
REPORT = SimpleNamespace(phase=lambda name, counts: None)


@pytest.fixture
def settings(imported: Callable[[str], Any]) -> Any:
    return imported("reproduce.settings")


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
