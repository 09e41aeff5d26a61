"""What the graph of a method tells of its arguments, by following each of them to its consumers."""

import torch

from gate_worker.needs import rules  # noqa: F401  they fill the tables
from gate_worker.needs.rules import OF_LISTS, RULES, ListUse, Use
from gate_worker.needs.value_flow import SAME_VALUE, Flow
from gate_worker.needs.value_requirements import ValueRequirements

MOST_DEPTH = 60
MOST_STEPS = 20_000


def of_method(module, method):
    """Return a ``ValueRequirements`` per argument, and the ``Flow`` of the method, which knows more of its graph."""
    analysis = Analysis(Flow(module, method))
    return [analysis.need(name) for name in analysis.flow.arguments], analysis.flow


class Analysis:
    """Follows values forward through one method; every value is looked at once."""

    def __init__(self, flow):
        self.flow = flow
        self._needs = {}
        self._steps = 0

    def need(self, name, depth=0):
        if name in self._needs:
            return self._needs[name]
        self._needs[name] = ValueRequirements()  # a value that comes back to itself through a loop says nothing new
        need = ValueRequirements()
        if depth > MOST_DEPTH:
            return need
        for step, position in self.flow.consumers(name):
            self._steps += 1
            if self._steps > MOST_STEPS:
                break
            need.merge(self._from(step, position, depth))
        for alias in self.flow.aliases(name):
            need.merge(self.need(alias, depth + 1))
        self._needs[name] = need
        return need

    def _from(self, step, position, depth):
        kind = step.kind
        if kind in SAME_VALUE and position == 0:
            return self.need(step.outputs[0], depth + 1)
        if kind == "prim::ListConstruct":
            return self._in_list(step, position, depth)
        if kind == "prim::TupleConstruct":
            return self._in_tuple(step, position, depth)
        if kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            need = ValueRequirements()
            need.items = {index: self.need(name, depth + 1) for index, name in enumerate(step.outputs)}
            return need
        if kind == "prim::TupleIndex":
            return self._item(step, depth)
        if kind == "prim::tolist":
            return self._tolist(step)
        if not kind.startswith(("aten::", "quantized::")):
            return None
        rule, at = RULES.get(kind.partition("::")[2], (None, None))
        if rule is not None and at in (None, position):
            out = self.need(step.outputs[0], depth + 1) if step.outputs else ValueRequirements()
            need = rule(Use(self.flow, step, position, out))
            if need is not None:
                return need
        return self._container(step, position, depth)

    def _container(self, step, position, depth):
        kind = step.kind
        if kind in ("aten::__getitem__", "aten::get", "aten::pop", "aten::__contains__") and position == 0:
            return self._item(step, depth)
        need = ValueRequirements()
        if kind in ("aten::cat", "aten::stack") and position == 0:
            out, dimension = self.need(step.outputs[0], depth + 1), self.flow.constant(step.inputs[1])
            if isinstance(dimension, int):
                need.each = out.without(dimension) if kind == "aten::cat" else out.one_less(dimension)
                need.each.role = ""
            return need
        if kind in ("aten::values", "aten::list", "aten::copy", "aten::reverse") and position == 0:
            need.each = self.need(step.outputs[0], depth + 1).each
            return need
        if kind == "aten::items" and position == 0:
            pair = self.need(step.outputs[0], depth + 1).each
            need.each = pair.items.get(1) if pair is not None else None
            return need
        if kind in ("aten::eq", "aten::ne", "aten::startswith", "aten::endswith"):
            word = self.flow.constant(step.inputs[1 - position]) if len(step.inputs) > 1 and position < 2 else None
            need.words = [word] if isinstance(word, str) else []
        if kind in ("aten::__contains__", "aten::__getitem__", "aten::get") and position == 1:
            owner = self.flow.constant(step.inputs[0])
            if isinstance(owner, dict):
                need.words = [key for key in list(owner)[:8] if isinstance(key, str)]
            elif isinstance(owner, list):
                need.below = len(owner) or None
        return need

    def _item(self, step, depth):
        need = ValueRequirements()
        absent = step.kind == "aten::__contains__"
        element = ValueRequirements() if absent else self.need(step.outputs[0], depth + 1)
        key = self.flow.constant(step.inputs[1]) if len(step.inputs) > 1 else None
        if isinstance(key, (int, str)):
            need.items[key] = element
        elif not absent:
            need.each = element
        return need

    def _in_list(self, step, position, depth):
        need = ValueRequirements()
        for consumer, _ in self.flow.consumers(step.outputs[0]):
            rule = OF_LISTS.get(consumer.kind)
            if rule is not None:
                out = self.need(consumer.outputs[0], depth + 1) if consumer.outputs else ValueRequirements()
                need.merge(rule(ListUse(self.flow, step, position, consumer, out)))
        whole = self.need(step.outputs[0], depth + 1)
        return need.merge(whole.items.get(position)).merge(whole.each)

    def _in_tuple(self, step, position, depth):
        return self.need(step.outputs[0], depth + 1).items.get(position)

    def _tolist(self, step):
        """``x.tolist()`` says the rank and the kind of x in the type of its result."""
        kind = step.node.output().type()
        rank = 0
        while kind.kind() == "ListType":
            kind, rank = kind.getElementType(), rank + 1
        return ValueRequirements(rank=rank, dtype={"IntType": torch.int64, "BoolType": torch.bool}.get(kind.kind()))
