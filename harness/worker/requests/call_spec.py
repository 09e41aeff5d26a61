"""The tensors that a package of AOTInductor takes, as Triton's PyTorch backend names them (``src/pt2`` there).

The package has its call specification in it, ``[version, spec]``: a pytree as torch writes it, of a tuple with the
positional and a dict with the keyword arguments. Each tensor is named by its place, ``ARGS[0]``, ``ARGS[1][key]``,
``KWARGS[key]``, or by its number among all, ``INPUT__0``. The backend checks names and counts, and no shapes.
"""

import json

SEQUENCES = {"builtins.tuple": "tuple", "builtins.list": "list"}
DICT = "builtins.dict"
MOST_NAMED = 6


class NotServed(Exception):
    """The backend would not serve the model so, or nothing can be made for it; the message says why."""


class Places:
    """The tensors of a call specification.

    ``names``: by which each is known, in order. ``arguments`` and ``keywords``: what a call is made of, as trees of a
    ``Guess`` whose leaves are the tensors' numbers.
    """

    def __init__(self, text):
        positional, keywords = halves(text)
        self.names = []
        self.arguments = [self._tree(spec, "ARGS[%d]" % number) for number, spec in enumerate(children(positional))]
        self.keywords = [(key, self._tree(spec, "KWARGS[%s]" % key)) for key, spec in entries(keywords, "KWARGS")]

    def _tree(self, spec, name):
        kind = spec.get("type")
        if kind is None:
            self.names.append(name)
            return ("leaf", len(self.names) - 1)
        if kind in SEQUENCES:
            return (
                SEQUENCES[kind],
                [self._tree(child, "%s[%d]" % (name, number)) for number, child in enumerate(children(spec))],
            )
        if kind == DICT:
            return ("dict", [(key, self._tree(child, "%s[%s]" % (name, key))) for key, child in entries(spec, name)])
        raise NotServed("%s is a %s, and the backend knows tuples, lists and dicts of tensors" % (name, kind))

    def __str__(self):
        more = len(self.names) - MOST_NAMED
        return ", ".join(self.names[:MOST_NAMED]) + (" and %d more" % more if more > 0 else "")

    def numbers_of(self, inputs):
        """Return for each described input the number of the tensor that it becomes; each tensor has one."""
        known = {}
        for number, name in enumerate(self.names):
            known[name] = known["INPUT__%d" % number] = number
            # Its documentation has KWARGS[key], and model_state.cc makes KWARGSkey.
            if name.startswith("KWARGS[") and name.count("[") == 1:
                known[name.replace("[", "").replace("]", "")] = number
        bound = {}
        for item in inputs:
            name = item["name"]
            if item["kind"] != "input":
                raise NotServed("the backend passes packages what clients send alone, and %s is made by it" % name)
            if item["dtype"] == "text":
                raise NotServed("the backend passes packages tensors alone, and %s is a text" % name)
            if name not in known:
                raise NotServed("%s is no input of the package, which takes %s, or INPUT__0 and so on" % (name, self))
            number = known[name]
            if number in bound:
                raise NotServed("%s and %s are both %s" % (bound[number], name, self.names[number]))
            bound[number] = name
        missing = [name for number, name in enumerate(self.names) if number not in bound]
        if missing:
            raise NotServed("the configuration has no input for %s" % ", ".join(missing))
        return [known[item["name"]] for item in inputs]


def halves(text):
    """Return the specifications of the positional and of the keyword arguments."""
    try:
        _, spec = json.loads(text)
        positional, keywords = spec["children_spec"]
        kinds = [item["type"] for item in (spec, positional, keywords)]
    except (ValueError, TypeError, KeyError):
        raise NotServed("the package has a call specification that the backend does not read")
    if kinds != ["builtins.tuple", "builtins.tuple", DICT]:
        raise NotServed("the package's call specification is of %s, and the backend reads a tuple and a dict" % kinds)
    return positional, keywords


def children(spec):
    return spec.get("children_spec") or []


def entries(spec, name):
    """Return the keys of a dict with what they lead to; ``context`` holds the keys, as JSON in a text."""
    context = spec.get("context")
    try:
        keys = (json.loads(context) if isinstance(context, str) else context) or []
    except ValueError:
        keys = [None]
    if not all(isinstance(key, str) for key in keys) or len(keys) != len(children(spec)):
        raise NotServed("%s has keys that are no texts, which the backend does not read" % name)
    return list(zip(keys, children(spec)))
