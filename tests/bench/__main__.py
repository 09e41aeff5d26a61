"""``nox -s bench -- NAME``: run one benchmark, or all of them."""

import argparse
import sys

from tests.bench import bisect, environments, faults, hand, init, inspect, page

BENCHMARKS = {
    "bisect": bisect.main,
    "environments": environments.main,
    "faults": faults.main,
    "hand": hand.main,
    "init": init.main,
    "inspect": inspect.main,
    "page": page.main,
}


def main() -> int:
    """Run the named benchmarks and return 0 if every bar was met, else 1."""
    if sys.argv[1:2] == ["faults"]:  # which ones, how many, drawn from which seed
        return faults.run(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="nox -s bench --")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="default: all")
    names = parser.parse_args().names or list(BENCHMARKS)
    return max(BENCHMARKS[name]() for name in names)


sys.exit(main())
