"""A GPU record as markdown: what ran where, how long it took, what failed, and first what it does not show."""

import shlex
from collections.abc import Iterator, Mapping

from harness.core.environment import Fingerprint
from harness.core.machine import CheckStatus
from harness.core.report import SideReport
from harness.core.text import counted
from harness.report.backends.markdown import CELL_LIMIT, bullets, code, escape, table_line
from harness.report.words.phrases import exit_words, scenario_words, seconds
from tests.gpu.recorded import GpuRecord, RecordedPart, exit_code, reservations

MOST_RED = 100
_REASON = 300


def render_record(record: GpuRecord) -> str:
    """Return the record as GitHub-flavoured markdown, ending with a newline."""
    what = "GPU record" if record.gpu else "Rehearsal of a GPU record, without a GPU"
    exit_ = exit_code(record)
    took = f"{counted(len(record.parts), 'part')} in {seconds(record.wall_s)}, of {record.minutes:g} min"
    lines = [f"# {what}: {escape(record.started_at)}", ""]
    lines += [f"- {escape(sentence)}" for sentence in reservations(record)]
    lines += [
        f"- {took}; exit code {int(exit_)}: {exit_words(exit_)}",
        f"- given: {code(shlex.join(record.arguments))}",
        "",
        *_machine(record),
        *_parts(record),
    ]
    for part in record.parts:
        lines += ["", *_part(part)]
    lines += ["", *_checks(record)]
    return "\n".join(lines) + "\n"


def _machine(record: GpuRecord) -> Iterator[str]:
    yield table_line(("", "old", "new"))
    yield table_line(("---", "---", "---"))
    sides = (record.old, record.new)
    for name in ("torch", "cuda", "cudnn", "driver", "gpu", "cpu", "python"):
        yield table_line((name, *(escape(_fact(side, name), CELL_LIMIT) for side in sides)))


def _fact(side: SideReport | None, name: str) -> str:
    found: Fingerprint | None = side.fingerprint if side is not None else None
    return "not known" if found is None else str(getattr(found, name) or "none")


def _parts(record: GpuRecord) -> Iterator[str]:
    yield ""
    yield table_line(("part", "took", "came to", "models", "planted defects", "processes", "contexts"))
    yield table_line(["---"] * 7)
    for part in record.parts:
        planted = f"{part.planted} of {part.planted + len(part.missed)}" if part.planted or part.missed else "-"
        ended = part.decision.value if part.decision is not None and not part.why else part.why or "-"
        yield table_line(
            (
                escape(part.name),
                seconds(part.wall_s),
                escape(ended, _REASON),
                _counts(part.models),
                planted,
                _counts(part.processes),
                str(part.contexts or "-"),
            )
        )


def _part(part: RecordedPart) -> Iterator[str]:
    yield f"## {escape(part.name)}"
    yield ""
    yield from bullets([("run", part.run)] if part.run else [])
    yield f"- **repeated by** {code(shlex.join(part.arguments))}"
    if part.time_shares_s:
        shares = sorted(part.time_shares_s.items(), key=lambda item: -item[1])
        yield from bullets([("time", ", ".join(f"{name} {seconds(share)}" for name, share in shares))])
    if part.timed:
        yield from bullets([("timed, of so many models", _counts(part.timed))])
    yield from bullets([(f"planted {name}", note) for name, note in part.missed])
    if part.cells:
        yield ""
        yield table_line(("scenario", "cells"))
        yield table_line(("---", "---"))
        for scenario, statuses in part.cells.items():
            yield table_line((escape(scenario_words(scenario)), _counts(statuses)))
    if part.red:
        yield ""
        yield table_line(("model", "status", "why"))
        yield table_line(("---", "---", "---"))
        for model, status, reason in part.red[:MOST_RED]:
            yield table_line((escape(model, CELL_LIMIT), escape(status), escape(reason, _REASON)))
        if len(part.red) > MOST_RED:
            yield ""
            yield f"And {counted(len(part.red) - MOST_RED, 'model')} more, in the JSON file."


def _checks(record: GpuRecord) -> Iterator[str]:
    yield "## The machine"
    yield ""
    yield f"{counted(len(record.checks), 'check')} before anything ran; those that are not ok:"
    yield ""
    for check in record.checks:
        if check.status is not CheckStatus.OK:
            about = f" of {check.about}" if check.about else ""
            yield f"- {check.status.value}: {escape(check.name + about)}: {escape(check.read)}. {escape(check.so_what)}"


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {escape(name)}" for name, number in found.items()) or "-"
