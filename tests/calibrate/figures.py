"""The plots of the page: small SVG files, the same bytes for the same results, readable on light and on dark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from harness.startup.rates import interval
from tests.calibrate.tallies import Row, found_in_time, same_rows, slow_rows

INK, GRID = "#7d8590", "#7d859055"
COLOURS = {"quick": "#2f81f7", "thorough": "#d29922"}
SIZES = {0: "#7d8590", 3: "#a371f7", 5: "#d29922", 10: "#2f81f7", 20: "#3fb950"}
WIDE = (6.4, 2.9)


def draw(folder: Path, benchmarks: Sequence[Row], numbers: Mapping[str, Any]) -> list[str]:
    """Write what the results allow; return the names of the files."""
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "calibration",
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "text.color": INK,
        }
    )
    drawn = []
    if benchmarks:
        drawn += [_detection(folder, benchmarks), _time(folder, benchmarks)]
    if numbers.get("seeded", {}).get("drifts", {}).get("rows"):
        drawn.append(_drifts(folder, numbers["seeded"]["drifts"]))
    return drawn


def _axes(title: str, across: str, up: str) -> Axes:
    _, axes = plt.subplots(figsize=WIDE, layout="constrained")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _saved(folder: Path, name: str) -> str:
    plt.savefig(folder / name, transparent=True, metadata={"Date": None, "Creator": None})
    plt.close()
    return name


def _detection(folder: Path, benchmarks: Sequence[Row]) -> str:
    axes = _axes("Failed as slower, 95 % interval", "planted slowdown in percent", "share of benchmarks in percent")
    sizes = sorted({row["size"] for row in benchmarks if row["what"] == "slow"} | {0})
    for budget, colour in COLOURS.items():
        for size in sizes:
            these = slow_rows(benchmarks, budget, size) if size else same_rows(benchmarks, budget)
            if not these:
                continue
            found = sum(row["status"] == "FAIL" if not size else found_in_time(row) for row in these)
            low, high = interval(found, len(these))
            rate, shift = 100 * found / len(these), (0.25, 5) if budget == "thorough" else (0.0, -11)
            across = size + shift[0]
            axes.errorbar(
                [across], [rate], yerr=[[rate - 100 * low], [100 * high - rate]], fmt="o", color=colour, capsize=4
            )
            axes.annotate(
                f"{found}/{len(these)}", (across, rate), (6, shift[1]), textcoords="offset points", fontsize=8
            )
    axes.axvline(3, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xticks(sizes)
    axes.set_ylim(-6, 106)
    _key(axes, [name for name in COLOURS if any(row["budget"] == name for row in benchmarks)])
    return _saved(folder, "detection.svg")


def _key(axes: Axes, names: Sequence[str]) -> None:
    for name in names:
        axes.plot([], [], "o", color=COLOURS[name], label=name)
    axes.legend(frameon=False, loc="center right", labelcolor=INK)


def _time(folder: Path, benchmarks: Sequence[Row]) -> str:
    axes = _axes("Measuring time until the verdict", "seconds per model", "share of benchmarks in percent")
    cases = sorted({(row["budget"], row["size"]) for row in benchmarks if row["what"] in ("slow", "same")})
    for budget, size in cases:
        these = slow_rows(benchmarks, budget, size) if size else same_rows(benchmarks, budget)
        spent = sorted(row["spent_s"] for row in these)
        share = [100 * (rank + 1) / len(spent) for rank in range(len(spent))]
        style = "-" if budget == "quick" else "--"
        axes.step(spent, share, style, where="post", color=SIZES.get(size, INK), label=f"{size} %, {budget}")
    axes.set_xscale("log")
    ticks = [2, 5, 10, 20, 60]
    axes.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.legend(frameon=False, loc="lower right", labelcolor=INK, fontsize=8)
    return _saved(folder, "time.svg")


def _drifts(folder: Path, drifts: Mapping[str, Any]) -> str:
    axes = _axes("Drifts of values", "largest difference in tolerances", "share found in percent")
    rows = [dict(zip(drifts["columns"], row, strict=True)) for row in drifts["rows"]]
    sized = [row for row in rows if row["tolerances"]]
    for name, label, colour in (
        ("found", "this gate", COLOURS["quick"]),
        ("assert_close", "torch.testing.assert_close", COLOURS["thorough"]),
    ):
        edges = [10.0 ** (power / 2) for power in range(-6, 9)]
        across, up = [], []
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            inside = [row for row in sized if low <= row["tolerances"] < high]
            if inside:
                across.append((low * high) ** 0.5)
                up.append(100 * sum(bool(row[name]) for row in inside) / len(inside))
        axes.plot(across, up, "o-", color=colour, label=label, markersize=4)
    axes.set_xscale("log")
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(-6, 106)
    axes.legend(frameon=False, loc="upper left", labelcolor=INK)
    return _saved(folder, "drifts.svg")
