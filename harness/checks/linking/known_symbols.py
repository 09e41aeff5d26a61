"""What LibTorch of known releases exports, as the wheels on the package index said: nothing is installed to know it.

``known_symbols.xz`` beside this file is written by ``benchmarks/exported_symbols.py``: a line of JSON with what each
release brings and needs, then a line per symbol, ``NAME EXPORTED DEFINED``: in which releases, a bit each from the first on.
"""

import functools
import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from harness.checks.linking.libtorch import LibTorch

FILE = Path(__file__).with_suffix(".xz")


@functools.cache
def _table() -> tuple[dict[str, dict[str, object]], tuple[str, ...]]:
    head, *lines = lzma.decompress(FILE.read_bytes()).decode().splitlines()
    return json.loads(head), tuple(lines)


def known() -> tuple[str, ...]:
    """Return the releases that the index has, in the order of their appearance."""
    return tuple(_table()[0])


@functools.cache
def releases() -> Mapping[str, LibTorch]:
    """Return all of them, by release."""
    heads, lines = _table()
    exported: list[set[str]] = [set() for _ in heads]
    defined: list[set[str]] = [set() for _ in heads]
    for line in lines:
        name, *masks = line.split(" ")
        for places, mask in zip((exported, defined), masks, strict=True):
            bits = int(mask, 16)
            while bits:
                place = bits.bit_length() - 1
                places[place].add(name)
                bits ^= 1 << place
    return {
        release: LibTorch(
            name=release,
            exported=frozenset(exported[place]),
            defined=frozenset(defined[place]),
            **{key: tuple(value) if isinstance(value, list) else value for key, value in head.items()},  # type: ignore[arg-type]
        )
        for place, (release, head) in enumerate(heads.items())
    }


def write(known: Mapping[str, LibTorch]) -> None:
    """Write the index of these releases, in the order of their versions."""
    head = {
        release: {"brings": item.brings, "needs": item.needs, "versions": item.versions}
        for release, item in known.items()
    }
    masks: dict[str, list[int]] = {}
    for place, item in enumerate(known.values()):
        for kind, names in enumerate((item.exported, item.defined)):
            for name in names:
                masks.setdefault(name, [0, 0])[kind] |= 1 << place
    lines = [f"{name} {exported:x} {defined:x}" for name, (exported, defined) in sorted(masks.items())]
    text = "\n".join([json.dumps(head), *lines])
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
