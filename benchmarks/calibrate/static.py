"""``docs/static-check.md``: what the static check predicts against what loading comes to, over releases and directions.

``python -m benchmarks.calibrate static [NAME ...]`` runs the version matrix of the named corpora (all without a name), into
``docs/calibration/static.json``, and writes the page; ``static page`` only writes the page. What ``reports/matrix``
knows already is not run again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.calibrate.corpus import PROJECT, RESULTS, store
from benchmarks.calibrate.static_page import page_of
from harness.environments.builder import default_environment_root

PAGE = PROJECT / "docs" / "static-check.md"
STORED = RESULTS / "static.json"
RELEASES = ("1.13.1", "2.1.2", "2.6.0", "2.11.0", "2.15.0")
TORCHVISION = {"2.1.2": "0.16.2", "2.3.1": "0.18.1", "2.6.0": "0.21.0", "2.11.0": "0.26.0", "2.15.0": "0.29.2"}
"""Its first release with wheels for Python 3.11 is that of torch 2.0."""
BEFORE_NUMPY_2 = ("2.1.2", "2.3.1")
BESIDE = ("numpy<2", "packaging")


@dataclass(frozen=True)
class Corpus:
    """One matrix: which models, over which releases."""

    name: str
    words: tuple[str, ...]
    releases: tuple[str, ...] = RELEASES
    project: str = ""

    @property
    def command(self) -> list[str]:
        """The command line after ``python -m``."""
        project = ["--project", self.project] if self.project else []
        return ["harness", *project, "matrix", "--releases", *self.releases, *self.words]


def extras() -> tuple[str, ...]:
    """Return what gives each release its own torchvision."""
    wanted = {
        release: [f"torchvision=={version}", *(BESIDE if release in BEFORE_NUMPY_2 else ())]
        for release, version in TORCHVISION.items()
    }
    texts = (f'environments."{release}".extras={json.dumps(found)}' for release, found in wanted.items())
    return tuple(word for text in texts for word in ("--set", text))


CORPORA = (
    Corpus("zoo", ("--fixtures", "fixtures/zoo")),
    # Two of them hang for good, and a deadline ends them; healthy ones take milliseconds.
    Corpus("planted_defects", ("--fixtures", "fixtures/planted", "-k", "planted_", "--deadline", "4")),
    Corpus("breaks", ("--fixtures", "fixtures/breaks")),
    Corpus("torchvision", extras(), tuple(TORCHVISION), "docs/examples/torchvision"),
)


def main(arguments: Sequence[str]) -> int:
    """Run what is named, write the page, and return 1 if a prediction was wrong."""
    known: dict[str, Any] = json.loads(STORED.read_text()) if STORED.exists() else {}
    wanted = [corpus for corpus in CORPORA if not arguments or corpus.name in arguments]
    if not wanted and list(arguments) != ["page"]:
        print(f"usage: static [page | {' | '.join(corpus.name for corpus in CORPORA)} ...]", file=sys.stderr)
        return 2
    for corpus in wanted:
        known[corpus.name] = summary_of(run(corpus), corpus)
        store(STORED.name, known)
    PAGE.write_text(page_of([known[corpus.name] for corpus in CORPORA if corpus.name in known]))
    return int(any(item["wrong"] for item in known.values()))


def run(corpus: Corpus) -> dict[str, Any]:
    """Return the matrix of a corpus; its progress is shown.

    Raises:
        RuntimeError: it ended without one.
    """
    environ = {**os.environ, "TORCHSCRIPT_GATE_ENVS": str(default_environment_root())}
    command = [sys.executable, "-m", *corpus.command, "--out", "reports/matrix", "--format", "json"]
    done = subprocess.run(command, cwd=PROJECT, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise RuntimeError(f"{corpus.name}: exit code {done.returncode}")
    matrix: dict[str, Any] = json.loads(done.stdout)
    return matrix


def summary_of(matrix: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """Return what the page shows of a matrix; times are left out, so that the same results give the same page."""
    cells: list[dict[str, Any]] = matrix["cells"]
    expected = {"will load": "loaded", "will not load": "did not load"}
    wrong = [
        cell
        for cell in cells
        if cell["predicted"] in expected and cell["happened"] not in (expected[cell["predicted"]], "not known")
    ]
    return {
        "name": corpus.name,
        "command": " ".join(["python", "-m", *map(_quoted, corpus.command)]),
        "models": len(matrix["models"]),
        "releases": [release["torch"] for release in matrix["releases"]],
        "columns": [release["name"] for release in matrix["releases"]],
        "pairs": [
            {key: pair[key] for key in ("exporter", "loader", "passed", "tested", "direction", "status")}
            for pair in matrix["pairs"]
        ],
        "predictions": matrix["predictions"],
        "wrong": [_cell_row(cell) for cell in wrong],
        "refused": _grouped([cell for cell in cells if cell["predicted"] == "will not load" and cell not in wrong]),
        "unknown": _grouped([cell for cell in cells if cell["predicted"] == "unknown"]),
    }


def _grouped(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        why = str(cell["why_predicted"]).partition(": torch")[0]  # the release is another in every pair
        group = groups.setdefault((cell["model"], why), {"model": cell["model"], "why": why, "pairs": []})
        group["pairs"].append(f"{cell['exporter']} -> {cell['loader']}")
    return list(groups.values())


def _cell_row(cell: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(cell[key])
        for key in ("model", "exporter", "loader", "predicted", "why_predicted", "happened", "reason")
    }


def _quoted(word: str) -> str:
    return word if all(letter.isalnum() or letter in "-_./" for letter in word) else f"'{word}'"
