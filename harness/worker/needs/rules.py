"""What operators need of their inputs: a rule for each, which takes a ``Use``; None where it has nothing to say."""

import torch

from gate_worker.needs.value_flow import ELEMENTWISE, UNKNOWN, known
from gate_worker.needs.value_requirements import ValueRequirements

# Name of an operator without namespace -> (rule, the input that it is for or None for all), and kind of a step -> rule
# for one member of the list that it takes.
RULES = {}
OF_LISTS = {}


class Use:
    """One use of a value: the ``kind`` of the step, the ``position`` of the value among its ``count`` inputs.

    ``out`` is what the first output of the step is needed to be.
    """

    def __init__(self, flow, step, position, out):
        self._flow = flow
        self._inputs = step.inputs
        self.kind = step.kind
        self.position = position
        self.count = len(step.inputs)
        self.out = out

    def constant(self, place, default=None):
        """Return what another input is in every call, ``default`` where that is not known."""
        value = self._flow.constant(self._inputs[place])
        return default if value is UNKNOWN else value

    def integer(self, place):
        value = self.constant(place)
        return value if isinstance(value, int) else None

    def known(self, place):
        return known(self._flow, self._inputs[place])


class ListUse(Use):
    def __init__(self, flow, step, position, consumer, out):
        super().__init__(flow, consumer, position, out)
        self._members = step.inputs

    def members(self):
        """Return what is known of the list's values, an empty need for this one."""
        return [
            ValueRequirements() if at == self.position else known(self._flow, name)
            for at, name in enumerate(self._members)
        ]


def rule(*names, at=None):
    """Register the function for operators; ``at``: the one input that it says something of."""

    def register(function):
        for name in names:
            assert name not in RULES, name
            RULES[name] = (function, at)
        return function

    return register


def of_list(*kinds):
    def register(function):
        OF_LISTS.update(dict.fromkeys(kinds, function))
        return function

    return register


def floating(dtype):
    return dtype if dtype is not None and (dtype.is_floating_point or dtype.is_complex) else None


def index(below=None, rank=None, role=""):
    return ValueRequirements(dtype=torch.int64, rank=rank, below=below, role=role)


# Of the elementwise ones, those that have a rule of their own.
OTHERWISE = "to type_as float half layer_norm batch_norm prelu where masked_fill group_norm instance_norm"


@rule(*sorted(ELEMENTWISE - set(OTHERWISE.split())))
def elementwise(use):
    """Shapes pass, and what the other operand is known to be binds this one too; whether it broadcasts is not known."""
    need = ValueRequirements().merge(use.out)
    what = use.kind.partition("::")[2]
    if what.startswith("bitwise") and need.dtype is None:
        need.dtype = torch.int64
    if use.count < 2 or use.position > 1:
        return need if use.position == 0 else None
    other = use.known(1 - use.position)
    for dimension, size in other.sizes.items():
        if size != 1:
            need.sizes.setdefault(dimension, size)
    value = use.constant(1 - use.position)
    if what == "add" and need.below and isinstance(value, torch.Tensor) and not value.is_floating_point():
        need.below = max(1, need.below - int(value.max())) if value.numel() else need.below
    return need


@rule("to", "type_as", "float", "half", "double", "long", "int", "bool", "bfloat16", "quantize_per_tensor", at=0)
def cast(use):
    need = ValueRequirements().merge(use.out)
    need.dtype = need.below = None
    return need


@rule(
    *("cpu", "cuda", "quantize_per_tensor_dynamic", "dequantize", "sort", "argsort", "alias", "unsafe_chunk"),
    *("flip", "roll", "constant_pad_nd", "tril", "triu"),
    at=0,
)
def shape_passes(use):
    return ValueRequirements().merge(use.out)


@rule("masked_fill")
def masked_fill(use):
    if use.position == 0:
        return ValueRequirements().merge(use.out)
    return ValueRequirements(dtype=torch.bool) if use.position == 1 else None


@rule("where")
def where(use):
    return ValueRequirements(dtype=torch.bool) if use.position == 0 else use.out.reshaped(None, lambda d: d)


@rule("logical_not", "logical_and", "logical_or", "bitwise_not")
def logical(_):
    return ValueRequirements(dtype=torch.bool)


@rule("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def shifts(use):
    return index(rank=use.out.rank)


@rule("_pack_padded_sequence", at=1)
def packed_sequence(_):
    return index(rank=1, role="lengths")


@rule("index_select", "gather", "index_add", "scatter_add", "scatter", "index_copy", at=2)
def indexing(use):
    source, dimension = use.known(0), use.constant(1)
    if isinstance(dimension, int) and source.rank is not None and dimension >= 0:
        dimension -= source.rank
    return index(source.sizes.get(dimension), rank=1 if use.kind.startswith("aten::index") else source.rank)


@rule("one_hot")
def one_hot(use):
    classes = use.constant(1)
    return index(classes if isinstance(classes, int) and classes > 0 else None)


@rule("stft", at=0)
def stft(use):
    size = use.integer(1)
    return ValueRequirements(rank=2, sizes={1: 8 * size}) if size is not None else None


@rule("fft_rfft", at=0)
def real_transform(use):
    dimension = use.integer(2)
    if dimension is None:
        return None
    halved = ValueRequirements().merge(use.out)
    if halved.rank is None:
        halved.rank = max(dimension + 2, 2)  # a batch of rows that are transformed, or of what stands in them
    halved = halved.from_front()
    size = halved.sizes.get(dimension)
    need = halved.without(dimension)
    need.dtype = None
    if size and size > 1:
        need.sizes[dimension] = 2 * (size - 1)
    return need


@rule("transpose", "swapaxes", "t", at=0)
def transpose(use):
    if use.kind == "aten::t":
        return ValueRequirements(rank=2).merge(use.out).transposed(0, 1)
    pair = use.integer(1), use.integer(2)
    return use.out.values() if None in pair else use.out.transposed(*pair)


@rule("permute")
def permute(use):
    order = use.constant(1) if use.position == 0 else None
    return use.out.permuted(order) if isinstance(order, list) else use.out.values()


@rule("unsqueeze", at=0)
def unsqueeze(use):
    dimension = use.integer(1)
    if dimension is None:
        return None
    need = use.out.one_less(dimension)
    if need.rank is None and dimension >= 0:
        need.least.setdefault(dimension - 1, 1)
    return need


@rule("squeeze")
def squeeze(use):
    dimension = use.constant(1) if use.position == 0 and use.count > 1 else None
    return use.out.one_more(dimension) if isinstance(dimension, int) else use.out.values()


@rule("select", at=0)
def select(use):
    dimension, place = use.integer(1), use.integer(2)
    if dimension is None:
        return None
    need = use.out.one_more(dimension)
    if place is not None:
        need.least[dimension] = place + 1 if place >= 0 else -place
    if use.out.role and use.out.rank is None and dimension >= 0:  # what is selected has a dimension of its own
        need.least.setdefault(dimension + 1, 1)
    return need


def of_parts(out):
    """Return what is needed of any of the parts in ``out``."""
    need = ValueRequirements().merge(out.each)
    for part in out.items.values():
        need.merge(part)
    return need


@rule("unbind", at=0)
def unbind(use):
    dimension = use.integer(1)
    return of_parts(use.out).one_more(dimension) if dimension is not None else None


@rule("slice", at=0)
def slice_(use):
    dimension = use.integer(1)
    return use.out.without(dimension) if dimension is not None else None


@rule("chunk", "split", "split_with_sizes", "tensor_split", at=0)
def chunk(use):
    dimension = use.integer(2) if use.count > 2 else None
    need = of_parts(use.out)
    return need.without(dimension) if dimension is not None else need.values()


@rule("flatten", "view", "reshape", "expand", "expand_as", "repeat", "unflatten", "repeat_interleave", at=0)
def reshaped(use):
    return use.out.values()


@rule(
    *("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
    *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d"),
    *("upsample_bilinear2d", "upsample_nearest2d", "upsample_nearest1d", "upsample_bicubic2d"),
    *("upsample_linear1d", "pad", "reflection_pad1d", "reflection_pad2d", "pixel_shuffle", "grid_sampler"),
    at=0,
)
def resampled(use):
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
    dimension = use.integer(1)
    if dimension is None:
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
    dimension = use.integer(1)
    need = use.out.one_less(dimension) if dimension is not None else use.out.values()
    need.role = ""
    return need


@of_list("aten::index", "aten::index_put", "aten::index_put_")
def indices(use):
    source = use.known(0)
    return index(source.sizes.get(use.position - source.rank) if source.rank is not None else None)


@of_list("aten::einsum")
def einsum(use):
    """The letters of an operand tell its rank, and other operands the sizes of its letters."""
    equation = use.constant(0)
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
    known_sizes = {d: sizes[letter] for d, letter in enumerate(mine) if letter in sizes}
    return ValueRequirements(rank=len(mine), sizes=known_sizes, dtype=torch.float32 if known_sizes else None)


UNPACK = {"linear": "linear_unpack", "conv2d": "conv2d_unpack", "embedding_bag": "embedding_bag_unpack"}


def packed_shape(kind, packed):
    """Return the shape of a packed weight of ``kind``, None where it is something else."""
    if packed is None:
        return None
    try:
        unpacked = getattr(torch.ops.quantized, UNPACK[kind])(packed)
        weight = unpacked[0] if isinstance(unpacked, (tuple, list)) else unpacked
        return list(weight.shape)
    except (AttributeError, RuntimeError, TypeError):
        return None


@rule("linear", at=0)
def linear(use):
    weight = use.known(1)
    if weight.rank != 2:
        return None
    need = use.out.reshaped(use.out.rank, lambda d: d if d != -1 and d != (use.out.rank or 0) - 1 else None)
    need.sizes[-1] = weight.sizes[-1]
    need.dtype = floating(weight.dtype)
    return need


@rule("linear_dynamic", "linear_relu_dynamic", "linear_relu", at=0)
def packed_linear(use):
    shape = packed_shape("linear", use.constant(1))
    return ValueRequirements(sizes={-1: shape[1]}) if shape else None


@rule("conv2d_relu", "conv1d_relu", at=0)
def packed_convolution(use):
    shape = packed_shape("conv2d", use.constant(1))
    return ValueRequirements(rank=len(shape), sizes={1: shape[1]}) if shape else None


@rule("addmm", "matmul", "mm", "bmm", "cdist", "linalg_solve_triangular")
def products(use):
    what = use.kind.partition("::")[2]
    left, right = (1, 2) if what == "addmm" else (0, 1)
    if use.position not in (left, right):
        return None
    other = use.known(left + right - use.position)
    need = ValueRequirements(rank={"addmm": 2, "mm": 2, "bmm": 3}.get(what), dtype=floating(other.dtype))
    # The last of the left meets the last but one of the right; distances are between rows, solutions of systems.
    product = (-1, -2) if use.position == left else (-2, -1)
    mine, its = {"cdist": (-1, -1), "linalg_solve_triangular": (-2, -2)}.get(what, product)
    if other.rank == 1:
        its = -1
    if its in other.sizes:
        need.sizes[mine] = other.sizes[its]
    return need


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution", at=0)
def convolution(use):
    if use.kind.startswith("quantized::"):
        return packed_convolution(use)
    weight = use.known(1)
    if not weight.rank:
        return None
    transposed, groups = "transpose" in use.kind, 1
    if use.kind.startswith("aten::_convolution"):
        transposed, groups = bool(use.constant(6)), use.constant(8, 1)
    elif use.count > 6:
        groups = use.constant(7 if transposed else 6, 1)
    channels = weight.sizes[-weight.rank] if transposed else weight.sizes[1 - weight.rank] * groups
    return ValueRequirements(rank=weight.rank, sizes={1: channels}, dtype=floating(weight.dtype))


@rule("batch_norm", "group_norm", "instance_norm", "prelu", at=0)
def channels(use):
    need = ValueRequirements().merge(use.out)
    weights = {"batch_norm": (1, 2, 3, 4), "group_norm": (2, 3), "instance_norm": (1, 2, 3), "prelu": (1,)}
    for place in weights[use.kind[6:]]:
        weight = use.known(place) if place < use.count else ValueRequirements()
        if weight.rank == 1 and weight.sizes[-1] > 1:
            need.sizes.setdefault(1, weight.sizes[-1])
            break
    return need


@rule("layer_norm", at=0)
def layer_norm(use):
    shape = use.constant(1)
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return None
    need = ValueRequirements(sizes={place - len(shape): size for place, size in enumerate(shape)})
    need.dtype = floating(use.known(2).dtype)
    return need.merge(use.out)


@rule("embedding", at=1)
def embedding(use):
    weight = use.known(0)
    if weight.rank != 2:
        return None
    need = index(weight.sizes[-2])
    return need.merge(use.out.one_less(-1)) if use.out.rank != 0 else need


@rule(
    *("embedding_bag", "embedding_bag_byte", "embedding_bag_4bit"),
    *("embedding_bag_byte_rowwise_offsets", "embedding_bag_4bit_rowwise_offsets"),
)
def embedding_bag(use):
    if use.position == 2:
        return index(rank=1, role="offsets")
    if use.position != 1:
        return None
    rows = use.known(0).sizes.get(-2)
    if use.kind.startswith("quantized::"):
        shape = packed_shape("embedding_bag", use.constant(0))
        rows = shape[0] if shape else None
    return index(rows, role="bag")


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(use):
    params = recurrent_weights(use)
    if params is None or use.position > (0 if use.kind == "aten::lstm" else 1):
        return None
    if use.position:
        return state(use)
    return ValueRequirements(rank=3, sizes={2: params[0].shape[1]}, dtype=floating(params[0].dtype))


def recurrent_weights(use):
    params = use.constant(2)
    return params if isinstance(params, list) and len(params) > 1 and isinstance(params[0], torch.Tensor) else None


def state(use):
    """Return the need of a recurrent state: layers and directions, batch, width."""
    params, layers, both_ways = recurrent_weights(use), use.constant(4), use.constant(7)
    sizes = {2: params[1].shape[1]}
    if isinstance(layers, int):
        sizes[0] = layers * (2 if both_ways else 1)
    return ValueRequirements(rank=3, sizes=sizes, dtype=floating(params[0].dtype), role="state")


@rule("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(use):
    weight = use.known(2 + use.position) if use.position < 2 else ValueRequirements()
    if weight.rank != 2 or (use.position == 1 and use.kind == "aten::lstm_cell"):
        return None
    return ValueRequirements(rank=2, sizes={1: weight.sizes[-1]}, dtype=floating(weight.dtype))


@rule("_native_multi_head_attention", "_transformer_encoder_layer_fwd", at=0)
def attention(use):
    width = use.integer(3 if "native" in use.kind else 1)
    return ValueRequirements(rank=3, sizes={2: width}) if width is not None else None


@of_list("aten::lstm")
def lstm_state(use):
    return state(use) if recurrent_weights(use) is not None else None
