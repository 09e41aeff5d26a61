"""What stands in for the old release: bundles where they are all there is, else the release itself."""

from pathlib import Path
from typing import Any

import pytest

from harness.run.options import Options, golden_store
from harness.run.golden.source import GoldenSource, records_of, golden_source
from harness.core.environment import EnvSpec
from harness.core.models import GivenArtifact, ModelDeclaration
from harness.core.plan import Plan, Settings
from harness.core.probe import ServingProfile
from harness.core.errors import ConfigError, GoldenError
from harness.artifacts.bundles import bundle_declaration
from tests.unit.builders.requests import declaration
from tests.unit.builders.bundles import make_bundle

PROFILE = ServingProfile()
BARE = declaration(name="bare", source="bare.pt", line=0, given=GivenArtifact(path="/x/bare.pt"))


def source_of(folder: Path, models: list[ModelDeclaration], device: str = "cpu", **options: Any) -> GoldenSource | None:
    profile = options.pop("profile", PROFILE)
    said = Options(project=folder, **options)
    return golden_source(models, said, golden_store(said, said.golden), device, profile)


@pytest.fixture
def bundle(tmp_path: Path) -> ModelDeclaration:
    return bundle_declaration(make_bundle(tmp_path))


def test_bundles_alone_stand_in_for_the_old_release(tmp_path: Path, bundle: ModelDeclaration) -> None:
    found = source_of(tmp_path, [bundle])
    assert found == GoldenSource(folder=str(tmp_path), models=(bundle,), computes_in={"m": "float16"})


@pytest.mark.parametrize(
    "said",
    [
        {"overrides": {"old": "2.1.2"}},
        {"environments": ("old=/opt/python",)},
        {"assignments": ("calls=2", "old=2.1.2")},
        {"assignments": ('old = "2.1.2"',)},
    ],
)
def test_the_old_release_itself_is_asked_where_it_is_named(
    tmp_path: Path, bundle: ModelDeclaration, said: dict[str, Any]
) -> None:
    assert source_of(tmp_path, [bundle], **said) is None
    assert source_of(tmp_path, [bundle, BARE], **said) is None
    assert source_of(tmp_path, [bundle], environments=("new=/opt/python",), assignments=("new=2.6.0",)) is not None


def test_models_without_bundles_ask_the_old_release(tmp_path: Path) -> None:
    assert source_of(tmp_path, [BARE, declaration()]) is None


def test_bundles_beside_bare_files_need_the_old_release(tmp_path: Path, bundle: ModelDeclaration) -> None:
    with pytest.raises(ConfigError, match=r"m\.gate is a golden bundle and bare\.pt is none") as caught:
        source_of(tmp_path, [bundle, BARE])
    assert "--old" in caught.value.hint


def test_golden_records_beside_bundles_are_refused(tmp_path: Path, bundle: ModelDeclaration) -> None:
    with pytest.raises(ConfigError, match=r"--golden beside m\.gate") as caught:
        source_of(tmp_path, [bundle], golden="golden")
    assert "drop --golden" in caught.value.hint


def test_a_bundle_of_another_device_judges_nothing(tmp_path: Path, bundle: ModelDeclaration) -> None:
    with pytest.raises(GoldenError, match=r"m\.gate was made on cpu and cannot judge cuda") as caught:
        source_of(tmp_path, [bundle], "cuda")
    assert "--device cpu" in caught.value.hint


@pytest.mark.parametrize(
    ("profile", "noted"),
    [
        (PROFILE, False),
        (ServingProfile(name="other name", env={"A": "1"}), False),
        (ServingProfile(name="wide", intra_op_threads=4), True),
        (ServingProfile(name="tf32", numerics={"matmul_precision": "high"}), True),
    ],
)
def test_another_serving_profile_is_reported(
    tmp_path: Path, bundle: ModelDeclaration, profile: ServingProfile, *, noted: bool
) -> None:
    found = source_of(tmp_path, [bundle], profile=profile)
    assert found is not None
    assert len(found.notes) == noted
    assert all(f"than {profile.name}" in note and "of m were" in note for note in found.notes)


def test_a_plan_finds_its_records_again(tmp_path: Path, bundle: ModelDeclaration) -> None:
    options = Options(project=tmp_path)
    plan = Plan(
        settings=Settings(old="", new="2.6.0"),
        old=None,
        new=EnvSpec(name="torch 2.6.0", release="2.6.0"),
        device="cpu",
        direction="backward",
        models=(bundle,),
        planted_defects=(),
        groups={},
        golden=str(tmp_path),
    )
    assert records_of(plan, options).names() == ("m",)
    assert records_of(plan, options).title().startswith("golden bundle made by torch 2.1.2+cu121")
