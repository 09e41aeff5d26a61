"""Answers calls of operators in one release: a line of JSON with calls on stdin, a line with the answer of each on stdout.

``PYTHON answer.py THREADS``. A call may end this process or never return: whoever asks reads that from the pipe.
"""

import json
import os
import resource
import signal
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from values import NotData, TooLarge, decode, encode

CPU_S = 2.0
MEMORY = 5 << 30
LISTS = (list, tuple)


def tensors_of(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, LISTS):
            yield from tensors_of(value)


def overload(name):
    """Return the overload ``aten::add.Tensor``, and whether it draws random numbers."""
    operator, _, which = name.partition("::")[2].partition(".")
    return getattr(getattr(torch.ops.aten, operator), which or "default")


def called(call):
    try:
        function = overload(call["operator"])
    except (AttributeError, RuntimeError):
        return {"missing": True}
    arguments, keywords = decode(call["arguments"]), {name: decode(item) for name, item in call["keywords"].items()}
    given = list(tensors_of([*arguments, *keywords.values()]))
    changing = given if function._schema.is_mutable else []
    return answered(lambda: function(*arguments, **keywords), given, changing)


def answered(ask, given=(), changing=()):
    """Return the answer of ``ask`` as data: of the tensors ``given``, which it shares, and what ``changing`` ones become."""
    torch.manual_seed(0)
    start = torch.get_rng_state()
    signal.setitimer(signal.ITIMER_PROF, CPU_S)  # its signal ends the process
    try:
        answer = ask()
    except Exception as error:  # whatever an operator raises is its answer
        return {"error": type(error).__name__, "text": str(error).strip().partition("\n")[0][:200]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    outputs = list(answer) if isinstance(answer, LISTS) else [answer]
    try:
        places = {item.untyped_storage().data_ptr(): place for place, item in reversed(list(enumerate(given)))}
        places.pop(0, None)  # of a storage without bytes
        aliases = [places.get(item.untyped_storage().data_ptr()) for item in tensors_of(outputs)]
        drawn = not torch.equal(start, torch.get_rng_state())
        return {"outputs": encode(outputs), "aliases": aliases, "changed": encode(list(changing)), "drawn": drawn}
    except (NotData, TooLarge, NotImplementedError) as error:
        return {"unwritten": type(error).__name__}


def main():
    threads = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what C++ prints is no answer
    pipe.write(json.dumps({"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability()}) + "\n")
    pipe.flush()
    for line in sys.stdin:
        for call in json.loads(line):
            pipe.write(json.dumps(called(call)) + "\n")
            pipe.flush()


if __name__ == "__main__":
    main()
