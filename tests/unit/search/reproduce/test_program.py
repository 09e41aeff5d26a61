"""Reproducers of archives: what their folders are told, and what is made of what the program says."""

import json
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.builders.verdicts import mitigation
from harness.search.reproduce import files
from harness.search.reproduce.folder import Concurrency
from harness.search.reproduce.program import (
    clean_runs,
    label_of,
    reproduce_load,
    reproduce_program,
    reproduce_whole,
    with_reproducer,
)
from harness.core.diagnosis import BisectAnswer, Bisection, Culprit, Reproducer, Symptom, TracedNode
from harness.core.verdict import Mitigation
from harness.core.environment import Environment, EnvSpec
from harness.core.measurement import RatioEstimate
from harness.core.models import InputSet
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ProbeRequest, ProbeResult, ServingProfile
from harness.probing.facts import Decided, Effects, OldAnswers
from harness.search.delta_debugging import repeats_needed
from harness.store.run_folder import RunDir
from harness.artifacts.tensors.outputs import Outputs, SideEffects
from tests.unit.builders.stages import Runner, artifact, effects, facts_of, probed, result
from tests.unit.builders.stub_torch import stub_interpreter
from tests.unit.builders.verdicts import measured, ratio

GOOD = "return 2 * x"
REFUSES = "raise RuntimeError('Unknown builtin op: aten::gone.')"
CODE = "class M(Module):\n  def forward(self: __torch__.M,\n    x: int) -> int:\n    return torch.gone(x)\n"
UNKNOWN = Failure(type="RuntimeError", message="Unknown builtin op: aten::gone.", phase="load")


class World:
    """A run folder with one artifact of model ``m``, and two interpreters with a stub for torch."""

    def __init__(self, folder: Path, *, bodies: tuple[str, str], loads: tuple[str, str] = ("pass", "pass")) -> None:
        self.run = folder / "run"
        self.inputs = self.run / "probes" / "k" / "inputs"
        self.inputs.mkdir(parents=True)
        line = {"set": "example", "method": "forward", "tree": ["tuple", [["int", 3]]]}
        (self.inputs / "tensors.jsonl").write_text(json.dumps(line) + "\n")
        (self.inputs / "tensors.bin").write_bytes(b"")
        self.archive = self.inputs.parent / "m.pt"
        with zipfile.ZipFile(self.archive, "w") as stream:
            stream.writestr("m/version", "3")
            stream.writestr("m/code/m.py", CODE)
        interpreters = {
            side: stub_interpreter(folder / side, sys.executable, body, load, version)
            for side, body, load, version in zip(("old", "new"), bodies, loads, ("1", "2"), strict=True)
        }
        self.environments = {
            side: Environment(name=side, interpreter=path, spec=EnvSpec(name=side))
            for side, path in interpreters.items()
        }

    def facts(self, *, settings: Mapping[str, Any] | None = None, **changes: Any) -> Decided:
        facts = facts_of("m", settings={"calls": 2, **(settings or {})}, **changes)
        own = artifact("m", path=str(self.archive), inputs_dir=str(self.inputs), input_sets=(InputSet(name="example"),))
        golden = Outputs(calls={("example", 0): ["int", 6], ("example", 1): ["int", 6]})
        return replace(
            facts,
            exports={"m": replace(facts.exports["m"], artifact=own)},
            baselines={"m": OldAnswers(results=(result(),), golden=golden)},
        )

    def effects(self, answer: ProbeResult | None = None, libraries: Sequence[str] = ()) -> Effects:
        def answers(request: ProbeRequest) -> ProbeResult:
            plain = probed(result(), side=request.side)
            return answer if answer is not None and request.side == "new" else plain

        environments = {
            side: replace(item, spec=replace(item.spec, libraries=tuple(libraries)))
            for side, item in self.environments.items()
        }
        made = effects(Runner(answers))
        return replace(made, environments=environments, run_dir=cast(Any, RunDir(self.run)))

    def text(self, made: Reproducer, name: str) -> str:
        assert made.folder, made.note
        return (self.run / made.folder / name).read_text()

    def case(self, made: Reproducer) -> Any:
        return json.loads(self.text(made, "case.json"))


@pytest.fixture
def numbers(tmp_path: Path) -> World:
    """A world in which the new release answers otherwise."""
    return World(tmp_path, bodies=(GOOD, "return 7"))


def test_the_whole_artifact_is_reproduced_where_nothing_smaller_is_known(numbers: World) -> None:
    made = reproduce_whole("m", numbers.facts(), numbers.effects(), index=3, why="The search was ended.")
    assert made.folder == "reproducers/4-the_whole_artifact"
    assert made.old == "every load and call ends as recorded (exit code 0)"
    assert made.new.startswith("call 0 of example: output: expected 6, got 7")
    assert made.note == ""
    case = numbers.case(made)
    assert case["symptom"] == {"what": "values"}
    assert [(one["set"], one["calls"], one["expected"]) for one in case["requests"]] == [
        ("example", 2, [["int", 6], ["int", 6]])
    ]
    issue = numbers.text(made, "issue.md")
    assert "Not ready to be posted" not in issue
    assert "torch.gone(x)" in issue
    assert "The search was ended." in issue
    assert json.loads(numbers.text(made, "environments.json"))["old"]["torch"] == "2.1.2"


def test_threads_and_pools_are_those_it_is_brought_up_with_and_only_what_shows_it_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path, bodies=(GOOD, "import threading; return 2 * x if threading.active_count() < 3 else 1 / 0"))
    raised = Failure(type="ZeroDivisionError", message="division by zero", phase="call", input_set="example", call=0)
    concurrency = Concurrency(threads=3, shared=True, pools=(1, 2), words="raises, shared module", failure=raised)
    made = reproduce_whole("m", world.facts(), world.effects(), symptom=Symptom.ERROR, concurrency=concurrency)
    case = world.case(made)
    assert (case["threads"], case["shared"], case["symptom"]["type"]) == (3, True, "ZeroDivisionError")
    pools = {(one["intra_op_threads"], one["inter_op_threads"]) for one in case["profiles"].values()}
    assert pools == {(1, 2)}
    assert made.old.endswith("(exit code 0)") and made.new.endswith("(exit code 1)")
    assert "raises, shared module" in world.text(made, "issue.md")
    lone = replace(concurrency, threads=1)
    gone = reproduce_whole("m", world.facts(), world.effects(), symptom=Symptom.ERROR, concurrency=lone)
    assert not gone.folder and gone.note.startswith("it does not tell")
    assert not (world.run / "reproducers").exists()


def test_arguments_that_a_call_changes_are_compared_as_the_old_release_left_them(numbers: World) -> None:
    facts = numbers.facts()
    changed = {"input[0]": ["int", 3], "input[1]['k']": ["int", 8], "module": ["int", 9]}
    golden = Outputs(
        calls={("example", 0): ["int", 6], ("example", 1): ["int", 6]},
        effects={("example", 1): SideEffects(changed=changed)},
    )
    facts = replace(facts, baselines={"m": OldAnswers(results=(result(),), golden=golden)})
    made = reproduce_whole("m", facts, numbers.effects())
    (request,) = numbers.case(made)["requests"]
    assert request["after"] == [{}, {"0": ["int", 3], "1": None}]
    assert made.old.endswith("(exit code 0)")
    golden = replace(golden, effects={("example", 0): SideEffects(changed={"input[0]": ["int", 4]})})
    facts = replace(facts, baselines={"m": OldAnswers(results=(result(),), golden=golden)})
    told = reproduce_whole("m", facts, numbers.effects()).old
    assert told == "call 0 of example: input[0]: expected 4, got 3 (exit code 1)"


def test_every_answer_ends_in_a_folder(numbers: World) -> None:
    answer = Bisection(model="m", old="old", new="new", answer=BisectAnswer.OPERATOR)
    without = Reproducer(operator="aten::packed", note="takes an object")
    found = with_reproducer(replace(answer, reproducers=(without,)), numbers.facts(), numbers.effects())
    assert [made.folder for made in found.reproducers] == ["", "reproducers/2-the_whole_artifact"]
    assert "takes an object" in numbers.text(found.reproducers[1], "issue.md")
    assert with_reproducer(found, numbers.facts(), numbers.effects()) == found


def test_a_healthy_release_is_not_said_to_show_it(tmp_path: Path) -> None:
    world = World(tmp_path, bodies=(GOOD, GOOD))
    made = reproduce_whole("m", world.facts(), world.effects())
    assert made.new.endswith("(exit code 0)")
    assert "does not tell the two releases apart" in made.note
    assert "Not ready to be posted" in world.text(made, "issue.md")


def test_what_the_settings_make_is_distinguished_from_what_the_release_makes(tmp_path: Path) -> None:
    by_setting = "return 2 * x if _C.profiling else 7"
    world = World(tmp_path, bodies=(by_setting, by_setting))
    off = ServingProfile(switches={"profiling": False})
    made = reproduce_whole("m", world.facts(settings={"new_profile": off}), world.effects())
    assert (made.old[-2:], made.new[-2:]) == ("0)", "1)")
    assert made.note.startswith("the settings make it")
    issue = world.text(made, "issue.md")
    assert issue.startswith("# [JIT] A TorchScript program answers otherwise with profiling: off\n")
    assert "| torch 2.1.2, --profile new | call 0" in issue


def test_settings_that_the_recorded_run_could_not_make_are_left_out(numbers: World) -> None:
    profile = ServingProfile(switches={"texpr_fuser": False, "profiling": True})
    told = {
        "texpr_fuser": {"requested": False, "supported": False},
        "profiling": {"requested": True, "read_back": True, "supported": True},
    }
    facts = numbers.facts(settings={"new_profile": profile})
    facts = replace(facts, alone={"m": probed(result(), data={"switches": told})})
    case = numbers.case(reproduce_whole("m", facts, numbers.effects()))
    assert case["profiles"]["new"]["switches"] == {"profiling": True}


def test_an_archive_too_large_for_a_folder_is_named_and_still_run(
    numbers: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_ARCHIVE_BYTES", 10)
    made = reproduce_whole("m", numbers.facts(), numbers.effects())
    assert (made.old[-2:], made.new[-2:]) == ("0)", "1)")
    assert not (numbers.run / made.folder / "minimal.pt").exists()
    assert str(numbers.run) not in numbers.text(made, "case.json")


def test_operator_libraries_are_named_without_their_folders(numbers: World) -> None:
    made = reproduce_whole("m", numbers.facts(), numbers.effects(libraries=("/secret/libmyops.so", "json")))
    assert numbers.case(made)["profiles"]["new"]["libraries"] == ["libmyops.so", "json"]
    assert "/secret" not in numbers.text(made, "case.json") + numbers.text(made, "issue.md")


def hanging(body: str, folder: Path) -> tuple[World, Reproducer]:
    world = World(folder, bodies=(GOOD, body), loads=("pass", "os.environ['LOADED'] = '1'"))
    made = reproduce_program(culprit(world), Symptom.HANG, world.facts(), world.effects(), index=0, model="m")
    assert made.new.endswith("(exit code 1)")
    return world, made


@pytest.mark.slow
def test_a_program_without_files_is_kept_where_it_shows_it(tmp_path: Path) -> None:
    world, made = hanging("time.sleep(60)", tmp_path)
    assert "def forward(x: int) -> int:\n  return torch.gone(x)" in world.text(made, "snippet.py")
    assert "By itself, as seen in torch 2.6.0" in world.text(made, "issue.md")


def test_a_program_without_files_is_dropped_where_it_does_not(tmp_path: Path) -> None:
    world, made = hanging("os.environ.get('LOADED') and time.sleep(60); return 2 * x", tmp_path)
    assert not (world.run / made.folder / "snippet.py").exists()
    assert "By itself" not in world.text(made, "issue.md")


def test_damaged_requests_are_reported_and_are_no_crash(numbers: World) -> None:
    (numbers.inputs / "tensors.jsonl").write_text("{")
    made = reproduce_whole("m", numbers.facts(), numbers.effects())
    assert made.folder == ""
    assert "recorded requests cannot be read" in made.note


def test_without_an_artifact_there_is_nothing_to_reproduce(numbers: World) -> None:
    facts = numbers.facts()
    facts = replace(facts, exports={"m": replace(facts.exports["m"], artifact=None)})
    assert "no artifact" in reproduce_whole("m", facts, numbers.effects()).note


NODE = TracedNode(place=(1,), kind="aten::gone", source="/home/jo/model.py:3", code="y = torch.gone(x)")


def culprit(world: World, **changes: Any) -> Culprit:
    places = {"artifact": "probes/k/m.pt", "inputs": "probes/k/inputs"}
    return Culprit(**{"keep": (1,), "nodes": (NODE,), "new": "answers 7", **places, **changes})


def test_a_extracted_program_is_reproduced_with_its_nodes_and_what_mitigates_it(numbers: World) -> None:
    again = Outputs(calls={})
    facts = numbers.facts()
    facts = replace(facts, baselines={"m": OldAnswers(golden=again)})
    flaky = culprit(numbers, fails=2, runs=4, minimal=False)
    mitigations = (
        mitigation("profiling off", "fusion depth 0", mitigates=True),
        mitigation("fuser off", mitigates=False),
        mitigation("serialize loading", mitigates=True),
        mitigation("freeze", "oneDNN off", mitigates=True),
    )
    made = reproduce_program(
        flaky, Symptom.CRASH, facts, numbers.effects(), index=0, model="m", mitigations=mitigations
    )
    assert made.operator == "aten::gone"
    case = numbers.case(made)
    assert case["runs"] == repeats_needed(fails=2, judged=4)
    assert case["symptom"] == {"what": "crash"}
    issue = numbers.text(made, "issue.md")
    assert "| `aten::gone` | 1 |  | `.../model.py:3` | `y = torch.gone(x)` |" in issue
    assert "- answers 7" in issue
    options = "--switch profiling=false --switch fusion_depth=0"
    assert f"- profiling off + fusion depth 0 (`python reproduce.py {options}`)\n- serialize loading\n" in issue
    assert "- freeze + oneDNN off\n" in issue  # half of a mitigation shows none
    assert "before it was known whether each node is needed" in issue
    assert "/home/jo" not in issue


def test_what_is_refused_is_only_loaded_and_by_its_words(tmp_path: Path) -> None:
    world = World(tmp_path, bodies=(GOOD, GOOD), loads=("pass", REFUSES))
    refused = probed(result(outcome=Outcome.LOAD_ERROR, failure=UNKNOWN))
    made = reproduce_load(culprit(world, inputs=""), world.facts(), world.effects(refused), model="m")
    assert made.old == "it loads (exit code 0)"
    assert made.new == "load raises RuntimeError: Unknown builtin op: aten::gone. (exit code 1)"
    case = world.case(made)
    assert case["requests"] == []
    assert case["symptom"] == {"what": "error", "phase": "load", "type": "RuntimeError", "text": UNKNOWN.message}
    title = "# [JIT] A TorchScript program of aten::gone does not load in torch 2.6.0 (fine in 2.1.2)"
    assert world.text(made, "issue.md").startswith(title)


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the program time a few blocks only."""
    whole = files.script_of("program")
    assert "\nROUNDS, BLOCK_S" in whole
    text = whole.replace("\nROUNDS, BLOCK_S, MOST_S = 15,", "\nROUNDS, BLOCK_S, MOST_S = 3,")
    monkeypatch.setattr(files, "script_of", lambda kind: text)


def slow_world(folder: Path, steady: RatioEstimate, *, call_s: tuple[float, float], load: str = "pass") -> Any:
    """Return a world whose calls take so long in either release, and its facts: what the run measured is ``steady``."""
    world = World(folder, bodies=tuple(f"time.sleep({s}); return 2 * x" for s in call_s), loads=("pass", load))  # type: ignore[arg-type]
    return world, world.facts(latency={"m": measured(steady)})


SLOW_TO_PREPARE = "global manual_seed; manual_seed = lambda seed: time.sleep(0.01)"


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize(
    ("call_s", "load"),
    [((0.002, 0.002), SLOW_TO_PREPARE), ((0.002, 0.004), "pass")],
    ids=["only the arguments take longer to make", "another slowdown than that of the run"],
)
@pytest.mark.slow
def test_a_gap_that_is_not_the_runs_makes_no_reproducer(tmp_path: Path, call_s: tuple[float, float], load: str) -> None:
    world, facts = slow_world(tmp_path, ratio(1.04, 1.06), call_s=call_s, load=load)
    made = reproduce_whole("m", facts, world.effects(), symptom=Symptom.LATENCY)
    assert (made.folder, list(world.run.glob("reproducers/*"))) == ("", [])
    assert made.note.endswith("does not show the slowdown that the run measured (+5.0 % [+4.0, +6.0])")


@pytest.mark.parametrize(("fails", "runs", "clean"), [(1, 1, 1), (4, 4, 1), (1, 3, 13), (3, 10, 11)])
def test_the_rarer_it_shows_the_more_clean_runs_are_asked_for(fails: int, runs: int, clean: int) -> None:
    assert clean_runs(Culprit(keep=(), nodes=(), artifact="", inputs="", fails=fails, runs=runs)) == clean


def test_a_program_is_named_by_its_operators() -> None:
    nodes = [TracedNode(place=(index,), kind=f"aten::op{index % 5}") for index in range(10)]
    assert label_of(nodes) == "10 nodes (aten::op0, aten::op1, aten::op2 and 2 more)"
    assert label_of(nodes[:1]) == "aten::op0"
    assert label_of([]) == "program"
