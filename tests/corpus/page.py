"""``docs/corpus.md`` out of ``docs/calibration/corpus.json``: the same page for the same results. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from packaging.version import Version

from harness.report.backends.markdown import code
from tests.corpus.grading import TOLERANCE, Judged, Prediction, judged, predictions
from tests.corpus.releases import WITHOUT

INTRODUCTION = f"""# The corpus

Artifacts that nobody here wrote: architectures of libraries, scripted and traced in five releases with the libraries of
the same months, loaded in each of the five. What the gate predicts is held against plain torch: a process for each load, without code of the gate.
For two pairs of releases `compat --artifacts` is asked for statuses, and plain torch calls each artifact in the old release
twice and in the new one once: answers that differ by no more than {TOLERANCE:g} of the largest magnitude are the same.

Nothing on this page is written by hand: `nox -s corpus` goes on with the corpus and writes it. Weights are random, images are small, and
nothing is downloaded from a hub. The order is drawn, so that what has been done is a sample of what there is."""
MARKS = {"": "plain", "torchvision": "with torchvision", "torchaudio": "with torchaudio"}


def page_of(records: Sequence[Mapping[str, Any]], there: Mapping[str, Mapping[str, int]]) -> str:
    """Return the page.

    Args:
        there: how many architectures are to be exported, by release and library.
    """
    written = [record for record in records if record["bytes"]]
    loads, statuses = list(predictions(records)), list(judged(records))
    lines = [INTRODUCTION, "", "## In short", "", *_short(written, loads, statuses), *_rest(records, there)]
    lines += ["", "## What was exported", "", *_exported(records)]
    lines += ["", "Packages looked at that ship no archive: " + "; ".join(WITHOUT) + "."]
    lines += ["", "## Loading", "", *_loading(loads)]
    lines += ["", "## Statuses", "", *_statuses(statuses)]
    lines += ["", "## What could not be exported", "", *_not_exported(records)]
    return "\n".join(lines) + "\n"


def _short(
    written: Sequence[Mapping[str, Any]], loads: Sequence[Prediction], statuses: Sequence[Judged]
) -> Iterator[str]:
    grades, verdicts = Counter(p.grade for p in loads), Counter(j.grade for j in statuses)
    models = {(record["library"], record["model"]) for record in written}
    yield f"- {len(written)} artifacts of {len(models)} architectures, by {len({r['exporter'] for r in written})} releases."
    yield (
        f"- {len(loads)} predictions of loading: **{grades['wrong']} wrong**, {grades['unknown']} unknown, "
        f"{grades['right']} as it happened."
    )
    yield (
        f"- {len(statuses)} statuses: **{verdicts['wrong green']} wrong greens**, {verdicts['wrong']} otherwise wrong, "
        f"{verdicts['undecided']} undecided, {verdicts['right']} as plain torch has it."
    )
    if written:
        times = sorted(record["seconds"] for record in written)
        yield f"- {median(times):.0f} s per artifact (median), of which most is exporting and calling, on two cores that had other work."


def _rest(records: Sequence[Mapping[str, Any]], there: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    tried = {(r["exporter"], r["library"], r["model"]) for r in records if r["library"] != "shipped"}
    total = sum(sum(libraries.values()) for libraries in there.values())
    yield f"- {len(tried)} of {total} architectures of {len(there)} exporters have been tried; `nox -s corpus` goes on with the rest."


def _exported(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    exporters = sorted({record["exporter"] for record in records}, key=_age)
    libraries = sorted({_library(record) for record in records})
    yield "Scripted + traced, with the library's version."
    yield ""
    yield (
        "| library | "
        + " | ".join("shipped" if exporter == "unknown" else f"torch {exporter}" for exporter in exporters)
        + " |"
    )
    yield "|---|" + "---|" * len(exporters)
    for library in libraries:
        cells = []
        for exporter in exporters:
            mine = [r for r in records if _library(r) == library and r["exporter"] == exporter and r["bytes"]]
            counts = Counter(record["how"] for record in mine)
            versions = ", ".join(sorted({record["version"] or record["model"].partition(" ")[2] for record in mine}))
            ways = f"{counts['script']} + {counts['trace']}" if exporter != "unknown" else str(counts["shipped"])
            cells.append(f"{ways} ({versions})" if mine else "")
        yield f"| {library} | " + " | ".join(cells) + " |"


def _age(exporter: str) -> tuple[bool, Version]:
    return exporter == "unknown", Version("0" if exporter == "unknown" else exporter)


def _library(record: Mapping[str, Any]) -> str:
    if record["library"] == "shipped":
        return str(record["model"]).partition(" ")[0]
    packaged = record["library"] == "packages"
    return str(record["model"]).partition("/")[0] if packaged else str(record["library"])


def _loading(loads: Sequence[Prediction]) -> Iterator[str]:
    yield "| direction | will load, loads | will not load, does not | wrong | unknown |"
    yield "|---|--:|--:|--:|--:|"
    for direction in ("its own release", "to a newer release", "to an older one", "shipped by a package"):
        mine = [p for p in loads if _direction(p) == direction]
        right = Counter(p.predicted for p in mine if p.grade == "right")
        grades = Counter(p.grade for p in mine)
        yield (
            f"| {direction} | {right['will load']} | {right['will not load']} | {grades['wrong']} | "
            f"{grades['unknown']} |"
        )
    doubtful = [p for p in loads if p.grade != "right"]
    if doubtful:
        yield ""
        yield "Each that was not right:"
        yield ""
        for p in doubtful:
            truth = f"it does not load: {code(p.error)}" if p.error else "it loads"
            why = f" ({code(p.why)})" if p.why else ""
            yield f"- {_name(p.record)} of {p.record['exporter']} in {p.loader}, {MARKS[p.library]}: {p.predicted}{why}; {truth}"
    refused = Counter(
        (_family(p), p.record["exporter"], p.loader, MARKS[p.library], _short_error(p.error)) for p in loads if p.error
    )
    yield ""
    yield "What does not load, and why torch says so:"
    yield ""
    yield "| artifacts of | exporter | loader | | how many | torch says |"
    yield "|---|---|---|---|--:|---|"
    for (family, exporter, loader, mark, error), count in sorted(refused.items(), key=str):
        yield f"| {family} | {exporter} | {loader} | {mark} | {count} | {code(error)} |"


def _direction(prediction: Prediction) -> str:
    if prediction.record["exporter"] == "unknown":
        return "shipped by a package"
    exporter, loader = Version(prediction.record["exporter"]), Version(prediction.loader)
    return "its own release" if exporter == loader else "to a newer release" if loader > exporter else "to an older one"


def _family(prediction: Prediction) -> str:
    return _library(prediction.record)


def _short_error(error: str) -> str:
    return error.partition(".  ")[0][:120]


def _name(record: Mapping[str, Any]) -> str:
    return f"{record['library']} {record['model']} ({'traced' if record['how'] == 'trace' else 'scripted' if record['how'] == 'script' else 'shipped'})"


def _statuses(statuses: Sequence[Judged]) -> Iterator[str]:
    columns = ("PASS", "FAIL", "SAME_FAIL", "INCONCLUSIVE", "other")
    yield "| pair | plain torch says | " + " | ".join(columns) + " |"
    yield "|---|---|" + "--:|" * len(columns)
    for pair in sorted({j.pair for j in statuses}):
        for expected in ("same", "noisy", "differs", "fails", "failed before"):
            mine = Counter(
                j.status if j.status in columns else "other"
                for j in statuses
                if (j.pair, j.expected) == (pair, expected)
            )
            if mine:
                yield f"| {pair} | {expected} | " + " | ".join(str(mine[column] or "") for column in columns) + " |"
    told = [j for j in statuses if j.grade != "right" or j.status == "FAIL"]
    if told:
        yield ""
        yield "Each red, and each that is not what plain torch has:"
        yield ""
    for j in told:
        truth = j.truth["old_error"] or j.truth["new_error"]
        said = f": {code(truth)}" if truth else f" (by {j.truth['difference']:.1e})" if j.truth["difference"] else ""
        yield f"- {_name(j.record)}, {j.pair}, {MARKS[j.library]}: {j.status} ({code(j.reason) if j.reason else 'no reason'}); plain torch: {j.expected}{said}"


def _not_exported(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "The library or torch refuses, or a small configuration of it does not run:"
    yield ""
    yield "| library | exporter | scripting | tracing |"
    yield "|---|---|--:|--:|"
    kept = Counter((_library(r), r["exporter"], r["how"]) for r in records if not r["bytes"])
    for library, exporter in sorted(
        {(library, exporter) for library, exporter, _ in kept}, key=lambda key: (key[0], _age(key[1]))
    ):
        yield f"| {library} | {exporter} | {kept[library, exporter, 'script']} | {kept[library, exporter, 'trace']} |"
