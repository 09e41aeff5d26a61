"""``gate``: a finished run, judged by another policy."""

import argparse
from collections.abc import Sequence

from harness.commands.gate import gate as judge_again
from harness.verbs.runs import FORMATS
from harness.verbs.shared import options_of, say


def gate(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Judge a finished run again."""
    options = options_of(parsed, arguments)
    finished = judge_again(options, parsed.run, waivers=parsed.waivers, baseline=parsed.baseline)
    say(FORMATS[parsed.format](finished))
    return finished.report.judgement.exit_code
