"""Genuine archives: what is predicted of them is what each release does, and nothing is in doubt.

Modules drawn from a grammar of what TorchScript compiles are saved by five releases and loaded in each other one.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.faults._genuine_modules import module_source
from harness.artifacts import files
from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.reading import read_artifact
from harness.checks.prediction.predict import predict
from harness.checks.prediction.registries import registry_of
from harness.core.archive import OperatorRegistry
from harness.core.environment import Environment, EnvSpec
from harness.core.prediction import Prediction, StaticVerdict
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.verdict.prediction import deciding

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("_genuine_worker.py")
COUNT = 2000
RELEASES = ("1.13.1", "2.1.2", "2.6.0", "2.11.0", "2.15.0")
AT_ONCE = 2
DEADLINE_S = 3600.0


def attack(count: int, seed: int) -> list[str]:
    """Return the modules of which a prediction was wrong or in doubt, with what torch said."""
    root = default_environment_root()
    builder = EnvironmentBuilder(root, progress=lambda _name, _text: None, uv=find_uv())
    environments = {release: builder.build(EnvSpec(name=release, release=release)) for release in RELEASES}
    with tempfile.TemporaryDirectory(prefix="gate-genuine-") as folder:
        return wrong_predictions(environments, Path(folder), drawn(count, seed))


def drawn(count: int, seed: int) -> list[str]:
    """Return the source texts of ``count`` modules."""
    return [module_source(random.Random(f"{seed} {index}")) for index in range(count)]


def wrong_predictions(environments: Mapping[str, Environment], folder: Path, texts: Sequence[str]) -> list[str]:
    """Write archives of these modules into ``folder``; return a line for each that was judged wrong, by release."""
    sources = folder / "sources"
    sources.mkdir()
    for index, text in enumerate(texts):
        (sources / f"{index:05}.py").write_text(text, encoding="utf-8")
    pythons = {name: environment.interpreter for name, environment in environments.items()}
    for name in pythons:
        (folder / name).mkdir()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(lambda name: _said(pythons[name], "make", sources, folder / name), pythons))
        folders = [folder / name for name in pythons]
        said = dict(zip(pythons, pool.map(lambda name: _said(pythons[name], "load", *folders), pythons), strict=True))
    root = default_environment_root()
    registries = {name: registry_of(environment, root) for name, environment in environments.items()}
    wrong, tally = [], Counter[tuple[str, str]]()
    memory = CodeMemory()
    for path in sorted(path for part in folders for path in part.glob("*.pt")):
        for release, found in _predicted(path, registries, memory).items():
            message = " ".join(said[release][str(path)].split())
            expected = Prediction.FAILS if message else Prediction.LOADS
            prediction = found.prediction.value if isinstance(found, StaticVerdict) else "not judged"
            tally[prediction, "refused" if message else "loaded"] += 1
            if prediction != expected:
                why = _why(found)
                wrong.append(
                    f"{path.parent.name}/{path.stem} in {release}: {prediction}: {why}; torch: {message[:200] or 'loaded'}"
                )
    counts = ", ".join(f"{name} {len(texts) - len(failed)}" for name, failed in zip(pythons, made, strict=True))
    print(f"{len(texts)} modules, of which were saved: {counts}")
    print(", ".join(f"{prediction}/{happened} {number}" for (prediction, happened), number in sorted(tally.items())))
    return wrong


def _predicted(
    path: Path, registries: Mapping[str, OperatorRegistry], memory: CodeMemory
) -> dict[str, StaticVerdict | str]:
    """Return what is predicted of each release as the new one, the one that wrote the file being the old one."""
    try:
        with files.opened(str(path)) as source:
            facts = read_artifact(source, str(path), memory=memory)
    except CannotRead as error:
        return dict.fromkeys(registries, error.text)
    found: dict[str, StaticVerdict | str] = {}
    for release, registry in registries.items():
        other = next(name for name in (path.parent.name, *registries) if name != release)
        found[release] = predict(facts, {"old": registries[other], "new": registry}).get("new", facts.format.value)
    return found


def _why(found: StaticVerdict | str) -> str:
    return found if isinstance(found, str) else "; ".join(finding.words for finding in deciding(found)[:2])


def _said(python: str, what: str, *folders: Path) -> dict[str, str]:
    command: Sequence[str] = (python, "-s", "-W", "ignore", str(PROGRAM), what, *map(str, folders))
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr[-2000:]
    print(f"  {what} in {Path(python).parents[1].name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
