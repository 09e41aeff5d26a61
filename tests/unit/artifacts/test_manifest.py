"""Manifests of artifacts, and what a wrong one says."""

from dataclasses import replace

import pytest

from harness.core.models import GivenArtifact, ModelDeclaration
from harness.core.errors import ExitCode, FixtureError
from harness.artifacts.manifest import MODEL, MOST_BYTES, manifest_text, read_manifest

FULL = """# what we serve
[[models]]
name = "ranker"
path = "ranking/ranker.pt"
inputs = "/data/ranker.npz"
methods = ["forward", "encode"]
tolerance = 1e-3
reset = "clear"
owner = "ads team"
tags = ["ranking", "ads"]
devices = ["cpu"]
seed = 7
unordered = ["output[*]"]
timed = false

[[models]]
path = "tower.pt"
"""


def read(text: str) -> tuple[ModelDeclaration, ...]:
    return read_manifest(text, file="fleet/models.toml", folder="/srv/fleet")


def refusal(text: str) -> str:
    with pytest.raises(FixtureError) as caught:
        read(text)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    said = str(caught.value)
    assert said.startswith("fleet/models.toml")
    assert "\n" not in said
    return said


def test_a_manifest_says_all_that_a_file_cannot() -> None:
    ranker, tower = read(FULL)
    assert ranker == ModelDeclaration(
        name="ranker",
        package_root="/srv/fleet",
        source="models.toml",
        line=2,
        how="file",
        tags=("ranking", "ads"),
        owner="ads team",
        seed=7,
        reset="clear",
        devices=("cpu",),
        unordered=("output[*]",),
        tolerance=1e-3,
        timed=False,
        given=GivenArtifact(
            path="/srv/fleet/ranking/ranker.pt", inputs="/data/ranker.npz", methods=("forward", "encode")
        ),
    )
    assert (tower.name, tower.line, tower.devices) == ("tower", 16, ("cpu", "cuda"))
    assert tower.given == GivenArtifact(path="/srv/fleet/tower.pt")


def test_every_key_is_read() -> None:
    assert set(MODEL.keys) - {"requests"} == {line.partition(" = ")[0] for line in FULL.splitlines() if " = " in line}


@pytest.mark.parametrize("inline", ['models = [{path = "a.pt"}]', '[[models]]\npath = "a.pt"\ntags = ["""b""", "c"]'])
def test_other_ways_of_writing_it_are_taken(inline: str) -> None:
    (model,) = read(inline)
    assert model.given is not None
    assert model.given.path == "/srv/fleet/a.pt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "fleet/models.toml: names no model"),
        ("[[models]", "fleet/models.toml: not valid TOML"),
        ("modelz = 1", 'fleet/models.toml: top level.modelz: unknown key; did you mean "models"?'),
        ("models = 1", "fleet/models.toml: top level.models: expected [[models]] tables, got 1"),
        ('[[models]]\nname = "r"', 'fleet/models.toml:1: model "r".path: missing'),
        (
            '\n[[models]]\nname = "r"\npath = "r.pt"\ntolerances = 1',
            'fleet/models.toml:5: model "r".tolerances: unknown key; did you mean "tolerance"?',
        ),
        (
            '[[models]]\nname = "r"\npath = "r.pt"\ntolerance = "a"',
            'fleet/models.toml:4: model "r".tolerance: expected a number > 0 and <= 0.1, such as 1e-3, got "a"',
        ),
        (
            '[[models]]\npath = "r.pt"\n[[models]]\nname = "a b"\npath = "r.pt"',
            'fleet/models.toml:4: model 2.name: expected a word of letters, digits and _, got "a b"',
        ),
        ('[[models]]\nname = "r"\npath = "r.pt"\ndevices = ["tpu"]', 'model "r".devices: expected a list of'),
        (
            '[[models]]\nname = "r"\npath = "r.pt"\nunordered = ["boxes"]',
            'model "r".unordered: expected a list of paths',
        ),
        ('[[models]]\nname = "r"\npath = "r.pt"\nseed = -1', 'model "r".seed: expected a whole number >= 0, got -1'),
        ('[[models]]\nname = "r"\npath = ""', 'model "r".path: expected text in quotes, not empty'),
        ('[[models]]\nname = "r"\npath = "a\\u0000b"', 'model "r".path: expected a path'),
        ('[[models]]\nname = "planted_x"\npath = "r.pt"', 'model "planted_x".name: planted_... are the gate\'s own'),
        (
            '[[models]]\nname = "r"\npath = "r.pt"\ntags = ["planted"]',
            'model "r".tags: "planted" is the gate\'s own',
        ),
        (
            '[[models]]\npath = "a/r.pt"\n[[models]]\npath = "b/r.pt"',
            'fleet/models.toml:3: model "r" is already declared at models.toml:1',
        ),
        ('[[models]]\npath = "r.gate"', 'model "r".path: a golden bundle says all this itself'),
        (
            '[[models]]\npath = "r.pt"\ninputs = "i.pt"\nrequests = [{arguments = []}]',
            'model "r".requests: requests are given twice',
        ),
        (
            '[[models]]\npath = "r.pt"\nrequests = [{argumentz = []}]',
            'fleet/models.toml:3: model "r".requests[1].argumentz: unknown key; did you mean "arguments"?',
        ),
        ('[[models]]\npath = "a/r.pt"\ntagz = 1', 'fleet/models.toml:3: model "r".tagz: unknown key'),
        (
            '[[models]]\npath = "r.pt"\n[[models.requests]]\nmethod = 1\n[[models]]\nmethods = 1',
            'fleet/models.toml:1: model "r".requests[1].method: expected',
        ),
        (f'[[models]]\npath = "r.pt"\nname = "{"a" * 81}"', ".name: 81 characters; at most 80"),
        ("a." * 50 + "a = 1", "fleet/models.toml:1: a key of more than 50 parts"),
        ('[[models]]\ntags = ["a.b"]\n[x' + " . 'a.b'" * 51 + "]", "fleet/models.toml:3: a key of more than 50 parts"),
        ("#" * (MOST_BYTES + 1), "fleet/models.toml: is no manifest: 1,048,577 characters"),
        ('[[models]]\npath = "r.pt"\nseed = ' + "1" * 5000, "fleet/models.toml: holds a number with too many digits"),
        ('[[models]]\npath = "r.pt"\nseed = 0x' + "f" * 5000, "got a number with too many digits"),
        (
            f'[[models]]\npath = "r.pt"\nrequests = [{{arguments = [{{shape = {[10**6] * 1000}}}]}}]',
            "arguments[1].shape: a tensor of more than 1,073,741,824 elements",
        ),
    ],
)
def test_a_mistake_is_named_by_file_model_and_key(text: str, said: str) -> None:
    assert said in refusal(text)


def test_many_dots_on_a_line_are_no_long_key() -> None:
    row = ", ".join(["0.5"] * 200)
    (model,) = read(f'[[models]]\npath = "{"a." * 60}pt" # {"." * 60}\nrequests = [{{arguments = [[{row}]]}}]')
    assert model.given is not None
    assert model.given.requests[0]["arguments"] == [[0.5] * 200]


BARE = ModelDeclaration(
    name="m",
    package_root="/run",
    source="models.toml",
    line=2,
    how="file",
    given=GivenArtifact(path="/run/m.pt"),
)
EVERYTHING = replace(
    BARE,
    tags=("ranking", "ads"),
    owner='the "ads" team',
    tolerance=1e-05,
    reset="clear",
    devices=("cpu",),
    seed=2**62,
    unordered=("output[1]", "output[*]"),
    timed=False,
    given=GivenArtifact(path="/run/m.pt", inputs="/inputs/tensors.jsonl", methods=("forward", "encode")),
)


@pytest.mark.parametrize("model", [BARE, EVERYTHING])
def test_what_is_written_is_read_again(model: ModelDeclaration) -> None:
    assert model.given is not None
    inputs = "../inputs/tensors.jsonl" if model.given.inputs else ""
    text = manifest_text(model, path="m.pt", inputs=inputs)
    assert read_manifest(text, file="models.toml", folder="/run") == (model,)


@pytest.mark.parametrize("name", ['a"b\\c', "tab\tnewline\n", "delete\x7f", "naïve 模型 \N{GRINNING FACE}", "a'b"])
def test_any_file_name_is_read_again(name: str) -> None:
    (model,) = read_manifest(manifest_text(BARE, path=f"{name}.pt"), file="models.toml", folder="/run")
    assert model.given is not None
    assert model.given.path == f"/run/{name}.pt"
