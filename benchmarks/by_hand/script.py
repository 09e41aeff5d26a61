"""What people write by hand before an upgrade. Run in the old release, then in the new one on the answers of the old.

    python script.py ARTIFACTS ANSWERS [OTHER_ANSWERS]

Loads each artifact, calls it three times with each request, saves the last outputs and compares them with the others',
times 30 calls, then loads and calls everything again from eight threads. Prints one JSON object.
"""

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

torch.set_num_threads(1)  # as it is served


def call(model, request):
    return getattr(model, request["method"])(*request["arguments"])


def load_and_call(path):
    """Return a model, its requests, and what it answers to each when called for the third time."""
    model = torch.jit.load(str(path))
    requests = torch.load(str(path.with_suffix(".inputs.pt")))
    with torch.no_grad():
        return model, requests, {key: [call(model, one) for _ in range(3)][-1] for key, one in requests.items()}


def median_s(model, request):
    times = []
    with torch.no_grad():
        for _ in range(30):
            begin = time.perf_counter()
            call(model, request)
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def equal(one, other):
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and torch.allclose(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(equal(left, right) for left, right in zip(one, other))
    return one == other


def main(artifacts, answers, others=None):
    paths = [path for path in sorted(Path(artifacts).glob("*.pt")) if not path.name.endswith(".inputs.pt")]
    seconds, different = {}, []
    for path in paths:
        model, requests, outputs = load_and_call(path)
        torch.save(outputs, str(Path(answers) / path.name))
        if others is not None and not equal(torch.load(str(Path(others) / path.name)), outputs):
            different.append(path.stem)
        seconds[path.stem] = median_s(model, next(iter(requests.values())))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(load_and_call, paths))
    print(json.dumps({"seconds": seconds, "different": different}))


main(*sys.argv[1:])
