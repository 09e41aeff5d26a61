"""Artifacts and inputs that a test hands over as objects, as files that ``compat`` takes.

torch is never imported: what made the objects is here already, and writes them.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.errors import ConfigError
from harness.models.manifest import MANIFEST, text_of
from harness.models.names import word_of

SCRIPTED: Final = ("ScriptModule", "ScriptFunction")
NUMBERS: Final = "biufc"
"""Kinds of arrays that are numbers."""
HELD: Final = "tensors, arrays of numbers, numbers, texts, None, lists, tuples and dicts"
HEAD: Final = "from math import inf, nan\n\n\ndef inputs():\n    return "


def artifacts_argument(artifact: Any, inputs: Any, folder: Path) -> Path:
    """Return what ``--artifacts`` is given: the artifact, or a manifest of it and its inputs, written into ``folder``.

    Args:
        artifact: a path, or a scripted or traced module or function.
        inputs: a path; or a tuple of positional arguments, one argument, or input sets by name, as a ``.pt`` file of
            requests holds them: of tensors, NumPy arrays, numbers, texts and None; or None: those beside the artifact,
            and guessed where there are none.

    Raises:
        ConfigError: it is something else, or cannot be handed over.
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
    """Return the file that ``inputs`` were written to, in the simplest form that holds them."""
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
    """Return ``value`` with what ``change`` makes of everything in it that holds nothing else."""
    if isinstance(value, Mapping):
        return {change(key, place): _mapped(item, change, f"{place}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_mapped(item, change, f"{place}[{index}]") for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    return change(value, place)


def _leaf(value: Any, place: str, found: list[Any]) -> Any:
    """Return ``value`` without the classes of the test, which no release can read, and add it to what was ``found``.

    Raises:
        ConfigError: it is nothing that a request can hold.
    """
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
    found.append(plain)
    return plain


def _is_tensor(value: object) -> bool:
    return any(base.__name__ == "Tensor" and base.__module__ == "torch" for base in type(value).__mro__)


def _flat(inputs: Any) -> dict[str, Any] | None:
    """Return the arrays of ``inputs`` by name as ``.npz`` has them; None where they do not lie flat."""
    sets = inputs if isinstance(inputs, dict) else {"": inputs}
    found: dict[str, Any] = {}
    for name, arguments in sets.items():
        listed = arguments if isinstance(arguments, tuple) else (arguments,)
        if not all(isinstance(item, np.ndarray | int | float) for item in listed):
            return None
        above = f"{name}/" if name else ""
        found |= {f"{above}{index}": np.asarray(item) for index, item in enumerate(listed)}
    return found


def _as_tensor(value: Any, torch: Any) -> Any:
    """Return a tensor for an array; a tensor on the CPU, where every release can read it."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    return value.detach().cpu() if _is_tensor(value) else value
