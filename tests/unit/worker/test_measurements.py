"""What the worker reads of clocks and memory, with a torch that only keeps a event_log."""

import ctypes
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import harness.worker


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
def worker(event_log: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the worker beside that torch."""
    cuda = SimpleNamespace(
        Event=lambda **_: Event(event_log),
        init=lambda: event_log.append("init"),
        synchronize=lambda: event_log.append("context"),
        reset_peak_memory_stats=lambda: None,
        memory_allocated=lambda: 0,
        current_device=lambda: 1,
    )
    torch = ModuleType("torch")
    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "gate_worker", harness.worker)
    before = set(sys.modules)
    yield lambda name: importlib.import_module(f"harness.worker.{name}")
    for name in set(sys.modules) - before:
        del sys.modules[name]
        package, _, last = name.rpartition(".")
        if package.startswith("harness.worker") and package in sys.modules:
            delattr(sys.modules[package], last)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_done_before_each_call_is_not_timed(worker: Any, event_log: list[str], device: str) -> None:
    measurements = worker("run.measurements")
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


def test_context_of_the_gpu_is_made_before_memory_is_looked_at(
    worker: Any, event_log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements = worker("run.measurements")

    def note(name: str = "forget") -> int:
        event_log.append(name)
        return 5

    monkeypatch.setattr(measurements, "forget_peak", note)
    monkeypatch.setattr(measurements, "resident", note)
    measurements.Peak("cuda")
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
    assert measurements.gpu_uuid("cuda") == uuid
    assert measurements.gpu_uuid("cpu") is None


def test_machine_without_a_driver_names_no_gpu(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert worker("run.measurements").gpu_uuid("cuda") is None


def test_capture_gets_its_mode_where_the_release_knows_modes(worker: Any) -> None:
    class Old:
        def __init__(self, graph: object, pool: object = None, stream: object = None) -> None: ...

    class New:
        def __init__(self, graph: object, stream: object = None, capture_error_mode: str = "global") -> None: ...

    graphs = worker("run.cuda_graphs")
    assert graphs.options_of(Old, "relaxed") == {}
    assert graphs.options_of(New, "relaxed") == {"capture_error_mode": "relaxed"}
