"""Times artifacts the way people do, in the interpreter of an environment under test, one process per side.

``timing.py calls JOB`` reads ``{"artifacts": [[name, path, inputs], ...], "max_s", "warmup", "measurements",
"old"}`` and times single calls (as ``pytest-benchmark`` does) and a ``torch.utils.benchmark.Timer`` of each artifact.
It leaves the measurements in a file, and where ``old`` names such a file of another process, compares with it.
``timing.py truth JOB`` reads ``{"pairs": [[name, [path, inputs], [path, inputs]], ...], "each_s"}`` and calls
both artifacts of a pair in turn. Prints one JSON object. Python 3.8 grammar, torch only.
"""

# mypy: ignore-errors

import json
import pickle
import re
import statistics
import sys
import time
import types

import recorded
import torch

# Only its timer of C++ code needs this, which needs setuptools, which no environment under test has.
sys.modules["torch.utils.cpp_extension"] = types.ModuleType("cpp_extension")
from torch.utils import benchmark

COLOUR = re.compile(r"\x1b\[[0-9]+m")
BEST = "\x1b[92m"


def loaded(path, inputs, read):
    """Return (module, arguments of the first input set)."""
    values = read(inputs, "cpu")
    (first, *_) = read.index(inputs)
    return torch.jit.load(path).eval(), values.value(first["tree"])


def timed(module, arguments):
    begin = time.perf_counter()
    module(*arguments)
    return time.perf_counter() - begin


def calls(job, read):
    """Return the raw calls of every artifact and what ``Compare`` makes of it beside the other process."""
    theirs = {}
    if job["old"]:
        with open(job["old"], "rb") as stream:
            theirs = pickle.load(stream)
    raw, mine, compared = {}, {}, {}
    for name, path, inputs in job["artifacts"]:
        module, arguments = loaded(path, inputs, read)
        for _ in range(job["warmup"]):
            module(*arguments)
        found, limit = [], time.perf_counter() + job["max_s"]
        while len(found) < 5 or time.perf_counter() < limit:
            found.append(timed(module, arguments))
        raw[name] = found
        timer = benchmark.Timer(
            "module(*arguments)",
            globals={"module": module, "arguments": arguments},
            label=name,
            description="new" if job["old"] else "old",
        )
        mine[name] = timer.blocked_autorange(min_run_time=0.2)
        if name in theirs:
            compared[name] = compare(theirs[name], mine[name])
    with open(job["measurements"], "wb") as stream:
        pickle.dump(mine, stream)
    return {"raw": raw, "compare": compared}


def compare(old, new):
    """Return what a reader of ``Compare`` sees: both trimmed medians as printed, and which it paints as the best."""
    shown = benchmark.Compare([old, new])
    shown.trim_significant_figures()
    shown.colorize(rowwise=True)
    row = next(line for line in str(shown).splitlines() if "module(*arguments)" in line)
    cells = row.split("|")[1:]
    return {
        "shown": [float(COLOUR.sub("", cell)) for cell in cells],
        "best": [BEST in cell for cell in cells],
        "figures": [old.significant_figures, new.significant_figures],
    }


def truth(job, read):
    """Return per pair the median over turns of new/old: both in one process, called in turn, who begins in turn too."""
    found = {}
    for name, old, new in job["pairs"]:
        sides = [loaded(*old, read), loaded(*new, read)]
        for module, arguments in sides * 10:
            module(*arguments)
        ratios, limit, turn = [], time.perf_counter() + job["each_s"], 0
        while time.perf_counter() < limit:
            first, spent = turn % 2, {}
            for side in (first, 1 - first):
                spent[side] = timed(*sides[side])
            ratios.append(spent[1] / spent[0])
            turn += 1
        found[name] = statistics.median(ratios)
    return found


def main():
    torch.set_num_threads(1)
    read = recorded.reader()
    with open(sys.argv[2], encoding="utf-8") as stream:
        job = json.load(stream)
    with torch.no_grad():
        print(json.dumps({"calls": calls, "truth": truth}[sys.argv[1]](job, read)))


main()
