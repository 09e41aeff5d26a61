"""Chooses requests that stand for many: each endpoint, structure, shape and type, and the extremes of their values."""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from harness.core.traffic import TrafficRequest
from harness.store.json import JsonError, from_json

MOST_KINDS: Final = 10_000
"""Kinds that are told apart; what is new after them is one more kind of its endpoint."""
LOOKED_AT: Final = 8
"""Items of a list whose structure is read; the numbers of a list are all read."""

Kind = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Lines of a file of requests, ascending.

    Attributes:
        of: how many the file has.
        kinds: how many kinds these are of (method, path without query, content type, structure of the body with the
            shapes and types of its tensors, order of magnitude of its size); ``chosen_kinds``: how many have a request
            here.
    """

    lines: tuple[int, ...]
    of: int
    kinds: int
    chosen_kinds: int


@dataclass(slots=True)
class _Group:
    """Lines of the requests of one kind: the first, one drawn of all, and those with the extremes of size and
    values.
    """

    first: int
    count: int = 0
    drawn: int = 0
    extremes: dict[str, tuple[float, int]] = field(default_factory=dict)

    def take(self, line: int, sizes: dict[str, float], chance: float) -> None:
        self.count += 1
        if chance * self.count < 1:
            self.drawn = line
        for name, size in sizes.items():
            if name not in self.extremes or size > self.extremes[name][0]:
                self.extremes[name] = (size, line)

    def ordered(self) -> Iterator[int]:
        yield self.first
        yield from (line for _, line in self.extremes.values())
        yield self.drawn


def sample(requests: Iterable[TrafficRequest], most: int, *, seed: int = 0) -> Sample:
    """Return the lines of at most ``most`` of ``requests``, which are read once, and none of them is kept.

    One of each kind first, the most frequent kinds before others; then those with the largest body, the largest and the
    smallest number; then one drawn of each kind; then drawn ones of all.
    """
    groups: dict[Kind, _Group] = {}
    drawn = random.Random(seed)
    reservoir: list[int] = []
    count = 0
    for request in requests:
        kind, sizes = described(request)
        if kind not in groups and len(groups) >= MOST_KINDS:
            kind = kind[:2]
        groups.setdefault(kind, _Group(request.line)).take(request.line, sizes, drawn.random())
        count += 1
        if len(reservoir) < most:
            reservoir.append(request.line)
        elif (place := drawn.randrange(count)) < most:
            reservoir[place] = request.line
    by_frequency = sorted(groups.values(), key=lambda group: -group.count)
    turns = itertools.zip_longest(*(group.ordered() for group in by_frequency))
    wanted = (line for turn in turns for line in turn if line is not None)
    chosen: set[int] = set()
    for line in itertools.chain(wanted, drawn.sample(reservoir, len(reservoir))):
        if len(chosen) >= most:
            break
        chosen.add(line)
    return Sample(
        lines=tuple(sorted(chosen)),
        of=count,
        kinds=len(groups),
        chosen_kinds=sum(group.first in chosen for group in by_frequency),
    )


def described(request: TrafficRequest) -> tuple[Kind, dict[str, float]]:
    """Return what kind a request is of, and its extremes by name, larger being more extreme."""
    endpoint = (request.method, urlsplit(request.path).path)
    content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    sizes = {"largest body": float(len(request.body))}
    size = len(request.body).bit_length()
    if request.body[:1] not in (b"{", b"["):
        return (*endpoint, content, size), sizes
    try:
        value = from_json(request.body)
    except JsonError:
        return (*endpoint, content, size), sizes
    numbers: list[list[float]] = []
    structure = _structure(value, numbers)
    highs, lows = [max(row) for row in numbers if row], [min(row) for row in numbers if row]
    if highs:
        sizes["largest number"] = max(highs)
        sizes["smallest number"] = -min(lows)
    return (*endpoint, content, size, structure), sizes


def _structure(value: Any, numbers: list[list[float]]) -> Kind:
    """Return types, keys and lengths, without the values; ``numbers`` gets each list of numbers."""
    if isinstance(value, dict):
        # The shape and type of a tensor in Open Inference, and its name, are values: they are part of the kind.
        described_by = _tensor(value)
        return ("object", *described_by, *((key, _structure(value[key], numbers)) for key in sorted(value)))
    if isinstance(value, list):
        types = set(map(type, value))
        if types and types <= {int, float}:
            numbers.append(value)
            return ("numbers", len(value), float in types)
        length = len(value) if len(value) <= LOOKED_AT else -len(value).bit_length()
        return ("list", length, *(_structure(item, numbers) for item in value[:LOOKED_AT]))
    return (type(value).__name__,)


def _tensor(value: dict[str, Any]) -> Kind:
    datatype, shape = value.get("datatype"), value.get("shape")
    if isinstance(datatype, str) and isinstance(shape, list) and all(isinstance(size, int) for size in shape):
        return (datatype, tuple(shape), str(value.get("name")))
    return ()
