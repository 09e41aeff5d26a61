"""Branches and loops that data decides, as ``torch.cond`` and ``while_loop`` of the program: both ways are in it.

The operators are called themselves, not ``torch.cond``: that would have Dynamo read the function that walks a block.
Everything that a block uses, and that a program may vary, is an operand: tensors around it, parameters, sizes, and
numbers that follow from data, which are tensors of one element outside of the block and numbers inside.
"""

import torch
from torch.utils import _pytree as pytree

from gate_worker.graph import nodes
from gate_worker.successor import values

try:
    from torch._higher_order_ops.cond import cond_op
    from torch._higher_order_ops.while_loop import while_loop_op
except ImportError:  # of an older release
    cond_op = while_loop_op = None

DTYPE_OF = {int: torch.int64, float: torch.float64, bool: torch.bool}
RAISES = "prim::RaiseException"


class NotJoined(Exception):
    """The ways differ in more than values."""


def is_possible():
    return cond_op is not None


def raises(block):
    return any(step.kind == RAISES for step in block.steps)


def branch(walk, step, condition, known, place):
    """Return the outputs of a ``prim::If`` whose ``condition``, a SymBool, data decides.

    Args:
        known: name -> value, of everything before the node.
    """
    blocks = walk.blocks(step)
    around = Surroundings(known, [name for block in blocks for name in free(block, walk)])

    def way(index, given):
        return walk.through(blocks[index], given, place + (index,))

    uses = [walk.rehearse(condition, around, lambda given, index=index: way(index, given)) for index in range(2)]
    use = uses[0].beside(uses[1])
    outputs = Outputs(*(each.gives(use) for each in uses))
    entry = Entry(around, use)

    def traced(index):
        def run(*operands):
            given, own = entry.opened(operands)
            with walk.scope(own):
                output = way(index, given)
                return outputs.dynamic([output, {name: given[name] for name in use.refilled}, *use.states(walk)])

        return run

    output, containers, *states = outputs.filled(
        cond_op(as_tensor(condition, bool), traced(0), traced(1), entry.operands)
    )
    around.refill(containers)
    use.change(walk, *states)
    for each in uses:
        walk.hand_on(each, [output, containers])
    return output


def loop(walk, step, state, known, place):
    """Return what a ``prim::Loop`` carries out of its turns, of which data decides the last one.

    Args:
        state: how many turns there may be, the next turn, whether to go on, and what is carried into the turn.
    """
    limit, *state = state
    condition = state[1] if varies(state[1]) else limit
    (body,) = walk.blocks(step)
    around = Surroundings(known, free(body, walk))

    def way(given, state):
        turn, _, *carried = state
        return [turn + 1, *walk.through(body, {**given, **dict(zip(body.inputs, [turn, *carried]))}, place + ("turn",))]

    begun = Carried(state)
    use = walk.rehearse(condition, around, lambda given: way(given, begun.filled(begun.operands)))
    if use.refilled:
        raise NotJoined("a loop that data ends changes a list or a dict from outside of it")
    output, _, *states = use.gives(use)
    start = Carried([state, *use.states(walk)])
    start.require([output, *states])
    entry, own = Entry(around, use), len(start.operands)

    def goes_on(*operands):
        return torch.logical_and(operands[0] < operands[own], operands[1])

    def turned(*operands):
        writes = use.written or use.writes(begun.operands)
        carried = [operand.clone() for operand in operands[:own]] if writes else operands[:own]
        now, rebound, written = start.filled(carried)
        given, replaced = entry.opened(operands[own + 1 :], written)
        with walk.scope({**replaced, **rebound}):
            return start.dynamic([way(given, now), *use.states(walk)])

    last = torch.scalar_tensor(limit, dtype=torch.int64)
    after, *states = start.filled(while_loop_op(goes_on, turned, start.operands, (last, *entry.operands)))
    use.change(walk, *states)
    walk.hand_on(use, after)
    return after[2:]


def free(block, walk):
    """Return the names that a block uses and does not define, with those of the blocks in it."""
    bound, used = set(block.inputs), []
    for step in block.steps:
        used += [name for name in step.inputs if name not in bound]
        if step.kind in ("prim::If", "prim::Loop"):
            used += [name for inner in walk.blocks(step) for name in free(inner, walk) if name not in bound]
        bound.update(step.outputs)
    return list(dict.fromkeys(used + [name for name in block.outputs if name not in bound]))


class Use:
    """What a block has used and given in a rehearsal.

    Attributes:
        touched: number -> registered tensor that it used, and ``current``: what that was before the block.
        rebound: number -> registered tensor that it set to another one.
        written: number -> tensor that it changed in place, registered or around it.
        refilled: names of containers around it whose content it changed.
        shares: whether it hands on what lies in the memory of a tensor around it, or of another one that it hands on.
    """

    def __init__(self, around, touched, current, rebound, writes):
        self.around, self.touched, self.current, self.rebound, self._writes = around, touched, current, rebound, writes
        self.written = {}
        for tensor in around.tensors:
            self.written.update({self.key_of(tensor): tensor} if shared(tensor, writes) else {})
        self.written.update({key: held for key, held in touched.items() if shared(current[key], writes)})
        for key in self.written:
            others = [tensor for tensor in self.tensors if self.key_of(tensor) != key]
            if key in rebound or shared(self.current.get(key, self.written[key]), others):
                raise NotJoined("a block that data decides changes in place what has a second name")

    def key_of(self, tensor):
        return next((key for key, current in self.current.items() if current is tensor), id(tensor))

    @property
    def tensors(self):
        return [*self.around.tensors, *self.current.values()]

    def end(self, output, given, states):
        """Take note of what the block gives; ``states``: number -> what a registered tensor is after it."""
        self._output, self._given, self._states = output, given, states
        self.refilled = self.around.refilled(given)
        own = tensors_in([output, given if self.refilled else None])
        self.shares = any(shared(tensor, self.tensors + own[:index]) for index, tensor in enumerate(own))

    def beside(self, other):
        """Return the use of this way of a branch and of the other one, for what both have to give."""
        use = Use(
            self.around,
            {**self.touched, **other.touched},
            {**self.current, **other.current},
            {**self.rebound, **other.rebound},
            self._writes + other._writes,
        )
        use.refilled = self.refilled | other.refilled
        return use

    def gives(self, of_both):
        """Return the output, the containers that change, and by number what is rebound, and what is written."""
        rebound = {key: self._states.get(key, of_both.current[key]) for key in of_both.rebound}
        written = {key: of_both.current.get(key, tensor) for key, tensor in of_both.written.items()}
        return [self._output, {name: self._given[name] for name in of_both.refilled}, rebound, written]

    def states(self, walk):
        return [walk.current(self.rebound), walk.current(self.written)]

    def change(self, walk, rebound, written):
        walk.change(self.rebound, rebound)
        walk.change_in_place(self.written, written)

    def writes(self, tensors):
        return any(shared(tensor, self._writes) for tensor in tensors)


class Entry:
    """The way into a block: each of its operands once, which is all that an operator takes."""

    def __init__(self, around, use):
        self._around, self._use = around, use
        given = [*around.operands, *use.current.values()]
        once = {id(operand): operand for operand in given}
        order = {key: index for index, key in enumerate(once)}
        self.operands, self._positions = tuple(once.values()), [order[id(operand)] for operand in given]

    def opened(self, operands, written=None):
        """Return the values around the block, and number -> what stands for a tensor in it.

        ``written``: what stands for those that the block changes in place; by default copies of the operands.
        """
        operands = [operands[position] for position in self._positions]
        beside = len(self._around.operands)
        own = dict(zip(self._use.current, operands[beside:]))
        keys = [self._use.key_of(operand) for operand in self._around.operands]
        places = {**dict(zip(keys, operands)), **own}
        if written is None:
            written = {key: places[key].clone() for key in self._use.written}
        around = [written.get(key, operand) for key, operand in zip(keys, operands)]
        return self._around.filled(around), {**own, **written}


class Surroundings:
    """Values around a block; those that may vary are its operands.

    Args:
        known: name -> value; containers of tensors and numbers too; ``names``: those that the block uses.
    """

    def __init__(self, known, names):
        self._known = {name: known[name] for name in names if name in known}
        self._leaves, self._spec = pytree.tree_flatten(self._known)
        if any(isinstance(leaf, nodes.Instance) for leaf in self._leaves):
            raise NotJoined("a block that data decides uses an object")
        self.tensors = tensors_in(self._leaves)
        self._varied = [index for index, leaf in enumerate(self._leaves) if varies(leaf)]
        self.operands = tuple(as_operand(self._leaves[index]) for index in self._varied)

    def copy(self):
        """Return the values, in containers of their own."""
        return pytree.tree_unflatten(self._leaves, self._spec)

    def refilled(self, given):
        """Return the names of the containers in a copy whose content is another by now."""
        return {name for name, value in given.items() if not is_same(value, self._known[name])}

    def filled(self, operands):
        leaves = list(self._leaves)
        for index, operand in zip(self._varied, operands):
            leaves[index] = as_value(operand, self._leaves[index])
        return pytree.tree_unflatten(leaves, self._spec)

    def refill(self, containers):
        for name, value in containers.items():
            own = self._known[name]
            if isinstance(own, list):
                own[:] = value
            else:
                own.clear()
                own.update(value)


def is_same(value, other):
    (leaves, spec), (others, spec_of_other) = pytree.tree_flatten(value), pytree.tree_flatten(other)
    return spec == spec_of_other and all(leaf is beside for leaf, beside in zip(leaves, others))


class Flat:
    """Values flat: each is a tensor, a number of a kind that is one outside of the block, or static.

    Args:
        kinds: of each leaf, ``torch.Tensor``, a type of ``DTYPE_OF``, or None: it is what it is in ``leaves``.
    """

    def __init__(self, leaves, spec, kinds):
        self._leaves, self._spec, self._kinds = leaves, spec, kinds

    def dynamic(self, values_):
        leaves = pytree.tree_leaves(values_)
        return tuple(as_tensor(leaf, kind) for leaf, kind in zip(leaves, self._kinds) if kind is not None)

    def filled(self, tensors):
        tensors = iter(tensors)
        leaves = [
            leaf if kind is None else of_kind(next(tensors), kind) for leaf, kind in zip(self._leaves, self._kinds)
        ]
        return pytree.tree_unflatten(leaves, self._spec)


class Outputs(Flat):
    """What the two ways of a branch give: static is what both have alike."""

    def __init__(self, first, second):
        (left, spec), (right, other) = pytree.tree_flatten(first), pytree.tree_flatten(second)
        if spec != other:
            raise NotJoined("the two ways of a branch differ in the structure of what they give")
        super().__init__(left, spec, [kind_of_both(*pair) for pair in zip(left, right)])


class Carried(Flat):
    """What a loop carries from turn to turn: static is what is neither tensor nor number."""

    def __init__(self, state):
        leaves, spec = pytree.tree_flatten(state)
        super().__init__(leaves, spec, [kind_of(leaf) for leaf in leaves])
        self.operands = self.dynamic(state)

    def require(self, after):
        leaves, spec = pytree.tree_flatten(after)
        if spec != self._spec or [kind_of(leaf) for leaf in leaves] != self._kinds:
            raise NotJoined("a turn of the loop changes the structure or the types of what it carries")
        static = [pair for *pair, kind in zip(self._leaves, leaves, self._kinds) if kind is None]
        if any(before is not now and before != now for before, now in static):
            raise NotJoined("a turn of the loop changes a value that is neither tensor nor number")


def tensors_in(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def shared(tensor, others):
    """Whether the tensor lies in the memory of one of the others, all of which are alive."""
    storage = tensor.untyped_storage()._cdata
    return any(other.untyped_storage()._cdata == storage for other in others)


def varies(leaf):
    return isinstance(leaf, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool))


def as_operand(leaf):
    return leaf if isinstance(leaf, (torch.Tensor, torch.SymInt)) else as_tensor(leaf, number_kind(leaf))


def as_value(operand, like):
    return operand if isinstance(like, (torch.Tensor, torch.SymInt)) else of_kind(operand, number_kind(like))


def number_kind(leaf):
    """Return bool, int or float of a number, symbolic or not; None of anything else."""
    if isinstance(leaf, (bool, torch.SymBool)):
        return bool
    if isinstance(leaf, (int, torch.SymInt)):
        return int
    return float if isinstance(leaf, (float, torch.SymFloat)) else None


def kind_of(leaf):
    return torch.Tensor if isinstance(leaf, torch.Tensor) else number_kind(leaf)


def kind_of_both(left, right):
    """Return what a leaf of both ways becomes: a tensor, a number of a kind, or None: it is the same in both."""
    if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        if left is None or right is None:
            raise NotJoined("one way of a branch gives a tensor, the other None")
        return torch.Tensor
    kinds = number_kind(left), number_kind(right)
    if kinds[0] is not kinds[1]:
        raise NotJoined("the two ways of a branch give numbers of other types")
    symbolic = varies(left) or varies(right)
    if not symbolic and (left is right or left == right):
        return None
    if kinds[0] is None:
        raise NotJoined("the two ways of a branch give other values that are neither tensors nor numbers")
    return kinds[0]


def as_tensor(leaf, kind):
    """Return a leaf as an operator hands it out: no view of an operand, nor an operand itself."""
    if kind is torch.Tensor:
        return values.tensor_of(leaf).clone(memory_format=torch.contiguous_format)
    if isinstance(leaf, torch.Tensor):
        return leaf.to(DTYPE_OF[kind])
    return torch.scalar_tensor(leaf, dtype=DTYPE_OF[kind])


def of_kind(tensor, kind):
    return tensor if kind is torch.Tensor else values.item_of(tensor)
