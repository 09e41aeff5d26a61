"""The order of stages is in their types: swapped or left out, they do not fit, and mypy says so."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from mypy import api

from harness.checks.outputs.compare import compare
from harness.verdict.cells import judge_cells
from harness.checks.latency.benchmark import benchmark
from harness.probing.alone import probe_alone
from harness.probing.export import export_models
from harness.probing.facts import Judged, Provisioned
from harness.probing.old_answers import probe_old_release
from harness.apps.upgrade.decide import tell_so_far
from harness.apps.upgrade.pipeline import with_causes_asked
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict
from harness.checks.startup.initialize import initialize_groups
from harness.checks.startup.native import build_workers
from tests.unit.builders.stages import Runner, effects, known, planned, probed, result
from tests.unit.builders.tensors import write_answers

STAGES: tuple[Callable[..., Any], ...] = (
    export_models,
    probe_old_release,
    probe_alone,
    build_workers,
    initialize_groups,
    compare,
    benchmark,
    judge_cells,
)
NAMES = tuple(stage.__name__ for stage in STAGES)
HEADER = (
    "from harness.checks.outputs.findings import differs\nfrom harness.probing.facts import Effects, Judged, Provisioned\n"
    + "".join(f"from {stage.__module__} import {stage.__name__}\n" for stage in (*STAGES, tell_so_far))
)


def needs(stage: Callable[..., Any]) -> type:
    """Return the facts that a stage takes."""
    found: type = get_type_hints(stage)["facts"]
    return found


def misfits(*stages: Callable[..., Any]) -> list[str]:
    """Return the stages that would get facts which they cannot take, one after another."""
    given: type = Provisioned
    found = []
    for stage in stages:
        if not issubclass(given, needs(stage)):
            found.append(stage.__name__)
        given = get_type_hints(stage)["return"]
    return found


def swapped(index: int) -> list[Callable[..., Any]]:
    """Return the stages with one of them later by one."""
    stages = list(STAGES)
    stages[index : index + 2] = reversed(stages[index : index + 2])
    return stages


def test_stages_fit_in_their_order() -> None:
    assert misfits(*STAGES) == []
    assert issubclass(get_type_hints(judge_cells)["return"], Judged)


@pytest.mark.parametrize("index", range(len(STAGES) - 1), ids=lambda index: f"{NAMES[index]} later")
def test_two_stages_swapped_do_not(index: int) -> None:
    assert misfits(*swapped(index))[0] == NAMES[index + 1]


def test_what_is_known_so_far_cannot_be_printed_before_it_is_compared() -> None:
    known = [get_type_hints(stage)["return"] for stage in STAGES]
    fitting = [name for name, facts in zip(NAMES, known, strict=True) if issubclass(facts, needs(tell_so_far))]
    assert fitting == ["compare", "benchmark", "judge_cells"]


@pytest.mark.slow
def test_mypy_refuses_every_other_order(tmp_path: Path) -> None:
    """In one run, for it reads the whole harness: a function per order, whose name its errors are found by."""
    orders = {"in_order": list(STAGES)} | {f"later_{index}": swapped(index) for index in range(len(STAGES) - 1)}
    text = HEADER + "".join(function(name, stages) for name, stages in orders.items())
    text += function("told_too_early", STAGES, so_far=NAMES.index("initialize_groups"))
    program = tmp_path / "program.py"
    program.write_text(text)
    said, problems, _ = api.run(["--strict", "--follow-imports=silent", str(program)])
    assert not problems
    errors: dict[str, list[str]] = {}
    lines = text.splitlines()
    for error in (line for line in said.splitlines() if ": error: " in line):
        before = lines[: int(error.split(":")[1])]
        name = next(line for line in reversed(before) if line.startswith("def ")).split("(")[0].removeprefix("def ")
        errors.setdefault(name, []).append(error)
    assert "in_order" not in errors
    for index in range(len(STAGES) - 1):
        assert f'to "{NAMES[index + 1]}" has incompatible type' in errors[f"later_{index}"][0]
    (too_early,) = errors["told_too_early"]
    assert 'to "tell_so_far" has incompatible type' in too_early


def function(name: str, stages: Any, so_far: int = NAMES.index("compare")) -> str:
    """Return a function that calls these stages one after another.

    Args:
        so_far: of the stage after which what is known is printed.
    """
    lines = []
    for index, stage in enumerate(stages):
        more = ", differs" if stage is compare else ""
        lines.append(f"    facts{index + 1} = {stage.__name__}(facts{index}, effects{more})")
    lines.insert(so_far + 1, f"    tell_so_far(facts{so_far + 1}, (), effects)")
    head = f"\n\ndef {name}(facts0: Provisioned, effects: Effects) -> Judged:\n"
    return head + "\n".join([*lines, f"    return facts{len(stages)}"]) + "\n"


def test_searches_are_given_the_noise_of_red_models_that_answered_bit_for_bit_alike(tmp_path: Path) -> None:
    facts = known(planned("slow", "fine"))
    once = {name: replace(answers, results=answers.results[:1]) for name, answers in facts.baselines.items()}
    cells = {
        name: (CellVerdict(cell=f"{name}/latency", model=name, scenario="latency", status=status, findings=()),)
        for name, status in (("slow", Status.FAIL), ("fine", Status.PASS))
    }
    directory = write_answers(tmp_path, {"slow": ["int", 1]})
    runner = Runner(lambda request: probed(result("slow"), side="old", directory=directory))
    found = with_causes_asked(replace(facts, baselines=once, verdicts=cells), effects(runner))
    assert {name: len(answers.results) for name, answers in found.baselines.items()} == {"slow": 2, "fine": 1}
