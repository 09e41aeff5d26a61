"""Grids: one declaration that stands for many models, one per combination of its values."""

import ast
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta

from harness.domain.fixture import GridValue
from harness.planning.schema import Kind

MOST_MODELS: Final = 1000  # of one declaration: a grid with more is a slip of the hand

# Strict about numbers: no infinity (`1e999` is a literal), and nothing that JSON does not carry to the exporter.
_Value = (
    bool
    | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[float, Meta(ge=-1e308, le=1e308)]
    | Annotated[str, Meta(min_length=1)]
)
_Parameter = Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z")]
_Values = Annotated[tuple[_Value, ...], Meta(min_length=1)]
GRID: Final = Kind(
    'a dict of parameters and tuples of their values such as {"size": (1e-3, 1e-2)}',
    Annotated[dict[_Parameter, _Values], Meta(min_length=1)],
)
PLACEHOLDER: Final = r"\{([A-Za-z_][A-Za-z0-9_]*)\}"

Grid = Mapping[str, Sequence[GridValue]]


def combinations(grid: Grid) -> Iterator[dict[str, GridValue]]:
    """Yield the arguments of each model of a grid; the last parameter changes fastest. Without a grid, none once."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def too_large(grid: Grid) -> str:
    """Return why a grid is refused for its size; empty if it is not."""
    models = math.prod(len(values) for values in grid.values())
    return f"the grid has {models} combinations" if models > MOST_MODELS else ""


def joined(name: str, arguments: Mapping[str, GridValue]) -> str:
    """Return the name of one model: the declared one and the values, e.g. ``drift_one_1e_07``."""
    return "_".join((name, *map(_word, arguments.values())))


def filled(text: str, arguments: Mapping[str, GridValue]) -> str:
    """Return ``text`` with each ``{parameter}`` replaced by its value, as it stands in the model's name.

    Raises:
        KeyError: with the parameter that the grid does not have.
    """
    return re.sub(PLACEHOLDER, lambda found: _word(arguments[found[1]]), text)


def why_uncallable(factory: ast.FunctionDef, grid: Grid) -> tuple[str, str]:
    """Return why ``factory`` cannot be called with the parameters of ``grid``, and what to do; empty if it can."""
    spec = factory.args
    given = set(grid)
    positional = [*spec.posonlyargs, *spec.args]
    needed = {argument.arg for argument in positional[: len(positional) - len(spec.defaults)]}
    needed |= {
        argument.arg for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None
    }
    named = {argument.arg for argument in (*spec.args, *spec.kwonlyargs)}
    if needed and not given:
        return f"factory {factory.name} has parameters", "it is called without arguments"
    missing, extra = sorted(needed - given), sorted(given - named) if spec.kwarg is None else []
    if missing:
        return f"factory {factory.name} has a parameter {missing[0]}", "the grid gives it no values"
    if extra:
        return f"factory {factory.name} has no parameter {extra[0]}", "the grid's parameters are given by name"
    return "", ""


def _word(value: GridValue) -> str:
    return re.sub(r"\W", "_", str(value), flags=re.ASCII)
