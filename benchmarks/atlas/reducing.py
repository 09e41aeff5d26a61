"""From calls that two releases answer otherwise to the smallest that still show it, and to one entry for alike ones."""

import copy
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.atlas.arguments import COMPLEX, FLOATS, Call, dense, features, part, tensors
from benchmarks.atlas.differences import Answer, Difference, difference
from harness.core.atlas import Kind

ROUNDS = 14
TRIED = 60
"""Candidates of one round."""
Four = tuple[Answer, Answer, Answer, Answer]
Ask = Callable[[Sequence[Call]], Iterable[Four]]
"""Answers of each call: old and new release, then both again otherwise set up."""


@dataclass(frozen=True)
class Shown:
    """A call that two releases answer otherwise, with what the first session of each answered."""

    call: Call
    difference: Difference
    old: Answer
    new: Answer

    @property
    def group(self) -> tuple[Any, ...]:
        given = tensors(self.call)
        return (self.difference.kind, given[0]["dtype"] if given else "", features(self.call))


def judged(call: Call, four: Four) -> tuple[Shown | None, bool]:
    """Return what is shown, None where nothing is or where a release differs from itself; and whether that is so."""
    old, new, old_again, new_again = four
    apart = difference(old, new)
    if difference(old, old_again) is not None or difference(new, new_again) is not None:
        return None, apart is not None
    again = difference(old_again, new_again)
    if apart is None or again is None or apart.kind is not again.kind:
        return None, apart is not None
    return Shown(call, apart, old, new), False


def reduced(shown: Shown, ask: Ask) -> Shown:
    """Return the smallest call that was tried and shows the same kind without anything more peculiar."""
    if shown.difference.kind is Kind.LOST:
        return shown
    for _ in range(ROUNDS):
        peculiar = set(features(shown.call))
        smaller = [
            call for call in _smaller(shown.call) if set(features(call)) <= peculiar and _size(call) < _size(shown.call)
        ]
        smaller = sorted(smaller, key=_size)[:TRIED]
        answers = list(ask(smaller))
        judgements = [judged(call, four)[0] for call, four in zip(smaller, answers, strict=True)]
        fits = [item for item in judgements if item is not None and item.difference.kind is shown.difference.kind]
        if not fits or any("lost" in answer for four in answers for answer in four):
            break
        shown = min(fits, key=lambda item: _size(item.call))
    return shown


def _size(call: Call) -> tuple[int, int, int]:
    return (len(features(call)), sum(len(item["values"]) for item in tensors(call)), len(json.dumps(call)))


def _smaller(call: Call) -> Iterator[Call]:
    given = tensors(call)
    for size in sorted({size for item in given for size in item["shape"] if size > 1}, reverse=True):
        for start, stop in _cuts(size):
            yield _changed(call, range(len(given)), lambda item: _cut(item, size, start, stop))
    for place, tensor in enumerate(given):
        for dimension, size in enumerate(tensor["shape"]):
            for start, stop in _cuts(size):
                yield _changed(call, [place], lambda item: part(item, dimension, start, stop))
        if "strides" in tensor:
            yield _changed(call, [place], dense)
        if "strides" not in tensor and tensor["dtype"] in FLOATS | COMPLEX:
            one: Any = [1.0, 0.0] if tensor["dtype"] in COMPLEX else 1.0
            numbers = tensor["values"]
            plain = [
                item if isinstance(item, list) or not math.isfinite(item) else float(f"{item:.1g}") for item in numbers
            ]
            for values in (
                [one for _ in numbers],
                [item if item != item or item in (math.inf, -math.inf) else one for item in numbers],
                plain,
            ):
                if values != numbers:
                    yield _changed(call, [place], lambda item: item.update(values=values))
            if len(numbers) <= 12:
                for at in range(len(numbers)):
                    values = [*numbers[:at], one, *numbers[at + 1 :]]
                    yield _changed(call, [place], lambda item: item.update(values=values))


def _cuts(size: int) -> list[tuple[int, int]]:
    half = size // 2
    return [] if size < 2 else sorted({(0, 1), (0, half), (half, size), (0, size - 1), (1, size), (size - 1, size)})


def _cut(tensor: dict[str, Any], size: int, start: int, stop: int) -> None:
    for dimension, own in enumerate(tensor["shape"]):
        if own == size:
            part(tensor, dimension, start, stop)


def _changed(call: Call, places: Iterable[int], change: Callable[[dict[str, Any]], object]) -> Call:
    changed = copy.deepcopy(call)
    given = tensors(changed)
    for place in places:
        change(given[place])
    return changed


def entries(calls: Sequence[Call], ask: Ask) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return what calls of one operator show, one entry for what is alike, and counts of the calls.

    A call whose peculiarity is not needed for its difference, as a smaller one shows, counts with the plainer one.
    """
    groups: dict[tuple[Any, ...], list[Shown]] = defaultdict(list)
    counts: Counter[str] = Counter()
    same: list[Call] = []
    for call, four in zip(calls, ask(calls), strict=True):
        shown, noisy = judged(call, four)
        counts["calls"] += not any("missing" in answer for answer in four)
        counts["noise"] += noisy
        if shown is not None:
            groups[shown.group].append(shown)
        elif not noisy:
            same.append(call)
    smallest: dict[tuple[Any, ...], Shown] = {}
    wide: dict[tuple[Any, ...], list[Shown]] = defaultdict(list)
    for group in sorted(groups.values(), key=lambda item: len(item[0].group[2])):
        kind, dtype, peculiar = group[0].group
        plainer = [key for key in smallest if key[:2] == (kind, dtype) and set(key[2]) <= set(peculiar)]
        if plainer:
            wide[plainer[0]] += group
            continue
        least = reduced(min(group, key=lambda item: _size(item.call)), ask)
        if least.group not in smallest or _size(least.call) < _size(smallest[least.group].call):
            smallest[least.group] = least
        wide[least.group] += group
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (kind, dtype, peculiar), least in smallest.items():
        if any(key[:2] == (kind, dtype) and set(key[2]) < set(peculiar) for key in smallest):
            continue
        entry = found.setdefault((kind, peculiar), _entry(least, wide[least.group], same))
        entry["dtypes"].append(dtype)
        entry["calls"] += len(wide[least.group])
    return list(found.values()), counts


def _entry(least: Shown, shown: Sequence[Shown], same: Sequence[Call]) -> dict[str, Any]:
    lost = least.difference.kind is Kind.LOST  # what ends a process is told in words only
    size = max(item.difference.tolerances for item in shown)
    return {
        "kind": least.difference.kind.value,
        "features": list(least.group[2]),
        "dtypes": [],
        "calls": 0,
        "tolerances": float(f"{size:.3g}"),
        "when": _constants([item.call for item in shown], same),
        "call": None if lost else {key: least.call[key] for key in ("arguments", "keywords")},
        "old": _words(least.old) if lost else least.old,
        "new": _words(least.new) if lost else least.new,
    }


def _words(answer: Answer) -> Answer:
    return {"lost": answer["lost"]} if "lost" in answer else {"lost": ""}


def _constants(shown: Sequence[Call], same: Sequence[Call]) -> dict[str, Any]:
    """Return the constants that all calls that show it have, and calls that show nothing have otherwise."""
    if len(shown) < 2:
        return {}
    common = set.intersection(*(set(_written(call).items()) for call in shown))
    others = [_written(call) for call in same]
    return {key: json.loads(value) for key, value in common if any(item.get(key, value) != value for item in others)}


def _written(call: Call) -> dict[str, str]:
    named = [*((str(at), item) for at, item in enumerate(call["arguments"])), *call["keywords"].items()]
    return {
        name: json.dumps(value)
        for name, value in named
        if value is None
        or isinstance(value, (bool, int, float, str))
        or (isinstance(value, list) and not tensors({"arguments": value, "keywords": {}}))
    }
