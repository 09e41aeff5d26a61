"""Planning, resuming and rerunning, up to where the first process would start."""

import datetime
import io
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.verdict.causes import with_causes
from harness.core.measurement import CommonSlowdown
from harness.core.verdict import CellVerdict, Finding, Fix, Ruled
from harness.core.report import Explained
from harness.store import explanations
from harness.report.json.report import dump_report
from tests.unit.builders.planted_causes import DEADLOCK, hang, run_of, slower, undecided
from harness.apps.upgrade import execute as running, plan as planning
from harness.apps.rerun import rerun
from harness.apps.report.files import read_report
from harness.apps.gate.gate import gate
from harness import project
from harness.project import Project
from harness.core.models import ModelDeclaration
from harness.core.devices import CPU, TABLE, Device
from harness.core.plan import Cell, DEFAULT_SCENARIOS, Plan, Settings
from harness.artifacts.declarations import PLANTED_DEFECT_SCENARIOS
from harness.serving.scenarios import INITIALIZATIONS, SCENARIOS
from harness.core.outcome import Status
from tests.unit.builders.reports import blocked, ratio, verdict
from harness.core.errors import ConfigError, EnvironmentUnavailable, RunDirError, SelectionError
from harness.artifacts import fixture_folders
from harness.artifacts.given import GivenModels
from harness.machine.progress import Progress
from harness.store.run_folder import RunDir

PROJECT = Path(__file__).resolve().parents[4]
NOW = datetime.datetime(2026, 11, 21, 2, 15, tzinfo=datetime.UTC)
SIDES = {"old": "2.1.2", "new": "2.6.0"}
ASKED = ("compat", "-k", "din and not int8")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run that was planned and then interrupted."""
    return keep(planned(ASKED[2], arguments=ASKED), tmp_path)


def planned(expression: str = "din", folder: Path = PROJECT, **more: Any) -> Plan:
    """Return the plan of a run on the CPU."""
    overrides = {**SIDES, "device": "cpu", **more.pop("overrides", {})}
    return planning.make_plan(Project(folder=folder, overrides=overrides, expression=expression, **more))


def keep(plan: Plan, reports: Path, title: str = "t") -> Path:
    """Store a run that was planned and then interrupted."""
    with RunDir.create(reports, title, NOW) as run:
        run.save_plan(plan)
        return run.path


def _resume(stored: Path, *arguments: str) -> None:
    options = Project(folder=PROJECT, out=str(stored.parent), resume="last", arguments=arguments)
    running.compat(options)


@pytest.mark.parametrize("verb", ["--resume", "rerun"])
def test_going_on_with_a_run_that_holds_links_is_refused(stored: Path, verb: str) -> None:
    (stored / "probes").symlink_to(stored.parent)
    options = Project(folder=PROJECT, out=str(stored.parent))
    with pytest.raises(RunDirError, match=r"probes is a link: .* add --trust"):
        if verb == "rerun":
            rerun.rerun(options, stored.name, "din/alone")
        else:
            _resume(stored, "compat", "--resume", "last")


def test_resuming_with_another_selection_is_refused(stored: Path) -> None:
    with pytest.raises(ConfigError, match="goes on with the plan of that run"):
        _resume(stored, "compat", "--resume", "last", "-k", "dlrm")
    assert stored.exists()


def test_the_plan_holds_the_selection_the_groups_and_every_planted_defect() -> None:
    plan = planning.make_plan(Project(folder=PROJECT, overrides=SIDES, expression="din or bert", arguments=()))
    assert {model.name for model in plan.models} >= {"din", "bert"}
    assert sorted(name for members in plan.groups.values() for name in members) == sorted(
        model.name for model in plan.models
    )
    assert any(model.planted_defect is not None for model in plan.planted_defects)
    assert plan.direction == "backward"


def test_an_older_new_side_is_a_rollback() -> None:
    options = Project(folder=PROJECT, overrides={"old": "2.6.0", "new": "2.1.2"})
    assert planning.make_plan(options).direction == "forward"


def test_assignments_win_over_the_file_and_options_over_both() -> None:
    assigned = ("latency.limit=0.07", "latency.budget=thorough", "serving.numerics.quantized_engine=fbgemm")
    settings = planning.make_plan(Project(folder=PROJECT, overrides=SIDES, assignments=assigned)).settings
    assert (settings.latency.limit, settings.latency.budget, settings.latency.model_s) == (0.07, "thorough", 160.0)
    assert settings.profile.numerics == {"quantized_engine": "fbgemm"}
    assert settings.profile.intra_op_threads == 1
    both = Project(folder=PROJECT, overrides={**SIDES, "latency": "quick"}, assignments=assigned)
    assert planning.make_plan(both).settings.latency.budget == "quick"


def test_computes_in_of_an_unknown_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    text = '[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n[tool.compat.computes_in]\ndlmr = "bfloat16"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SelectionError, match="computes_in"):
        planning.make_plan(Project(folder=tmp_path))


def test_rerunning_a_cell_that_the_run_does_not_have_is_refused(stored: Path) -> None:
    with pytest.raises(SelectionError, match="has no cell din/rolling; it has alone.* of din"):
        rerun.rerun(Project(folder=PROJECT, out=str(stored.parent)), "last", "din/rolling")


def _with_changed_source(stored: Path, *names: str) -> str:
    """Store the plan as if the file of ``names`` had been another when it was read; return that file."""
    with RunDir.open(stored.parent, stored.name) as run:
        plan = run.load_plan()
        changed = [replace(item, source_digest="0" * 64) if item.name in names else item for item in plan.models]
        run.save_plan(replace(plan, models=tuple(changed)))
    return next(item.source for item in changed if item.name in names)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that would have been run."""
    plans: list[Plan] = []
    for command in (running, rerun):
        monkeypatch.setattr(command, "execute", lambda plan, *_: plans.append(plan))
    return plans


def test_resuming_after_a_fixture_changed_is_refused(stored: Path, executed: list[Plan]) -> None:
    source = _with_changed_source(stored, "din")
    with pytest.raises(ConfigError, match="changed since this run was planned") as caught:
        _resume(stored)
    assert source in caught.value.message
    assert executed == []


def test_resuming_with_the_fixtures_of_the_plan_goes_on_with_it(stored: Path, executed: list[Plan]) -> None:
    _resume(stored)
    assert [plan.notes for plan in executed] == [()]


@pytest.mark.parametrize("changed", [False, True])
def test_rerun_notes_what_it_does_not_say(stored: Path, executed: list[Plan], *, changed: bool) -> None:
    source = _with_changed_source(stored, "din") if changed else ""
    options = Project(folder=PROJECT, out=str(stored.parent))
    rerun.rerun(options, stored.name, "din/alone")
    (plan,) = executed
    assert "says nothing about the whole upgrade" in plan.notes[0]
    assert plan.notes[1:] == ((f"{source} changed since the run: this is another artifact",) if changed else ())


@pytest.mark.parametrize(("asked", "budget", "model_s"), [(None, "quick", 10.0), ("thorough", "thorough", 160.0)])
def test_latency_may_be_repeated_with_another_budget(
    tmp_path: Path, executed: list[Plan], asked: str | None, budget: str, model_s: float
) -> None:
    keep(planned("served_gru"), tmp_path)
    cell = "served_gru/latency"
    options = Project(folder=PROJECT, out=str(tmp_path), overrides={"latency": asked})
    rerun.rerun(options, "last", cell)
    latency = executed[0].settings.latency
    assert (latency.budget, latency.model_s, latency.limit) == (budget, model_s, 0.05)


class Records:
    """Golden records of some models, made on the CPU."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def names(self) -> tuple[str, ...]:
        """Return who has a record."""
        return self._names

    def record(self, model: str) -> Any:
        """Return what is asked of a record here."""
        return type("Record", (), {"device": "cpu", "profile": None})


def test_a_golden_run_keeps_the_models_that_have_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = tuple(_declaration(name) for name in ("bert_traced", "din"))
    monkeypatch.setattr(Project, "golden_store", lambda *_: Records("din"))
    asked = Project(folder=PROJECT, overrides={**SIDES, "device": "cpu"}, golden="golden")
    plan = planning.make_plan(asked, GivenModels(models=declared))
    assert [model.name for model in plan.models] == ["bert_traced", "din"]


def _declaration(name: str, **changes: Any) -> ModelDeclaration:
    fields: dict[str, Any] = {"package_root": "/p", "module": "m", "factory": name, "source": "m.py", "line": 1}
    return ModelDeclaration(name=name, source_digest="0", **{**fields, **changes})


def test_planted_defects_of_another_device_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (_declaration("cpu_bird", devices=("cpu",)), _declaration("cuda_bird", devices=("cuda",)))
    models = fixture_folders.read_fixtures(PROJECT / "fixtures" / "zoo")
    monkeypatch.setattr(
        fixture_folders,
        "read_fixtures",
        lambda folder, subfolders=True: found if folder == fixture_folders.PLANTED_DEFECTS else models,
    )
    plan = planned()
    assert [item.name for item in plan.planted_defects] == ["cpu_bird"]


@pytest.mark.parametrize("scenario", [name for name, item in INITIALIZATIONS.items() if item.on_request])
def test_what_one_scenario_alone_shows_is_planted_only_for_that_one(scenario: str) -> None:
    def planted(*scenarios: str) -> set[str]:
        options = Project(folder=PROJECT, overrides={**SIDES, "device": "cpu"}, expression="din", scenarios=scenarios)
        marks = (item.planted_defect for item in planning.make_plan(options).planted_defects)
        return {mark.scenario for mark in marks if mark is not None}

    assert planted("concurrent") == {"alone", "latency", "shared", "small_pools"}
    assert planted(scenario) - planted("concurrent") == ({scenario} & set(PLANTED_DEFECT_SCENARIOS))


def test_a_planted_is_no_model_of_a_run(tmp_path: Path) -> None:
    asked = {**SIDES, "device": "cpu", "fixtures": "fixtures/planted"}
    options = Project(folder=PROJECT, overrides=asked, expression="planted_nan", out=str(tmp_path))
    with pytest.raises(SelectionError, match="planted_nan: planted defects of the gate, which every run plants"):
        running.compat(options)
    assert not list(tmp_path.iterdir())


def test_an_ordinary_run_plants_no_corpus() -> None:
    plan = planned()
    assert {str(Path(item.source).parent) for item in plan.planted_defects} == {"fixtures/planted"}


def test_rerunning_a_latency_that_the_run_did_not_measure_is_refused(tmp_path: Path) -> None:
    keep(planned(overrides={"latency": "off"}), tmp_path)
    cell = "din/latency"
    with pytest.raises(SelectionError, match="has no cell"):
        rerun.rerun(Project(folder=PROJECT, out=str(tmp_path)), "last", cell)


# scenarios

IN_PYTHON = ("python_server", "python_keeping")


def planned_scenarios(
    *wanted: str, gpu: bool = False, folder: Path = PROJECT, monkeypatch: pytest.MonkeyPatch, **overrides: object
) -> tuple[str, ...]:
    monkeypatch.setattr(project, "is_shown", lambda device: not device.nodes or (gpu and device.nvidia))
    options = Project(folder=folder, overrides={**SIDES, **overrides}, expression="din", scenarios=wanted)
    return planning.make_plan(options).scenarios


def can(*missing: str) -> tuple[str, ...]:
    """Return all scenarios but these, in the order of the report."""
    return tuple(name for name in SCENARIOS if name not in missing)


BY_DEFAULT = (*DEFAULT_SCENARIOS, *IN_PYTHON)
PLANNED: list[tuple[tuple[str, ...], dict[str, Any], tuple[str, ...]]] = [
    ((), {}, BY_DEFAULT),
    ((), {"gpu": True}, tuple(name for name in SCENARIOS if name in (*BY_DEFAULT, "cuda_graphs"))),
    ((), {"gpu": True, "device": "cpu"}, BY_DEFAULT),
    ((), {"gpu": True, "scenarios": ["latency", "shared", "cuda_graphs"]}, ("alone", "shared", "cuda_graphs")),
    ((), {"scenarios": ["concurrent", "prefork", "exit"]}, ("alone", "concurrent", "prefork", "exit")),
    (("reinit",), {"scenarios": ["shared", "cuda_graphs"]}, ("alone", "reinit")),
    (("shared",), {"gpu": True}, ("alone", "shared")),
    (("latency", "reinit", "concurrent", "reinit"), {}, ("alone", "concurrent", "reinit")),
    *((("while_serving",), {"runtime": name}, ("alone", "while_serving", *IN_PYTHON)) for name in ("both", "python")),
    (("while_serving",), {"runtime": "libtorch"}, ("alone", "while_serving")),
    (("python_keeping",), {}, ("alone", "python_keeping")),
    *(((name,), {}, ("alone", name)) for name in ("inter_op", "small_pools")),
    (("all",), {}, can("cuda_graphs")),
    (("all",), {"gpu": True}, can("prefork", "prefork_cold")),
    (("all",), {"gpu": True, "runtime": "libtorch"}, can("prefork", "prefork_cold", *IN_PYTHON)),
    (("all",), {"runtime": "python"}, can("cuda_graphs", "inter_op", "small_pools")),
    (("all",), {"gpu": True, "runtime": "python"}, can("inter_op", "small_pools", "prefork", "prefork_cold")),
]


@pytest.mark.parametrize(("wanted", "machine", "found"), PLANNED)
def test_scenarios_are_those_that_are_wanted_and_possible_in_the_order_of_the_report(
    wanted: tuple[str, ...], machine: dict[str, Any], found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "find_compiler", lambda: "g++")
    assert planned_scenarios(*wanted, monkeypatch=monkeypatch, **machine) == found


@pytest.mark.parametrize(
    ("wanted", "machine", "said"),
    [
        (
            ("python_server",),
            {"runtime": "libtorch"},
            'python_server needs the Python worker, and runtime = "libtorch"',
        ),
        (("inter_op",), {"runtime": "python"}, "scenario inter_op needs the C"),
        (("small_pools",), {"runtime": "python"}, "scenario small_pools needs the C"),
        (("cuda_graphs",), {}, "scenario cuda_graphs needs a GPU"),
        (("all", "cuda_graphs"), {}, "scenario cuda_graphs needs a GPU"),
        ((), {"scenarios": ["shared", "cuda_graphs"]}, "scenario cuda_graphs needs a GPU"),
        (("concurrent", "concurent"), {}, "there is no scenario 'concurent'.*while_serving"),  # codespell:ignore
    ],
)
def test_a_scenario_that_is_impossible_here_is_refused(
    wanted: tuple[str, ...], machine: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "find_compiler", lambda: "g++")
    with pytest.raises(SelectionError, match=said):
        planned_scenarios(*wanted, monkeypatch=monkeypatch, **machine)


@pytest.mark.parametrize("name", ["prefork", "prefork_cold"])
def test_no_fork_can_use_the_context_of_its_parent(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    forks = {device.name: planning._impossible(name, "auto", device) for device in TABLE.values()}
    assert forks["cpu"] == ""
    assert forks["cuda"] == "forks a process that has a context on cuda, which no fork can use"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine that shows no device yet."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    (tmp_path / "dev" / "dri").mkdir(parents=True)
    return tmp_path


def chosen(name: str = "auto", *others: Device) -> Device:
    return project.chosen_device(Settings(old="", new="", device=name, devices={item.name: item for item in others}))


def test_auto_takes_an_nvidia_gpu_and_no_other_device(shown: Path) -> None:
    for node in ("kfd", "dri/card0"):
        (shown / "dev" / node).touch()
    assert chosen() is CPU
    assert (chosen("rocm"), chosen("xpu")) == (TABLE["rocm"], TABLE["xpu"])
    (shown / "dev" / "nvidiactl").touch()
    assert chosen() is TABLE["cuda"]


def test_a_device_that_the_machine_does_not_show_is_refused_with_what_it_shows(shown: Path) -> None:
    (shown / "dev" / "kfd").touch()
    with pytest.raises(
        EnvironmentUnavailable, match=r"--device cuda: this machine shows no NVIDIA GPU \(/dev/nvid"
    ) as no:
        chosen("cuda")
    assert no.value.hint == "run with --device cpu or rocm"
    npu = Device(name="npu", words="npu", torch="npu", nodes=("/dev/davinci[0-9]",))
    with pytest.raises(EnvironmentUnavailable, match="this machine shows no npu"):
        chosen("npu", npu)
    assert chosen("npu", replace(npu, nodes=())).name == "npu"  # torch alone can tell


def test_a_device_of_its_own_captures_graphs_where_it_can_and_the_python_worker_does_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    table = "[tool.compat.devices.npu]\nstreams = true\nevents = true\ncpp = true\n"
    (tmp_path / "pyproject.toml").write_text(table)

    def planned(*wanted: str, **overrides: Any) -> tuple[str, ...]:
        return planned_scenarios(*wanted, folder=tmp_path, monkeypatch=monkeypatch, device="npu", **overrides)

    assert "cuda_graphs" not in planned()
    with pytest.raises(SelectionError, match="cuda_graphs needs graphs, and npu has none"):
        planned("cuda_graphs")
    (tmp_path / "pyproject.toml").write_text(f"{table}graphs = true\n")
    assert "cuda_graphs" in planned()
    monkeypatch.setattr(planning, "find_compiler", lambda: "g++")
    with pytest.raises(SelectionError, match="cuda_graphs needs the Python worker"):
        planned("cuda_graphs", runtime="libtorch")


@pytest.mark.parametrize("wanted", [(), ("alone",), ("latency",), ("shared", "latency")])
@pytest.mark.parametrize("latency", ["quick", "off"])
def test_naming_scenarios_never_drops_timing_and_never_asks_for_it(wanted: tuple[str, ...], latency: str) -> None:
    options = Project(folder=PROJECT, overrides={**SIDES, "latency": latency}, expression="gru", scenarios=wanted)
    plan = planning.make_plan(options)
    assert (plan.is_timed, "latency" in plan.scenarios) == (latency != "off", False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"until": "correctness", "overrides": {"latency": "thorough"}}, "--until correctness ends before timing"),
        ({"golden": "golden", "overrides": {"latency": "quick"}}, "golden records have no speed"),
        ({"scenarios": ("alone",), "overrides": {"init_rounds": "30"}}, "no scenario initializes anything"),
        ({"scenarios": ("alone",), "overrides": {"init_threads": "8"}}, "no scenario initializes anything"),
    ],
)
def test_options_that_would_answer_nothing_are_refused_before_anything_is_built(
    more: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "golden_source", lambda *_arguments: None)
    options = Project(folder=PROJECT, expression="din", **{**more, "overrides": {**SIDES, **more["overrides"]}})
    with pytest.raises(ConfigError, match=said):
        planning.make_plan(options)


def test_run_that_ends_before_timing_is_planned_whole_and_resumes_without_that_word(stored: Path) -> None:
    plan = RunDir(stored).load_plan()
    ended = planning.ending_at(plan, "correctness")
    assert plan.is_timed and not ended.is_timed and ended.until == "correctness"
    assert replace(ended, until="", settings=plan.settings) == plan
    same = running._what_was_asked(["compat", "-k", "din", "--until", "correctness", "--until=correctness"])
    assert same == ["compat", "-k", "din"]


def test_more_time_is_given_to_the_plan_of_a_run_whatever_else_its_command_line_said(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[Plan] = []
    monkeypatch.setattr(running, "execute", lambda plan, *_: executed.append(plan))
    monkeypatch.setattr(running, "other_policy", lambda *_: ())
    words = ("compat", "--resume", "last", "--more", "10min")
    options = Project(folder=PROJECT, out=str(stored.parent), resume="last", more="10min", arguments=words)
    running.compat(options)
    assert executed[0].more_s == 600
    assert RunDir(stored).load_plan() == replace(executed[0], more_s=0.0)
    assert running._what_was_asked([*words[:1], "-k", "din", *words[1:]]) == ["compat", "-k", "din"]


def test_budget_is_of_one_command_line_and_not_of_the_plan_that_is_stored(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Plan] = []

    def ends(plan: Plan, _folder: RunDir, its: Project) -> None:
        ran.append(plan)
        its.progress.red(["ranker", "din"])
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", ends)
    monkeypatch.setattr(running, "other_policy", lambda *_: ())
    words = ("compat", "--resume", "last", "--budget", "5min")
    options = Project(folder=PROJECT, out=str(stored.parent), resume="last", budget="5min", arguments=words)
    log = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        running.compat(replace(options, progress=Progress(log)))
    told = log.getvalue().splitlines()
    assert told[-2] == "red so far: din, ranker"
    assert told[-1].startswith("finished results are kept, go on with: ")
    assert f" compat --resume {stored}" in told[-1]
    assert (ran[0].budget_s, RunDir(stored).load_plan().budget_s) == (300.0, 0.0)
    assert running._what_was_asked([*words[:1], "-k", "din", *words[1:]]) == ["compat", "-k", "din"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": "5"}, r"^--budget: expected a time with its unit, got \"5\"; such as 90s, 10min, 1h or 2d"),
        ({"more": "10min"}, r"^--more goes on with a run that has rounds; name it: --resume last --more 10min"),
        ({"more": "10", "resume": "last"}, r"^--more: expected a time with its unit, got \"10\"; such as 90s"),
        (
            {"more": "1h", "resume": "last", "until": "correctness"},
            r"^--more would answer nothing: --until correctness",
        ),
    ],
)
def test_more_time_that_says_nothing_is_refused_in_words(stored: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        running.compat(Project(folder=PROJECT, out=str(stored.parent), **options))  # type: ignore[arg-type]
    assert re.search(said, str(refusal.value))


def test_more_time_for_a_run_that_was_planned_without_timing_is_refused(tmp_path: Path) -> None:
    keep(planned(overrides={"latency": "off"}), tmp_path)
    options = Project(folder=PROJECT, out=str(tmp_path), resume="last", more="10min")
    with pytest.raises(ConfigError, match=r"was planned without it"):
        running.compat(options)


def test_all_leaves_out_what_needs_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    found = planned_scenarios("all", monkeypatch=monkeypatch)
    assert found == tuple(name for name in SCENARIOS if name not in {"cuda_graphs", "inter_op", "small_pools"})
    assert "inter_op" in planned_scenarios("inter_op", monkeypatch=monkeypatch)  # asked for: never green then


@pytest.mark.parametrize("scenario", ["concurrent", "while_serving"])
def test_rerunning_an_initialization_brings_its_whole_server_group_up(
    tmp_path: Path, executed: list[Plan], scenario: str
) -> None:
    plan = planned("din or dlrm")
    together = replace(plan, groups={"ads": tuple(model.name for model in plan.models)})
    keep(together, tmp_path)
    cell = Cell("din", scenario).id
    rerun.rerun(Project(folder=PROJECT, out=str(tmp_path)), "last", cell)
    (again,) = executed
    assert again.groups == together.groups
    assert [model.name for model in again.models] == [model.name for model in together.models]
    assert (again.scenarios, again.settings.latency.budget) == (("alone", scenario), "off")


def test_rerunning_a_model_alone_leaves_its_group_out(tmp_path: Path, executed: list[Plan]) -> None:
    keep(planned("din or dlrm"), tmp_path)
    cell = Cell("din", "alone").id
    rerun.rerun(Project(folder=PROJECT, out=str(tmp_path)), "last", cell)
    (again,) = executed
    assert ([model.name for model in again.models], again.scenarios) == (["din"], ("alone",))


@pytest.mark.parametrize("command", ["bisect", "mitigate"])
def test_a_search_is_not_resumed_as_a_run_of_compat(tmp_path: Path, command: str) -> None:
    stored = keep(planned("dlrm"), tmp_path, f"dlrm-{command}")
    with pytest.raises(ConfigError, match=f"is a run of {command}; go on with it: .* {command} --resume {stored}"):
        running.compat(Project(folder=PROJECT, out=str(tmp_path), resume=stored.name))
    assert not (stored / "report.json").exists()


def test_the_last_run_is_the_newest_of_the_command_that_goes_on_with_it(tmp_path: Path, executed: list[Plan]) -> None:
    mine = keep(replace(planned("din"), notes=("mine",)), tmp_path)
    search = keep(planned("dlrm"), tmp_path, "zz-bisect")
    assert search.name > mine.name
    running.compat(Project(folder=PROJECT, out=str(tmp_path), resume="last"))
    assert executed[0].notes[0] == "mine"
    with RunDir.open(tmp_path, "last", search="bisect") as opened:
        assert opened.path == search


@pytest.mark.parametrize(
    ("typed", "seconds"), [(["--explain"], 120), (["--explain", "30"], 30), (["--explain=30"], 30)]
)
def test_a_finished_run_is_explained_and_nothing_else_of_its_plan_changes(
    tmp_path: Path, executed: list[Plan], typed: list[str], seconds: int
) -> None:
    plan = planned("din")
    keep(plan, tmp_path)
    words = ["compat", "--resume", "last", *typed]
    again = Project(folder=PROJECT, out=str(tmp_path), resume="last", overrides={"explain": seconds}, arguments=words)
    running.compat(again)
    assert executed[0].settings == replace(plan.settings, explain=seconds)
    with pytest.raises(ConfigError, match="drop the other options"):
        running.compat(replace(again, arguments=[*words, "--latency", "thorough"]))


def test_a_run_that_goes_on_has_the_fix_of_a_later_bisect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, report = keep(planned("din"), tmp_path), blocked()
    cell = next(item.cells[0] for item in report.causes if item.remedy is None)
    fix = Fix(name="gelu", rewrites=True, price=ratio(1.1))
    found = Explained(
        cell=cell, model=cell.partition("/")[0], by="bisect", answer="operator aten::gelu", fixes=(fix,), patched="m.pt"
    )
    explanations.keep(folder, found)
    (folder / found.patched).touch()
    monkeypatch.setattr(running, "run", lambda *_: report)
    told = running.compat(Project(folder=PROJECT, out=str(tmp_path), resume="last")).report
    assert found in told.explained
    assert [item.remedy for item in told.causes if cell in item.cells] == [fix]
    assert "deploy" in (folder / "report.md").read_text()


def _finished(tmp_path: Path, *cells: CellVerdict) -> None:
    """Keep a run of two models, which share a server group, with these cells."""
    folder = keep(replace(planned("din or dlrm"), groups={"ads": ("din", "dlrm")}), tmp_path)
    (folder / "report.json").write_bytes(dump_report(run_of(cells)))


RED_CELLS = (slower("din", 1.1), undecided("dlrm"), hang("dlrm", DEADLOCK))


@pytest.mark.parametrize(
    ("which", "models", "scenarios", "budget"),
    [
        ("red", ["din", "dlrm"], ("alone", "concurrent"), "quick"),
        ("undecided", ["dlrm"], ("alone",), "thorough"),
        ("slower", ["din"], ("alone",), "quick"),
    ],
)
def test_many_cells_are_repeated_in_one_run(
    tmp_path: Path, executed: list[Plan], which: str, models: list[str], scenarios: tuple[str, ...], budget: str
) -> None:
    _finished(tmp_path, *RED_CELLS)
    options = Project(folder=PROJECT, out=str(tmp_path))
    rerun.rerun_all(options, "last", which, cause=which == "slower")
    (again,) = executed
    assert (sorted(model.name for model in again.models), again.scenarios) == (models, scenarios)
    assert again.settings.latency.budget == budget
    assert again.notes[0].startswith("2 cells were repeated" if which == "red" else "one cell was repeated")
    assert not again.planted_defects


@pytest.mark.parametrize(("models", "of_all"), [(("din", "dlrm"), True), (("din",), False)])
def test_what_all_models_share_is_repeated_with_all_of_them_and_estimated(
    tmp_path: Path, executed: list[Plan], models: tuple[str, ...], of_all: bool
) -> None:
    cells = [slower(name, 1.1) if not of_all else verdict(name, "latency", Status.PASS) for name in models]
    _finished(tmp_path, *cells)
    report = read_report(options := Project(folder=PROJECT, out=str(tmp_path)), "last").report
    found = Finding(kind="common_slowdown", message="what all 2 timed models share", size=1.04)
    common = CommonSlowdown(ratio=ratio(1.04, 0.005), models=models, call_s=4e-4)
    judgement = replace(report.judgement, findings=(found,))
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink())
    (folder / "report.json").write_bytes(dump_report(with_causes(replace(report, judgement=judgement, common=common))))
    rerun.rerun_all(options, "last", "slower", cause=True)
    (again,) = executed
    assert (sorted(model.name for model in again.models), again.repeats_common) == (sorted(models), of_all)


def test_a_cause_that_the_run_does_not_have_is_refused_with_those_it_has(tmp_path: Path, executed: list[Plan]) -> None:
    _finished(tmp_path, *RED_CELLS)
    options = Project(folder=PROJECT, out=str(tmp_path))
    with pytest.raises(SelectionError, match="has no cause slow") as refusal:
        rerun.rerun_all(options, "last", "slow", cause=True)
    assert "slower (1 model)" in refusal.value.hint
    assert executed == []


def test_a_cause_that_only_the_policy_of_today_sees_is_repeated(tmp_path: Path, executed: list[Plan]) -> None:
    warned = verdict("din", "alone", Status.PASS, Finding(kind="dtype", message="output: float64, was float32"))
    told = Ruled(kind="dtype", was="fail", now="warn", by="severity.dtype of policy.toml")
    _finished(tmp_path, replace(warned, ruled=(told,), judged=Status.FAIL), hang("dlrm", DEADLOCK))
    options = Project(folder=PROJECT, out=str(tmp_path))
    judged = gate(options, "last").report
    (id_,) = [cause.id for cause in judged.causes if cause.models == ("din",)]
    assert id_ not in {cause.id for cause in read_report(options, "last").report.causes}
    rerun.rerun_all(options, "last", id_, cause=True)
    assert [[model.name for model in plan.models] for plan in executed] == [["din"]]


def test_nothing_to_repeat_is_refused(tmp_path: Path, executed: list[Plan]) -> None:
    _finished(tmp_path, slower("din", 1.1))
    with pytest.raises(SelectionError, match="last has no undecided cell"):
        rerun.rerun_all(Project(folder=PROJECT, out=str(tmp_path)), "last", "undecided")
    assert executed == []
