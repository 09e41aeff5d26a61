"""A fleet's manifest, ``fleet.toml``: whose artifacts these are, how important they are, and which requests they get.

Each ``[[artifacts]]`` table is about the paths that its ``match`` means; a later table wins over an earlier one, key by
key. What it says of requests and tolerances has the keys of ``models.toml``, which may stand in its place.
"""

import fnmatch
import glob
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.artifacts import manifest
from harness.artifacts.manifest import MODEL, MOST_BYTES, read_manifest
from harness.artifacts.requests import read_requests
from harness.config.schema import TEXT, Kind, Table, read
from harness.core.errors import ConfigError, FixtureError
from harness.core.models import ModelDeclaration
from harness.machine.files import plain_bytes

MANIFEST: Final = "fleet.toml"
MANIFESTS: Final = (MANIFEST, manifest.MANIFEST)
"""In a store, the first of these that is there."""
STORE: Final = "/store"
OF_MODELS: Final = (*("inputs", "requests", "methods", "tolerance", "reset", "tags", "seed", "timed", "unordered"),)
LONGEST_PATTERN: Final = 4096
ENTRY: Final = Table(
    {"match": TEXT, "owner": TEXT, "tier": TEXT, "leave_out": TEXT, **{key: MODEL.keys[key] for key in OF_MODELS}}
)
TOP: Final = Table(
    {
        "tiers": Kind('a list of words such as ["batch", "online"]', tuple[str, ...]),
        "artifacts": Kind("[[artifacts]] tables", tuple[dict[str, Any], ...]),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetManifest:
    """A manifest's tiers, in the order of the upgrade, and its entries (pattern, what it says), in file order.

    ``file``: its name, one of ``MANIFESTS``.
    """

    file: str = MANIFEST
    tiers: tuple[str, ...] = ()
    entries: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=())

    def of(self, *paths: str) -> dict[str, Any]:
        """Return what the manifest says of an artifact, by any of its paths in the store; empty where none matches."""
        merged: dict[str, Any] = {}
        for pattern, values in self.entries:
            if _matches(paths, pattern):
                merged.update(values)
        return merged

    def names(self, *paths: str) -> bool:
        """Whether an entry is of this one artifact, by any of its paths, rather than of all that a pattern matches."""
        return any(pattern in (path, glob.escape(path)) for pattern, _ in self.entries for path in paths)

    def idle(self, artifacts: Iterable[Sequence[str]]) -> tuple[str, ...]:
        """Return a note for each pattern that matches no path of any artifact: a typing error looks like that."""
        known = list(artifacts)
        return tuple(
            f"{self.file}: match = {pattern!r} means none of {len(known)} artifacts"
            for pattern, _ in self.entries
            if not any(_matches(paths, pattern) for paths in known)
        )


def _matches(paths: Sequence[str], pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for path in paths)


def load_fleet_manifest(path: Path, *, file: str) -> FleetManifest:
    """Return what a manifest says; ``file`` is its name for messages.

    Raises ``ConfigError``: the file cannot be opened; ``FixtureError``: it is no manifest.
    """
    try:
        return read_fleet_manifest(plain_bytes(path).decode(), file=file)
    except OSError as error:
        raise ConfigError(f"--manifest {file}: {error.strerror}", "name a fleet.toml") from error
    except UnicodeDecodeError as error:
        raise FixtureError(f"{file} cannot be read: {error}", "save it as UTF-8 text") from error


def read_fleet_manifest(text: str, *, file: str) -> FleetManifest:
    """Return what a manifest says. Raises ``FixtureError``: it names the file, the table and the key, and what was
    expected.
    """
    if len(text) > MOST_BYTES:
        raise FixtureError(f"{file}: is no manifest: {len(text):,} characters", f"at most {MOST_BYTES:,}")
    try:
        parsed = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FixtureError(f"{file}: not valid TOML: {error}", "mend the file") from error
    if "models" in parsed:
        return FleetManifest(
            file=manifest.MANIFEST, entries=tuple(map(_of_model, read_manifest(text, file=file, folder=STORE)))
        )
    top = read(parsed, TOP, f"{file}: top level", error=FixtureError)
    tiers = tuple(top.get("tiers", ()))
    entries = [_entry(table, f"{file}: artifacts, number {at}") for at, table in enumerate(top.get("artifacts", ()), 1)]
    _check_tiers(tiers, entries, file)
    return FleetManifest(tiers=tiers, entries=tuple(entries))


def _of_model(model: ModelDeclaration) -> tuple[str, Mapping[str, Any]]:
    """Return what a ``models.toml`` says of a path; not its name and devices, which a fleet takes from elsewhere."""
    given = model.given
    assert given is not None
    inputs = os.path.relpath(given.inputs, STORE) if given.inputs else ""
    values: dict[str, Any] = {"inputs": inputs, "requests": given.requests, "methods": given.methods}
    values |= {key: getattr(model, key) for key in OF_MODELS if key not in values} | {"owner": model.owner}
    said = {key: value for key, value in values.items() if value or value is False}
    return glob.escape(os.path.relpath(given.path, STORE)), said


def _entry(table: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
    values = read(table, ENTRY, where, error=FixtureError)
    pattern = values.pop("match", None)
    if not pattern or not values:
        what = "lacks match" if not pattern else "says nothing of what it matches"
        raise FixtureError(f"{where}: {what}", 'write match = "ads/*" and owner, tier, tags, requests or leave_out')
    if len(pattern) > LONGEST_PATTERN:  # fnmatch takes the square of its length
        raise FixtureError(f"{where}.match has {len(pattern):,} characters", f"at most {LONGEST_PATTERN:,}: a path")
    if "inputs" in values and "requests" in values:
        raise FixtureError(f"{where}.requests: requests are given twice, here and by inputs", "keep one of the two")
    if "requests" in values:
        methods = values.get("methods", ()) or ("forward",)
        values["requests"] = read_requests(values["requests"], methods, f"{where}.requests")
    return pattern, values


def _check_tiers(tiers: Sequence[str], entries: Sequence[tuple[str, Mapping[str, Any]]], file: str) -> None:
    used = dict.fromkeys(values["tier"] for _, values in entries if "tier" in values)
    missing = [tier for tier in used if tiers and tier not in tiers]
    if missing:
        hint = "write it into tiers, which are in the order in which they are upgraded"
        raise FixtureError(f"{file}: tiers does not have {missing[0]!r}, which an artifact has", hint)
