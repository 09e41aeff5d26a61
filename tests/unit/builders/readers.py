"""How others read what we write for CI: by their schema or their parser, and the runner's as its source has it."""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
from jsonschema.protocols import Validator
from prometheus_client import Metric
from prometheus_client.openmetrics import parser

SCHEMAS = Path(__file__).parents[2] / "schemas"


@functools.cache
def validator(name: str) -> Validator:
    """Return the validator of a schema in ``tests/schemas``; formats such as ``uuid`` count."""
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def valid(text: str, schema: str) -> Any:
    """Return the JSON in ``text`` after the schema has accepted it."""
    document = json.loads(text)
    validator(schema).validate(document)
    return document


def openmetrics(text: str) -> list[Metric]:
    """Return the metrics in ``text``, as the strict parser of Prometheus' client reads them."""
    return list(parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


class Command(NamedTuple):
    """One workflow command as the runner takes it."""

    name: str
    properties: dict[str, str]
    data: str


def runner_reads(log: str) -> list[Command]:
    """Return the commands in the output of a step, as ``ActionCommand.TryParseV2`` of actions/runner finds them.

    Any other line in which the older form ``##[command]`` stands anywhere counts as one, too.
    """
    found = []
    for line in log.splitlines():
        text = line.lstrip()
        end = text.find("::", 2)
        if text.startswith("::") and end > 0:
            name, _, properties = text[2:end].strip().partition(" ")
            pairs = (pair.strip().partition("=") for pair in properties.split(",") if "=" in pair)
            found.append(
                Command(
                    name=name,
                    properties={key: _unescaped(value, data=False) for key, _, value in pairs},
                    data=_unescaped(text[end + 2 :], data=True),
                )
            )
        elif "##[" in line:
            found.append(Command("##[", {}, line))
    return found


def _unescaped(text: str, *, data: bool) -> str:
    marks = {"%0D": "\r", "%0A": "\n"} | ({} if data else {"%3A": ":", "%2C": ","})
    for mark, char in {**marks, "%25": "%"}.items():
        text = text.replace(mark, char)
    return text
