"""Gives the package its public name while hatchling builds a wheel: see docs/adr/0090-the-wheel-has-its-own-name.md.

``sources`` of ``pyproject.toml`` says where files go; this says the same in what they contain: a module's imports, the
target of the console script, and the commands of the documentation. An editable install is the checkout as it lies.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RENAMED = {
    ".py": (re.compile(r"^(\s*(?:from|import) )harness\b", re.MULTILINE), r"\1torchscript_gate"),
    ".md": (re.compile(r"python -m harness\b"), "torchscript-gate"),
}


class PublicName(BuildHookInterface):
    """Puts renamed copies of files in the place of those of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the copies; hatchling takes a forced file instead of the one that would have come to its place."""
        self._copies = tempfile.TemporaryDirectory()
        if version == "editable":
            return
        for file in self.build_config.builder.recurse_included_files():
            suffix = Path(file.path).suffix
            if suffix not in RENAMED:
                continue
            pattern, name = RENAMED[suffix]
            text, changes = pattern.subn(name, Path(file.path).read_text(encoding="utf-8"))
            if changes:
                copy = Path(self._copies.name, file.relative_path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text, encoding="utf-8")
                build_data["force_include"][str(copy)] = file.relative_path
        scripts = self.metadata.core.scripts
        for command, target in scripts.items():
            scripts[command] = re.sub(r"^harness\b", "torchscript_gate", target)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies."""
        del version, build_data, artifact_path
        self._copies.cleanup()
