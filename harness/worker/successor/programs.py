"""Exported programs (.pt2) and packages of AOTInductor as served models."""

import contextlib
import threading

import torch

from gate_worker import wire
from gate_worker.run import serving

with contextlib.suppress(ImportError):  # seconds, which are no part of loading; a release that has it not says so there
    import torch._export.serde.serialize


# torch.export.load keeps its deserializer in a global and asserts that there is no other: no release loads two at once.
LOADING = threading.Lock()


METHODS = ("forward", wire.KEYWORDS_METHOD)


def method(module, name):
    """Return ``module``, or what calls it with the last argument, a dict, as its keyword arguments."""
    return module if name != wire.KEYWORDS_METHOD else lambda *arguments: module(*arguments[:-1], **arguments[-1])


class Program(serving.ServedModel):
    """A .pt2 with recorded inputs; whichever method it was made of, it has that alone."""

    def __init__(self, run, device, request):
        super().__init__(run, device)
        self._runners = request["runners"]

    def load(self):
        self.stable_answer = serving.StableAnswer()
        self._module = self._loaded(self._artifact["path"])

    def _loaded(self, path):
        with LOADING:
            return torch.export.load(path).module()

    def _method(self, name):
        return method(self._module, name)


class Package(Program):
    """A package of AOTInductor."""

    def _loaded(self, path):
        from torch._inductor import package

        if self._runners == 1:
            return package.load_package(path)
        return package.load_package(path, num_runners=self._runners)  # 2.6.0 has no such choice, and says so


KINDS = {"program": Program, "package": Package}
