"""Reading artifacts statically: how many per second on one core, against loading them, and how much memory.

The artifacts are the golden records. Bars: 100 per second, 50 times the speed of a process that imports torch and loads
one, and memory that does not grow with the weights (an archive with a gigabyte of them, in a sparse file).
"""

import json
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from harness.artifacts.archive.code import CodeMemory
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registry_of
from harness.core.archive import OperatorRegistry
from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.project import Project

PROJECT = Path(__file__).resolve().parents[1]
PER_SECOND, TIMES_FASTER, GROWTH_BYTES = 100.0, 50.0, 16 << 20
ROUNDS = 5
WEIGHTS_BYTES = 1 << 30
LOADING = """
import sys, time, warnings
warnings.simplefilter("ignore")
begin = time.perf_counter()
import torch
imported = time.perf_counter()
for path in sys.argv[1:]:
    torch.jit.load(path)
print(imported - begin, time.perf_counter() - imported)
"""


def main() -> int:
    """Print the rates; return 0 if every bar is met."""
    with tempfile.TemporaryDirectory(prefix="gate-inspect-") as folder:
        paths = [str(path) for path in sorted(PROJECT.glob("golden/records/*/*/artifact"))]
        registries, python = _registries()
        cold = [_rate(paths, registries, fresh=True) for _ in range(ROUNDS)]
        warm = [_rate(paths, registries, fresh=False) for _ in range(ROUNDS)]
        import_s, load_s = _loading(python, paths)
        growth = _growth(paths[0], Path(folder))
    each_s = 1.0 / statistics.median(cold)
    alone, loaded = (import_s + load_s / len(paths)) / each_s, load_s / len(paths) / each_s
    bars = (
        ("artifacts per second, one by one", statistics.median(cold), PER_SECOND, True),
        ("artifacts per second, library code remembered", statistics.median(warm), PER_SECOND, True),
        ("faster than a process that loads one, times", alone, TIMES_FASTER, True),
        ("memory with 1 GiB of weights, MiB more", growth / (1 << 20), GROWTH_BYTES / (1 << 20), False),
    )
    missed = 0
    for name, value, bar, at_least in bars:
        met = value >= bar if at_least else value <= bar
        missed += not met
        print(f"{name:48} {value:8.1f}   bar: {'at least' if at_least else 'at most'} {bar:.0f}  {_word(met)}")
    print(f"{'faster than torch.jit.load alone, times':48} {loaded:8.1f}   no bar: torch was imported already")
    return int(missed > 0)


def _word(met: bool) -> str:
    return "met" if met else "MISSED"


def _registries() -> tuple[dict[str, OperatorRegistry], str]:
    settings = Project(folder=PROJECT).settings
    root = default_environment_root()
    builder = EnvironmentBuilder(root, progress=lambda _name, _text: None, uv=find_uv())
    sides = {"old": settings.old, "new": settings.new}
    built = {side: builder.build(EnvSpec(name=release, release=release)) for side, release in sides.items()}
    return {side: registry_of(environment, root) for side, environment in built.items()}, built["old"].interpreter


def _rate(paths: list[str], registries: dict[str, OperatorRegistry], *, fresh: bool) -> float:
    memory = CodeMemory()
    begin = time.perf_counter()
    for path in paths:
        inspect_file(path, registries, CodeMemory() if fresh else memory)
    return len(paths) / (time.perf_counter() - begin)


def _loading(python: str, paths: list[str]) -> tuple[float, float]:
    done = subprocess.run(
        [python, "-s", "-c", LOADING, *paths], capture_output=True, text=True, check=True, timeout=120
    )
    import_s, load_s = map(float, done.stdout.split())
    return import_s, load_s


def _growth(small: str, folder: Path) -> int:
    """Return by how many bytes the peak memory of a process grows when the weights are a gigabyte."""
    large = folder / "large.pt"
    _with_weights(small, large)
    peaks = []
    for path in (small, str(large)):
        done = subprocess.run([sys.executable, "-m", __name__, path], capture_output=True, cwd=PROJECT, check=True)
        peaks.append(int(json.loads(done.stdout)))
    return peaks[1] - peaks[0]


def _with_weights(small: str, large: Path) -> None:
    """Write an archive with the members of ``small`` and a stored member of zeros that is a hole in the file."""
    with zipfile.ZipFile(small) as source, zipfile.ZipFile(large, "w") as target:
        root = source.namelist()[0].partition("/")[0]
        for member in source.infolist():
            target.writestr(member, source.read(member))
        info = zipfile.ZipInfo(f"{root}/data/999")
        info.header_offset = target.fp.tell() if target.fp is not None else 0
        info.file_size = info.compress_size = WEIGHTS_BYTES
        info.CRC = 0
        assert target.fp is not None
        target.fp.write(
            struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, *[WEIGHTS_BYTES] * 2, len(info.filename), 0)
        )
        target.fp.write(info.filename.encode())
        target.fp.seek(WEIGHTS_BYTES, 1)
        target.filelist.append(info)
        target.start_dir = target.fp.tell()


if __name__ == "__main__":
    inspect_file(sys.argv[1], {})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
