"""Requests as a manifest describes them: plain values, and tensors by shape and dtype, filled with seeded numbers."""

import torch

from gate_worker.requests.draws import range_of, whole_numbers
from gate_worker.requests.values import BadInputs, Call, check_sets, elements_of, for_each, named

MOST_BYTES = 1 << 34
NO_INDEX = (torch.uint8, torch.int8, torch.int16)
TENSOR_KEYS = {"shape", "dtype", "below"}


def calls(requests, methods, seed, where):
    """Return the calls of a manifest's ``requests``; one without a method is made of each of ``methods``.

    Raises:
        BadInputs: a request or a value is not described as it should be.
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for index, request in enumerate(requests):
        place = "%s: request %d" % (where, index)
        if not isinstance(request, dict) or not isinstance(request.get("arguments"), (list, tuple)):
            raise BadInputs("%s: expected a table with name, method and a list of arguments" % place)
        arguments = [
            value_of(item, generator, "%s, argument %d" % (place, position))
            for position, item in enumerate(request["arguments"])
        ]
        name = request.get("name") or ("example" if index == 0 else "request_%d" % (index + 1))
        method = request.get("method")
        made.extend([Call(name, method, arguments)] if method else for_each(name, methods, arguments))
    check_sets([call.set_name for call in made], where)
    return made


def value_of(plain, generator, where):
    if plain is None or isinstance(plain, (bool, int, float, str)):
        return plain
    if isinstance(plain, (list, tuple)):
        return [value_of(item, generator, "%s[%d]" % (where, index)) for index, item in enumerate(plain)]
    if not isinstance(plain, dict):
        raise BadInputs("%s: %s is no value of a manifest" % (where, named(plain)))
    keys = set(plain)
    if keys == {"none"}:
        return None
    if keys == {"tuple"} and isinstance(plain["tuple"], (list, tuple)):
        return tuple(value_of(list(plain["tuple"]), generator, where))
    if keys == {"dict"} and isinstance(plain["dict"], dict):
        return {key: value_of(item, generator, "%s[%r]" % (where, key)) for key, item in plain["dict"].items()}
    if "shape" in keys and keys <= TENSOR_KEYS:
        return _tensor(plain, generator, where)
    raise BadInputs(
        '%s: {%s} is none of {"shape", "dtype", "below"}, {"tuple": [...]}, {"dict": {...}} and {"none": true}'
        % (where, ", ".join(sorted(map(str, keys))))
    )


def _tensor(plain, generator, where):
    shape, name, below = plain["shape"], plain.get("dtype", "float32"), plain.get("below")
    if not isinstance(shape, (list, tuple)) or not all(type(size) is int and size >= 0 for size in shape):
        raise BadInputs("%s: the shape is %r, expected a list of sizes" % (where, shape))
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise BadInputs("%s: torch %s has no dtype %r" % (where, torch.__version__, name))
    if below is not None and (type(below) is not int or below < 1):
        raise BadInputs("%s: below is %r, expected a whole number from 1" % (where, below))
    if below is not None and (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool):
        raise BadInputs("%s: below is for whole numbers, and the dtype is %s" % (where, name))
    if elements_of(shape, where) * 16 > MOST_BYTES:
        raise BadInputs("%s: a tensor of shape %s is too large" % (where, list(shape)))
    try:
        return _random(shape, dtype, below, generator)
    except RuntimeError as error:
        raise BadInputs("%s: torch %s fills no tensor of dtype %s: %s" % (where, torch.__version__, name, error))


def _random(shape, dtype, below, generator):
    """Return normal numbers for floating dtypes, else integers from 0 to ``below`` - 1.

    Without ``below`` those of 8 and 16 bits are of their whole range: nothing takes them for an index. Others may be
    one, and are 0 and 1.
    """
    if dtype.is_complex:
        return _complex(shape, dtype, generator)
    if dtype.is_floating_point:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        return torch.randn(list(shape), generator=generator, dtype=wide).to(dtype)
    if below is None and dtype in NO_INDEX:
        return whole_numbers(shape, dtype, range_of(dtype), generator)
    return torch.randint(below or 2, list(shape), generator=generator).to(dtype)


def _complex(shape, dtype, generator):
    wide = torch.float64 if dtype == torch.complex128 else torch.float32
    parts = torch.randn(list(shape) + [2], generator=generator, dtype=wide)
    return torch.view_as_complex(parts).to(dtype)
