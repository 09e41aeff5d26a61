"""What is measured of a release, in one table: what a reader calls it, from which limit on, and what is beyond it.

A limit that somebody writes says what they accept, so it blocks; a default one is ours, so the decision's line names
what is beyond it and leaves the rest to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Beyond(StrEnum):
    """What comes of a quantity that is surely beyond its limit."""

    BLOCKS = "blocks"
    NAMED = "named"
    """The decision's own line names it, and stays what it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One quantity of one model in the paired benchmark.

    Attributes:
        words: what a reader calls it; ``brief``: where there is little room; ``kind``: of a finding.
        limit: the ratio new/old that is accepted where nobody writes one. Chosen: what a reader would want to hear of,
            far above what two processes of one build differ by.
        least: a smaller difference does not matter, however certain, in seconds or bytes. Chosen.
        covered_by: what tells it too, so that it is not told a second time.
        by_default: what is beyond ``limit`` does; what is beyond a limit that was written blocks.
    """

    words: str
    kind: str
    limit: float
    brief: str = ""
    least: float = 0.0
    covered_by: str = ""
    by_default: Beyond = Beyond.NAMED


FIVE_MS: Final = 5e-3
SIXTEEN_MIB: Final = 16 * 2**20
# By the names of ``checks.latency.quantities``, what covers others first. ``new_shape``: every further input set.
QUANTITIES: Final[Mapping[str, Measured]] = {
    "load": Measured(words="load time", kind="load_time", limit=1.5, least=FIVE_MS),
    "first_calls": Measured(words="first calls", kind="first_calls", limit=1.5, least=FIVE_MS),
    "call_0": Measured(words="call 0", kind="first_calls", limit=1.5, least=FIVE_MS, covered_by="first_calls"),
    "call_1": Measured(words="call 1", kind="first_calls", limit=1.5, least=FIVE_MS, covered_by="first_calls"),
    "mean": Measured(words="mean of a call", kind="tail", limit=1.1),
    "p90": Measured(words="p90 of a call", kind="tail", limit=1.1, covered_by="mean"),
    "p99": Measured(words="p99 of a call", kind="tail", limit=1.25, covered_by="p90"),
    "request": Measured(
        brief="time per request", words="time per request of callers at once", kind="throughput", limit=1.1
    ),
    "peak_rss": Measured(
        brief="peak memory",
        words="peak resident memory of load and first calls",
        kind="memory",
        limit=1.25,
        least=SIXTEEN_MIB,
    ),
    "device_memory": Measured(
        brief="peak device memory",
        words="peak device memory of load and first calls",
        kind="memory",
        limit=1.25,
        least=SIXTEEN_MIB,
    ),
    "new_shape": Measured(words="first calls of input set", kind="new_shape", limit=1.5, least=FIVE_MS),
    "replay": Measured(brief="graph replay", words="replay of the captured graph", kind="replay_time", limit=1.05),
}
QUANTITY_LIMITS: Final[Mapping[str, float]] = {name: quantity.limit for name, quantity in QUANTITIES.items()}
STEADY, COMMON, INITIALIZATION = "steady", "common", "initialization"
# Limits of what is judged otherwise: the steady call and what all models share are what an upgrade is timed for.
OTHERS_BY_DEFAULT: Final[Mapping[str, Beyond]] = {
    STEADY: Beyond.BLOCKS,
    COMMON: Beyond.BLOCKS,
    INITIALIZATION: Beyond.NAMED,
}


def quantity_words(name: str) -> str:
    """Return what a reader calls a quantity, with the input set that its name has."""
    return _with_input_set(name, QUANTITIES[name.partition(":")[0]].words)


def brief_words(name: str) -> str:
    """Return the same where there is little room."""
    quantity = QUANTITIES[name.partition(":")[0]]
    return _with_input_set(name, quantity.brief or quantity.words)


def _with_input_set(name: str, words: str) -> str:
    input_set = name.partition(":")[2]
    return f"{words} {input_set}" if input_set else words
