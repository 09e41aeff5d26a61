"""A manifest as text: what is known of one artifact, as ``read_manifest`` reads it."""

import json
from typing import Final

from harness.domain.fixture import ModelDeclaration

ABOVE: Final = "# Written by the gate, for the command that its report prints."


def manifest_text(model: ModelDeclaration, *, path: str, inputs: str = "") -> str:
    """Return a manifest of ``model`` alone, whose artifact and inputs lie elsewhere than declared.

    Args:
        path: of the artifact, relative to the manifest.
        inputs: of the file with its requests, likewise; empty where it has none.
    """
    assert model.given is not None
    lines = [ABOVE, "[[models]]", f"name = {text_of(model.name)}", f"path = {text_of(path)}"]
    if inputs:
        lines.append(f"inputs = {text_of(inputs)}")
    for key, words in (
        ("methods", model.given.methods),
        ("tags", model.tags),
        ("devices", model.devices),
        ("unordered", model.unordered),
    ):
        if words:
            lines.append(f"{key} = [{', '.join(map(text_of, words))}]")
    if model.tolerance is not None:
        lines.append(f"tolerance = {float(model.tolerance)!r}")
    if model.reset:
        lines.append(f"reset = {text_of(model.reset)}")
    lines.append(f"seed = {model.seed}")
    return "\n".join(lines) + "\n"


def text_of(value: str) -> str:
    """Return a TOML string: JSON's, but for the one control character that JSON lets stand."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
