"""A matrix read back from its JSON."""

import json

import pytest

from harness.core.errors import RunDirError
from harness.verdict.matrix import judge_matrix
from harness.report.json.results import dump_matrix, load_matrix
from tests.unit.builders.matrices import mixed

WRITTEN = dump_matrix(mixed(), judge_matrix(mixed()))


def test_what_was_written_is_read_back() -> None:
    assert load_matrix(WRITTEN.encode(), file="matrix.json") == mixed()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is damaged"),
        (b"\xff", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b"[1]", "is no matrix of schema version 1"),
        (json.dumps({**json.loads(WRITTEN), "schema_version": 9}).encode(), "is no matrix of schema version 1"),
        (json.dumps({**json.loads(WRITTEN), "cells": 3}).encode(), "`$.cells`"),
    ],
)
def test_a_bad_file_is_named(data: bytes, said: str) -> None:
    with pytest.raises(RunDirError) as caught:
        load_matrix(data, file="m/matrix.json")
    assert caught.value.message.startswith("m/matrix.json ") and said in caught.value.message
