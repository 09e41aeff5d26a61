"""What a worker has left is looked through before anybody believes it: an artifact may have written into it.

Whatever is wrong there costs the row of its model, as a ``PROTOCOL_ERROR``; what fails later is a bug of ours.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.artifacts.tensors.checking import check_spec, checked_tree
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.recorded import read_inputs, read_outputs
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult, ProbeRequest, ProbeResult
from harness.machine.typed import converted
from harness.store.json import DAMAGE
from harness.worker import wire

Pairs = list[tuple[str, str]]
Decided = msgspec.defstruct("Decided", [("kind", str), ("source", str), ("value", bool | int | None)])
MARKS: Final[dict[str, Any]] = {
    "adopted": msgspec.defstruct("Adopted", [("input_sets", Pairs), ("inputs_note", str), ("given_up", Pairs, [])]),
    "converted": msgspec.defstruct(
        "Converted",
        [
            ("dimensions", list[tuple[list[Any], list[int | None] | None]]),
            ("bytes", int),
            ("example", str),
            ("has_state", bool),
            ("decided", list[Decided]),  # type: ignore[valid-type]
        ],
    ),
    "not_converted": msgspec.defstruct(
        "NotConverted", [("kind", str), ("source", str), ("code", str), ("reason", str)]
    ),
    "packaged": msgspec.defstruct("Packaged", [("bytes", int)]),
    "extracted": msgspec.defstruct("Extracted", [("operators", list[str]), ("inputs", int), ("outputs", int)]),
    "exported": msgspec.defstruct("Exported", [("operators", list[str]), ("input_sets", Pairs)]),
    "switches": dict[str, dict[str, Any]],
    "numerics": dict[str, bool | int | float | str | None],
    "limits": dict[str, str],
    "not_confined": str,
    "graph": msgspec.defstruct(
        "Graph",
        [("mode", str), ("max_abs_difference", float | None), ("scale", float | None), ("rebound", list[str], [])],
    ),
    "served_otherwise": msgspec.defstruct("Served", [("calls", int), ("first", int), ("different", int)]),
    "draws": msgspec.defstruct("Draws", [("set", str), ("call", int)]),
    "loaders": dict[str, msgspec.defstruct("Tried", [("error", str), ("warns", list[str])])],  # type: ignore[misc]
    "intra_op_otherwise": dict[str, Any],
}
"""Shapes of the marks that artifacts could forge, by name; what follows a colon in a name is a model or thread."""
NEEDED: Final = {
    "extract": "extracted",
    "export": "exported",
    "convert": "converted",
    "walk": "converted",
    "package": "packaged",
}
"""Mark without which a verb has not completed."""
RUNNING: Final = ("run",)
"""Verbs that leave answers."""


def verified(request: ProbeRequest, result: ProbeResult) -> ProbeResult:
    """Return the result, its completed models failed where what they left is damaged; damaged marks are left out."""
    kept, wrong = {}, []
    for name, data in result.data.items():
        why = _wrong_mark(name, data)
        if why:
            wrong.append(why)
        else:
            kept[name] = data
    models = result.models
    needed = NEEDED.get(request.verb)
    if needed is not None and needed not in kept:
        wrong.append(f"the mark {needed} is missing")
    if wrong:
        models = tuple(_failed(model, wrong) for model in models)
    elif request.verb in RUNNING:
        models = tuple(_with_legible_answers(model, result.directory) for model in models)
    else:
        models = tuple(_with_legible_inputs(model, result.directory) for model in models)
    return replace(result, data=kept, models=models)


def legible_outputs(directory: str | Path, model: str) -> Outputs:
    """Return what a model has answered, and nothing where the record is damaged: its probe has failed by then."""
    try:
        return _checked_outputs(directory, model)
    except DecodeError:
        return Outputs(calls={}, buffer=b"")


def _wrong_mark(name: str, data: object) -> str:
    kind = MARKS.get(name.partition(":")[0])
    try:
        if kind is not None:
            converted(data, kind)
    except DAMAGE as error:  # msgspec's are of these
        return f"the mark {name:.100} is damaged: {str(error)[:200]}"
    return ""


def _with_legible_answers(model: ModelResult, directory: str) -> ModelResult:
    if model.outcome is not Outcome.COMPLETED:
        return model
    try:
        _checked_outputs(directory, model.model)
    except DecodeError as error:
        return _failed(model, [f"what it has recorded cannot be read: {error}"])
    return model


def _with_legible_inputs(model: ModelResult, directory: str) -> ModelResult:
    """Return the model, failed where it has recorded inputs which nobody can read: exported, adopted, extracted."""
    folder = Path(directory, wire.INPUTS)
    if model.outcome is not Outcome.COMPLETED or not os.path.lexists(folder / wire.TENSORS_INDEX):
        return model
    try:
        inputs = read_inputs(folder)
        for _, _, tree in inputs.entries:
            checked_tree(tree, lambda spec: check_spec(spec, inputs.buffer))
    except DAMAGE as error:
        return _failed(model, [f"the inputs that it has recorded cannot be read: {str(error)[:200]}"])
    return model


def _checked_outputs(directory: str | Path, model: str) -> Outputs:
    outputs = read_outputs(directory, model)

    def check(spec: dict[str, Any]) -> None:
        check_spec(spec, outputs.buffer)

    try:
        for tree in outputs.calls.values():
            checked_tree(tree, check)
        for effects in (outputs.effects or {}).values():
            for tree in effects.changed.values():
                checked_tree(tree, check)
    except DAMAGE as error:
        raise DecodeError(str(error)[:200] or type(error).__name__) from None
    return outputs


def _failed(model: ModelResult, why: Sequence[str]) -> ModelResult:
    if model.outcome is not Outcome.COMPLETED:
        return model
    failure = Failure(type="DamagedRecord", message="; ".join(why), phase=wire.RECORD)
    return replace(model, outcome=Outcome.PROTOCOL_ERROR, phase=wire.RECORD, failure=failure)
