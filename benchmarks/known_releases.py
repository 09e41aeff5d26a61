"""Writes ``harness/checks/prediction/known_releases.json``: what releases of torch accept.

``python -m benchmarks.known_releases 2.16.0`` builds an environment of each release that is named, asks it, and adds it
to the table or replaces what the table had of it; in order of their versions.
"""

import json
import sys
from pathlib import Path
from typing import Any

from packaging.version import Version

from harness.checks.prediction import known_releases
from harness.checks.prediction.registries import dump_of
from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder
from harness.project import Project
from harness.store import codec

PROJECT = Path(__file__).resolve().parents[1]


def asked(release: str, builder: EnvironmentBuilder) -> dict[str, Any]:
    """Return what an environment of ``release`` says of itself, as data."""
    environment = builder.build(EnvSpec(name=f"torch {release}", release=release))
    dump: dict[str, Any] = json.loads(codec.canonical(dump_of(environment, builder.root)))
    return dump


def write(dumps: dict[str, dict[str, Any]]) -> None:
    """Write the table: an entry a line, so that a difference shows what a release brought and took."""
    ordered = {release: dumps[release] for release in sorted(dumps, key=Version)}
    text = json.dumps(known_releases.folded(ordered), indent=0, ensure_ascii=False)
    known_releases.FILE.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Ask the releases of the command line, and keep what is known of the others."""
    table = json.loads(known_releases.FILE.read_text(encoding="utf-8")) if known_releases.FILE.exists() else None
    dumps = {release: known_releases.unfolded(table, release) for release in table["releases"]} if table else {}
    builder = Project(folder=PROJECT).builder
    for release in sys.argv[1:]:
        dumps[release] = asked(release, builder)
        write(dumps)


if __name__ == "__main__":
    main()
