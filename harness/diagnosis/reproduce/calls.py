"""The calls of an artifact's schedule as a reproducer makes them, with what the old release made of them."""

import re
from pathlib import Path
from typing import Any

from harness.diagnosis.reproduce.files import Tensors, recorded_requests
from harness.domain.models import Artifact
from harness.probing.facts import Attributed
from harness.tensors.outputs import NOTHING, Outputs

ARGUMENT = re.compile(r"input\[(\d+)\](.*)", re.DOTALL)


def requests_of(artifact: Artifact, golden: Outputs, facts: Attributed, tensors: Tensors) -> list[dict[str, Any]]:
    """Return the calls of the schedule with what the old release answered; empty where it is only loaded."""
    schedule = facts.requests.model_run(artifact).schedule
    if not schedule:
        return []
    recorded = recorded_requests(Path(artifact.inputs_dir))
    entries = {name: (method, tree) for name, method, tree in recorded.entries}
    requests = []
    for name, calls in schedule:
        method, tree = entries[name]
        known: list[Any] = []  # up to the first that is missing: they are told apart by their place
        while len(known) < calls and (name, len(known)) in golden.calls:
            known.append(golden.calls[name, len(known)])
        requests.append(
            {
                "set": name,
                "method": method,
                "arguments": tensors.taken(tree, recorded.buffer),
                "calls": calls,
                "expected": [tensors.taken(answer, golden.buffer) for answer in known],
                "after": _after(golden, name, len(known), tensors),
            }
        )
    return requests


def _after(golden: Outputs, name: str, calls: int, tensors: Tensors) -> list[dict[str, Any]]:
    """Return by position what each call made of arguments that it changed; None: within it, which is not compared."""
    found: list[dict[str, Any]] = []
    for call in range(calls if golden.effects is not None else 0):
        changed = golden.effects.get((name, call), NOTHING).changed if golden.effects is not None else {}
        left: dict[str, Any] = {}
        for path, tree in changed.items():
            where = ARGUMENT.match(path)
            if where is not None:
                left[where[1]] = None if where[2] else tensors.taken(tree, golden.buffer)
        found.append(left)
    return found
