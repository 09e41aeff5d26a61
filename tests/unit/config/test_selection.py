"""What a ``-k`` expression, a name and a cell id select, and what a wrong one says."""

from dataclasses import replace

import pytest

from harness.config.selection import did_you_mean, find_model, nearest, parse_cell_id, select
from harness.core.models import ModelDeclaration
from harness.core.plan import Cell
from harness.serving.scenarios import CELL_SCENARIOS
from harness.core.errors import ExitCode, SelectionError
from tests.unit.builders.requests import declaration


def declare(name: str, *tags: str) -> ModelDeclaration:
    return declaration(name=name, tags=tags)


MODELS = (
    declare("dlrm", "ranking", "ads"),
    declare("dlrm_traced", "ranking", "traced"),
    declare("bert", "text"),
    declare("int8_resnet", "vision", "quantized"),
    declare("resnet", "vision"),
    declare("pick_frames", "break"),
)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("bert", "bert"),
        ("dlrm", "dlrm dlrm_traced"),
        ("DLRM and not TRACED", "dlrm"),
        ("ads", "dlrm"),
        ("rank", "dlrm dlrm_traced"),
        ("dlrm or bert", "dlrm dlrm_traced bert"),
        ("not quantized and (vision or text)", "bert resnet"),
        ("not not bert", "bert"),
        ("vision and resnet and not int8", "resnet"),
        ("bert or vision and int8", "bert int8_resnet"),
        ("  bert  ", "bert"),
        ("break", "pick_frames"),
        ("not break and text", "bert"),
    ],
)
def test_expression_selects_by_name_and_tag(expression: str, names: str) -> None:
    assert [model.name for model in select(MODELS, expression)] == names.split()


@pytest.mark.parametrize("expression", [None, "", "  "])
def test_no_expression_selects_everything(expression: str | None) -> None:
    assert select(MODELS, expression) == MODELS


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("dlrm or", 8),
        ("dlrm bert", 6),
        ("dlrm or int8-resnet", 9),
        ("  dlrm + bert", 3),
        ("dlrm or 3", 9),
        ("é or 3", 6),
        ("f(dlrm)", 1),
        ("a < b", 1),
        ("'bert'", 1),
        ("bert # or dlrm", 6),
        ("(bert", 1),
    ],
)
def test_unreadable_expression_names_the_column_and_an_example(expression: str, column: int) -> None:
    with pytest.raises(SelectionError) as caught:
        select(MODELS, expression)
    text = str(caught.value)
    assert text.startswith(f'expression "{expression}": ')
    assert f"column {column}" in text
    assert 'write one like "dlrm or bert"' in text
    assert caught.value.exit_code is ExitCode.CONFIGURATION


@pytest.mark.parametrize("expression", ["a\0b", "(" * 5000 + "a" + ")" * 5000, "not " * 20000 + "a"])
def test_hostile_expression_is_refused_and_not_a_crash(expression: str) -> None:
    with pytest.raises(SelectionError):
        select(MODELS, expression)


def test_expression_without_a_match_names_the_nearest_and_how_to_list() -> None:
    with pytest.raises(SelectionError) as caught:
        select(MODELS, "dlmr and not tarced")  # codespell:ignore
    text = str(caught.value)
    assert text.startswith('expression "dlmr and not tarced": none of the 6 models matches')  # codespell:ignore
    assert 'did you mean "dlrm"' in text
    assert "--list" in text


def test_selecting_from_nothing_is_an_error() -> None:
    with pytest.raises(SelectionError, match="no model is declared"):
        select((), None)


def test_model_is_found_by_its_exact_name() -> None:
    assert find_model(MODELS, "dlrm") is MODELS[0]


@pytest.mark.parametrize(("name", "near"), [("dlrn", '"dlrm"'), ("Bert", '"bert"')])
def test_unknown_model_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(SelectionError, match=f'no model is called "{name}"; did you mean {near}.*--list'):
        find_model(MODELS, name)


def test_unknown_model_without_a_neighbour_says_how_to_list() -> None:
    with pytest.raises(SelectionError) as caught:
        find_model(MODELS, "zzzzzz")
    assert str(caught.value) == 'no model is called "zzzzzz"; list the models with compat --list'


def test_nearest_ignores_case_and_keeps_the_spelling() -> None:
    assert nearest("budgett", ["limit", "Budget"]) == ("Budget",)
    assert did_you_mean("zzz", ["limit"]) == ""


def test_cell_id_reads_back_as_its_cell() -> None:
    for scenario in CELL_SCENARIOS:
        assert parse_cell_id(Cell("dlrm", scenario).id) == Cell("dlrm", scenario)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dlrm", "expected model/scenario"),
        ("/alone", "expected model/scenario"),
        ("dlrm/alone/all", "expected model/scenario"),
        ("dlrm b/alone", "expected model/scenario"),
        ("dlrm/together", 'no scenario is called "together"'),
        ("dlrm/alone b", 'no scenario is called "alone b"'),
    ],
)
def test_wrong_cell_id_says_the_form(text: str, reason: str) -> None:
    with pytest.raises(SelectionError) as caught:
        parse_cell_id(text)
    assert str(caught.value).startswith(f'cell "{text}": {reason}')
    assert "alone" in caught.value.hint


def test_a_cell_that_is_nearly_written_right_is_named() -> None:
    for text, hint in {"topk/alon": 'did you mean "topk/alone"? ', "topk": "write one like topk/alone"}.items():
        with pytest.raises(SelectionError) as caught:
            parse_cell_id(text)
        assert caught.value.hint.startswith(hint)


def test_id_of_an_earlier_report_is_refused_with_the_new_one_named() -> None:
    with pytest.raises(SelectionError, match="an id is model/scenario now") as caught:
        parse_cell_id("a.b/forward/latency/cuda/cpu_fusion")
    assert caught.value.hint == "write a.b/latency"
