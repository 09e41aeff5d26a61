"""Damaged configurations lose no row but their own; the short form of ``nox -s bench -- faults configs``."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.core.fleet import FleetArtifact
from harness.apps.fleet.stores.reading import read_store
from harness.apps.fleet.stores.sources import FolderStore
from harness.artifacts.owners import FleetManifest
from harness.machine.progress import Progress
from benchmarks.faults import configs


def read(store: Path, into: Path) -> tuple[str, Mapping[str, FleetArtifact], Mapping[str, Sequence[str]]]:
    progress = Progress(enabled=False)
    found = read_store(FolderStore(store), FleetManifest(), {}, scratch=into, progress=progress)
    return "", {item.path: item for item in found.artifacts}, found.profiles


@pytest.mark.parametrize("seed", range(4))
def test_drawn_damage_loses_no_other_row(tmp_path: Path, seed: int) -> None:
    drawn = [configs.mutant(random.Random(f"{seed} {index}")) for index in range(15)]
    assert configs.problems(drawn, tmp_path, read) == []


@pytest.mark.parametrize(
    "text",
    [
        "optimization { " * 3000,
        'input { name: "x" data_type: 77 dims: 1 }',
        'input { name: "x" data_type: -1 dims: 1 }',
        f"max_batch_size: {'9' * 5000}",
        f'input {{ name: "x" data_type: TYPE_FP32 dims: {"9" * 5000} }}',
        f'parameters {{ key: "INTRA_OP_THREAD_COUNT" value {{ string_value: "{"9" * 30}" }} }}',
        f'default_model_filename: "{"a" * 100_000}"',
        'default_model_filename: "a\\nb"',
        "instance_group { count: 2147483647 kind: 9 }",
        'input { name: "x" data_type: TYPE_FP32 dims: [ 4611686018427387904, 4611686018427387904 ] }',
    ],
)
def test_each_kind_of_damage_that_once_ended_a_fleet_is_one_row(tmp_path: Path, text: str) -> None:
    drawn = [("as it was found", f'backend: "pytorch"\n{text}'.encode())]
    assert configs.problems(drawn, tmp_path, read) == []
