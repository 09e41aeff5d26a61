"""Settings as a table and a command line give them."""

from collections.abc import Mapping
from typing import Any

from harness.config.load import load_settings
from harness.core.plan import Settings

FILE = "pyproject.toml"
MITIGATIONS = ("profiling off", "fuser off")
KINDS = ("values", "hang", "memory")
PAIR: dict[str, Any] = {"old": "2.1.2", "new": "2.6.0"}


def load(table: Mapping[str, Any], **overrides: object) -> Settings:
    return load_settings(table, file=FILE, overrides=overrides, mitigations=MITIGATIONS, kinds=KINDS, auto_jobs=6)
