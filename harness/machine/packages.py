"""Packages of the gate's own interpreter that only some commands need."""

import importlib.util
import sys
from collections.abc import Sequence

from harness.core.errors import EnvironmentUnavailable


def require(command: str, packages: Sequence[str], extra: str) -> None:
    """Raise ``EnvironmentUnavailable`` where one of ``packages``, which ``extra`` installs, is not there."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    if lacking:
        what = f"{command} needs {' and '.join(lacking)}, which {sys.executable} does not have"
        raise EnvironmentUnavailable(what, f"pip install 'torchscript-gate[{extra}]'")
