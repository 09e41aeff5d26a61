"""What the fake accelerator must do in this release of torch for workers to run on it; asserts, and prints what it saw.

Called with the folder of a build.
"""

import os
import sys

sys.path.insert(0, sys.argv[1])

import torch

import fakedev

torch.set_num_threads(1)
assert torch.fakedev is fakedev


def devices():
    assert fakedev.is_available() and fakedev.device_count() == 2
    assert "fake accelerator" in fakedev.get_device_name()
    with fakedev.device(1):
        assert fakedev.current_device() == 1
        assert torch.ones(1, device="fakedev").device.index == 1
    assert fakedev.current_device() == 0
    moved = torch.arange(5, device="fakedev:0").to("fakedev:1")
    assert moved.device.index == 1 and moved.tolist() == [0, 1, 2, 3, 4]


def faults():
    for text in ("late_eror", "hang:0", "hang:x", "hang:2++"):
        try:
            fakedev.set_fault(text)
        except RuntimeError as error:
            assert "FAKEDEV_FAULT: %s is no fault; late_error:N, hang:N," % text in str(error)
        else:
            raise AssertionError(text)


def memory():
    fakedev.synchronize()
    fakedev.empty_cache()
    before, reserved = fakedev.memory_allocated(), fakedev.memory_reserved()
    fakedev.reset_peak_memory_stats()
    kept = torch.empty(1 << 20, dtype=torch.uint8, device="fakedev")
    torch.empty(3 << 20, dtype=torch.uint8, device="fakedev")
    assert fakedev.memory_allocated() == before + (1 << 20)
    assert fakedev.max_memory_allocated() == before + (4 << 20)
    assert fakedev.memory_reserved() == reserved + (4 << 20)
    fakedev.empty_cache()
    assert fakedev.memory_reserved() == reserved + (1 << 20)
    fakedev.reset_peak_memory_stats()
    assert fakedev.max_memory_allocated() == before + kept.numel()


def streams():
    first, second = fakedev.Stream(), fakedev.Stream()
    assert first != second and fakedev.current_stream() == fakedev.default_stream()
    begin, end = fakedev.Event(enable_timing=True), fakedev.Event(enable_timing=True)
    with fakedev.stream(first):
        assert fakedev.current_stream() == first
        begin.record()
        fakedev.sleep(0.05)
        end.record()
    assert not first.query() and not end.query() and second.query()
    end.synchronize()
    assert first.query() and end.query()
    assert begin.elapsed_time(end) >= 50.0
    assert fakedev.current_stream() == fakedev.default_stream()


def numbers():
    torch.manual_seed(5)
    drawn = torch.rand(100, device="fakedev")
    state = fakedev.get_rng_state()
    again = torch.rand(100, device="fakedev")
    assert not torch.equal(drawn.cpu(), again.cpu())
    fakedev.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="fakedev").cpu(), again.cpu())
    torch.manual_seed(5)
    assert torch.equal(torch.rand(100, device="fakedev").cpu(), drawn.cpu())
    generator = fakedev.default_generators[0]
    seeded = torch.Generator(generator.device).manual_seed(7)
    assert not torch.equal(generator.get_state(), seeded.get_state())
    torch.manual_seed(7)
    assert torch.equal(generator.get_state(), seeded.get_state())
    dropped = torch.nn.functional.dropout(torch.ones(1000, device="fakedev"), 0.5)
    assert set(dropped.cpu().tolist()) == {0.0, 2.0}
    assert not torch.equal(generator.get_state(), seeded.get_state())


def graphs():
    graph, stream = fakedev.Graph(), fakedev.Stream()
    values = torch.ones(50, device="fakedev")
    with fakedev.graph(graph, stream=stream, capture_error_mode="thread_local"):
        noisy = values * 2 + torch.rand(50, device="fakedev")
    with fakedev.stream(stream):
        torch.manual_seed(1)
        plain = (values * 2 + torch.rand(50, device="fakedev")).cpu()
        torch.manual_seed(1)
        graph.replay()
        assert torch.equal(noisy.cpu(), plain)
        graph.replay()
        assert not torch.equal(noisy.cpu(), plain)
        values.fill_(3)
        torch.manual_seed(1)
        graph.replay()
        assert torch.allclose(noisy.cpu(), plain + 4)


def taken(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return x[:, (m[0] > 0).nonzero().flatten()] + 1


def operators():
    torch.manual_seed(0)
    values, matrix = torch.randn(4, 5), torch.randn(5, 5)
    there, there_matrix = values.to("fakedev"), matrix.to("fakedev")
    for action in (
        lambda x, m: x[:, 1:3].t().contiguous(),
        lambda x, m: (x @ m).softmax(1),
        lambda x, m: x.unfold(1, 2, 1) + 1,
        lambda x, m: x[x > 0],  # a shape that depends on values
        lambda x, m: torch.linalg.inv(m),  # zeros have no inverse
        lambda x, m: torch.cat([x, x * 2]).sort(1)[0],
        lambda x, m: x.clone().index_add_(0, torch.tensor([0, 2], device=x.device), x[:2]),
        lambda x, m: torch.view_as_complex(x[:, :4].contiguous().reshape(4, 2, 2)).abs(),
        lambda x, m: torch.fft.irfft(torch.fft.rfft(x).conj() * 2, n=5),
        lambda x, m: torch.add(x, 1, out=torch.empty(0, device=x.device)),
        lambda x, m: x[torch.tensor([3, 1])],  # indices on the host
        lambda x, m: torch.where(x > 0, x, 0.0).bfloat16().float(),
        lambda x, m: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        lambda x, m: torch.empty(0, device=x.device).resize_(2, 3).fill_(1).resize_(3, 3)[:2],
        torch.jit.script(taken),
    ):
        expected, found = action(values, matrix), action(there, there_matrix)
        assert found.device.type == "fakedev"
        assert torch.allclose(found.cpu(), expected, atol=1e-6), (found.cpu(), expected)
    assert there.sum().item() == values.sum().item()
    for layer in (torch.nn.LSTM(5, 3), torch.nn.GRU(5, 3), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2)):
        with torch.no_grad():
            expected = layer(values)
            found = layer.to("fakedev")(there)
        expected, found = (one[0] if isinstance(one, tuple) else one for one in (expected, found))
        assert torch.allclose(found.cpu(), expected, atol=1e-6)


def loader():
    """Return whether torch.jit.load knows the device itself."""
    module = torch.jit.script(torch.nn.Linear(2, 2))
    path = os.path.join(os.environ["TMPDIR"], "linear.pt")
    torch.jit.save(module, path)
    loaded = torch.jit.load(path, map_location="fakedev:1")
    return {str(parameter.device) for parameter in loaded.parameters()} == {"fakedev:1"}


devices()
faults()
memory()
streams()
numbers()
graphs()
operators()
print("loads with map_location:", loader())
