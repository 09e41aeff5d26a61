"""What ``--artifacts`` means: files, folders, patterns, manifests, and what is left out of them."""

import os
from pathlib import Path

import pytest

from harness.core.models import ArtifactKind, ModelDeclaration
from harness.core.errors import ConfigError, FixtureError, GateError, SelectionError
from harness.artifacts.fixture_folders import changed_sources
from harness.artifacts.given import given_models, renamed_notes
from tests.unit.builders.archives import CODE, torchscript, zipped
from tests.unit.builders.bundles import make_bundle

STATE_DICT = b"\x80\x02ccollections\nOrderedDict\nq\x00)R(X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n)Ru."
ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.6.0"


def write(folder: Path, **files: bytes | str) -> Path:
    """Write files by name, with ``__`` for a slash and ``_dot_`` for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Three artifacts, requests of one of them, a state dict, an ONNX model and a damaged file."""
    return write(
        tmp_path / "fleet",
        ranker_dot_pt=torchscript(),
        ranker_dot_inputs_dot_pt=zipped({"x/data.pkl": STATE_DICT}),
        ads__model_dot_ts=torchscript(CODE.replace("relu", "tanh")),
        search__model_dot_ts=torchscript(),
        weights_dot_pt=zipped({"weights/data.pkl": STATE_DICT, "weights/version": "3\n"}),
        other_dot_pt=ONNX,
        cut_dot_pt=torchscript()[:200],
    )


def by_name(*names: object, base: Path | None = None) -> dict[str, ModelDeclaration]:
    return {model.name: model for model in given_models([str(name) for name in names], base=base).models}


def refusal(*names: object) -> str:
    with pytest.raises(GateError) as caught:
        given_models([str(name) for name in names])
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_is_the_artifacts_in_it_with_the_requests_beside_them(fleet: Path) -> None:
    models = by_name(fleet)
    assert sorted(models) == ["ads_model", "cut", "ranker", "search_model"]
    ranker, given = models["ranker"], models["ranker"].given
    assert given is not None
    assert (given.path, given.inputs) == (str(fleet / "ranker.pt"), str(fleet / "ranker.inputs.pt"))
    assert (ranker.how, ranker.tags, ranker.module, ranker.line) == ("file", ("fleet",), "", 0)
    assert models["ads_model"].tags == ("ads",)
    assert given_models([str(fleet)]) == given_models([str(fleet)])


def test_what_is_no_torchscript_is_left_out_of_a_folder_with_a_note_and_a_damaged_file_is_not(fleet: Path) -> None:
    notes = given_models([str(fleet)]).notes
    assert [note.partition(";")[0] for note in notes] == [
        f"{fleet}/other.pt is no TorchScript: ONNX model",
        f"{fleet}/weights.pt is no TorchScript: state dict",
    ]
    assert notes == given_models([f"{fleet}/**/*"]).notes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><title>Sign in</title>", "web page"),
        (b'{"message": "Not Found"}', "text file"),
        (b"\x1f\x8b\x08\x00", "gzip file"),
        (zipped({"x/notes.txt": "none"}), "zip archive without a model of torch"),
        (b"PK", ""),
        (b"", ""),
    ],
)
def test_what_lies_in_place_of_a_model_is_a_model_whose_row_says_so(fleet: Path, content: bytes, words: str) -> None:
    write(fleet, ranker_dot_pt=content, paths_dot_pth="/usr/lib", index_dot_ts="export const at = 1;")
    found = given_models([str(fleet)])
    assert sorted(model.name for model in found.models) == ["ads_model", "cut", "ranker", "search_model"]
    notes = [note for note in found.notes if note.startswith(f"{fleet}/ranker.pt")]
    assert [note.partition(";")[0] for note in notes] == [f"{fleet}/ranker.pt is no TorchScript: {words}"] * bool(words)
    assert all(note.endswith(" (a row without a result)") for note in notes)


def test_what_was_left_out_is_a_model_where_an_earlier_run_knows_it_as_one(fleet: Path) -> None:
    write(fleet, ads__model_dot_ts=zipped({"x/data.pkl": STATE_DICT}))
    found = given_models([str(fleet)])
    assert sorted(model.name for model in found.models) == ["cut", "model", "ranker"]
    assert found.with_known({"ranker"}) == found
    again = found.with_known({"ads_model", "search_model"})
    assert [model.name for model in again.models if model not in found.models] == ["ads_model"]
    assert [note.rpartition(" (")[2] for note in again.notes] == ["a row without a result)", "left out)", "left out)"]


def test_what_is_no_torchscript_is_refused_where_it_was_named(fleet: Path) -> None:
    said = refusal(fleet / "ranker.pt", fleet / "weights.pt")
    assert "weights.pt is no TorchScript: state dict; it holds values without code" in said
    assert "weights.pt is no TorchScript" in refusal(fleet, fleet / "weights.pt")


def test_a_folder_without_any_torchscript_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a_dot_pt=ONNX)
    assert "no TorchScript there" in refusal(tmp_path)


def test_a_file_of_requests_is_no_artifact(fleet: Path) -> None:
    assert "holds requests" in refusal(fleet / "ranker.inputs.pt")


def test_two_files_of_requests_for_one_artifact_are_both_named(fleet: Path) -> None:
    write(fleet, ranker_dot_inputs_dot_npz=b"")
    with pytest.raises(ConfigError, match=r"ranker\.inputs\.pt and .*ranker\.inputs\.npz"):
        given_models([str(fleet)])


@pytest.mark.parametrize("name", ["nothing", "nothing/*.pt", "", "a\0b", "x" * 5000])
def test_a_name_that_means_nothing_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SelectionError, match="does not exist|matches nothing"):
        given_models([name], base=None)


def test_relative_names_are_relative_to_the_base(fleet: Path) -> None:
    assert by_name("fleet/ranker.pt", base=fleet.parent) == by_name(fleet / "ranker.pt")


def test_one_file_that_is_named_twice_is_one_model(fleet: Path) -> None:
    assert sorted(by_name(fleet / "ranker.pt", fleet / "*.pt", fleet / "ads" / ".." / "ranker.pt")) == ["cut", "ranker"]


def test_what_cannot_be_opened_is_refused_where_it_was_named_and_a_model_where_it_was_found(tmp_path: Path) -> None:
    write(tmp_path, good_dot_pt=torchscript())
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "gone.pt").symlink_to("nowhere")
    assert sorted(by_name(tmp_path)) == ["gone", "good", "pipe"]
    assert "is no plain file" in refusal(tmp_path / "pipe.pt")
    assert "cannot be opened" in refusal(tmp_path / "gone.pt")


def test_a_name_that_is_no_utf_8_is_left_out_with_a_note(tmp_path: Path) -> None:
    write(tmp_path, good_dot_pt=torchscript())
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.pt")).write_bytes(torchscript())
    found = given_models([str(tmp_path)])
    assert [model.name for model in found.models] == ["good"]
    assert "\\udcff.pt' has a name that is no UTF-8" in found.notes[0]


def manifest(folder: Path, text: str) -> Path:
    (folder / "models.toml").write_text(text)
    return folder


def test_a_folder_with_a_manifest_is_what_that_names(fleet: Path) -> None:
    manifest(fleet, '[[models]]\nname = "r"\npath = "ranker.pt"\ntolerance = 0.05\n')
    found = given_models([str(fleet)])
    (model,) = found.models
    assert (model.name, model.tolerance, model.tags) == ("r", 0.05, ("fleet",))
    assert model.given is not None
    assert model.given.inputs == str(fleet / "ranker.inputs.pt")
    assert found.notes == (f"{fleet}/ads/model.ts and 4 more: not tested, {fleet}/models.toml does not name them",)
    assert given_models([str(fleet / "models.toml")]).models == found.models


def test_a_manifest_beside_other_files_keeps_its_names(fleet: Path) -> None:
    manifest(fleet / "ads", '[[models]]\nname = "ranker"\npath = "model.ts"\n')
    models = by_name(fleet / "ads", fleet / "*.pt", fleet / "ads" / "model.ts")
    assert sorted(models) == ["cut", "fleet_ranker", "ranker"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('path = "no.pt"', 'models.toml:2: model "no".path: /FLEET/no.pt cannot be opened: No such file'),
        ('path = "weights.pt"', 'models.toml:2: model "weights".path: /FLEET/weights.pt is no TorchScript: state dict'),
        (
            'path = "ranker.pt"\ninputs = "i.pt"',
            'models.toml:3: model "ranker".inputs: /FLEET/i.pt cannot be opened: No such file',
        ),
        ('path = "ranker.pt"\ninputs = "i.csv"', 'model "ranker".inputs: expected a file .pt, .safetensors, .npz, .py'),
    ],
)
def test_a_manifest_that_names_what_is_not_there_is_reported_the_model_and_the_key(
    fleet: Path, text: str, said: str
) -> None:
    manifest(fleet, f"[[models]]\n{text}\n")
    with pytest.raises(FixtureError) as caught:
        given_models([str(fleet)])
    assert said.replace("/FLEET", str(fleet)) in str(caught.value)


def test_a_manifest_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path, models_dot_toml=b"\xff")
    assert "cannot be read" in refusal(tmp_path)
    (tmp_path / "models.toml").unlink()
    (tmp_path / "models.toml").symlink_to("nowhere")
    assert "cannot be opened" in refusal(tmp_path)
    (tmp_path / "models.toml").unlink()
    (tmp_path / "models.toml").symlink_to("/etc/hostname")
    assert f"models.toml is a link that leads out of {tmp_path}" in refusal(tmp_path)
    (tmp_path / "models.toml").unlink()
    with (tmp_path / "models.toml").open("wb") as stream:
        stream.truncate(1 << 40)
    assert "is no manifest: 1,099,511,627,776 bytes" in refusal(tmp_path)


def test_a_broken_bundle_is_refused(tmp_path: Path) -> None:
    write(tmp_path, x_dot_gate=b"none")
    assert "x.gate" in refusal(tmp_path)


def test_what_is_no_healthy_bundle_is_left_out_of_a_folder_with_a_note_and_refused_where_it_was_named(
    tmp_path: Path,
) -> None:
    healthy = make_bundle(tmp_path / "fleet", work=tmp_path)
    cut = tmp_path / "fleet" / "cut.gate"
    cut.write_bytes(healthy.read_bytes()[:-30])
    stray = tmp_path / "fleet" / "notes.gate"
    stray.write_text("which models we have packed")
    found = given_models([str(tmp_path / "fleet")])
    assert [model.name for model in found.models] == ["m"]
    assert len(found.notes) == 2
    assert found.notes[0].startswith(f"{cut}: ") and found.notes[0].endswith(" (left out)")
    assert found.notes[1] == f"{stray}: is no golden bundle (left out)"
    assert given_models([f"{tmp_path}/fleet/*.gate"]) == found
    assert "notes.gate: is no golden bundle" in refusal(healthy, stray)
    assert "cut.gate" in refusal(tmp_path / "fleet", cut)


@pytest.mark.parametrize("touched", ["ranker.pt", "ranker.inputs.pt", "models.toml"])
def test_a_file_that_changed_since_is_named(fleet: Path, touched: str) -> None:
    manifest(fleet, '[[models]]\npath = "ranker.pt"\n[[models]]\npath = "cut.pt"\n')
    models = given_models([str(fleet)]).models
    assert changed_sources(models) == []
    before = (fleet / touched).read_bytes()
    (fleet / touched).write_bytes(before + b"\n")
    assert changed_sources(models) == [str(fleet / touched)]
    (fleet / touched).write_bytes(before)
    assert changed_sources(models) == []


def test_an_artifact_that_is_gone_has_changed(fleet: Path) -> None:
    models = given_models([str(fleet / "cut.pt")]).models
    (fleet / "cut.pt").unlink()
    assert changed_sources(models) == [str(fleet / "cut.pt")]


def put(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def notes(*names: object) -> tuple[str, ...]:
    return given_models([str(name) for name in names]).notes


def test_requests_beside_an_artifact_of_another_name_are_reported(tmp_path: Path) -> None:
    model, orphan = put(tmp_path / "ranker-v2.pt", torchscript()), put(tmp_path / "ranker_v2.inputs.pt")
    said = f"{orphan}: requests of no artifact; those of ranker-v2.pt are called ranker-v2.inputs.pt"
    assert notes(tmp_path) == (said,)
    assert notes(model) == (said,)
    assert notes(f"{tmp_path}/*.pt") == (said,)


def test_requests_that_are_used_or_have_a_file_of_their_name_are_not(tmp_path: Path) -> None:
    put(tmp_path / "a.pt", torchscript())
    put(tmp_path / "a.inputs.npz")
    assert notes(tmp_path) == ()
    assert notes(tmp_path / "a.pt") == ()


def test_version_in_a_name_is_no_suffix(tmp_path: Path) -> None:
    put(tmp_path / "ranker.v2.pt", torchscript())
    put(tmp_path / "ranker.inputs.npz")
    (note,) = notes(tmp_path)
    assert note.endswith("those of ranker.v2.pt are called ranker.v2.inputs.npz")


def test_requests_in_a_folder_of_their_own_are_reported_with_the_place_of_the_artifact(tmp_path: Path) -> None:
    model, orphan = put(tmp_path / "ranker.pt", torchscript()), put(tmp_path / "inputs" / "ranker.inputs.py")
    (note,) = notes(tmp_path)
    assert note.startswith(f"{orphan}: ") and note.endswith(f"are called ranker.inputs.py, beside {model}")


def test_artifact_that_has_requests_is_not_what_was_meant(tmp_path: Path) -> None:
    put(tmp_path / "a.pt", torchscript())
    put(tmp_path / "a.inputs.pt")
    orphan = put(tmp_path / "aa.inputs.pt")
    assert notes(tmp_path) == (f"{orphan}: requests of no artifact",)


def test_manifest_that_names_its_requests_leaves_no_orphan(tmp_path: Path) -> None:
    put(tmp_path / "a.pt", torchscript())
    put(tmp_path / "monday.inputs.pt")
    put(tmp_path / "models.toml", b'[[models]]\npath = "a.pt"\ninputs = "monday.inputs.pt"\n')
    assert notes(tmp_path) == ()


def test_many_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "model.pt", torchscript())
    for index in range(25):
        put(tmp_path / f"x{index:02}.inputs.pt")
    found = notes(tmp_path)
    assert len(found) == 21
    assert found[-1] == "and 5 more files with requests of no artifact"


def test_a_program_is_an_artifact_of_its_kind(tmp_path: Path) -> None:
    program = zipped({"version": "8.2", "serialized_exported_program.json": "{}"})
    models = by_name(write(tmp_path, net_dot_pt2=program, net_dot_inputs_dot_pt=b"", plain_dot_pt=torchscript()))
    assert {name: model.kind for name, model in models.items()} == {
        "net": ArtifactKind.PROGRAM,
        "plain": ArtifactKind.TORCHSCRIPT,
    }
    assert models["net"].given is not None
    assert models["net"].given.inputs == str(tmp_path / "net.inputs.pt")


def test_whatever_looks_like_a_model_and_is_left_out_is_named(fleet: Path, tmp_path: Path) -> None:
    """Planted: other suffixes, links; twins: text, a link to a folder that is searched anyway, requests."""
    write(
        fleet,
        ads__model_dot_bin=torchscript(),
        model=torchscript(),
        weights_dot_bin=zipped({"weights/data.pkl": STATE_DICT, "weights/version": "3\n"}),
        README_dot_md="words",
        labels_dot_bin=b"\x01\x02\x03",
        index_dot_ts="export const at = 1;",
        search__model_dot_inputs_dot_pt=zipped({"x/data.pkl": STATE_DICT}),
    )
    write(tmp_path / "store", model_dot_pt=torchscript())
    (fleet / "current").symlink_to(tmp_path / "store")
    (fleet / "alias").symlink_to(fleet / "ads")
    (fleet / "old").symlink_to("nowhere")
    found = given_models([str(fleet)])
    other = "TorchScript archive by another suffix: name it, or call it .pt"
    assert {item.path: item.what for item in found.unjudged} == {
        "ads/model.bin": other,
        "model": other,
        "weights.bin": "state dict",
        "current": f"a link to {tmp_path}/store, which is not followed: name that",
        "old": "a link to nothing",
        "other.pt": "ONNX model",
        "weights.pt": "state dict",
    }
    assert all(any(item.path in note for note in found.notes) for item in found.unjudged)
    assert [item.path for item in found.unjudged][-2:] == ["other.pt", "weights.pt"]  # these could not be judged at all
    assert not given_models([str(fleet / "ranker.pt")]).unjudged


def test_what_a_manifest_does_not_name_is_named_and_what_it_names_is_not(fleet: Path) -> None:
    write(fleet, served_dot_bin=torchscript(), models_dot_toml='[[models]]\nname = "m"\npath = "served.bin"\n')
    unjudged = given_models([str(fleet)]).unjudged
    forgotten = ["ads/model.ts", "cut.pt", "other.pt", "ranker.pt", "search/model.ts", "weights.pt"]
    assert sorted(item.path for item in unjudged if item.what == "not in models.toml") == forgotten
    assert len(unjudged) == len(forgotten)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ads__model.input.py", True),
        ("ads__model.inptus.pt", True),
        ("ads__model.inputs.py", False),
        ("ads__model.v2.py", False),
    ],
)
def test_requests_with_a_typing_error_in_their_name_are_named(fleet: Path, name: str, meant: bool) -> None:
    write(fleet, **{name: "def inputs(): ..."})
    told = [note for note in given_models([str(fleet)]).notes if "did you mean" in note]
    suffix = Path(name).suffix
    words = f"did you mean model.inputs{suffix}? requests of model.ts are called that"
    assert ([words in note for note in told]) == [True] * meant


def test_a_name_that_another_file_of_the_stem_takes_away_is_told_where_somebody_knows_it(fleet: Path) -> None:
    (note,) = renamed_notes(given_models([str(fleet)]).models, {"model", "ranker", "other"})
    assert note.startswith(
        "model is known to a waiver or the baseline, and no model has that name: 2 files have that stem"
    )
    assert "are called ads_model, search_model;" in note
    (fleet / "ads" / "model.ts").unlink()
    assert renamed_notes(given_models([str(fleet)]).models, {"model"}) == []
