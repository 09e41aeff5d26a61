"""A reproducer's case as a few lines of Python that need no file, where the program is plain code on plain values."""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.schemas import parse_schema
from harness.artifacts.tensors.decode import STORED, Buffer
from harness.serving.settings.paste_lines import python_of
from harness.serving.settings.table import TABLE, Code

# Longer tensors are drawn instead: whether the failure still shows then, a run of the snippet tells.
MOST_LITERAL = 32
FORWARD = re.compile(r"^  def forward\(self: [\w.]+(?:,\s*|(?=\)))", re.MULTILINE)
# What only the archive has: attributes, constants, its own classes and functions.
ELSEWHERE = re.compile(r"\bself\b|\bCONSTANTS\b|__torch__")
DRAWN = ("float16", "bfloat16", "float32", "float64")
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
TEMPLATE = """\
import torch

print("torch", torch.__version__, flush=True)
{settings}

program = torch.jit.CompilationUnit('''
{code}
''')
torch.manual_seed(0)
arguments = ({arguments})
with {guards}:
    for call in range({calls}):
        print(call, program.forward(*arguments), flush=True)
"""


OPERATOR = """\
import torch

print("torch", torch.__version__, flush=True)
{settings}
torch.manual_seed(0)
with {guards}:
    print(torch.ops.{operator}({arguments}))
"""


class _CannotBeWritten(Exception):
    """Part of the case has no short way of writing it."""


def snippet(code: str, case: Mapping[str, Any], data: Buffer) -> str:
    """Return the program, empty if it needs the archive; ``code``: of that, ``data``: bytes of ``case``'s trees."""
    begin = FORWARD.search(code)
    if begin is None or len(FORWARD.findall(code)) > 1 or len(case["requests"]) != 1 or case["reset"]:
        return ""
    (request,) = case["requests"]
    body = textwrap.dedent("  def forward(" + code[begin.end() :].rstrip())
    if request["method"] != "forward" or ELSEWHERE.search(body) or "\nclass " in body or "'''" in body or "\\" in body:
        return ""
    try:
        profile = case["profiles"]["new"]
        return TEMPLATE.format(
            settings="\n".join(_settings(profile)),
            code=body,
            arguments="".join(f"\n    {_written(tree, data)}," for tree in request["arguments"][1]) + "\n",
            guards=", ".join(["torch.no_grad()", *_guards(profile)]),
            calls=request["calls"],
        )
    except _CannotBeWritten:
        return ""


def operator_snippet(case: Mapping[str, Any], data: Buffer) -> str:
    """Return the program of an operator's case; empty where an input has no short way of writing it."""
    try:
        name, schema = parse_schema(case["schema"])
        if len(schema.parameters) != len(case["inputs"]):
            return ""
        if not all(parameter.name.isidentifier() for parameter in schema.parameters):
            return ""  # a text that would be code here
        profile = case["profiles"]["new"]
        written = [
            f"{parameter.name}={_written(tree, data)}" if parameter.keyword_only else _written(tree, data)
            for parameter, tree in zip(schema.parameters, case["inputs"], strict=True)
        ]
        return OPERATOR.format(
            settings="\n".join(_settings(profile)),
            guards=", ".join(["torch.no_grad()", *_guards(profile)]),
            operator=f"{name.replace('::', '.')}.{schema.overload or 'default'}",
            arguments="".join(f"\n        {text}," for text in written) + "\n    ",
        )
    except (CannotRead, _CannotBeWritten):
        return ""


def _settings(profile: Mapping[str, Any]) -> Iterator[str]:
    if profile["numerics"] or profile["env"] or profile["libraries"]:
        raise _CannotBeWritten
    yield f"torch.set_num_threads({profile['intra_op_threads']})"
    for code in _codes(profile):
        if code.loaded:
            raise _CannotBeWritten
        yield from code.start


def _guards(profile: Mapping[str, Any]) -> Iterator[str]:
    return (guard for code in _codes(profile) for guard in code.guards)


def _codes(profile: Mapping[str, Any]) -> Iterator[Code]:
    for name, value in profile["switches"].items():
        code = python_of(TABLE[name], value) if name in TABLE else None
        if code is None:
            raise _CannotBeWritten
        yield code


def _written(tree: Any, data: Buffer) -> str:
    kind, content = tree
    if kind == "tensor":
        return _tensor(content, data)
    if kind in ("tuple", "list"):
        items = "".join(f"{_written(item, data)}, " for item in content)
        return f"({items})" if kind == "tuple" else f"[{items.rstrip(', ')}]"
    if kind == "float" and math.isfinite(float(content)):
        return str(content)
    if kind in ("none", "bool", "int", "str"):
        return repr(content)
    raise _CannotBeWritten


def _tensor(spec: Mapping[str, Any], data: Buffer) -> str:
    dtype, shape = spec["dtype"], spec["shape"]
    if "quantizer" in spec or "layout" in spec or spec["device"] != "cpu" or dtype not in (*DRAWN, *WHOLE):
        raise _CannotBeWritten
    dense = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if math.prod(shape) and any(
        mine != its for mine, its, size in zip(spec["stride"], dense, shape, strict=True) if size > 1
    ):
        raise _CannotBeWritten
    if math.prod(shape) > MOST_LITERAL:
        if dtype == "uint8":
            return f"torch.randint(0, 256, {shape}).to(torch.uint8)"
        if dtype not in DRAWN:
            raise _CannotBeWritten
        return f"torch.randn({shape}).to(torch.{dtype})"
    if dtype == "bfloat16":
        raise _CannotBeWritten
    stored = np.frombuffer(data, STORED[dtype], math.prod(shape), spec["offset"]).reshape(shape)
    if not np.isfinite(stored).all():
        raise _CannotBeWritten
    values = stored.astype(bool) if dtype == "bool" else stored
    shaped = "" if math.prod(shape) else f".reshape({shape})"
    return f"torch.tensor({_nested(values)}, dtype=torch.{dtype}){shaped}"


def _nested(values: Any) -> str:
    """Return nested brackets; each number in the fewest digits that mean it."""
    if values.ndim == 0:
        return str(values[()])
    return f"[{', '.join(_nested(item) for item in values)}]"
