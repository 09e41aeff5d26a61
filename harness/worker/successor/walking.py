"""The way out of TorchScript by walking the graph under ``torch.export``; see ``walked``."""

import contextlib
import io

import torch
from torch.utils import _pytree as pytree

from gate_worker.successor import joined, sizes, values, walked, whole
from gate_worker.values import trees

# Each is traced anew: seconds.
MOST_EXAMPLES = 3
# What no request reaches shows its constants when it is walked, those of one branch inside another one after it.
MOST_WALKS = 5


def program_of(called, example, requests, mark):
    """Return the program, the request that it was traced with, what requests decide by data, and if it has a state.

    Sizes that requests vary stay open, and the batch's. A size that means something in the example (the whole of a
    table of positions, say) may be taken for a constant: then other requests are tried as the example. What is decided
    is ``{"kind", "source", "value"}`` each; without a value the program holds both ways, and no request takes one.

    Args:
        called: the module, and the name of its method.
        example: the request to begin with, by its name in ``requests``: name -> arguments.
        mark: is told the node at which the walk ends, and its error.
    """
    examples = [example, *sorted(set(requests) - {example})][:MOST_EXAMPLES]
    failures = []
    for gradients in (False, True):
        for joins in (True, False):
            tracing = Tracing(called, requests, gradients=gradients, joins=joins and joined.is_possible())
            try:
                return tracing.best(examples)
            except Exception as error:
                failures.append((error, tracing.walk))
            if not tracing.walk.joined:
                break
        if not tracing.walk.asked_for_gradients:
            break
    error, walk = failures[0]
    if walk.joined:  # then the next is without
        why, (error, walk) = "%s: %s" % (type(error).__name__, error), failures[1]
        error = walked.NotWalked("%s; nor does one program hold both ways: %s" % (error, why[:500]))
    if walk.located.failed_at is not None:
        mark(walk.located.failed_at[0], error)
    raise error


class Tracing:
    """The walks of a module: one with real tensors, of every request, and those that ``torch.export`` traces."""

    def __init__(self, called, requests, *, gradients, joins):
        self._called, self._requests, self._gradients, self._joins = called, requests, gradients, joins
        self._all = list(requests.values())
        self._learnt = walked.Learnt()
        self._learning = self._walked(traces=False)

    def best(self, examples):
        """Return what ``program_of`` does, of the program that holds the fewest sizes constant."""
        best = None
        with torch.no_grad():
            self._learn()
            for name in examples:
                try:
                    program = self._program(name)
                except Exception:
                    if best is None:
                        raise
                    break
                self._require(program, name)
                held = held_sizes(program, self._requests[name], self._all)
                if best is None or held < best[0]:
                    best = held, program, name, self.walk.decided()
                if not held:
                    break
        return (*best[1:], self._has_state)

    def _require(self, program, name):
        """Raise where the program would answer others than its example otherwise, or cannot be loaded."""
        require_checks(program, self.walk.checks)
        if self.walk.joined:
            require_saved(program, self._requests[name])
        if self.walk.compares_sizes and not hasattr(program.module(), "_guards_fn"):
            raise walked.SizesDecide("sizes decide, and a program of torch %s checks bounds alone" % torch.__version__)

    def _program(self, name):
        for _ in range(MOST_WALKS):
            walk = self._walked(traces=True)
            walk.take_names(len(self._requests[name]))
            with contextlib.suppress(walked.Unregistered), whole.operators():
                return exported(walk, self._requests[name], self._all)
        raise walked.NotWalked("what no request reaches has more constants again and again")

    def _walked(self, *, traces):
        module = walked.Walked(self._called, self._learnt, traces=traces, gradients=self._gradients, joins=self._joins)
        self.walk = module.walk[0]
        return module

    def _learn(self):
        before = {name: tensor.clone() for name, tensor in single(self._learning)}
        versions = [tensor._version for tensor in self._learning.buffers()]
        for arguments in self._all:
            with self._learnt.request():
                self._learning(*trees.mapped(arguments, torch.clone))  # what it changes in place is this request's own
        self._has_state = versions != [tensor._version for tensor in self._learning.buffers()] or any(
            tensor._version != version for tensor, version in self._learnt.originals.values()
        )
        unchanged = [(name, now) for name, now in single(self._learning) if torch.equal(before[name], now)]
        self._learnt.constants = {name: now.clone() for name, now in unchanged}


def require_checks(program, wanted):
    """Raise ``NotWalked`` where the program has lost a check: it would answer another request by the wrong branch.

    Torch writes some of them anew, with the same expression and words of its own, and keeps the others as they are.
    """
    parts = [part for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    checks = [
        node for part in parts for node in part.graph.nodes if node.target is torch.ops.aten._assert_scalar.default
    ]
    conditions = [node.args[0].meta.get("val") for node in checks if isinstance(node.args[0], torch.fx.Node)]
    known = {str(value.node.expr) for value in conditions if isinstance(value, torch.SymBool)}
    own = sum(str(node.args[1]).startswith((walked.CHECK, walked.REFUSED)) for node in checks)
    if sum(expression not in known for expression in wanted) > own:
        raise walked.NotWalked("the export has lost a check of what data decides")


def require_saved(program, arguments):
    """Raise what a loaded copy raises: 2.6 saves a ``while_loop`` that no process can run."""
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.export.load(file).module()(*trees.mapped(arguments, torch.clone))


def held_sizes(program, example, requests):
    """Return how many sizes the program holds constant that requests vary."""
    wanted = [leaf for leaf in pytree.tree_leaves(open_sizes(example, requests, numbers=False)) if leaf is not None]
    held = [size for _, held in sizes.of_program(program, example) for size in held or ()]
    return len(wanted) - sum(size is None for size in held)


def single(module):
    return [(name, buffer) for name, buffer in module.named_buffers(remove_duplicate=False) if buffer.numel() == 1]


def exported(walk, example, requests):
    """Return the program with open sizes; plain numbers that requests vary stay open where the release can."""
    shapes = open_sizes(example, requests, numbers=True)
    closed = open_sizes(example, requests, numbers=False)
    if shapes != closed:
        try:
            return torch.export.export(walk, tuple(example), dynamic_shapes=shapes, strict=False)
        except walked.Unregistered:
            raise
        except Exception:  # 2.6 takes tensors' sizes alone; anything else shows again below
            walk.walk[0].located.failed_at = None
    return torch.export.export(walk, tuple(example), dynamic_shapes=closed, strict=False)


def open_sizes(example, requests, *, numbers):
    """Return ``dynamic_shapes`` of the arguments: open where requests vary a size, and where the batch may be.

    The batch is the first size of the first tensor that has one, where all requests have the same. ``numbers``: whether
    whole numbers that requests vary are open too.
    """
    batches = {first_size(arguments) for arguments in requests}
    batch = batches.pop() if len(batches) == 1 else None
    return tuple(
        sizes_of(value, [other[index] for other in requests if index < len(other)], batch, numbers=numbers)
        for index, value in enumerate(example)
    )


def first_size(arguments):
    tensors = (leaf for leaf in pytree.tree_leaves(list(arguments)) if isinstance(leaf, torch.Tensor))
    return next((tensor.shape[0] for tensor in tensors if tensor.dim() > 0), None)


def sizes_of(value, others, batch, *, numbers):
    if isinstance(value, torch.Tensor):
        like = [other for other in others if isinstance(other, torch.Tensor) and other.dim() == value.dim()]
        return {axis: torch.export.Dim.AUTO for axis in range(value.dim()) if is_open(value, like, axis, batch)}
    if isinstance(value, dict):
        alike = [other for other in others if isinstance(other, dict) and list(other) == list(value)]
        return {
            key: sizes_of(item, [other[key] for other in alike], batch, numbers=numbers) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        alike = [other for other in others if isinstance(other, (list, tuple)) and len(other) == len(value)]
        parts = [
            sizes_of(item, [other[index] for other in alike], batch, numbers=numbers)
            for index, item in enumerate(value)
        ]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    varies = values.is_whole(value) and any(other != value for other in others)
    return torch.export.Dim.AUTO if numbers and varies else None


def is_open(value, others, axis, batch):
    size = value.shape[axis]
    return any(other.shape[axis] != size for other in others) or (axis == 0 and size == batch)
