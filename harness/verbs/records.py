"""``golden``: what people decide about a run, kept in git."""

import argparse
from collections.abc import Callable, Sequence

from harness.commands import golden as records
from harness.commands import golden_gc, golden_review
from harness.commands.options import Options
from harness.domain.text import visible
from harness.errors import ExitCode
from harness.report.json.golden import dump_review, dump_status
from harness.report.markdown.golden import render_review_markdown
from harness.report.page.golden import render_review_html
from harness.report.text.golden import render_changes, render_left_over, render_review, render_status
from harness.verbs.shared import options_of, say


def golden(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Keep, show, compare or remove golden records."""
    return ACTIONS[parsed.action](parsed, options_of(parsed, arguments))


def _status(parsed: argparse.Namespace, options: Options) -> int:
    found = golden_review.status(options, parsed.models, parsed.since)
    say(dump_status(found) if parsed.format == "json" else render_status(found))
    return ExitCode.CONFIGURATION if found.problems else ExitCode.COMPATIBLE


def _propose(parsed: argparse.Namespace, options: Options) -> int:
    found = records.propose(options, parsed.run)
    lines = [f"as accepted  {visible(name)}" for name in found.same]
    lines += [f"left out  {visible(name)}: {visible(why)}" for name, why in found.left_out]
    lines += render_changes(found.diffs)
    if found.diffs:
        lines.append("look at the numbers: python -m harness golden diff")
    say("\n".join(lines) + "\n")
    return ExitCode.COMPATIBLE


def _diff(parsed: argparse.Namespace, options: Options) -> int:
    review = golden_review.diff(options, parsed.models, parsed.since)
    written = {
        "console": lambda: render_review(review, every_row=parsed.every_row),
        "html": lambda: render_review_html(review),
        "json": lambda: dump_review(review),
        "markdown": lambda: render_review_markdown(review),
    }
    say(written[parsed.format]())
    return ExitCode.COMPATIBLE


def _accept(parsed: argparse.Namespace, options: Options) -> int:
    for model, change in records.accept(options, parsed.models, parsed.reason, in_place=parsed.in_place):
        say(f"accepted {visible(model)}{f' ({visible(change)})' if change else ''}\n")
    return ExitCode.COMPATIBLE


def _reject(parsed: argparse.Namespace, options: Options) -> int:
    for model in records.reject(options, parsed.models, parsed.reason):
        say(f"rejected {visible(model)}\n")
    return ExitCode.COMPATIBLE


def _gc(parsed: argparse.Namespace, options: Options) -> int:
    found = golden_gc.left_over(options)
    if parsed.yes:
        golden_gc.collect(options, found)
    say(render_left_over(found, removed=parsed.yes))
    return ExitCode.COMPATIBLE


ACTIONS: dict[str, Callable[[argparse.Namespace, Options], int]] = {
    "accept": _accept,
    "diff": _diff,
    "gc": _gc,
    "propose": _propose,
    "reject": _reject,
    "status": _status,
}
