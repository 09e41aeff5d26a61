# mypy: ignore-errors
"""Spoils torch for ``test_mitigate.py``."""

import math
import threading
import time

_kept = []
# Enough for every thread that starts from the same barrier to meet the others, whoever of them loads first. On a loaded
# machine each short sleep lasts as much longer as the others need to come.
CALL_SLEEPS, SLEEP_S = 50, 0.001
LOAD_S = 0.01


class Crowd:
    """How many are in it; ``begun``: how many ever were."""

    def __init__(self):
        self.inside = self.begun = 0
        self._lock = threading.Lock()

    def __enter__(self):
        with self._lock:
            self.inside += 1
            self.begun += 1
            return self.begun

    def __exit__(self, *_):
        with self._lock:
            self.inside -= 1


def plant():
    import torch

    library = torch.library.Library("aten", "IMPL")
    _kept.append(library)
    calls, loads = Crowd(), Crowd()

    def needs_two(x):
        if torch._C._get_mkldnn_enabled() or not torch.are_deterministic_algorithms_enabled():
            raise RuntimeError("it wants no oneDNN and deterministic algorithms")
        return x.clone().apply_(math.log1p)

    def alone_among(answer, *crowds):
        def kernel(x):
            with calls:
                for _ in range(CALL_SLEEPS):
                    if sum(crowd.inside for crowd in crowds) > 1:
                        raise RuntimeError("somebody else is at work")
                    time.sleep(SLEEP_S)
                return x.clone().apply_(answer)

        return kernel

    kernels = {
        "log1p": needs_two,
        "cosh": lambda x: torch.exp(x),
        "lgamma": alone_among(math.lgamma, calls),
        "expm1": alone_among(math.expm1, calls, loads),
    }
    for name, kernel in kernels.items():
        library.impl(name, kernel, "CPU")
    load = torch.jit.load

    def loading(*arguments, **options):
        with loads as number:
            time.sleep(LOAD_S * number)  # so they end one after the other
            return load(*arguments, **options)

    torch.jit.load = loading
