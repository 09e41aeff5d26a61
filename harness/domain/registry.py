"""What one torch release accepts: operators, upgraders, custom classes, dtypes, type names."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a schema; ``type`` without alias marks, e.g. ``"Tensor?"`` or ``"int[2]"``."""

    name: str
    type: str
    keyword_only: bool
    has_default: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """One overload of an operator; ``takes_more`` where further positional arguments are allowed."""

    overload: str
    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]
    takes_more: bool = False


@dataclass(frozen=True, slots=True)
class Upgrader:
    """How archives below an operator version are read: with the ``old`` schema, by a function of that ``name``."""

    name: str
    below_version: int
    old: Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorRegistry:
    """What a release accepts.

    Attributes:
        torch: its version, as it says itself.
        operator_version: the newest that it writes and reads.
        schemas: ``"aten::add"`` -> its overloads.
        upgraders: by the operator's name, likewise.
        custom_classes: TorchBind classes, e.g. ``"quantized.LinearPackedParamsBase"``.
        library_operators: those of ``schemas`` that operator libraries have registered.
        dtypes: ``"float32"``, ...; ``type_names``: those of the types asked for that its parser knows.
    """

    torch: str
    operator_version: int
    schemas: Mapping[str, tuple[Schema, ...]]
    upgraders: Mapping[str, tuple[Upgrader, ...]]
    custom_classes: frozenset[str]
    dtypes: frozenset[str]
    type_names: frozenset[str]
    library_operators: frozenset[str] = frozenset()
