"""The fixture: one artifact between two releases, judged inside of a team's own test."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from harness.domain.outcome import Status
from harness.domain.text import prose, visible
from harness.errors import ConfigError, ExitCode, GateError
from harness.plugin.handed import artifacts_argument
from harness.plugin.runs import options_from
from harness.plugin.telling import Outcome, decision_lines, row_items
from harness.report.words.summary import headline, pair_words
from harness.run.execute import compat
from harness.run.files import Finished
from harness.run.options import shown_path
from harness.system.progress import Progress

BASE: Final = ("--latency", "off", "--scenario", "alone")
"""What a test can afford; ``options`` say otherwise."""


class CannotCheck(Exception):
    """Raised where the gate could not judge: a wrong argument, or an environment that cannot be had."""


class Checker:
    """What the fixture ``torchscript_compat`` is.

    Args:
        folder: where runs are kept.
        words: options of ``compat`` for all of them.
        project: whose configuration and waivers count.
        say: whether progress is written to standard error.
    """

    def __init__(self, folder: Path, words: Sequence[str], *, project: Path, say: bool) -> None:
        self._folder, self._words, self._project, self._say = folder, tuple(words), project, say
        self._made = 0

    def check(
        self,
        artifact: Any,
        inputs: Any = None,
        *,
        old: str | None = None,
        new: str | None = None,
        options: Sequence[str] = (),
    ) -> Path:
        """Return the folder of the run that found ``artifact`` compatible; a waived one makes the test xfail.

        Args:
            artifact: a path, or a scripted or traced module.
            inputs: a file of requests, or what one holds: positional arguments as a tuple, one argument, or input
                sets by name, of tensors, arrays and plain values. None: those beside the artifact; else guessed.
            old, new: a release, or NAME=PYTHON, a ready-made interpreter; None: as configured.
            options: more options of ``compat``, such as ``["--scenario", "concurrent"]``.

        Raises:
            AssertionError: it is not compatible, or that could not be decided; the text is that of the report.
            CannotCheck: nothing was judged.
        """
        __tracebackhide__ = True
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        try:
            if isinstance(options, str):
                raise ConfigError("options: expected a list of words", f"options={options.split()}")
            given = artifacts_argument(artifact, inputs, folder)
            words = [*BASE, *self._words, *options, "--artifacts", str(given), "--out", str(folder)]
            understood = options_from([*words, *_side("old", old), *_side("new", new)], self._project)
            finished = compat(replace(understood, whole_fleet=False), Progress(enabled=self._say))
        except GateError as error:
            raise CannotCheck(visible(str(error))) from None
        return _judged(finished)


def _side(name: str, release: str | None) -> list[str]:
    """Return the options that say what one side is."""
    if release is None:
        return []
    called, _, python = release.partition("=")
    return [f"--{name}", called, *(["--env", release] if python else [])]


def _judged(finished: Finished) -> Path:
    """Return the folder of a run that is green; else end the test as the run ended."""
    __tracebackhide__ = True
    report, directory = finished.report, shown_path(finished.folder)
    told = [item for row in report.judgement.rows for item in row_items(report, row, directory=directory)]
    if report.judgement.exit_code == ExitCode.COMPATIBLE:
        waived = [item.reason for item in told if item.outcome is Outcome.XFAIL]
        if waived:
            pytest.xfail("; ".join(waived))
        return finished.folder
    statuses = {cell.status for cell in report.judgement.cells}
    if statuses == {Status.UNSUPPORTED}:
        pytest.skip("; ".join(item.reason for item in told))
    red = [item.text or item.reason for item in told if item.outcome in (Outcome.FAIL, Outcome.XPASS)]
    if red:
        red.append(
            f"{visible(headline(report))}  {prose(pair_words(report))}\n  page      {visible(directory)}/report.html"
        )
    raise AssertionError("\n\n".join(red or ["\n".join(decision_lines(report, directory=directory))]))
