"""What a request may consist of, and the error for what may not."""

import re

import torch

KINDS = "tensors, numbers, strings, None, lists, tuples and dicts"
MOST_DEPTH = 50
MOST_SETS = 1000
LONGEST_NAME = 200


class BadInputs(Exception):
    """Requests that somebody gave cannot be read, or do not have the promised form; the message says what to do."""


def kept(value, where, depth=0):
    """Return ``value`` with its tensors detached, on the CPU; raise ``BadInputs`` for what no request file can hold.

    ``where`` names the file and the place in it, for the message.
    """
    if depth > MOST_DEPTH:
        raise BadInputs("%s: nested more than %d levels deep" % (where[:200], MOST_DEPTH))
    if isinstance(value, torch.Tensor):
        return _kept_tensor(value, where)
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.device)):
        return value
    if isinstance(value, (tuple, list)):
        items = [kept(item, "%s[%d]" % (where, index), depth + 1) for index, item in enumerate(value)]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, (bool, int, float, str)):
                raise BadInputs("%s: a key is %s; keys are strings or numbers" % (where, named(key)))
        return {key: kept(item, "%s[%r]" % (where, key), depth + 1) for key, item in value.items()}
    hint = "; torch.from_numpy makes a tensor of it" if type(value).__module__ == "numpy" else ""
    raise BadInputs("%s is %s, and requests hold %s%s" % (where, named(value), KINDS, hint))


def check_sets(names, where):
    """Raise ``BadInputs`` where there are too many input sets, or a name of one is no text that can be shown."""
    if len(names) > MOST_SETS:
        raise BadInputs("%s holds %d input sets; the limit is %d" % (where, len(names), MOST_SETS))
    for name in names:
        check_name(name, where)


def check_name(name, where, longest=LONGEST_NAME):
    """Raise ``BadInputs`` where a name is too long, or holds what no terminal shows: control characters, surrogates."""
    if len(name) > longest or not name.isprintable():
        raise BadInputs(
            "%s: %s is no name: expected at most %d characters, all of them printable"
            % (where, ascii(name[:60]) + ("..." if len(name) > 60 else ""), longest)
        )


def _kept_tensor(tensor, where):
    if tensor.layout != torch.strided:
        raise BadInputs(
            "%s is a tensor of layout %s; requests hold dense ones: call to_dense()" % (where, tensor.layout)
        )
    if tensor.device.type == "meta":
        raise BadInputs("%s is a tensor on the meta device, which has no values" % where)
    if tensor.is_quantized and tensor.qscheme() != torch.per_tensor_affine:
        raise BadInputs("%s is quantized per channel; requests hold tensors quantized as a whole" % where)
    return tensor.detach().cpu()


def named(value):
    """Return the article-free name of a value's type, with its module where it is no builtin."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__name__)


def first_line(error):
    """Return the most telling line of an exception of torch, shortened.

    That is its first, but for an error inside of TorchScript, whose message begins with a trace of the code.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if not lines[0].startswith("The following operation failed"):
        return lines[0][:300]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\w*: ", line)]
    return (raised or lines)[-1].rstrip(": ")[:300]


class Call:
    def __init__(self, set_name, method, arguments):
        self.set_name = set_name
        self.method = method
        self.arguments = tuple(arguments)


def for_each(set_name, methods, arguments):
    """Return a call of every method with the same arguments; the first has the plain name."""
    return [
        Call(set_name if index == 0 else "%s_%s" % (set_name, method), method, arguments)
        for index, method in enumerate(methods)
    ]


MOST_DIMENSIONS = 64


def elements_of(shape, where):
    """Return how many elements a tensor has; raise ``BadInputs`` for sizes >= 0 that no tensor has."""
    elements = 1
    for size in shape[:MOST_DIMENSIONS]:
        elements *= min(size, 1 << 63)
    if len(shape) > MOST_DIMENSIONS or any(size >= 1 << 63 for size in shape) or elements >= 1 << 63:
        raise BadInputs("%s has a shape that no tensor has" % where)
    return elements


def from_bytes(data, dtype, shape, where):
    """Return a tensor of its own memory; raise ``BadInputs`` where the number of bytes is another than promised."""
    promised = elements_of(shape, where) * torch.empty(0, dtype=dtype).element_size()
    if len(data) != promised:
        raise BadInputs("%s has %d bytes, and its shape and dtype promise %d" % (where, len(data), promised))
    try:
        return _shaped(data, dtype, list(shape))
    except (RuntimeError, TypeError, OverflowError, ValueError):
        raise BadInputs("%s has a shape that no tensor has: %s" % (where, list(shape)))


def _shaped(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=dtype)
    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if dtype == torch.bool:
        return raw.ne(0).reshape(shape)
    return raw.clone().view(dtype).reshape(shape)


def swapped(data, width):
    """Return ``data`` with the bytes of every number of ``width`` bytes turned round."""
    if width == 1 or not data:
        return data
    turned = bytearray(len(data))
    for index in range(width):
        turned[index::width] = data[width - 1 - index :: width]
    return bytes(turned)
