"""``nox -s corpus``: go on with the corpus and write its page; ``page`` only writes it, ``keep`` exports the twenty again."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.corpus.grading import judged, predictions
from tests.corpus.keeping import keep
from tests.corpus.lane import Lane, all_done, make_chunk, next_chunk, shipped, there
from tests.corpus.page import page_of
from tests.corpus.releases import RELEASES

PROJECT = Path(__file__).resolve().parents[2]
RESULTS = PROJECT / "docs" / "calibration" / "corpus.json"
PAGE = PROJECT / "docs" / "corpus.md"


def main() -> int:
    """Return 1 if a prediction or status is wrong."""
    parser = argparse.ArgumentParser(prog="nox -s corpus --", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("run", "page", "keep"), default="run")
    parser.add_argument("--out", type=Path, default=PROJECT / "reports" / "corpus", help="what is done is kept there")
    parser.add_argument("--hours", type=float, default=12.0, help="begin nothing after that")
    parser.add_argument("--judged-mb", type=int, default=40, help="ask no status of larger artifacts")
    parser.add_argument("--chunk", type=int, default=16, help="architectures that are kept on disk together")
    parser.add_argument("--libraries", nargs="+", default=[], help="these alone, such as torchaudio")
    parsed = parser.parse_args()
    lane = Lane(parsed.out.resolve(), parsed.judged_mb * 1_000_000, parsed.chunk)
    if parsed.what == "keep":
        keep(lane)
        return 0
    if parsed.what == "run":
        run(lane, time.monotonic() + parsed.hours * 3600, parsed.libraries)
    if lane.results.exists():
        lines = ",\n".join(json.dumps(record) for record in all_done(lane))
        RESULTS.write_text(f'{{"there": {json.dumps(there(lane))},\n"records": [\n{lines}\n]}}\n')
    known = json.loads(RESULTS.read_text())
    records = known["records"]
    PAGE.write_text(page_of(records, known["there"]))
    grades = [p.grade for p in predictions(records)] + [j.grade for j in judged(records)]
    return int(any(grade.startswith("wrong") for grade in grades))


def run(lane: Lane, until: float, libraries: Sequence[str]) -> None:
    """Export and ask, one release after the other, until all is done or time is up."""
    shipped(lane)
    rest = list(RELEASES)
    while rest and time.monotonic() < until:
        for release in tuple(rest):
            architectures = next_chunk(lane, release, libraries)
            if not architectures:
                rest.remove(release)
                continue
            written = sum(bool(record["bytes"]) for record in make_chunk(lane, release, architectures))
            print(f"{time.strftime('%H:%M')} {release.torch}: {written} artifacts", flush=True)


if __name__ == "__main__":
    sys.exit(main())
