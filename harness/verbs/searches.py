"""``bisect``, ``first-bad`` and ``mitigate``: searches about one red cell."""

import argparse
from collections.abc import Callable, Sequence

from harness.commands.asked_cell import asked_cell
from harness.commands.bisect import RESULT, BisectedCell
from harness.commands.bisect import bisect as search
from harness.commands.mitigate import mitigate as search_cures
from harness.commands.options import shown_path
from harness.commands.over import search_over
from harness.diagnosis.bisect import judging
from harness.diagnosis.cure import judging as cure_judging
from harness.domain.first_bad import FirstBad
from harness.errors import ConfigError
from harness.releases import judging as first_bad_policy
from harness.report.text.bisection import render_bisection
from harness.report.text.cures import render_curing
from harness.report.text.first_bad import dump_first_bad, render_first_bad
from harness.system.progress import Progress
from harness.verbs.shared import options_of, say, width


def bisect(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Search whose doing a red cell is, or since when it is."""
    options, verb, progress = options_of(parsed, arguments), str(parsed.verb), Progress()
    asked = asked_cell(options, verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model)
    if parsed.over is not None:
        found = search_over(
            parsed.over,
            options,
            progress,
            model=parsed.model,
            asked=asked,
            releases=parsed.named,
            build_limit=parsed.builds,
        )
        say(FIRST_BAD_FORMATS[parsed.format](found))
        return first_bad_policy.exit_code(found)
    if parsed.named or parsed.builds is not None:
        raise ConfigError("--releases and --builds belong to --over", "such as bisect --over releases")
    searched = search(options, progress, model=parsed.model, asked=asked)
    say(BISECTION_FORMATS[parsed.format](searched))
    return judging.exit_code(searched.found)


def mitigate(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Search what cures a red cell."""
    options, verb = options_of(parsed, arguments), str(parsed.verb)
    asked = asked_cell(options, verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model)
    if asked is not None and parsed.sought is not None:
        raise ConfigError("--scenario beside a cell, which has its own", "leave it out")
    cured = search_cures(
        options, Progress(), model=parsed.model, asked=asked, scenario=parsed.sought or "alone", pairs=parsed.pairs
    )
    say(render_curing(cured.found, directory=shown_path(cured.folder), width=width()))
    return cure_judging.exit_code(cured.found)


BISECTION_FORMATS: dict[str, Callable[[BisectedCell], str]] = {
    "console": lambda searched: render_bisection(searched.found, directory=shown_path(searched.folder), width=width()),
    "json": lambda searched: (searched.folder / RESULT).read_text(encoding="utf-8"),
}
FIRST_BAD_FORMATS: dict[str, Callable[[FirstBad], str]] = {
    "console": lambda found: render_first_bad(found, width=width()),
    "json": dump_first_bad,
}
