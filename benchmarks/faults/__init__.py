"""Attacks on the gate with drawn faults: ``nox -s bench -- faults``. A module here is one attack, found by its name.

Each has ``attack(count, seed)``, which returns what went wrong, one line each, and ``COUNT``, how many faults its bar
asks for. Equal seeds draw equal faults.
"""

import argparse
import importlib
import pkgutil
import sys
import time
from collections.abc import Sequence

SEED = 18


def main(names: Sequence[str] = (), count: int | None = None, seed: int = SEED) -> int:
    """Run the named attacks, or all, and print what went wrong; return 0 if nothing did, else 1."""
    missed = 0
    for name in names or attacks():
        module = importlib.import_module(f"{__name__}.{name}")
        faults, begin = count or module.COUNT, time.perf_counter()
        wrong = module.attack(faults, seed)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        print(f"{name:12} {faults} faults, seed {seed}: {len(wrong)} wrong  {time.perf_counter() - begin:.0f} s")
        sys.stdout.flush()
        missed += bool(wrong)
    return int(missed > 0)


def attacks() -> list[str]:
    """Return the names of the attacks."""
    return sorted(item.name for item in pkgutil.iter_modules(__path__) if not item.name.startswith("_"))


def run(arguments: Sequence[str]) -> int:
    """Run what a command line names: ``NAME ... --count N --seed N``."""
    parser = argparse.ArgumentParser(prog="nox -s bench -- faults")
    parser.add_argument("names", nargs="*", choices=[*attacks(), []], help="default: all")
    parser.add_argument("--count", type=int, help="faults of each, in place of what its bar asks for")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    return main(options.names, options.count, options.seed)
