"""Where the rules stand that say what operators need of their inputs, and what a rule is given."""

import torch

from gate_worker.needs.known_sizes import known
from gate_worker.needs.value_requirements import ValueRequirements

# Name of an operator without namespace -> rule, and kind of a step -> rule for one member of the list that it takes.
RULES = {}
OF_LISTS = {}


class Use:
    """One use of a value: the ``kind`` of the step, the ``position`` of the value among its ``count`` inputs.

    ``out`` is what the first output of the step is needed to be.
    """

    def __init__(self, flow, step, position, out):
        self._flow = flow
        self._inputs = step.inputs
        self.kind = step.kind
        self.position = position
        self.count = len(step.inputs)
        self.out = out

    def constant(self, place):
        """Return (whether it is known, the value) of another input."""
        return self._flow.constant(self._inputs[place])

    def number(self, place, default=None):
        """Return the constant that another input is, if it is one."""
        is_known, value = self.constant(place)
        return value if is_known else default

    def known(self, place):
        """Return the rank and sizes that another input certainly has."""
        return known(self._flow, self._inputs[place])


class ListUse(Use):
    """The use of a value in a list that an operator takes."""

    def __init__(self, flow, step, position, consumer, out):
        super().__init__(flow, consumer, position, out)
        self._members = step.inputs

    def members(self):
        """Return what is known of the list's values, an empty need for this one."""
        return [
            ValueRequirements() if at == self.position else known(self._flow, name)
            for at, name in enumerate(self._members)
        ]


def rule(*names):
    def register(function):
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return register


def floating(dtype):
    return dtype if dtype is not None and (dtype.is_floating_point or dtype.is_complex) else None


def index(below=None, rank=None, role=""):
    return ValueRequirements(dtype=torch.int64, rank=rank, below=below, role=role)


def of_list(*kinds):
    def register(function):
        for kind in kinds:
            assert kind not in OF_LISTS, kind
            OF_LISTS[kind] = function
        return function

    return register
