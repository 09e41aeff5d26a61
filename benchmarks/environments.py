"""Building both environments against plain ``uv pip install`` of the same two releases side by side.

Both start from the same warm uv cache and an empty folder, in turn, several times; the medians are compared. (A
cold cache measures the network, which is shared: there the same comparison holds within its noise.) The bar: at
most 10 % slower.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder
from harness.environments.installer import find_uv
from harness.run.options import Options, settings_of

PROJECT = Path(__file__).resolve().parents[1]
ROUNDS = 5


def main() -> int:
    """Print both medians and their ratio; return 0 if the bar is met."""
    uv = find_uv()
    if uv is None:
        print("environments: uv is not installed, there is nothing to compare with")
        return 1
    _, settings = settings_of(Options(project=PROJECT))
    releases = [settings.old, settings.new]
    plain_s, ours_s = [], []
    for index in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory(prefix="gate-envs-", dir=PROJECT / ".nox") as folder:
            plain, ours = _plain(uv, releases, Path(folder) / "plain"), _ours(uv, releases, Path(folder) / "ours")
        if index:  # the first round fills the cache
            plain_s.append(plain)
            ours_s.append(ours)
    ratio = statistics.median(ours_s) / statistics.median(plain_s)
    print(f"plain uv, side by side {statistics.median(plain_s):6.2f} s  (median of {ROUNDS})")
    print(f"the builder            {statistics.median(ours_s):6.2f} s")
    print(f"ratio                  {ratio:6.2f}    bar: at most 1.10  {'met' if ratio <= 1.1 else 'MISSED'}")
    return int(ratio > 1.1)


def _plain(uv: str, releases: list[str], folder: Path) -> float:
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    begin = time.monotonic()
    script = "{uv} venv -q --python {python} {home} && {uv} pip install -q --python {home}/bin/python torch=={release}"
    processes = [
        subprocess.Popen(
            ["sh", "-c", script.format(uv=uv, python=python, home=folder / release, release=release)], cwd=PROJECT
        )
        for release in releases
    ]
    codes = [process.wait() for process in processes]
    assert codes == [0] * len(releases), codes
    return time.monotonic() - begin


def _ours(uv: str, releases: list[str], folder: Path) -> float:
    builder = EnvironmentBuilder(folder, progress=lambda _name, _text: None, uv=uv)
    begin = time.monotonic()
    builder.build_all([EnvSpec(name=release, release=release) for release in releases])
    return time.monotonic() - begin
