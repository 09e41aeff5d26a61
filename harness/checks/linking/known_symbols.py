"""What LibTorch of known releases exports, as the wheels on the package index said: nothing is installed to know it.

``known_symbols.xz`` beside this file is written by ``benchmarks/exported_symbols.py``: a line of JSON with what each
release brings and needs, then a line per symbol, ``NAME EXPORTED DEFINED DECLARED``: in which releases, a bit each, the
first release's the lowest, in hexadecimal digits. ``DECLARED`` is where headers name what is not exported.
"""

import functools
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.checks.linking.demangled import canonical, demangled, split
from harness.checks.linking.libtorch import LibTorch

NOWHERE = (0, 0, 0)
FILE = Path(__file__).with_suffix(".xz")


@functools.cache
def _heads() -> dict[str, dict[str, Any]]:
    with lzma.open(FILE) as stream:
        heads: dict[str, dict[str, Any]] = json.loads(stream.readline())
    return heads


@functools.cache
def _masks() -> Mapping[str, tuple[int, int, int]]:
    """Return symbol -> the releases that export it, that define it, and that only declare it, a bit each."""
    lines = lzma.decompress(FILE.read_bytes()).decode().split("\n")[1:]
    parts = (line.split(" ") for line in lines)
    return {
        name: (int(exported, 16), int(defined, 16), int(declared, 16)) for name, exported, defined, declared in parts
    }


def known() -> tuple[str, ...]:
    """Return the releases that the index has, in the order of their appearance."""
    return tuple(_heads())


def release(name: str) -> LibTorch:
    """Return what one of them exports, needs and brings."""
    bit = 1 << known().index(name)
    head = _heads()[name]
    return LibTorch(
        name=name,
        brings=tuple(head["brings"]),
        needs={name: tuple(needed) for name, needed in head["needs"].items()},
        exported=frozenset(symbol for symbol, (exported, _, _) in _masks().items() if exported & bit),
        defined=frozenset(symbol for symbol, (_, defined, _) in _masks().items() if defined & bit),
        declares=lambda symbol: bool(_masks().get(symbol, NOWHERE)[2] & bit),
        versions=head["versions"],
    )


def having(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the releases that export all of these symbols."""
    common = -1
    for symbol in symbols:
        common &= _masks().get(symbol, NOWHERE)[0]
    return tuple(name for place, name in enumerate(known()) if common >> place & 1)


def closest(symbols: Iterable[str]) -> str | None:
    """Return the release that exports most of these symbols, the oldest of several; None: none exports any."""
    counts = Counter(name for symbol in symbols for name in having([symbol]))
    return max(known(), key=lambda name: counts[name]) if counts else None


def lost_in(symbol: str) -> str:
    """Return the first release without a symbol that the ones before it have; empty where none is known."""
    exported, _, _ = _masks().get(symbol, NOWHERE)
    places = range(exported.bit_length(), len(known()))
    return known()[places[0]] if exported and places else ""


def last_named(name: str) -> str:
    """Return the first release that neither exports nor declares a function or class of this qualified name.

    Empty where no release ever had it, or the newest one has it.
    """
    spelled = [f"{len(part)}{part}" for part in name.split("::")[-2:]]
    had = 0
    for symbol, (exported, _, declared) in _masks().items():
        if all(word in symbol for word in spelled) and split(canonical(demangled(symbol)))[0].endswith(name):
            had |= exported | declared
    places = range(had.bit_length(), len(known()))
    return known()[places[0]] if had and places else ""


def write(known: Mapping[str, LibTorch]) -> None:
    """Write the index of these releases, in the order of their versions."""
    head = {
        release: {"brings": item.brings, "needs": item.needs, "versions": item.versions}
        for release, item in known.items()
    }
    masks: dict[str, list[int]] = defaultdict(lambda: [*NOWHERE])
    for place, item in enumerate(known.values()):
        for kind, names in enumerate((item.exported, item.defined)):
            for name in names:
                masks[name][kind] |= 1 << place
    for place, item in enumerate(known.values()):
        for name, bits in masks.items():
            if bits[0] and not bits[0] >> place & 1 and item.declares(name):
                bits[2] |= 1 << place
    lines = [
        f"{name} {exported:x} {defined:x} {declared:x}" for name, (exported, defined, declared) in sorted(masks.items())
    ]
    text = "\n".join([json.dumps(head), *lines])
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
