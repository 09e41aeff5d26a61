"""``python -m harness`` with two seconds for the import of torch."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.cli import main
from harness.probing.zygote import Zygote

if __name__ == "__main__":
    patient = Zygote.wait_ready
    Zygote.wait_ready = lambda zygote: patient(zygote, 2.0)  # type: ignore[method-assign,misc,assignment]
    sys.exit(main())
