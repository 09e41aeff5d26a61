"""Server groups: which models share a process, as they do in production.

Hundreds of artifacts in one process would measure memory; one process per artifact would never show what models do to
each other. So the configuration says which belong together; a model that it does not mention joins those of its tag.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from harness.config.selection import Predicate, parse_expression
from harness.core.errors import SelectionError
from harness.core.models import ArtifactKind, ModelDeclaration

UNTAGGED: Final = "misc"
PROGRAMS: Final = " (programs)"
KEY: Final = "tool.compat.serving.groups"


def assign_groups(models: Sequence[ModelDeclaration], groups: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return server group -> names of its models; every model is in exactly one group and no group is empty.

    Args:
        models: unique names; their order is kept within a group.
        groups: group -> selection expression, in the order of the configuration. The first that matches takes a model.

    Returns:
        The configured groups in their order, then those named after the first tag of models that none of them took,
        by name, then ``"misc"`` for models without a tag. A tag that is the name of a configured group joins it.
        Exported programs of a group, which no server in C++ loads, are a group ``GROUP (programs)`` after all of these.

    Raises:
        SelectionError: an expression cannot be read; names its key in the configuration.
    """
    rules = [(name, _read(name, expression)) for name, expression in groups.items()]
    members: dict[str, list[str]] = {}
    programs: dict[str, list[str]] = {}
    for model in models:
        if model.kind is ArtifactKind.PROGRAM:
            programs.setdefault(_group_of(model, rules) + PROGRAMS, []).append(model.name)
        else:
            members.setdefault(_group_of(model, rules), []).append(model.name)
    tagged = sorted(members.keys() - groups.keys() - {UNTAGGED})
    order = dict.fromkeys([*groups, *tagged, UNTAGGED])
    found = {group: tuple(members[group]) for group in order if group in members}
    return found | {group: tuple(programs[group]) for group in sorted(programs)}


def _group_of(model: ModelDeclaration, rules: Sequence[tuple[str, Predicate]]) -> str:
    for name, wanted in rules:
        if wanted(model):
            return name
    return model.tags[0] if model.tags else UNTAGGED


def _read(name: str, expression: str) -> Predicate:
    try:
        return parse_expression(expression)
    except SelectionError as error:
        raise SelectionError(f"{KEY}.{name}: {error.message}", error.hint) from None
