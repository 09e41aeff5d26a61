"""Which branches of the C++ worker's conditions on a device have run: counted by gcov, in a worker compiled for that."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

WORDS = re.compile("device|cuda|gpu", re.IGNORECASE)
DECIDES = re.compile(r"\b(?:if|while|switch) \(|\? |&&|\|\|")
COMMENT = re.compile(r"//.*|\"[^\"]*\"")
# The worker leaves by _exit, which writes no counts.
LEAVING = """
extern "C" void __gcov_dump();
extern "C" [[noreturn]] void __real__exit(int);
extern "C" [[noreturn]] void __wrap__exit(int code) {
  __gcov_dump();
  __real__exit(code);
}
"""
COMPILER = """#!/bin/sh
# Optimized code would have other branches than the source.
case "$*" in
  */worker.cpp*) exec g++ "$@" "{leaving}" --coverage -O0 -Wl,--wrap=_exit ;;
  *) exec g++ "$@" ;;
esac
"""


@dataclass(frozen=True)
class Branches:
    """What is known of one condition, or line of C++: its branches, how many of them ran, whether it was compiled."""

    text: str
    there: int
    run: int
    compiled: bool


def counting_compiler(folder: Path) -> Path:
    """Return a compiler to name in CXX, whose C++ worker counts, beside its binary, which branches have run."""
    leaving, compiler = folder / "leaving.cpp", folder / "g++-counting"
    leaving.write_text(LEAVING)
    compiler.write_text(COMPILER.format(leaving=leaving))
    compiler.chmod(0o755)
    return compiler


def lines_on_devices(sources: Path) -> dict[str, str]:
    """Return the lines that decide by a device, by ``FILE:LINE``; what comments and texts say does not count."""
    found = {}
    for path in sorted(sources.rglob("*.[ch]pp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = COMMENT.sub("", line)
            if WORDS.search(code) and DECIDES.search(code) and not code.startswith("#"):
                found[f"{path.relative_to(sources)}:{number}"] = line.strip()
    return found


def decisions(line: str) -> int:
    """Return how many conditions a line has, each operand of ``&&`` and ``||`` by itself."""
    return len(DECIDES.findall(COMMENT.sub("", line)))


def branches(sources: Path, builds: Path) -> dict[str, Branches]:
    """Return what has run of the lines that decide by a device, in all workers built below ``builds``."""
    counts: dict[str, list[int]] = {}
    lines = lines_on_devices(sources)
    for data in sorted(builds.rglob("*worker.gcda")):
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", str(data)]
        done = subprocess.run(command, capture_output=True, check=True)
        for file in json.loads(done.stdout)["files"]:
            path = Path(file["file"])
            if sources not in path.parents:
                continue
            for line in file["lines"]:
                place = f"{path.relative_to(sources)}:{line['line_number']}"
                # What a line decides comes before the branches by which it then destroys what it has made.
                decided = 2 * decisions(lines.get(place, ""))
                own = [branch["count"] for branch in line["branches"] if not branch["throw"]][:decided]
                known = counts.setdefault(place, own)
                if known is not own:  # of another function that is made of the same line, or of another build
                    counts[place] = [sum(pair) for pair in zip(known, own, strict=False)]
    return {
        place: Branches(
            text,
            there=2 * decisions(text),
            run=sum(count > 0 for count in counts.get(place, ())),
            compiled=bool(counts.get(place)),
        )
        for place, text in lines.items()
    }
