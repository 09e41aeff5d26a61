"""``nox -s bench -- NAME``: run one benchmark, or all of them."""

import argparse
import sys

from benchmarks import (
    against,
    bisect,
    crowded,
    environments,
    faults,
    fleet,
    hand,
    init,
    inspect,
    load,
    neighbours,
    page,
    servers,
)
from benchmarks.atlas import measure

BENCHMARKS = {
    "bisect": bisect.main,
    "crowded": crowded.main,
    "environments": environments.main,
    "faults": faults.main,
    "fleet": fleet.main,
    "hand": hand.main,
    "init": init.main,
    "inspect": inspect.main,
    "load": load.main,
    "neighbours": neighbours.main,
    "page": page.main,
}


def main() -> int:
    """Run the named benchmarks and return 0 if every bar was met, else 1."""
    if sys.argv[1:2] == ["faults"]:  # which ones, how many, drawn from which seed
        return faults.run(sys.argv[2:])
    if sys.argv[1:2] == ["atlas"]:
        return measure.main(sys.argv[2:])
    if sys.argv[1:2] == ["against"]:
        return against.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="nox -s bench --")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, "servers", []], help="default: all")
    parser.add_argument("--times", type=int, default=20, help="servers: processes of each case and twin; default: 20")
    parser.add_argument("--releases", nargs=2, default=("2.6.0", "2.15.0"), help="servers: default 2.6.0 2.15.0")
    parser.add_argument(
        "--only", nargs="+", choices=servers.SCENARIOS, default=servers.SCENARIOS, help="servers: these"
    )
    asked = parser.parse_args()
    names = asked.names or [*BENCHMARKS, "servers"]
    return max(
        servers.main(asked.times, asked.releases, asked.only) if name == "servers" else BENCHMARKS[name]()
        for name in names
    )


sys.exit(main())
