"""Runs one operator with recorded inputs and compares its outputs with the recorded ones. Needs torch and nothing else.

    python reproduce.py        exit code 0: as recorded, 1: it does what was found, 125: cannot be tested here

So it can be given to ``git bisect run``; ``--help`` tells the options. ``case.json`` beside it holds the schema, what
went in and what came out, ``tensors.bin`` their bytes.
"""

import os
import sys

from gate_worker.reproduce.endings import failed
from gate_worker.reproduce.process import HERE, main
from gate_worker.reproduce.settings import prepared
from gate_worker.reproduce.values import Comparison, Values
from gate_worker.values.recorded import Opaque


def work(torch, case, order, report):
    """Return how the operator ends; one that this torch does not have, or cannot be given its inputs, is untestable."""
    context = prepared(torch, case, order, report)
    with open(os.path.join(HERE, "tensors.bin"), "rb") as stream:
        values = Values(torch, stream.read(), case["device"])
    call = operator_of(torch, case["schema"])
    inputs = [values.value(tree) for tree in case["inputs"]]
    if any(isinstance(value, Opaque) for value in inputs):
        raise TypeError("one of its inputs cannot be made anew")
    expected = [values.value(tree) for tree in case["outputs"]]
    if case["generator"] is not None:
        torch.set_rng_state(values.value(case["generator"]))
    report.phase(case["operator"])
    try:
        with context:
            outputs = call(inputs)
    except Exception as error:
        return failed(error, "call")
    if len(expected) == 1 or not isinstance(outputs, (tuple, list)):
        outputs = [outputs] if len(expected) == 1 or outputs is not None else []
    comparison = Comparison(torch, case["tolerances"], strides=case["strides"])
    problems = [] if len(outputs) == len(expected) else ["%d outputs, expected %d" % (len(outputs), len(expected))]
    for index, pair in enumerate(zip(outputs, expected)):
        problems += comparison.differences(*pair, "output[%d]" % index)
    return {"what": "values" if problems else "good", "text": "; ".join(problems) or "as recorded"}


def operator_of(torch, schema):
    name, _, overload = schema.partition("(")[0].partition(".")
    namespace, _, base = name.partition("::")
    call = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    arguments = torch._C.parse_schema(schema).arguments
    keywords = [argument.name for argument in arguments if argument.kwarg_only]
    first = len(arguments) - len(keywords)
    return lambda inputs: call(*inputs[:first], **dict(zip(keywords, inputs[first:])))


if __name__ == "__main__":
    sys.exit(main(work))
