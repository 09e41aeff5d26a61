"""The fixture: one artifact between two releases, judged inside a team's own test.

Objects that the test passes become files that ``compat`` takes. torch is never imported: what made the objects is
loaded already, and writes them.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from harness.apps.report.files import Finished
from harness.apps.upgrade.execute import compat
from harness.artifacts.manifest import MANIFEST, text_of
from harness.artifacts.names import word_of
from harness.core.errors import ConfigError, ExitCode, GateError
from harness.core.outcome import Status
from harness.core.text import prose, visible
from harness.machine.progress import Progress
from harness.plugin.items import Outcome, decision_lines, row_items
from harness.plugin.runs import options_from
from harness.project import shown_path
from harness.report.words.summary import headline, pair_words

SCRIPTED: Final = ("ScriptModule", "ScriptFunction")
NUMBERS: Final = "biufc"
"""Kinds of arrays that are numbers."""
HELD: Final = "tensors, arrays of numbers, numbers, texts, None, lists, tuples and dicts"
HEAD: Final = "from math import inf, nan\n\n\ndef inputs():\n    return "


def artifacts_argument(artifact: Any, inputs: Any, folder: Path) -> Path:
    """Return what ``--artifacts`` is given: the artifact, or a manifest of it and its inputs, written into ``folder``.

    ``artifact``: a path, or a scripted or traced module or function; ``inputs``: a path; or a tuple of positional
    arguments, one argument, or input sets by name, as a ``.pt`` file of requests holds them: of tensors, NumPy arrays,
    numbers, texts and None; or None: those beside the artifact, and guessed where there are none. Raises
    ``ConfigError``: it is something else, or cannot be handed over.
    """
    path = _artifact(artifact, folder)
    if inputs is None:
        return path
    requests = _file(Path(inputs)) if isinstance(inputs, str | os.PathLike) else _requests(inputs, folder)
    manifest = folder / MANIFEST
    lines = ("[[models]]", f"path = {text_of(str(path))}", f"inputs = {text_of(str(requests))}")
    manifest.write_text("\n".join([*lines, f"name = {text_of(word_of(str(path)))}", ""]), encoding="utf-8")
    return manifest


def _artifact(artifact: Any, folder: Path) -> Path:
    if isinstance(artifact, str | os.PathLike):
        return Path(artifact).absolute()
    kinds = {base.__name__ for base in type(artifact).__mro__ if base.__module__.partition(".")[0] == "torch"}
    if kinds.intersection(SCRIPTED):
        name = getattr(artifact, "original_name", None) or getattr(artifact, "name", None) or "model"
        path = folder / f"{word_of(str(name))}.pt"
        artifact.save(str(path))
        return path
    raise ConfigError(
        f"artifact: expected a path or a scripted or traced module, got {type(artifact).__name__}",
        "script or trace it first: torch.jit.script(module)" if "Module" in kinds else "",
    )


def _file(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"inputs: there is no file {path.absolute()}", 'an argument that is a text: ("text",)')
    return path.absolute()


def _requests(inputs: Any, folder: Path) -> Path:
    if isinstance(inputs, Mapping) and not all(isinstance(name, str) for name in inputs):
        raise ConfigError("inputs: names of input sets are texts", "an argument that is a dict: ({...},)")
    leaves: list[Any] = []
    value = _mapped(inputs, lambda leaf, place: _leaf(leaf, place, leaves))
    torch = sys.modules.get("torch")
    if not any(isinstance(leaf, np.ndarray) or _is_tensor(leaf) for leaf in leaves):
        path = folder / "inputs.py"
        path.write_text(f"{HEAD}{value!r}\n", encoding="utf-8")
    elif (flat := _flat(value)) is not None:
        path = folder / "inputs.npz"
        np.savez(path, **flat)
    elif torch is not None:
        path = folder / "inputs.pt"
        torch.save(_mapped(value, lambda leaf, _: _as_tensor(leaf, torch)), path)
    else:
        raise ConfigError(
            "inputs: arrays beside texts and None, or inside of lists and dicts, are handed over by torch",
            "import torch in the test, or give a file of requests",
        )
    return path


def _mapped(value: Any, change: Callable[[Any, str], Any], place: str = "inputs") -> Any:
    if isinstance(value, Mapping):
        return {change(key, place): _mapped(item, change, f"{place}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_mapped(item, change, f"{place}[{index}]") for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    return change(value, place)


def _leaf(value: Any, place: str, leaves: list[Any]) -> Any:
    """Append ``value`` to ``found`` and return it as a plain type for every release. Raises ``ConfigError``."""
    plain = value.item() if isinstance(value, np.generic) else value
    for kind, exact in ((bool, bool), (int, int), (float, float), (str, str.__str__)):
        if isinstance(plain, kind):
            plain = exact(plain)
            break
    else:
        numbers = isinstance(plain, np.ndarray) and plain.dtype.kind in NUMBERS
        if not (plain is None or numbers or _is_tensor(plain)):
            got = f"an array of {plain.dtype}" if isinstance(plain, np.ndarray) else type(value).__name__
            raise ConfigError(f"{place}: expected {HELD}, got {got}")
    leaves.append(plain)
    return plain


def _is_tensor(value: object) -> bool:
    return any(base.__name__ == "Tensor" and base.__module__ == "torch" for base in type(value).__mro__)


def _flat(inputs: Any) -> dict[str, Any] | None:
    """Return the arrays of ``inputs`` by name, as in ``.npz``; None if they are nested."""
    sets = inputs if isinstance(inputs, dict) else {"": inputs}
    arrays: dict[str, Any] = {}
    for name, arguments in sets.items():
        listed = arguments if isinstance(arguments, tuple) else (arguments,)
        if not all(isinstance(item, np.ndarray | int | float) for item in listed):
            return None
        above = f"{name}/" if name else ""
        arrays |= {f"{above}{index}": np.asarray(item) for index, item in enumerate(listed)}
    return arrays


def _as_tensor(value: Any, torch: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    return value.detach().cpu() if _is_tensor(value) else value


BASE: Final = ("--latency", "off", "--scenario", "alone")
"""What a test can afford; ``options`` override it."""


class CannotCheck(Exception):
    """Raised where the gate could not judge: a wrong argument, or an environment that cannot be had."""


class Checker:
    """The fixture ``torchscript_compat``; ``words``: options of ``compat``; ``say``: progress goes to stderr."""

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
            finished = compat(replace(understood, whole_fleet=False, progress=Progress(enabled=self._say)))
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
    """Return the folder of a green run; otherwise end the test the way the run ended."""
    __tracebackhide__ = True
    report, directory = finished.report, shown_path(finished.folder)
    items = [item for row in report.judgement.rows for item in row_items(report, row, directory=directory)]
    if report.judgement.exit_code == ExitCode.COMPATIBLE:
        waived = [item.reason for item in items if item.outcome is Outcome.XFAIL]
        if waived:
            pytest.xfail("; ".join(waived))
        return finished.folder
    statuses = {cell.status for cell in report.judgement.cells}
    if statuses == {Status.UNSUPPORTED}:
        pytest.skip("; ".join(item.reason for item in items))
    red = [item.text or item.reason for item in items if item.outcome in (Outcome.FAIL, Outcome.XPASS)]
    if red:
        red.append(
            f"{visible(headline(report))}  {prose(pair_words(report))}\n  page      {visible(directory)}/report.html"
        )
    raise AssertionError("\n\n".join(red or ["\n".join(decision_lines(report, directory=directory))]))
