# mypy: ignore-errors
"""Every kind of value that crosses the wire, in both directions, with arithmetic that is exact everywhere."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from fixtures.declare import Call, Sample, model
from torch import Tensor


class Point(NamedTuple):
    """A name, and two fields of which one holds a tensor."""

    at: Tensor
    label: str


class Scalars(torch.nn.Module):
    def forward(
        self,
        flag: bool,
        count: int,
        ratio: float,
        phase: complex,
        word: str,
        place: torch.device,
        gap: Optional[int],
        edges: List[float],
    ) -> Tuple[bool, int, float, complex, str, torch.device, Optional[int], List[float]]:
        return not flag, count * 3, ratio * 0.5, phase * 2, word + '\n"\\', place, gap, edges


EDGES = [float("inf"), float("-inf"), float("nan"), -0.0, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 0.1, 5e-324]


@model("scalars", tags=("wire",))
def scalars():
    return Sample(
        Scalars(),
        full=(True, 2**40, 0.2, complex(0.5, -0.25), "\u00fc\U0001f600\x7f", torch.device("cpu"), None, EDGES),
        gapless=(False, -1, 1e300, complex(float("inf"), 1e-7), "", torch.device("cuda:1"), 7, []),
    )


class Structures(torch.nn.Module):
    def forward(
        self,
        point: Point,
        pair: Tuple[int, Tuple[float, str]],
        tensors: List[Optional[Tensor]],
        words: Dict[str, List[int]],
        numbered: Dict[int, Tensor],
        later: Optional[List[Tensor]] = None,
        either: Union[int, str, List[int]] = 0,
        scale: float = 2.0,
    ) -> Tuple[
        Point,
        Tuple[int, Tuple[float, str]],
        List[Optional[Tensor]],
        Dict[str, List[int]],
        Dict[int, Tensor],
        Optional[List[Tensor]],
        Dict[Tensor, int],
        List[Dict[str, Tuple[int, float]]],
        Union[int, str, List[int]],
    ]:
        words["last"] = [len(words)]
        numbered[-1] = point.at * scale
        nested = [{"b": (1, 0.5), "a": (2, 0.25)}, torch.jit.annotate(Dict[str, Tuple[int, float]], {})]
        keyed = {point.at: pair[0]}
        return point, pair, tensors, words, numbered, later, keyed, nested, either


@model("structures", tags=("wire",))
def structures():
    point = Point(torch.arange(3.0), "p")
    words = {"z": [3, 1], "a": torch.jit.annotate(List[int], [])}
    return Sample(
        Structures(),
        full=(point, (1, (0.1, "s")), [torch.ones(2), None], words, {5: torch.zeros(1)}, [torch.ones(1)], [4, 5], 3),
        short=(point, (1, (2, "s")), [], {}, {}),
        text=(point, (1, (0.1, "s")), [None], {}, {1: torch.ones(2, 2)}, [], "word"),
    )


class Dtypes(torch.nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        z = torch.complex(x, x * 2)
        quantized = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        scales = torch.tensor([0.5, 0.25], dtype=torch.float64)
        channels = torch.quantize_per_channel(x, scales, torch.tensor([0, 2]), 0, torch.qint8)
        plain = [x.to(torch.bfloat16), x.half(), x.double(), x > 1, x.to(torch.uint8), x.to(torch.int8)]
        more = [x.to(torch.int16), x.int(), x.long(), z, z.to(torch.complex128), z.conj(), torch.imag(z.conj())]
        shaped = [x.t(), x[:, 1:], x[0, 0], x[:0], x.expand(2, 2, 3), torch.zeros(1).expand(4), torch.zeros(0, 3)]
        return plain + more + shaped + [quantized, channels, x.to_sparse()]


class Float8(torch.nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [x.to(torch.float8_e4m3fn), x.to(torch.float8_e5m2)]


class Echo(torch.nn.Module):
    def forward(self, values: List[Tensor]) -> List[Tensor]:
        return values

    @torch.jit.export
    def anything(self, value: Any) -> Any:
        return value


@model("dtypes", tags=("wire",))
def dtypes():
    x = torch.arange(6.0).reshape(2, 3)
    return Sample(Dtypes(), rows=(x,), columns=(torch.arange(6.0).reshape(3, 2).t(),))


@model("float8", tags=("wire",), requires="2.1")
def float8():
    return Sample(Float8(), rows=(torch.tensor([0.1, 448.0, -2.0]),))


@model("echo", tags=("wire",))
def echo():
    x = torch.arange(6.0).reshape(2, 3)
    every = [x, x.t(), x[:, ::2], x[0], x[0, 0], x[:0], x.to(torch.bfloat16), x.long(), x > 2, torch.complex(x, x)]
    every += [torch.quantize_per_tensor(x, 0.25, 1, torch.qint8), x.to_sparse()]
    return Sample(
        Echo(),
        tensors=(every,),
        nothing=([],),
        number=Call("anything", 3),
        names=Call("anything", ["a", "b"]),
        table=Call("anything", {"k": (1, 2.5)}),
        point=Call("anything", Point(torch.ones(1), "p")),
    )


class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        self.seen += x
        x.zero_()
        return self.seen.clone(), torch.randint(0, 1000, (4,))

    @torch.jit.export
    def forget(self) -> None:
        self.seen.zero_()


@model("memory", tags=("wire",), reset="forget", seed=7)
def memory():
    return Sample(Memory(), first=(torch.ones(2),), second=(torch.full((2,), 5.0),))


class Matmul(torch.nn.Module):
    """Begins with a product of matrices: nothing before it asks torch how many threads there are."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.eye(SIDE))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(8):
            x = x @ self.weight
        return x[:2, :2]


SIDE = 384


@model("matmul", tags=("threads",))
def matmul():
    return Sample(Matmul(), example=(torch.ones(SIDE, SIDE),))


class Turns(torch.nn.Module):
    """Counts its calls in what it answers, from one of them on."""

    def __init__(self, first):
        super().__init__()
        self.first = first
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.calls if int(self.calls) >= self.first else x


@model("turns", tags=("serving",))
def turns():
    return Sample(Turns(8), example=(torch.arange(3.0),))


@model("counts", tags=("serving",))
def counts():
    return Sample(Turns(1), example=(torch.arange(3.0),))


class Seen(torch.nn.Module):
    """Answers the sizes that it has been called with, and the sum of what it was given, so far."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sizes", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: Tensor, names: Dict[str, Tensor]) -> Tuple[Tensor, Tensor]:
        mask = names["mask"]
        self.sizes = torch.cat([self.sizes, torch.tensor([x.size(0), x.size(1), mask.size(0)])])
        self.total += (x.sum(1) * mask).sum()
        return self.sizes, self.total.clone()


@model("seen", how="script", tags=("serving",))
def seen():
    def inputs(rows):
        return torch.arange(2.0 * rows).view(rows, 2), {"mask": torch.arange(1.0, rows + 1)}

    return Sample(Seen(), example=inputs(2), larger=inputs(3))


class Raises(torch.nn.Module):
    def forward(self, how: int, x: Tensor) -> Tensor:
        if how == 1:
            raise ValueError("raised on purpose: {}".format(how))
        if how == 2:
            assert x.sum() > 100, "too small"
        if how == 3:
            return torch.matmul(x, x)
        if how == 4:
            return torch.jit.annotate(List[Tensor], [])[how]
        if how == 5:
            return x[7]
        if how == 6:
            return x.to_sparse().cos_().index_put([torch.tensor([9])], x)
        if how == 7:
            return torch.linalg.cholesky(-torch.eye(2))
        return x + how


def _raising(how):
    return Sample(Raises(), fine=(0, torch.ones(2, 3)), bad=(how, torch.ones(2, 3)), after=(0, torch.ones(2, 3)))


@model("raises_value_error", tags=("errors",))
def raises_value_error():
    return _raising(1)


@model("raises_assertion", tags=("errors",))
def raises_assertion():
    return _raising(2)


@model("raises_shape", tags=("errors",))
def raises_shape():
    return _raising(3)


@model("raises_list_index", tags=("errors",))
def raises_list_index():
    return _raising(4)


@model("raises_tensor_index", tags=("errors",))
def raises_tensor_index():
    return _raising(5)


@model("raises_not_implemented", tags=("errors",))
def raises_not_implemented():
    return _raising(6)


@model("raises_linear_algebra", tags=("errors",))
def raises_linear_algebra():
    return _raising(7)


@model("raises_wrong_type", tags=("errors",))
def raises_wrong_type():
    return Sample(Raises(), bad=("text", torch.ones(1)))


@model("raises_missing_argument", tags=("errors",))
def raises_missing_argument():
    return Sample(Raises(), bad=(1,))


@model("raises_surplus_argument", tags=("errors",))
def raises_surplus_argument():
    return Sample(Raises(), bad=(1, torch.ones(1), 3, 4))


@model("raises_no_method", tags=("errors",))
def raises_no_method():
    return Sample(Raises(), bad=Call("absent", 1))
