"""Answers that outlive their run: an unchanged question is answered by an earlier one, a changed one never."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.tensors.outputs import same_answers
from harness.checks.hang import watchdog
from harness.core.devices import TABLE
from harness.core.environment import Environment, EnvSpec, Fingerprint
from harness.core.models import ArtifactKind, GivenArtifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.probe import Deadline, ProbeRequest, ProbeResult, Script, ServingProfile, WorkerLimits
from harness.environments.cache import ANSWERS
from harness.probing.kept_answers import (
    ENTRY,
    SIZE_VARIABLE,
    KeptAnswers,
    kept_bytes,
    may_outlive,
    question,
    state_of,
)
from harness.probing.runner import ZygoteRunner
from harness.probing.verification import legible_outputs
from harness.store import codec, probe_files
from tests.programs import cli, one_defect, stub
from tests.programs.cli import Line

PLENTY = 10**9
STATES = {"old": "torch-2.1.2-0123456789ab", "new": "torch-2.6.0-0123456789ab"}
LIMITS = WorkerLimits(memory_bytes=10**9, memory_is_derived=True)


class Runs:
    """Runs in one environment that share a cache; each has its own folder of probes."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.folder = folder
        self.root = folder / "cache"
        self.runners = [self._runner(environment, number) for number in range(2)]

    def _runner(self, environment: Environment, number: int) -> ZygoteRunner:
        sides = {"old": environment, "new": environment}
        return ZygoteRunner(sides, self.folder / f"run-{number}", watchdog)

    def kept(self, name: str, *, fresh: bool = False, most_bytes: int = PLENTY) -> KeptAnswers:
        return KeptAnswers(self.root, STATES, run=name, fresh=fresh, most_bytes=most_bytes)

    def first(self, request: ProbeRequest, *, lasting: bool = True) -> str:
        self.runners[0].kept = self.kept("first")
        result = self.runners[0](request, lasting=lasting)
        return result.directory

    def second(self, request: ProbeRequest, *, lasting: bool = True, **how: Any) -> str:
        """Return the earlier run that has answered, empty where the second was asked itself."""
        self.runners[1].kept = self.kept("second", **how)
        return self.runners[1](request, lasting=lasting).earlier

    @property
    def entries(self) -> list[Path]:
        return sorted(path.parent for path in (self.root / ANSWERS).glob(f"*/*/{ENTRY}"))


@pytest.fixture
def runs(tmp_path: Path, stub_environment: Environment) -> Iterator[Runs]:
    runs = Runs(tmp_path, stub_environment)
    with closing(runs.runners[0]), closing(runs.runners[1]):
        yield runs
    assert [runner.unreaped for runner in runs.runners] == [[], []]


def asking(folder: Path, **program: object) -> ProbeRequest:
    artifact = replace(stub.write_artifact(folder, "model", **program), inputs_digest="of the inputs")
    return replace(stub.run_request([artifact], stub.PATIENT), limits=LIMITS)


def test_an_unchanged_question_is_answered_by_an_earlier_run(runs: Runs, artifacts: Path) -> None:
    first = Path(runs.first(asking(artifacts, answer=[1, 2])))
    moved = asking(artifacts / "elsewhere", answer=[1, 2])
    more_memory = replace(moved, limits=replace(LIMITS, memory_bytes=2 * 10**9))
    assert runs.second(more_memory) == "first"
    (result,) = runs.runners[1].finished
    assert Path(result.directory).parent == runs.folder / "run-1"
    assert result.outcomes == {Outcome.COMPLETED}
    assert same_answers(legible_outputs(result.directory, "model"), legible_outputs(first, "model"))
    assert legible_outputs(result.directory, "model").calls
    assert runs.runners[1]._zygotes == {}


def test_what_a_run_took_over_it_still_knows_when_it_is_resumed(runs: Runs, artifacts: Path) -> None:
    request = asking(artifacts)
    runs.first(request)
    assert runs.second(request) == "first"
    runs.runners[1].kept = None
    again = runs.runners[1](request)
    assert (again.earlier, Path(again.directory).parent) == ("first", runs.folder / "run-1")


def of_artifact(**change: Any) -> Callable[[ProbeRequest], ProbeRequest]:
    def changed(request: ProbeRequest) -> ProbeRequest:
        (run,) = request.runs
        return replace(request, runs=(replace(run, artifact=replace(run.artifact, **change)),))

    return changed


def of_request(**change: Any) -> Callable[[ProbeRequest], ProbeRequest]:
    return lambda request: replace(request, **change)


CHANGES: dict[str, Callable[[ProbeRequest], ProbeRequest]] = {
    "another artifact": of_artifact(digest="another"),
    "other inputs": of_artifact(inputs_digest="other"),
    "another name": of_artifact(model="another"),
    "another seed": of_artifact(seed=1),
    "more calls": lambda request: replace(request, runs=(replace(request.runs[0], schedule=(("example", 4),)),)),
    "in float64": lambda request: replace(request, runs=(replace(request.runs[0], precision="float64"),)),
    "another side": of_request(side="new"),
    "another torch": of_request(environment="another"),
    "another worker": of_request(worker_digest="another"),
    "a repeat": of_request(repeat=1),
    "more threads": of_request(profile=ServingProfile(intra_op_threads=2)),
    "a switch": of_request(profile=ServingProfile(switches={"profiling": False})),
    "numerics": of_request(profile=ServingProfile(numerics={"mkldnn": False})),
    "a variable": of_request(profile=ServingProfile(env={"ATEN_CPU_CAPABILITY": "default"})),
    "a limit": of_request(limits=replace(LIMITS, file_bytes=1)),
    "a limit of memory that somebody wrote": of_request(limits=replace(LIMITS, memory_is_derived=False)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_question_is_another_one(artifacts: Path, tmp_path: Path, change: str) -> None:
    request = asking(artifacts)
    kept = KeptAnswers(tmp_path, STATES, run="run", fresh=False, most_bytes=PLENTY)
    place, changed = kept._place(request), kept._place(CHANGES[change](request))
    assert place is not None and changed is not None
    assert place != changed


def test_another_environment_is_another_place(artifacts: Path, tmp_path: Path) -> None:
    request = asking(artifacts)
    kept, changed, unknown = (
        KeptAnswers(tmp_path, states, run="run", fresh=False, most_bytes=PLENTY)._place(request)
        for states in (STATES, {"old": "torch-2.1.2-ffffffffffff"}, {})
    )
    assert kept != changed
    assert unknown is None


def test_a_changed_artifact_is_asked_in_a_process(runs: Runs, artifacts: Path) -> None:
    runs.first(asking(artifacts, answer=[1]))
    assert runs.second(asking(artifacts / "changed", answer=[2])) == ""
    (result,) = runs.runners[1].finished
    assert legible_outputs(result.directory, "model").calls


@pytest.mark.parametrize(
    "program",
    [{"load": "segfault"}, {"load": "raise_error"}, {"calls": {"1": "raise_error"}}, {"calls": {"1": "segfault"}}],
)
def test_a_failure_is_always_of_its_own_run(runs: Runs, artifacts: Path, program: dict[str, object]) -> None:
    request = asking(artifacts, **program)
    runs.first(request)
    (result,) = runs.runners[0].finished
    assert result.models[0].failed
    assert runs.second(request) == ""
    assert runs.entries == []


def test_what_must_be_seen_anew_is_neither_used_nor_left(runs: Runs, artifacts: Path) -> None:
    request = asking(artifacts)
    runs.first(request, lasting=False)
    assert runs.entries == []
    assert runs.second(request) == ""
    runs.first(replace(request, repeat=1))
    assert len(runs.entries) == 2
    assert runs.second(replace(request, repeat=1), lasting=False) == ""


def test_a_fresh_run_asks_and_leaves_its_answer_in_place_of_the_last(runs: Runs, artifacts: Path) -> None:
    request = asking(artifacts)
    runs.first(request)
    assert runs.second(request, fresh=True) == ""
    (entry,) = runs.entries
    assert b'"second"' in (entry / ENTRY).read_bytes()


@pytest.mark.parametrize(
    "deadline", [Deadline(load_s=1e-9, call_s=9.0, total_s=9.0), Deadline(load_s=9.0, call_s=1e-9, total_s=9.0)]
)
def test_an_answer_that_came_later_than_is_waited_for_now_is_none(
    runs: Runs, artifacts: Path, deadline: Deadline
) -> None:
    request = asking(artifacts)
    folder = Path(runs.first(request)).parent / "other"
    assert runs.kept("second").take(replace(request, deadline=deadline), folder) is None
    assert runs.kept("second").take(request, folder) is not None


def spoil(entry: Path) -> None:
    path = entry / probe_files.PACKED
    path.write_bytes(path.read_bytes()[:-30] + bytes(30))


def add_foreign(entry: Path) -> None:
    text = (entry / ENTRY).read_text()
    (entry / ENTRY).write_text(text.replace(probe_files.PACKED, "../../elsewhere.zip"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "spoilt": spoil,
    "gone": lambda entry: (entry / probe_files.PACKED).unlink(),
    "of another version": lambda entry: (entry / ENTRY).write_text("{}"),
    "torn": lambda entry: (entry / ENTRY).write_bytes(b""),
    "leads elsewhere": add_foreign,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_answer_is_asked_again(runs: Runs, artifacts: Path, damage: str) -> None:
    request = asking(artifacts)
    runs.first(request)
    (entry,) = runs.entries
    DAMAGES[damage](entry)
    assert runs.second(request) == ""
    assert runs.runners[1].finished[0].outcomes == {Outcome.COMPLETED}
    (again,) = runs.entries
    assert b'"second"' in (again / ENTRY).read_bytes()


def test_a_probe_whose_model_has_written_files_is_not_kept(runs: Runs, artifacts: Path) -> None:
    runs.first(asking(artifacts, calls={"1": "write_by_bare_names"}))
    assert [entry.name for entry in runs.entries if (entry / "note").exists()] == []
    assert all(set(os.listdir(entry)) <= {ENTRY, probe_files.PACKED} for entry in runs.entries)


def test_an_answer_that_would_push_out_most_others_is_not_kept(runs: Runs, artifacts: Path) -> None:
    request = asking(artifacts)
    runs.first(request)
    (entry,) = runs.entries
    size = sum(path.stat().st_size for path in entry.rglob("*"))
    runs.kept("small", fresh=True, most_bytes=4 * size).keep(replace(request, repeat=1), runs.runners[0].finished[0])
    assert runs.entries == [entry]


def test_what_was_used_least_recently_goes_first(runs: Runs, artifacts: Path) -> None:
    request = asking(artifacts)
    requests = [replace(request, repeat=number) for number in range(3)]
    for each in requests:
        runs.first(each)
    for entry in runs.entries:
        os.utime(entry / ENTRY, (1e9, 1e9))
    size = sum(path.stat().st_size for path in runs.entries[0].rglob("*"))
    assert runs.second(requests[1]) == "first"
    runs.kept("later").keep(replace(request, repeat=3), runs.runners[0].finished[0])
    assert len(runs.entries) == 4
    later = runs.kept("later", most_bytes=int(2.5 * size))
    later.prune()
    answered = [later.take(each, runs.folder / "later") is not None for each in requests]
    assert answered == [False, True, False]
    assert len(runs.entries) == 2


def test_what_a_killed_run_left_behind_is_removed(runs: Runs, artifacts: Path) -> None:
    runs.first(asking(artifacts))
    (entry,) = runs.entries
    dead, alive = (entry.with_name(f".{entry.name}.{pid}.1.part") for pid in (2**22 + 1, os.getpid()))
    dead.mkdir()
    alive.mkdir()
    runs.runners[0].kept.prune()  # type: ignore[union-attr]
    assert (dead.exists(), alive.exists()) == (False, True)
    dead.mkdir()
    runs.runners[0].kept.prune()  # type: ignore[union-attr]
    assert dead.exists()  # it was looked for a moment ago


@pytest.mark.parametrize(("value", "kept"), [("", 2 * 10**9), ("0", 0), ("0.5", 5 * 10**8), ("much", 0), ("inf", 0)])
def test_a_variable_says_how_much_is_kept(monkeypatch: pytest.MonkeyPatch, value: str, kept: int) -> None:
    monkeypatch.setenv(SIZE_VARIABLE, value)
    assert kept_bytes() == kept


def test_a_file_that_a_variable_names_is_part_of_the_question(artifacts: Path, tmp_path: Path) -> None:
    preloaded = tmp_path / "preloaded.so"
    preloaded.write_text("a")
    request = replace(asking(artifacts), profile=ServingProfile(env={"LD_PRELOAD": str(preloaded)}))
    kept = KeptAnswers(tmp_path, STATES, run="run", fresh=False, most_bytes=PLENTY)
    before = kept._place(request)
    assert kept._place(request) == before
    preloaded.write_text("other")
    assert kept._place(request) != before


def adopting(**given: Any) -> ProbeRequest:
    artifact = GivenArtifact(path="/run/given/m-0.pt", **given)
    declaration = ModelDeclaration(
        name="m", package_root="", source="", source_digest="of bytes", how="file", given=artifact
    )
    return ProbeRequest(verb="adopt", side="old", environment="e", deadline=stub.PATIENT, declaration=declaration)


def test_a_given_file_is_asked_about_by_its_content(artifacts: Path) -> None:
    request = adopting(inputs="/here/m.npz")
    assert may_outlive(request)
    declaration = request.declaration
    assert declaration is not None and declaration.given is not None
    elsewhere = replace(declaration, given=replace(declaration.given, path="/other/m.pt", inputs="/there/n.npz"))
    assert question(replace(request, declaration=elsewhere)) == question(request)
    assert question(adopting(inputs="/here/m.pt")) != question(request)
    assert question(adopting(inputs="/here/m.npz", methods=("score",))) != question(request)


NOT_LASTING: dict[str, Callable[[ProbeRequest], ProbeRequest]] = {
    "a script": of_request(script=Script(threads=((),))),
    "the C++ worker": of_request(runtime="libtorch"),
    "beside others": of_request(beside=1),
    "a GPU": of_request(device=TABLE["cuda"]),
    "an export": of_request(verb="export"),
    "a program": of_artifact(kind=ArtifactKind.PROGRAM),
    "an artifact without a digest": of_artifact(digest=""),
    "inputs without a digest": of_artifact(inputs_digest=""),
    "requests in Python": lambda _: adopting(inputs="/here/m.py"),
    "a file by its time": lambda _: replace(
        adopting(),
        declaration=replace(adopting().declaration, source="models.toml"),  # type: ignore[type-var]
    ),
}


@pytest.mark.parametrize("what", NOT_LASTING)
def test_what_depends_on_more_than_its_key_says_is_not_kept(artifacts: Path, what: str) -> None:
    request = asking(artifacts)
    assert may_outlive(request)
    assert not may_outlive(NOT_LASTING[what](request))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    (site / "torch" / "lib").mkdir(parents=True)
    (site / "torch" / "lib" / "libtorch.so").write_text("built")
    (site / "numpy.py").write_text("")
    return site


def state(site: Path, **change: Any) -> str | None:
    fingerprint = Fingerprint(torch="2.6.0+cpu", cpu="one", **change.pop("says", {}))
    spec = EnvSpec(name="mine", libraries=change.pop("libraries", ()))
    return state_of(Environment(name="mine", interpreter="/python", spec=spec), fingerprint, str(site / "torch"))


def test_an_environment_is_another_one_where_anything_of_it_has_changed(site: Path) -> None:
    before = state(site)
    assert before is not None and before.startswith("torch-2.6.0+cpu-")
    assert state(site) == before
    (site / "torch" / "__pycache__").mkdir()
    (site / "torch" / "__pycache__" / "made.pyc").write_text("at import")
    assert state(site) == before
    states = {before, state(site, says={"isa": "AVX2"}), state(site, libraries=("ops",))}
    (site / "torch" / "lib" / "libtorch.so").write_text("BUILT")
    os.utime(site / "torch" / "lib" / "libtorch.so", ns=(0, 1))
    states.add(state(site))
    (site / "pillow.py").write_text("")
    states.add(state(site))
    assert len(states) == 5
    assert None not in states


def test_an_environment_of_which_a_change_would_not_be_seen_keeps_nothing(site: Path) -> None:
    assert state(site, libraries=("ops",)) is not None
    assert state(site, libraries=("/ops/libops.so",)) is None
    (site / "__editable__.ops.pth").write_text("/home/me/ops")
    assert state(site, libraries=("ops",)) is None
    assert state(site) is not None
    assert state(site.parent / "none") is None


def test_a_second_run_asks_what_the_first_was_asked_only_where_it_must(
    tmp_path: Path,
    stub_environment: Environment,
    other_stub_environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "root"
    stub.compiled_once(root)
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(root))
    monkeypatch.setenv(SIZE_VARIABLE, "1")
    old, new = stub_environment.interpreter, other_stub_environment.interpreter
    line = Line(tmp_path / "project", old, new)
    for _ in range(2):
        with one_defect.planted():
            line.run("-k", "well_a or other_answer_in_new", "--scenario", "alone")
    folders = [path.parent for path in sorted(line.reports.glob("*/report.json"))]
    first, second = map(cli.read_report, folders)
    assert (first["earlier_answers"], list(second["earlier_answers"])) == ({}, [first["run"]])
    assert "--fresh asks again" in " ".join(second["notes"])
    assert cli.judgement_of(first) == cli.judgement_of(second)
    earlier = [
        (result.side, result.models[0].model)
        for folder in probe_files.folders(folders[1] / "probes")
        if probe_files.earlier_run(folder)
        and (result := codec.read_json(folder / probe_files.RESULT, ProbeResult, read=probe_files.read_result))
    ]
    names = ("well_a", "other_answer_in_new")
    assert set(earlier) == {(side, name) for side in ("old", "new") for name in names}
    assert second["earlier_answers"] == {first["run"]: len(earlier)}
