"""What a call leaves behind beside its output: inputs that it changed in place, and tensors that share memory.

``harness/native/run/side_effects.hpp`` finds the same in C++.
"""

import torch


def of_call(reader, arguments, tree, output):
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
    """Yield (path, tensor) of every tensor of an output."""
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
