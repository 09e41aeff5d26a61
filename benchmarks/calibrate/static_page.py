"""``docs/static-check.md`` out of ``docs/calibration/static.json``: the same page for the same results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.report.backends.markdown import code

INTRODUCTION = """# The static check against what happened

`compat`, `inspect` and `matrix` read every artifact before anything is loaded, and predict which release will load it
([how](adr/0022-static-reading.md)). A wrong prediction is a bug of ours. This page says how often it was wrong: every
model is exported by each of five releases and loaded by each of them, so upgrades, rollbacks and the release's own
artifacts are all among the pairs.

Nothing on this page is written by hand: `python -m benchmarks.calibrate static` runs the version matrices, into
`docs/calibration/static.json`, and writes it.

- **will load**, **will not load**, **unknown**: the prediction, made from the archive and the operator registries alone.
- **loaded**, **refused**: what `torch.jit.load` came to in a process of that release; what the calls did afterwards is
  no matter here. **no answer**: the load hung or crashed, which says nothing about operators."""
TITLES = {
    "zoo": "The zoo",
    "planted_defects": "The planted defects and their healthy twins",
    "breaks": "Genuine breaks between releases",
    "torchvision": "The torchvision example",
}
DIRECTIONS = {
    "all": "all pairs",
    "backward": "to a newer release",
    "forward": "to an older one",
    "same": "its own release",
}
PREDICTIONS = ("will load", "will not load", "unknown")
HAPPENED = ("loaded", "did not load", "not known")


def page_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: all corpora together, then one by one."""
    lines = [INTRODUCTION, "", "## All together", ""]
    lines += [_verdict(results), "", *_confusion(_sum(results))]
    for result in results:
        lines += ["", *_part(result)]
    return "\n".join(lines) + "\n"


def _verdict(results: Sequence[Mapping[str, Any]]) -> str:
    counts = _sum(results)["all"]
    predictions = sum(sum(row.values()) for row in counts.values())
    wrong = sum(len(result["wrong"]) for result in results)
    unknown = sum(counts["unknown"].values())
    corpora = ", ".join(result["name"].replace("_", " ") for result in results)
    return (
        f"{predictions} predictions over {corpora}: **{wrong} wrong**, {unknown} unknown, "
        f"{predictions - wrong - unknown} as it happened."
    )


def _sum(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    return {
        direction: {
            predicted: {
                happened: sum(int(result["predictions"][direction][predicted][happened]) for result in results)
                for happened in HAPPENED
            }
            for predicted in PREDICTIONS
        }
        for direction in DIRECTIONS
    }


def _confusion(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    yield "| pairs | predicted | loaded | refused | no answer |"
    yield "|---|---|---:|---:|---:|"
    for direction, words in DIRECTIONS.items():
        label = words
        for predicted in PREDICTIONS:
            numbers = [counts[direction][predicted][happened] for happened in HAPPENED]
            if direction == "all" or any(numbers):
                yield f"| {label} | {predicted} | {' | '.join(map(str, numbers))} |"
                label = ""


def _part(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {TITLES[result['name']]}"
    yield ""
    yield f"{result['models']} models; torch {', '.join(result['releases'])}."
    yield ""
    yield f"```sh\n{result['command']}\n```"
    yield ""
    yield from _confusion(result["predictions"])
    yield ""
    yield "Models that load and answer the same / models exported, by exporter (rows) and loader (columns):"
    yield ""
    yield f"| | {' | '.join(result['columns'])} |"
    yield f"|---|{'---|' * len(result['columns'])}"
    cells = {(pair["exporter"], pair["loader"]): pair for pair in result["pairs"]}
    for row in dict.fromkeys(exporter for exporter, _ in cells):
        found = [cells[row, column] for column in result["columns"]]
        yield f"| {row} | {' | '.join('{passed}/{tested}'.format_map(pair) for pair in found)} |"
    for words, key in (("Refused, as predicted", "refused"), ("Unknown", "unknown")):
        if result[key]:
            yield ""
            yield f"{words}:"
            yield ""
            yield from (
                f"- `{group['model']}`: {_plain(group['why'])} ({_pairs(group['pairs'])})" for group in result[key]
            )
    if result["wrong"]:
        yield ""
        yield "Wrong:"
        yield ""
    for cell in result["wrong"]:
        yield (
            f"- `{cell['model']}`, {cell['exporter']} -> {cell['loader']}: {cell['predicted']} "
            f"({_plain(cell['why_predicted'])}); {cell['happened']}: {_plain(cell['reason'])}"
        )


def _pairs(pairs: Sequence[str]) -> str:
    """Return ``2.1.2 -> 2.6.0, 2.15.0; 2.6.0 -> 2.15.0``."""
    loaders: dict[str, list[str]] = {}
    for pair in pairs:
        exporter, _, loader = pair.partition(" -> ")
        loaders.setdefault(exporter, []).append(loader)
    return "; ".join(f"{exporter} -> {', '.join(names)}" for exporter, names in loaders.items())


def _plain(text: str) -> str:
    return code(text) if text else "no reason"
