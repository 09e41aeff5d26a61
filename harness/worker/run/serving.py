"""A loaded artifact as a server holds it: load, reset, seed, call, drop. Shared by ``run`` and ``benchmark``."""

import torch

from gate_worker import wire
from gate_worker.run import served_answers, side_effects
from gate_worker.settings import switches
from gate_worker.values import trees


class ServedModel:
    """One artifact with its recorded inputs; ``load`` first, then ``call``.

    ``stable_answer`` is what the module that it holds now is known to answer.

    Args:
        at_load: the request's switches; those of modules are done to what is loaded.
    """

    def __init__(self, run, device, at_load=None):
        artifact = run["artifact"]
        self.name = artifact["model"]
        self.schedule = run["schedule"]
        self._artifact = artifact
        self._at_load = at_load or {}
        self.device = device
        self._precision = run["precision"]
        self._module = None
        self.stable_answer = served_answers.StableAnswer()
        self._reader = trees.TensorReader(artifact["inputs_dir"], device)
        self._inputs = {entry["set"]: entry for entry in self._reader.index(artifact["inputs_dir"])}

    def load(self):
        self.stable_answer = served_answers.StableAnswer()
        self._module = torch.jit.load(self._artifact["path"], map_location=self.device)
        self._module.eval()
        if self._precision is not None:
            self._module.to(getattr(torch, self._precision))
        methods = {entry.get("method", "forward") for entry in self._inputs.values()}
        methods.update([self._artifact["reset"]] if self._artifact["reset"] else [])
        self._module = switches.after_load(self._module, self._at_load, sorted(methods))

    def share(self, other):
        """Use the module that ``other`` has loaded."""
        self.stable_answer = served_answers.StableAnswer()
        self._module = other._module

    def drop(self):
        """Let go of the module; it is destroyed here unless another model shares it."""
        self.stable_answer = served_answers.StableAnswer()
        self._module = None

    def arguments(self, set_name):
        """Return fresh arguments: a call may change its inputs in place."""
        arguments = self._reader.value(self._inputs[set_name]["tree"])
        return arguments if self._precision is None else widened(arguments, getattr(torch, self._precision))

    def target(self, set_name):
        """Return the module and the name of the method that an input set is for."""
        return self._module, self._inputs[set_name].get("method", "forward")

    def method(self, set_name):
        return self._method(self._inputs[set_name].get("method", "forward"))

    def prepare(self):
        """Bring a stateful model back to its start and seed the generators."""
        if self._artifact["reset"]:
            self._method(self._artifact["reset"])()
        torch.manual_seed(self._artifact["seed"])

    def _method(self, name):
        """Return a method of the TorchScript, never one of the Python object that wraps it, such as ``save``."""
        try:
            return self._module._c._get_method(name)
        except RuntimeError:  # in the words of Python, which the C++ worker says as well
            raise AttributeError("%r object has no attribute %r" % (type(self._module).__name__, name))

    def answer(self, set_name):
        """Make one call as a server does, without events; return its output."""
        self.prepare()
        output = self.method(set_name)(*self.arguments(set_name))
        self.synchronize()
        return output

    def side_effects(self, set_name, arguments, output):
        """Return what a call did beside answering; a float64 run has other inputs than the recorded ones."""
        if self._precision is not None:
            return {}
        return side_effects.of_call(self._reader, arguments, self._inputs[set_name]["tree"], output)

    def synchronize(self):
        if self.device != "cpu":  # this thread's stream only: waiting for the device would break captures of others
            torch.cuda.current_stream().synchronize()


def widened(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() and not value.is_quantized else value
    if isinstance(value, (tuple, list)):
        return type(value)(widened(item, dtype) for item in value)
    if isinstance(value, dict):
        return {key: widened(item, dtype) for key, item in value.items()}
    return value


def load(served, log, thread=0):
    """Load under a ``load`` phase."""
    with log.phase(wire.LOAD, model=served.name, thread=thread):
        served.load()
        served.synchronize()


def call(served, log, set_name, index, thread=0):
    """Make one call under a ``call`` phase; return its output and the arguments as the call has left them."""
    with log.phase(wire.PREPARE, model=served.name, thread=thread, set=set_name, call=index):
        served.prepare()
        arguments = served.arguments(set_name)
        method = served.method(set_name)
    with log.phase(wire.CALL, model=served.name, thread=thread, set=set_name, call=index):
        output = method(*arguments)
        served.synchronize()
    return output, arguments
