"""Verbs ``convert`` and ``walk``: make a .pt2 of an artifact, by torch's own converter or by walking its graph."""

import contextlib
import os
import re
import warnings

import torch

from gate_worker import settings, wire
from gate_worker.graph import node_facts
from gate_worker.successor import sizes
from gate_worker.values import trees

try:
    from torch._export import converter
except ImportError:  # of an older release
    converter = None


# Of torch.cond, which a prim::If becomes: the type of the error, and what its text names in each release.
BRANCH_ERROR = "UncapturedHigherOrderOpError"
BRANCH_TEXT = re.compile(r"^Cond |torch\.cond")


class NoConverter(Exception):
    """This release has no converter."""


class LosesCheck(Exception):
    """A program of torch's converter would answer where the artifact raises, or by the branch of other sizes."""


def convert(request, run_dir, log):
    make(request, run_dir, log, converted)


def walk(request, run_dir, log):
    make(request, run_dir, log, walked)


def make(request, run_dir, log, way):
    """Make a program of the method that the input sets of the schedule call; the first one is the example.

    Args:
        way: a function of module, requests, the example's name, the method and ``log``.
    """
    (run,) = request["runs"]
    artifact, sets = run["artifact"], [name for name, _ in run["schedule"]]
    name, example = artifact["model"], sets[0]
    log.mark("switches", settings.apply_process_wide(request))
    with log.phase(wire.INPUTS, model=name):
        reader = trees.TensorReader(artifact["inputs_dir"], request["device"])
        entries = {entry["set"]: entry for entry in reader.index(artifact["inputs_dir"])}
        requests = {name: reader.value(entries[name]["tree"]) for name in sets}
        method = entries[example]["method"]
    with log.phase(wire.LOAD, model=name):
        module = torch.jit.load(artifact["path"], map_location=request["device"])
        module.eval()
    with warnings.catch_warnings(), log.phase(wire.CONVERT, model=name):
        warnings.simplefilter("ignore")
        if converter is None:
            raise NoConverter("torch %s has no torch._export.converter.TS2EPConverter" % torch.__version__)
        program, example, decided, has_state = way(module, requests, example, method, log)
    with warnings.catch_warnings(), log.phase(wire.SAVE, model=name):
        warnings.simplefilter("ignore")
        path = os.path.join(run_dir, name + wire.PROGRAM)
        torch.export.save(program, path)
        held = sizes.of_program(program, requests[example])
        made = {"dimensions": held, "bytes": os.path.getsize(path), "example": example}
        log.mark("converted", {**made, "decided": decided, "has_state": has_state})
    log.emit("ready", model=name, thread=0)


def walked(module, requests, example, method, log):
    from gate_worker.successor import walking  # what it needs, an older release has not

    return walking.program_of((module, method), example, requests, lambda *node: mark_node(log, *node))


def converted(module, requests, example, method, log):
    """Return the program; the mark ``not_converted`` tells at which node of the graph the converter has given up."""
    if method != "forward":
        raise LosesCheck("torch's converter takes forward for every method")
    from gate_worker.successor import lost_checks  # what it needs, an older release has not

    lost = lost_checks.first(module.inlined_graph)
    if lost is not None:
        error = LosesCheck("torch's converter drops this check, or takes every size for 2 or more here")
        mark_node(log, lost, error)
        raise error
    with torch.no_grad(), marking_where(converter.TS2FXGraphConverter, log):
        return converter.TS2EPConverter(module, requests[example]).convert(), example, [], False


def mark_node(log, node, reason):
    facts = node_facts.facts_of(node, ())
    reason = ("%s: %s" % (type(reason).__name__, reason))[:2000]
    log.mark("not_converted", {"kind": node.kind(), "source": facts["source"], "code": facts["code"], "reason": reason})


@contextlib.contextmanager
def marking_where(kind, log):
    """Mark the innermost node at which the converter of a graph raises; its own error names the kind alone.

    A branch is converted first and traced later: where that fails, it was at the only branch, if there is but one.
    """
    convert_node = kind.convert_node
    marked, branches = [], []

    def mark(node, reason):
        marked.append(node)
        mark_node(log, node, reason)

    def watched(self, node):
        if node.kind() == "prim::If":
            branches.append(node)
        try:
            return convert_node(self, node)
        except Exception as error:
            if not marked:
                mark(node, error.__cause__ or error)
            raise

    kind.convert_node = watched
    try:
        yield
    except Exception as error:
        is_of_a_branch = type(error).__name__ == BRANCH_ERROR and BRANCH_TEXT.search(str(error))
        if is_of_a_branch and not marked and len(branches) == 1:
            mark(branches[0], error)
        raise
    finally:
        kind.convert_node = convert_node
