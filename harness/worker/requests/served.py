"""Guesses at what a model server makes of its clients' requests: named inputs, bound to the arguments of ``forward``.

They are bound as Triton's PyTorch backend binds them (``src/pt/model_instance_state.cc`` in its repository): names are
keys where ``forward`` takes one dict; else all are names of arguments, or all end with the position after their first
``__``, or they stand in the order of the arguments. Control inputs and states are bound by position alone.
"""

import base64
import binascii
import math

import torch

from gate_worker.needs.value_requirements import ValueRequirements
from gate_worker.requests.call_spec import NotServed
from gate_worker.requests.guesses import FIXED, FREE, LEAST, LENGTH, SIDE, WORDS, Guess, Leaf
from gate_worker.requests.values import BadInputs, from_bytes
from gate_worker.values.trees import dtype_name

PLANS = (
    {},
    {"side": 224},
    {"length": 64, "side": 64},
    {"length": 8, "side": 8},
    {"length": 128, "side": 128},
    {"length": 1, "side": 1},
    {"length": 256, "side": 256},
    {"length": 512, "side": 512},
)
"""Sizes of open dimensions that are tried before what torch says of the failures makes others."""
RAGGED = (3, 5, 2, 4, 1)
"""Elements of the requests that a server puts together in one ragged batch, in turn; of an open dimension."""
TEXT = "text"
FAR = 10**9
"""A position that no argument has."""


def batches(request):
    """Return the batch sizes of a request: (1,) where the server makes none."""
    return tuple(request["batches"]) or (1,)


def position(name):
    """Return the position that a name ends with, after its first ``__``; None where it ends with none."""
    _, delimiter, digits = name.partition("__")
    if not delimiter or any(digit not in "0123456789" for digit in digits):
        return None
    digits = digits.lstrip("0")
    return int(digits or 0) if len(digits) < 9 else FAR


class Bound:
    """The inputs of one request, each with the argument of ``forward`` that it becomes."""

    plans = PLANS

    def __init__(self, request, arguments, needs, words):
        self.batches = batches(request)
        self._inputs = request["inputs"]
        self._words = words or WORDS
        self._arguments = arguments
        self._keyed = len(arguments) == 1 and arguments[0].type.kind() == "DictType"
        if self._keyed:
            self._needs = {item["name"]: needs[0].items.get(item["name"]) or needs[0].each for item in self._inputs}
            return
        self._slots = self._in_order(request["ordered"])
        self._needs = {item["name"]: needs[place] for place, item in self._slots.items()}

    def _in_order(self, ordered):
        """Return position -> input; all positions of arguments without a default have one."""
        names = [argument.name for argument in self._arguments]
        for argument in self._arguments:
            if argument.type.kind() not in ("TensorType", "ListType") and not (ordered and argument.has_default):
                raise NotServed("the backend passes tensors and lists of texts, and %s is neither" % argument)
        places = places_of(self._inputs, names, ordered)
        slots = {}
        for item, place in zip(self._inputs, places):
            if place is None:
                raise NotServed("%s ends with no position, and the backend binds it by that alone" % item["name"])
            if place >= len(names):
                raise NotServed("%s is argument %d, and forward takes %d" % (item["name"], place, len(names)))
            if place in slots:
                raise NotServed("%s and %s are both argument %d" % (slots[place]["name"], item["name"], place))
            slots[place] = item
        missing = [argument.name for place, argument in enumerate(self._arguments) if place not in slots]
        if missing and not (ordered and all(self._arguments[names.index(name)].has_default for name in missing)):
            raise NotServed("the configuration has no input for %s" % ", ".join(missing))
        return slots

    def guess(self, batch, length=LENGTH, side=SIDE):
        """Return a ``Guess``: sizes that the configuration leaves open are the graph's, else ``length`` or ``side``."""
        leaves, of_name = [], {}
        for item in self._inputs:
            of_name[item["name"]] = len(leaves)
            leaves.append(self._leaf(item, batch, length, side))
        trees = {name: ("leaf", index) for name, index in of_name.items()}
        if self._keyed:
            return Guess([("dict", list(trees.items()))], leaves)
        return Guess(
            [
                trees[self._slots[place]["name"]] if place in self._slots else ("value", argument.default)
                for place, argument in enumerate(self._arguments)
            ],
            leaves,
        )

    def _leaf(self, item, batch, length, side):
        if "counts" in item:
            source = next((other for other in self._inputs if other["name"] == item["of"]), None)
            if source is None:
                raise NotServed("%s counts the elements of %s, which is no input" % (item["name"], item["of"]))
            return counts(item, Elements(source, length), batch)
        if item["dtype"] == TEXT:
            return texts(elements(item["dims"], length), self._texts(item), batch if item["batched"] else None)
        dtype = getattr(torch, item["dtype"], None)
        if dtype is None:
            raise NotServed("torch %s has no %s, which %s is of" % (torch.__version__, item["dtype"], item["name"]))
        if "cycle" in item:
            return cycle(item["cycle"], dtype, batch if item["batched"] else None)
        if "zero" in item or "bytes" in item:
            return literal(item, dtype, batch if item["batched"] else None)
        need = self._needs.get(item["name"]) or ValueRequirements()
        known = {"below": need.below, "role": need.role if need.role in ("offsets", "lengths") else ""}
        known.update(ranked=True, typed=True, limited=need.below is not None)
        if item["ragged"]:
            return Ragged(Elements(item, length), batch, dtype, known)
        sizes, kinds = self._sizes(item, need, length, side)
        if item["batched"]:
            sizes, kinds = [batch] + sizes, [FIXED] + kinds
        return Leaf(sizes, kinds, dtype, lead=bool(item["batched"]), **known)

    @staticmethod
    def _sizes(item, need, length, side):
        ahead = int(item["batched"])
        rank = ahead + len(item["dims"])
        sizes, kinds = [], []
        need = need.from_front() if need.rank == rank else need
        free = side if rank >= 4 else length
        for index, size in enumerate(item["dims"]):
            place = ahead + index
            if size >= 0:
                sizes.append(size)
                kinds.append(FIXED)
                continue
            wanted = need.sizes.get(place, need.sizes.get(place - rank))
            least = need.least.get(place, need.least.get(place - rank, 0))
            tried = item["sizes"][index] if item.get("sizes") and (length, side) == (LENGTH, SIDE) else 0
            sizes.append(tried or wanted or (least if least > 1 else free))
            kinds.append(LEAST if least > 1 else FREE)
        return sizes, kinds

    def _texts(self, item):
        need = self._needs.get(item["name"])
        needed = list(need.words) + list(need.each.words if need.each is not None else []) if need is not None else []
        return list(dict.fromkeys(needed + list(self._words)))


class BoundByPlace(Bound):
    """The same of a package of AOTInductor, whose call specification names what it takes.

    A package checks no shapes: what does not fit is read beyond its memory. So nothing is tried here, and a request has
    the sizes that the configuration says.
    """

    plans = ({},)

    def __init__(self, request, places):
        self.batches = batches(request)
        self._inputs, self._words, self._needs = request["inputs"], WORDS, {}
        self._places, self._numbers = places, places.numbers_of(self._inputs)
        for item in self._inputs:
            if item["ragged"] or (-1 in item["dims"] and not item.get("sizes")):
                raise NotServed(
                    "the size of %s is open, and a package does not check what it is given: say one in a model_warmup,"
                    " or give requests" % item["name"]
                )

    def guess(self, batch, length=LENGTH, side=SIDE):
        leaves = [self._leaf(item, batch, length, side) for item in self._inputs]
        by_number = [leaves[self._numbers.index(number)] for number in range(len(leaves))]
        keywords = [("dict", self._places.keywords)] if self._places.keywords else []
        return Guess(self._places.arguments + keywords, by_number)


def places_of(inputs, names, ordered):
    """Return the position of each input among the arguments with these names; None for one that has no position.

    ``ordered``: whether the backend takes them in the order of the configuration, whatever their names.
    """
    plain = [item["name"] for item in inputs if item["kind"] == "input"]
    if ordered:
        return list(range(len(inputs)))
    if all(name in names for name in plain):
        by_name = {name: place for place, name in enumerate(names)}
    elif all(position(name) is not None for name in plain):
        by_name = None
    else:
        by_name = {name: place for place, name in enumerate(plain)}
        batch = [item["name"] for item in inputs if item["kind"] == "batch"]
        by_name.update({name: len(plain) + place for place, name in enumerate(batch)})
    by_position = ("control", "state")
    return [
        position(item["name"]) if by_name is None or item["kind"] in by_position else by_name.get(item["name"])
        for item in inputs
    ]


def elements(dims, length):
    return math.prod(length if size < 0 else size for size in dims)


class Elements:
    """How many elements each request of a batch has in one input, and the shape of its own."""

    def __init__(self, item, length):
        self._dims, self._ragged, self._length = item["dims"], item["ragged"], length

    def shape(self, index):
        open_size = RAGGED[index % len(RAGGED)] if self._ragged else self._length
        return [open_size if size < 0 else size for size in self._dims]

    def count(self, index):
        return elements(self.shape(index), 1)


class Made:
    """A leaf whose values follow from the request: no other guess changes it.

    ``text`` and ``values`` are functions of the batch, which is None where the server makes none.
    """

    def __init__(self, batch, text, values):
        self._batch, self._text, self._values = batch, text, values

    def of_batch(self, batch):
        return Made(None if self._batch is None else batch, self._text, self._values)

    def __str__(self):
        return self._text(self._batch)

    def make(self, _generator):
        return self._values(self._batch)


def in_turn(values, count):
    return [values[index % len(values)] for index in range(count)]


def texts(count, words, batch):
    def number(batch):
        return count if batch is None else count * batch

    return Made(batch, lambda batch: "%d texts" % number(batch), lambda batch: in_turn(words, number(batch)))


def cycle(values, dtype, batch):
    """Return a tensor of one value for each request of a batch, in turn; of one value where there is no batch."""
    shown = " and ".join(map(str, dict.fromkeys(values)))

    def text(batch):
        return "%s%s of %s" % (dtype_name(dtype), [1] if batch is None else [batch, 1], shown)

    def made(batch):
        rows = [[value] for value in in_turn(values, 1 if batch is None else batch)]
        return torch.tensor(rows[0] if batch is None else rows, dtype=dtype)

    return Made(batch, text, made)


def literal(item, dtype, batch):
    """Return a tensor of zeros, or of bytes that the configuration names; each request of a batch has the same."""
    dims, data = list(item["dims"]), item.get("bytes")

    def text(batch):
        what = "of zeros" if data is None else "of its file"
        return "%s%s %s" % (dtype_name(dtype), ([] if batch is None else [batch]) + dims, what)

    def made(batch):
        try:
            given = None if data is None else from_bytes(base64.b64decode(data), dtype, dims, item["name"])
        except (BadInputs, binascii.Error) as error:
            raise ValueError(str(error))
        row = torch.zeros(dims, dtype=dtype) if given is None else given
        return row if batch is None else row.expand([batch] + dims).contiguous()

    return Made(batch, text, made)


class Ragged(Leaf):
    """The elements of all requests of a batch, one behind the other, in one dimension."""

    def __init__(self, elements_of_each, batch, dtype, known):
        self._each = elements_of_each
        Leaf.__init__(self, [self._total(batch)], [FIXED], dtype, **known)

    def _total(self, batch):
        return sum(self._each.count(index) for index in range(batch))

    def of_batch(self, batch):
        return self.but(sizes=[self._total(batch)])


def counts(item, source, batch):
    """Return what a server counts of the requests in a batch, for the model: ``batch_input`` of the configuration."""
    dtype = getattr(torch, item["dtype"])

    def made(batch):
        each = [source.count(index) for index in range(batch)]
        sums = [sum(each[: index + 1]) for index in range(batch)]
        shapes = [source.shape(index) for index in range(batch)]
        values = {
            "BATCH_ELEMENT_COUNT": each,
            "BATCH_ACCUMULATED_ELEMENT_COUNT": sums,
            "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": [0] + sums,
            "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": [0] * max(each),
            "BATCH_ITEM_SHAPE": shapes,
            "BATCH_ITEM_SHAPE_FLATTEN": [size for shape in shapes for size in shape],
        }
        return torch.tensor(values[item["counts"]], dtype=dtype)

    return Made(batch, lambda batch: "%s%s counted" % (dtype_name(dtype), list(made(batch).shape)), made)
