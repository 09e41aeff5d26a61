"""Writes ``docs/operators.md`` out of the atlas: ``python -m benchmarks.atlas.page``."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from harness.checks.prediction.atlas import atlas
from harness.core.atlas import Atlas, Kind, OperatorChange

FILE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
COUNTED = (Kind.ACCEPTED, Kind.STRIDES, Kind.ALIASING)
"""Kinds that stand in the counts only: ``operators --format json`` has each."""
LONGEST = 110
INTRODUCTION = """\
# Operators that answer otherwise

`python -m benchmarks.atlas.page` writes this page out of the atlas that the gate ships; a test compares them.

Calls of {operators:,} overloads ({calls:,} in all) were answered by torch {releases}, each compared with the one before
it: on {measured}.

```sh
python -m harness operators --old 2.1.2 --new 2.6.0                          # this, of two releases
python -m harness operators --old 2.1.2 --new 2.6.0 --operator softshrink    # with calls to paste into Python
```

`inspect` and `compat` name the operators of a file that are here, three at most, as a hint: only requests show whether a
model meets one.

## How it was measured and counted

- The calls are those that torch 2.1.2 records of its own samples of operators (`op_db`), traced, each node with its real
  arguments; and for a few plain ones of each overload others at the edges: NaN, infinities, -0.0, denormal and huge
  numbers, ties, no elements, one, 0-d, expanded, not contiguous and channels-last tensors, other dtypes.
- Each release answers each call twice: with one thread, and with two without vector instructions, and other bytes in fresh
  memory. Of a call that one release does not answer alike twice nothing is counted.
- A change is one overload, one kind and one peculiarity of arguments; dtypes that show the same are one change. A
  peculiarity counts only if the smallest call that shows the change still has it. Several overloads of one operator are
  several changes, and so is an operator in place (`add_`).
- Values differ where they are further apart than the gate's own tolerance for the dtype, times the largest magnitude.
- Each example was made smaller as long as both releases went on showing the same kind of difference. Each was then asked of
  fresh processes with plain torch, with zeros and with other bytes in fresh memory; what did not show again was left out.
- Names of changes that the release notes have are not left out: nobody has compared them one by one.

## What it does not say

An operator that is not here was answered alike in all calls that were tried, or not sampled: `operators --operator NAME`
says which. Nothing was measured on GPUs, on other CPUs, with large tensors, or in releases between these. What one release
refuses and both refuse otherwise is no change, nor is the text of an error. Random numbers were drawn from seed 0.
"""


def page() -> str:
    """Return the page."""
    measured = atlas()
    releases = ", ".join(measured.releases[:-1]) + f" and {measured.releases[-1]}"
    introduction = INTRODUCTION.format(
        operators=len(measured.calls),
        calls=sum(measured.calls.values()),
        releases=releases,
        measured=measured.measured,
    )
    return "\n".join([introduction, *_counts(measured), *_changes(measured.changes)]) + "\n"


def _counts(measured: Atlas) -> Iterator[str]:
    pairs = list(pairwise(measured.releases))
    yield from ("## Counts", "", "Changes, and in how many overloads.", "")
    yield f"| what differs |{''.join(f' {old} to {new} |' for old, new in pairs)}"
    yield f"|---|{'---|' * len(pairs)}"
    for kind in Kind:
        cells = []
        for pair in pairs:
            of_kind = [item for item in measured.changes if item.kind is kind and (item.old, item.new) == pair]
            cells.append(f" {len(of_kind)} in {len({item.operator for item in of_kind})} |" if of_kind else " - |")
        yield f"| {kind} |{''.join(cells)}"
    yield ""


def _changes(changes: Sequence[OperatorChange]) -> Iterator[str]:
    yield from ("## Changes, what would hurt most first", "")
    for kind in Kind:
        of_kind = [item for item in changes if item.kind is kind]
        if not of_kind or kind in COUNTED:
            continue
        yield from (f"### {str(kind)[0].upper()}{kind[1:]}", "")
        yield from (
            "| operator | on | dtypes | since | before | after | smallest call |",
            "|---|---|---|---|---|---|---|",
        )
        for item in of_kind:
            on = (
                ", ".join([*item.features, *(f"{name}={value}" for name, value in item.when.items())])
                or "plain arguments"
            )
            texts = [_code(text) for text in (item.before, item.after, item.call.removeprefix("torch.ops.aten."))]
            yield f"| `{item.operator}` | {on} | {' '.join(item.dtypes)} | {item.new} | {' | '.join(texts)} |"
        yield ""


def _code(text: str) -> str:
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 4].rpartition(' ')[0]} ..."
    return f"`{short.replace('|', '&#124;').replace('`', chr(39))}`" if short else ""


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
