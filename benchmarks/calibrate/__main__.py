"""``nox -s calibrate -- PART [ARGUMENT ...]``: measure one part, or, without one, all of them and the page."""

import importlib
import sys
from collections.abc import Sequence

# In this order: the page reads what the others write. Imported when asked for: only some need SciPy.
PARTS = ("numbers", "failures", "latency", "lengths", "page", "simulated", "static")


def main(arguments: Sequence[str]) -> int:
    """Run the named part with the rest of the arguments, or all without any; return 0 if nothing was missed."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if name and name not in PARTS:
        print(f"usage: python -m benchmarks.calibrate [{' | '.join(PARTS)}]", file=sys.stderr)
        return 2
    return max(
        int(importlib.import_module(f"benchmarks.calibrate.{part}").main(rest)) for part in ([name] if name else PARTS)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
