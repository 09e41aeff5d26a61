"""Verbs ``run_program`` and ``run_package``: do a script, as ``run`` does, with .pt2 files or packages as models."""

import contextlib
import os

import torch

from gate_worker import wire
from gate_worker.run import script, serving

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
    work = os.path.join(run_dir, wire.WORK)
    os.environ["TMPDIR"] = work  # where a package is unpacked; 2.6.0 takes /tmp all the same
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(work, "inductor")  # 2.15.0 asks the compiler when it loads one
    script.run(request, run_dir, log, Package)
