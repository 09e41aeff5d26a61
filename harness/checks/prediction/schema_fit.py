"""Whether a release's schema takes a call as an archive writes it; in doubt the answer is ``MAYBE``.

Follows torch's matching (torch/csrc/jit/frontend/schema_matching.cpp): positional arguments in order, then keywords by
name, then defaults. Types are compared only where the archive's text tells them.
"""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum

from harness.core.archive import OperatorUse, Parameter, Schema

GENERIC = re.compile(r"List\[(.*)\]")
LIST = re.compile(r"(.*)\[(\d*)\]")
# Names of types in an archive's code -> in schemas.
SAME = {"number": "Scalar", "Device": "Device", "NoneType": "None"}
SIMPLE = frozenset(("Tensor", "int", "float", "bool", "str", "complex", "Scalar", "Device", "None"))
# What torch converts implicitly where no exact match exists (tryConvertToType), besides equal types.
CONVERTS = {
    "int": ("Scalar", "float", "bool", "complex", "Tensor"),
    "float": ("Scalar", "complex", "Tensor"),
    "bool": ("Scalar", "int", "Tensor"),
    "complex": ("Scalar",),
    "Scalar": ("int", "float", "Tensor"),
    "Tensor": ("Scalar", "int", "float", "bool"),
    "str": ("Device",),
}
# An exact match for a Scalar.
WIDER = ("int", "float", "bool", "complex")


class Fit(IntEnum):
    """How well a schema takes a call."""

    NO = 0
    MAYBE = 1
    YES = 2


ANSWERED = frozenset(("Tensor", "int", "float", "bool", "str", "complex", "Device", "List", "Dict", "Tuple"))
"""Types whose names in schemas and in code are the same, and that no other stands for."""


def fit(schema: Schema, use: OperatorUse) -> Fit:
    pairs = consumed(schema, use)
    if pairs is None or not _unpacks(schema, use.results):
        return Fit.NO
    return min((type_fit(argument, parameter.type) for argument, parameter in pairs), default=Fit.YES)


def consumed(schema: Schema, use: OperatorUse) -> list[tuple[str, Parameter]] | None:
    """Return which parameter each argument goes to (keywords have no type); None if they do not go in."""
    given, keywords = use.arguments, set(use.keywords)
    pairs: list[tuple[str, Parameter]] = []
    place = 0
    for parameter in schema.parameters:
        if place < len(given) and not parameter.keyword_only:
            pairs.append((given[place], parameter))
            place += 1
        elif parameter.name in keywords:
            keywords.discard(parameter.name)
            pairs.append(("", parameter))
        elif not parameter.has_default:
            return None
    return None if keywords or (place < len(given) and not schema.takes_more) else pairs


def why_not(schema: Schema, use: OperatorUse) -> str:
    names = {parameter.name for parameter in schema.parameters}
    unknown = [keyword for keyword in use.keywords if keyword not in names]
    if unknown:
        return f"has no argument {unknown[0]}"
    places = sum(not parameter.keyword_only for parameter in schema.parameters)
    if len(use.arguments) > places and not schema.takes_more:
        return f"takes {places} positional arguments, not {len(use.arguments)}"
    pairs = consumed(schema, use)
    if pairs is None:
        return "needs an argument that the call does not give"
    if not _unpacks(schema, use.results):
        return f"returns {len(schema.returns)} values, not {use.results}"
    refused = [(argument, item) for argument, item in pairs if type_fit(argument, item.type) is Fit.NO]
    argument, item = refused[0]
    return f"takes {item.type} for {item.name}, not {argument}"


def covers(wanted: Schema, given: Schema, use: OperatorUse) -> bool:
    """Return whether ``given`` takes every call in the shape of ``use`` that ``wanted`` takes, with equal results.

    A parameter that certainly takes an argument whose type is known may have another type.
    """
    before, after = consumed(wanted, use), consumed(given, use)
    if before is None or after is None or len(before) != len(after) or wanted.returns != given.returns:
        return False
    by_name = {parameter.name: parameter for argument, parameter in after if parameter.name in use.keywords}
    for index, (argument, parameter) in enumerate(before):
        other = by_name.get(parameter.name) if parameter.name in use.keywords else after[index][1]
        if other is None:
            return False
        if type_fit(argument, other.type) is not Fit.YES and not _widened(parameter.type, other.type):
            return False
    return True


def goes_first(first: Schema, other: Schema, use: OperatorUse) -> bool:
    """Return whether torch takes ``first`` before ``other``: ``first``'s positional arguments fit exactly.

    Types of keywords are not known, but a keyword that goes into the same type of both tells them apart in no call.
    """
    mine, theirs = consumed(first, use), consumed(other, use)
    if mine is None or theirs is None:
        return False
    places = len(use.arguments)
    exact = all(type_fit(argument, parameter.type) is Fit.YES for argument, parameter in mine[:places])
    types = [{parameter.name: parameter.type for _, parameter in pairs[places:]} for pairs in (mine, theirs)]
    return exact and types[0] == types[1]


def type_fit(argument: str, parameter: str) -> Fit:
    """Return whether a value of type ``argument``, as code writes types, goes into ``parameter``, as schemas do."""
    if argument.startswith("~"):
        return min(type_fit(argument[1:], parameter), Fit.MAYBE)
    if not argument or (argument.startswith("List") and not argument.startswith("List[")):
        return _bare_list(parameter) if argument else Fit.MAYBE
    optional, plain = parameter.endswith("?"), parameter.removesuffix("?")
    if argument.startswith("Optional["):
        if optional or plain == "Any":
            return type_fit(argument[9:-1], plain)
        return Fit.MAYBE if _is_variable(plain) else Fit.NO
    if argument == "None":
        return Fit.YES if optional or plain in ("Any", "NoneType") else Fit.MAYBE if _is_variable(plain) else Fit.NO
    element = GENERIC.fullmatch(argument)
    wanted = LIST.fullmatch(plain)
    if wanted is not None:
        if element is not None:
            return type_fit(element[1], wanted[1])
        if SAME.get(argument, argument) not in SIMPLE:
            return Fit.MAYBE
        return type_fit(argument, wanted[1]) if wanted[2] else Fit.NO  # int[2] takes one int for both
    if plain == "Any":
        return Fit.YES
    if _is_variable(plain):
        return Fit.MAYBE
    given = SAME.get(argument, argument)
    if element is not None:
        return Fit.NO
    if given not in SIMPLE or plain not in SIMPLE:
        return Fit.MAYBE
    if given == plain or (plain == "Scalar" and given in WIDER):
        return Fit.YES
    return Fit.MAYBE if plain in CONVERTS.get(given, ()) else Fit.NO


def _bare_list(parameter: str) -> Fit:
    plain = parameter.removesuffix("?")
    return Fit.NO if plain in SIMPLE else Fit.MAYBE


def _is_variable(type_: str) -> bool:
    """Return whether a schema's type stands for any type (``t``), or is one that is not compared here."""
    return type_ not in SIMPLE and LIST.fullmatch(type_) is None


def _unpacks(schema: Schema, results: int) -> bool:
    """Return whether the answer suits: torch prints several values always unpacked, and one never."""
    if len(schema.returns) == 1:
        return not results or schema.returns[0] not in SIMPLE
    return len(schema.returns) == results


def _widened(before: str, after: str) -> bool:
    return after in set(_wider(before))


def _wider(type_: str) -> Iterator[str]:
    yield from (type_, type_.removesuffix("?") + "?")
    if type_ in WIDER:
        yield from ("Scalar", "Scalar?")


def may_answer(schemas: Sequence[Schema], expected: str) -> bool:
    """Return whether one of ``schemas`` may answer with the written type ``expected``; True where that is not known."""
    return not schemas or any(_may_be(expected, schema.returns) for schema in schemas)


def _may_be(expected: str, returns: Sequence[str]) -> bool:
    kind = expected.removeprefix("Optional[").partition("[")[0].removesuffix("]")
    if len(returns) != 1:
        return kind not in ANSWERED or kind == "Tuple"
    given = "List" if "[" in returns[0] else returns[0]
    return kind not in ANSWERED or given not in ANSWERED or given == kind
