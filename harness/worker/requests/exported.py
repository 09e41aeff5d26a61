"""Takes over a .pt2, an exported program or a package of AOTInductor: it has ``forward`` alone, and no schema."""

import contextlib

import torch

from gate_worker.requests.adopting import Adoption
from gate_worker.requests.values import BadInputs, first_line, for_each, kept

with contextlib.suppress(ImportError):  # seconds, which are no part of loading; a release that has it not says so there
    import torch._export.serde.serialize


class ProgramAdoption(Adoption):
    """Requests that nobody gives are those of the program's own example."""

    what = "an exported program"

    def _load(self, where):
        return torch.export.load(self._given["path"])

    def _signature(self, method):
        return None

    def _check_names(self):
        others = [name for name in self._methods if name != "forward"]
        if others or self._reset:
            name = others[0] if others else self._reset
            raise BadInputs("%s has no method %r: %s has forward alone" % (self._given["path"], name, self.what))

    def _check_calls(self):
        for call in self._calls:
            if call.method != "forward":
                where = self._given["inputs"] or "requests of %s" % self._name
                text = "%s: input set %r calls %r, and %s has forward alone"
                raise BadInputs(text % (where, call.set_name, call.method, self.what))

    def _infer(self):
        try:
            example = self._module.example_inputs
        except Exception as error:  # not every release has kept it, nor reads what another one kept
            self._mark("its own example cannot be read: %s" % first_line(error))
            return
        if not example:
            self._mark("it holds no example inputs: give requests")
            return
        arguments, named = example
        if named:
            self._mark("its own example names arguments, and requests give them by position: give requests")
            return
        try:
            arguments = kept(tuple(arguments), "its own example")
        except BadInputs as error:
            self._mark(str(error))
            return
        self._write(for_each("example", self._methods, arguments))
        self._mark("its own example inputs")

    def _serve(self, requests):
        self._mark("inputs of a server's configuration are bound to arguments of TorchScript alone: give requests")


class PackageAdoption(ProgramAdoption):
    """A package tells nothing of its arguments."""

    what = "a package of AOTInductor"

    def _load(self, where):
        from torch._inductor import package

        return package.load_package(self._given["path"])

    def _infer(self):
        self._mark("nothing can be guessed of a package of AOTInductor: give requests")


ADOPTIONS = {"program": ProgramAdoption, "package": PackageAdoption}
