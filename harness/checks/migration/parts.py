"""Which programs an artifact needs: one a method, one a way to leave arguments out or to choose by a value. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.artifacts.tensors.trees import Tree
from harness.core.migration import Presence

# More are no way out that anybody would serve: a text in place of a choice, say.
MOST_VALUES = 8
CHOOSING = ("str", "bool", "float")
"""Kinds of plain values that a program always holds constant; a whole number stays open where it can."""


Choice = str | Presence


class Part(NamedTuple):
    """What one program answers: ``fixed`` are the arguments of its requests that it holds, as of ``PartProgram``."""

    method: str
    fixed: tuple[tuple[str, Choice], ...]
    sets: tuple[str, ...]

    @property
    def by_value(self) -> bool:
        """Whether callers choose it by a value, of which there may be others, and not by leaving an argument out."""
        return not all(isinstance(choice, Presence) for _, choice in self.fixed)


def parts_of(requests: Mapping[str, tuple[str, Tree]], *, whole_numbers: bool = False) -> list[Part]:
    """Return the parts of an artifact, in the order of its requests; one part alone holds nothing.

    Args:
        requests: input set -> method and tree of the arguments.
        whole_numbers: whether each whole number that an argument has takes a program too.
    """
    methods = dict.fromkeys(method for method, _ in requests.values())
    parts = []
    for method in methods:
        trees = {name: tree for name, (called, tree) in requests.items() if called == method}
        parts += _of_method(method, trees, (*CHOOSING, "int") if whole_numbers else CHOOSING)
    return parts


def _of_method(method: str, trees: Mapping[str, Tree], kinds: Sequence[str]) -> list[Part]:
    arguments = {name: _arguments(tree) for name, tree in trees.items()}
    count = max(map(len, arguments.values()))
    varied = []
    for index in range(count):
        choices = {_choice(given, index, kinds) for given in arguments.values()}
        if 1 < len(choices) <= MOST_VALUES:
            varied.append(index)
    groups: dict[tuple[tuple[str, Choice], ...], list[str]] = {}
    for name, given in arguments.items():
        held = tuple((f"input[{index}]", _choice(given, index, kinds)) for index in varied)
        groups.setdefault(held, []).append(name)
    return [Part(method, held, tuple(names)) for held, names in groups.items()]


def _arguments(tree: Tree) -> Sequence[Tree]:
    kind, value = tree
    return list(value) if kind in ("tuple", "list") else []


def _choice(given: Sequence[Tree], index: int, kinds: Sequence[str]) -> Choice:
    if index >= len(given) or given[index][0] == "none":
        return Presence.LEFT_OUT
    kind, value = given[index]
    return f"{value}" if kind in kinds else Presence.GIVEN
