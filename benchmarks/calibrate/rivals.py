"""What people use today, on the same artifacts: thresholds on medians, Mann-Whitney, ``torch.utils.benchmark``.

The rules are pure. ``ask`` times pairs the way those tools are used: one process per release, one after the other.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.calibrate.batches import Entry
from benchmarks.calibrate.foreign import answer_of
from harness.core.measurement import PairSample
from harness.core.models import Artifact

COLUMNS = ("batch", "what", "size", "base", "median_ratio", "p_value", "old_shown", "new_shown", "new_is_best")
RAW_CALLS = 100  # that Mann-Whitney sees
MAX_S, WARM_UP = 0.5, 10  # pytest-benchmark's --benchmark-max-time is 1.0; half of it makes 300 calls and more here
LEVEL = 0.05

Rule = Callable[[Mapping[str, Any]], bool]
# name -> whether it flags a row of ``ask``. Each is one-sided: a gate looks for slowdowns.
RULES: dict[str, Rule] = {
    "pytest-benchmark, --benchmark-compare-fail=median:5%": lambda row: row["median_ratio"] > 1.05,
    "pytest-benchmark, --benchmark-compare-fail=median:10%": lambda row: row["median_ratio"] > 1.10,
    "torch.utils.benchmark Compare, new trimmed median larger": lambda row: row["new_shown"] > row["old_shown"],
    "torch.utils.benchmark Compare, and new not painted as best": (
        lambda row: row["new_shown"] > row["old_shown"] and not row["new_is_best"]
    ),
    "Mann-Whitney U on 100 raw calls, p < 5 %": lambda row: row["p_value"] < LEVEL,
}
# The same on the blocks of our own benchmarks: name -> whether it flags a row of ``benchmarks.COLUMNS``.
BLOCK_RULES: dict[str, Rule] = {
    "median of one process pair's blocks, 5 %": lambda row: row["pair_ratio"] > 1.05,
    "median of one process pair's blocks, 10 %": lambda row: row["pair_ratio"] > 1.10,
    "Mann-Whitney U on one process pair's blocks, p < 5 %": lambda row: row["pair_p"] < LEVEL,
    "median of all pairs' blocks, 5 %": lambda row: row["all_ratio"] > 1.05,
    "Mann-Whitney U on all pairs' blocks, p < 5 %": lambda row: row["all_p"] < LEVEL,
}


def blocks_say(samples: Sequence[PairSample]) -> list[float | None]:
    """Return ratio of medians and p-value of the first round, then both of the blocks of all rounds in one heap."""
    if not samples:
        return [None] * 4
    return [*_pooled(samples[:1]), *_pooled(samples)]


def _pooled(samples: Sequence[PairSample]) -> tuple[float, float]:
    blocks = [block for sample in samples for block in sample.blocks]
    old, new = ([block.p50_s for block in blocks if block.arm == arm] for arm in ("old", "new"))
    return round(median_ratio(old, new), 4), significant(p_value(old, new))


def median_ratio(old: Sequence[float], new: Sequence[float]) -> float:
    """Return new/old of the medians."""
    return statistics.median(new) / statistics.median(old)


def p_value(old: Sequence[float], new: Sequence[float]) -> float:
    """Return the probability of Mann and Whitney (1947) that the new calls are no slower: ``scipy.stats``."""
    from scipy.stats import mannwhitneyu  # of the group ``calibrate``: other tests import this module without it

    return float(mannwhitneyu(new, old, alternative="greater").pvalue)


def significant(value: float) -> float:
    """Return a number with three digits."""
    return float(f"{value:.3g}")


def ask(
    batch: int, entries: Sequence[Entry], artifacts: Mapping[str, Artifact], interpreter: str, folder: Path
) -> list[list[Any]]:
    """Return a row, in the order of ``COLUMNS``, for every pair.

    One process times all old artifacts, then another one all new ones: nothing is interleaved.
    """
    names = {entry.name: entry for entry in entries}
    old = _timed("old", {name: artifacts[entry.old] for name, entry in names.items()}, interpreter, folder)
    new = _timed("new", {name: artifacts[entry.new] for name, entry in names.items()}, interpreter, folder)
    return [
        _row(batch, entry, old["raw"][name], new["raw"][name], new["compare"][name]) for name, entry in names.items()
    ]


def _row(batch: int, entry: Entry, old: list[float], new: list[float], compared: Mapping[str, Any]) -> list[Any]:
    return [
        batch,
        entry.what,
        entry.size,
        entry.base,
        round(median_ratio(old, new), 4),
        significant(p_value(old[:RAW_CALLS], new[:RAW_CALLS])),
        *compared["shown"],
        int(compared["best"][1]),
    ]


def _timed(side: str, artifacts: Mapping[str, Artifact], interpreter: str, folder: Path) -> dict[str, Any]:
    job = {
        "artifacts": [[name, artifact.path, artifact.inputs_dir] for name, artifact in artifacts.items()],
        "max_s": MAX_S,
        "warmup": WARM_UP,
        "measurements": str(folder / f"measurements-{side}.pickle"),
        "old": str(folder / "measurements-old.pickle") if side == "new" else "",
    }
    return answer_of("timing", "calls", job=job, interpreter=interpreter, folder=folder)
