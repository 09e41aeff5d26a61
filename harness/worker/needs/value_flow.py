"""Where the values of an inlined graph go, under which names, and which sizes they certainly have before any call."""

import torch

from gate_worker.needs.value_requirements import ValueRequirements

UNKNOWN = object()
MOST_NODES = 200_000
MOST_DEPTH = 40
MOST_WORDS = 16
# Nodes whose first output is their first input.
SAME_VALUE = ("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "aten::wait")
ALWAYS_STATEFUL = ("prim::SetAttr", "aten::copy_", "aten::index_put_")
READS_NUMBERS = ("aten::Int", "aten::IntImplicit", "aten::ScalarImplicit", "aten::item", "aten::tolist", "prim::tolist")
READS_NUMBERS += ("aten::repeat_interleave", "aten::one_hot", "aten::bincount", "aten::_pad_packed_sequence")
CHANGES_FIRST = frozenset(
    "aten::" + name
    for name in ("_set_item", "append", "clear", "extend", "insert", "pop", "popitem", "update", "Delete")
)


class Step:
    """One node: its kind, and the names of what goes in and comes out."""

    def __init__(self, node, prefix):
        self.node = node
        self.kind = node.kind()
        self.inputs = [prefix + value.debugName() for value in node.inputs()]
        self.outputs = [prefix + value.debugName() for value in node.outputs()]


class Flow:
    """The values of one method, by name; blocks of If and Loop and forked subgraphs are parts of one flow.

    ``arguments`` are the names of the method's arguments, in order, without ``self``. ``sizes`` is what
    ``known`` has returned.
    """

    def __init__(self, module, method):
        graph = module._c._get_method(method).graph.copy()
        torch._C._jit_pass_inline(graph)
        self._graphs = [graph]  # nodes do not keep their graph alive
        self._module = module._c
        self._consumers = {}
        self._producers = {}
        self._aliases = {}
        self._constants = {}
        self.sizes = {}
        self._origins = {}
        self._count = 0
        self._loops_while = False
        names = [value.debugName() for value in graph.inputs()]
        self._self = names[0]
        self.arguments = names[1:]
        self._walk(graph, "")

    def consumers(self, name):
        return self._consumers.get(name, [])

    def aliases(self, name):
        """Return the names under which the same value goes on: results of branches, variables of loops."""
        return self._aliases.get(name, [])

    def origins(self, name):
        return self._origins.get(name, [])

    def producer(self, name):
        return self._producers.get(name)

    def constant(self, name, depth=0):
        """Return the constant, or the attribute of the module, that a value is; ``UNKNOWN`` where it is neither."""
        if name not in self._constants:
            self._constants[name] = UNKNOWN  # of a value that is made of itself, in a loop
            self._constants[name] = self._constant(name, depth)
        return self._constants[name]

    def _constant(self, name, depth):
        step = self._producers.get(name)
        if name == self._self:
            return self._module
        if step is None or depth > MOST_DEPTH:
            return self._first_known(name, depth)
        try:
            if step.kind == "prim::Constant":
                return step.node.output().toIValue()
            if step.kind == "prim::GetAttr":
                owner, name = self.constant(step.inputs[0], depth + 1), step.node.s("name")
                return owner.getattr(name) if hasattr(owner, "getattr") else getattr(owner, name)
            if step.kind == "prim::ListConstruct":
                items = [self.constant(item, depth + 1) for item in step.inputs]
                return UNKNOWN if any(item is UNKNOWN for item in items) else items
            if step.kind in SAME_VALUE or step.kind in ("aten::detach", "aten::contiguous"):
                return self.constant(step.inputs[0], depth + 1)
            if step.kind == "aten::__getitem__":
                owner, key = [self.constant(item, depth + 1) for item in step.inputs[:2]]
                return UNKNOWN if UNKNOWN is key else owner[key]
        except (AttributeError, KeyError, IndexError, TypeError, RuntimeError):
            return UNKNOWN
        return self._first_known(name, depth)

    def _first_known(self, name, depth):
        for origin in self.origins(name) if depth <= MOST_DEPTH else ():
            value = self.constant(origin, depth + 1)
            if value is not UNKNOWN and value is not None:
                return value
        return UNKNOWN

    def keeps_state(self):
        """Whether a call may leave the module otherwise than it was: attributes are set, or changed in place."""
        for steps in self._consumers.values():
            for step, position in steps:
                if step.kind in ALWAYS_STATEFUL:
                    return True
                changes = step.kind in CHANGES_FIRST or (step.kind.endswith("_") and not step.kind.endswith("__"))
                owner = self._producers.get(step.inputs[0])
                if changes and position == 0 and owner is not None and owner.kind == "prim::GetAttr":
                    return True
        return False

    def reads_numbers(self):
        """Whether numbers are read out of tensors, or say how long a loop goes on: they may be sizes, or count it."""
        return self._loops_while or any(step.kind in READS_NUMBERS for step in self._producers.values())

    def attribute_words(self):
        """Return the strings in those lists and dicts among the module's attributes that the method uses."""
        words = []
        for name, step in self._producers.items():
            if step.kind == "prim::GetAttr" and not str(step.node.output().type()).startswith("__torch__"):
                value = self.constant(name)
                if isinstance(value, (list, dict)):
                    words.extend(item for item in value if isinstance(item, str))
        return tuple(dict.fromkeys(words))[:MOST_WORDS]

    def _walk(self, block, prefix):
        for node in block.nodes():
            self._count += 1
            if self._count > MOST_NODES:
                return
            step = Step(node, prefix)
            for position, name in enumerate(step.inputs):
                self._consumers.setdefault(name, []).append((step, position))
            for name in step.outputs:
                self._producers[name] = step
            if step.kind == "prim::If":
                self._branches(step, prefix)
            elif step.kind == "prim::Loop":
                self._loop(step, prefix)
            elif step.kind == "prim::fork" and node.hasAttribute("Subgraph"):
                self._fork(step)

    def _branches(self, step, prefix):
        for block in step.node.blocks():
            self._walk(block, prefix)
            for inner, outer in zip(block.outputs(), step.outputs):
                self._alias(prefix + inner.debugName(), outer)

    def _loop(self, step, prefix):
        (block,) = step.node.blocks()
        self._loops_while |= next(iter(block.outputs())).node().kind() != "prim::Constant"
        carried = [prefix + value.debugName() for value in block.inputs()][1:]
        left = [prefix + value.debugName() for value in block.outputs()][1:]
        for given, name, end, result in zip(step.inputs[2:], carried, left, step.outputs):
            self._alias(given, name)
            self._alias(given, result)
            self._alias(end, name)
            self._alias(end, result)
        self._walk(block, prefix)

    def _fork(self, step):
        graph = step.node.g("Subgraph").copy()
        torch._C._jit_pass_inline(graph)
        self._graphs.append(graph)
        inner = "fork%d:" % len(self._graphs)
        for given, value in zip(step.inputs, graph.inputs()):
            self._alias(given, inner + value.debugName())
        self._walk(graph, inner)
        for value, name in zip(graph.outputs(), step.outputs):
            self._alias(inner + value.debugName(), name)

    def _alias(self, source, target):
        self._aliases.setdefault(source, []).append(target)
        self._origins.setdefault(target, []).append(source)


DEEPEST_SIZES = 25
NAMES = """
    abs add sub mul div rsub pow relu relu_ gelu silu silu_ tanh sigmoid exp log sqrt rsqrt square neg clamp
    clamp_min dropout dropout_ softmax log_softmax contiguous clone detach hardswish hardtanh leaky_relu elu maximum
    minimum remainder floor round layer_norm batch_norm linalg_cholesky to type_as masked_fill normal where add_
    mul_ sub_ div_ cos sin float half cumsum conj bitwise_and bitwise_or bitwise_xor floor_divide fmod prelu
    feature_dropout group_norm instance_norm hardsigmoid softplus mish selu celu relu6 lerp nan_to_num sign expm1
    log1p erf
"""
ELEMENTWISE = frozenset(NAMES.split())

CASTS = frozenset(("double", "long", "int", "bool", "bfloat16", "cpu", "cuda", "dequantize"))


def known(flow, name, depth=0):
    """Return the rank and sizes that a value certainly has, as requirements; dimensions count from the back."""
    if name not in flow.sizes:
        flow.sizes[name] = ValueRequirements()  # of a value that is made of itself, in a loop
        flow.sizes[name] = _known(flow, name, depth)
    return flow.sizes[name]


def _known(flow, name, depth):
    value, step = flow.constant(name), flow.producer(name)
    if isinstance(value, torch.Tensor):
        sizes = {d - value.dim(): size for d, size in enumerate(value.shape)}
        return ValueRequirements(dtype=value.dtype, rank=value.dim(), sizes=sizes)
    if depth > DEEPEST_SIZES:
        return ValueRequirements()
    if step is None or step.kind in ("prim::If", "prim::Loop"):
        need = ValueRequirements()
        for origin in flow.origins(name)[:3]:
            need.merge(known(flow, origin, depth + 1))
        return need
    if not step.kind.startswith("aten::"):
        return ValueRequirements()
    what = step.kind[6:]

    def of(place):
        return known(flow, step.inputs[place], depth + 1)

    if what in ELEMENTWISE or what in CASTS:
        return _broadcast([known(flow, item, depth + 1) for item in step.inputs[:2]])
    if what == "linear":
        return _last(of(1), -2, of(0))
    if what == "one_hot":
        classes = flow.constant(step.inputs[1])
        return ValueRequirements(sizes={-1: classes} if isinstance(classes, int) and classes > 0 else {})
    if what == "embedding":
        need = _last(of(0), -1, ValueRequirements())
        need.sizes.update({d - 1: size for d, size in of(1).sizes.items()})
        return need
    if what == "embedding_bag":
        return _last(of(0), -1, ValueRequirements(rank=2))
    if what in ("matmul", "bmm", "mm"):
        return _last(of(1), -1, of(0))
    if what == "t" or (what in ("transpose", "unsqueeze", "squeeze") and len(step.inputs) > 1):
        return _moved(flow, step, what, of(0))
    return ValueRequirements()


def _broadcast(operands):
    merged = ValueRequirements()
    for need in operands:
        merged.merge(need.reshaped(None, lambda d: d))
    for dimension in list(merged.sizes):
        sizes = [need.sizes[dimension] for need in operands if need.sizes.get(dimension, 1) != 1]
        if sizes:
            merged.sizes[dimension] = sizes[0]
        else:
            del merged.sizes[dimension]
    return merged


def _last(weight, dimension, before):
    """Return ``before`` with its last size replaced by that of the weight's ``dimension``."""
    need = before.reshaped(before.rank, lambda d: d if d < -1 else None)
    need.dtype = weight.dtype
    if dimension in weight.sizes:
        need.sizes[-1] = weight.sizes[dimension]
    return need


def _moved(flow, step, what, need):
    numbers = [flow.constant(item) for item in step.inputs[1:]]
    if not all(isinstance(number, int) for number in numbers):
        return ValueRequirements()
    if what in ("t", "transpose"):
        moved = need.transposed(*([-2, -1] if what == "t" else numbers[:2]))
    else:
        moved = need.one_more(numbers[0]) if what == "unsqueeze" else need.one_less(numbers[0])
    rank = moved.rank
    if rank is None:
        return moved.reshaped(None, lambda d: d if d < 0 else None)
    return moved.reshaped(rank, lambda d: d if d < 0 else d - rank)
