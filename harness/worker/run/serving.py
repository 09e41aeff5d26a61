"""A loaded artifact as a server holds it: load, reset, seed, call, drop. Shared by ``run`` and ``benchmark``."""

import torch

from gate_worker import defects, setters, wire
from gate_worker.run import loading
from gate_worker.values import trees


def side_effects_of(reader, arguments, tree, output):
    """Return what one call did, as ``TensorWriter.write`` records it.

    ``arguments`` are those that the call was made with, ``tree`` their recording, which ``reader`` reads.
    """
    inputs = list(recorded(arguments, tree, ["input"]))
    changed = [[path, tensor] for path, tensor, spec in inputs if not reader.holds(spec, tensor)]
    places = [(path, tensor) for path, tensor, _ in inputs] + list(leaves(output, ["output"]))
    return {"changed": changed, "shared": shared(places)}


def recorded(value, tree, path):
    """Yield (path, tensor, spec) of every tensor of an argument beside its recording."""
    kind, content = tree
    if kind == "tensor":
        if isinstance(value, torch.Tensor):
            yield path, value, content
    elif kind in ("tuple", "list", "namedtuple"):
        items = [item for _, item in content[1]] if kind == "namedtuple" else content
        for index, (part, item) in enumerate(zip(value, items)):
            yield from recorded(part, item, path + [index])
    elif kind == "dict":
        for (key, part), (_, item) in zip(value.items(), content):
            yield from recorded(part, item, path + [key_step(key)])


def leaves(value, path):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name in value._fields:
            yield from leaves(getattr(value, name), path + [name])
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from leaves(item, path + [index])
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, path + [key_step(key)])


def key_step(key):
    for kind in (bool, int, str):
        if isinstance(key, kind):
            return [kind.__name__, key]
    return ["float", repr(key)] if isinstance(key, float) else ["object", type(key).__name__]


def shared(places):
    """Return the paths of tensors in one storage, a list per storage that holds two or more."""
    by_storage = {}
    for path, tensor in places:
        address = storage_address(tensor)
        if address:
            by_storage.setdefault(address, []).append(path)
    return [paths for paths in by_storage.values() if len(paths) > 1]


def storage_address(tensor):
    """Return where the tensor's storage begins; 0 where it has none, or no bytes."""
    if tensor.layout != torch.strided:
        return 0
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


class ServedModel:
    """One artifact with its recorded inputs; ``load`` first, then ``call``.

    ``stable_answer`` is what the module that it holds now is known to answer.

    Args:
        device: a ``Device``, where it runs.
        at_load: the request's switches; those of modules are done to what is loaded.
        loader: how it is loaded, one of ``loading.LOADERS``.
    """

    def __init__(self, run, device, at_load=None, loader=loading.DEFAULT):
        artifact = run["artifact"]
        self.name = artifact["model"]
        self.schedule = run["schedule"]
        self._artifact = artifact
        self._at_load = at_load or {}
        self._loader = loading.LOADERS[loader]
        self.device = device
        self._waits = not device.is_cpu
        self._precision = run["precision"]
        self._larger_inputs = run.get("larger_inputs")
        self._module = None
        self.stable_answer = StableAnswer()
        self._reader = trees.TensorReader(artifact["inputs_dir"], device.name)
        self._inputs = {entry["set"]: entry for entry in self._reader.index(artifact["inputs_dir"])}

    def load(self):
        self.stable_answer = StableAnswer()
        defects.register_for(self._artifact["operators"])
        self._module = self._loader(self._artifact["path"], self.device.name)
        self._module.eval()
        if self._precision is not None:
            self._module.to(getattr(torch, self._precision))
        methods = {entry["method"] for entry in self._inputs.values()} - {wire.WITH_HOOKS_METHOD}
        methods.update([self._artifact["reset"]] if self._artifact["reset"] else [])
        self._module = setters.after_load(torch, self._module, self._at_load, sorted(methods))

    def share(self, other):
        self.stable_answer = StableAnswer()
        self._module = other._module

    def drop(self):
        """Let go of the module; it is destroyed here unless another model shares it."""
        self.stable_answer = StableAnswer()
        self._module = None

    def arguments(self, set_name, larger=0):
        """Return fresh arguments: a call may change its inputs in place.

        Where ``larger`` is not 0, those of ``larger_inputs``, every dimension that grows so much larger.
        """
        arguments = self._reader.value(self._larger_inputs if larger else self._inputs[set_name]["tree"], larger)
        return arguments if self._precision is None else widened(arguments, getattr(torch, self._precision))

    def target(self, set_name):
        """Return the module and its method; hooks of the root are around ``forward``, and in no graph."""
        method = self._inputs[set_name]["method"]
        return self._module, "forward" if method == wire.WITH_HOOKS_METHOD else method

    def buffer_addresses(self):
        """Return where each buffer lies, by name: a call that binds one anew, instead of writing into it, moves it."""
        return {name: storage_address(buffer) for name, buffer in self._module.named_buffers()}

    def method(self, set_name):
        return self._method(self._inputs[set_name]["method"])

    def prepare(self):
        if self._artifact["reset"]:
            self._method(self._artifact["reset"])()
        torch.manual_seed(self._artifact["seed"])

    def has_drawn(self):
        """Whether a generator of torch has moved since ``prepare`` seeded it; of a process whose other threads rest."""
        generators = self.device.generators()
        seeded = [torch.Generator(generator.device).manual_seed(self._artifact["seed"]) for generator in generators]
        return not all(
            torch.equal(generator.get_state(), new.get_state()) for generator, new in zip(generators, seeded)
        )

    def _method(self, name):
        """Return a method of the TorchScript, never one of the Python object that wraps it, such as ``save``."""
        if name == wire.WITH_HOOKS_METHOD:
            return self._module
        try:
            return self._module._c._get_method(name)
        except RuntimeError:  # in the words of Python, which the C++ worker says as well
            raise AttributeError("%r object has no attribute %r" % (type(self._module).__name__, name))

    def answer(self, set_name, larger=0):
        """Make one call as a server does, without events; return its output and its arguments (see ``arguments``)."""
        self.prepare()
        arguments = self.arguments(set_name, larger)
        output = self.method(set_name)(*arguments)
        self.synchronize()
        return output, arguments

    def side_effects(self, set_name, arguments, output):
        """Return what a call did beside answering; a float64 run has other inputs than the recorded ones."""
        if self._precision is not None:
            return {}
        return side_effects_of(self._reader, arguments, self._inputs[set_name]["tree"], output)

    def synchronize(self):
        if self._waits:
            self.device.synchronize()


def widened(value, dtype):
    def wide(tensor):
        return tensor.to(dtype) if tensor.is_floating_point() and not tensor.is_quantized else tensor

    return trees.mapped(value, wide)


def load(served, log, thread=0):
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


class StableAnswer:
    """What a module answers to its first input set once it is warm, if it can be held to that.

    Only where the last two recorded answers are the same to the last bit: before its second call a module is not warm,
    and one whose answers depend on earlier calls, or on chance, cannot be held to any of them.
    """

    def __init__(self):
        self._last = self._answer = None

    def learn(self, output):
        described = trees.described(output)
        self._answer = described if described == self._last else None
        self._last = described

    def differs_from(self, output):
        """Return whether ``output`` is otherwise than what is known."""
        return self._answer is not None and trees.described(output) != self._answer


class ServedAnswers:
    def __init__(self, served, log):
        self.calls = 0
        self._served = served
        self._log = log
        self._first = None
        self._different = 0

    def take(self, output):
        """Count one answer; tell the first one that is otherwise at once, as the process may hang after it."""
        self.calls += 1
        if not self._served.stable_answer.differs_from(output):
            return
        self._different += 1
        if self._first is None:
            self._first = self.calls - 1
            self.tell()

    def tell(self):
        """Mark what was otherwise so far, if anything was."""
        if self._first is not None:
            data = {"calls": self.calls, "first": self._first, "different": self._different}
            self._log.mark("served_otherwise:" + self._served.name, data)
