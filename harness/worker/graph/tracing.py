"""Verb ``trace``: make one call node by node and record what goes into every node and what comes out of it.

``order["mode"]`` is ``"free"``, ``"forced"`` (every node gets the inputs of the trace ``order["beside"]``) or
``"patched"`` (the nodes at ``order["places"]`` answer what they have answered there).
"""

import os
import re
import time

import torch

from gate_worker import device, settings, wire
from gate_worker.graph import interpreter, node_facts, trace_files
from gate_worker.run import serving
from gate_worker.values import trees

# Schemas of operators that may draw from torch's generator.
DRAWS = re.compile(r"Generator|dropout|rand|rrelu|multinomial|bernoulli|scaled_dot_product")
ERROR_CHARACTERS = 4000


class Recorder(interpreter.Observer):
    """Writes down what goes into every node and what comes out; the last one begun is where a process ended.

    With ``other``, the trace of another release, places are named as they are there; a node without a like there has a
    negative label.
    """

    def __init__(self, writer, beat, other, _order):
        self._writer = writer
        self._beat = beat
        self._other = other
        self._paths = set()
        self._elsewhere = []

    def labels(self, address, steps):
        keys = [node_facts.key_of(step.node) for step in steps]
        self._writer.line(block=list(address), keys=keys)
        if not self.is_elsewhere(address):
            self._paths |= node_facts.module_paths(step.node for step in steps)
        if self._other is None or address not in self._other.keys:
            return range(len(steps))
        return node_facts.aligned(self._other.keys[address], keys)

    def before(self, place, step, inputs):
        self._beat()
        return self.begin(place, step, inputs, [self._writer.tree(value) for value in inputs])

    def begin(self, place, step, inputs, trees, **more):
        if step.facts is None:
            step.facts = self.facts_of(step)
        if DRAWS.search(step.facts["schema"]):
            more["generator"] = self._writer.tree(torch.get_rng_state())
        if self._other is not None and place not in self._other.begun:
            more["unaligned"] = True
        self._writer.line(place=place, begin=True, kind=step.kind, tree=["list", trees], **dict(step.facts, **more))
        return inputs

    def facts_of(self, step):
        facts = node_facts.facts_of(step.node, () if self.is_elsewhere(step.address) else self._paths)
        if step.kind in ("prim::CallFunction", "prim::CallMethod", "prim::fork"):
            self._elsewhere.append(step.address)  # a graph of its own: paths in it begin elsewhere
        return dict(facts, address=list(step.address))

    def is_elsewhere(self, address):
        return any(address[: len(begin)] == begin for begin in self._elsewhere)

    def after(self, place, step, inputs, outputs):
        self._writer.line(place=place, begin=False, tree=["list", [self._writer.tree(value) for value in outputs]])
        return outputs

    def failed(self, place, step, inputs, error):
        text = "%s: %s" % (type(error).__name__, error)
        self._writer.line(place=place, begin=False, error=text[:ERROR_CHARACTERS])

    def chosen(self, place, step, choice):
        self._writer.line(place=place, choice=choice)
        return choice


class Forced(Recorder):
    """Gives every node the inputs, and every choice the answer, of the other trace; what only lives here stays.

    Then a difference of its outputs is its own doing and not inherited. After a node that raises it goes on: those
    after it have their inputs from the other trace.
    """

    def before(self, place, step, inputs):
        self._beat()
        mine = [self._writer.tree(value) for value in inputs]
        line = self._other.begun.get(place)
        if line is None:
            return self.begin(place, step, inputs, mine)
        theirs = matched(line, step.node.schema(), mine)
        if theirs is None:
            why = "it takes %d inputs here and %d there" % (len(mine), len(line["tree"][1]))
            return self.begin(place, step, inputs, mine, unchecked=why)
        given, why, replaced = [], "", {}
        for index, (value, tree, other) in enumerate(zip(inputs, mine, theirs)):
            if trace_files.same(tree, other) or trace_files.is_live(other):
                given.append(value)  # itself, so that what shares its memory goes on to do so
            elif trace_files.is_kept(other):
                if id(value) not in replaced:  # what was one object stays one: some operators ask for that
                    replaced[id(value)] = self._other.value(other)
                given.append(replaced[id(value)])
                mine[index] = self._writer.tree(given[-1])
            else:
                given.append(value)
                why = "input %d is too large to be kept" % index
        if "generator" in line and trace_files.is_kept(line["generator"]):
            set_generator(self._other.value(line["generator"]))
        return self.begin(place, step, given, mine, **({"unchecked": why} if why else {}))

    def failed(self, place, step, inputs, error):
        super().failed(place, step, inputs, error)
        return [None] * len(step.outputs)

    def chosen(self, place, step, choice):
        return super().chosen(place, step, self._other.choices.get(place, choice))


class Patched(Recorder):
    """Runs every node, and lets those at ``places`` answer what the other trace has recorded there, raise or not.

    Those at ``unrun`` are not even run: they end the process here.
    """

    def __init__(self, writer, beat, other, order):
        super().__init__(writer, beat, other, order)
        self._places, self._unrun = ({tuple(place) for place in order[name]} for name in ("places", "unrun"))

    def instead(self, place, step):
        if place not in self._unrun or place not in self._other.ended:
            return None
        outputs = [self.patched(None, tree, ()) for tree in self._other.ended[place]]
        return super().after(place, step, (), outputs)

    def after(self, place, step, inputs, outputs):
        if place in self._places and place in self._other.ended:
            trees = self._other.ended[place]
            if len(trees) == len(outputs):
                outputs = [self.patched(mine, tree, inputs) for mine, tree in zip(outputs, trees)]
        return super().after(place, step, inputs, outputs)

    def failed(self, place, step, inputs, error):
        if place not in self._places or place not in self._other.ended:
            return super().failed(place, step, inputs, error)
        outputs = [self.patched(None, tree, inputs) for tree in self._other.ended[place]]
        return super().after(place, step, inputs, outputs)

    def patched(self, mine, tree, inputs):
        if trace_files.is_live(tree) or not trace_files.is_kept(tree):
            return mine
        value = self._other.value(tree)
        if any(mine is given for given in inputs) and fits(mine, value):
            return mine.copy_(value)  # in place: others hold the very tensor
        return value


def matched(line, schema, mine):
    """Return the other release's inputs in the order of a node's own; an argument that only this one has keeps its own.

    None where the nodes take different inputs and their schemas do not tell which is which.
    """
    theirs = line["tree"][1]
    if len(theirs) == len(mine):
        return theirs
    names, others = argument_names(schema), argument_names(line["schema"])
    if len(names) != len(mine) or len(others) != len(theirs) or not set(others) <= set(names):
        return None
    known = dict(zip(others, theirs))
    return [known.get(name, own) for name, own in zip(names, mine)]


def argument_names(schema):
    if "(" not in schema or "..." in schema:
        return []
    return [argument.name for argument in torch._C.parse_schema(schema).arguments]


def fits(mine, value):
    tensors = isinstance(mine, torch.Tensor) and isinstance(value, torch.Tensor)
    return tensors and mine.shape == value.shape and mine.dtype == value.dtype


def set_generator(state):
    try:
        torch.set_rng_state(state)
    except (RuntimeError, TypeError):
        pass  # another layout: then what is drawn shows as a difference, which it is


# A phase of nodes lasts about so long, unless one node does: that is how a node that hangs is told from many nodes.
STRETCH_S = 0.5


def trace(request, run_dir, log):
    order = request["trace"]
    log.mark("switches", settings.apply_process_wide(request))
    log.mark("numerics", settings.state(request))
    (run,) = request["runs"]
    name, wanted = run["artifact"]["model"], (order["input_set"], order["call"])
    with log.phase(wire.INPUTS, model=name):
        served = serving.ServedModel(run, device.of(request))
        other = None
        if order["beside"] is not None:
            other = trace_files.TraceReader(os.path.join(order["beside"], wire.TRACE), request["device"])
        folder = os.path.join(run_dir, wire.TRACE)
        writer = trace_files.TraceWriter(folder, order["tensor_bytes"], order["total_bytes"], order["index_bytes"])
    serving.load(served, log)
    with settings.thread_context(request):
        for set_name, call in calls_before(served.schedule, wanted):
            serving.call(served, log, set_name, call)
        served.prepare()
        answers = trees.TensorWriter(os.path.join(run_dir, wire.OUTPUTS))
        with Stretches(log, model=name, set=wanted[0], call=wanted[1]) as stretches:
            make = OBSERVERS[order["mode"]]
            observer = make(writer, stretches.beat, other, order)
            target = served.target(wanted[0])
            output = interpreter.Interpreter(observer).call(target[0], target[1], served.arguments(wanted[0]))
            answers.write(output, model=name, set=wanted[0], call=wanted[1])
    log.emit("ready", model=name, thread=0)


OBSERVERS = {"free": Recorder, "forced": Forced, "patched": Patched}


def calls_before(schedule, wanted):
    for set_name, calls in schedule:
        for call in range(calls):
            if (set_name, call) == wanted:
                return
            yield set_name, call


class Stretches:
    """Opens one phase ``nodes`` after another, so that a hang is placed between two nodes of the trace."""

    def __init__(self, log, **fields):
        self._log = log
        self._fields = fields

    def __enter__(self):
        self._begin()
        return self

    def __exit__(self, *error):
        return self._phase.__exit__(*error)

    def beat(self):
        if time.monotonic() > self._end:
            self._phase.__exit__(None, None, None)
            self._begin()

    def _begin(self):
        self._end = time.monotonic() + STRETCH_S
        self._phase = self._log.phase(wire.NODES, **self._fields)
        self._phase.__enter__()
