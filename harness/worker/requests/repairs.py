"""Better guesses from what torch says about a failed call."""

import re
from itertools import zip_longest

import torch

from gate_worker.requests.guesses import BATCHED, FIXED, FREE, LENGTH, Leaf, Number

MOST_SIZE = 65_536
MOST_GROWN = 4096
MOST_ELEMENTS = 1 << 24
# What the message calls the size that it found and the one that it wants; where either may be, both ways are tried.
SIZES = (
    (r"size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<other>\d+)\)", True),
    (r"cannot be multiplied \(\d+x(?P<one>\d+) and (?P<other>\d+)x\d+\)", False),
    (r"to have (?P<other>\d+) channels, but got (?P<one>\d+) channels", False),
    (r"expanded size of the tensor \((?P<other>\d+)\) must match the existing size \((?P<one>\d+)\)", True),
    (r"except in dimension \d+\. (?:Expected size|Got) (?P<one>\d+) (?:but got size|and) (?P<other>\d+)", True),
    (r"size mismatch, got (?:input )?\(?(?P<one>\d+)\)?,.*?\(?\d+x(?P<other>\d+)", True),
    (r"Expected hidden(?:\[\d\])? size \(\d+, (?P<other>\d+), \d+\), got [\[(]\d+, (?P<one>\d+)", False),
    (r"normalized_shape=\[(?:\d+, )*(?P<other>\d+)\].*input of size\[(?:\d+, )*(?P<one>\d+)\]", False),
    (r"[Ee]xpected (?:\D*?)(?P<other>\d+),? (?:but )?got (?:\D*?)(?P<one>\d+)", True),
    (r"shape '\[[^\]]*?(?P<other>\d+)\]' is invalid for input of size (?P<one>\d+)", False),
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
    found = []
    for pattern, either in SIZES:
        match = re.search(pattern, message)
        if match and "ange" not in message and "adding" not in message:
            one, other = int(match.group("one")), int(match.group("other"))
            found.append(_resized(guess, one, other))
            if either:
                found.append(_resized(guess, other, one))
            break
    kinds = [(RANKS, _reranked), (BOUNDS, _bounded)]
    if TOO_SMALL.search(message):
        kinds.reverse()
    found.extend(better(guess) for pattern, better in kinds if pattern.search(message))
    if re.search(r"dtype|[Tt]ype|not implemented for|indices", message):
        found.append(_retyped(guess, message))
    turns = zip_longest(*found)
    return [better for turn in turns for better in turn if better is not None]


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
    found = []
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
                found.append(guess.varied({index: resized(leaf, sizes)}))
    return found


def resized(leaf, sizes):
    found = leaf.copy()
    for place, size in sizes.items():
        found.sizes[place] = size
        found.kinds[place] = FREE
    return found


def _reranked(guess):
    """Give tensors whose rank is not known one dimension less, or one more; first those that are alike together."""
    found = []
    groups = {}
    for index, leaf in guess.tensors():
        if not leaf.ranked:
            groups.setdefault((str(leaf.dtype), leaf.role), []).append((index, leaf))
    for members in groups.values():
        for change in (_flatter, _deeper):
            for chosen in ([members] if len(members) > 1 else []) + [[member] for member in members]:
                changes = {index: change(leaf) for index, leaf in chosen}
                if None not in changes.values():
                    found.append(guess.varied(changes))
    return found


def _flatter(leaf):
    free = [place for place, kind in enumerate(leaf.kinds) if kind != FIXED]
    if not free or len(leaf.sizes) < 1 or (free[-1] == 0 and len(leaf.sizes) > 1):
        return None
    found = leaf.copy()
    del found.sizes[free[-1]], found.kinds[free[-1]]
    return found


def _deeper(leaf):
    if len(leaf.sizes) > 3:
        return None
    found = leaf.copy()
    found.sizes.insert(1, LENGTH)
    found.kinds.insert(1, FREE if leaf.sizes else BATCHED)
    return found


def _retyped(guess, message):
    found = []
    wanted = [DTYPES[name] for name in re.findall(r"[A-Za-z0-9:]+", message.replace("torch.", "")) if name in DTYPES]
    if INTEGERS.search(message):
        wanted.append(torch.int64)
    for dtype in sorted(set(wanted), key=wanted.index):
        for index, leaf in guess.tensors():
            if leaf.dtype != dtype and not leaf.role and not leaf.typed:
                found.append(guess.varied({index: retyped(leaf, dtype)}))
        everyone = {
            index: retyped(leaf, dtype)
            for index, leaf in guess.tensors()
            if leaf.dtype.is_floating_point and not leaf.typed
        }
        if len(everyone) > 1:
            found.append(guess.varied(everyone))
    return found


def retyped(leaf, dtype):
    found = leaf.copy()
    found.dtype = dtype
    return found


def _bounded(guess):
    """Make bounds of integers smaller, free sizes larger, and numbers smaller."""
    found = []
    for index, leaf in enumerate(guess.leaves):
        if isinstance(leaf, Number):
            found.extend(
                guess.varied({index: Number(value)}) for value in (1, 0, leaf.value * 2) if value != leaf.value
            )
        elif isinstance(leaf, Leaf) and not leaf.dtype.is_floating_point and (leaf.below or 2) > 1 and not leaf.role:
            smaller = leaf.copy()
            smaller.below = max(1, (leaf.below or 2) // 8)
            found.append(guess.varied({index: smaller}))
    for kind, factor in ((FREE, 4.0), (BATCHED, 4.0), (FREE, 0.25)):
        changes = {}
        for index, leaf in guess.tensors():
            changed = leaf.copy()
            for place, of_kind in enumerate(leaf.kinds):
                if of_kind == kind and leaf.sizes[place]:
                    changed.sizes[place] = min(MOST_GROWN, max(1, int(leaf.sizes[place] * factor)))
            changes[index] = changed
        found.append(guess.varied(changes))
    return found


def elements(guess):
    """Return how many elements the largest tensor of a guess has."""
    most = 0
    for _, leaf in guess.tensors():
        count = 1
        for size in leaf.sizes:
            count *= size
        most = max(most, count)
    return most
