"""Better guesses from what torch says about a failed call."""

import math
import re
from itertools import zip_longest

import torch

from gate_worker.requests.guesses import BATCHED, FIXED, FREE, LENGTH, Leaf, Number

MOST_SIZE = 65_536
MOST_GROWN = 4096
MOST_ELEMENTS = 1 << 24
# What the message calls the size that it has and the one that it wants; where either may be, both ways are tried.
SIZES = (
    (r"size of tensor a \((?P<got>\d+)\) must match the size of tensor b \((?P<wanted>\d+)\)", True),
    (r"cannot be multiplied \(\d+x(?P<got>\d+) and (?P<wanted>\d+)x\d+\)", False),
    (r"to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels", False),
    (r"expanded size of the tensor \((?P<wanted>\d+)\) must match the existing size \((?P<got>\d+)\)", True),
    (r"except in dimension \d+\. (?:Expected size|Got) (?P<got>\d+) (?:but got size|and) (?P<wanted>\d+)", True),
    (r"size mismatch, got (?:input )?\(?(?P<got>\d+)\)?,.*?\(?\d+x(?P<wanted>\d+)", True),
    (r"Expected hidden(?:\[\d\])? size \(\d+, (?P<wanted>\d+), \d+\), got [\[(]\d+, (?P<got>\d+)", False),
    (r"normalized_shape=\[(?:\d+, )*(?P<wanted>\d+)\].*input of size\[(?:\d+, )*(?P<got>\d+)\]", False),
    (r"[Ee]xpected (?:\D*?)(?P<wanted>\d+),? (?:but )?got (?:\D*?)(?P<got>\d+)", True),
    (r"shape '\[[^\]]*?(?P<wanted>\d+)\]' is invalid for input of size (?P<got>\d+)", False),
)
RANKS = re.compile(
    r"dimension|\d-?D\b|\bdims?\b|number of sizes|too many indices|invalid for input of size|repeat", re.I
)
TOO_SMALL = re.compile(r"too small|smaller than|less than|at least|greater than|empty|k out of|out of range for", re.I)
BOUNDS = re.compile(TOO_SMALL.pattern + r"|index out of|out of range|out of bounds", re.I)
INTEGERS = re.compile(r"\bLong\b|\bInt\b|int64|integ|long, |not implemented for '(?:Float|Half|BFloat16|Double)'", re.I)
DTYPES = {
    "Half": torch.float16, "BFloat16": torch.bfloat16, "Double": torch.float64, "Float": torch.float32,
    "Long": torch.int64, "Bool": torch.bool, "Byte": torch.uint8, "Int": torch.int32,
    "c10::Half": torch.float16, "c10::BFloat16": torch.bfloat16, "double": torch.float64, "float": torch.float32,
}  # fmt: skip


def of(guess, message):
    """Return other guesses, the most likely first; what may be meant takes turns."""
    groups = []
    for pattern, either in SIZES:
        match = re.search(pattern, message)
        if match and "ange" not in message and "adding" not in message:
            got, wanted = int(match.group("got")), int(match.group("wanted"))
            groups.append(_resized(guess, got, wanted))
            if either:
                groups.append(_resized(guess, wanted, got))
            break
    kinds = [(RANKS, _reranked), (BOUNDS, _bounded)]
    if TOO_SMALL.search(message):
        kinds.reverse()
    groups.extend(repair(guess) for pattern, repair in kinds if pattern.search(message))
    if re.search(r"dtype|[Tt]ype|not implemented for|indices", message):
        groups.append(_retyped(guess, message))
    turns = zip_longest(*groups)
    return [other for turn in turns for other in turn if other is not None]


def _resized(guess, have, want):
    """Set free sizes of ``have`` to ``want``; else let free sizes grow by what is missing, or in proportion."""
    exact, derived = [], []
    places = [
        (index, place, leaf)
        for index, leaf in guess.tensors()
        for place, kind in enumerate(leaf.kinds)
        if kind != FIXED
    ]
    same = [(index, place, leaf) for index, place, leaf in places if leaf.sizes[place] == have]
    for index, place, leaf in same:
        exact.append(guess.varied({index: resized(leaf, {place: want})}))
    if len(same) > 1:
        changes = {}
        for index, place, leaf in same:
            changes[index] = resized(changes.get(index, leaf), {place: want})
        exact.append(guess.varied(changes))
    for share in (1, 2, 4, 8):
        for index, place, leaf in places:
            size = leaf.sizes[place] + (want - have) // share
            is_other = leaf.kinds[place] == FREE and place and leaf.sizes[place] != have
            if is_other and (want - have) % share == 0 and 0 < size < MOST_SIZE:
                derived.append((share, guess.varied({index: resized(leaf, {place: size})})))
    return (
        exact
        + [other for share, other in derived if share == 1]
        + _scaled(guess, have, want)
        + [other for share, other in derived if share > 1]
    )


def _scaled(guess, have, want):
    """Scale the free sizes of images and sequences so that ``have`` elements become ``want``."""
    better = []
    for index, leaf in guess.tensors():
        free = [place for place, kind in enumerate(leaf.kinds) if kind == FREE and place > 0]
        for more in (0, 1):
            if not free or want <= more or have <= more:
                continue
            factor = ((want - more) / float(have - more)) ** (1.0 / len(free))
            sizes = {place: round(leaf.sizes[place] * factor) for place in free}
            if all(0 < size < MOST_SIZE for size in sizes.values()) and any(
                size != leaf.sizes[place] for place, size in sizes.items()
            ):
                better.append(guess.varied({index: resized(leaf, sizes)}))
    return better


def resized(leaf, sizes):
    other = leaf.but()
    for place, size in sizes.items():
        other.sizes[place], other.kinds[place] = size, FREE
    return other


def _reranked(guess):
    """Give tensors whose rank is not known one dimension less, or one more; first those that are alike together."""
    better = []
    groups = {}
    for index, leaf in guess.tensors():
        if not leaf.ranked:
            groups.setdefault((str(leaf.dtype), leaf.role), []).append((index, leaf))
    for members in groups.values():
        for change in (_flatter, _deeper):
            for chosen in ([members] if len(members) > 1 else []) + [[member] for member in members]:
                changes = {index: change(leaf) for index, leaf in chosen}
                if None not in changes.values():
                    better.append(guess.varied(changes))
    return better


def _flatter(leaf):
    free = [place for place, kind in enumerate(leaf.kinds) if kind != FIXED]
    if not free or len(leaf.sizes) < 1 or (free[-1] == 0 and len(leaf.sizes) > 1):
        return None
    other = leaf.but()
    del other.sizes[free[-1]], other.kinds[free[-1]]
    return other


def _deeper(leaf):
    if len(leaf.sizes) > 3:
        return None
    other = leaf.but()
    other.sizes.insert(1, LENGTH)
    other.kinds.insert(1, FREE if leaf.sizes else BATCHED)
    return other


def _retyped(guess, message):
    better = []
    wanted = [DTYPES[name] for name in re.findall(r"[A-Za-z0-9:]+", message.replace("torch.", "")) if name in DTYPES]
    if INTEGERS.search(message):
        wanted.append(torch.int64)
    for dtype in dict.fromkeys(wanted):
        free = [(index, leaf) for index, leaf in guess.tensors() if not leaf.typed]
        for index, leaf in free:
            if leaf.dtype != dtype and not leaf.role:
                better.append(guess.varied({index: leaf.but(dtype=dtype)}))
        together = {index: leaf.but(dtype=dtype) for index, leaf in free if leaf.dtype.is_floating_point}
        if len(together) > 1:
            better.append(guess.varied(together))
    return better


def _bounded(guess):
    """Make bounds of integers smaller, free sizes larger, and numbers smaller."""
    better = []
    for index, leaf in enumerate(guess.leaves):
        if isinstance(leaf, Number):
            better.extend(
                guess.varied({index: Number(value)}) for value in (1, 0, leaf.value * 2) if value != leaf.value
            )
        elif isinstance(leaf, Leaf) and not leaf.dtype.is_floating_point and (leaf.below or 2) > 1 and not leaf.role:
            better.append(guess.varied({index: leaf.but(below=max(1, (leaf.below or 2) // 8))}))
    for kind, factor in ((FREE, 4.0), (BATCHED, 4.0), (FREE, 0.25)):
        changes = {}
        for index, leaf in guess.tensors():
            scaled = [
                min(MOST_GROWN, max(1, int(size * factor))) if size and of_kind == kind else size
                for size, of_kind in zip(leaf.sizes, leaf.kinds)
            ]
            changes[index] = leaf.but(sizes=scaled)
        better.append(guess.varied(changes))
    return better


def elements(guess):
    return max([math.prod(leaf.sizes) for _, leaf in guess.tensors()] + [0])
