"""A manifest of artifacts: ``models.toml``, one ``[[models]]`` table for each, as declarations.

Pure: the caller reads the file, says where it lies, and looks for the files that it names.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from harness.artifacts import declarations, names
from harness.artifacts.requests import REQUESTS, read_requests
from harness.config.schema import FLAG, TEXT, Kind, Table, read, shown
from harness.core.devices import TABLE
from harness.core.errors import FixtureError
from harness.core.golden import SUFFIX
from harness.core.models import Artifact, GivenArtifact, ModelDeclaration
from harness.worker import wire

MANIFEST: Final = "models.toml"
NAME: Final = Kind("a word of letters, digits and _", declarations.NAME.target)
MODEL: Final = Table(
    {
        "name": NAME,
        "path": TEXT,
        "inputs": TEXT,
        "requests": REQUESTS,
        "methods": Kind('a list of methods such as ["forward", "encode"]', declarations.WORDS.target),
        "tolerance": declarations.TOLERANCE,
        "reset": Kind("the name of a method", declarations.NAME.target),
        "owner": TEXT,
        "tags": Kind('a list of words such as ["ranking", "ads"]', declarations.WORDS.target),
        "devices": Kind(f"a list of devices out of {', '.join(TABLE)}, not empty", declarations.DEVICES.target),
        "seed": Kind("a whole number >= 0", Annotated[int, Meta(ge=0, le=2**63 - 1)]),
        "timed": FLAG,
        "unordered": Kind('a list of paths such as ["output[1]", "output[*]"]', declarations.PATHS.target),
    }
)
OF_THE_MODEL: Final = ("tolerance", "reset", "owner", "tags", "devices", "seed", "unordered", "timed")
TOP: Final = Table({"models": Kind("[[models]] tables", tuple[dict[str, Any], ...])})
MOST_BYTES: Final = 1 << 20
MOST_PARTS: Final = 50
"""Of one dotted key: time and stack of Python's reader grow with their square."""
QUOTED: Final = re.compile(r"""\"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)""")
HEADER: Final = re.compile(r"""^[ \t]*\[\[[ \t]*(?:models|"models"|'models')[ \t]*\]\]""", re.MULTILINE)

SECTION: Final = re.compile(r"""[ \t]*\[\[?[ \t]*["']?models\b""")


def read_manifest(text: str, *, file: str, folder: str) -> tuple[ModelDeclaration, ...]:
    """Return the models that a manifest names, in its order, without reading their files.

    Args:
        file: its path as messages name it.
        folder: the absolute folder that it lies in: its paths are relative to that.

    Returns:
        Declarations with ``given``, whose paths are absolute; ``given.inputs`` is empty where the manifest names no
        file, and ``source_digest`` too.

    Raises:
        FixtureError: the manifest, its model and the key; what was expected and what was found.
    """
    tables = _tables(text, file)
    lines = [text.count("\n", 0, header.start()) + 1 for header in HEADER.finditer(text)]
    if len(lines) != len(tables):  # written inline, or quoted in a text
        lines = [0] * len(tables)
    declarations: dict[str, ModelDeclaration] = {}
    for number, (table, line) in enumerate(zip(tables, lines, strict=True), start=1):
        place = f"{file}:{line}" if line else file
        try:
            declaration = _declaration(table, place, number, folder, file=os.path.basename(file), line=line)  # noqa: PTH119
        except FixtureError as error:
            raise _at_its_key(error, text, file, line) from None
        first = declarations.setdefault(declaration.name, declaration)
        if first is not declaration:
            what = f'{place}: model "{declaration.name}" is already declared at {first.where}'
            raise FixtureError(what, "cells and goldens hang off the name: give one another name")
    return tuple(declarations.values())


def line_of(text: str, header: int, key: str) -> int:
    """Return the line of ``key`` in the table whose header is on line ``header``; the header's if there is none."""
    written = re.compile(rf"""[ \t]*(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')[ \t]*[.=]""")
    for number, line in enumerate(text.split("\n")[header:], start=header + 1):
        if SECTION.match(line):
            break
        if written.match(line):
            return number
    return header


def _at_its_key(error: FixtureError, text: str, file: str, header: int) -> FixtureError:
    begin = f"{file}:{header}: "
    match = re.match(r'model (?:"[^"]*"|\d+)\.([\w-]+)', error.message.removeprefix(begin))
    if not header or match is None:
        return error
    line = line_of(text, header, match.group(1))
    return FixtureError(f"{file}:{line}: {error.message.removeprefix(begin)}", error.hint)


def where(file: str, name: str, key: str = "") -> str:
    """Return how messages name a model of a manifest, or a key of it."""
    return f'{file}: model "{name}"' + (f".{key}" if key else "")


def _tables(text: str, file: str) -> tuple[dict[str, Any], ...]:
    _check_size(text, file)
    try:
        parsed = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FixtureError(f"{file}: not valid TOML: {error}", "mend the file") from error
    except ValueError as error:
        raise FixtureError(f"{file}: holds a number with too many digits", "numbers have at most 64 bits") from error
    top = read(parsed, TOP, f"{file}: top level", error=FixtureError)
    if not top.get("models"):
        raise FixtureError(f"{file}: names no model", 'write [[models]] with path = "ranker.pt" below it')
    tables: tuple[dict[str, Any], ...] = top["models"]
    return tables


def _check_size(text: str, file: str) -> None:
    """Refuse what the reader of TOML would take minutes for."""
    if len(text) > MOST_BYTES:
        raise FixtureError(f"{file}: is no manifest: {len(text):,} characters", f"at most {MOST_BYTES:,}")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") < MOST_PARTS:
            continue
        bare = QUOTED.sub("q", line).partition("#")[0].replace(" ", "").replace("\t", "")
        if max((part.count(".") for part in re.findall(r"[\w.-]+", bare)), default=0) >= MOST_PARTS:
            raise FixtureError(f"{file}:{number}: a key of more than {MOST_PARTS} parts", "write tables")


def _declaration(
    table: Mapping[str, Any], place: str, number: int, folder: str, *, file: str, line: int
) -> ModelDeclaration:
    named = table.get("name") if NAME.accepts(table.get("name")) else None
    if not table.get("name") and isinstance(table.get("path"), str) and table["path"]:
        named = names.word_of(table["path"])
    here = where(place, named) if named else f"{place}: model {number}"
    values = read(table, MODEL, here, error=FixtureError)
    if "path" not in values:
        raise FixtureError(f"{here}.path: missing", "name the artifact, relative to the manifest")
    path = _absolute(folder, values["path"], f"{here}.path")
    name = values.get("name") or names.word_of(path)
    here = where(place, name)
    if names.is_reserved(name):
        raise FixtureError(f"{here}.name: {names.RESERVED}... are the gate's own", "give another name")
    if len(name) > names.LONGEST:
        raise FixtureError(f"{here}.name: {len(name)} characters", f"at most {names.LONGEST}: files are called so")
    if names.PLANTED_DEFECT in values.get("tags", ()):
        raise FixtureError(f"{here}.tags: {shown(names.PLANTED_DEFECT)} is the gate's own", "take another word")
    return ModelDeclaration(
        name=name,
        package_root=folder,
        source=file,
        line=line,
        how="file",
        given=_given(values, path, folder, here),
        **{key: values[key] for key in OF_THE_MODEL if key in values},
    )


def _given(values: Mapping[str, Any], path: str, folder: str, here: str) -> GivenArtifact:
    if path.endswith(SUFFIX):
        raise FixtureError(f"{here}.path: a golden bundle says all this itself", "give it beside the manifest")
    if "inputs" in values and "requests" in values:
        raise FixtureError(f"{here}.requests: requests are given twice, here and by inputs", "keep one of the two")
    methods = values.get("methods", ())
    return GivenArtifact(
        path=path,
        inputs=_absolute(folder, values["inputs"], f"{here}.inputs") if "inputs" in values else "",
        requests=read_requests(values.get("requests", ()), methods or ("forward",), f"{here}.requests"),
        methods=methods,
    )


def _absolute(folder: str, path: str, here: str) -> str:
    if "\0" in path:
        raise FixtureError(f"{here}: expected a path, got {shown(path)}", "write it without the NUL character")
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118  no look at the disk here


ABOVE: Final = "# Written by the gate, for the command that its report prints."


def manifest_text(model: ModelDeclaration, *, path: str, inputs: str = "") -> str:
    """Return a manifest of ``model`` alone, with other paths than declared.

    ``path``: of the artifact, relative to the manifest; ``inputs``: of the file with its requests, likewise; empty if
    it has none.
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
    if model.owner:
        lines.append(f"owner = {text_of(model.owner)}")
    if model.reset:
        lines.append(f"reset = {text_of(model.reset)}")
    if not model.timed:
        lines.append("timed = false")
    lines.append(f"seed = {model.seed}")
    return "\n".join(lines) + "\n"


def text_of(value: str) -> str:
    """Return a TOML string: JSON's, except for the one control character that JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def manifest_beside(artifact: Artifact) -> Path:
    return Path(artifact.path).with_name(MANIFEST)


def write_manifest(model: ModelDeclaration, artifact: Artifact) -> None:
    """Write what is known of ``model`` beside ``artifact``, with the recorded inputs. Raises ``OSError``."""
    path = manifest_beside(artifact)
    index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
    inputs = os.path.relpath(index, path.parent) if artifact.input_sets else ""
    path.write_text(manifest_text(model, path=Path(artifact.path).name, inputs=inputs), encoding="utf-8")
