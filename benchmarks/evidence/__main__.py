"""``nox -s evidence -- NAME --env PYTHON ...``: measure one fact, or all of them; without --env only write the page."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime, timezone

from benchmarks.evidence.measure import FACTS
from benchmarks.evidence.page import PAGE, RESULTS, filled
from benchmarks.evidence.processes import PROJECT, cpu_name, release_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, leave the numbers in ``docs/evidence`` and write the tables of the page; return 0."""
    parser = argparse.ArgumentParser(prog="nox -s evidence --")
    parser.add_argument("name", nargs="?", choices=[*FACTS], help="default: all")
    parser.add_argument("--env", nargs="+", default=[], metavar="PYTHON", help="interpreters with torch, oldest first")
    given = parser.parse_args(arguments)
    pythons = {release_of(python): python for python in given.env}
    for name in ([given.name] if given.name else FACTS) if pythons else ():
        print(name, file=sys.stderr, flush=True)
        measured = {
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "load_before": round(os.getloadavg()[0], 1),
        }
        result = {"measured": measured, "rows": FACTS[name](pythons)}
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    PAGE.write_text(filled(PAGE.read_text()))
    print(f"written: {PAGE.relative_to(PROJECT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
