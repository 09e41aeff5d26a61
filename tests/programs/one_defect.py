"""``python -m harness`` whose runs plant one defect and its twin: for tests of something else, which all would slow down."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.cli import main
from harness.run import plan

PLANTED = ("planted_values", "planted_healthy")

if __name__ == "__main__":
    plan._is_planted = lambda declaration, *_: declaration.name in PLANTED
    sys.exit(main())
