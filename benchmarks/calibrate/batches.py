"""Which benchmarks are run, batch by batch; each batch shares its rounds of processes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SAME = "same"  # one artifact on both sides
SLOW = "slow"  # every call of the new side does ``size`` percent more
# What else is planted -> the kind of finding that must be told; each has a twin with the amount 0.
DEFECTS = {
    "first_call_0": ("first_calls", "seeded_first_call_0_0", "seeded_first_call_0_2000"),
    "first_call_1": ("first_calls", "seeded_first_call_1_0", "seeded_first_call_1_2000"),
    "tail_matrix": ("tail", "seeded_tail_matrix_0", "seeded_tail_matrix_150"),
    "tail_tiny": ("tail", "seeded_tail_tiny_0", "seeded_tail_tiny_150"),
    "growth": ("memory_growth", "seeded_growth_0", "seeded_growth_16"),
    "peak": ("memory", "seeded_peak_0", "seeded_peak_48"),
    "load": ("load_time", "seeded_load_0", "seeded_load_3000"),
}
BASES = ("matrix", "tiny", "recurrent", "convolution", "gather", "branch")
LONG = ("matrix", "tiny")
QUICK_SIZES, THOROUGH_SIZE = (3, 10, 20), 5
RIVAL_SIZES = (0, 5, 10, 20)
LENGTH_RIVAL_SIZES = (0, 5, 10)
QUICK_BATCHES, THOROUGH_BATCHES = 12, 3
PER_SIZE, PER_THOROUGH, ZOO = 5, 20, 10
# What a call takes, about; a batch of a budget has so many copies with itself of each, and of a slowdown of that size.
LENGTHS = ("50us", "1ms", "10ms", "100ms")
LENGTH_BATCHES = ("quick", "quick", "thorough") * 5
LENGTH_COPIES: Mapping[str, tuple[int, int]] = {"quick": (6, 10), "thorough": (1, 5)}
SLOW_COPIES = 4


@dataclass(frozen=True)
class Entry:
    """One benchmark: ``old`` and ``new`` name the artifacts of the two sides; ``size`` in percent."""

    name: str
    what: str
    base: str
    old: str
    new: str
    size: int = 0


@dataclass(frozen=True)
class Batch:
    """Benchmarks that share processes, and the pairs that other tools are asked about right after them."""

    number: int
    budget: str
    entries: tuple[Entry, ...]
    rivals: tuple[Entry, ...] = ()


def planned_batches(zoo: Sequence[str], *, tiny: bool = False) -> list[Batch]:
    """Return all batches in the order they are run; ``tiny`` is one of a few benchmarks.

    Each full set has 300 quick benchmarks of one artifact against itself, 60 of each quick size and 60 thorough ones.

    Args:
        zoo: names of ordinary models, each compared with itself in turn.
    """
    if tiny:
        return [Batch(0, "quick", (same("tiny"), slow("tiny", 20, 0)), (same("tiny"), slow("tiny", 20, 0)))]
    found: list[Batch] = []
    share = QUICK_BATCHES // THOROUGH_BATCHES
    for turn in range(QUICK_BATCHES):
        found.append(Batch(len(found), "quick", tuple(_quick(turn, zoo)), tuple(_rivals(turn))))
        if turn % share == share - 1:
            found.append(Batch(len(found), "thorough", tuple(_thorough(turn // share))))
    return found


def length_batches() -> list[Batch]:
    """Return the batches that compare calls of several lengths; the first three have some of everything.

    Other tools are asked about one pair of each length and size after each quick batch.
    """
    found: list[Batch] = []
    for number, budget in enumerate(LENGTH_BATCHES):
        same_copies, size = LENGTH_COPIES[budget]
        entries = [_call(length, 0, copy) for length in LENGTHS for copy in range(same_copies)]
        entries += [_call(length, size, copy) for length in LENGTHS for copy in range(SLOW_COPIES)]
        beside = (
            [_call(length, size, 0) for length in LENGTHS for size in LENGTH_RIVAL_SIZES] if budget == "quick" else []
        )
        found.append(Batch(number, budget, tuple(entries), tuple(beside)))
    return found


def _call(length: str, size: int, copy: int) -> Entry:
    old = f"seeded_call_{length}"
    if not size:
        return Entry(f"same_{length}_{copy}", SAME, length, old, old)
    return Entry(f"slow_{length}_{size}_{copy}", SLOW, length, old, f"seeded_call_slow_{length}_{size}", size)


def same(base: str) -> Entry:
    """Return the benchmark of a seeded model against itself."""
    name = f"seeded_steady_{base}"
    return Entry(f"same_{base}", SAME, base, name, name)


def slow(base: str, size: int, copy: int) -> Entry:
    """Return the benchmark of a seeded model against one that does ``size`` percent more work."""
    return Entry(f"slow_{base}_{size}_{copy}", SLOW, base, f"seeded_steady_{base}", f"seeded_slow_{base}_{size}", size)


def _quick(turn: int, zoo: Sequence[str]) -> Iterator[Entry]:
    yield from map(same, BASES)
    for base in LONG:
        yield Entry(f"same_long_{base}", SAME, f"long_{base}", f"seeded_long_{base}", f"seeded_long_{base}")
    for what, (_, twin, planted) in DEFECTS.items():
        yield Entry(f"same_{what}", SAME, what, twin, twin)
        yield Entry(what, what, what, twin, planted)
    for index in range(ZOO):
        model = zoo[(turn * ZOO + index) % len(zoo)]
        yield Entry(f"same_{model}", SAME, model, model, model)
    for size in QUICK_SIZES:
        yield from (slow(_base(turn * PER_SIZE + copy), size, copy) for copy in range(PER_SIZE))


def _thorough(turn: int) -> Iterator[Entry]:
    yield from map(same, BASES)
    yield from (slow(_base(turn * PER_THOROUGH + copy), THOROUGH_SIZE, copy) for copy in range(PER_THOROUGH))


def _rivals(turn: int) -> Iterator[Entry]:
    for size in RIVAL_SIZES:
        for copy in range(PER_SIZE):
            base = _base(turn * PER_SIZE + copy)
            yield slow(base, size, copy) if size else same(base)


def _base(index: int) -> str:
    return BASES[index % len(BASES)]
