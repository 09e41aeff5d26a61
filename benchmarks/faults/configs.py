"""Damaged configurations of Triton: ``fleet plan`` ends with a documented exit code and loses no other model's row.

Genuine texts, one feature of Triton each, are edited: numbers and words of enumerations become others, lines are dropped,
doubled and moved, messages are nested thousands deep, texts hold what no file name has, bytes are flipped. Models with
such configurations lie in one store beside two that nobody touched.
"""

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.stored import DOCUMENTED, PROJECT, called
from harness.core.errors import ConfigError
from harness.core.fleet import FleetArtifact
from harness.run.options import Options, settings_of
from tests.unit.builders.archives import torchscript

COUNT = 250
IN_A_STORE = 25
DEEP = 3000
WITNESS = 'backend: "pytorch"\nmax_batch_size: 8\ninput { name: "x" data_type: TYPE_FP32 dims: [ 6 ] }\n'
X = '  { name: "x" data_type: TYPE_INT64 dims: [ -1, 3 ] reshape { shape: [ -1 ] } },\n'
GENUINE = (
    f'name: "ranker"\nplatform: "pytorch_libtorch"\nmax_batch_size: 8\ninput [\n{X}'
    '  { name: "y" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] }\n]\n'
    'output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 6 ] label_filename: "l.txt" } ]\n'
    "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]\n"
    "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }\n"
    'parameters: { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "4" } }\n'
    'parameters: { key: "INTER_OP_THREAD_COUNT" value: { string_value: "2" } }\n'
    'parameters: { key: "INFERENCE_MODE" value: { string_value: "false" } }\n',
    'backend: "pytorch"\nmax_batch_size: 4\ninput [ { name: "I__0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    "sequence_batching {\n  max_sequence_idle_microseconds: 5000000\n  control_input [\n"
    '    { name: "START__1" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },\n'
    '    { name: "ID__2" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }\n  ]\n'
    '  state [ { input_name: "S__3" output_name: "T__1" data_type: TYPE_FP32 dims: [ 4 ]\n'
    '    initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } ]\n}\n'
    "version_policy: { latest: { num_versions: 2 } }\n",
    'backend: "pytorch"\nmax_batch_size: 4\n'
    'input { name: "I__0" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }\n'
    'batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "E__1" data_type: TYPE_FP32'
    ' source_input: "I__0" } ]\n'
    "version_policy: { specific { versions: [ 1, 2 ] } }\n",
    'platform: "pytorch_libtorch"\ndefault_model_filename: "model.pt"\n'
    'input { name: "words" data_type: TYPE_STRING dims: 1 optional: true }\n'
    'model_warmup [ { name: "w" batch_size: 0 count: 3 inputs { key: "words" value: { data_type: TYPE_STRING dims: [ 1 ]'
    " zero_data: true } } } ]\n"
    'optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" } ] } }\n',
)
NUMBERS = (
    *("-1", "0", "-0", "1", "99", "1025", "2147483647", "2147483648", "-2147483649", "9223372036854775807"),
    *(
        "9223372036854775808",
        "1" * 30,
        "9" * 5000,
        "-" + "9" * 5000,
        "1e400",
        "1.5",
        "nan",
        "inf",
        "0x7F",
        "0777",
        "1f",
    ),
)
WORDS = (
    "TYPE_BF16",
    "TYPE_UINT64",
    "TYPE_INVALID",
    "KIND_MODEL",
    "CONTROL_SEQUENCE_END",
    "true",
    "x",
    "9",
    "-1",
    "{",
    "[",
)
TEXTS = (
    *(
        '""',
        '"' + "a" * 100_000 + '"',
        '"\\000"',
        '"\\xff\\xfe"',
        '"\\ud800"',
        '"../../../x"',
        '"/etc/passwd"',
        '"a/b"',
    ),
    *('"x__99999999999999999999"', '"x__"', '"__"', '"\u202e"', '"\u0661"', "'", '"', '"%s{}\\n"', '"KWARGS[k]"'),
)


def attack(count: int, seed: int) -> list[str]:
    """Return what became of plans whose stores hold damaged configurations, where that is not as documented."""
    wrong = []
    for begin in range(0, count, IN_A_STORE):
        drawn = [mutant(random.Random(f"{seed} {index}")) for index in range(begin, min(begin + IN_A_STORE, count))]
        with tempfile.TemporaryDirectory(prefix="gate-configs-") as name:
            found = problems(drawn, Path(name), _planned)
            if found and "exit code" in found[0]:  # which of them ends a plan?
                each = (problems([one], Path(name) / str(index), _planned) for index, one in enumerate(drawn))
                found = [line for lines in each for line in lines] or found
            wrong += [f"{seed} {begin}: {line}" for line in found]
    return wrong


def problems(
    drawn: Sequence[tuple[str, bytes]],
    folder: Path,
    planned: Callable[[Path, Path], tuple[str, Mapping[str, FleetArtifact], Mapping[str, Sequence[str]]]],
) -> list[str]:
    """Write a store with models of these configurations, and return what a plan of it does wrong.

    Args:
        drawn: what was done, and the bytes of the configuration then.
        planned: returns, for a store and a folder, what went wrong altogether, or the artifacts by path and the profiles.
    """
    store = folder / "store"
    files = {
        "plain/steady.pt": torchscript(),
        "witness/config.pbtxt": WITNESS.encode(),
        "witness/1/model.pt": torchscript(),
    }
    for index, (_, data) in enumerate(drawn):
        files |= {f"m{index}/config.pbtxt": data, f"m{index}/2/model.pt": torchscript()}
    for path, data in files.items():
        (store / path).parent.mkdir(parents=True, exist_ok=True)
        (store / path).write_bytes(data)
    did = "; ".join(f"m{index}: {what}" for index, (what, _) in enumerate(drawn))
    failed, artifacts, profiles = planned(store, folder / "fleet")
    if failed:
        return [f"{failed} ({did})"]
    wrong = [
        f"{path} has no row, or is left out"
        for path in ("plain/steady.pt", "witness/1/model.pt")
        if _lost(artifacts, path)
    ]
    for name, assignments in profiles.items():
        try:
            settings_of(
                Options(project=PROJECT, overrides={"old": "2.1.2", "new": "2.6.0"}, assignments=tuple(assignments))
            )
        except ConfigError as error:
            by = [path for path, item in artifacts.items() if item.serving.profile == name]
            wrong.append(f"the profile of {by} is refused, and with it a run: {error}")
    wrong += [
        f"{path} is left out in {len(item.left_out)} characters, or lines"
        for path, item in artifacts.items()
        if len(item.left_out) > 1000 or len(item.left_out.splitlines()) > 2
    ]
    return [f"{line} ({did})" for line in wrong]


def _lost(artifacts: Mapping[str, FleetArtifact], path: str) -> bool:
    return path not in artifacts or bool(artifacts[path].left_out)


def _planned(store: Path, into: Path) -> tuple[str, Mapping[str, FleetArtifact], Mapping[str, Sequence[str]]]:
    said = called(PROJECT, ("fleet", "plan", str(store), "--old", "2.1.2", "--new", "2.6.0", "--into", str(into)))
    if said.code not in DOCUMENTED or said.code or "Traceback" in said.err:
        return f"exit code {said.code}: {said.err[-400:]}", {}, {}
    plan: dict[str, Any] = json.loads((into / "plan.json").read_text(encoding="utf-8"))
    artifacts = {
        item["path"]: FleetArtifact(
            name=item["name"],
            path=item["path"],
            left_out=item["left_out"],
        )
        for item in plan["artifacts"]
    }
    return "", artifacts, plan["profiles"]


def mutant(chance: random.Random) -> tuple[str, bytes]:
    """Return what was done to a genuine configuration, and its bytes then."""
    text, done = chance.choice(GENUINE), []
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        edit = chance.choice(EDITS)
        what, text = edit(text, chance)
        done.append(what)
    data = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:
        at = chance.randrange(len(data))
        data, done = data[:at] + chance.randbytes(2) + data[at:], [*done, f"bytes at {at}"]
    return ", ".join(done), data


Edit = Callable[[str, random.Random], tuple[str, str]]


def _replaced(pattern: str, values: Sequence[str], what: str) -> Edit:
    def edit(text: str, chance: random.Random) -> tuple[str, str]:
        places = list(re.finditer(pattern, text))
        if not places:
            return "nothing", text
        place, value = chance.choice(places), chance.choice(values)
        return f"{what} {place[0][:20]} -> {value[:20]}", text[: place.start()] + value + text[place.end() :]

    return edit


def _nested(text: str, chance: random.Random) -> tuple[str, str]:
    opened = chance.choice(
        ("optimization { ", "input { ", "a { ", "input [ ", "{ ", "[ ", "model_warmup [ { inputs { ")
    )
    at = chance.choice([match.end() for match in re.finditer(r"\n", text)] or [0])
    closed = "}" * DEEP if chance.random() < 0.5 else ""
    return f"nested {opened}", text[:at] + opened * DEEP + closed + text[at:]


def _lines(text: str, chance: random.Random) -> tuple[str, str]:
    lines = text.splitlines(keepends=True) or [""]
    at, kind = chance.randrange(len(lines)), chance.choice(("drop", "double", "move", "cut", "many"))
    if kind == "drop":
        del lines[at]
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "move":
        lines.append(lines.pop(at))
    elif kind == "many":
        lines[at] *= 500
    else:
        lines[at:] = [lines[at][: chance.randrange(len(lines[at]) + 1)]]
    return f"{kind} line {at}", "".join(lines)


def _unknown(text: str, chance: random.Random) -> tuple[str, str]:
    fields = (
        "later: 3\n",
        "later { a: [ { b: 1 } ] }\n",
        "later: < a: 1 >\n",
        "[x.y]: 3\n",
        "1: 2\n",
        "# \u202e\n",
        "\x00\n",
    )
    return "an unknown field", chance.choice(fields) + text


EDITS: Sequence[Edit] = (
    _replaced(r"(?<![\w.])-?\d+\b", NUMBERS, "number"),
    _replaced(r"(?<![\w.])-?\d+\b", NUMBERS, "number"),
    _replaced(r'(?<=string_value: ")\w+(?=")', [value[:6000] for value in NUMBERS], "value"),
    _replaced(r"\b[A-Z]{4,}_\w+\b", (*WORDS, *NUMBERS), "word"),
    _replaced(r'"[^"\n]*"', TEXTS, "text"),
    _replaced(r"[\[\]{}:,]", ("", "{", "}", "[", "]", "<", ";", "::"), "sign"),
    _replaced(r"\b[a-z_]+(?=:)", ("input", "dims", "kind", "reshape", "x", "name", "max_batch_size"), "field"),
    _nested,
    _lines,
    _lines,
    _unknown,
)
