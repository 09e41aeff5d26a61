"""Which models share a server process."""

import pytest

from harness.core.models import ArtifactKind, GivenArtifact, ModelDeclaration
from harness.core.errors import SelectionError
from harness.checks.startup.groups import assign_groups
from tests.unit.builders.requests import declaration


def declare(name: str, *tags: str) -> ModelDeclaration:
    return declaration(name=name, tags=tags)


MODELS = (
    declare("vit", "vision"),
    declare("dlrm", "ranking", "ads"),
    declare("bare"),
    declare("bert", "text"),
    declare("din", "ranking"),
)


def test_models_go_with_their_first_tag_and_the_rest_to_misc() -> None:
    groups = assign_groups(MODELS, {})
    assert groups == {"ranking": ("dlrm", "din"), "text": ("bert",), "vision": ("vit",), "misc": ("bare",)}
    assert list(groups) == ["ranking", "text", "vision", "misc"]


def test_first_matching_group_takes_the_model() -> None:
    groups = assign_groups(MODELS, {"web": "ads or text", "all_ranking": "ranking"})
    assert groups["web"] == ("dlrm", "bert")
    assert groups["all_ranking"] == ("din",)
    assert list(groups) == ["web", "all_ranking", "vision", "misc"]


def test_every_model_is_in_exactly_one_group() -> None:
    members = [name for group in assign_groups(MODELS, {"a": "d", "b": "dlrm"}).values() for name in group]
    assert sorted(members) == sorted(model.name for model in MODELS)


def test_group_without_models_is_left_out() -> None:
    assert "empty" not in assign_groups(MODELS, {"empty": "nothing_like_this"})


def test_tag_that_is_a_configured_name_joins_that_group() -> None:
    assert assign_groups(MODELS, {"ranking": "bert"})["ranking"] == ("dlrm", "bert", "din")


def test_configured_misc_keeps_its_place() -> None:
    groups = assign_groups(MODELS, {"misc": "vit", "text": "bert"})
    assert list(groups) == ["misc", "text", "ranking"]
    assert groups["misc"] == ("vit", "bare")


def test_no_models_give_no_groups() -> None:
    assert assign_groups((), {"a": "b"}) == {}


@pytest.mark.parametrize("expression", ["dlrm or", "dlrm + bert", ""])
def test_unreadable_expression_names_its_key(expression: str) -> None:
    with pytest.raises(SelectionError, match=r"^tool\.compat\.serving\.groups\.ads: expression ") as caught:
        assign_groups(MODELS, {"fine": "bert", "ads": expression})
    assert "write one like" in caught.value.hint


def test_programs_which_no_server_in_cpp_loads_are_a_group_of_their_own_and_packages_are_not() -> None:
    def given(name: str, kind: ArtifactKind) -> ModelDeclaration:
        artifact = GivenArtifact(path=f"/m/{name}", kind=kind)
        return ModelDeclaration(name=name, package_root="/m", source=name, tags=("ranking",), given=artifact)

    kinds = {"archive": ArtifactKind.TORCHSCRIPT, "package": ArtifactKind.PACKAGE, "program": ArtifactKind.PROGRAM}
    groups = assign_groups([given(name, kind) for name, kind in kinds.items()], {})
    assert groups == {"ranking": ("archive", "package"), "ranking (programs)": ("program",)}
