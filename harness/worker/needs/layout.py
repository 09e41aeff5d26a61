"""What operators that move or join dimensions need of their inputs. A rule takes a ``Use``."""

import torch

from gate_worker.needs.rules import index, of_list, rule
from gate_worker.needs.value_requirements import ValueRequirements


@rule("transpose", "swapaxes", "t")
def transpose(use):
    if use.position != 0:
        return None
    if use.kind == "aten::t":
        return ValueRequirements(rank=2).merge(use.out).transposed(0, 1)
    one, other = use.number(1), use.number(2)
    return use.out.transposed(one, other) if isinstance(one, int) and isinstance(other, int) else use.out.values()


@rule("permute")
def permute(use):
    order = use.number(1) if use.position == 0 else None
    return use.out.permuted(order) if isinstance(order, list) else use.out.values()


@rule("unsqueeze")
def unsqueeze(use):
    dimension = use.number(1) if use.position == 0 else None
    if not isinstance(dimension, int):
        return None
    need = use.out.one_less(dimension)
    if need.rank is None and dimension >= 0:
        need.least.setdefault(dimension - 1, 1)
    return need


@rule("squeeze")
def squeeze(use):
    dimension = use.number(1) if use.position == 0 and use.count > 1 else None
    return use.out.one_more(dimension) if isinstance(dimension, int) else use.out.values()


@rule("select")
def select(use):
    dimension = use.number(1) if use.position == 0 else None
    if not isinstance(dimension, int):
        return None
    need = use.out.one_more(dimension)
    place = use.number(2)
    if isinstance(place, int):
        need.least[dimension] = place + 1 if place >= 0 else -place
    if use.out.role and use.out.rank is None and dimension >= 0:  # what is selected has a dimension of its own
        need.least.setdefault(dimension + 1, 1)
    return need


@rule("unbind")
def unbind(use):
    dimension = use.number(1) if use.position == 0 else None
    if not isinstance(dimension, int):
        return None
    found = ValueRequirements().merge(use.out.each)
    for item in use.out.items.values():
        found.merge(item)
    return found.one_more(dimension)


@rule("slice")
def slice_(use):
    dimension = use.number(1) if use.position == 0 else None
    return use.out.without(dimension) if isinstance(dimension, int) else None


@rule("chunk", "split", "split_with_sizes", "tensor_split")
def chunk(use):
    if use.position != 0:
        return None
    dimension = use.number(2) if use.count > 2 else None
    found = ValueRequirements().merge(use.out.each)
    for item in use.out.items.values():
        found.merge(item)
    return found.without(dimension) if isinstance(dimension, int) else found.values()


@rule("flatten", "view", "reshape", "expand", "expand_as", "repeat", "unflatten", "repeat_interleave")
def reshaped(use):
    return use.out.values() if use.position == 0 else None


@rule(
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool2d",
    "upsample_bilinear2d",
    "upsample_nearest2d",
    "upsample_nearest1d",
    "upsample_bicubic2d",
    "upsample_linear1d",
    "pad",
    "reflection_pad1d",
    "reflection_pad2d",
    "pixel_shuffle",
    "grid_sampler",
)
def resampled(use):
    if use.position != 0:
        return None
    need = ValueRequirements(rank=use.out.rank, dtype=use.out.dtype)
    digits = [int(letter) for letter in use.kind if letter.isdigit()]
    if need.rank is None and digits and use.kind.startswith(("aten::max_pool", "aten::avg_pool")):
        need.rank = digits[-1] + 2
    if "pixel" not in use.kind and 1 in use.out.sizes:
        need.sizes[1] = use.out.sizes[1]
    return need


@of_list("aten::cat")
def joined(use):
    """Sizes pass but for the joined dimension: that is what the others leave of it."""
    dimension = use.number(1)
    if not isinstance(dimension, int):
        return use.out.values()
    others = use.members()
    del others[use.position]
    ranks = [need.rank for need in [use.out] + others if need.rank is not None]
    rank = ranks[0] if ranks else None
    whole = _size(use.out, dimension, rank)
    parts = [_size(need, dimension, rank) for need in others]
    need = use.out.without(dimension)
    if whole is not None and None not in parts and whole > sum(parts):
        need.sizes[dimension] = whole - sum(parts)
    for other in others:
        if other.rank is not None:
            need.merge(other.without(dimension))
    need.dtype = need.dtype if need.dtype and need.dtype.is_floating_point else None
    need.below, need.role = None, ""
    return need


def _size(need, dimension, rank):
    for place in (dimension, dimension - rank if rank is not None and dimension >= 0 else None):
        if place in need.sizes:
            return need.sizes[place]
    if rank is None and dimension == 1:  # rows of features are what most joins are made of
        return need.sizes.get(-1)
    return need.sizes.get(dimension + rank) if rank is not None and dimension < 0 else None


@of_list("aten::stack")
def stacked(use):
    dimension = use.number(1)
    need = use.out.one_less(dimension) if isinstance(dimension, int) else use.out.values()
    need.role = ""
    return need


@of_list("aten::index", "aten::index_put", "aten::index_put_")
def indices(use):
    source = use.known(0)
    return index(source.sizes.get(use.position - source.rank) if source.rank is not None else None)


@of_list("aten::einsum")
def einsum(use):
    """The letters of an operand tell its rank, and other operands the sizes of its letters."""
    equation = use.number(0)
    if not isinstance(equation, str) or "." in equation:
        return None
    operands = equation.replace(" ", "").partition("->")[0].split(",")
    members = use.members()
    if len(operands) != len(members):
        return None
    sizes = {}
    for letters, need in zip(operands, members):
        sizes.update({letters[d]: size for d, size in need.sizes.items() if -len(letters) <= d < 0})
    mine = operands[use.position]
    found = {d: sizes[letter] for d, letter in enumerate(mine) if letter in sizes}
    return ValueRequirements(rank=len(mine), sizes=found, dtype=torch.float32 if found else None)
