"""What releases of torch accept, as their wheels on the package index said: nothing is installed to know it.

``known_releases.json`` beside this file is written by ``benchmarks/known_releases.py``. Most of what releases accept is
the same in all of them, so each entry of a list stands once, with the releases that have it: ``"2.0.1-2.5.1"``.
"""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.artifacts.archive.code import TYPE_WORDS
from harness.checks.prediction.dumps import Dump, parsed
from harness.core.archive import OperatorRegistry, Programs
from harness.core.environment import EnvSpec
from harness.machine.typed import decoded

FILE = Path(__file__).with_suffix(".json")
# Lists of a dump; those below ``programs`` are named with a dot. Everything else is kept for each release.
LISTS = ("schemas", "upgraders", "custom_classes", "dtypes", "packed_dtypes", "type_names")
PROGRAM_LISTS = ("operators", "callables", "functions")


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return table


def known() -> tuple[str, ...]:
    """Return the releases that the table has, in the order of their appearance."""
    return tuple(_table()["releases"])


def is_known(spec: EnvSpec) -> bool:
    """Whether the table says what the environment ``spec`` accepts: a release as it is on the package index."""
    return spec.release in known() and not spec.libraries and not spec.index_args


@functools.cache
def known_registry(release: str) -> OperatorRegistry:
    """Return what ``release``, one of ``known``, accepts without any operator library."""
    dump = _unfolded(_table()["releases"][release], _entries(), release)
    programs = decoded(json.dumps(dump["programs"]).encode(), Programs)
    upgraders = [(name, below, schema) for name, below, schema in dump["upgraders"]]
    return parsed(Dump(**{**dump, "upgraders": upgraders, "programs": programs}))


@functools.cache
def _entries() -> "Entries":
    return _entries_of(_table())


def folded(dumps: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the table of these dumps, as ``codec`` writes them: release -> dump, in order."""
    order = list(dumps)
    lists: dict[str, dict[str, list[str]]] = {}
    rest: dict[str, Any] = {}
    for release, dump in dumps.items():
        programs = dict(dump["programs"])
        shared = {name: dump[name] for name in LISTS}
        shared |= {f"programs.{name}": programs.pop(name) for name in PROGRAM_LISTS}
        for name, entries in shared.items():
            for entry in entries:
                lists.setdefault(name, {}).setdefault(json.dumps(entry), []).append(release)
        rest[release] = {"torch": dump["torch"], "operator_version": dump["operator_version"], "programs": programs}
    return {
        "type_words": sorted(TYPE_WORDS),
        "releases": rest,
        "lists": {
            name: {entry: _ranges(having, order) for entry, having in sorted(entries.items())}
            for name, entries in sorted(lists.items())
        },
    }


def unfolded(table: Mapping[str, Any], release: str) -> dict[str, Any]:
    """Return the dump of one release again, without what a machine adds: the paths of its libraries."""
    return _unfolded(table["releases"][release], _entries_of(table), release)


# Name of a list -> its entries, each with the releases that have it.
Entries = Mapping[str, Sequence[tuple[Any, frozenset[str]]]]


def _entries_of(table: Mapping[str, Any]) -> Entries:
    order, releases = tuple(table["releases"]), functools.cache(_within)
    return {
        name: [(json.loads(entry), releases(ranges, order)) for entry, ranges in entries.items()]
        for name, entries in table["lists"].items()
    }


def _unfolded(rest: Mapping[str, Any], entries: Entries, release: str) -> dict[str, Any]:
    lists = {name: [entry for entry, having in each if release in having] for name, each in entries.items()}
    programs = dict(rest["programs"]) | {name: lists.get(f"programs.{name}", []) for name in PROGRAM_LISTS}
    return {**rest, **{name: lists.get(name, []) for name in LISTS}, "programs": programs, "torch_libraries": []}


def _ranges(having: Sequence[str], order: Sequence[str]) -> str:
    places = [order.index(release) for release in having]
    runs = [list(run) for _, run in groupby(enumerate(places), lambda item: item[1] - item[0])]
    ends = [(order[run[0][1]], order[run[-1][1]]) for run in runs]
    return " ".join(first if first == last else f"{first}-{last}" for first, last in ends)


def _within(ranges: str, order: Sequence[str]) -> frozenset[str]:
    return frozenset(_each(ranges, order))


def _each(ranges: str, order: Sequence[str]) -> Iterator[str]:
    for part in ranges.split(" "):
        first, _, last = part.partition("-")
        yield from order[order.index(first) : order.index(last or first) + 1]
