"""The order of stages is checked by mypy: swapped or left out, they do not type."""

from pathlib import Path

import pytest
from mypy import api

HEADER = """
from harness.correctness.compare import compare
from harness.decision.judge import judge_cells
from harness.latency.benchmark import benchmark
from harness.probing.alone import probe_alone
from harness.probing.export import export_models
from harness.probing.facts import Effects, Judged, Provisioned
from harness.probing.old_answers import probe_old_release
from harness.run.decide import tell_so_far
from harness.startup.initialize import initialize_groups
from harness.startup.native import build_workers


def judged(facts0: Provisioned, effects: Effects) -> Judged:
"""
STAGES = (
    "export_models",
    "probe_old_release",
    "probe_alone",
    "build_workers",
    "initialize_groups",
    "compare",
    "benchmark",
    "judge_cells",
)


def errors(folder: Path, *stages: str, so_far: int = STAGES.index("compare")) -> list[str]:
    """Return what mypy says of a program that calls these stages one after another.

    Args:
        so_far: of the stage after which what is known is printed.
    """
    lines = [f"    facts{index + 1} = {stage}(facts{index}, effects)" for index, stage in enumerate(stages)]
    lines.insert(so_far + 1, f"    tell_so_far(facts{so_far + 1}, (), effects)")
    program = folder / "program.py"
    program.write_text(HEADER + "\n".join([*lines, f"    return facts{len(stages)}"]) + "\n")
    said, problems, _ = api.run(["--strict", "--follow-imports=silent", str(program)])
    assert not problems
    return [line for line in said.splitlines() if ": error: " in line]


def test_stages_in_their_order_type(tmp_path: Path) -> None:
    assert errors(tmp_path, *STAGES) == []


@pytest.mark.parametrize("index", range(len(STAGES) - 1), ids=lambda index: f"{STAGES[index]} later")
def test_two_stages_swapped_do_not(tmp_path: Path, index: int) -> None:
    swapped = list(STAGES)
    swapped[index : index + 2] = reversed(swapped[index : index + 2])
    (first, *_) = errors(tmp_path, *swapped)
    assert f'to "{STAGES[index + 1]}" has incompatible type' in first


def test_what_is_known_so_far_cannot_be_printed_before_it_is_compared(tmp_path: Path) -> None:
    (error,) = errors(tmp_path, *STAGES, so_far=STAGES.index("initialize_groups"))
    assert 'to "tell_so_far" has incompatible type' in error
