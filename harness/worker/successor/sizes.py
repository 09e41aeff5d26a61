"""Which sizes of its arguments an exported program takes."""

import torch


def of_program(program, arguments):
    """Return per argument of the program its path and what it holds open: sizes of a tensor, None where free.

    What is no tensor has no sizes: ``[path, null]`` for a constant of the program, ``[path, []]`` for an open number.
    """
    from torch.utils import _pytree as pytree

    paths = [path for path, _ in pytree.tree_flatten_with_path(tuple(arguments))[0]]
    kinds = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    described = []
    for path, spec in zip(paths, kinds):
        value = values.get(getattr(spec.arg, "name", ""))
        sizes = None
        if isinstance(value, torch.Tensor):
            sizes = [size if isinstance(size, int) else size.node.maybe_as_int() for size in value.shape]
        elif isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None:
            sizes = []
        described.append([["input"] + [step_of(key) for key in path], sizes])
    return described


def step_of(key):
    """Return a key of a pytree as a step of a path (see ``docs/formats/wire.md``)."""
    for name in ("idx", "name"):
        if hasattr(key, name):
            return getattr(key, name)
    key = key.key
    kind = next((kind for kind in (bool, int, str) if isinstance(key, kind)), None)
    return [kind.__name__, key] if kind is not None else ["object", type(key).__name__]
