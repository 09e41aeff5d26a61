"""Takes over a .pt2, an exported program or a package of AOTInductor: it has ``forward`` alone, and no schema."""

import contextlib
import os

import torch

from gate_worker import wire
from gate_worker.requests import served
from gate_worker.requests.adopting import Adoption
from gate_worker.requests.call_spec import Places
from gate_worker.requests.inferring import Inferrer
from gate_worker.requests.values import BadInputs, Call, first_line, kept
from gate_worker.successor import programs

with contextlib.suppress(ImportError):  # seconds, which are no part of loading; a release that has it not says so there
    import torch._export.serde.serialize

CHECK = "AOTI_RUNTIME_CHECK_INPUTS"
"""With this variable a package that a newer release has compiled refuses shapes and dtypes that are not its own."""


class ProgramAdoption(Adoption):
    """Requests that nobody gives are those of the program's own example."""

    what = "an exported program"

    def _load(self, where):
        return torch.export.load(self._given["path"])

    def _signature(self, method):
        return None

    def _require(self, method, role="method"):
        if method not in programs.METHODS or role != "method":
            text = "%s has no %s %r: %s has forward alone"
            raise BadInputs(text % (self._given["path"], role, method, self.what))

    def _check_calls(self):
        for call in self._calls:
            if call.method not in programs.METHODS:
                where = self._given["inputs"] or "requests of %s" % self._name
                text = "%s: input set %r calls %r, and %s has forward alone"
                raise BadInputs(text % (where, call.set_name, call.method, self.what))

    def _add_hooks(self, calls):
        """Add nothing: there is one way to call it."""

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
        try:
            arguments = kept((*arguments, *([dict(named)] if named else [])), "its own example")
        except BadInputs as error:
            self._mark(str(error))
            return
        self._write([Call("example", wire.KEYWORDS_METHOD if named else "forward", arguments)])
        self._mark("its own example inputs")

    def _serve(self, requests):
        self._mark("Triton's backend serves packages of AOTInductor and no exported programs: give requests")


class PackageAdoption(ProgramAdoption):
    """A package tells the structure of its arguments, and nothing of the tensors in it."""

    what = "a package of AOTInductor"

    def _load(self, where):
        from torch._inductor import package

        os.environ[CHECK] = "1"
        return package.load_package(self._given["path"])

    def _infer(self):
        self._mark("nothing can be guessed of a package of AOTInductor: give requests")

    def _serve(self, requests):
        """Ask for a batch of one: of packages the backend promises no larger ones, and they check none."""
        first, warmups = requests[0], requests[1:]
        Adoption._serve(self, [dict(first, batches=[1] if first["batches"] else []), *warmups])

    def _inferred(self, ask):
        """Infer where the package runs: it is compiled for that device alone."""
        inferrer = PackageInferrer(
            lambda: self._module, self._module, seed=self._seed, device=self._device, log=self._log, model=self._name
        )
        return ask(inferrer), inferrer

    def _answers(self, call):
        return True


class PackageInferrer(Inferrer):
    """Binds the requests of a server by the package's call specification; code that is compiled tells no needs."""

    def _binding(self, method):
        self._begin(method)
        self._reads_numbers = False  # sizes are compiled
        places = Places(self._module.loader.get_call_spec()[0])
        self._names = ["ARGS[%d]" % number for number in range(len(places.arguments))]
        if places.keywords:
            self._names.append("KWARGS")
            self._method = wire.KEYWORDS_METHOD
        return "%s(%s)" % (method, places), lambda request: served.BoundByPlace(request, places)

    def widen(self, inference, name):
        # An index beyond its table is an error on the CPU, and ends what a GPU answers.
        return Inferrer.widen(self, inference, name) if self._device.is_cpu else (None, "")

    def _repaired(self, guess, failure):
        return []  # other shapes may be read beyond their memory, and succeed

    def _function(self, module):
        return programs.method(module, self._method)


ADOPTIONS = {"program": ProgramAdoption, "package": PackageAdoption}
