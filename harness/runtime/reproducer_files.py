"""The folder of a reproducer: written, and run once in an environment."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import RunDirError
from harness.numerics.decode import Buffer
from harness.runtime import codec, process
from harness.runtime.trace_reader import tensors_in

PROGRAM = process.BOOTSTRAP.with_name("reproduce.py")
# It has a deadline of its own, for the operator; this one is for torch's import and for what goes wrong with that.
DEADLINE_S = 150.0
SAID = {0: "as recorded", 1: "otherwise", 125: "untestable"}


def write_reproducer(folder: Path, node: dict[str, Any], buffer: Buffer, texts: Mapping[str, str]) -> None:
    """Write program, ``node.json``, the bytes that its trees point to, and ``texts`` by name of file.

    ``node`` has ``inputs``, ``outputs`` (trees) and ``generator`` (a tree or None); they get offsets of their own.

    Raises:
        RunDirError: the folder cannot be written.
    """
    data = bytearray()
    trees = [*node["inputs"], *node["outputs"], *([node["generator"]] if node["generator"] is not None else [])]
    for tree in trees:
        for spec in tensors_in(tree):
            assert isinstance(spec, dict)
            begin, spec["offset"] = spec["offset"], len(data)
            data += buffer[begin : begin + spec["nbytes"]]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tensors.bin").write_bytes(data)
        (folder / "node.json").write_bytes(codec.pretty(node))
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        shutil.copyfile(PROGRAM, folder / PROGRAM.name)
    except OSError as error:
        raise RunDirError(f"{folder} cannot be written: {error.strerror or error}", "use --out") from error


def run_reproducer(folder: Path, interpreter: str, env: Mapping[str, str]) -> str:
    """Return what the program says in an environment, in a line that ends with its exit code; never raises."""
    command = (interpreter, "-s", str(folder / PROGRAM.name))
    try:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=process.worker_environment({"PYTHONDONTWRITEBYTECODE": "1", **env}),
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        return f"could not be started: {error.strerror or error}"
    try:
        output, _ = started.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        return f"no answer after {DEADLINE_S:.0f} s"
    finally:
        if started.returncode is None:
            process.reap(started)
    lines = [line for line in output.decode(errors="replace").strip().splitlines() if not line.startswith("torch ")]
    said = lines[-1] if lines else SAID.get(started.returncode, process.describe_exit(started.returncode))
    return f"{said} (exit code {started.returncode})"
