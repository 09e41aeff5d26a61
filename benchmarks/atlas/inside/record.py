"""Records calls of operators in TorchScript's form from the samples that torch tests its own operators with.

``PYTHON record.py [PREFIX]`` writes a line of JSON per call to stdout: samples of ``op_db`` are traced, and the nodes of
the trace run one by one, so that each has its overload and the arguments it got.
"""

import functools
import json
import os
import sys
import warnings
from itertools import islice

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from answer import overload
from torch.testing._internal.common_methods_invocations import op_db
from values import encode

SAMPLES = {
    torch.float32: 16,
    torch.int64: 4,
    torch.bool: 3,
    torch.uint8: 3,
    torch.complex64: 4,
    torch.float64: 2,
    torch.bfloat16: 2,
    torch.float16: 2,
}
ELEMENTS = 500
"""Most elements of the tensors of one call."""
LEFT_OUT = (
    "empty",
    "new_empty",
    "resize",
    "as_strided",
    "set_",
    "data",
    "is_",
    "to_sparse",
    "_empty",
    "_reshape_alias",
)
SCALARS = {"Tensor": "Scalar", "Tensor_Tensor": "Tensor_Scalar"}
"""Overloads of which one is recorded, and the other is what scripted code has for a number."""


def seeds():
    """Yield calls of what ``op_db`` has not, or a trace has by another name: (overload, arguments, keywords)."""
    x = torch.randn
    yield "aten::conv1d", [x(1, 2, 5), x(3, 2, 3), x(3), [1], [1], [1], 1], {}
    yield "aten::conv2d", [x(1, 2, 5, 4), x(3, 2, 3, 3), x(3), [1, 1], [1, 1], [1, 1], 1], {}
    yield "aten::conv2d", [x(2, 2, 5, 4), x(4, 1, 3, 2), None, [2, 2], [0, 0], [1, 1], 2], {}
    yield "aten::conv3d", [x(1, 2, 3, 3, 3), x(2, 2, 2, 2, 2), x(2), [1, 1, 1], [0, 0, 0], [1, 1, 1], 1], {}
    yield "aten::conv_transpose2d.input", [x(1, 2, 3, 3), x(2, 3, 2, 2), x(3), [2, 2], [0, 0], [0, 0], 1, [1, 1]], {}
    masks = [None, torch.tensor([[True, False], [False, False]]), torch.tensor([[0.0, -torch.inf], [-torch.inf] * 2])]
    for mask in masks:
        yield "aten::scaled_dot_product_attention", [x(1, 2, 2, 4), x(1, 2, 2, 4), x(1, 2, 2, 4), mask, 0.0, False], {}
    yield "aten::scaled_dot_product_attention", [x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), None, 0.0, True], {}
    for name, gates, state in (
        ("lstm", 4, [x(1, 2, 3), x(1, 2, 3)]),
        ("gru", 3, x(1, 2, 3)),
        ("rnn_tanh", 1, x(1, 2, 3)),
    ):
        weights = [x(gates * 3, 2), x(gates * 3, 3), x(gates * 3), x(gates * 3)]
        yield f"aten::{name}.input", [x(2, 2, 2), state, weights, True, 1, 0.0, False, False, True], {}
    for end in (2.5, 3.0, 0.5):
        for dtype in (None, 4, 6):
            yield "aten::arange", [end], {"dtype": dtype, "layout": None, "device": None, "pin_memory": None}
    yield "aten::randperm", [6], {"dtype": None, "layout": None, "device": None, "pin_memory": None}
    for overload, arguments in (
        ("round", []),
        ("bernoulli", []),
        ("bernoulli.p", [0.3]),
        ("rand_like", []),
        ("randn_like", []),
    ):
        yield f"aten::{overload}", [torch.rand(6), *arguments], {}


def written(name, arguments, keywords):
    """Yield a call as data, and the same with a number in place of its second tensor where there is such an overload."""
    call = {
        "operator": name,
        "arguments": encode(arguments, stored=True),
        "keywords": {key: encode(item, stored=True) for key, item in keywords.items()},
    }
    yield call
    operator, _, which = name.partition(".")
    scalar = f"{operator}.{SCALARS.get(which)}"
    if scalar in overloads() and isinstance(arguments[1], torch.Tensor) and arguments[1].numel():
        first = encode(arguments[1].flatten()[0].item())
        yield {**call, "operator": scalar, "arguments": [call["arguments"][0], first, *call["arguments"][2:]]}


@functools.lru_cache(maxsize=None)
def overloads():
    schemas = torch._C._jit_get_all_schemas()
    return {schema.name + ("." + schema.overload_name if schema.overload_name else "") for schema in schemas}


def traced(operator, sample):
    """Return the graph of one sample, with the tensors that it takes."""
    tensors = []

    def lifted(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value.detach())
            place = len(tensors) - 1
            return lambda given: given[place]
        if isinstance(value, (list, tuple)):
            made = [lifted(item) for item in value]
            kind = type(value) if type(value) in (list, tuple) else tuple
            return lambda given: kind(item(given) for item in made)
        return lambda given: value

    first, arguments = lifted(sample.input), lifted(list(sample.args))
    keywords = {name: lifted(value) for name, value in sample.kwargs.items()}

    def function(*given):
        answer = operator(first(given), *arguments(given), **{name: item(given) for name, item in keywords.items()})
        outputs = answer if isinstance(answer, (list, tuple)) else [answer]
        return tuple(item for item in outputs if isinstance(item, torch.Tensor))

    return torch.jit.trace(function, tuple(tensors), check_trace=False).inlined_graph, tensors


def nodes(graph, tensors):
    """Run a trace and yield the calls of operators in it, as data."""
    known = dict(zip((item.unique() for item in graph.inputs()), tensors))
    for node in graph.nodes():
        kind = node.kind()
        given = [known[item.unique()] for item in node.inputs()]
        outputs = list(node.outputs())
        if kind == "prim::Constant":
            answers = [node.output().toIValue()]
        elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            answers = [given]
        elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            answers = list(given[0])
        elif kind == "prim::NumToTensor":
            answers = [torch.tensor(given[0])]
        elif kind in ("aten::Int", "aten::Float", "aten::Bool", "aten::ScalarImplicit"):
            answers = [given[0].item() if isinstance(given[0], torch.Tensor) else given[0]]
        elif kind.startswith("aten::"):
            schema = torch._C.parse_schema(node.schema())
            name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
            places = [item for item in schema.arguments if not item.kwarg_only]
            positional = given[: len(places)]
            keywords = {item.name: value for item, value in zip(schema.arguments[len(places) :], given[len(places) :])}
            yield from written(name, positional, keywords)
            answer = overload(name)(*positional, **keywords)
            answers = list(answer) if len(outputs) > 1 else [answer]
        else:
            return
        known.update((item.unique(), value) for item, value in zip(outputs, answers))


def elements(value):
    if isinstance(value, dict):
        return len(value.get("values", ()))
    return sum(map(elements, value)) if isinstance(value, list) else 0


def main():
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    seen = set()

    def write(call):
        line = json.dumps(call, sort_keys=True)
        left = call["operator"].partition("::")[2].startswith(LEFT_OUT)
        if line not in seen and not left and elements([*call["arguments"], *call["keywords"].values()]) <= ELEMENTS:
            seen.add(line)
            pipe.write(line + "\n")

    torch.manual_seed(0)
    for seed in seeds() if not prefix else ():
        for call in written(*seed):
            write(call)
    for operator in op_db:
        if not operator.name.startswith(prefix):
            continue
        forms = [form for form in (operator.op, operator.inplace_variant) if form is not None]
        for dtype, most in SAMPLES.items():
            if dtype not in operator.dtypes:
                continue
            for form in forms:
                torch.manual_seed(0)
                try:
                    samples = list(islice(operator.sample_inputs("cpu", dtype, requires_grad=False), most))
                except Exception:
                    continue
                for sample in samples:
                    try:
                        for call in nodes(*traced(form, sample)):
                            write(call)
                    except Exception:  # a sample that cannot be traced is left out
                        continue


if __name__ == "__main__":
    main()
