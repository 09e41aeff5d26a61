"""The table of devices: what each row can do, and which models may run on it."""

import pytest

from harness.core.devices import ANY, CONFIGURED, CPU, FOR_WORKERS, ROWS, TABLE, Device, device_named
from harness.core.errors import ConfigError

NPU = Device(name="npu", words="npu", torch="npu")


def test_capabilities_are_attributes_and_graphs_need_streams_and_events() -> None:
    for row in ROWS:
        assert all(isinstance(getattr(row, name), bool) for name in (*FOR_WORKERS, *CONFIGURED))
        assert not row.graphs or (row.streams and row.events)
        assert row.is_cpu or (row.nodes and row.build and row.gpu)
    assert (CPU.capabilities, TABLE["cuda"].capabilities) == ((), FOR_WORKERS)
    assert TABLE["rocm"].capabilities == ("streams", "events", "memory", "graphs")


def test_only_the_rows_of_rocm_and_cuda_share_what_torch_calls_them() -> None:
    names = {row.name: row.torch for row in ROWS}
    assert names == {"cpu": "cpu", "cuda": "cuda", "rocm": "cuda", "xpu": "xpu"}


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        (ANY, {"cpu", "cuda", "rocm", "xpu", "npu"}),
        (("cpu",), {"cpu"}),
        (("cuda",), {"cuda", "rocm"}),
        (("rocm", "cpu"), {"rocm", "cpu"}),
    ],
)
def test_a_model_runs_where_it_is_declared_for_and_the_default_rules_nothing_out(
    declared: tuple[str, ...], taken: set[str]
) -> None:
    assert {row.name for row in (*ROWS, NPU) if row.takes(declared)} == taken


def test_a_device_of_the_configuration_is_found_beside_the_table_and_no_other() -> None:
    assert device_named("npu", {"npu": NPU}) is NPU
    assert device_named("cuda", {"cuda": NPU}) is TABLE["cuda"]
    with pytest.raises(ConfigError, match="there is no device 'npu'"):
        device_named("npu")
