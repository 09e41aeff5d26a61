"""Verb ``convert``: make an ExportedProgram of an artifact by torch's own converter, and save it as .pt2."""

import contextlib
import os
import re
import warnings

import torch

from gate_worker import settings, wire
from gate_worker.graph import node_facts
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


def convert(request, run_dir, log):
    (run,) = request["runs"]
    artifact, ((example, _),) = run["artifact"], run["schedule"]
    name = artifact["model"]
    log.mark("switches", settings.apply_process_wide(request))
    with log.phase(wire.INPUTS, model=name):
        reader = trees.TensorReader(artifact["inputs_dir"], request["device"])
        (tree,) = [entry["tree"] for entry in reader.index(artifact["inputs_dir"]) if entry["set"] == example]
        arguments = reader.value(tree)
    with log.phase(wire.LOAD, model=name):
        module = torch.jit.load(artifact["path"], map_location=request["device"])
        module.eval()
    with warnings.catch_warnings(), log.phase(wire.CONVERT, model=name):
        warnings.simplefilter("ignore")
        program = converted(module, arguments, log)
    with warnings.catch_warnings(), log.phase(wire.SAVE, model=name):
        warnings.simplefilter("ignore")
        path = os.path.join(run_dir, name + wire.PROGRAM)
        torch.export.save(program, path)
        log.mark("converted", {"dimensions": dimensions(program, arguments), "bytes": os.path.getsize(path)})
    log.emit("ready", model=name, thread=0)


def converted(module, arguments, log):
    """Return the program; the mark ``not_converted`` tells at which node of the graph the converter has given up."""
    if converter is None:
        raise NoConverter("torch %s has no torch._export.converter.TS2EPConverter" % torch.__version__)
    with torch.no_grad(), marking_where(converter.TS2FXGraphConverter, log):
        return converter.TS2EPConverter(module, arguments).convert()


@contextlib.contextmanager
def marking_where(kind, log):
    """Mark the innermost node at which the converter of a graph raises; its own error names the kind alone.

    A branch is converted first and traced later: where that fails, it was at the only branch, if there is but one.
    """
    convert_node = kind.convert_node
    marked, branches = [], []

    def mark(node, reason):
        marked.append(node)
        facts = node_facts.facts_of(node, ())
        log.mark(
            "not_converted",
            {
                "kind": node.kind(),
                "source": facts["source"],
                "code": facts["code"],
                "reason": ("%s: %s" % (type(reason).__name__, reason))[:2000],
            },
        )

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


def dimensions(program, arguments):
    """Return per argument of the program its path and what it holds open: sizes of a tensor, None where free.

    What is no tensor has no sizes: ``[path, null]``. It is a constant of the program.
    """
    from torch.utils import _pytree as pytree

    paths = [path for path, _ in pytree.tree_flatten_with_path(tuple(arguments))[0]]
    kinds = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    described = []
    for path, spec in zip(paths, kinds):
        value = values.get(getattr(spec.arg, "name", ""))
        sizes = None
        if isinstance(value, torch.Tensor):
            sizes = [size if isinstance(size, int) else None for size in value.shape]
        described.append([["input"] + [step_of(key) for key in path], sizes])
    return described


def step_of(key):
    """Return a key of a pytree as a step of a path (see ``docs/formats/wire.md``)."""
    for name in ("idx", "name"):
        if hasattr(key, name):
            return getattr(key, name)
    key = key.key
    kind = next((kind for kind in (bool, int, str) if isinstance(key, kind)), None)
    return [kind.__name__, key] if kind is not None else ["object", type(key).__name__]
