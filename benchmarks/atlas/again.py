"""Examples of the atlas, asked again of a fresh process with nothing but plain torch."""

import json
import subprocess
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path

from benchmarks.atlas.differences import Answer, difference
from harness.core.atlas import Kind, OperatorChange

INSIDE = Path(__file__).with_name("inside")
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from answer import answered
for text in json.load(sys.stdin):
    print(json.dumps(answered(lambda: eval(text))))
"""
UNASKED = (Kind.LOST, Kind.ALIASING)
"""Kinds that an example does not show: there is none, or its answer alone does not say whose memory it is."""


ZEROS, OTHERS = "255", "170"
"""What glibc's ``MALLOC_PERTURB_`` has to be for fresh memory of zeros, and of other bytes."""


def asked(python: str, texts: Sequence[str], memory: str) -> list[Answer]:
    """Return what a release answers each call, which is Python, out of fresh ``memory``."""
    done = subprocess.run(
        [python, "-s", "-W", "ignore", "-c", PROGRAM, str(INSIDE)],
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={"OMP_NUM_THREADS": "1", "MALLOC_PERTURB_": memory},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def unconfirmed(changes: Sequence[OperatorChange], old: str, new: str) -> list[OperatorChange]:
    """Return the changes of which two interpreters do not show the kind of difference again, whatever memory holds."""
    examples = [change for change in changes if change.kind not in UNASKED]
    texts = [change.call for change in examples]
    kinds = []
    for memory in (ZEROS, OTHERS):
        answers = zip(asked(old, texts, memory), asked(new, texts, memory), strict=True)
        kinds.append([apart and apart.kind for apart in starmap(difference, answers)])
    return [change for change, *shown in zip(examples, *kinds, strict=True) if set(shown) != {change.kind}]
