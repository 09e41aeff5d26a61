"""What a graph says of a node beside its values: its schema, the code that it comes from, the module that it is in."""

import difflib
import re

SCRIPTED = re.compile(r'File "([^"]*)", line (\d+)')
TRACED = re.compile(r"^(\S.*)\((\d+)\): ", re.MULTILINE)
MARKED = re.compile(r"^(.*)\n\s*~+ <--- HERE", re.MULTILINE)
# What comes after it is the archive's own code.
SERIALIZED = "Serialized"
# A free function, inlined: it belongs to no module.
UNKNOWN = "UNKNOWN_INSTANCE"
INSTANCE = re.compile(r"(\w+)\(([^()]*)\)")


def facts_of(node, paths):
    """Return what is told of a node: schema, source, code, module; empty where nobody knows.

    ``paths``: of all modules that its graph fetches, see ``module_paths``.
    """
    schema = node.schema()
    text = node.sourceRange()
    return {
        "schema": schema if "(" in schema else "",
        "source": source_of(text),
        "code": code_of(text),
        "module": module_of(node, paths),
    }


def source_of(text):
    """Return ``file:line`` of what was exported; of the archive's own code where it has no debug information."""
    exported, _, serialized = text.partition(SERIALIZED)
    scripted = [frame for frame in SCRIPTED.findall(exported) if frame[0]]
    frames = TRACED.findall(exported)
    own = [frame for frame in frames if "/site-packages/torch/" not in frame[0]]
    known = scripted or own or frames or SCRIPTED.findall(serialized)
    return "%s:%s" % known[0] if known else ""


def code_of(text):
    marked = MARKED.search(text)
    return marked.group(1).strip() if marked else ""


def key_of(node):
    """Return by what a node is known again in the graph of another release."""
    name = node.s("name") if node.kind() in ("prim::GetAttr", "prim::SetAttr") else ""
    return [node.kind(), name, source_of(node.sourceRange())]


def module_of(node, paths):
    """Return the path of the module whose code the node is, e.g. ``encoder.layers.3``; "" at the top or if unsure.

    torch keeps the last name of each module on the way (``encoder``, ``3``), so the path is the one among those that
    the graph fetches that has these names in this order and ends alike. If there are several, the node's own
    parameters decide.
    """
    names = []
    try:
        hierarchy = node.getModuleHierarchy()
    except Exception:
        return ""
    for name, _ in INSTANCE.findall(hierarchy):
        if name == UNKNOWN:
            break
        if name not in ("TOP", "SELF"):
            names.append(name)
    if not names:
        return ""
    fitting = {path for path in paths if path[-1] == names[-1] and is_subsequence(names, path)}
    if len(fitting) > 1:
        own = {attribute_path(value)[:-1] for value in node.inputs() if attribute_path(value)}
        fitting &= own
    return ".".join(fitting.pop()) if len(fitting) == 1 else ""


def is_subsequence(names, path):
    rest = iter(path)
    return all(name in rest for name in names)


def module_paths(nodes):
    """Return the paths, as tuples of names, of all attributes that nodes, and those in them, fetch of their module."""
    paths = set()
    for node in nodes:
        if node.kind() == "prim::GetAttr":
            paths.add(attribute_path(node.output()))
        for block in node.blocks():
            paths |= module_paths(block.nodes())
    return paths - {()}


def attribute_path(value):
    """Return the names that lead from the module to ``value``; () if it is no attribute."""
    root, path = root_and_path(value)
    return path if root.node().kind() == "prim::Param" else ()


def root_and_path(value):
    """Return the value that is no attribute, and the names that lead from it to ``value``."""
    names = []
    while value.node().kind() == "prim::GetAttr":
        names.append(value.node().s("name"))
        (value,) = value.node().inputs()
    return value, tuple(reversed(names))


def aligned(theirs, mine):
    """Return the label of each of ``mine``: the index of its like in ``theirs``, or -1 - its own index.

    Keys are (kind, attribute, source); where the sources are told in other words, kinds alone are compared.
    """
    if [key[0] for key in theirs] == [key[0] for key in mine]:
        return list(range(len(mine)))
    matches = matches_of([tuple(key) for key in theirs], [tuple(key) for key in mine])
    if 2 * sum(match.size for match in matches) < min(len(theirs), len(mine)):
        matches = matches_of([key[0] for key in theirs], [key[0] for key in mine])
    labels = [-1 - index for index in range(len(mine))]
    for match in matches:
        for offset in range(match.size):
            labels[match.b + offset] = match.a + offset
    return labels


def matches_of(theirs, mine):
    return difflib.SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
