"""What plain torch makes of archives, each in a forked process of its own; no code of the gate.

``oracle.py load JOBS FOLDER`` loads each archive; ``oracle.py call JOBS FOLDER`` also calls it with its request and
writes what it answers; ``oracle.py compare JOBS FOLDER`` compares two sets of answers. ``JOBS`` is JSON:
``[{"name", "path", "inputs", "answers", "library"}]``, of ``compare`` ``[{"name", "reference", "again", "answers"}]``.
"""

import json
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import children

children.quiet()

import torch  # noqa: E402  quiet() is before it

DEADLINE_S = 240.0
CALLS = 3
TOLERANCE = 1e-5


def load(job: Dict[str, Any]) -> Dict[str, Any]:
    """Return nothing where the archive loads."""
    _loaded(job)
    return {"loaded": True}


def call(job: Dict[str, Any]) -> Dict[str, Any]:
    """Write what each of the calls answers, each with the same request, seeded before it."""
    torch.set_num_threads(1)
    model = _loaded(job)
    answers: List[Any] = []
    found: Dict[str, Any] = {"loaded": True}
    try:
        for _ in range(CALLS):
            inputs = torch.load(job["inputs"])
            torch.manual_seed(0)
            with torch.no_grad():
                answers.append(list(leaves(model(*inputs), "output")))
    except Exception as error:  # noqa: BLE001  what it raised is the answer
        found.update(call_error=type(error).__name__, message=str(error)[:2000])
    torch.save(answers, job["answers"])
    return dict(found, calls=len(answers))


def _loaded(job: Dict[str, Any]) -> Any:
    if job.get("library"):
        __import__(job["library"])
    return torch.jit.load(job["path"], map_location="cpu")


def leaves(value: Any, path: str) -> Iterator[Tuple[str, Any]]:
    """Yield the tensors and values of an answer, with where they are."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        yield f"{path}.length", len(value)
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    elif isinstance(value, torch.Tensor):
        yield path, value.detach().dequantize().clone() if value.is_quantized else value.detach().clone()
    else:
        yield path, value if isinstance(value, (int, float, bool, str, type(None))) else repr(type(value))


def compare(job: Dict[str, Any]) -> Dict[str, Any]:
    """Return how far answers are from the reference, and this from itself: a share of the largest magnitude.

    Infinite where structure, dtype or shape differ, or the places of what is not finite.
    """
    reference, again, answers = (torch.load(job[key]) for key in ("reference", "again", "answers"))
    return {"noise": distance(reference, again), "difference": distance(reference, answers)}


def distance(reference: List[Any], answers: List[Any]) -> float:
    if [[path for path, _ in call] for call in reference] != [[path for path, _ in call] for call in answers]:
        return float("inf")
    return max(
        (_apart(a, b) for old, new in zip(reference, answers) for (_, a), (_, b) in zip(old, new)),
        default=0.0,
    )


def _apart(a: Any, b: Any) -> float:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return 0.0 if type(a) is type(b) and (a == b or a != a) else float("inf")
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not (a.is_floating_point() or a.is_complex()):
        return 0.0 if torch.equal(a, b) else float("inf")
    finite = torch.isfinite(a)
    if not torch.equal(finite, torch.isfinite(b)) or not torch.equal(a[~finite].isnan(), b[~finite].isnan()):
        return float("inf")
    rest = ~finite & ~a.isnan()
    if not torch.equal(a[rest], b[rest]):
        return float("inf")
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b = a[finite].to(wide), b[finite].to(wide)
    if a.numel() == 0 or torch.equal(a, b):
        return 0.0
    largest = float(a.abs().max())
    return float((a - b).abs().max()) / largest if largest else float("inf")


if __name__ == "__main__":
    verb = {"load": load, "call": call, "compare": compare}[sys.argv[1]]
    children.run(json.loads(Path(sys.argv[2]).read_text()), verb, Path(sys.argv[3]), DEADLINE_S)
