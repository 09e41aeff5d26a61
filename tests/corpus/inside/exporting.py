"""Scripts and traces the architectures of a library, each in a forked process of its own.

``exporting.py list LIBRARY ...`` prints the names of their architectures; ``exporting.py JOBS FOLDER`` exports those of
``JOBS`` (JSON: ``[{"name", "library", "model", "how"}]``) as ``FOLDER/NAME.pt`` and ``FOLDER/NAME.inputs.pt``; of ``"library": "shipped"`` it copies
``"file"``, a voice detector, and writes a request.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Dict

import children

children.quiet()

import torch  # noqa: E402  quiet() is before it

import models  # noqa: E402
import packages  # noqa: E402

DEADLINE_S = 240.0


def export(job: Dict[str, Any], folder: Path) -> Dict[str, Any]:
    """Write an archive and its request; return its size, and why not where it cannot be exported."""
    torch.set_num_threads(1)
    torch.manual_seed(39)
    if job["library"] == "shipped":
        target = folder / f"{job['name']}.pt"
        shutil.copyfile(job["file"], str(target))
        torch.save((torch.rand(1, 512) - 0.5, 16000), str(folder / f"{job['name']}.inputs.pt"))
        return {"bytes": target.stat().st_size}
    stage, last = "build", None
    build = models.SOURCES[job["library"]][1]
    for module, inputs in build(job["model"], job["how"]):
        module.eval()
        if job.get("patterned"):
            _pattern(module)
            inputs = repeating(inputs)
        try:
            stage = "call"
            with torch.no_grad():
                module(*inputs)
        except Exception as error:  # noqa: BLE001  the next size
            last = error
            continue
        stage = job["how"]
        with torch.no_grad():
            if job["how"] == "script":
                made = torch.jit.script(module)
            else:
                made = torch.jit.trace(module, inputs, strict=False, check_trace=False)
        target = folder / f"{job['name']}.pt"
        torch.jit.save(made, str(target))
        torch.save(inputs, str(folder / f"{job['name']}.inputs.pt"))
        version = packages.version_of(job["model"]) if job["library"] == "packages" else ""
        return {"bytes": target.stat().st_size, "version": version}
    raise last if last is not None else RuntimeError(stage)


def _pattern(module: torch.nn.Module) -> None:
    """Fill the weights with numbers that repeat, which compress to nothing; the answers stay no constants."""
    for tensor in module.state_dict().values():
        if tensor.is_floating_point() and tensor.dim() > 1:
            tensor.copy_(repeating(tensor).div((tensor.numel() / tensor.shape[0]) ** 0.5))


def repeating(value: Any) -> Any:
    """Return an example whose floating numbers repeat, between -1 and 1."""
    if isinstance(value, (list, tuple)):
        return type(value)(repeating(item) for item in value)
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return torch.arange(value.numel()).remainder(61).sub(29.5).div(30.0).reshape(value.shape)


def main() -> None:
    if sys.argv[1] == "list":
        print(json.dumps({library: models.SOURCES[library][0]() for library in sys.argv[2:]}))
        return
    jobs, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    for library in {job["library"] for job in jobs} - {"packages", "shipped"}:
        __import__(library)
    children.run(jobs, lambda job: export(job, folder), folder.parent, DEADLINE_S)


if __name__ == "__main__":
    main()
