"""Finishes a reproducer: its folder written, run in both releases under the settings of each, and told as an issue."""

import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.core.diagnosis import Issue, Reproducer
from harness.core.environment import EnvSpec, Fingerprint
from harness.core.measurement import RatioEstimate
from harness.core.probe import Failure, ProbeResult, ServingProfile
from harness.environments.operator_libraries import is_file
from harness.machine import pool
from harness.probing.facts import Effects, Provisioned, profile_of
from harness.probing.requests import worker_limits
from harness.search.reproduce.files import (
    CASE,
    ISSUE,
    START_S,
    TENSORS,
    ProgramRun,
    Tensors,
    remove_reproducer,
    run_reproducer,
    run_snippet,
    write_reproducer,
)
from harness.search.reproduce.issue import upstream_issue
from harness.search.reproduce.snippet import operator_snippet, snippet
from harness.store import codec
from harness.store.json import JsonError, from_json
from harness.verdict.reproduction import confirms, telling_ratio

FOLDER = "reproducers"
SNIPPET = "snippet.py"
ENVIRONMENTS = "environments.json"
SHOWN = ("torch", "git_revision", "cuda", "cudnn", "gpu", "driver", "python", "cpu", "isa", "glibc", "libraries")
# Where a folder is run elsewhere a slower machine must not look like a hang.
ELSEWHERE_S = 30.0
# Of the releases, for the ratio that a program of a slow call remembers. Processes differ, and one more checks it.
TURNS = 2
# Of what shows now and then; the search has asked the old release by itself.
CLEAN_RUNS = 5
MEASURED = re.compile(r"^measured (\{.*\})$", re.MULTILINE)
SIDES = ("old", "new")
WORDS = {True: "on", False: "off"}
NOT_SLOWER = "timed by itself it does not show the slowdown that the run measured"
NOT_TOLD = "it does not tell the two releases apart on the machine where it was made"
NOT_SHOWN = "it does not show on the machine where it was made"
# The old release under the new one's settings: whether the release makes it, or what it is set to.
CROSSED = "crossed"


@dataclass(frozen=True, kw_only=True)
class Concurrency:
    """As what a server brings a model up, where it fails only there.

    Attributes:
        threads: how many load and call it at the same time; ``shared``: one module of them all.
        pools: (intra-op, inter-op) sizes in place of the profile's.
        words: what it does there; ``failure``: the error, where it is one.
        runs: how many clean runs say that it is gone.
    """

    threads: int
    shared: bool = False
    pools: tuple[int, int] | None = None
    words: str = ""
    failure: Failure | None = None
    runs: int = 1


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a reproducer is made of.

    Attributes:
        kind: whose program, see ``harness/search/reproduce/files.py``; ``label``: what it is about.
        case: what the program is told beside what every case has (see ``common``).
        archive: that goes into the folder, None where none does.
        wait_s: how long a phase may last here; ``runs``: how many clean runs make it good.
        silent: settings that the recorded run could not make, by side: they are left out.
        concurrency: how the program brings it up; such a folder is kept only if it tells the two releases apart.
        steady: how much slower the run measured the call to be; likewise.
        by_itself: whether the new release shows it whatever the old one does: they are not told apart by it.
    """

    kind: str
    label: str
    case: Mapping[str, Any]
    tensors: Tensors
    issue: Issue
    archive: Path | None = None
    outside: Path | None = None
    wait_s: float
    runs: int = 1
    silent: Mapping[str, frozenset[str]] = field(default_factory=dict)
    concurrency: Concurrency | None = None
    steady: RatioEstimate | None = None
    by_itself: bool = False


def folder_name(label: str, index: int) -> str:
    return f"{FOLDER}/{index + 1}-{re.sub(r'[^A-Za-z0-9_.]+', '_', label)[:60].strip('_')}"


def finished(draft: Draft, facts: Provisioned, effects: Effects, *, index: int) -> Reproducer:
    """Return the reproducer, in the folder ``reproducers/INDEX+1-LABEL`` of the run; both releases have run it."""
    name = folder_name(draft.label, index)
    folder = effects.folder(name)
    profiles = {side: profile_of(side, facts.plan) for side in SIDES}
    concurrency = draft.concurrency
    if concurrency is not None and concurrency.pools is not None:
        intra_op, inter_op = concurrency.pools
        profiles = {
            side: replace(profile, intra_op_threads=intra_op, inter_op_threads=inter_op)
            for side, profile in profiles.items()
        }
    case = {**common(draft, facts, effects, profiles), **draft.case}
    write_reproducer(folder, draft.kind, case, draft.tensors, archive=draft.archive)
    environments = {side: facts.fingerprints[side] for side in SIDES}
    versions = {
        side: {name: getattr(fingerprint, name) for name in SHOWN} for side, fingerprint in environments.items()
    }
    effects.run_dir.write(f"{name}/{ENVIRONMENTS}", codec.pretty(versions))
    program = _Program(draft=draft, case=case, folder=folder, facts=facts, effects=effects)
    slow = case["symptom"] == {"what": "latency"}
    if slow:
        case["latency"] = telling_ratio(*program.measured(), draft.steady)
        if case["latency"] is None:
            remove_reproducer(folder)
            run = f" ({draft.steady.words})" if draft.steady is not None else ""
            return Reproducer(operator=draft.label, note=f"{NOT_SLOWER}{run}")
        effects.run_dir.write(f"{name}/{CASE}", codec.pretty(case))
    answers = program.runs(jobs=1 if slow else facts.plan.settings.jobs)
    if (slow or concurrency is not None) and not _tells(answers):
        remove_reproducer(folder)
        return Reproducer(operator=draft.label, old=answers["old"].words, new=answers["new"].words, note=NOT_TOLD)
    note = ("" if answers["new"].code == 1 else NOT_SHOWN) if draft.by_itself else _note(answers)
    text = ""
    if answers["new"].code == 1 and concurrency is None and not draft.by_itself:
        code, wait_s = draft.issue.code, draft.wait_s
        text = snippet_that_shows(case, folder, facts, effects, code=code, tensors=draft.tensors, wait_s=wait_s)
    issue = replace(
        draft.issue,
        answers=tuple((_where(side, environments, case["profiles"]), run.words) for side, run in answers.items()),
        settings=_settings(case["profiles"]["new"]),
        by_settings=_between(case["profiles"]) if _makes_it(answers) else (),
        snippet=text,
        shown=not note if draft.by_itself else _tells(answers),
        files=_files(draft),
    )
    effects.run_dir.write(f"{name}/{ISSUE}", upstream_issue(issue).encode())
    return Reproducer(operator=draft.label, folder=name, old=answers["old"].words, new=answers["new"].words, note=note)


def common(
    draft: Draft, facts: Provisioned, effects: Effects, profiles: Mapping[str, ServingProfile]
) -> dict[str, Any]:
    """Return what the program of every reproducer is told (``docs/formats/reproducer.md``)."""
    return {
        "format": 1,
        "title": draft.label,
        "good": facts.fingerprints["old"].torch,
        "bad": facts.fingerprints["new"].torch,
        "runs": draft.runs,
        "deadline_s": max(ELSEWHERE_S, draft.wait_s),
        "device": facts.plan.runs_on.torch,
        "profiles": {
            side: _profile(profile, effects.environments[side].spec, draft.silent.get(side, frozenset()))
            for side, profile in profiles.items()
        },
    }


def _profile(profile: ServingProfile, spec: EnvSpec, silent: frozenset[str]) -> dict[str, Any]:
    return {
        "intra_op_threads": profile.intra_op_threads,
        "inter_op_threads": profile.inter_op_threads,
        "switches": {name: value for name, value in profile.switches.items() if name not in silent},
        "env": dict(profile.env),
        "numerics": {name: value for name, value in profile.numerics.items() if name not in silent},
        "libraries": [Path(name).name if is_file(name) else name for name in spec.libraries],
    }


def not_made(probe: ProbeResult | None) -> frozenset[str]:
    """Return the settings that a probe could not make: what was recorded was recorded without them."""
    switches = probe.data.get("switches", {}) if probe is not None else {}
    return frozenset(
        name
        for name, entry in switches.items()
        if not entry.get("supported") or entry.get("read_back") != entry.get("requested")
    )


@dataclass(frozen=True, kw_only=True)
class _Program:
    draft: Draft
    case: Mapping[str, Any]
    folder: Path
    facts: Provisioned
    effects: Effects

    def runs(self, *, jobs: int) -> dict[str, ProgramRun]:
        combinations = {"old": ("old", "old"), "new": ("new", "new")}
        if self.case["profiles"]["old"] != self.case["profiles"]["new"]:
            combinations[CROSSED] = ("old", "new")
        runs = {name: self.draft.runs if name == "new" else min(self.draft.runs, CLEAN_RUNS) for name in combinations}

        def run(name: str) -> ProgramRun:
            return self._run(*combinations[name], runs[name])

        return dict(zip(runs, pool.each(run, list(runs), jobs=jobs), strict=True))

    def measured(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the seconds measured in both releases, which take turns alone: a slow machine slows both."""
        turns_of: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for _ in range(TURNS):
            for side in SIDES:
                seconds = MEASURED.search(self._run(side, side, 1).printed)
                turns_of[side].append(_seconds(seconds[1]) if seconds else {})
        old, new = (
            {name: statistics.geometric_mean(turn[name] for turn in turns) for name in turns[0]} if all(turns) else {}
            for turns in turns_of.values()
        )
        return old, new

    def _run(self, side: str, profile: str, runs: int) -> ProgramRun:
        draft, environment = self.draft, self.effects.environments[side]
        arguments = ["--profile", profile, "--deadline", f"{draft.wait_s:g}", "--runs", str(runs)]
        for library in environment.spec.libraries:
            arguments += ["--library", library] if is_file(library) else []
        arguments += ["--artifact", str(draft.outside)] if draft.outside is not None else []
        limit_s = START_S + draft.runs * max(ELSEWHERE_S, 4 * draft.wait_s)
        limits = worker_limits(self.facts.plan.settings.limits, "run")
        return run_reproducer(self.folder, environment.interpreter, arguments, limits=limits, limit_s=limit_s)


def _seconds(text: str) -> dict[str, float]:
    """Return the seconds by name that a reproducer has printed; empty where it was the model that printed."""
    try:
        return from_json(text.encode(), dict[str, float])
    except JsonError:
        return {}


def _note(answers: Mapping[str, ProgramRun]) -> str:
    if not _tells(answers):
        return NOT_TOLD
    if _makes_it(answers):
        return "the settings make it, not the release: the old one does the same under the new one's"
    return ""


def _tells(answers: Mapping[str, ProgramRun]) -> bool:
    return (answers["old"].code, answers["new"].code) == (0, 1)


def _makes_it(answers: Mapping[str, ProgramRun]) -> bool:
    return CROSSED in answers and answers[CROSSED].code == 1


def _between(profiles: Mapping[str, Any]) -> tuple[str, ...]:
    before = _settings(profiles["old"])
    return tuple(text for text in _settings(profiles["new"]) if text not in before)


def _where(side: str, environments: Mapping[str, Fingerprint], profiles: Mapping[str, Any]) -> str:
    release = environments["old" if side == CROSSED else side].torch
    if profiles["old"] == profiles["new"]:
        return f"torch {release}"
    return f"torch {release}, --profile {'old' if side == 'old' else 'new'}"


def _settings(profile: Mapping[str, Any]) -> tuple[str, ...]:
    pools = tuple(f"{name}: {profile[name]}" for name in ("intra_op_threads", "inter_op_threads"))
    named = {**profile["switches"], **profile["numerics"]}
    return (
        *pools,
        *(f"{name}: {WORDS[value] if isinstance(value, bool) else value}" for name, value in named.items()),
        *(f"{name}={value}" for name, value in profile["env"].items()),
        *(f"operator library {name}" for name in profile["libraries"]),
    )


def _files(draft: Draft) -> tuple[tuple[str, str], ...]:
    return (
        *([("minimal.pt", "the archive")] if draft.archive is not None else []),
        (CASE, "what is called, under which settings, and what the good release did"),
        (TENSORS, "the bytes of its tensors"),
    )


def snippet_that_shows(
    case: Mapping[str, Any],
    folder: Path,
    facts: Provisioned,
    effects: Effects,
    *,
    code: str,
    tensors: Tensors,
    wait_s: float,
) -> str:
    """Return ``snippet.py`` if it was seen to show the symptom, else empty; ``wait_s``: how long it may be silent."""
    what = case["symptom"]["what"]
    if "operator" in case:
        text = operator_snippet(case, tensors.data)
    else:
        text = snippet(code, case, tensors.data) if code and what in ("hang", "crash", "error", "values") else ""
    if not text:
        return ""
    program = effects.run_dir.write(f"{folder.relative_to(effects.run_dir.path)}/{SNIPPET}", text.encode())
    limits = worker_limits(facts.plan.settings.limits, "run")

    def run(side: str) -> tuple[str, str]:
        return run_snippet(program, effects.environments[side].interpreter, limits=limits, wait_s=wait_s)

    # Numbers are wrong only beside the right ones.
    sides = ["new", "old"] if what in ("values", "any") else ["new"]
    ended = dict(zip(sides, pool.each(run, sides, jobs=facts.plan.settings.jobs), strict=True))
    how, printed = ended["new"]
    old_how, old = ended.get("old", ("", ""))
    if not confirms(case["symptom"], {"how": how, "said": printed, "old_how": old_how, "old": old}):
        program.unlink()
        return ""
    return text
