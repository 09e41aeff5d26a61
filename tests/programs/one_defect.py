"""``python -m harness`` whose runs plant one defect and its twin: for tests of something else, which all would slow down."""

import contextlib
import sys
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.cli import main
from harness.apps.upgrade import plan

PLANTED = ("planted_values", "planted_healthy")


def planted() -> contextlib.AbstractContextManager[object]:
    """Let runs of this process plant nothing else meanwhile."""
    return mock.patch.object(plan, "_is_planted", lambda declaration, *_: declaration.name in PLANTED)


if __name__ == "__main__":
    with planted():
        sys.exit(main())
