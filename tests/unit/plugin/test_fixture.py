"""What the fixture asks of ``compat``, and how a test ends by what that answers."""

import math
import sys
import tomllib
import types
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.core.outcome import Decision, Status
from harness.core.report import RunReport
from harness.core.verdict import Finding, RowVerdict, Waived
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.plugin import fixture
from harness.plugin.fixture import CannotCheck, Checker, artifacts_argument
from harness.run.files import Finished
from harness.run.options import Options, settings_of
from harness.machine.progress import Progress
from tests.unit.builders import reports as builders

FINDING = Finding(kind="values", message="output: off by 0.3 of its largest value")
WAIVED = Waived(kinds=("values",), owner="ads", reason="retrained in May", expires="2027-03-01")


def report_of(status: Status, decision: Decision, code: int) -> RunReport:
    cell = builders.verdict("net", "alone", status, *([] if status is Status.PASS else [FINDING]))
    cell = replace(cell, waived=(WAIVED,) if status is Status.XFAIL else ())
    report = builders.upgrade_ok()
    row = RowVerdict(model="net", status=status, cells=(cell,))
    judgement = replace(report.judgement, rows=(row,), decision=decision, exit_code=code, reason="because")
    return replace(report, models=(builders.healthy("net"),), judgement=judgement)


@pytest.fixture
def started() -> list[Options]:
    """The options of each run that was started."""
    return []


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Options]) -> Callable[..., Path]:
    """One check, whose run ends with the report that is given first."""
    kept = tmp_path / "kept"
    kept.mkdir()
    checker = Checker(kept, ["--jobs", "2"], project=tmp_path, say=False)

    def checked(report: RunReport, **arguments: object) -> Path:
        def compat(options: Options, progress: Progress) -> Finished:
            started.append(options)
            return Finished(report=report, folder=options.reports / "run")

        monkeypatch.setattr(fixture, "compat", compat)
        return checker.check(arguments.pop("artifact", "net.pt"), arguments.pop("inputs", None), **arguments)  # type: ignore[arg-type]

    return checked


GREEN = report_of(Status.PASS, Decision.UPGRADE_OK, 0)


def test_a_green_run_returns_its_folder_and_each_check_has_one_of_its_own(check: Callable[..., Path]) -> None:
    first, second = check(GREEN), check(GREEN)
    assert first.name == second.name == "run" and first != second


def test_sides_are_releases_interpreters_or_what_is_configured(
    check: Callable[..., Path], started: list[Options]
) -> None:
    check(GREEN)
    check(GREEN, old="2.1.2", new="serving=/opt/python")
    assert [name for name in ("old", "new") if name in started[0].overrides] == []
    assert (started[1].overrides["old"], started[1].overrides["new"]) == ("2.1.2", "serving")
    assert started[1].environments == ["serving=/opt/python"]


def test_what_a_test_can_afford_is_the_default_and_options_win(
    check: Callable[..., Path], started: list[Options]
) -> None:
    check(GREEN)
    check(GREEN, options=["--latency", "quick", "--scenario", "concurrent", "--jobs", "4"])
    assert (started[0].overrides["latency"], started[0].scenarios, started[0].overrides["jobs"]) == (
        "off",
        ["alone"],
        "2",
    )
    assert (started[1].overrides["latency"], started[1].overrides["jobs"]) == ("quick", "4")
    assert started[1].scenarios == ["alone", "concurrent"]


def test_what_policy_asks_of_the_whole_fleet_is_not_asked_of_one_model(
    check: Callable[..., Path], started: list[Options], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(GREEN)
    check(GREEN, options=["--policy", "fleet.toml"])
    wants = 'minimum_models = 20\nrequired_scenarios = ["concurrent"]\nlimits.error = 0.5\n'
    (tmp_path / "fleet.toml").write_text(wants)
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.compat]\nold = '2.1.2'\nnew = '2.6.0'\n[tool.compat.policy]\n{wants}"
    )
    for options in started:
        _, settings = settings_of(options)
        assert (settings.policy.minimum_models, settings.policy.required_scenarios) == (0, ())
        assert settings.policy.limits == {"error": 0.5}


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE, Status.XPASS])
def test_a_red_cell_is_an_assertion_with_its_text_and_where_the_page_lies(
    check: Callable[..., Path], status: Status
) -> None:
    with pytest.raises(AssertionError) as caught:
        check(report_of(status, Decision.BLOCKED, 1))
    said = str(caught.value)
    assert "off by 0.3" in said.splitlines()[0]
    assert "BLOCKED" in said and "run/report.html" in said


def test_a_run_that_shows_nothing_is_an_assertion_with_the_reason(check: Callable[..., Path]) -> None:
    with pytest.raises(AssertionError, match="INCONCLUSIVE: because"):
        check(report_of(Status.PASS, Decision.INCONCLUSIVE, 4))


def test_no_frame_of_the_gate_is_shown_above_the_text(check: Callable[..., Path]) -> None:
    with pytest.raises(AssertionError) as caught:
        check(report_of(Status.FAIL, Decision.BLOCKED, 1))
    shown = [entry.path for entry in caught.traceback.filter(caught)]
    assert shown and not [path for path in shown if "harness/plugin" in str(path)]


def test_a_waived_difference_makes_the_test_an_expected_failure(check: Callable[..., Path]) -> None:
    with pytest.raises(pytest.xfail.Exception, match="waived: values by ads until 2027-03-01: retrained in May"):
        check(report_of(Status.XFAIL, Decision.UPGRADE_OK, 0))


def test_what_this_machine_cannot_run_is_skipped_and_not_green(check: Callable[..., Path]) -> None:
    with pytest.raises(pytest.skip.Exception, match="UNSUPPORTED: net"):
        check(report_of(Status.UNSUPPORTED, Decision.NOTHING_TESTED, 4))


def test_a_run_that_cannot_be_made_is_no_regression(
    check: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(options: Options, progress: Progress) -> Finished:
        raise EnvironmentUnavailable("the disk is full", "free 5 GB")

    monkeypatch.setattr(fixture, "compat", full)
    with pytest.raises(CannotCheck, match="^the disk is full; free 5 GB$"):
        Checker(tmp_path, [], project=tmp_path, say=False).check("net.pt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scenari0", "alone"], "--scenari0"),
        (["-h"], "^options of compat: expected those of a run, got .* -h"),
        ("--jobs 2", r"expected a list of words; options=\['--jobs', '2'\]"),
    ],
)
def test_an_option_that_compat_does_not_have_is_named(
    check: Callable[..., Path], options: str | list[str], said: str
) -> None:
    with pytest.raises(CannotCheck, match=said):
        check(GREEN, options=options)


def test_what_is_no_artifact_is_reported_without_a_look_inside(check: Callable[..., Path]) -> None:
    with pytest.raises(CannotCheck, match="expected a path") as caught:
        check(GREEN, artifact=3)
    assert not [entry.path for entry in caught.traceback.filter(caught) if "harness/plugin" in str(entry.path)]


class Tensor:
    """Stands for torch's."""

    __module__ = "torch"

    def __init__(self, made_of: str) -> None:
        self.made_of = made_of

    def detach(self) -> "Tensor":
        return Tensor(f"{self.made_of}, detached")

    def cpu(self) -> "Tensor":
        return Tensor(f"{self.made_of}, on the CPU")


class ScriptModule:
    """Stands for torch.jit's."""

    __module__ = "torch.jit._script"
    original_name = "Ranker-2"

    def save(self, path: str) -> None:
        Path(path).write_text("saved")


class Module:
    """Stands for an eager one."""

    __module__ = "torch.nn.modules.module"


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a stand-in for torch was told to save."""
    kept: list[Any] = []
    torch = types.ModuleType("torch")
    torch.save = lambda value, path: kept.append(value)  # type: ignore[attr-defined]
    torch.from_numpy = lambda array: Tensor(f"of {array.tolist()}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    return kept


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def model_of(manifest: Path) -> dict[str, Any]:
    (model,) = tomllib.loads(manifest.read_text())["models"]
    return dict(model)


def requests_of(inputs: object, folder: Path) -> Path:
    return Path(model_of(artifacts_argument("ranker.pt", inputs, folder))["inputs"])


def arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name].tolist() for name in found.files}


def test_a_path_alone_is_that_path_with_the_requests_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert artifacts_argument("models/ranker.pt", None, tmp_path) == tmp_path / "models" / "ranker.pt"
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_requests_goes_into_a_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.npz").touch()
    model = model_of(artifacts_argument(Path("ran\"k'er.pt"), "monday.npz", tmp_path))
    assert model == {
        "path": str(tmp_path / "ran\"k'er.pt"),
        "inputs": str(tmp_path / "monday.npz"),
        "name": "ran_k_er",
    }


def test_a_scripted_module_is_saved_under_its_name(tmp_path: Path) -> None:
    path = artifacts_argument(ScriptModule(), None, tmp_path)
    assert path == tmp_path / "Ranker_2.pt" and path.read_text() == "saved"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(Module(), "script or trace it first"), (3, "a path or a scripted"), (Tensor("x"), "got Tensor")],
)
def test_what_is_no_artifact_is_refused(wrong: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        artifacts_argument(wrong, None, tmp_path)


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (np.ones(2), {"0": [1.0, 1.0]}),
        ((np.ones(1), 3), {"0": [1.0], "1": 3}),
        (
            {"monday": (np.ones(1), np.zeros(1)), "small": np.ones(1)},
            {"monday/0": [1.0], "monday/1": [0.0], "small/0": [1.0]},
        ),
    ],
)
def test_flat_arrays_need_no_torch(inputs: object, names: dict[str, object], tmp_path: Path) -> None:
    path = requests_of(inputs, tmp_path)
    assert path.suffix == ".npz"
    assert arrays(path) == names


@pytest.mark.usefixtures("no_torch")
def test_arrays_in_a_list_without_torch_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="import torch in the test, or give a file"):
        requests_of(([np.ones(1)],), tmp_path)


def test_tensors_are_saved_by_torch_on_the_cpu_and_arrays_beside_them_become_tensors(
    saved: list[Any], tmp_path: Path
) -> None:
    assert requests_of((Tensor("x"), [np.ones(1)], {"k": None}), tmp_path).suffix == ".pt"
    ((tensor, (from_array,), rest),) = saved
    assert tensor.made_of == "x, detached, on the CPU"
    assert from_array.made_of == "of [1.0]"
    assert rest == {"k": None}


def test_a_number_in_an_array_keeps_its_shape_and_what_may_not_be_written_is_copied(
    saved: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(sys.modules["torch"], "from_numpy", given.append)
    frozen = np.ones((2, 3)).T
    frozen.flags.writeable = False  # torch warns of it, and a strict suite makes that an error
    requests_of((Tensor("x"), np.array(2.0), frozen), tmp_path)
    number, copied = given
    assert number.shape == () and copied.flags.writeable and copied.flags.c_contiguous


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Pair(NamedTuple):
    x: object
    y: object


@pytest.mark.usefixtures("no_torch")
def test_numbers_and_texts_leave_the_classes_of_the_test_behind(tmp_path: Path) -> None:
    values = (np.float64(1.5), Pair(Size.BIG, Colour.RED), OrderedDict({Colour.RED: np.int8(2)}), np.str_("a"))
    path = requests_of(values, tmp_path)
    module: dict[str, Any] = {}
    exec(path.read_text(), module)
    assert repr(module["inputs"]()) == "(1.5, (3, 'red'), {'red': 2}, 'a')"
    assert arrays(requests_of((np.ones(1), np.float64(2), Size.BIG), tmp_path)) == {"0": [1.0], "1": 2.0, "2": 3}


@pytest.mark.usefixtures("no_torch")
def test_plain_values_are_a_function_that_returns_them(tmp_path: Path) -> None:
    inputs = {"one": (3, "text", None, [1.5, math.inf]), "two": (True, {"k": -math.inf})}
    path = requests_of(inputs, tmp_path)
    assert path.suffix == ".py"
    module: dict[str, Any] = {}
    exec(path.read_text(), module)
    assert module["inputs"]() == inputs


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (object(), "^inputs: expected tensors.* got object"),
        (({"k": [object()]},), r"^inputs\[0\]\['k'\]\[0\]: expected"),
        ((np.array([object()]),), r"^inputs\[0\]: .* got an array of object"),
        (np.array(["a"]), "an array of <U1"),
        (np.datetime64("2026-11-22"), "got datetime64"),
        ({0: np.ones(1)}, r"names of input sets are texts; an argument that is a dict: \(\{...\},\)"),
        ("no such file", "there is no file /.*no such file"),
    ],
    ids=[
        "object",
        "object in a dict",
        "array of objects",
        "array of texts",
        "date",
        "number as a name",
        "missing file",
    ],
)
def test_what_no_request_holds_is_refused_with_its_place(wrong: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        requests_of(wrong, tmp_path)
