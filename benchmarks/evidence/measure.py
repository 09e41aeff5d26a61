"""The facts: how each is measured. Every function takes release -> interpreter and returns the rows of its table."""

import contextlib
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.evidence.processes import (
    PROGRAM,
    PROJECT,
    ask,
    harness,
    median_s,
    quantile,
    returned,
    rounded,
    started,
)
from harness.checks.hang import debuggers
from harness.checks.latency.allocator import HIGHEST
from tests.programs.watching import hogs

Pythons = Mapping[str, str]
Rows = list[dict[str, Any]]

TWICE = 2.0
PAIRS, TURNS, BLOCK_S = 20, 15, 0.12
BLOCKS, SHORT_BLOCK_S, WIDTHS = 300, 0.02, (128, 512, 1024)
FRESH = 20
HANG_S = 20.0
VISION, TRAFFIC = "benchmarks/evidence/vision", "benchmarks/evidence/traffic"


# -- numbers -----------------------------------------------------------------------------------------------------------


def tolerance(pythons: Pythons) -> Rows:
    """Compare float32 outputs: the zoo from release to release, then one release with itself in other circumstances."""
    rows = [_drift(*pair, pythons, "fixtures/zoo") for pair in pairwise(pythons)]
    for old, new in pairwise(release for release in pythons if _has_torchvision(pythons[release])):
        rows.append(_drift(old, new, pythons, VISION, "--library", "torchvision"))
    newest = list(pythons)[-1]
    for what, words in SAME_RELEASE.items():
        rows.append(_drift(newest, newest, pythons, "fixtures/zoo", "--allow-same-torch", *words, what=what))
    return rows


SAME_RELEASE = {
    "the same": (),
    "two threads in place of one": (
        "--new-profile",
        "evidence",
        "--set",
        "serving.profiles.evidence.intra_op_threads=2",
    ),
    "AVX2 in place of AVX-512": (
        "--new-profile",
        "evidence",
        "--set",
        'serving.profiles.evidence.env.ATEN_CPU_CAPABILITY="avx2"',
    ),
}


def _has_torchvision(python: str) -> bool:
    return subprocess.run([python, "-c", "import torchvision"], capture_output=True, check=False).returncode == 0


def _drift(old: str, new: str, pythons: Pythons, models: str, *words: str, what: str = "") -> dict[str, Any]:
    sides = ("--env", f"old={pythons[old]}", "--env", f"new={pythons[new]}")
    with tempfile.TemporaryDirectory() as folder:
        quick = ("--latency", "off", "--scenario", "alone", "--jobs", "2", "--out", folder)
        harness("compat", *sides, "--fixtures", models, *quick, *words)
        report = _report(folder)
    worst = {}
    for row in report["models"]:
        shares = [_share(tensor) for tensor in _tensors(row["comparisons"]) if tensor["dtype"] == "float32"]
        if shares:
            worst[row["model"]] = max(shares)
    largest = max(worst, key=lambda name: worst[name])
    return {
        "models": "zoo" if models == "fixtures/zoo" else "torchvision",
        "old": old,
        "new": new,
        "what": what,
        "compared": len(worst),
        "bit_equal": sum(share == 0.0 for share in worst.values()),
        "largest": rounded(worst[largest], 2),
        "of": largest,
    }


def _share(tensor: Mapping[str, Any]) -> float:
    """Return the largest difference as a share of the largest golden value; infinite where that is 0."""
    off, scale = float(tensor["max_abs"]), float(tensor["scale"])
    return 0.0 if off == 0.0 else off / scale if scale else math.inf


def _tensors(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "max_ulp" in node:
            yield node
        for part in node.values():
            yield from _tensors(part)
    elif isinstance(node, list):
        for part in node:
            yield from _tensors(part)


def _report(folder: str) -> Any:
    (path,) = Path(folder).glob("*/report.json")
    return json.loads(path.read_text())


# -- time --------------------------------------------------------------------------------------------------------------


def first_calls(pythons: Pythons) -> Rows:
    """Time the first calls of every model of the zoo after loading, and at another shape."""
    rows = []
    for release, python in pythons.items():
        found = ask(python, "first_calls")
        for what in ("calls", "shape"):
            for call in range(8):
                ratios = [times[call] for times in found[what].values()]
                rows.append(
                    {
                        "release": release,
                        "what": what,
                        "call": call,
                        "models": len(ratios),
                        "least": rounded(min(ratios)),
                        "median": rounded(statistics.median(ratios)),
                        "p90": rounded(quantile(ratios, 0.9)),
                        "twice": sum(ratio >= TWICE for ratio in ratios),
                    }
                )
        loads = list(found["load_ms"].values())
        spread = {name: rounded(function(loads), 2) for name, function in SPREAD.items()}
        rows.append({"release": release, "what": "load_ms", "models": len(loads), **spread})
    return rows


SPREAD: Mapping[str, Callable[[list[float]], float]] = {"least": min, "median": statistics.median, "most": max}


def processes(pythons: Pythons) -> Rows:
    """Time pairs of fresh processes of one release in alternating blocks: what differs, and for how long."""
    return [_pairs(release, python) for release, python in pythons.items()]


def _pairs(release: str, python: str) -> dict[str, Any]:
    ratios, errors, halves = [], [], []
    for _ in range(PAIRS):
        turns = _turns(python)
        ratios.append(statistics.fmean(turns))
        errors.append(statistics.stdev(turns) / math.sqrt(TURNS))
        halves.append((statistics.fmean(turns[: TURNS // 2]), statistics.fmean(turns[TURNS // 2 :])))
    off = [abs(ratio) for ratio in ratios]
    surely = [abs(ratio) > 2.14 * error for ratio, error in zip(ratios, errors, strict=True)]
    return {
        "release": release,
        "pairs": PAIRS,
        "error_within": rounded(statistics.median(errors), 2),
        "median": rounded(statistics.median(off), 2),
        "p90": rounded(quantile(off, 0.9), 2),
        "most": rounded(max(off), 2),
        "surely_off": sum(surely),
        "in_both_halves": sum(sure and a * b > 0 for sure, (a, b) in zip(surely, halves, strict=True)),
    }


def _turns(python: str) -> list[float]:
    """Return the logarithm of the ratio of both processes, by turn."""
    with _serving(python) as one, _serving(python) as other:
        pair, found = (one, other), []
        for turn in range(TURNS):
            times = {side: _block(pair[side], BLOCK_S) for side in ((0, 1) if turn % 2 else (1, 0))}
            found.append(math.log(times[1] / times[0]))
    return found


@contextlib.contextmanager
def _serving(python: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    process = started(python, "serve", *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _block(process: "subprocess.Popen[str]", block_s: float) -> float:
    """Return the median seconds of a call in a block of that process."""
    assert process.stdin is not None and process.stdout is not None
    print(block_s, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def caches(pythons: Pythons) -> Rows:
    """Time blocks of three processes in a drawn order: what one takes after its own last one, and after another's."""
    return [_after(release, python, width) for release, python in pythons.items() for width in WIDTHS]


def _after(release: str, python: str, width: int) -> dict[str, Any]:
    own, others = list[float](), list[float]()
    chance = random.Random(0)
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(_serving(python, str(width))) for _ in range(3)]
        last = -1
        for _ in range(BLOCKS):
            drawn = chance.randrange(3)
            took = _block(crowd[drawn], SHORT_BLOCK_S)
            (own if drawn == last else others).append(1e3 * took)
            last = drawn
    after = {"own_ms": statistics.median(own), "others_ms": statistics.median(others)}
    return {"release": release, "weights_mb": round(8 * 4 * width**2 / 1e6, 1)} | {
        name: rounded(value) for name, value in after.items()
    }


def allocator(pythons: Pythons) -> Rows:
    """Measure in fresh processes what a call that needs 38 MB for a moment costs: in some it takes them from the kernel."""
    rows = []
    for release, python in pythons.items():
        for env, thresholds in ({}, "glibc's own"), (HIGHEST, "set"):
            costs = [ask(python, "allocator", env=env) for _ in range(FRESH)]
            faulting = [cost["ms"] for cost in costs if cost["faults"] >= 1]
            others = [cost["ms"] for cost in costs if cost["faults"] < 1]
            row: dict[str, Any] = {"release": release, "thresholds": thresholds, "processes": FRESH}
            row |= {"faulting": len(faulting), "most_faults": round(max(cost["faults"] for cost in costs))}
            row |= {
                name: rounded(statistics.median(times)) if times else None
                for name, times in (("faulting_ms", faulting), ("others_ms", others))
            }
            rows.append(row)
    return rows


def debugger_times(pythons: Pythons) -> Rows:
    """Time each debugger that is installed on a process that sleeps, with torch and its pool in it."""
    rows = []
    for release, python in pythons.items():
        process = started(python, "sleep")
        try:
            for tool in (debuggers.EU_STACK, debuggers.PYSTACK, debuggers.PY_SPY, debuggers.GDB):
                program = debuggers.find(tool.name)
                if program is not None:
                    rows.append({"release": release, "tool": tool.name, **_looked(tool, program, process.pid)})
        finally:
            process.kill()
            process.wait()
    return rows


def _looked(tool: debuggers.Debugger, program: str, pid: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        problems = set()

        def look() -> None:
            problems.add(debuggers.sample(tool, program, pid, Path(folder), 1).problem)

        look()  # the first one reads the files from the disk
        return {"seconds": rounded(median_s(3, look), 2), "problem": "; ".join(sorted(problems - {""}))}


def spin(pythons: Pythons) -> Rows:
    """Measure for how long the threads of a pool use a CPU after a call has returned."""
    rows = []
    for release, python in pythons.items():
        times = ask(python, "spin")["ms"]
        rows.append(
            {
                "release": release,
                "median_ms": rounded(statistics.median(times), 2),
                "p90_ms": rounded(quantile(times, 0.9), 2),
                "most_ms": rounded(max(times), 2),
            }
        )
    return rows


# -- threads and processes ---------------------------------------------------------------------------------------------


def gil(pythons: Pythons) -> Rows:
    """Measure how long other Python threads stand still while a module is loaded and called."""
    return [
        {"release": release, "what": what, "ms": rounded(1e3 * answer["seconds"]), "silent": rounded(answer["silent"])}
        for release, python in pythons.items()
        for what, answer in ask(python, "gil").items()
    ]


def gil_waiters(pythons: Pythons) -> Rows:
    """Measure what a thread does that waits for Python's lock, with nobody beside and with four that compute."""
    python = list(pythons.values())[-1]
    rows = []
    for beside in (0, 4):
        with hogs(beside):
            answer = ask(python, "gil_waiters")
        rows.append({"beside": beside, **{name: rounded(value, 2) for name, value in answer.items()}})
    return rows


def fork(pythons: Pythons) -> Rows:
    """Measure what an import, a fork and the first module of a process cost, and whether a child can compute."""
    rows = []
    for release, python in pythons.items():
        answer = ask(python, "fork")
        numbers = {name: rounded(value, 2) for name, value in answer.items() if isinstance(value, float)}
        rows.append({"release": release, **answer, **numbers})
    return rows


# -- TorchScript -------------------------------------------------------------------------------------------------------


def switches(pythons: Pythons) -> Rows:
    """Set each private switch and read it back."""
    return [{"release": release, **ask(python, "switches")} for release, python in pythons.items()]


def natural_hang(pythons: Pythons) -> Rows:
    """Count the calls that return of a program that never ends where it is fused, under each setting."""
    rows = []
    for release, python in pythons.items():
        for mitigation in MITIGATIONS:
            calls = returned(python, "hang", mitigation, limit_s=HANG_S)
            rows.append({"release": release, "setting": mitigation, "calls_that_return": len(calls)})
    return rows


def slower_first_calls(pythons: Pythons) -> Rows:
    """Time the slowest call of a program without fusion in the oldest release, and with it in the newest one."""
    oldest, *_, newest = pythons
    before = ask(pythons[oldest], "fused_calls", "off", *STEPS)
    after = ask(pythons[newest], "fused_calls", "on", *STEPS)
    return [
        {"steps": int(steps), "old": oldest, "old_ms": before[steps], "new": newest, "new_ms": after[steps]}
        for steps in STEPS
    ]


STEPS = ("10", "20", "40")
MITIGATIONS = (
    "nothing",
    "profiling off",
    "profiling executor off",
    "fuser off",
    "fusion depth 0",
    "optimized execution off",
)


def archive_members(pythons: Pythons) -> Rows:
    """Save the zoo several times and count the models of which a member differs, the root folder apart."""
    rows = []
    for release, python in pythons.items():
        with tempfile.TemporaryDirectory() as name:
            folders = {what: Path(name) / str(index) for index, what in enumerate(("first", *OTHERS))}
            for folder in folders.values():
                folder.mkdir()
            source = Path(name) / "source"
            shutil.copytree(PROJECT / "fixtures", source / "fixtures")
            (source / "tests" / "evidence").mkdir(parents=True)
            moved = Path(shutil.copy(PROGRAM, source / "tests" / "evidence"))
            plain = {"PYTHONHASHSEED": "0"}
            ask(python, "save", str(folders["first"]), str(folders["folder"]), env=plain)
            ask(python, "save", str(folders["process"]), env=plain)
            ask(python, "save", str(folders["hash seed"]), env={"PYTHONHASHSEED": "1"})
            ask(python, "save", str(folders["path of the source"]), program=moved, env=plain)
            for what in OTHERS:
                files = sorted(folders["first"].glob("*.pt"))
                differ = [kind for file in files for kind in _differ(file, folders[what] / file.name)]
                counts = {kind: differ.count(kind) for kind in KINDS}
                rows.append({"release": release, "other": what, "models": len(files), **counts})
    return rows


OTHERS = ("folder", "process", "hash seed", "path of the source")
KINDS = ("serialization_id", ".debug_pkl", "code", "anything else")


def _differ(one: Path, other: Path) -> set[str]:
    """Return the kinds of members in which two archives differ."""
    members = [_members(path) for path in (one, other)]
    names = {name for part in members for name in part if members[0].get(name) != members[1].get(name)}
    return {
        next((kind for kind in KINDS[:2] if name.endswith(kind)), "code" if name.startswith("code/") else KINDS[3])
        for name in names
    }


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


# -- bringing up -------------------------------------------------------------------------------------------------------

WAYS = ("alone", "sequential", "concurrent", "staggered", "while_serving")


def bringing_up(pythons: Pythons) -> Rows:
    """Bring up models that fail only after more calls than a warm-up makes, and say which scenario sees it."""
    old, new = (pythons[release] for release in list(pythons)[:2])
    sides = ("--env", f"old={old}", "--env", f"new={new}", "--latency", "off", "--new-profile", "inference_mode")
    ways = [word for way in WAYS for word in ("--scenario", way)]
    with tempfile.TemporaryDirectory() as folder:
        harness("compat", *sides, *ways, "--fixtures", TRAFFIC, "--deadline", "5", "--explain", "0", "--out", folder)
        report = _report(folder)
    rows = []
    for row in report["judgement"]["rows"]:
        found = {cell["scenario"]: ", ".join(finding["kind"] for finding in cell["findings"]) for cell in row["cells"]}
        rows.append({"model": row["model"], **{way: found[way] or "nothing" for way in WAYS}})
    return rows


def memory(pythons: Pythons) -> Rows:
    """Bring the zoo up and down six times, healthy as it is, and say by how much memory grows per cycle."""
    old, new = list(pythons)[:2]
    sides = ("--env", f"old={pythons[old]}", "--env", f"new={pythons[new]}", "--runtime", "libtorch")
    with tempfile.TemporaryDirectory() as folder:
        harness("compat", *sides, "--latency", "off", "--scenario", "reinit", "--out", folder)
        report = _report(folder)
    rows = []
    for release, side in ((old, "old"), (new, "new")):
        grown = [row[side]["growth_bytes"] for row in report["scenarios"] if row[side] is not None]
        known = [value for value in grown if value is not None]
        rows.append({"release": release, "groups": len(known), "most_bytes": round(max(known))})
    return rows


def environments(pythons: Pythons) -> Rows:
    """Add up what an environment takes on the disk, each file once."""
    rows = []
    for release, python in pythons.items():
        seen: dict[tuple[int, int], int] = {}
        for folder, _, names in os.walk(Path(python).parent.parent):
            for name in names:
                status = os.lstat(os.path.join(folder, name))
                seen[status.st_dev, status.st_ino] = 512 * status.st_blocks
        rows.append({"release": release, "gigabytes": round(sum(seen.values()) / 1e9, 1)})
    return rows


FACTS: Mapping[str, Callable[[Pythons], Rows]] = {
    "tolerance": tolerance,
    "first-calls": first_calls,
    "slower-first-calls": slower_first_calls,
    "processes": processes,
    "caches": caches,
    "allocator": allocator,
    "spin": spin,
    "gil": gil,
    "gil-waiters": gil_waiters,
    "fork": fork,
    "debuggers": debugger_times,
    "switches": switches,
    "natural-hang": natural_hang,
    "archive-members": archive_members,
    "bringing-up": bringing_up,
    "memory": memory,
    "environments": environments,
}
