"""``python -m harness``."""

import os
import sys

# ``-m`` puts the working directory first: what lies there is nobody's to import, unless harness itself lies there.
first = os.path.realpath(sys.path[0] or ".")
root = os.path.realpath(os.path.join(__file__, "..", ".."))  # noqa: PTH118  nothing more is imported yet
if not sys.flags.safe_path and first == os.path.realpath(".") and first != root:
    del sys.path[0]

from harness.cli import main  # noqa: E402

sys.exit(main())
