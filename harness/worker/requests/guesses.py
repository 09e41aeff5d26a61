"""A guess at the arguments of a call: a tree of values whose tensors are described, not made yet."""

import copy

import torch

from gate_worker.needs.value_requirements import ValueRequirements
from gate_worker.requests.draws import whole_numbers

BATCH, LENGTH, SIDE = 2, 16, 32
# A size that the graph tells, that of the batch, one that may be any, and one that subscripts bound from below.
FIXED, BATCHED, FREE, LEAST = "fixed", "batch", "free", "least"
WORDS = ("a", "b")
INTEGER_ROLES = ("offsets", "lengths", "bag")


class Leaf:
    """A tensor of a guess: sizes with what each is (see above), dtype, and what fills it.

    ``below``: a bound of its whole numbers, which the graph has told where ``limited``; ``span``: the whole numbers
    between which it is drawn instead. ``ranked``, ``typed``: its rank and its dtype are known, and no others are tried.
    ``lead``: its first size is the batch's, as a server makes them.
    """

    below = span = None
    role = ""
    ranked = positive = typed = lead = limited = False

    def __init__(self, sizes, kinds, dtype, **facts):
        self.sizes, self.kinds, self.dtype = list(sizes), list(kinds), dtype
        vars(self).update(facts)

    def but(self, **facts):
        other = copy.copy(self)
        other.sizes, other.kinds = list(self.sizes), list(self.kinds)
        vars(other).update(facts)
        return other

    def __str__(self):
        return "%s%s%s" % (str(self.dtype).replace("torch.", ""), self.sizes, " > 0" if self.positive else "")

    @property
    def is_open(self):
        """Whether nothing but the dtype bounds its whole numbers."""
        whole = not (self.dtype.is_floating_point or self.dtype.is_complex or self.dtype == torch.bool)
        return whole and not self.role and not self.limited

    def of_batch(self, batch):
        is_batch = [kind == BATCHED or (self.lead and place == 0) for place, kind in enumerate(self.kinds)]
        return self.but(sizes=[batch if is_its else size for size, is_its in zip(self.sizes, is_batch)])

    def make(self, generator):
        """Return a tensor: normal numbers, ids below a bound, starts of bags, or lengths of sequences."""
        if self.span is not None:
            return whole_numbers(self.sizes, self.dtype, self.span, generator)
        if self.role == "offsets":
            return torch.arange(self.sizes[-1]).expand(self.sizes).contiguous().to(self.dtype)
        if self.role == "lengths":
            most = max(2, (self.below or LENGTH) + 1)
            return torch.randint(1, most, self.sizes, generator=generator).to(self.dtype)
        if self.dtype.is_complex:
            return torch.randn(self.sizes, generator=generator).to(self.dtype)
        if self.dtype.is_floating_point:
            drawn = torch.randn(self.sizes, generator=generator)
            return (drawn.abs() + 0.01 if self.positive else drawn).to(self.dtype)
        return torch.randint(self.below or 2, self.sizes, generator=generator).to(self.dtype)


class Number:
    """An int argument of a guess, which another guess may vary."""

    def __init__(self, value):
        self.value = value

    def of_batch(self, _batch):
        return self

    def __str__(self):
        return str(self.value)

    def make(self, _generator):
        return self.value


class Guess:
    """Arguments as trees of ("leaf", index), ("value", v), ("list" or "tuple", [...]) and ("dict", [(key, tree)])."""

    def __init__(self, trees, leaves):
        self.trees = trees
        self.leaves = leaves

    def varied(self, changes):
        """Return another guess; ``changes`` maps the index of a leaf to what takes its place."""
        return Guess(self.trees, [changes.get(index, leaf) for index, leaf in enumerate(self.leaves)])

    def positive(self):
        """Return the guess with positive numbers in its floating tensors: logarithms and roots take no others."""
        floating = [(index, leaf) for index, leaf in self.tensors() if leaf.dtype.is_floating_point]
        return self.varied({index: leaf.but(positive=True) for index, leaf in floating})

    def of_batch(self, batch):
        """Return the guess for another batch; None where nothing of it has one."""
        other = Guess(self.trees, [leaf.of_batch(batch) for leaf in self.leaves])
        return None if list(map(str, other.leaves)) == list(map(str, self.leaves)) else other

    def tensors(self):
        return [(index, leaf) for index, leaf in enumerate(self.leaves) if isinstance(leaf, Leaf)]

    def arguments(self, seed, device):
        generator = torch.Generator().manual_seed(seed)
        return tuple(self._made(tree, generator, device) for tree in self.trees)

    def _made(self, tree, generator, device):
        kind, content = tree
        if kind == "leaf":
            made = self.leaves[content].make(generator)
            return made.to(device) if isinstance(made, torch.Tensor) else made
        if kind == "value":
            return content
        if kind == "dict":
            return {key: self._made(item, generator, device) for key, item in content}
        items = [self._made(item, generator, device) for item in content]
        return tuple(items) if kind == "tuple" else items

    def described(self, names):
        """Return ``x=float32[2, 16], steps=2``."""
        return ", ".join("%s=%s" % (name, self.text(tree)) for name, tree in zip(names, self.trees))

    def text(self, tree):
        kind, content = tree
        if kind == "leaf":
            return str(self.leaves[content])
        if kind == "value":
            return repr(content)
        if kind == "dict":
            return "{%s}" % ", ".join("%r: %s" % (key, self.text(item)) for key, item in content)
        return ("(%s)" if kind == "tuple" else "[%s]") % ", ".join(self.text(item) for item in content)


class CannotGuess(Exception):
    """An argument has a type that nothing can be made up for."""


class Guesser:
    """Makes first guesses from types and needs; ``batch``, ``length`` and ``side`` are the sizes of what is free."""

    def __init__(self, *, batch=BATCH, length=LENGTH, side=SIDE, dtype=torch.float32, words=WORDS, elements=2):
        self.batch, self.length, self.side = batch, length, side
        self.dtype = dtype
        self.words = words
        self.elements = elements
        self._leaves = []

    def guess(self, arguments, needs, device):
        """Return a ``Guess``; raise ``CannotGuess`` for a type that cannot be made up."""
        self._leaves = []
        self._bags_by_offsets = any(need.role == "offsets" for need in flattened(needs))
        trees = []
        for argument, need in zip(arguments, needs):
            if argument.is_foreign:  # left out, with what stands behind it, which has a default too
                break
            if argument.has_default and not isinstance(argument.default, torch.Tensor):
                trees.append(("value", argument.default))
            else:
                trees.append(self._tree(argument.type, need, device))
        return Guess(trees, self._leaves)

    def _tree(self, kind, need, device):
        name = kind.kind()
        if name == "OptionalType":
            return ("value", None)
        if name == "TensorType":
            return self._leaf(self._tensor(need))
        if name in ("IntType", "NumberType"):
            return self._leaf(Number(2 if need.below is None else min(2, need.below - 1)))
        if name in ("FloatType", "BoolType"):
            return ("value", 0.5 if name == "FloatType" else False)
        if name == "StringType":
            return ("value", need.words[0] if need.words else self.words[0])
        if name == "DeviceObjType":
            return ("value", torch.device(device))
        if name == "ListType":
            return self._list(kind, need, device)
        if name == "TupleType":
            items = [
                self._tree(item, need.items.get(index, need.each or ValueRequirements()), device)
                for index, item in enumerate(kind.elements())
            ]
            return ("tuple", items)
        if name == "DictType":
            return self._dict(kind, need, device)
        raise CannotGuess(kind.annotation_str)

    def _list(self, kind, need, device):
        places = [index for index in need.items if isinstance(index, int)]
        count = 1 + max([index if index >= 0 else -index - 1 for index in places]) if places else self.elements
        items = []
        for index in range(count):
            element = ValueRequirements().merge(need.items.get(index, need.items.get(index - count))).merge(need.each)
            items.append(self._tree(kind.getElementType(), element, device))
        return ("list", items)

    def _dict(self, kind, need, device):
        keys = [key for key in need.items if isinstance(key, str)]
        if kind.getKeyType().kind() == "StringType":
            keys = keys or list(self.words)
        elif kind.getKeyType().kind() == "IntType":
            keys = [key for key in need.items if isinstance(key, int)] or [0, 1]
        else:
            raise CannotGuess(kind.annotation_str)
        pairs = []
        for key in keys:
            element = ValueRequirements().merge(need.items.get(key)).merge(need.each)
            pairs.append((key, self._tree(kind.getValueType(), element, device)))
        return ("dict", pairs)

    def _leaf(self, leaf):
        self._leaves.append(leaf)
        return ("leaf", len(self._leaves) - 1)

    def _tensor(self, need):
        need = need.from_front()
        rank, ranked = need.rank, need.rank is not None
        if rank is None:
            front = [d for d in list(need.sizes) + list(need.least) if d >= 0]
            back = [-d for d in list(need.sizes) + list(need.least) if d < 0]
            flat = need.role == "bag" and self._bags_by_offsets
            rank = max([1 if flat else 2] + [d + 1 for d in front] + back)
        dtype = torch.int64 if need.role in INTEGER_ROLES else need.dtype or self.dtype
        sizes, kinds = [], []
        for place in range(rank):
            size = need.sizes.get(place, need.sizes.get(place - rank))
            least = need.least.get(place, need.least.get(place - rank, 0))
            if size is not None and size >= 0:
                sizes.append(size)
                kinds.append(FIXED)
            elif place == (1 if need.role == "state" else 0):
                sizes.append(max(self.batch, least))
                kinds.append(BATCHED if least <= self.batch else LEAST)
            else:
                free = self.side if rank >= 4 else self.length
                sizes.append(least if least > 1 else free)
                kinds.append(LEAST if least > 1 else FREE)
        limited = need.below is not None
        return Leaf(sizes, kinds, dtype, below=need.below, role=need.role, ranked=ranked, limited=limited)


def flattened(needs):
    every = list(needs)
    for need in needs:
        every.extend(flattened(list(need.items.values()) + ([need.each] if need.each is not None else [])))
    return every
