"""Source texts of genuine modules, drawn from a grammar of what TorchScript compiles.

Each is a program of Python with a class ``Net`` in it that needs torch alone; its first line says how the file of code is
called, and whether the module is frozen. Not each compiles in each release. Equal chances draw equal texts, those of
hypothesis (``st.randoms``) too.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HEAD = """import enum
import math
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor
"""
PLACE = re.compile(r"<(\w+)>")
DEPTH = 3
"""Of expressions within expressions, and of blocks within blocks."""
TYPES: Mapping[str, str] = {
    "Tensor": "Tensor",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "complex": "complex",
    "Ints": "List[int]",
    "Floats": "List[float]",
    "Strs": "List[str]",
    "Tensors": "List[Tensor]",
    "Named": "Dict[str, Tensor]",
    "Counts": "Dict[int, int]",
    "Maybe": "Optional[Tensor]",
    "MaybeInt": "Optional[int]",
    "Pair": "Tuple[Tensor, int]",
    "Triple": "Tuple[int, str, float]",
    "Either": "Union[int, str]",
}
# What has a type; the first one ends the depth.
EXPRESSIONS: Mapping[str, Sequence[str]] = {
    "Tensor": (
        "x",
        *(
            "<Tensor> + <Tensor>",
            "<Tensor> * <float>",
            "<Tensor> - <int>",
            "<Tensor> / 2",
            "-<Tensor>",
            "<Tensor> ** 2",
        ),
        *("torch.relu(<Tensor>)", "<Tensor>.sum(dim=0, keepdim=True)", "torch.cat([<Tensor>, <Tensor>], dim=0)"),
        *("torch.zeros([2, 3])", "torch.ones(2, <int>, dtype=torch.float64)", "torch.full([2], <float>)"),
        *("<Tensor>[0]", "<Tensor>[:, 1:]", "<Tensor>[..., None]", "<Tensor>[<Tensor> > 0]", "<Tensor>[1:<int>:2]"),
        *("<Tensor>.view([-1, 2])", "<Tensor>.to(torch.float16)", "<Tensor>.to(x.device)", "<Tensor>.clone().detach()"),
        *("torch.where(<Tensor> > 0, <Tensor>, <Tensor>)", "torch.nn.functional.softmax(<Tensor>, dim=-1)"),
        *("torch.nn.functional.dropout(<Tensor>, 0.5, self.training)", "torch.arange(<int>)", "torch.tensor([1, 2])"),
        *("torch.tensor(<Floats>, dtype=torch.float32)", "torch.max(<Tensor>, dim=0)[0]", "<Tensor>.transpose(0, 1)"),
        *("torch.einsum('ij,jk->ik', <Tensor>, <Tensor>)", "torch.stack(<Tensors>)", "torch.clamp(<Tensor>, min=0.)"),
        *("torch.div(<Tensor>, <int>, rounding_mode='floor')", "torch.fft.rfft(<Tensor>).real", "<Pair>[0]"),
        *("torch.nn.functional.interpolate(<Tensor>, scale_factor=2.0, mode='nearest')", "torch.mul(<Tensor>, <int>)"),
        *("torch.add(<Tensor>, <Tensor>, alpha=<int>)", "(<Tensor> if <bool> else <Tensor>)", "torch.eq(<Tensor>, 1)"),
        *("<Tensor> * <complex>", "torch.nn.functional.layer_norm(<Tensor>, [3])", "torch.linspace(0, 1, <int>)"),
        *("torch.nn.functional.gelu(<Tensor>)", "torch.topk(<Tensor>, 2).values", "<Tensor>.scatter(0, <Tensor>, 1.)"),
        *("torch.nn.functional.pad(<Tensor>, [1, 1])", "torch.logspace(0, 1, 3)", "<Tensors>[0]", "<Named>['a']"),
    ),
    "int": (
        "3",
        *(
            "n",
            "len(<Ints>)",
            "<int> + <int>",
            "<int> * 2",
            "<int> // 2",
            "<int> % 3",
            "-<int>",
            "x.size(0)",
            "x.shape[0]",
        ),
        *("int(<float>)", "int(<bool>)", "min(<int>, <int>)", "max(<Ints>)", "sum(<Ints>)", "abs(<int>)", "x.dim()"),
        *(
            "ord(<str>[0])",
            "<int> << 1",
            "<int> & 7",
            "<int> ^ 1",
            "(<int> if <bool> else 0)",
            "<Pair>[1]",
            "<Triple>[0]",
        ),
        *(
            "<Ints>[0]",
            "<Ints>[-1]",
            "len(<str>)",
            "int(round(<float>))",
            "int(<str>)",
            "math.floor(<float>)",
            "<Ints>.pop()",
        ),
        *("<Ints>.index(1)", "<Ints>.count(2)", "<Counts>[1]", "divmod(<int>, 3)[0]", "x.numel()", "int(x.item())"),
        *("9223372036854775807", "-1", "<Counts>.get(3, 4)", "<str>.find('a')", "math.gcd(<int>, 6)"),
    ),
    "float": (
        "0.5",
        *(
            "<float> + <int>",
            "<float> * <float>",
            "float(<int>)",
            "<int> / 2",
            "math.sqrt(<float>)",
            "math.pi",
            "1e-12",
        ),
        *(
            "float('inf')",
            "-float('inf')",
            "float('nan')",
            "abs(<float>)",
            "<Floats>[0]",
            "float(x.item())",
            "<float> ** 2",
        ),
        *("max(<float>, 1.0)", "<Triple>[2]", "(<float> if <bool> else <float>)", "math.log(<float>)"),
        *("float(<str>)", "-1.5", "3e300", "math.atan2(<float>, <float>)", "sum(<Floats>)", "math.inf"),
    ),
    "bool": (
        "True",
        *(
            "<int> > 2",
            "<int> == <int>",
            "<str> == 'a'",
            "not <bool>",
            "<bool> and <bool>",
            "<bool> or <bool>",
            "bool(<int>)",
        ),
        *(
            "<Maybe> is None",
            "<MaybeInt> is not None",
            "1 in <Ints>",
            "'a' in <Named>",
            "self.training",
            "<float> <= 1.0",
        ),
        *(
            "x.is_floating_point()",
            "<str>.startswith('a')",
            "x.requires_grad",
            "<Ints> == [1]",
            "isinstance(<Either>, int)",
        ),
        *(
            "<int> not in <Counts>",
            "<complex> == 1j",
            "x.dtype == torch.float32",
            "x.device.type == 'cpu'",
            "bool(<float>)",
        ),
        *("torch.jit.is_scripting()", "<str> != <str>", "<str>.isdigit()", "any([<bool>, <bool>])", "x.is_cuda"),
    ),
    "str": (
        "'a'",
        *("<str> + <str>", "str(<int>)", "<str>.upper()", "'{} and {}'.format(<int>, <str>)", "f'{n} of'", "<str>[0]"),
        *("', '.join(<Strs>)", "<str>.replace('a', 'b')", "<Strs>[0]", "'%s' % <str>", "<str>[1:]", "'Grüße'"),
        *(
            "'你好 \\u2028'",
            "'q\"u\\'o'",
            "'back\\\\slash'",
            "'line\\nend\\ttab'",
            "'\\x01\\x7f'",
            "''",
            "'#'",
            "<Triple>[1]",
        ),
        *(
            "<str>.strip()",
            "<str>.split(',')[0]",
            "str(<float>)",
            "chr(<int>)",
            "hex(<int>)",
            "'🎉' + <str>",
            "str(x.device)",
        ),
    ),
    "complex": (
        "1j",
        *(
            "complex(<float>, <float>)",
            "<complex> * 2",
            "<complex> + <complex>",
            "2.5 + 1e-20j",
            "-(1 - 2j)",
            "<complex> - 1j",
        ),
        *("complex(float('inf'), 1.0)", "complex(0, -1)"),
    ),
    "Ints": (
        "[1, 2]",
        *(
            "[<int>, <int>]",
            "list(range(<int>))",
            "[i + 1 for i in range(3)]",
            "sorted(<Ints>)",
            "<Ints> + <Ints>",
            "<Ints>[1:]",
        ),
        *(
            "x.size()",
            "x.shape",
            "torch.jit.annotate(List[int], [])",
            "<Ints> * 2",
            "<Ints>.copy()",
            "[len(s) for s in <Strs>]",
        ),
    ),
    "Floats": (
        "[0.5]",
        "[<float>, <float>]",
        "[float(i) for i in <Ints>]",
        "torch.jit.annotate(List[float], [])",
        "sorted(<Floats>)",
    ),
    "Strs": (
        "['a', 'b']",
        "[<str>, <str>]",
        "<str>.split(' ')",
        "sorted(<Strs>)",
        "list(<Named>.keys())",
        "[str(i) for i in <Ints>]",
    ),
    "Tensors": (
        "[x]",
        *("[<Tensor>, <Tensor>]", "torch.split(<Tensor>, 1)", "torch.unbind(<Tensor>)", "list(<Named>.values())"),
        *("torch.chunk(<Tensor>, 2)", "[t + 1 for t in <Tensors>]", "torch.jit.annotate(List[Tensor], [])"),
    ),
    "Named": (
        "{'a': x}",
        "{'a': <Tensor>, 'b': <Tensor>}",
        "torch.jit.annotate(Dict[str, Tensor], {})",
        "{s: x for s in <Strs>}",
    ),
    "Counts": ("{1: 2}", "{<int>: <int>}", "{i: i * 2 for i in range(3)}"),
    "Maybe": ("None", "<Tensor>", "<Maybe>"),
    "MaybeInt": ("None", "<int>"),
    "Pair": ("(x, 1)", "(<Tensor>, <int>)"),
    "Triple": ("(1, 'a', 0.5)", "(<int>, <str>, <float>)"),
    "Either": ("1", "<int>", "<str>"),
}
STATEMENTS = (
    *(
        "print(<Tensor>, <int>, <str>)",
        "print()",
        "assert <bool>, <str>",
        "x.add_(<Tensor>)",
        "torch._assert(<bool>, 'no')",
    ),
    *(
        "<Ints>.append(<int>)",
        "<Tensors>.append(<Tensor>)",
        "<Ints>.sort()",
        "<Ints>.reverse()",
        "<Ints>.extend(<Ints>)",
    ),
    *("<Strs>.insert(0, <str>)", "x[0] = <float>", "x += <Tensor>", "x = <Tensor>", "pass"),
)
BLOCKS: Sequence[tuple[str, ...]] = (
    ("if <bool>:", "else:"),
    ("if <bool>:",),
    ("if <bool>:", "elif <bool>:", "else:"),
    ("for {int} in range(<int>):",),
    ("for {int} in range(0, <int>, 2):",),
    ("for {Tensor} in <Tensors>:",),
    ("for {int}, {Tensor} in enumerate(<Tensors>):",),
    ("for {int}, {str} in zip(<Ints>, <Strs>):",),
    ("for {str}, {Tensor} in <Named>.items():",),
    ("for {str} in <Named>:",),
    ("while <bool>:",),
    ("with torch.no_grad():",),
    ("with torch.autograd.profiler.record_function(<str>):",),
    ("with torch.autocast('cpu', dtype=torch.bfloat16):",),
    ("with torch.autocast('cpu', enabled=False):",),
    ("with torch.cuda.amp.autocast(enabled=False):",),
)
BUFFERS = (
    *(
        "torch.ones(2, 3)",
        "torch.zeros(0, 4)",
        "torch.tensor(3)",
        "torch.arange(10.)[2:7:2]",
        "torch.ones(1, 3).expand(9, 3)",
    ),
    *("torch.arange(12.).view(3, 4).t()", "torch.tensor([True])", "torch.ones(2).half()", "torch.ones(2).bfloat16()"),
    *("torch.ones(2, dtype=torch.complex64).conj()", "torch.ones(2, dtype=torch.complex128).conj().imag"),
    *(
        "torch._neg_view(torch.ones(3))",
        "torch.ones(2, dtype=torch.complex64)",
        "torch.zeros(2, dtype=torch.complex32)",
    ),
    *(
        "torch.eye(3).to_sparse()",
        "torch.eye(3).to_sparse_csr()",
        "torch.ones(2, 3, 4).to_sparse(1)",
        "torch.ones(2).to_sparse()",
    ),
    *(
        "torch.ones(3, device='meta')",
        "torch.ones(2, dtype=torch.uint8)",
        "torch.zeros(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)",
    ),
    *(
        f"torch.zeros(4, dtype=torch.uint8).view(getattr(torch, {name!r}, torch.uint8))"
        for name in ("int4", "uint4", "uint2", "float4_e2m1fn_x2", "bits8", "float8_e8m0fnu")
    ),
    *(
        "torch.zeros(4).to(getattr(torch, 'float8_e4m3fn', torch.half))",
        "torch.zeros(4, dtype=getattr(torch, 'uint16', torch.int16))",
    ),
    *("torch.quantize_per_tensor(torch.ones(3), 0.1, 2, torch.quint8)", "torch.ones(6).unfold(0, 3, 1)", "None"),
    "torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.long), 0, torch.qint8)",
    "torch.quantize_per_channel(torch.ones(4, 4), torch.ones(4), torch.zeros(4), 0, torch.quint4x2)",
)
NAMES = (
    *(
        "w",
        "weight2",
        "bias_",
        "größe",
        "вес",
        "层",
        "a b",
        "a-b",
        "1x",
        "0",
        "x:y",
        "%",
        "π",
        "type_",
        "data_",
        "__w",
        "W",
    ),
    *(
        "from",
        "lambda",
        "try",
        "async",
        "yield",
        "nonlocal",
        "inf",
        "ops",
        "self",
        "Tensor",
        "match",
        "CONSTANTS",
        "device_",
    ),
)
CALLED = tuple(name for name in NAMES if name.isascii())
"""Code that reads an attribute with another name is refused by every release."""
RARE_NAMES = (
    *("in", "is", "not", "or", "pass", "None", "for", "del", "global", "NoneType", "class", "with", "as", "import"),
    *('q"u', "b\\n", "torch", "sorted", "range", "getattr", "fork", "print", "int", "annotate"),
)
CHILDREN = (
    *(
        "torch.nn.Linear(3, 3)",
        "torch.nn.ReLU()",
        "torch.nn.Conv2d(3, 3, 1)",
        "torch.nn.BatchNorm1d(3)",
        "torch.nn.Identity()",
    ),
    *("torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU())", "torch.nn.LayerNorm(3)", "torch.nn.Dropout(0.1)"),
    *(
        "torch.nn.Embedding(5, 3)",
        "torch.nn.GRUCell(3, 3)",
        "torch.nn.MultiheadAttention(4, 2)",
        "torch.nn.LSTM(3, 3)",
        "Leaf()",
    ),
    *(
        "torch.nn.Upsample(scale_factor=2.0)",
        "torch.nn.PReLU()",
        "torch.nn.Softmax(dim=-1)",
        "torch.nn.TransformerEncoderLayer(4, 2)",
    ),
)
FOLDERS = ("models", "pkg.models", "my-models", "a-b.c", "__main__x", "pkg.lambda.m", "m1", "_m")
RARE_FOLDERS = ("in.m", "pkg.2models", "pkg.größe", "pkg.phi-1_5", "my models", "pkg.global")
RARE = 0.06
VALUES: Mapping[str, Sequence[str]] = {
    "int": ("1", "-3", "2**40"),
    "str": ("'r'", "'ä'", "''", "'a b'", "'a#b'", "'x'", "'y'", "'z'", "'a\\\\d'"),
    "float": ("1.5", "2.0", "-1e-30", "0.25", "3.5", "1e10", "float('inf')"),
}
FINALS = (
    "3",
    "0.5",
    "'a'",
    "'Grüße'",
    "True",
    "[1, 2]",
    "(1, 'a')",
    "(1.5, [2])",
    "['é']",
    "[1.0]",
    "-1",
    "()",
    "float('nan')",
)
DEFAULTS = (
    *(
        "n: int = 2",
        "n: int = -1",
        "pair: Tuple[int, int] = (1, 2)",
        "s: str = 'é'",
        "s: str = 'a\"b'",
        "c: complex = 3-1j",
    ),
    *("f: float = float('inf')", "o: Optional[Tensor] = None", "o: Optional[int] = 3", "b: bool = False"),
    *(
        "d: torch.device = torch.device('cpu')",
        "k: Optional[str] = 'x'",
        "q: Union[int, str] = 1",
        "a: Any = 1",
        "e: Kind = Kind.RED",
    ),
)


@dataclass
class _Writer:
    """Draws a text; ``scope`` has the variables that are there, by their type."""

    chance: random.Random
    scope: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def fresh(self, type_: str) -> str:
        self.count += 1
        name = self.chance.choice(("v", "y", "out", "h_", "tmp", "é")) + str(self.count)
        self.scope.setdefault(type_, []).append(name)
        return name

    def expression(self, type_: str, depth: int = DEPTH) -> str:
        known = self.scope.get(type_, ())
        if known and self.chance.random() < 0.4:
            return self.chance.choice(known)
        forms = EXPRESSIONS[type_]
        return self.filled(self.chance.choice(forms) if depth else forms[0], depth - 1)

    def filled(self, form: str, depth: int = DEPTH) -> str:
        return PLACE.sub(lambda match: _bracketed(self.expression(match[1], max(depth, 0))), form)

    def block(self, indent: str, depth: int = 0) -> list[str]:
        lines = []
        for _ in range(self.chance.randint(1, 4 if depth else 6)):
            kind = self.chance.random()
            if kind < 0.25 and depth < DEPTH:
                lines += self.compound(indent, depth)
            elif kind < 0.4:
                lines.append(indent + self.filled(self.chance.choice(STATEMENTS)))
            else:
                lines.append(indent + self.assignment())
        return lines

    def compound(self, indent: str, depth: int) -> list[str]:
        lines = []
        for head in self.chance.choice(BLOCKS):
            before = {type_: list(names) for type_, names in self.scope.items()}
            head = self.filled(head)  # before its own variables are there
            head = re.sub(r"\{(\w+)\}", lambda match: self.fresh(match[1]), head)
            lines.append(indent + head)
            lines += self.block(indent + "    ", depth + 1)
            if head.startswith(("for", "while")) and self.chance.random() < 0.3:
                lines.append(f"{indent}    {self.chance.choice(('break', 'continue'))}")
            if not head.startswith("with"):
                self.scope = before
        return lines

    def assignment(self) -> str:
        type_ = self.chance.choice(tuple(TYPES))
        value = self.expression(type_)
        known = self.scope.get(type_, ())
        if known and self.chance.random() < 0.3:
            return f"{self.chance.choice(known)} = {value}"
        return f"{self.fresh(type_)}: {TYPES[type_]} = {value}"

    def body(self, returned: str) -> list[str]:
        """Return the lines of a method that returns a value of a type; a return may stand in a branch too."""
        self.scope = {}
        lines = self.block("        ")
        if self.chance.random() < 0.2:
            lines += [f"        if {self.expression('bool')}:", f"            return {self.expression(returned)}"]
            lines += self.block("        ")
        return [*lines, f"        return {self.expression(returned)}"]


def _bracketed(text: str) -> str:
    return text if re.fullmatch(r"\w+|\[.*\]|\{[^{}]*\}|'[^']*'", text) else f"({text})"


def module_source(chance: random.Random) -> str:
    """Return the source of a module; ``chance`` draws it."""
    writer = _Writer(chance)
    value = chance.choice(tuple(VALUES))
    members = [
        f"    {name} = {chance.choice(VALUES[value])}" for name in ("RED", "GREEN", "BLUE")[: chance.randint(1, 3)]
    ]
    first = chance.choice(("self", "self", "this", "_", "me"))
    top = [
        "class Kind(enum.Enum):",
        *dict.fromkeys(members),
        "class Point(NamedTuple):\n    px: Tensor\n    py: int",
        "class Item:\n    def __init__(self, size: int):\n        self.size = size\n        self.names = ['a']",
        "    def grown(this, by: int = 1) -> int:\n        this.size += by\n        return this.size",
        "    def __lt__(self, other: 'Item') -> bool:\n        return self.size < other.size",
        "class Manager:\n    def __init__(self, depth: int = 0):\n        self.depth = depth",
        "    def __enter__(self) -> int:\n        self.depth += 1\n        return self.depth",
        "    def __exit__(self, type: Any, value: Any, trace: Any) -> None:\n        self.depth -= 1",
        "@torch.jit.interface\nclass Part(torch.nn.Module):\n    def forward(self, x: Tensor) -> Tensor:\n        pass",
        "class Leaf(torch.nn.Module):\n    def forward(self, x: Tensor) -> Tensor:\n        return x * 2",
        "def twice(x: Tensor, times: int = 2) -> Tensor:\n    return x * times",
        "class Net(torch.nn.Module):",
    ]
    init, extra, methods = [], [], []
    uses: list[tuple[float, str]] = [
        (
            0.3,
            "        k: Kind = Kind.RED\n        if k == Kind.RED:\n            x = x + 1\n        print(k.name, k.value, [e for e in Kind])",
        ),
        (
            0.2,
            "        p = Point(x, 1)\n        x = p.px * p.py\n        q: List[Point] = [p, Point(x, n)]\n        x = x + q[0].px",
        ),
        (
            0.2,
            "        item = Item(3)\n        x = x * item.grown(n) + len(item.names)\n        items = sorted([item, Item(1)])",
        ),
        (
            0.2,
            "        with Manager(1) as level:\n            x = x + level\n            with Manager():\n                x = x * 2",
        ),
        (
            0.3,
            "        waiting = torch.jit.fork(twice, x, 3)\n        others: List[torch.jit.Future[Tensor]] = [waiting]\n        x = torch.jit.wait(others[0])",
        ),
        (0.2, "        values: List[float] = x.tolist()\n        shown: List[List[int]] = x.tolist()"),
        (
            0.2,
            "        u: Union[int, str, Tensor] = x\n        if isinstance(u, Tensor):\n            x = u + 1\n        elif isinstance(u, int):\n            x = x + u",
        ),
        (
            0.2,
            "        m: Optional[Tensor] = x if n > 2 else None\n        if m is not None:\n            x = m + 1\n        assert m is not None",
        ),
        (0.15, "        if n > 9:\n            raise ValueError('too many: {}'.format(n))"),
        (0.15, "        a, b = torch.max(x, dim=0)\n        (c, (d, e)) = (a, (b, n))\n        x = c + d + e"),
        (0.15, "        t3 = (1, 'a', 0.5)\n        t2 = t3[1:]\n        print(t2)"),
        (
            0.15,
            "        anything: Any = x\n        x = torch.jit._unwrap_optional(torch.jit.annotate(Optional[Tensor], x))",
        ),
        (
            0.1,
            "        dd: Dict[str, Dict[str, List[int]]] = {'a': {'b': [1]}}\n        dd['a']['c'] = [n]\n        dd.pop('a')",
        ),
        (
            0.1,
            "        s1 = set()"
            if chance.random() < 0.05
            else "        z = [[1, 2], [3]]\n        z[0][1] = n\n        del z[0]",
        ),
    ]
    for index in range(chance.randint(0, 3)):
        name = _name(chance) + chance.choice(("", "", str(index)))
        init.append(f"        self.register_buffer({name!r}, {chance.choice(BUFFERS)})")
    if chance.random() < 0.3:
        init.append(f"        self.register_parameter({_name(chance) + '_p'!r}, torch.nn.Parameter(torch.ones(2)))")
    if chance.random() < 0.4:
        names = dict.fromkeys(_name(chance, CALLED) + chance.choice(("", "_k")) for _ in range(chance.randint(1, 3)))
        parts = ", ".join(f"{name!r}: {chance.choice(CHILDREN[:5])}" for name in names)
        init.append(f"        self.parts = torch.nn.ModuleDict({{{parts}}})")
        extra += ["        for key, part in self.parts.items():", "            x = part(x)"]
    if chance.random() < 0.4:
        init.append(
            f"        self.stages = torch.nn.ModuleList([{', '.join(chance.choice(CHILDREN[:5]) for _ in range(2))}])"
        )
        extra += ["        for stage in self.stages:", "            x = stage(x)"]
        if chance.random() < 0.4:
            init[-1] = "        self.stages = torch.nn.ModuleList([Leaf(), Leaf()])"
            extra += ["        chosen: Part = self.stages[n]", "        x = chosen.forward(x)"]
    if chance.random() < 0.5:
        init.append(f"        self.child = {chance.choice(CHILDREN)}")
    if chance.random() < 0.3:
        init.append("        self.kind = Kind.RED\n        self.kinds = [Kind.RED]")
        extra.append("        if self.kind == Kind.RED:\n            x = x * len(self.kinds)")
    if chance.random() < 0.4:
        init.append(
            "        self.table = {'ключ': 1, 'b': 2}\n        self.z = 1 - 2j\n        self.pairs = [(1, 'é')]\n        self.item = Item(2)"
        )
        extra.append("        x = x * self.table['b'] * self.z + self.pairs[0][0]\n        self.table['c'] = n")
    if chance.random() < 0.5:
        init.append(f"        self.fixed = {chance.choice(FINALS)}")
        top.append("    __constants__ = ['fixed']")
        extra.append("        print(self.fixed)")
    extra += [text for share, text in uses if chance.random() < share]
    arguments = ", ".join([f"{first}", "x: Tensor", *_defaults(chance)])
    for index in range(chance.choice((0, 0, 1, 2))):
        type_ = chance.choice(tuple(TYPES))
        own = chance.choice(("self", "that", "_s"))
        body = "\n".join(writer.body(type_)).replace("self.", f"{own}.")
        named = ("größe",) if chance.random() < RARE else ("answer", "reset", "inf", "print", "lookup", "sorted", "ops")
        name = chance.choice(named) + str(index or "")
        methods += ["    @torch.jit.export", f"    def {name}({own}, x: Tensor, n: int = 1) -> {TYPES[type_]}:", body]
    type_ = chance.choice(("Tensor", "Tensor", "Tensor", *TYPES))
    body = "\n".join([*extra, *writer.body(type_)]).replace("self.", f"{first}.")
    lines = [
        f"# {chance.choice(RARE_FOLDERS if chance.random() < RARE else FOLDERS)} {chance.choice(('script', 'script', 'script', 'freeze'))}",
        HEAD,
        *top,
        "    def __init__(self):\n        super().__init__()",
        *init,
        f"    def forward({arguments}) -> {TYPES[type_]}:",
        body,
        *methods,
    ]
    return "\n".join(lines) + "\n"


def _name(chance: random.Random, names: Sequence[str] = NAMES) -> str:
    return chance.choice(RARE_NAMES if chance.random() < RARE else names)


def _defaults(chance: random.Random) -> list[str]:
    found = {text.partition(":")[0]: text for text in chance.sample(DEFAULTS, chance.randint(0, 3))}
    return [*({"n": "n: int = 2"} | found).values()]
