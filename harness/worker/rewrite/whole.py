"""Rewrites of a whole archive for what comes after TorchScript: ``forward`` is left, easier to convert.

Each takes the loaded module and its requests, and returns the module to save and what it has fixed, in words: that is
right for these requests, and nobody knows for others.
"""

import copy

import torch

from gate_worker.graph import interpreter
from gate_worker.graph.node_replacement import Refused, fold_known, inlined
from gate_worker.rewrite import requested
from gate_worker.rewrite.execution import is_tensor
from gate_worker.rewrite.rules import Rule, first_line
from gate_worker.values import trees

WHOLE = {}
# What makes numbers of tensors: in a trace they are those of its example.
NUMBERS = ("aten::size", "aten::len", "aten::numel", "aten::Int", "aten::IntImplicit", "aten::Float", "aten::item")


def whole(name, what, needs=""):
    """Register the function as the rewrite ``name``."""

    def register(function):
        assert name not in WHOLE, name
        WHOLE[name] = Rule(name, what, needs, function)
        return function

    return register


@whole("freeze", what="torch.jit.freeze: attributes become constants, and what they decide is decided")
def freeze(module, _requests, _example):
    return frozen(module), []


@whole("clone-arguments", what="a clone of each argument that is changed in place, before anything else")
def clone_arguments(module, _requests, _example):
    module = frozen(module)
    graph = inlined(module, "forward")
    aliases = graph.alias_db()
    changed = [value for value in list(graph.inputs())[1:] if is_tensor(value) and aliases.has_writers(value)]
    if not changed:
        raise Refused("no argument is changed in place")
    first = next(iter(graph.nodes()))
    with graph.insert_point_guard(first):
        plain = graph.insertConstant(None)
    for value in changed:
        clone = graph.create("aten::clone", [value, plain], 1)
        clone.insertBefore(first)
        clone.output().setType(value.type())
        value.replaceAllUsesAfterNodeWith(clone, clone.output())
    return module, []


@whole(
    "as-requested",
    what="branches, loops and optional arguments written out as every request decides them",
    needs="every request decides them so",
)
def as_requested(module, requests, _example):
    module = frozen(module)
    graph = inlined(module, "forward")
    fold(graph)
    return requested.decide(module, graph, requests, fold)


@whole(
    "retrace",
    what="torch.jit.trace of one request, node by node",
    needs="every request takes the branches, and has the sizes that are numbers, of that one",
)
def retrace(module, _requests, example):
    observer = Detached()
    traced = torch.jit.trace(Replayed(frozen(module), observer), tuple(example), check_trace=False, strict=False)
    return traced, observer.fixed


class Replayed(torch.nn.Module):
    """Runs ``forward`` of a module node by node, so that a trace sees every operator and not one call."""

    def __init__(self, module, observer):
        super().__init__()
        self._program = [module]  # no submodule: nothing of it is to be traced as a module
        self._observer = observer

    def forward(self, *arguments):
        return interpreter.Interpreter(self._observer).call(self._program[0], "forward", arguments)


class Detached(interpreter.Observer):
    """Cuts weights off from their gradients: a trace takes no constant that has one. ``fixed`` is what is decided."""

    def __init__(self):
        self.fixed = []

    def chosen(self, place, step, choice):
        is_branch = step.kind == "prim::If"
        if is_branch or not choice:
            requested.note(self.fixed, step.node, side=choice if is_branch else None, turns=place[-1])
        return choice

    def after(self, place, step, inputs, outputs):
        if step.kind in NUMBERS:
            requested.add(self.fixed, "%s is %s" % (step.kind, outputs[0]), step.node)
        if step.kind not in ("prim::Constant", "prim::GetAttr"):
            return outputs
        return [trees.mapped(value, lambda tensor: tensor.detach()) for value in outputs]


def frozen(module):
    """Return the module with its attributes as constants; none is folded into others, which would change numbers."""
    return torch.jit.freeze(module.eval(), optimize_numerics=False)


def fold(graph):
    """Leave out what is decided beforehand, and build lists where they are read, not step by step."""
    fold_known(graph)
    torch._C._jit_pass_remove_mutation(graph)
    torch._C._jit_pass_peephole_list_idioms(graph, True)
    fold_known(graph)


def rewritten(module, name, requests, example):
    """Return (module, what was done) of the rewrite ``name``; the module is None where it does not fit.

    ``requests``: name -> arguments of ``forward``; ``example``: the name of one.
    """
    rewrite = WHOLE[name]
    done = {"nodes": [], "emptied": [], "refused": [], "fixed": [], "rules": {name: rewrite.words}}
    given = {key: copy.deepcopy(arguments) for key, arguments in requests.items()}
    try:
        with torch.no_grad():
            module, done["fixed"] = rewrite.apply(module, list(given.values()), given[example])
    except (Refused, RuntimeError, requested.TooLarge) as error:
        done["refused"] = [[name, [], "%s: %s" % (type(error).__name__, first_line(error))]]
        return None, done
    return module, done
