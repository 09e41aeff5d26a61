"""From the measured pairs in ``reports/atlas`` to the file that the gate ships."""

import json
import lzma
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.atlas.again import unconfirmed
from benchmarks.atlas.arguments import is_tensor
from harness.checks.prediction import atlas
from harness.checks.prediction.known_releases import known_registry
from harness.core.atlas import Atlas, Kind, OperatorChange

LONGEST = 160
"""Characters of an answer; longer ones are cut."""
HOW = (
    "x86-64 {cpu}; each release twice: 1 thread, and 2 threads without vector instructions, other bytes in fresh memory"
)
ORDER = list(Kind)


def written(folder: Path, pythons: Mapping[str, str]) -> Counter[str]:
    """Write ``atlas.xz`` of all operators that every pair has measured, and return counts.

    A change whose example a fresh process does not show again (its answer depended on memory) is left out. ``pythons``:
    release -> interpreter, in order.
    """
    names = set.intersection(
        *[{file.stem for file in (folder / f"{old}-{new}").glob("*.json")} for old, new in pairwise(pythons)]
    )
    changes: list[OperatorChange] = []
    counts, calls, cpus = Counter[str](), dict[str, int](), set()
    for old, new in pairwise(pythons):
        shown = []
        for name in sorted(names):
            result = json.loads((folder / f"{old}-{new}" / f"{name}.json").read_text())
            counts.update(result["counts"])
            calls[name] = min(result["counts"]["calls"], calls.get(name, result["counts"]["calls"]))
            cpus.add(result["cpu"])
            shown += [_change(name, old, new, entry) for entry in result["entries"]]
        left = unconfirmed(shown, pythons[old], pythons[new])
        counts["changes not shown again"] += len(left)
        changes += [change for change in shown if change not in left]
    changes.sort(key=lambda item: (ORDER.index(item.kind), bool(item.features), -item.calls, item.operator, item.new))
    measured = Atlas(
        releases=tuple(pythons),
        measured=HOW.format(cpu=" ".join(sorted(cpus))),
        calls=calls,
        changes=tuple(changes),
    )
    text = json.dumps(msgspec.to_builtins(measured), sort_keys=True)
    atlas.FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    atlas.atlas.cache_clear()
    return counts + Counter(changes=len(changes), operators=len(calls))


def _change(operator: str, old: str, new: str, entry: dict[str, Any]) -> OperatorChange:
    before, after = _shown(entry["old"], entry["new"], Kind(entry["kind"]))
    names = _names(operator, old)
    return OperatorChange(
        operator=operator,
        kind=Kind(entry["kind"]),
        old=old,
        new=new,
        features=tuple(entry["features"]),
        dtypes=tuple(sorted(item for item in entry["dtypes"] if item)),
        calls=entry["calls"],
        tolerances=0.0 if math.isinf(entry["tolerances"]) else entry["tolerances"],
        when={names(key): value for key, value in sorted(entry["when"].items())},
        call=in_python(operator, entry["call"]) if entry["call"] else "",
        before=before,
        after=after,
    )


def _names(operator: str, release: str) -> Callable[[str], str]:
    """Return what makes a parameter's name of a place among the arguments."""
    name, _, overload = operator.partition(".")
    schemas = known_registry(release).schemas.get(name, ())
    schema = next((item for item in schemas if item.overload == overload), None)
    names = [item.name for item in schema.parameters] if schema is not None else []
    return lambda key: names[int(key)] if key.isdecimal() and int(key) < len(names) else key


def in_python(operator: str, call: dict[str, Any]) -> str:
    """Return a call as plain Python with torch."""
    name, _, overload = operator.partition("::")[2].partition(".")
    keywords = [f"{key}={_value(value)}" for key, value in call["keywords"].items() if value is not None]
    given = ", ".join([*map(_value, call["arguments"]), *keywords])
    return f"torch.ops.aten.{name}.{overload or 'default'}({given})"


def _value(value: Any) -> str:
    if is_tensor(value):
        if value["dtype"].startswith("complex"):
            value = {**value, "values": [complex(*item) for item in value["values"]]}
        dtype = "" if value["dtype"] in ("float32", "bool") and value["values"] else f", dtype=torch.{value['dtype']}"
        if "strides" in value:
            return f"torch.tensor({_numbers(value['values'])}{dtype}).as_strided({value['shape']}, {value['strides']})"
        if not value["values"]:
            return f"torch.empty({value['shape']}{dtype})"
        return f"torch.tensor({_numbers(_nested(value['values'], value['shape']))}{dtype})"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict) and "complex" in value:
        return _numbers(complex(*value["complex"]))
    if isinstance(value, dict):
        return f'torch.device("{value["device"]}")'
    return _numbers(value)


def _nested(values: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return values[0]
    size = math.prod(shape[1:])
    return [_nested(values[at * size : (at + 1) * size], shape[1:]) for at in range(shape[0])]


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    if isinstance(value, complex):
        return f"complex({_numbers(value.real)}, {_numbers(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "torch.nan" if math.isnan(value) else "torch.inf" if value > 0 else "-torch.inf"
    return repr(value)


def _shown(old: dict[str, Any], new: dict[str, Any], kind: Kind) -> tuple[str, str]:
    if kind is Kind.LOST:
        words = {True: "crashes, or takes more than 2 s of CPU", False: "answers or refuses"}
        return words[bool(old["lost"])], words[bool(new["lost"])]
    return _answer(old, kind), _answer(new, kind)


def _answer(answer: dict[str, Any], kind: Kind) -> str:
    if "error" in answer:
        return _cut(f"{answer['error']}: {answer['text']}")
    if kind is Kind.ALIASING:
        return "shares memory with its argument" if any(item is not None for item in answer["aliases"]) else "a copy"
    values = [*answer["outputs"], *answer["changed"]] if answer["changed"] else answer["outputs"]
    return _cut(", ".join(_output(item, kind) for item in values))


def _output(value: Any, kind: Kind) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_output(item, kind) for item in value)}]"
    if not is_tensor(value):
        return str(value)
    if kind is Kind.STRIDES:
        return f"shape {value['shape']}, strides {value.get('strides', 'contiguous')}"
    if kind in (Kind.DTYPE, Kind.SHAPE):
        return f"{value['dtype']} {value['shape']}"
    return _short(_nested(value["values"], value["shape"]) if value["values"] else [])


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
