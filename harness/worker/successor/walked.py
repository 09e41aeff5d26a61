"""An artifact as a module that walks its graph node by node, so that ``torch.export`` can trace what it does.

Torch's own converter translates a graph without running it, and gives up at what its language has no word for. Here the
graph runs as it is served: branches and loops are Python's, lists and objects too, and ``torch.export`` sees operators
alone. What a size decides becomes a guard of the program. What *data* decides is in the program both ways (``joined``);
where that cannot be, it is taken as all requests decide it, and the program checks that when it runs: another request
is refused, never answered by the wrong branch.
"""

import contextlib
import inspect
import itertools

import torch
from torch.fx.experimental import proxy_tensor
from torch.utils import _python_dispatch

from gate_worker.graph import interpreter, node_facts, nodes
from gate_worker.successor import joined, quantized, values, whole
from gate_worker.values import trees

# How the message of a check begins: the program refuses what it was not made for, or what the artifact refuses too.
CHECK = "other data than in the requests that this program was made with: "
REFUSED = "the artifact raises an error of its own here: "
SIZES = "a size of 0 or 1 that this program was not made for: "
OTHERWISE = "requests decide this otherwise, by their data"
# A while loop that is walked longer is no longer a program that anybody can read, or compile.
MOST_TURNS = 4096
LOOP_ENDS = (("limit",), ("go on",))


class NotWalked(Exception):
    """The graph has, or does, what no exported program can."""


class SizesDecide(NotWalked):
    """A program of this release would not check what sizes decide."""


class Unregistered(Exception):
    """A way that no request takes has constants of its own, which ``Learnt`` has by now."""


class Located(interpreter.Observer):
    """Remembers the innermost node that raised."""

    def __init__(self):
        self.failed_at = None

    def failed(self, place, step, inputs, error):
        if self.failed_at is None:
            self.failed_at = step.node, error


class Learnt:
    """What a walk with real tensors, of every request, has learnt of a module for the walk that is traced.

    Attributes:
        tensors: path -> tensor that is neither parameter nor buffer: constants, attributes, packed weights.
        originals: path -> the module's own of these, and its version then.
        packed: path of an attribute with packed weights -> the paths of its tensors, and what else they hold.
        constants: name -> value of the buffers of one element that no request changes.
    """

    def __init__(self):
        self._decided = {}
        self._current = None
        self.tensors = {}
        self.originals = {}
        self.packed = {}
        self.constants = {}

    @contextlib.contextmanager
    def request(self):
        self._current = {}
        yield
        for place, value in self._current.items():
            self._decided.setdefault(place, []).append(value)
        self._current = None

    def note(self, place, value):
        if self._current is not None:
            self._current[place] = value

    def is_open(self, place):
        """Whether requests decide otherwise at ``place``."""
        return len(set(self._decided.get(place, ()))) > 1

    def ends_otherwise(self, place):
        """Whether requests end the loop at ``place`` after other turns."""
        ends = [key for key in self._decided if key[: len(place)] == place and key[len(place) + 1 :] in LOOP_ENDS]
        return any(map(self.is_open, ends))

    def decided(self, place):
        """Return what every request decides at ``place``; None where they differ, or none came there."""
        known = self._decided.get(place, ())
        return known[0] if known and not self.is_open(place) else None


class Packed:
    """A ``torch.classes`` object that an attribute holds, such as packed weights, and the path of the attribute."""

    def __init__(self, path, value):
        self.path = path
        self.value = value


class Walked(torch.nn.Module):
    """A method node by node, with the module's parameters and buffers, so that ``torch.export`` finds them.

    Args:
        called: the module, and the name of its method.
        learnt: is filled where ``traces`` is false, else used.
        gradients: what the graph is told of gradients: where they are wanted, torch's own modules do without operators
            that join many steps, of which some releases cannot tell the shapes.
        joins: whether the program holds both ways of what data decides, or that of the requests and a check.
    """

    def __init__(self, called, learnt, *, traces, gradients, joins):
        super().__init__()
        module, _ = called
        walk = Walk(self, called, learnt, traces=traces, gradients=gradients, joins=joins)
        self.walk = [walk]  # in a list: ScriptModules are no submodules of this one
        self._same = {}
        for name, tensor in module.named_parameters(remove_duplicate=False):
            self.keep(name, tensor)
        for name, tensor in module.named_buffers(remove_duplicate=False):
            self.keep(name, tensor)
        for name, tensor in learnt.tensors.items():
            self.keep(name, tensor)

    def forward(self, *arguments):
        return self.walk[0].forward(arguments)

    def take_names(self, count):
        """Have the first ``count`` arguments the names that the artifact's have: callers may name them."""

        def forward(*arguments):
            return self.walk[0].forward(arguments)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in self.walk[0].argument_names()[:count]]
        forward.__signature__ = inspect.Signature(parameters)
        self.forward = forward

    def keep(self, path, tensor):
        """Register a tensor under the path that it has in the archive; one that several paths share, once."""
        name = name_of(path)
        if hasattr(self, name):
            return
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride()) if tensor.numel() else id(tensor)
        if key not in self._same:
            floats = tensor.is_floating_point() or tensor.is_complex()
            own = tensor.detach() if isinstance(tensor, torch.nn.Parameter) and floats else None
            self._same[key] = tensor.detach().clone() if own is None else torch.nn.Parameter(own, requires_grad=False)
        value = self._same[key]
        if isinstance(value, torch.nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def tensor(self, path):
        return getattr(self, name_of(path), None)


def condition_of(value):
    return values.truth(value) if isinstance(value, torch.Tensor) else value


def is_of_data(condition):
    return isinstance(condition, torch.SymBool) and not values.is_of_sizes(condition)


def name_of(path):
    return "at_" + path.replace(".", "__")


class Walk(interpreter.Interpreter):
    """The walk of one graph, again and again.

    Attributes:
        asked_for_gradients: whether the graph asks if gradients are wanted, which the caller of ``Walked`` says.
        compares_sizes: whether sizes decide in a way of which programs of older releases keep no guard.
        fixed: the nodes at which requests decide by their data, and what, in the order in which they come.
        joined: the nodes of which the program holds both ways, and whether requests take both.
        checks: what the program must check, as expressions of its symbols.
    """

    def __init__(self, holder, called, learnt, *, traces, gradients, joins):
        self.asked_for_gradients = False
        self._gradients = gradients
        self.located = Located()
        super().__init__(self.located)
        self._holder = [holder]
        self._module, self._called_method = called
        self._learnt = learnt
        self._traces = traces
        self._paths = {id(child): path for path, child in self._module.named_modules(remove_duplicate=False)}
        self._modules = {}
        self._joins = joins
        self._depth = 0  # of joined blocks
        self._begin()

    def _begin(self):
        self._plain = {}
        self._constants = {}  # number of a traced tensor -> the tensor, and its value
        self.compares_sizes = False
        self._replaced = {}  # number of a registered tensor -> what it is by now, or stands for it in a block
        self._touched = {}  # number -> registered tensor that the block has used
        self._changed = {}  # likewise, what it has set
        self._aliased = []  # tensors that a block hands on, and with which they share memory
        self._written = []  # tensors that the block changes in place
        self._tables = []  # tensors of which the program has a part that is a copy, and these copies
        self.fixed, self.joined, self.checks = [], [], []

    def argument_names(self):
        return [argument.name for argument in getattr(self._module, self._called_method).schema.arguments[1:]]

    def decided(self):
        """Return what requests decide by their data, for ``program_of``."""
        one_way = [(node, None) for node, is_open in self.joined if not is_open]
        return [
            {"kind": node.kind(), "source": node_facts.facts_of(node, ())["source"], "value": value}
            for node, value in self.fixed + one_way
        ]

    def forward(self, arguments):
        self._begin()
        method = self._method(self._module, self._called_method, ())
        answer = self.call(self._module, self._called_method, arguments)
        changed = [path for path, (before, value) in self._plain.items() if values.changed(before, value)]
        if changed:
            raise NotWalked("attribute %s, which is no tensor, changes with a call" % changed[0])
        (output,) = method.graph.outputs()
        return self._with_state(values.of_type(answer, output.type()))

    def _with_state(self, answer):
        """Return the answer after what the call has set is kept; whatever is the state of before stays that."""
        before = list(self._changed.values())

        def apart(tensor):
            return tensor.clone() if joined.shared(tensor, before) else tensor

        answer = trees.mapped(answer, apart)
        now = {key: apart(value) for key, value in self.current(self._changed).items()}
        for key, tensor in self._changed.items():
            tensor.copy_(now[key])
        return answer

    # Attributes

    def _attribute(self, owner, name):
        if isinstance(owner, nodes.Instance):
            return getattr(owner, name)
        path = self._path_of(owner, name)
        registered = self._registered(path)
        if registered is not None:
            return registered
        if path not in self._plain:
            value = getattr(owner, name)
            if isinstance(value, torch.Tensor):
                return self._learn(path, value)
            if isinstance(value, (torch.nn.Module, torch._C.ScriptModule)):
                return self._known_as(value, path)
            if isinstance(value, torch.ScriptObject):
                return Packed(path, value)
            numbers = itertools.count()
            value = trees.mapped(value, lambda tensor: self._part("%s.part_%d" % (path, next(numbers)), tensor))
            self._plain[path] = values.copied(value), value
        plain = self._plain[path][1]
        return trees.mapped(plain, self._in_block) if self._depth and values.has_tensors(plain) else plain

    def _learn(self, path, tensor):
        self._learnt.originals.setdefault(path, (tensor, tensor._version))
        with _python_dispatch._disable_current_modes():  # a real one, also where it shows only when it is traced
            self._learnt.tensors.setdefault(path, tensor.clone())  # a call may change its own
        return tensor

    def _part(self, path, tensor):
        held = self._holder[0].tensor(path)
        return self._learn(path, tensor) if held is None else held

    def _in_block(self, tensor):
        self._touched[id(tensor)] = tensor
        return self._replaced.get(id(tensor), tensor)

    def _registered(self, path):
        tensor = self._held(path)
        if self._traces and tensor is not None and name_of(path) in self._learnt.constants:
            self._constants[id(tensor)] = tensor, self._learnt.constants[name_of(path)]
        return tensor

    def _held(self, path):
        tensor = self._holder[0].tensor(path)
        return None if tensor is None else self._in_block(tensor)

    def _known_as(self, module, path):
        if id(module) not in self._paths:  # of an interface: it is another object each time that it is fetched
            module = self._modules.setdefault(path, module)
            self._paths[id(module)] = path
        return module

    def _path_of(self, owner, name):
        path = self._paths[id(owner)]
        return "%s.%s" % (path, name) if path else name

    def _set_attribute(self, owner, name, value):
        if isinstance(owner, nodes.Instance):
            setattr(owner, name, value)
            return
        path = self._path_of(owner, name)
        held = self._holder[0].tensor(path)
        if held is None and self._depth:
            raise joined.NotJoined("attribute %s, which is no tensor, changes in a block that data decides" % path)
        if held is None:
            before = self._plain[path][0] if path in self._plain else values.copied(getattr(owner, name))
            self._plain[path] = before, value
        elif held.shape != value.shape or held.dtype != value.dtype:
            shapes = tuple(held.shape), tuple(value.shape)
            raise NotWalked("state %s changes from %s to %s, and a program holds one shape" % ((path, *shapes)))
        elif value is not self._in_block(held):
            self.change({id(held): held}, {id(held): value})

    # Control flow

    def _if(self, step, inputs, values_, place):
        condition = condition_of(inputs[0])
        if is_of_data(condition):
            refused = [joined.raises(block) for block in self._blocks(step)]
            if refused[0] != refused[1]:
                self._check(step, condition, refused[1], REFUSED)
                condition = refused[1]
            elif self._joins:
                self.joined.append((step.node, self._learnt.is_open(place)))
                return joined.branch(self, step, condition, values_, place)
        branch = 0 if self._decide(condition, place, step) else 1
        block = self._blocks(step)[branch]
        self._block(block, values_, place + (branch,))
        return [values_.get(name) for name in block.outputs]

    def _loop(self, step, inputs, values_, place):
        limit, go_on, carried = inputs[0], inputs[1], list(inputs[2:])
        (body,) = self._blocks(step)
        turn = 0
        while True:
            below, go_on = condition_of(turn < limit), condition_of(go_on)
            if is_of_data(below) or is_of_data(go_on):
                if self._joins:
                    self.joined.append((step.node, True))
                    return joined.loop(self, step, [limit, turn, go_on, *carried], values_, place)
                if self._learnt.ends_otherwise(place):  # many turns on, maybe: each takes its time
                    raise NotWalked(OTHERWISE)
            if not self._decide(below, place + (turn, "limit"), step):
                break
            if not self._decide(go_on, place + (turn, "go on"), step):
                break
            if turn == MOST_TURNS:
                raise NotWalked("a loop takes more than %d turns" % MOST_TURNS)
            values_.update(zip(body.inputs, [turn] + carried))
            self._block(body, values_, place + (turn,))
            go_on, *carried = [values_.get(name) for name in body.outputs]
            turn += 1
        return carried

    def _decide(self, value, place, step):
        """Return whether a condition holds; where data decides, what every request decides, checked at run time."""
        if not isinstance(value, torch.SymBool):
            self._learnt.note(place, bool(value))
            return bool(value)
        if values.is_of_sizes(value):
            is_bound, is_equality = values.is_bound(value), values.is_equality(value)
            decided = bool(value)
            self.compares_sizes |= not (is_bound or (is_equality and decided))
            return decided
        decided = self._learnt.decided(place)
        if decided is None:
            raise NotWalked(OTHERWISE)
        self._fix(step, value, decided)
        return decided

    def _fix(self, step, value, decided):
        self._check(step, value, decided, CHECK)
        self.fixed.append((step.node, decided))

    def _check(self, step, value, decided, words):
        """Have the program check that its data decides so.

        Not by ``torch._check``: of some conditions on floats an export keeps nothing (2.15.0), and the program answers.
        """
        condition = values.equals(value, decided)
        self.checks.append(str(condition.node.expr))
        torch.ops.aten._assert_scalar.default(condition, words + step.kind)

    def _is_part_of_table(self, table, *slice_):
        """Whether a slice is a part of a buffer, such as a mask or positions, that is as long as a request."""
        _, start, end, step = slice_ if len(slice_) == 4 else (0, 0, 0, 0)
        plain = isinstance(table, torch.Tensor) and start in (None, 0) and step == 1
        known = [*self._touched.values(), *self._tables]
        return plain and isinstance(end, torch.SymInt) and values.is_of_sizes(end) and joined.shared(table, known)

    def _part_of_table(self, table, axis, start, end, step):
        """Return it by index: of a view an export asks whether it is the whole, which fixes the length."""
        del start, step
        part = table.index_select(axis, torch.arange(end, device=table.device))
        self._tables += [table, part]
        return part

    def _hold(self, step, inputs, result):
        """Have the program check a comparison of sizes that an export takes for known.

        It takes every open size for 2 or more, and checks nothing of it: a batch of 1 or 0 would go the way of others.
        By tensors, because of symbols it would leave out such a check too.
        """
        known = values.known(result)
        if known is not None:
            left, right = map(values.tensor_of, inputs)
            holds = values.COMPARED[step.kind](left, right) == known
            torch.ops.aten._assert_async.msg(holds, SIZES + step.kind)

    # Both ways of what data decides

    def blocks(self, step):
        return self._blocks(step)

    def through(self, block, values_, place):
        values_ = dict(values_)
        self._block(block, values_, place)
        return [values_.get(name) for name in block.outputs]

    @contextlib.contextmanager
    def scope(self, replaced):
        """Walk a block: ``replaced`` are what stands for registered tensors in it, by their numbers."""
        before = self._replaced, self._touched, self._changed, self._written
        self._replaced, self._touched, self._changed, self._written = {**self._replaced, **replaced}, {}, {}, []
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._replaced, self._touched, self._changed, self._written = before

    def rehearse(self, condition, around, way):
        """Return the ``joined.Use`` of ``way``, a function of values around a block: nothing is traced, or fixed."""
        known, noted = len(self._learnt.tensors), [list(noted) for noted in (self.fixed, self.joined, self.checks)]
        given = around.copy()
        before = dict(self._replaced)
        environment = condition.node.shape_env
        untraced = proxy_tensor.disable_proxy_modes_tracing(), environment.ignore_fresh_unbacked_symbols()
        with self.scope({}), untraced[0], untraced[1]:
            output = way(given)
            touched, states = self._touched, self.current(self._touched)
            current = {key: before.get(key, tensor) for key, tensor in touched.items()}
            use = joined.Use(around, touched, current, self._changed, self._written)
            use.end(output, given, states)
        self.fixed, self.joined, self.checks = noted
        self._touched.update(touched)
        if len(self._learnt.tensors) > known:
            raise Unregistered
        return use

    def current(self, tensors):
        """Return what registered tensors are in this block by now, by their numbers."""
        return {key: self._replaced.get(key, tensor) for key, tensor in tensors.items()}

    def change(self, tensors, values_):
        """Set registered tensors, by their numbers: until a call ends others stand for them."""
        for key, tensor in tensors.items():
            self._replaced[key], self._changed[key] = values_[key], tensor

    def change_in_place(self, tensors, values_):
        for key, tensor in tensors.items():
            current = self._replaced.get(key, tensor)
            self._note_written(current)
            current.copy_(values_[key])

    def hand_on(self, use, outputs):
        """Take note of what a block gave that shares memory with others: they are copies of it in the program."""
        if use.shares:
            self._aliased += [*use.tensors, *joined.tensors_in(outputs)]

    def _note_written(self, tensor):
        """Take note of what changes in place. Raises ``NotJoined``: others share it, and have copies."""
        if joined.shared(tensor, self._aliased):
            raise joined.NotJoined("a tensor changes in place that a block which data decides shares with others")
        if joined.shared(tensor, self._tables):
            raise NotWalked("a buffer changes in place of which a part is as long as a request")
        if self._depth:
            self._written.append(tensor)

    # Other nodes

    def _node(self, step, inputs, place):
        kind = step.kind
        if kind == "prim::Constant":
            return [self._constant(step)]
        if kind == "prim::ModuleContainerIndex":
            return [self._attribute(inputs[0], str(inputs[1]))]
        if kind in ("aten::is_grad_enabled", "prim::requires_grad"):
            self.asked_for_gradients = True
            return [self._gradients]
        if quantized.concerns(kind, inputs):
            inputs = [self._constants[id(item)][1] if id(item) in self._constants else item for item in inputs]
            return nodes.outputs_of(step.node, quantized.run(kind, inputs, self._packed, step.node))
        if kind in values.NUMBER_OF and isinstance(inputs[0], torch.Tensor):
            return [self._number(step, inputs[0], place)]
        if kind == "aten::_pad_packed_sequence" and isinstance(inputs[4], torch.SymInt):
            return list(whole.padded(*inputs))
        if self._depth or self._aliased or self._tables:
            for tensor in values.written(step.node, inputs):
                self._note_written(tensor)
        if kind == "aten::slice" and self._is_part_of_table(*inputs):
            return [self._part_of_table(*inputs)]
        outputs = values.run(step.node, inputs)
        if kind in values.COMPARED and any(isinstance(item, torch.SymInt) for item in inputs):
            self._hold(step, inputs, outputs[0])
        if self._constants:
            self._follow(step.node, inputs, outputs)
        return outputs

    def _follow(self, node, inputs, outputs):
        """Remember the value of what follows from constants alone."""
        tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
        if not tensors or len(outputs) != 1 or not isinstance(outputs[0], torch.Tensor):
            return
        if all(id(item) in self._constants for item in tensors):
            known = [self._constants[id(item)][1] if id(item) in self._constants else item for item in inputs]
            with _python_dispatch._disable_current_modes():
                (value,) = values.run(node, known)
            self._constants[id(outputs[0])] = outputs[0], value

    def _constant(self, step):
        value = nodes.run(step.node, [])[0]
        if not isinstance(value, torch.Tensor):
            return values.copied(value)
        path = "constant_" + "_".join(map(str, step.address))
        registered = self._registered(path)
        return self._learn(path, value) if registered is None else registered

    def _number(self, step, tensor, place):
        """Return the number that a tensor holds, as Python's; one that all requests agree on, checked at run time."""
        if id(tensor) in self._constants:
            return values.NUMBER_OF[step.kind](self._constants[id(tensor)][1].item())
        value = values.NUMBER_OF[step.kind](values.item_of(tensor))
        if isinstance(value, torch.SymBool):
            return value  # what it decides shows where it decides
        if not values.symbols_in(value):
            self._learnt.note(place, value)
            return value
        decided = self._learnt.decided(place)
        if decided is None or isinstance(decided, float) or values.is_of_sizes(value):
            return value
        self._fix(step, value, decided)
        return decided

    def _packed(self, attribute):
        """Return the tensors of packed weights, and what else they hold."""
        if attribute.path not in self._learnt.packed:
            tensors, others = quantized.unpacked(attribute.value)
            paths = ["%s.packed_%d" % (attribute.path, index) for index in range(len(tensors))]
            known = {path: tensor for path, tensor in zip(paths, tensors) if tensor is not None}
            self._learnt.tensors.update(known)
            self._learnt.packed[attribute.path] = paths, others
        paths, others = self._learnt.packed[attribute.path]
        registered = [self._held(path) for path in paths]
        tensors = self._learnt.tensors
        return [tensors.get(path) if held is None else held for path, held in zip(paths, registered)], others
