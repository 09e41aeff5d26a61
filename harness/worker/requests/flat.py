"""Requests as flat names, as ``.npz`` and ``.safetensors`` hold them: ``x``, ``SET/x``, ``SET.METHOD/x``."""

import re

from gate_worker.requests.values import LONGEST_NAME, BadInputs, Call, check_name, check_sets, for_each

MOST_TENSORS = 100_000
SCALARS = {"IntType": int, "FloatType": float, "BoolType": bool, "NumberType": lambda value: value}


def check_flat(names, path):
    """Raise ``BadInputs`` where a file names too many tensors, or one by what is no name; before any is read."""
    if len(names) > MOST_TENSORS:
        raise BadInputs("%s names %d tensors; the limit is %d" % (path, len(names), MOST_TENSORS))
    for name in names:
        check_name(name, path, 3 * LONGEST_NAME)  # set, method and argument


def calls(entries, where, methods, signature_of):
    """Return the calls that ``entries`` (flat name -> tensor) stand for.

    ``x`` is an argument's name or its position. Where the method takes a number, a tensor of one element becomes one.
    Raises ``BadInputs``: a name is no argument, or an argument without a default is missing.
    """
    if not entries:
        raise BadInputs("%s holds no tensors" % where)
    sets = {}
    for flat, tensor in entries.items():
        prefix, _, name = flat.rpartition("/")
        if not name or "/" in prefix:
            raise BadInputs(
                "%s: %r is not x, SET/x or SET.METHOD/x, with x an argument's name or position" % (where, flat)
            )
        sets.setdefault(prefix or "example", {})[name] = tensor
    check_sets(sets, where)
    made = []
    for prefix, named in sets.items():
        set_name, _, method = prefix.rpartition(".")
        if set_name and method:
            made.append(Call(set_name, method, _in_order(named, prefix, method, where, signature_of)))
            continue
        for index, each in enumerate(methods):
            arguments = _in_order(named, prefix, each, where, signature_of)
            made.append(for_each(prefix, methods, arguments)[index])
    return made


def _in_order(named, prefix, method, where, signature_of):
    signature = signature_of(method)
    positions = {} if signature is None else {argument.name: index for index, argument in enumerate(signature)}
    placed = {}
    for name, tensor in named.items():
        index = positions.get(name, int(name) if re.match(r"^[0-9]{1,4}$", name) else None)
        if index is None and signature is None:
            raise BadInputs(
                "%s: %r is the name of an argument, and nothing tells its position: the artifact does not load in this "
                "release, or is no TorchScript; use positions: 0, 1, ..." % (where, name)
            )
        if index is None or (signature is not None and index >= len(signature)):
            takes = ", ".join(argument.name for argument in signature) or "no arguments"
            raise BadInputs("%s: %s has no argument %r; it takes %s" % (where, method, name, takes))
        if index in placed:
            raise BadInputs("%s: %r gives argument %d of %s twice" % (where, prefix, index, method))
        placed[index] = _fitted(tensor, signature, index, where, name)
    return _complete(placed, signature, prefix, method, where)


def _complete(placed, signature, prefix, method, where):
    arguments = []
    for index in range(max(placed) + 1):
        if index in placed:
            arguments.append(placed[index])
        elif signature is not None and signature[index].has_default and not signature[index].is_foreign:
            arguments.append(signature[index].default)
        else:
            name = "%d" % index if signature is None else signature[index].name
            raise BadInputs("%s: %r does not give argument %s of %s" % (where, prefix, name, method))
    return tuple(arguments)


def _fitted(tensor, signature, index, where, name):
    if signature is None:
        return tensor
    kind = signature[index].type
    while kind.kind() == "OptionalType":
        kind = kind.getElementType()
    if kind.kind() in ("TensorType", "AnyType"):
        return tensor
    if kind.kind() in SCALARS and tensor.numel() == 1:
        return SCALARS[kind.kind()](tensor.item())
    raise BadInputs(
        "%s: %r is a tensor, and the argument is %s: only .pt and .py files and manifests hold such values"
        % (where, name, kind.annotation_str)
    )
