"""The corpus: architectures of libraries exported in each release, loaded in each by plain torch and predicted by the gate.

What has been done is kept in files, and a run goes on with what is not: a chunk of one exporter's artifacts is exported,
loaded, predicted, judged and deleted before the next begins, so that little disk is used.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons, verified_python
from tests.corpus.releases import PAIRS, RELEASES, SHIPPED, Release

PROJECT: Final = Path(__file__).resolve().parents[2]
INSIDE: Final = Path(__file__).with_name("inside")
SEED: Final = 39
LONGEST_S: Final = 7200.0
NAMESPACES: Final = ("torchvision", "torchaudio")
"""Operators that these libraries register; artifacts that call them are also loaded with the library."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Lane:
    """Where a corpus is made.

    Attributes:
        folder: of environments, of chunks in the making, and of results.
        judged_bytes: of larger artifacts no status is asked: hours of copying would tell about the same operators.
        chunk: architectures that are exported, asked about and deleted together. More of them import torch less often
            and take more disk.
        niceness: of every process.
        pythons: ready-made interpreters, by release; others are built.
        registries: where the gate keeps what it knows of releases, if not in ``folder``.
    """

    folder: Path
    judged_bytes: int = 40_000_000
    chunk: int = 16
    niceness: int = 15
    pythons: Mapping[str, str] = field(default_factory=dict)
    registries: Path | None = None

    @property
    def results(self) -> Path:
        """Where each finished chunk is one file."""
        return self.folder / "results"

    def python(self, release: Release) -> str:
        """Return the interpreter of a release with its libraries, built on first use."""
        if release.torch in self.pythons:
            return self.pythons[release.torch]
        home = self.folder / "env" / release.torch
        python = home / "bin" / "python"
        if not (home / "ready").exists():
            shutil.rmtree(home, ignore_errors=True)
            base = verified_python(release.python, find_pythons())
            self.run([uv(), "venv", "-q", "--no-project", "--python", base, str(home)])
            install = [uv(), "pip", "install", "-q", "--no-progress", "--python", str(python)]
            self.run([*install, *release.requirements])
            if release.packages:
                self.run([*install, "--no-deps", *release.packages])
            (home / "ready").touch()
        return str(python)

    def run(self, command: Sequence[str], *, accepted: Iterable[int] = (0,)) -> tuple[int, str]:
        """Return the exit code and output of a command.

        Raises:
            RuntimeError: it ended with a code that is not among ``accepted``; the end of what it said.
        """
        environ = {
            **os.environ,
            "PYTHONHASHSEED": "0",
            "TORCHSCRIPT_GATE_ENVS": str(self.registries or self.folder / "gate"),
            "TORCHSCRIPT_GATE_ANSWERS_GB": "0",
        }
        done = subprocess.run(
            ["nice", "-n", str(self.niceness), *command],
            cwd=PROJECT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        if done.returncode not in accepted:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return done.returncode, done.stdout

    def ask(self, release: Release, program: str, *words: str, jobs: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Return what a program of ``inside/`` says of each job, in a release."""
        if not jobs:
            return []
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        (work / "jobs.json").write_text(json.dumps(list(jobs)))
        script = [self.python(release), "-s", "-W", "ignore", str(INSIDE / program)]
        _, said = self.run([*script, *(word.format(jobs=work / "jobs.json", folder=work) for word in words)])
        return [json.loads(line) for line in said.splitlines() if line.startswith('{"job"')]

    def gate(self, *words: str, releases: Iterable[Release], accepted: Iterable[int]) -> tuple[int, str]:
        """Return the exit code and output of a command of the gate, which uses the lane's own environments."""
        given = [word for release in releases for word in ("--env", f"{release.torch}={self.python(release)}")]
        return self.run([sys.executable, "-m", "harness", *words, *given], accepted=accepted)


def uv() -> str:
    """Return the path of uv, which the session installs."""
    path = find_uv()
    assert path is not None
    return path


# -------------------------------------------------------------------------------------------------------- what there is


def drawn(lane: Lane, release: Release) -> list[tuple[str, str]]:
    """Return what a release's libraries have as (library, name), drawn so that each beginning is a fair sample."""
    stored = lane.folder / "names" / f"{release.torch}.json"
    if not stored.exists():
        script = [lane.python(release), "-s", "-W", "ignore", str(INSIDE / "exporting.py"), "list", *release.exported]
        listed = lane.run(script)[1].splitlines()[-1]
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(listed)
    names: dict[str, list[str]] = json.loads(stored.read_text())
    everything = [(random.Random(f"{SEED} {lib} {name}").random(), lib, name) for lib in names for name in names[lib]]
    return [(library, name) for _, library, name in sorted(everything)]


def there(lane: Lane) -> dict[str, dict[str, int]]:
    """Return how many architectures each library has in each release that has been asked."""
    files = {release.torch: lane.folder / "names" / f"{release.torch}.json" for release in RELEASES}
    return {
        torch: {library: len(names) for library, names in json.loads(file.read_text()).items()}
        for torch, file in files.items()
        if file.exists()
    }


def done(lane: Lane, release: Release) -> list[Json]:
    """Return the records of what has been exported in a release, or could not be."""
    files = sorted(lane.results.glob(f"{release.torch}-*.json"))
    return [record for file in files for record in json.loads(file.read_text())]


def all_done(lane: Lane) -> list[Json]:
    """Return the records of all releases, in the order of releases and names."""
    records = [record for file in sorted(lane.results.glob("*.json")) for record in json.loads(file.read_text())]
    place = {exporter: number for number, exporter in enumerate((*(release.torch for release in RELEASES), "unknown"))}
    return sorted(records, key=lambda record: (place[record["exporter"]], record["library"], record["name"]))


def next_chunk(lane: Lane, release: Release, libraries: Sequence[str]) -> list[tuple[str, str]]:
    """Return the first drawn architectures of a release that nothing is known of; of ``libraries`` where it is not empty."""
    known = {(record["library"], record["model"]) for record in done(lane, release)}
    rest = [item for item in drawn(lane, release) if item not in known]
    return [item for item in rest if not libraries or item[0] in libraries][: lane.chunk]


# ------------------------------------------------------------------------------------------------------------ one chunk


def make_chunk(lane: Lane, release: Release, architectures: Sequence[tuple[str, str]]) -> list[Json]:
    """Return a record of each artifact of these, exported in ``release``; it is kept, and the archives are deleted."""
    kept = lane.results / f"{release.torch}-{len(list(lane.results.glob(f'{release.torch}-*.json'))):03}.json"
    jobs = [job_of(library, model, how) for library, model in architectures for how in ("script", "trace")]
    return _made(lane, kept, release, release.torch, jobs, [pair for pair in PAIRS if pair[0] == release.torch])


def shipped(lane: Lane) -> list[Json]:
    """Return a record of each archive that a package ships."""
    kept = lane.results / "shipped-000.json"
    if kept.exists():
        known: list[Json] = json.loads(kept.read_text())
        return known
    jobs = []
    for package, version, file in SHIPPED:
        folder = lane.folder / "shipped" / f"{package}-{version}"
        if not (folder / file).exists():
            lane.run([uv(), "pip", "install", "-q", "--no-deps", "--target", str(folder), f"{package}=={version}"])
        jobs.append({**job_of("shipped", f"{package} {version}", "shipped"), "file": str(folder / file)})
    return _made(lane, kept, release_of("2.1.2"), "unknown", jobs, PAIRS)


def _made(
    lane: Lane,
    kept: Path,
    release: Release,
    exporter: str,
    jobs: Sequence[Json],
    pairs: Sequence[tuple[str, str]],
) -> list[Json]:
    started = time.monotonic()
    folder = lane.folder / "work" / "artifacts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    said = {line["job"]: line for line in lane.ask(release, "exporting.py", "{jobs}", str(folder), jobs=jobs)}
    records = [_record(release, exporter, job, said.get(job["name"], {"ended": "nothing said"})) for job in jobs]
    written = [record for record in records if record["bytes"]]
    paths = {record["name"]: folder / f"{record['name']}.pt" for record in written}
    examine(lane, paths, written, RELEASES, pairs)
    for record in written:
        record["seconds"] = round((time.monotonic() - started) / len(written), 1)
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(".new")
    temporary.write_text(json.dumps(records, indent=1))
    temporary.rename(kept)
    shutil.rmtree(folder)
    return records


def job_of(library: str, model: str, how: str) -> Json:
    """Return an order for ``exporting.py``."""
    return {"name": re.sub(r"\W", "_", f"{library}_{model}_{how}"), "library": library, "model": model, "how": how}


def _record(release: Release, exporter: str, job: Json, said: Mapping[str, Any]) -> Json:
    why = "" if said.get("bytes") else _first_line(said)
    facts = {key: job[key] for key in ("name", "library", "model", "how")}
    version = said.get("version") or release.version_of(job["library"]) or ""
    return dict(facts, exporter=exporter, version=version, bytes=said.get("bytes", 0), not_exported=why)


def _first_line(said: Mapping[str, Any]) -> str:
    """Return what went wrong in a job, or "" if nothing did."""
    if said["ended"] != "done":
        return str(said["ended"])
    kind = said.get("error") or said.get("call_error")
    if kind is None:
        return ""
    lines = [line.strip() for line in str(said["message"]).splitlines() if line.strip()]
    return f"{kind}: {lines[0] if lines else ''}"[:300]


def examine(
    lane: Lane,
    paths: Mapping[str, Path],
    records: Sequence[Json],
    releases: Sequence[Release],
    pairs: Sequence[tuple[str, str]],
    libraries: Sequence[str] = NAMESPACES,
) -> None:
    """Add to each record what loading in each release comes to, what was predicted, and statuses for ``pairs``.

    Artifacts that call operators of a library are asked about again with it, where it is one of ``libraries`` and ``releases`` have it.
    """
    for record in records:
        record.update(loads={}, predicted={}, statuses={}, with_library={})
    _load_and_predict(lane, paths, records, releases, "", lambda record: record)
    for library in libraries:
        having = [release for release in releases if release.version_of(library)]
        needing = [r for r in records if any(f" {library}::" in why for why in r["loads"].values())]
        if having:
            for record in needing:
                record["with_library"] = {"library": library, "loads": {}, "predicted": {}, "statuses": {}}
            _load_and_predict(lane, paths, needing, having, library, lambda record: record["with_library"])
    for old, new in pairs:
        _judge(lane, release_of(old), release_of(new), paths, records)


def release_of(torch: str) -> Release:
    """Return the release of a version of torch."""
    return next(release for release in RELEASES if release.torch == torch)


def _load_and_predict(
    lane: Lane,
    paths: Mapping[str, Path],
    records: Sequence[Json],
    releases: Sequence[Release],
    library: str,
    place: Callable[[Json], Json],
) -> None:
    if not records:
        return
    jobs = [{"name": r["name"], "path": str(paths[r["name"]]), "library": library} for r in records]
    by_name = {record["name"]: place(record) for record in records}
    for release in releases:
        for line in lane.ask(release, "oracle.py", "load", "{jobs}", "{folder}", jobs=jobs):
            by_name[line["job"]]["loads"][release.torch] = _first_line(line)
    for start in range(0, len(releases), 2):
        sides = dict(zip(("old", "new"), releases[start : start + 2], strict=False))
        words = ["inspect", *(str(paths[r["name"]]) for r in records), "--format", "json"]
        words += [word for side, release in sides.items() for word in (f"--{side}", release.torch)]
        words += ["--library", library] if library else []
        _, said = lane.gate(*words, releases=sides.values(), accepted=(0, 1, 4))
        for file in json.loads(said)["files"]:
            for side, release in sides.items():
                by_name[Path(file["path"]).stem]["predicted"][release.torch] = _verdict(file, side)


def _verdict(file: Mapping[str, Any], side: str) -> list[str]:
    """Return a prediction, and why."""
    verdict = (file.get("verdicts") or {}).get(side)
    if verdict is None:
        return ["unreadable", json.dumps(file.get("failure"))[:300]]
    weights = {"will not load": ("stops",), "unknown": ("doubt",)}.get(verdict["prediction"], ())
    why = [
        f"{item['kind']} {item['subject']}: {item['text']}" for item in verdict["findings"] if item["weight"] in weights
    ]
    return [verdict["prediction"], why[0][:300] if why else ""]


# ------------------------------------------------------------------------------------------------------------- statuses


def _judge(lane: Lane, old: Release, new: Release, paths: Mapping[str, Path], records: Sequence[Json]) -> None:
    """Add the gate's status and what plain torch says, of the pair ``old`` -> ``new``, to each record small enough."""
    small = [record for record in records if record["bytes"] <= lane.judged_bytes]
    for library in ("", *NAMESPACES):
        chosen = [r for r in small if not library or r["with_library"].get("library") == library]
        if library and not (old.version_of(library) and new.version_of(library)):
            continue
        truths = _answers(lane, old, new, paths, chosen, library)
        statuses = _statuses(lane, old, new, paths, chosen, library)
        for record in chosen:
            target = record["with_library"] if library else record
            target["statuses"][f"{old.torch} -> {new.torch}"] = {**statuses[record["name"]], **truths[record["name"]]}


def _answers(
    lane: Lane, old: Release, new: Release, paths: Mapping[str, Path], records: Sequence[Json], library: str
) -> dict[str, Json]:
    """Return of each artifact what went wrong in the old and in the new release, and how far the answers are apart."""
    answers = lane.folder / "work" / "answers"
    shutil.rmtree(answers, ignore_errors=True)
    answers.mkdir(parents=True)
    said: dict[str, dict[str, str]] = {}
    for turn, release in (("reference", old), ("again", old), ("answers", new)):
        jobs = [
            {
                "name": record["name"],
                "path": str(paths[record["name"]]),
                "inputs": str(paths[record["name"]].with_suffix(".inputs.pt")),
                "answers": str(answers / f"{record['name']}.{turn}"),
                "library": library,
            }
            for record in records
        ]
        lines = lane.ask(release, "oracle.py", "call", "{jobs}", "{folder}", jobs=jobs)
        said[turn] = {line["job"]: _first_line(line) for line in lines}
    fine = [r["name"] for r in records if not any(said[turn].get(r["name"], "nothing said") for turn in said)]
    jobs = [{"name": name, **{turn: str(answers / f"{name}.{turn}") for turn in said}} for name in fine]
    apart = {line["job"]: line for line in lane.ask(new, "oracle.py", "compare", "{jobs}", "{folder}", jobs=jobs)}
    shutil.rmtree(answers)
    return {
        r["name"]: {
            "old_error": said["reference"].get(r["name"], "") or said["again"].get(r["name"], ""),
            "new_error": said["answers"].get(r["name"], ""),
            "noise": apart.get(r["name"], {}).get("noise"),
            "difference": apart.get(r["name"], {}).get("difference"),
        }
        for r in records
    }


def _statuses(
    lane: Lane, old: Release, new: Release, paths: Mapping[str, Path], records: Sequence[Json], library: str
) -> dict[str, Json]:
    """Return the status and reason of each artifact's row in a run of the gate."""
    if not records:
        return {}
    reports = lane.folder / "work" / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    words = ["compat", "--artifacts", *(str(paths[record["name"]]) for record in records)]
    words += ["--old", old.torch, "--new", new.torch, *(("--library", library) if library else ())]
    words += [
        "--runtime",
        "python",
        "--until",
        "correctness",
        "--latency",
        "off",
        "--explain",
        "0",
        "--jobs",
        "1",
        "--out",
        str(reports),
    ]
    code, _ = lane.gate(*words, releases=(old, new), accepted=range(256))
    report = next(iter(reports.glob("*/report.json")), None)
    rows = {} if report is None else {r["model"]: r for r in json.loads(report.read_text())["judgement"]["rows"]}
    missing = {"status": f"no row, exit code {code}", "reason": ""}
    found = {record["name"]: rows.get(record["name"], missing) for record in records}
    shutil.rmtree(reports, ignore_errors=True)
    return {name: {"status": row["status"], "reason": str(row["reason"])[:300]} for name, row in found.items()}
