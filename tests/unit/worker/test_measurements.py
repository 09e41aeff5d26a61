"""What the worker reads of clocks and memory, with a torch that only keeps a event_log."""

import ctypes
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Event:
    """A CUDA event: remembers at which step of the event_log it was recorded."""

    def __init__(self, event_log: list[str]) -> None:
        self._event_log = event_log
        self.at = -1

    def record(self) -> None:
        self.at = len(self._event_log)

    def synchronize(self) -> None:
        self._event_log.append("wait")

    def elapsed_time(self, later: "Event") -> float:
        return float(later.at - self.at)


@pytest.fixture
def event_log() -> list[str]:
    return []


@pytest.fixture
def worker(
    event_log: list[str], imported: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Any]:
    """Imports a module of the worker beside that torch."""
    cuda = SimpleNamespace(
        Event=lambda **_: Event(event_log),
        init=lambda: event_log.append("init"),
        synchronize=lambda: event_log.append("context"),
        reset_peak_memory_stats=lambda: None,
        memory_allocated=lambda: 0,
        current_device=lambda: 1,
        current_stream=lambda: SimpleNamespace(synchronize=lambda: event_log.append("stream")),
    )
    torch = ModuleType("torch")
    torch.cuda = torch.npu = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    return imported


@pytest.mark.parametrize(("device", "can"), [("cpu", ()), ("cuda", ("events",))])
def test_what_is_done_before_each_call_is_not_timed(
    worker: Any, event_log: list[str], device: str, can: tuple[str, ...]
) -> None:
    measurements, device = worker("run.measurements"), worker("device").Device(device, can)
    ticks = iter(range(1, 1000))
    measurements.time = SimpleNamespace(perf_counter_ns=lambda: 1_000_000 * next(ticks))

    def reset() -> None:
        event_log.append("reset")
        next(ticks)

    times = measurements.timed(event_log.append, ("call",), 3, device, reset)
    assert times == [1_000_000] * 3
    assert event_log[:6] == ["reset", "call"] * 3
    event_log.clear()
    assert len(measurements.timed(event_log.append, ("call",), 3, device)) == 3
    assert event_log[:3] == ["call"] * 3


@pytest.mark.parametrize(("can", "waited"), [((), "context"), (("streams",), "stream")])
def test_a_call_on_a_device_without_events_is_waited_for(
    worker: Any, event_log: list[str], can: tuple[str, ...], waited: str
) -> None:
    times = worker("run.measurements").timed(event_log.append, ("call",), 2, worker("device").Device("npu", can))
    assert len(times) == 2
    assert event_log == [waited, "call", waited] * 2


def test_a_device_without_memory_statistics_tells_of_resident_memory_alone(worker: Any) -> None:
    assert worker("run.measurements").Peak(worker("device").Device("npu")).risen()[1] is None


def test_graph_of_a_device_is_called_after_it_or_plainly(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    npu = worker("device").Device("npu", ("graphs",))
    monkeypatch.setattr(npu.module, "Graph", lambda: "plain", raising=False)
    assert (npu.graph(), npu.why_no_graphs()) == ("plain", "")
    monkeypatch.setattr(npu.module, "NPUGraph", lambda: "its own", raising=False)
    assert npu.graph() == "its own"
    assert worker("device").Device("npu").why_no_graphs() == "npu captures no graphs"


def test_device_is_asked_only_for_what_it_has(
    worker: Any, event_log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = worker("device")
    npu = device.Device("npu", ("memory",))
    monkeypatch.setattr(sys.modules["torch"], "default_generator", "of the CPU", raising=False)
    monkeypatch.setattr(npu.module, "empty_cache", lambda: event_log.append("empty"), raising=False)
    monkeypatch.setattr(npu.module, "is_available", lambda: True, raising=False)
    device.CPU.begin()
    device.CPU.give_back_cached()
    assert event_log == []
    npu.give_back_cached()
    assert event_log == ["empty"]
    assert (device.CPU.described(), npu.described()) == (None, "npu")
    monkeypatch.setattr(npu.module, "is_available", lambda: False)
    assert npu.described() is None
    assert npu.generators() == device.CPU.generators() == ["of the CPU"]
    assert device.CPU.why_no_graphs() == "a graph cannot be captured on the CPU"
    monkeypatch.delattr(npu.module, "init")
    npu.begin()
    assert event_log == ["empty", "context"]


def test_context_of_the_gpu_is_made_before_memory_is_looked_at(
    worker: Any, event_log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements = worker("run.measurements")

    def note(name: str = "forget") -> int:
        event_log.append(name)
        return 5

    monkeypatch.setattr(measurements, "forget_peak", note)
    monkeypatch.setattr(measurements, "resident", note)
    measurements.Peak(worker("device").Device("cuda", ("memory",)))
    assert event_log == ["init", "context", "forget", "VmRSS"]


@pytest.mark.parametrize(
    ("code", "uuid"), [(0, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"), (101, None)], ids=["told", "refused"]
)
def test_driver_names_the_gpu_in_use(worker: Any, monkeypatch: pytest.MonkeyPatch, code: int, uuid: str | None) -> None:
    def get(device: Any, ordinal: int) -> int:
        device._obj.value = 10 + ordinal
        return 0

    def get_uuid(target: Any, device: ctypes.c_int) -> int:
        assert device.value == 11
        target[:] = list(range(16))
        return code

    measurements = worker("run.measurements")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(cuDeviceGet=get, cuDeviceGetUuid=get_uuid))
    device = worker("device").Device
    assert measurements.gpu_uuid(device("cuda", ("nvidia",))) == uuid
    assert (measurements.gpu_uuid(device("cpu")), measurements.gpu_uuid(device("cuda"))) == (None, None)


def test_machine_without_a_driver_names_no_gpu(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert worker("run.measurements").gpu_uuid(worker("device").Device("cuda", ("nvidia",))) is None


def test_capture_gets_its_mode_where_the_release_knows_modes(worker: Any) -> None:
    class Old:
        def __init__(self, graph: object, pool: object = None, stream: object = None) -> None: ...

    class New:
        def __init__(self, graph: object, stream: object = None, capture_error_mode: str = "global") -> None: ...

    graphs = worker("run.cuda_graphs")
    assert graphs.options_of(Old, "relaxed") == {}
    assert graphs.options_of(New, "relaxed") == {"capture_error_mode": "relaxed"}
