"""The outputs of one process, call by call, and the side effects of its calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from harness.artifacts.tensors.decode import Buffer, DecodeError
from harness.artifacts.tensors.trees import Tree, path_text

CallKey: TypeAlias = tuple[str, int]  # (input set, call)


@dataclass(frozen=True, slots=True)
class SideEffects:
    """What one call did beside answering.

    ``changed``: path of an input, e.g. ``input[0]``, to the tree of what the call made of it, where it changed it;
    ``shared``: groups of inputs and outputs in one storage, each in the order of the arguments, then of the output.
    """

    changed: Mapping[str, Tree] = field(default_factory=dict)
    shared: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Outputs:
    """What one process answered.

    Attributes:
        calls: (input set, call) to output tree, in the order of the calls.
        buffer: the bytes that the trees' offsets point into; nothing keeps a view of it afterwards.
        effects: the same keys to what the calls did beside answering; None where nobody looked (golden records,
            float64 runs).
    """

    calls: Mapping[CallKey, Tree]
    buffer: Buffer = b""
    effects: Mapping[CallKey, SideEffects] | None = None


def joined(first: Outputs, rest: Outputs) -> Outputs:
    moved = len(first.buffer)
    effects = {
        key: replace(effect, changed={path: _moved(tree, moved) for path, tree in effect.changed.items()})
        for key, effect in (rest.effects or {}).items()
    }
    return Outputs(
        calls={**first.calls, **{key: _moved(tree, moved) for key, tree in rest.calls.items()}},
        buffer=bytes(first.buffer) + bytes(rest.buffer),
        effects={**(first.effects or {}), **effects},
    )


def side_effects(line: Mapping[str, Any]) -> SideEffects:
    """Return what a line of ``tensors.jsonl`` says beside the output. Raises ``DecodeError``: malformed."""
    changed, shared = line.get("changed", ()), line.get("shared", ())
    if not changed and not shared:
        return NOTHING
    try:
        return SideEffects(
            changed={path_text(path): tree for path, tree in changed},
            shared=tuple(tuple(path_text(path) for path in group) for group in shared),
        )
    except (TypeError, ValueError) as error:
        raise DecodeError(f"damaged side effects of {line.get('set')} call {line.get('call')}: {error}") from None


def same_answers(first: Outputs, other: Outputs) -> bool:
    """Whether two processes of one environment answered the same bits everywhere, wherever the bytes lie."""
    return first.calls.keys() == other.calls.keys() and all(
        _answer(first, key) == _answer(other, key) for key in first.calls
    )


def changes_between_calls(outputs: Outputs) -> bool:
    """Whether the last two answers to the first input set differ in a bit: a warm module without state repeats them."""
    first = next((name for name, _ in outputs.calls), None)
    answers = [_without_offsets(tree) for (name, _), tree in outputs.calls.items() if name == first]
    return len(answers) > 1 and answers[-1] != answers[-2]


def _answer(outputs: Outputs, key: CallKey) -> object:
    effects = (outputs.effects or {}).get(key, NOTHING)
    changed = {path: _without_offsets(tree) for path, tree in effects.changed.items()}
    return _without_offsets(outputs.calls[key]), changed, effects.shared


def _moved(tree: Tree, by: int) -> Any:
    """Return a tree whose tensors lie so many bytes later."""
    if isinstance(tree, dict):
        return {key: value + by if key == "offset" and isinstance(value, int) else value for key, value in tree.items()}
    return [_moved(item, by) for item in tree] if isinstance(tree, list) else tree


def _without_offsets(tree: Tree) -> object:
    if isinstance(tree, dict):
        return {key: value for key, value in tree.items() if key != "offset"}
    return [_without_offsets(item) for item in tree] if isinstance(tree, list) else tree


def only_in(first: SideEffects, other: SideEffects) -> tuple[str, ...]:
    """Return the groups of shared storage that ``first`` has and ``other`` has not, in words."""
    return tuple(" = ".join(group) for group in _missing(first.shared, other.shared))


def _missing(groups: Sequence[tuple[str, ...]], others: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    known = {frozenset(group) for group in others}
    return [group for group in groups if frozenset(group) not in known]


NOTHING = SideEffects()
