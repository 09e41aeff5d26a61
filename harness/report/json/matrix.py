"""A matrix as JSON: every cell and what they amount to. ``docs/formats/matrix.md`` documents it."""

import msgspec

from harness import __version__
from harness.domain.matrix import Matrix
from harness.errors import RunDirError
from harness.releases.matrix_judging import MatrixVerdict
from harness.report.json.text import json_text
from harness.static.judging import confusion_by_direction

SCHEMA_VERSION = 1


def dump_matrix(matrix: Matrix, verdict: MatrixVerdict) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(verdict.exit_code),
        "summary": list(verdict.sentences),
        "pairs": [{**msgspec.to_builtins(pair), "status": pair.status.value} for pair in verdict.pairs.values()],
        "predictions": msgspec.to_builtins(confusion_by_direction(matrix.cells)),
        **msgspec.to_builtins(matrix),
    }
    return json_text(told)


def load_matrix(data: bytes, *, file: str) -> Matrix:
    """Return the matrix in ``data``; what it amounted to is judged anew. ``file`` is its name for messages.

    Raises:
        RunDirError: no JSON, of another version, or not the shape of a matrix.
    """
    try:
        plain = msgspec.json.decode(data)
        if not isinstance(plain, dict) or plain.get("schema_version") != SCHEMA_VERSION:
            raise RunDirError(
                f"{file} is no matrix of schema version {SCHEMA_VERSION}", "make it with: python -m harness matrix"
            )
        return msgspec.convert(plain, Matrix)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirError(f"{file} is damaged: {error}", "make it again with: python -m harness matrix") from error
