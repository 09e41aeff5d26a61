"""Writes the guards of a program into its graph: a package is compiled of that alone, and would answer what it refuses.

``ExportedProgram.module()`` checks sizes before the graph runs, by a function of its own (2.15.0) or by what the
placeholders say (2.6.0). ``aoti_compile_and_package`` leaves both out.
"""

import operator

import torch

WORDS = "sizes that this package was not made for: "
INFINITE = 1 << 60


class NotChecked(Exception):
    """A guard that cannot be written as nodes."""


def write(program):
    """Write the program's guards on sizes into its graph, before everything else that it does."""
    graph = program.graph_module.graph
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    given = [placeholders.get(name) for name in names]
    checks = Checks(graph, list(placeholders.values())[-1])
    guards = getattr(program.module(), "_guards_fn", None)
    if guards is None:
        checks.of_placeholders(program, [node for node in given if node is not None])
    else:
        checks.of_function(guards, given)
    program.graph_module.recompile()


class Checks:
    """Nodes after the last placeholder, in the order in which they are made."""

    def __init__(self, graph, last):
        self._graph, self._last = graph, last

    def node(self, target, *arguments):
        with self._graph.inserting_after(self._last):
            self._last = self._graph.call_function(target, arguments)
        return self._last

    def require(self, condition, words):
        self.node(torch.ops.aten._assert_scalar.default, condition, WORDS + words)

    def size(self, placeholder, axis):
        return Number(self.node(torch.ops.aten.sym_size.int, placeholder, axis), self)

    def of_function(self, guards, given):
        """Run the function of guards on what records its comparisons, in place of tensors."""
        before, torch._assert = torch._assert, self._asserted
        try:
            guards.forward(*(None if node is None else Argument(node, self) for node in given))
        except Exception as error:
            raise NotChecked("%s: %s" % (type(error).__name__, error))
        finally:
            torch._assert = before

    def _asserted(self, condition, words):
        if isinstance(condition, Number):
            self.require(condition.node, words)

    def of_placeholders(self, program, given):
        """Require bounds and equal sizes, which is all that programs of older releases check."""
        first = {}
        for placeholder in given:
            value = placeholder.meta.get("val")
            for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if not isinstance(size, torch.SymInt):
                    continue
                expression = size.node.expr
                here = self.size(placeholder, axis)
                if expression in first:
                    self.require((here == first[expression]).node, "%s differ" % expression)
                elif expression.is_symbol:
                    first[expression] = here
                    self._bound(here, program.range_constraints.get(expression), expression)

    def _bound(self, size, bounds, name):
        if bounds is not None and bounds.upper < INFINITE:
            self.require((size <= int(bounds.upper)).node, "%s <= %s" % (name, bounds.upper))
        if bounds is not None and bounds.lower > 2:  # 2 is what every open size is taken for, and nothing checks it
            self.require((size >= int(bounds.lower)).node, "%s >= %s" % (name, bounds.lower))


class Argument:
    """Stands for a tensor where guards ask for its sizes; whatever else they ask is of no size."""

    def __init__(self, node, checks):
        self._node, self._checks = node, checks

    def size(self):
        return Sizes(self._node, self._checks)

    @property
    def shape(self):
        return self.size()


class Sizes:
    def __init__(self, node, checks):
        self._node, self._checks = node, checks

    def __getitem__(self, axis):
        return self._checks.size(self._node, axis)


class Number:
    """A whole number of the graph: what is computed of it becomes nodes."""

    def __init__(self, node, checks):
        self.node, self._checks = node, checks

    __hash__ = None


def _writing(target, *, turned=False):
    def method(self, *others):
        values = [other.node if isinstance(other, Number) else other for other in (self, *others)]
        return Number(self._checks.node(target, *(reversed(values) if turned else values)), self._checks)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(Number, "__%s__" % _name, _writing(getattr(operator, _name)))
    setattr(Number, "__r%s__" % _name, _writing(getattr(operator, _name), turned=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg"):
    setattr(Number, "__%s__" % _name, _writing(getattr(operator, _name)))
