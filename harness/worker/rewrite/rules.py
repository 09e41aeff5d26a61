"""The register of rules that write an operator in other words, and what a rule is given.

The rules themselves are in ``layers.py``, ``images.py``, ``matrix_products.py`` and others beside this module.

A rule takes the ``Site`` of a node, changes its graph, and raises ``Refused`` where it does not fit. It sees no dtype
and no shape: whether the values stay what they were is for whoever asked to verify.
"""

from gate_worker.graph import node_replacement

RULES = {}


class Rule:
    """``what`` it does, what it ``needs`` to be right, and which sites it ``fits``, by the operator alone."""

    def __init__(self, name, what, needs, apply, fits=None):
        self.name, self.fits, self.apply = name, fits, apply
        self.words = {"what": what, "needs": needs}


def rule(name, *operators, what, needs="", fits=None):
    """Register the function as the rule ``name``: for operators by name or by ``fits``, or for none in particular."""
    by_name = fits or (lambda site: site.operator in operators)

    def register(function):
        assert name not in RULES, name
        RULES[name] = Rule(name, what, needs, function, by_name)
        return function

    return register


def written(name, *operators, what, source, needs="", unless=None):
    """Register a rule that puts the function ``f`` of ``source`` in place; ``unless`` may raise ``Refused`` first."""

    def apply(site):
        if unless is not None:
            unless(site)
        node_replacement.write_out(site, source)

    rule(name, *operators, what=what, needs=needs)(apply)


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0]
