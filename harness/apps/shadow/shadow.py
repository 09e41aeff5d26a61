"""Runs a team's server in both releases, life by life in turns, and puts together what it did."""

import contextlib
import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from harness.apps.attach.attach import attach
from harness.apps.attach.find import MOST_PROCESSES, Asked, NotThere
from harness.apps.attach.probe import probe
from harness.artifacts.server_file import PLACEHOLDER, read_server
from harness.artifacts.traffic import TrafficWriter, read_header, read_traffic
from harness.artifacts.traffic_sample import Sample, sample
from harness.checks.shadow.compare import compare
from harness.checks.shadow.server import Prepared, build
from harness.config.command_words import ENV, from_anywhere, words_of
from harness.core.environment import Environment
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.measurement import NEW, OLD
from harness.core.shadow import Compared, Life, Looked, ServerSettings, Shadow, ShadowSide
from harness.core.traffic import TrafficRequest
from harness.machine import clock, processes
from harness.machine.files import emptied
from harness.machine.packages import require
from harness.probing.provision import build_environments
from harness.project import Project, shown_path
from harness.report.formats import SHADOW, Shown
from harness.store.run_folder import RunDir
from harness.verdict.attach import hung
from harness.verdict.load import load_rows
from harness.verdict.shadow import decision_of, rows_of

SUBFOLDER: Final = "shadow"
REQUESTS: Final = "requests.jsonl"
WINDOW_S: Final = 1.0
CLIENT: Final = ("aiohttp", "httptools", "uvloop")
LIVES: Final = 2
FIND_TORCH: Final = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"


def shadow(project: Project, server: Path, *, requests: Path | None = None, most: int = 1000) -> Shadow:
    """Return what became of the server in both releases; logs and the answer lie in ``shadow`` where runs are kept.

    Args:
        requests: file of requests; None: none is sent, and answers are not judged.
        most: how many of them are sent, of every kind.

    Raises:
        ConfigError: ``server`` or ``requests`` is wrong, or the server's command cannot be executed.
        EnvironmentUnavailable: a release cannot be installed, or aiohttp is not.
    """
    begin_ns = clock.monotonic_ns()
    settings = read_server(server)
    if not any("{port}" in text for text in (*settings.command, *settings.environment.values())):
        raise ConfigError(
            f"{server}: neither command nor environment has {{port}}", "say where the server takes its port"
        )
    chosen = _chosen(requests, most, settings)
    require("shadow", CLIENT, "server")
    specs = dict(zip((OLD, NEW), project.sides(), strict=True))
    same = (specs[OLD].release, specs[OLD].interpreter) == (specs[NEW].release, specs[NEW].interpreter)
    with RunDir.shared(project.reports / SUBFOLDER) as store:
        (store.path / REQUESTS).unlink(missing_ok=True)
        project.progress.stage("environments")
        extras = {side: replace(spec, extras=(*spec.extras, *settings.requirements)) for side, spec in specs.items()}
        environments = build_environments(extras, project.builder)
        sides = {
            side: _prepared(settings, side, environment, emptied(store.path / side))
            for side, environment in environments.items()
        }

        asked = partial(_asked, requests, chosen, store.path / REQUESTS)
        facts = {
            side: ShadowSide(
                name=specs[side].name,
                environment=settings.environment,
                folder=shown_path(sides[side].folder),
            )
            for side in sides
        }
        result = Shadow(
            old=facts[OLD],
            new=facts[NEW],
            settings=settings,
            requests_file=shown_path(requests) if requests is not None else "",
            requests=len(chosen.lines),
            of=chosen.of,
            kinds=chosen.kinds,
            chosen_kinds=chosen.chosen_kinds,
            same=same,
            again=_again(project, server, requests, most),
            folder=shown_path(store.path),
        )
        result = _run(result, sides, asked, requests, project)
        project.progress.finish()
        result = replace(result, wall_s=(clock.monotonic_ns() - begin_ns) * 1e-9)
        rows = rows_of(result)
        loaded = load_rows(result.load, result.load_failure)
        decision = decision_of((*rows, *loaded), same=same)
        result = replace(result, rows=rows, load_rows=loaded, decision=decision.value)
        for name, data in SHADOW.rendered_files(result, Shown(directory=result.folder)):
            store.write(name, data)
    return result


def _again(project: Project, server: Path, requests: Path | None, most: int) -> str:
    named = [(f"--{side}", str(project.overrides[side])) for side in (OLD, NEW) if side in project.overrides]
    named += [(ENV, from_anywhere(ENV, each, str(Path.cwd()))) for each in project.environments]
    named += [("--requests", str(requests.absolute())), ("--most", str(most))] if requests is not None else []
    same = ["--allow-same-torch"] if project.settings.allow_same_torch else []
    return project.command("shadow", str(server.absolute()), *words_of(named), *same)


def _chosen(requests: Path | None, most: int, settings: ServerSettings) -> Sample:
    """Return which requests are sent; every line of the file is checked before any server starts."""
    if requests is None:
        return Sample(lines=(), of=0, kinds=0, chosen_kinds=0)
    header = read_header(requests)
    if header.protocol and header.protocol != settings.protocol:
        raise ConfigError(
            f"{requests}: requests of protocol {header.protocol}, and {settings.file} has {settings.protocol}",
            "name the server's own requests, or mend protocol",
        )
    chosen = sample(read_traffic(requests), most)
    if not chosen.of:
        raise ConfigError(f"{requests} has no request", "record some, or write one by hand: docs/formats/requests.md")
    if settings.load is not None and settings.load.recorded and len({each.at for each in read_traffic(requests)}) == 1:
        raise ConfigError(
            f"{requests}: all requests arrived at one moment, and {settings.file}.load.arrivals is recorded",
            'record some, or write arrivals = "random"',
        )
    return chosen


def _asked(requests: Path | None, chosen: Sample, kept: Path) -> Iterator[TrafficRequest]:
    """Yield the chosen requests with the lines that they have in their file; ``kept``: where a choice lies."""
    if requests is None:
        return
    if len(chosen.lines) == chosen.of:
        yield from read_traffic(requests)
        return
    if not kept.exists():
        wanted = set(chosen.lines)
        with TrafficWriter(kept, read_header(requests)) as writer:
            for request in read_traffic(requests):
                if request.line in wanted:
                    writer.write(request)
    for request, line in zip(read_traffic(kept), chosen.lines, strict=True):
        yield replace(request, line=line)


def _run(
    result: Shadow,
    sides: Mapping[str, Prepared],
    requests: Callable[[], Iterable[TrafficRequest]],
    file: Path | None,
    project: Project,
) -> Shadow:
    from harness.checks.shadow.client import Answers  # noqa: PLC0415  aiohttp is an extra
    from harness.checks.shadow.life import Shadowing, live  # noqa: PLC0415

    settings, facts = result.settings, {OLD: result.old, NEW: result.new}
    if settings.build:
        for side in sides:
            project.progress.stage(f"{facts[side].name}: build")
            facts[side] = replace(facts[side], build=build(settings, sides[side]))
            if any(each.build is not None and each.build.code != 0 for each in facts.values()):
                return replace(result, old=facts[OLD], new=facts[NEW])
    run = Shadowing(
        settings=settings,
        requests=requests,
        look=lambda pids: _look(project, pids),
        limit_bytes=_limit(project),
        progress=project.progress,
    )
    with contextlib.ExitStack() as opened:
        answers: dict[str, Answers] = {}
        if result.requests:
            for side, prepared in sides.items():
                kept = Answers(prepared.folder / "answers.bin", result.requests)
                answers[side] = opened.enter_context(contextlib.closing(kept))
        lives: dict[str, list[Life]] = defaultdict(list)
        for number, side in itertools.product(range(1, LIVES + 1), sides):
            if any(each.ended is not None for each in (*lives[OLD], *lives[NEW])):
                break  # what did not live to its stop has said what there is to say
            life, command = live(run, sides[side], facts[side].name, number, answers.get(side))
            lives[side].append(life)
            facts[side] = replace(facts[side], lives=tuple(lives[side]), command=tuple(command))
        for side, kept in answers.items():
            statuses = Counter(str(status) for status in kept.statuses if status)
            facts[side] = replace(facts[side], statuses=statuses, failures=kept.failures)
        compared = Compared()
        if answers and lives[NEW]:
            project.progress.stage("compare answers", result.requests)
            old, new = (answers[side].passes() for side in (OLD, NEW))
            compared = compare(requests(), old, new, settings, lambda: project.progress.step("compare"))
    result = replace(result, old=facts[OLD], new=facts[NEW], answers=compared)
    if settings.load is None or file is None or not _may_be_loaded(result):
        return result
    from harness.apps.shadow.load import put_under_load  # noqa: PLC0415  reaches aiohttp, which is an extra

    load, failure = put_under_load(run, sides, file)
    return replace(result, load=load, load_failure=failure)


def _may_be_loaded(result: Shadow) -> bool:
    """Whether both servers live until they are stopped: what ends before would end under load."""
    return all(side.lives and all(life.ended is None for life in side.lives) for side in (result.old, result.new))


def _limit(project: Project) -> int | None:
    limit_gb = project.settings.limits.memory_gb
    return None if limit_gb is None else int(limit_gb * 1e9)


def _prepared(settings: ServerSettings, side: str, environment: Environment, folder: Path) -> Prepared:
    python = Path(environment.interpreter).absolute()
    words = (*settings.command, *settings.build, *settings.environment.values())
    names = {match[1] for word in words for match in PLACEHOLDER.finditer(word)}
    values = {
        "python": str(python),
        "models": settings.models,
        "threads": str(settings.threads),
        "side": side,
        "release": environment.spec.release or environment.name,
        "dir": str(folder),
    }
    if "libtorch" in names:
        values["libtorch"] = _torch_of(python)
    own = {"VIRTUAL_ENV": str(python.parents[1])} if (python.parents[1] / "pyvenv.cfg").exists() else {}
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return Prepared(values=values, folder=folder, inherited={"PATH": path, "PYTHONUNBUFFERED": "1", **own})


def _torch_of(python: Path) -> str:
    found = processes.run((str(python), "-I", "-c", FIND_TORCH), limit_s=60)
    if found.returncode != 0:
        raise EnvironmentUnavailable(
            f"{python} has no torch, and {{libtorch}} stands for its folder", "install it there"
        )
    return found.stdout.strip()


def _look(project: Project, pids: Collection[int]) -> Looked:
    """Return what the processes of a server do; of a hang, with stacks."""
    asked = Asked("the server", tuple(pids)[:MOST_PROCESSES])
    try:
        look = probe(asked, WINDOW_S) if asked.pids else None
    except NotThere:
        look = None
    if look is None:
        return Looked()
    worst = look.processes[0]
    ports = {port for process in look.processes if process.traffic is not None for port in process.traffic.ports}
    frames: tuple[str, ...] = ()
    if hung(look):
        with contextlib.suppress(NotThere):
            stopped = attach(project, Asked(asked.words, (worst.pid,)), window_s=WINDOW_S).processes[0]
            frames = next((group.frames for group in stopped.groups if group.frames), ())
    return Looked(
        pid=worst.pid,
        state=worst.state.value,
        why=worst.why.value,
        phase=worst.phase,
        hung=hung(look),
        ports=tuple(sorted(ports)),
        frames=frames,
    )
