"""``python -m harness``."""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036  so that it is said, where an older one would trip over a line
    print(f"error: the gate needs Python 3.11 or later, and this is {sys.version.split()[0]}", file=sys.stderr)
    sys.exit(2)

# ``-m`` puts the working directory first: what lies there is nobody's to import, unless harness itself lies there.
first = os.path.realpath(sys.path[0] or ".")
root = os.path.realpath(os.path.join(__file__, "..", ".."))  # noqa: PTH118  nothing more is imported yet
if not sys.flags.safe_path and first == os.path.realpath(".") and first != root:
    del sys.path[0]

from harness.cli import main  # noqa: E402

sys.exit(main())
