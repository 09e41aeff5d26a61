"""Which models and which cell a user means: ``-k`` expressions, exact names, cell ids.

An expression is read the way pytest reads ``-k``: a word is true for a model if it occurs, whatever its case, in the
model's name or in one of its tags; words are joined by ``and``, ``or``, ``not`` and parentheses.
"""

import ast
import difflib
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from harness.core.errors import SelectionError
from harness.core.models import ModelDeclaration
from harness.core.plan import Cell
from harness.core.text import first_few
from harness.serving.scenarios import CELL_SCENARIOS


class Named(Protocol):
    """What an expression is asked about: a declaration, or a model of a report."""

    @property
    def name(self) -> str:
        """Stable key."""

    @property
    def tags(self) -> Sequence[str]:
        """Words that stand beside the name."""


Predicate = Callable[[Named], bool]

EXAMPLE: Final = 'write one like "dlrm or bert" or "not quantized and (vision or text)"'
LIST_HINT: Final = "list the models with compat --list"
MOST_LISTED: Final = 6
# Words of Python that are ordinary words here; in capitals they are for Python too, and case does not count.
KEYWORD: Final = re.compile(rf"\b(?:{'|'.join(set(keyword.kwlist) - {'and', 'or', 'not'})})\b")
# As gates before report version 6 wrote ids: ``model/direction/scenario/device/profile``.
OLD_CELL_ID: Final = re.compile(r"([\w.+-]+)/(?:backward|forward)/(\w+)/[\w.+-]+/[\w.+-]+")


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three of ``known`` that look like ``name`` whatever the case, the most alike first."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    return tuple(folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``'did you mean "budget"? '`` for the nearest names, or an empty string where none is near."""
    return _meant(nearest(name, known))


def parse_expression(text: str) -> Predicate:
    """Return the predicate of ``text``. Raises ``SelectionError``: no expression; names the column."""
    tree = _parse(text)
    try:
        return _predicate(tree.body, text)
    except RecursionError:
        raise SelectionError(f'expression "{text[:40]}...": nested too deeply', EXAMPLE) from None


def select(models: Sequence[ModelDeclaration], expression: str | None) -> tuple[ModelDeclaration, ...]:
    """Return the models that match, all without an expression. Raises ``SelectionError``: none match."""
    if not models:
        raise SelectionError("no model is declared", "declare one with @model in the fixtures folder")
    if expression is None or not expression.strip():
        return tuple(models)
    wanted = parse_expression(expression)
    chosen = tuple(model for model in models if wanted(model))
    if not chosen:
        known = dict.fromkeys(word for model in models for word in (model.name, *model.tags))
        near = dict.fromkeys(match for word in _words(expression) for match in nearest(word, known))
        message = f'expression "{expression}": none of the {len(models)} models matches'
        raise SelectionError(message, _meant(list(near)[:3]) + LIST_HINT)
    return chosen


def find_model(models: Iterable[ModelDeclaration], name: str) -> ModelDeclaration:
    """Return the model called exactly ``name``. Raises ``SelectionError``: there is none; names the nearest."""
    by_name = {model.name: model for model in models}
    if name not in by_name:
        raise SelectionError(f'no model is called "{name}"', did_you_mean(name, by_name) + LIST_HINT)
    return by_name[name]


def listed(models: Sequence[ModelDeclaration]) -> str:
    return first_few([model.name for model in models], MOST_LISTED)


def parse_cell_id(text: str) -> Cell:
    """Return the cell whose ``id`` is ``text``: ``model/scenario``.

    Raises:
        SelectionError: it is written otherwise, or its scenario is none. Whether the model exists is for ``find_model``
            to say.
    """
    if (old := OLD_CELL_ID.fullmatch(text)) is not None:
        raise SelectionError(f'cell "{text}": an id is model/scenario now', f"write {old[1]}/{old[2]}")
    model, slash, scenario = text.rpartition("/")
    if not slash or not re.fullmatch(r"[\w.+-]+", model):
        named = text if re.fullmatch(r"[\w.+-]+", text) else "MODEL"
        raise SelectionError(f'cell "{text}": expected model/scenario', f"write one like {named}/alone")
    if scenario not in CELL_SCENARIOS:
        raise SelectionError(
            f'cell "{text}": no scenario is called "{scenario}"',
            _meant([f"{model}/{name}" for name in nearest(scenario, CELL_SCENARIOS)])
            or f"write one like {model}/alone, with any of {', '.join(CELL_SCENARIOS)}",
        )
    return Cell(model, scenario)


def _meant(names: Sequence[str]) -> str:
    return "did you mean " + " or ".join(f'"{name}"' for name in names) + "? " if names else ""


def _parse(text: str) -> ast.Expression:
    if not text.strip():
        raise SelectionError(f'expression "{text}": it is empty', EXAMPLE)
    # Python's parser would read leading blanks as indentation, and skip a comment.
    body = text.strip()
    if "#" in body:
        reason = f"column {_column(text, body.index('#'))}: expected no comment"
        raise SelectionError(f'expression "{text}": {reason}', EXAMPLE)
    try:
        return ast.parse(KEYWORD.sub(lambda word: word[0].upper(), body), mode="eval")
    except SyntaxError as error:
        # Where the text ends too early, some Pythons give no offset.
        reason = f"cannot read it from column {_column(text, (error.offset or len(body) + 1) - 1)} on"
    except (ValueError, RecursionError, MemoryError):
        reason = "it holds a NUL character or is nested too deeply"
    raise SelectionError(f'expression "{text}": {reason}', EXAMPLE)


def _column(text: str, index: int) -> int:
    return len(text) - len(text.lstrip()) + index + 1


def _predicate(node: ast.expr, text: str) -> Predicate:
    if isinstance(node, ast.Name):
        return _matches(node.id.casefold())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = _predicate(node.operand, text)
        return lambda model: not operand(model)
    if isinstance(node, ast.BoolOp):
        parts = [_predicate(value, text) for value in node.values]
        combine = all if isinstance(node.op, ast.And) else any
        return lambda model: combine(part(model) for part in parts)
    # The parser counts bytes.
    index = len(text.lstrip().encode()[: node.col_offset].decode(errors="ignore"))
    reason = f"column {_column(text, index)}: expected a word, and, or, not or parentheses, got {ast.unparse(node)!r}"
    raise SelectionError(f'expression "{text}": {reason}', EXAMPLE)


def _matches(word: str) -> Predicate:
    return lambda model: any(word in known.casefold() for known in (model.name, *model.tags))


def _words(expression: str) -> list[str]:
    return [node.id for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name)]
