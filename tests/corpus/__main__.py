"""``python -m tests.corpus [--hours H] [--out FOLDER] [--releases R ...]``: go on with the corpus; ``page`` writes it."""

import argparse
import sys
import time
from pathlib import Path

from tests.corpus.lane import Lane, make_chunk, next_chunk
from tests.corpus.releases import RELEASES


def main() -> int:
    parser = argparse.ArgumentParser(prog="nox -s corpus --")
    parser.add_argument("--out", type=Path, default=Path("reports/corpus"), help="what is done is kept there")
    parser.add_argument("--hours", type=float, default=12.0, help="begin no chunk after that")
    parser.add_argument("--judged-mb", type=int, default=40, help="ask no status of larger artifacts")
    parsed = parser.parse_args()
    lane = Lane(parsed.out.resolve(), parsed.judged_mb * 1_000_000)
    until = time.monotonic() + parsed.hours * 3600
    rest = list(RELEASES)
    while rest and time.monotonic() < until:
        for release in tuple(rest):
            architectures = next_chunk(lane, release)
            if not architectures:
                rest.remove(release)
                continue
            records = make_chunk(lane, release, architectures)
            written = sum(bool(record["bytes"]) for record in records)
            print(f"{time.strftime('%H:%M')} {release.torch}: {written} artifacts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
