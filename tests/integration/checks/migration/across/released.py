# mypy: ignore-errors
"""With torch alone: ``write FOLDER`` what this release writes, ``load FOLDER FILE...`` it; one line of JSON for each file.

Programs of many kinds are written, and packages of AOTInductor. A kind that this release cannot write is left out.
"""

import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import nn

warnings.simplefilter("ignore")


class Plain(nn.Module):
    """Sizes are fixed."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.inner(x))


class Deep(nn.Module):
    """More of what networks have."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(10, 8)
        self.mixed = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.seen = nn.Conv1d(8, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.seen(self.mixed(self.rows(x)).transpose(1, 2)).softmax(-1)


class Buffers(nn.Module):
    """Buffers that a call changes, one of which is not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("scale", torch.ones(3), persistent=False)
        self.constant = torch.arange(3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.sum(0))
        return x * self.scale + self.seen + self.constant


class Nested(nn.Module):
    """Arguments within each other, numbers, words and None; results too."""

    def forward(self, x: dict, y: tuple, scale: float, flag: bool, nothing: None, mode: str) -> dict:  # noqa: FBT001
        total = x["a"] + x["b"][0] * scale
        return {"sum": total if flag else -total, "rest": [y[0], (y[1], total.shape[0])]}


class Branch(nn.Module):
    """A branch that depends on data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.cos(), lambda x: x.sin() + 1, (x,))


class Counted(nn.Module):
    """A size that depends on data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x.nonzero()
        torch._check(kept.shape[0] >= 2)
        return kept[:, 0].float() * 0.5


class Sizes(nn.Module):
    """Sizes that are calculated with."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        return torch.cat([x.reshape(rows * 2, -1), y.new_full((torch.sym_max(rows // 2, 3), 2), rows / 3)])


class Rounded(nn.Module):
    """Sizes that functions of Python calculate."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        return x.new_zeros(int(rows * 1.5) + math.floor(rows / 2))


class Loop(nn.Module):
    """A loop that ends when data say so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda x: x.sum() < 9, lambda x: (x.exp(),), (x,))[0]


class Regions(nn.Module):
    """Regions without gradients and of another precision, which become calls of operators of Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x @ x
        with torch.autocast("cpu", torch.bfloat16):
            return y @ x


class Segments(nn.Module):
    """An operator for which the C interface of torch has got a function only lately."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lengths", torch.tensor([1, 3]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.segment_reduce(x.relu(), "sum", lengths=self.lengths)


class Calls(nn.Module):
    """One operator, by name."""

    def __init__(self, call: Callable[..., object]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *args: object) -> object:
        return self.call(*args)


def programs() -> Iterator[tuple[str, Callable[[], torch.export.ExportedProgram]]]:
    """Yield the name of each kind of program, and what makes it."""
    dim, export, x = torch.export.Dim, torch.export.export, torch.randn(4, 4)
    yield "plain", lambda: export(Plain(), (x,))
    yield "dynamic", lambda: export(Plain(), (x,), dynamic_shapes=({0: dim("rows", min=2, max=64)},))
    yield "deep", lambda: export(Deep().eval(), (torch.zeros(2, 5, dtype=torch.long),))
    yield "buffers", lambda: export(Buffers(), (torch.randn(2, 3),))
    nested = ({"a": x, "b": [x]}, (x, x), 0.5, True, None, "sum")
    yield "nested", lambda: export(Nested(), nested)
    yield "branch", lambda: export(Branch(), (x,))
    yield "counted", lambda: export(Counted(), (x,))
    sizes = {"x": {0: dim("rows", min=4)}, "y": {0: dim("others")}}
    yield "sizes", lambda: export(Sizes(), (x, torch.randn(5, 2)), dynamic_shapes=sizes)
    yield "rounded", lambda: export(Rounded(), (x,), dynamic_shapes=({0: dim("rows", min=4)},))
    yield "loop", lambda: export(Loop(), (x.abs(),))
    yield "regions", lambda: export(Regions(), (x,))
    yield "regions_for_training", lambda: torch.export.export_for_training(Regions(), (x,))
    yield "strict", lambda: export(Plain(), (x,), strict=True)
    yield "decomposed", lambda: export(Deep().eval(), (torch.zeros(2, 5, dtype=torch.long),)).run_decompositions()
    yield "trained", lambda: torch.export.export_for_training(Plain(), (x,))
    yield "infinite", lambda: export(Calls(lambda x: x.masked_fill(x > 0, float("-inf"))), (x,))
    for name, made in later_dtypes(x):
        yield name, lambda made=made: export(Calls(made), (x,))
    for name, call, arguments in later_operators(x):
        yield name, lambda call=call, arguments=arguments: export(Calls(call), arguments)


def later_dtypes(x: torch.Tensor) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield dtypes that the schema did not know from the start."""
    for name in ("float8_e4m3fn", "float8_e8m0fnu", "uint16", "uint32", "uint64", "float4_e2m1fn_x2", "bfloat16"):
        dtype = getattr(torch, name, None)
        if dtype is not None:
            yield name, lambda x, dtype=dtype: x.to(dtype)


def later_operators(x: torch.Tensor) -> Iterator[tuple[str, Callable[..., object], tuple[object, ...]]]:
    """Yield operators of torch that not every release has."""
    aten = torch.ops.aten
    yield "rms_norm", torch.nn.functional.rms_norm, (x, (4,))
    half = x.to(torch.bfloat16)
    known: tuple[tuple[str, str, tuple[object, ...]], ...] = (
        ("fused_rms_norm", "_fused_rms_norm", (x, [4], torch.ones(4), 1e-5)),
        ("hash_tensor", "hash_tensor", (x,)),
        ("grouped_mm", "_grouped_mm", (half.expand(2, 4, 4), half.expand(2, 4, 4))),
        ("safe_softmax", "_safe_softmax", (x, -1)),
        ("addmv_dtype", "mm.dtype", ()),
    )
    for name, operator, arguments in known:
        if hasattr(aten, operator) and arguments:
            yield name, getattr(aten, operator), arguments


def packages() -> Iterator[tuple[str, Callable[[], torch.export.ExportedProgram]]]:
    """Yield what is compiled as well: compiled code alone, and code that also calls operators by name."""
    export, x = torch.export.export, torch.randn(4, 4)
    yield "plain", lambda: export(Plain(), (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=64)},))
    yield "segments", lambda: export(Segments(), (x,))
    yield "named", lambda: export(Calls(lambda x: torch.linalg.svd(x.relu())[1]), (x,))


def write(folder: str) -> None:
    """Write every program and package that this release can, into ``folder``; print what it could not."""
    torch.manual_seed(0)
    for name, make in programs():
        path = os.path.join(folder, f"{name}.pt2")
        try:
            torch.export.save(make(), path)
        except Exception as error:
            if os.path.exists(path):
                os.remove(path)  # begun
            print(json.dumps([name, f"{type(error).__name__}: {error}"[:300]]), flush=True)
    from torch import _inductor

    for name, make in packages():
        path = os.path.join(folder, f"{name}.package.pt2")
        try:
            with torch.no_grad(), tempfile.TemporaryDirectory() as cache:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
                _inductor.aoti_compile_and_package(make(), package_path=path)
        except Exception as error:
            print(json.dumps([f"{name}.package", f"{type(error).__name__}: {error}"[:300]]), flush=True)


def load(files: list[str]) -> None:
    """Print for each file whether it loads, and why not."""
    for path in files:
        try:
            if path.endswith(".package.pt2"):
                from torch import _inductor

                _inductor.aoti_load_package(path)
            else:
                torch.export.load(path)
            said = ""
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps([path, said]), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        load(sys.argv[2:])
