"""Verbs ``run_program`` and ``run_package``: do a script, as ``run`` does, with .pt2 files or packages as models."""

import contextlib

import torch

from gate_worker.run import script, serving
from gate_worker.successor import packaging

with contextlib.suppress(ImportError):  # seconds, which are no part of loading; a release that has it not says so there
    import torch._export.serde.serialize


class Program(serving.ServedModel):
    """A .pt2 with recorded inputs; of its methods there is ``forward`` alone."""

    def load(self):
        self.stable_answer = serving.StableAnswer()
        self._module = torch.export.load(self._artifact["path"]).module()

    def _method(self, name):
        if name != "forward":
            raise AttributeError("an exported program has no method %r" % name)
        return self._module


class Package(Program):
    """A package of AOTInductor."""

    def load(self):
        from torch import _inductor

        self.stable_answer = serving.StableAnswer()
        self._module = _inductor.aoti_load_package(self._artifact["path"])


def run_program(request, run_dir, log):
    script.run(request, run_dir, log, Program)


def run_package(request, run_dir, log):
    packaging.keep_within(run_dir)
    script.run(request, run_dir, log, Package)
