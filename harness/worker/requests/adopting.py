"""Verb ``adopt``: take over an artifact that exists already; read its requests, or make some up.

What was given and needs nothing of the artifact is written before that is loaded, so it outlives a crash there.
"""

import functools
import os

import torch

from gate_worker import confinement, device, settings, wire
from gate_worker.requests import described, files, inferring, signatures
from gate_worker.requests.values import BadInputs, Call, first_line
from gate_worker.values import trees

NEEDS_SIGNATURES = (".npz", ".safetensors")


def adopt(request, run_dir, log):
    name = request["declaration"]["name"]
    log.mark("switches", settings.apply_process_wide(request))
    _adoption_of(request["declaration"]["given"]["kind"])(request, run_dir, log).take()
    log.mark("numerics", settings.state(request))
    log.emit("ready", model=name, thread=0)


def _adoption_of(kind):
    if kind == "torchscript":
        return Adoption
    from gate_worker.requests import exported  # imports torch.export, for seconds

    return exported.ADOPTIONS[kind]


class Adoption:
    def __init__(self, request, run_dir, log):
        declaration = request["declaration"]
        self._given = declaration["given"]
        self._name = declaration["name"]
        self._reset = declaration["reset"]
        self._seed = declaration["seed"]
        self._methods = list(self._given["methods"]) or ["forward"]
        self._request = request
        self._run_dir = run_dir
        self._device = device.of(request)
        self._log = log
        self._writer = trees.TensorWriter(os.path.join(run_dir, "inputs"))
        self._module = None
        self._not_loaded = ""
        self._calls = []

    def take(self):
        inputs, described = self._given["inputs"], self._given["requests"]
        served = bool(described) and "inputs" in described[0]
        given = bool(inputs) or (bool(described) and not served)
        early = given and os.path.splitext(inputs)[1] not in NEEDS_SIGNATURES
        if early:
            with self._reading():
                self._write(self._read())
            self._mark("")
        confinement.enter(self._request, self._run_dir, self._log)
        with self._log.phase(wire.LOAD, model=self._name):
            try:
                self._module = self._load(self._device)
            except Exception as error:  # that is for probing to judge
                self._not_loaded = first_line(error)
        if self._module is not None:
            with self._reading():
                self._check_names()
                self._check_calls()
                if early:
                    self._add_hooks(self._calls)
                    self._mark("")
        if given:
            if not early:
                with self._reading():
                    self._write(self._read())
                    self._check_calls()
                    self._add_hooks(self._calls)
                self._mark("")
            return
        if self._module is None:
            self._mark("it does not load in this release, so no requests can be guessed: %s" % self._not_loaded)
        elif served:
            self._serve(described)
        else:
            self._infer()

    def _reading(self):
        return self._log.phase(wire.INPUTS, model=self._name)

    def _load(self, where):
        return torch.jit.load(self._given["path"], map_location=where.name).eval()

    def _read(self):
        if self._given["inputs"]:
            return files.read(self._given["inputs"], self._methods, self._signature, self._seed)
        requests = self._given["requests"]
        return described.calls(requests, self._methods, self._seed, "requests of %s" % self._name)

    def _signature(self, method):
        if self._module is None:
            return None
        signatures.require(self._module, self._given["path"], method)
        return signatures.arguments(self._module, method)

    def _require(self, method, role="method"):
        signatures.require(self._module, self._given["path"], method, role)

    def _check_names(self):
        for method in self._given["methods"]:
            self._require(method)
        if self._reset:
            self._require(self._reset, "reset method")

    def _check_calls(self):
        where = self._given["inputs"] or "requests of %s" % self._name
        if self._module is not None:
            for call in self._calls:
                signatures.require_fit(self._module, self._given["path"], call, where)

    def _write(self, calls):
        """Append the calls to the inputs folder, on the device that they are made on."""
        names = {call.set_name for call in self._calls}
        for call in calls:
            if call.set_name in names:
                raise BadInputs("two input sets of %s are called %r" % (self._name, call.set_name))
            names.add(call.set_name)
            arguments = trees.to_device(call.arguments, self._device.name)
            self._writer.write(arguments, model=self._name, set=call.set_name, method=call.method)
            self._calls.append(Call(call.set_name, call.method, arguments))

    def _add_hooks(self, calls):
        """Ask what Python's callers get of these calls as well, where that is more than ``forward``."""
        if self._module is not None and signatures.has_hooks(self._module):
            plain = [call for call in calls if call.method == "forward"]
            self._write(
                [Call(call.set_name + wire.WITH_HOOKS, wire.WITH_HOOKS_METHOD, call.arguments) for call in plain]
            )

    def _mark(self, note, given_up=()):
        sets = [[call.set_name, call.method] for call in self._calls]
        self._log.mark("adopted", {"input_sets": sets, "inputs_note": note, "given_up": list(given_up)})

    def _infer(self):
        """Make up requests for every method; a note says what was guessed, and what could not be."""
        has = signatures.methods(self._module)
        if not self._given["methods"] and "forward" not in has:
            self._mark("it has no method forward; say which to call of its methods: %s" % (", ".join(has) or "none"))
            return
        asked = []
        for method in self._methods:
            suffix = "_" + method if asked else ""
            ask = functools.partial(inferring.Inferrer.infer, method=method, suffix=suffix)
            asked.append((method, "guessed_range" + suffix, ask))
        self._guess("guessed from the graph: ", asked)

    def _serve(self, requests):
        """Make the requests of a model server; what is not said of them is guessed."""
        first, warmups = requests[0], requests[1:]
        self._require(first["method"])
        self._guess(
            "guessed from %s: " % first["said_by"],
            [(first["method"], "range", lambda inferrer: inferrer.serve(first, warmups))],
        )

    def _guess(self, how, asked):
        """Guess for each method; what works is marked before it is tried with other numbers, which may end the process.

        Args:
            asked: (method, name of the input set with whole numbers of a wide range, what an inferrer is asked).
        """
        guessed, given_up, wider = {}, [], []
        with settings.thread_context(self._request):
            for method, name, ask in asked:
                inference, inferrer = self._inferred(ask)
                self._write(inference.calls)
                if inference.calls:
                    guessed[method] = inference.note
                    wider.append((method, inferrer, inference, name))
                else:
                    given_up.append([method, inference.note])
            self._add_hooks(self._calls)
            why_none = "; ".join(note for _, note in given_up)
            self._mark(how + ", ".join(guessed.values()) if guessed else why_none, given_up)
            for method, inferrer, inference, name in wider:
                call, words = inferrer.widen(inference, name)
                if call is not None and self._answers(call):
                    self._write([call])
                    self._add_hooks([call])
                    guessed[method] += ", and with %s" % words
                    self._mark(how + ", ".join(guessed.values()), given_up)

    def _inferred(self, ask):
        """Infer on the CPU first: there an index out of range is an error, and a GPU would answer nothing any more.

        Returns the ``Inference`` and the inferrer that it is of.
        """
        if not self._device.is_cpu:
            try:
                inferrer = self._inferrer(device.CPU, self._load(device.CPU))
                inference = ask(inferrer)
            except (RuntimeError, NotImplementedError):  # the artifact insists on its device
                inference = None
            if inference is not None and inference.calls and all(map(self._answers, inference.calls)):
                return inference, inferrer
        inferrer = self._inferrer(self._device, self._module)
        return ask(inferrer), inferrer

    def _inferrer(self, where, module):
        return inferring.Inferrer(
            lambda: self._load(where), module, seed=self._seed, device=where, log=self._log, model=self._name
        )

    def _answers(self, call):
        """Whether a call that succeeds on the CPU does so on the device."""
        if self._device.is_cpu:
            return True
        module = self._load(self._device)
        try:
            getattr(module, call.method)(*trees.to_device(call.arguments, self._device.name))
            self._device.synchronize()
        except Exception:
            return False
        return True
