"""Writes programs of many nodes with planted operators in known places, as Python source that TorchScript takes.

Three streams of values go through operations that keep distances (signs, flips, shifts, sums with constants), so that
what one operator does to them still shows at the end; now and then two streams meet, and nothing cancels out there.
Operators that round otherwise in the new release, or are slow in both, are sprinkled over all of it.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Group = tuple[str, ...]
SAFE = ("same", "rounds", "slow_in_both")
INDENT = "    "


@dataclass(frozen=True, kw_only=True)
class Planting:
    """What is planted in one program.

    Attributes:
        groups: each group shows the symptom by itself and needs all of its operators, in this order.
        where: ``flat``, or within a ``branch``, a ``loop``, a branch in a loop (``nested``), a method of a submodule
            (``module``), what another thread runs (``fork``), or a branch that is not taken (``dead``).
        places: of the first operators of the groups, as shares of the program; the later ones of a group come
            ``apart`` statements after.
        statements: how many the program has besides; one is about two and a half nodes.
    """

    name: str
    groups: tuple[Group, ...]
    where: str = "flat"
    places: tuple[float, ...] = (0.6,)
    apart: int = 3
    statements: int = 40


def package(plantings: Sequence[Planting]) -> str:
    """Return the source of a file that declares a model for each."""
    head = "# mypy: ignore-errors\nimport torch\nfrom torch import nn\n\nfrom fixtures.declare import Sample, model\n"
    return "\n\n".join([head, *(program(planting) for planting in plantings)])


def program(planting: Planting) -> str:
    """Return the source of one model; the same for the same planting."""
    draw = random.Random(planting.name)
    lines = [line for _, line in sorted((*_filler(planting, draw), *_planted(planting)), key=lambda item: item[0])]
    body = ["b = a + 0.25", "c = a - 0.5", *lines, "return a, b, c"]
    name = planting.name
    declared = (
        f"@model({name!r}, tags=('culprit',))\n"
        f"def {name}():\n"
        f"    return Sample(Program_{name}(), example=(torch.linspace(-1.0, 1.0, 12).reshape(3, 4) + 2.0,))\n"
    )
    forward = _method("forward", "self, a: torch.Tensor", body)
    apart = _function(planting) if planting.where == "fork" else ""
    return "\n\n".join(filter(None, [apart, _inner(planting), _module(name, forward), declared]))


def _module(name: str, forward: str) -> str:
    init = f"def __init__(self):\n    super().__init__()\n    self.inner = Inner_{name}()\n    self.never = False"
    return _class(f"Program_{name}", [init, forward])


def _inner(planting: Planting) -> str:
    called = _calls(planting.groups) if planting.where == "module" else []
    method = _method("mixed", "self, a: torch.Tensor", ["a = torch.flip(a, [1])", *called, "return -a"])
    return _class(f"Inner_{planting.name}", [method])


def _function(planting: Planting) -> str:
    body = ["a = a - 0.125", *_calls(planting.groups), "return torch.roll(a, 1, 1)"]
    return _method(f"apart_{planting.name}", "a: torch.Tensor", body)


def _class(name: str, members: Iterable[str]) -> str:
    text = "\n\n".join(members)
    return f"class {name}(nn.Module):\n" + _indented(text)


def _method(name: str, arguments: str, body: Iterable[str]) -> str:
    return f"def {name}({arguments}):\n" + _indented("\n".join(body))


def _indented(text: str) -> str:
    return "\n".join(INDENT + line if line else line for line in text.split("\n"))


def _filler(planting: Planting, draw: random.Random) -> Iterator[tuple[float, str]]:
    for index in range(planting.statements):
        one, other = draw.sample("abc", 2)
        yield index, draw.choice(_statements(one, other, draw))
    for safe in SAFE:
        for _ in range(3):
            stream = draw.choice("abc")
            yield draw.uniform(0, planting.statements), f"{stream} = torch.ops.planted.{safe}({stream})"
    for place in range(5, planting.statements, 12):
        one, other = draw.sample("abc", 2)
        yield place, f"{one} = ({one}.abs() + {other}.abs()) * 0.5 + 0.5"


def _statements(one: str, other: str, draw: random.Random) -> Sequence[str]:
    constant = round(draw.uniform(-0.5, 0.5), 3)
    return (
        f"{one} = -{one}",
        f"{one} = {one} + {constant}",
        f"{one} = torch.flip({one}, [{draw.randrange(2)}])",
        f"{one} = torch.roll({one}, {draw.randrange(1, 3)}, {draw.randrange(2)})",
        f"{one} = {one}.transpose(0, 1).contiguous().transpose(0, 1)",
        f"{one}, {other} = torch.stack([{one}, {other}]).unbind(0)",
    )


def _planted(planting: Planting) -> Iterator[tuple[float, str]]:
    """Yield where statements go and what they are; a little after the filler of the same number."""
    last = planting.statements
    if planting.where == "flat":
        for group, share in zip(planting.groups, planting.places, strict=True):
            for step, call in enumerate(_calls((group,))):
                yield int(share * last) + step * planting.apart + 0.5, call
        return
    (share, *_) = planting.places
    before, after = int(share * last) + 0.5, int(share * last) + planting.apart + 0.5
    calls = "\n".join(_calls(planting.groups))
    around = ["a = torch.flip(a, [0])", calls, "a = -a"]
    taken, never = "if bool(a.abs().sum() > -1.0):", "if self.never:"
    match planting.where:
        case "branch":
            yield before, _block(taken, around) + "\nelse:\n    a = a + 1.0"
        case "dead":
            yield before, _block(never, around)
        case "loop":
            yield before, _block("for turn in range(3):", around)
        case "nested":
            yield before, _block("for turn in range(3):", [_block("if turn % 2 == 1:", around), "a = a - 0.25"])
        case "module":
            yield before, "a = self.inner.mixed(a)"
        case "fork":
            yield before, f"later = torch.jit.fork(apart_{planting.name}, a)"
            yield after, "a = torch.jit.wait(later)"
        case other:
            raise ValueError(f"{planting.name}: nothing can be planted in {other}")


def _block(head: str, lines: Iterable[str]) -> str:
    return head + "\n" + _indented("\n".join(lines))


def _calls(groups: Iterable[Group]) -> list[str]:
    return [f"a = torch.ops.planted.{operator}(a)" for group in groups for operator in group]
