"""Healthy models with odd values: huge containers and texts, tensors without elements, large decompositions."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

from fixtures.declare import Sample, model


class HugeList(nn.Module):
    def forward(self, numbers: List[int]) -> List[int]:
        grown: List[int] = []
        for number in numbers:
            grown.append(number * 7919 % 100003)
            grown.append(number)
        grown.sort()
        return grown[::1000]


@model("huge_list", tags=("containers",), timed=False)
def huge_list():
    return Sample(HugeList(), example=([*range(150000)],), other_values=([*range(50000, 0, -1)],))


class HugeDict(nn.Module):
    def forward(self, words: List[str]) -> Dict[str, int]:
        counts: Dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        large: Dict[str, int] = {}
        for word, count in counts.items():
            if count > 7:
                large[word] = count
        return large


@model("huge_dict", tags=("containers",), timed=False)
def huge_dict():
    words = ["word {}".format(number * number % 20011) for number in range(80000)]
    return Sample(HugeDict(), example=(words,), other_values=(words[:30000],))


class HugeText(nn.Module):
    """Takes a text of a megabyte apart, in an encoding whose letters have several bytes."""

    def forward(self, text: str) -> Tuple[int, int, str]:
        words = text.split(" ")
        letters = 0
        for word in words:
            letters += len(word.upper().replace("A", "bb"))
        return len(words), letters, " ".join(words[-5:])


@model("huge_text", tags=("containers",), timed=False)
def huge_text():
    return Sample(HugeText(), example=("Äpfel und banana " * 60000,), other_values=("a " * 100000,))


class NestedTuples(nn.Module):
    """Tuples in tuples in lists, taken apart and put together again and again."""

    def forward(
        self, nested: Tuple[Tuple[Tensor, Tuple[int, Tuple[float, str]]], List[Tuple[Tensor, Tensor]]]
    ) -> Tuple[Tuple[Tensor, Tuple[int, Tuple[float, str]]], List[Tuple[Tensor, Tensor]]]:
        (x, (count, (scale, name))), pairs = nested
        for _ in range(40000):
            (x, (count, (scale, name))) = (x, (count + 1, (scale * 0.9999, name)))
            pairs = [(b, a) for a, b in pairs]
        return (x * scale, (count, (scale, name))), pairs


@model("nested_tuples", tags=("containers",), timed=False)
def nested_tuples():
    def inputs(rows):
        pairs = [(torch.randn(rows), torch.randn(2)) for _ in range(3)]
        return (((torch.randn(rows, 3), (0, (1.0, "odd"))), pairs),)

    return Sample(NestedTuples(), example=inputs(4), batch_7=inputs(7))


class ManyTensors(nn.Module):
    """Returns a thousand tensors without dimensions, and computes on tensors without elements."""

    def forward(self, x: Tensor) -> Tuple[List[Tensor], Tensor, Tensor]:
        scalars: List[Tensor] = []
        for index in range(5000):
            value = x.flatten()[index % x.numel()]
            scalars.append(torch.sin(value) + value.abs().sqrt())
        nothing = x[:0]
        for _ in range(3000):
            nothing = torch.cat([torch.relu(nothing), nothing.sort(0)[0]])
        return scalars[::5], nothing, nothing.sum()


@model("many_tensors", tags=("containers",), timed=False)
def many_tensors():
    return Sample(ManyTensors(), example=(torch.randn(8, 16),), batch_7=(torch.randn(7, 16),))


class Sorts(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        ordered = x.sort(stable=True)[0]
        return ordered[::1000], torch.unique(x.round(decimals=2)).sum()


@model("sorts", tags=("decompositions",), timed=False)
def sorts():
    return Sample(Sorts(), example=(torch.randn(600000),), other_values=(torch.randn(200000),))


class Transforms(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.fft2(x)
        return torch.fft.ifft2(spectrum * spectrum.abs().rsqrt()).real[::8, ::8]


@model("transforms", tags=("decompositions",), timed=False)
def transforms():
    return Sample(Transforms(), example=(torch.randn(1021, 1021),), other_values=(torch.randn(509, 509),))


class Decompositions(nn.Module):
    """Only what a decomposition determines is returned: signs of vectors are free."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        gram = x @ x.t() + torch.eye(x.size(0), dtype=x.dtype, device=x.device)
        return torch.linalg.svdvals(x), torch.linalg.eigvalsh(gram), torch.linalg.slogdet(gram)[1]


@model("decompositions", tags=("decompositions",), timed=False)
def decompositions():
    return Sample(Decompositions(), example=(torch.randn(700, 700),), other_values=(torch.randn(100, 100),))


class Convolutions(nn.Module):
    """Long calls that are computing and nothing else."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(48, 48, 3, padding=1) for _ in range(8)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@model("convolutions", tags=("decompositions",), timed=False)
def convolutions():
    return Sample(Convolutions(), example=(torch.randn(1, 48, 224, 224),), batch_2=(torch.randn(2, 48, 40, 40),))


class AllPairs(nn.Module):
    """Needs a few hundred MB for a moment."""

    def forward(self, x: Tensor) -> Tensor:
        return (x.unsqueeze(0) - x.unsqueeze(1)).abs().sum(2).min(1)[0] + x.sum(1)


@model("all_pairs", tags=("decompositions",), timed=False)
def all_pairs():
    return Sample(AllPairs(), example=(torch.randn(800, 48),), batch_7=(torch.randn(70, 48),))
