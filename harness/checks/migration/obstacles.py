"""What stands in the way of a conversion, by what torch's converter says, and what to write instead. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

NO_CONVERTER = "no converter"
RE_EXPORT = "export the Python module that it was made of: torch.export.export(module, args, dynamic_shapes=...)"
LISTS = "build lists and dicts in one expression, or return their tensors as a tuple"
BRANCHES = (
    "torch.where(condition, a, b) for values, torch.cond for a branch that depends on data; a branch that an"
    " attribute decides: torch.jit.freeze before saving"
)


class Obstacle(NamedTuple):
    """One obstacle: patterns of node kind and error (empty: any), a stable word (else the kind), what to write."""

    node: str
    said: str
    kind: str
    advice: str


# The first that fits counts: what was raised says more than the node at which it was.
OBSTACLES: Sequence[Obstacle] = (
    Obstacle(
        "",
        r"NoConverter",
        NO_CONVERTER,
        "convert in a release that has one: --new 2.6.0 or later; the archive itself stays as it is",
    ),
    Obstacle(
        "",
        r"^SizesDecide",
        "a size that decides",
        "convert in a release whose programs check such sizes: --new 2.15.0",
    ),
    Obstacle(
        "",
        r"^LosesCheck",
        "a check that the converter drops",
        "leave --converter torch out: a graph that is walked keeps it",
    ),
    Obstacle(
        "",
        r"data-dependent|GuardOnDataDependent|unbacked symint|\bu\d+\b",
        "data-dependent size",
        "keep sizes and indices tensors, or bound them with torch._check(...) where they become numbers",
    ),
    Obstacle(
        "",
        r"Unsupported quantized op|PackedParams",
        "quantized operator",
        "export the float module and quantize it with the PT2E flow (torchao)",
    ),
    Obstacle(
        "",
        r"ScriptObject|custom class|TorchBind|torchbind",
        "custom class",
        "export the float module and quantize it with the PT2E flow (torchao), or register a fake class for it",
    ),
    Obstacle(
        "", r"ModuleContainerIndex", "prim::ModuleContainerIndex", "choose the module by a constant, not by a value"
    ),
    Obstacle(
        "",
        r"InvalidTag",
        "value that is no tensor",
        "keep text and other plain values out of the arguments and the attributes of forward",
    ),
    Obstacle("", r"non-empty TensorList|immutable_list", "list built step by step", LISTS),
    Obstacle(r"prim::If", r"", "", BRANCHES),
    Obstacle(
        "", r"(?s)^UncapturedHigherOrderOpError: (Cond |.*torch\.cond)", "prim::If", BRANCHES
    ),  # of torch.cond, which it becomes
    Obstacle(
        r"prim::Loop",
        r"",
        "",
        "one operator over the whole tensor, or a loop whose number of turns is a constant",
    ),
    Obstacle(
        r"prim::RaiseException|aten::__?assert.*|aten::_assert.*",
        r"",
        "",
        "torch._check(condition), or leave the check to the caller",
    ),
    Obstacle(
        r"prim::SetAttr|prim::CallMethod",
        r"",
        "",
        "take the state as an input and return it as an output",
    ),
    Obstacle(
        r"prim::fork|aten::wait|prim::Fork",
        r"",
        "",
        "call the branches one after the other: an exported program has one thread of control",
    ),
    Obstacle(
        r"aten::(append|extend|insert|pop|_set_item|__contains__|keys|values|items|Delete|del)|prim::(Dict|List)\w*",
        r"",
        "",
        LISTS,
    ),
    Obstacle(
        r"aten::(format|strip|split|join|ord|lower|upper|startswith|percentFormat|str)|prim::Print",
        r"",
        "",
        "keep text out of forward: an exported program computes with tensors alone",
    ),
    Obstacle(
        r"prim::(unchecked_cast|isinstance|unchecked_unwrap_optional|Uninitialized)|aten::__is(not)?__",
        r"",
        "",
        "declare arguments without Optional or Union; or torch.jit.trace in place of torch.jit.script",
    ),
    Obstacle("", r"INTERNAL ASSERT|internal assert", "internal assert of torch", RE_EXPORT),
)

OWNER = " of torch's own code"
OF_TORCH = re.compile(r"(^|/)torch/")
TRACED = (
    "torch.jit.trace in place of torch.jit.script: what no request decides is decided then; or export the Python module"
)
# What a release says of an operator that it could not run on the types that the converter has given it.
OPERATOR = re.compile(r"^\w+: ((?:aten|prim)::\w+)\(\) Expected a value of type")


def obstacle(node: str, error: str, source: str = "") -> tuple[str, str]:
    """Return (stable word, what to write instead) of a conversion that failed.

    ``node`` is the kind of the innermost node, empty where it was at none; ``error`` begins with its type; ``source``:
    ``file:line`` of the node.
    """
    if node and OF_TORCH.search(source):
        return f"{node}{OWNER}", TRACED
    operator = OPERATOR.match(error)
    node = node or (operator[1] if operator else "")
    for known in OBSTACLES:
        if re.fullmatch(known.node or ".*", node) and re.search(known.said, error):
            return known.kind or node, known.advice
    return (node or error.partition(":")[0].strip() or "error"), RE_EXPORT


def without_owner(kind: str) -> str:
    """Return a stable word without whose code the node is: a part that is extracted may have lost that."""
    return kind.removesuffix(OWNER)
