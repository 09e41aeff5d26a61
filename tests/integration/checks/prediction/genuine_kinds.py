"""Kinds of genuine modules that the static reader once doubted, or believed though no release loads them: source texts.

In the form that ``benchmarks/faults/_genuine_worker.py`` reads.
"""

from harness.artifacts.archive.grammar import CLAIMED

HEAD = """import enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
"""
NET = "class Net(torch.nn.Module):\n"
COLOR = "class Color(enum.Enum):\n    RED = {}\n    GREEN = {}\n"


def source(body: str, top: str = "", folder: str = "models", how: str = "script") -> str:
    """Return the text of a module whose class has ``body``."""
    return f"# {folder} {how}\n{HEAD}{top}{NET}{body}"


def forward(*lines: str, answer: str = "Tensor", arguments: str = "self, x: Tensor") -> str:
    return f"    def forward({arguments}) -> {answer}:\n" + "".join(f"        {line}\n" for line in lines)


def init(*lines: str) -> str:
    return "    def __init__(self):\n        super().__init__()\n" + "".join(f"        {line}\n" for line in lines)


def holding(line: str) -> str:
    return source(init(line) + forward("return x"))


def within(manager: str) -> str:
    return source(
        forward("y = x", f"with {manager}:", "    y = x * 2", "    for i in range(2):", "        y = y + i", "return y")
    )


MANAGER = """class Own:
    def __init__(self, n: int):
        self.n = n
    def __enter__(this) -> int:
        return this.n
    def __exit__(this, a: Any, b: Any, c: Any) -> None:
        this.n -= 1
"""
ITEM = """class Item:
    def __init__(s, n: int):
        s.n = n
    def get(t, d: int = 2) -> int:
        return t.n + d
    def __lt__(self, other: "Item") -> bool:
        return self.n < other.n
"""
PART = "class Part(torch.nn.Module):\n" + "    def forward(self, x: Tensor) -> Tensor:\n        return x * 2\n"
USES_COLOR = forward(
    "if c == Color.GREEN:", "    return Color.RED", "return c", arguments="self, x: Tensor, c: Color", answer="Color"
)
TENSORS = {
    "conjugate": "torch.ones(4, 9, dtype=torch.complex64).conj()",
    "conjugate_transposed": "torch.ones(2, 3, dtype=torch.complex128).conj().t()",
    "negative": "torch.ones(4, dtype=torch.complex64).conj().imag",
    "negative_view": "torch._neg_view(torch.ones(3))",
    "conjugate_negative": "torch._neg_view(torch.ones(4, dtype=torch.complex64).conj())",
    "sparse": "torch.eye(3).to_sparse()",
    "sparse_hybrid": "torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (2, 3))",
    "sparse_empty": "torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0), (2, 2))",
    "csr": "torch.eye(3).to_sparse_csr()",
    "meta": "torch.ones(3, device='meta')",
    "meta_half": "torch.ones(3, 4, device='meta', dtype=torch.half).t()",
    "packed_4_bits": "torch.quantize_per_channel(torch.ones(4, 4), torch.ones(4), torch.zeros(4), 0, torch.quint4x2)",
    **{
        name: f"torch.zeros(4, dtype=torch.uint8).view(torch.{name})"
        for name in (
            "int4",
            "uint4",
            "int1",
            "uint7",
            "float4_e2m1fn_x2",
            "float8_e8m0fnu",
            "bits8",
            "bits4x2",
            "bits16",
        )
    },
}
NAMES = (
    "größe",
    "вес",
    "层",
    "a b",
    "a-b",
    "1x",
    "x:y",
    "%",
    "a\tb",
    'q"u',
    "b\\n",
    "l\nn",
    "lambda",
    "try",
    "torch",
    "print",
)
FOLDERS = ("my-models", "pkg.a-b.c", "in", "pkg.global.m", "2models", "größe", "my models", "pkg.phi-1_5", "lambda")

KINDS: dict[str, str] = {
    **{
        f"with {manager}": within(manager)
        for manager in ("torch.no_grad()", "torch.autograd.profiler.record_function('é')")
    },
    **{
        f"with {manager}": within(manager)
        for manager in ("torch.autocast('cpu', dtype=torch.bfloat16)", "torch.autocast('cpu', enabled=False)")
    },
    "with cuda autocast": within("torch.cuda.amp.autocast(enabled=False)"),
    "with own": source(
        forward("with Own(2) as n:", "    with torch.no_grad():", "        pass", "    x = x * n", "return x"), MANAGER
    ),
    "with return": source(forward("with torch.no_grad():", "    return x * 2")),
    "print": source(forward("print(x, 1, 'é')", "print()", "return x")),
    "sorted": source(
        forward("n = sorted([3, 1])", "s = sorted({'a': x}.keys())", "print(sorted([0.5]), s)", "return x * n[0]")
    ),
    "sorted objects": source(forward("items = sorted([Item(2), Item(1)])", "return x * items[0].get()"), ITEM),
    **{
        f"enum of {one!r}": source(USES_COLOR, COLOR.format(repr(one), repr(two)))
        for one, two in ((1, 2), ("r", "g"), (1.5, 2.5), ("é", "g"), ("a\\d", "g"), ('a"b', "g"), ("a\nb", "g"))
    },
    "enum of infinity": source(USES_COLOR, COLOR.format("float('inf')", "1.5")),
    "enum default": source(
        forward(
            "print(c.name, [e.value for e in Color])", "return x", arguments="self, x: Tensor, c: Color = Color.RED"
        ),
        COLOR.format(1, 2),
    ),
    "enum attribute": source(
        init("self.c = Color.RED", "self.all = [Color.RED, Color.GREEN]") + forward("return x * len(self.all)"),
        COLOR.format(1, 2),
    ),
    "complex": source(forward("return x * 2j + (1.5 + 3j) - complex(0, -1) + complex(float('inf'), float('nan'))")),
    "complex default": source(forward("return x * z", arguments="self, x: Tensor, z: complex = 3 - 1e-20j")),
    "complex attribute": source(
        init("self.z = -1 - 2j", "self.all = [1j]") + forward("return x * self.z + self.all[0]")
    ),
    "text": source(
        forward("return 'Grüße 你好 🎉' + 'a\\x01\\n' + t", arguments="self, x: Tensor, t: str = 'é'", answer="str")
    ),
    "text taken apart": source(forward("return '🎉'[0]", answer="str")),
    "text constant": source(
        "    __constants__ = ['s']\n" + init("self.s = 'é'", "self.d = {'ключ': 1}") + forward("return x * len(self.s)")
    ),
    **{
        f"first is {name}": source(forward("return x", arguments=f"{name}, x: Tensor"))
        for name in ("this", "_", "me", "größe")
    },
    "objects of their own": source(forward("return x * Item(3).get()"), ITEM),
    **{f"buffer {name}": holding(f"self.register_buffer('w', {made})") for name, made in TENSORS.items()},
    **{f"buffer {name!r}": holding(f"self.register_buffer({name!r}, torch.ones(2))") for name in NAMES},
    **{
        f"child {name!r}": source(
            init(f"self.parts = torch.nn.ModuleDict({{{name!r}: torch.nn.Linear(2, 2)}})")
            + forward("for key, part in self.parts.items():", "    x = part(x)", "return x")
        )
        for name in (*NAMES, *sorted(CLAIMED), "async", "from", "yield", "nonlocal", "match")
    },
    **{f"folder {folder}": source(forward("return x"), folder=folder) for folder in FOLDERS},
    **{
        f"hyphen, {name}": text.replace("# models", "# my-models")
        for name, text in {
            "child": source(init("self.part = Part()") + forward("return self.part(x)"), PART),
            "attribute": source(init("self.item = Item(2)") + forward("return x * self.item.n"), ITEM),
            "made": source(forward("return x * Item(3).get()"), ITEM),
            "argument": source(forward("return x * i.n", arguments="self, x: Tensor, i: Item"), ITEM),
            "list": source(forward("return x * i[0].n", arguments="self, x: Tensor, i: List[Item]"), ITEM),
            "asked": source(forward("a: Any = x", "if isinstance(a, Item):", "    x = x * a.n", "return x"), ITEM),
            "optional": source(init("self.item: Optional[Item] = None") + forward("return x"), ITEM),
            "enum": source(USES_COLOR.replace("return Color.RED", "pass"), COLOR.format(1, 2)),
            "enum value": source(USES_COLOR, COLOR.format(1, 2)),
        }.items()
    },
    "narrowed in a loop": source(
        forward(
            "o: Optional[Tensor] = None",
            "with torch.no_grad():",
            "    o = o",
            "for i in range(2):",
            "    o = None",
            "return o",
            answer="Optional[Tensor]",
        )
    ),
    "narrowed in branches": source(
        forward(
            *("r: Any = x", "if x.dim() == 1:", "    r = 1.0", "if x.dim() == 3:", "    r = [x, x]", "if x.dim() > 1:"),
            *("    if x.dim() == 2:", "        r = None", "    if x.dim() == 3:", "        r = (x, x)", "return r"),
            answer="Any",
        )
    ),
    "lists taken several times": source(
        forward("return max([1, 2][1:] * 2) + len([3] + [1, 2][1:] * 2)", answer="int")
    ),
    "steps of a pair": source(forward("return torch.linspace(0, 1, (x, 3)[1]) + torch.linspace(0, 1, [4].pop())")),
    "child called print": source(
        init("self.parts = torch.nn.ModuleDict({'print': torch.nn.ReLU()})")
        + forward("for key, part in self.parts.items():", "    x = part(x)", "print(x)", "return x")
    ),
    "values called torch": source(forward("torch = x + 1", "return torch * torch")),
    "parameter called torch": source(forward("return torch + 1", arguments="self, torch: Tensor")),
    "parameter outside ASCII": source(forward("return größe + 1", arguments="self, größe: Tensor")),
    "variable outside ASCII": source(forward("größe = x + 1", "return größe * größe")),
    "class outside ASCII": source(forward("return x"), "").replace("class Net", "class Größe") + "\nNet = Größe\n",
    "attribute outside ASCII": source(init("self.größe = 1") + forward("return x * self.größe")),
    "frozen conjugate": source(
        init(f"self.register_buffer('w', {TENSORS['conjugate']})") + forward("return x * self.w"), how="freeze"
    ),
    "optimized convolution": source(
        init("self.c = torch.nn.Conv2d(3, 8, 3)") + forward("return torch.relu(self.c(x))"), how="optimize"
    ),
    "optimized linear": source(
        init("self.c = torch.nn.Linear(3, 8)") + forward("return torch.relu(self.c(x))"), how="optimize"
    ),
}
