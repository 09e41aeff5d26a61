"""Which commands a red cell shows."""

from dataclasses import replace

from harness.core.models import ArtifactKind
from harness.core.report import Explained
from harness.report.words.red_cells import red_cells
from tests.unit.builders.reports import blocked


def test_cell_whose_operator_can_be_found_has_the_command_that_looks_for_it() -> None:
    by_kind = {cell.model: cell for cell in red_cells(blocked())}
    wrong, slow, beside = by_kind["recommender_v2"], by_kind["text_tagger"], by_kind["fused_ranker"]
    assert "concurrent" in beside.cell
    for cell in (wrong, slow, beside):
        assert cell.bisect == cell.rerun.replace(" rerun ", " bisect ")
    without_old = replace(blocked(), old=replace(blocked().old, golden=True))
    assert {cell.bisect for cell in red_cells(without_old)} == {""}


def test_an_exported_program_has_no_graph_in_which_an_operator_could_be_looked_for() -> None:
    report = blocked()
    models = [
        replace(one, kind=ArtifactKind.PROGRAM) if one.model == "recommender_v2" else one for one in report.models
    ]
    by_kind = {cell.model: cell for cell in red_cells(replace(report, models=tuple(models)))}
    assert by_kind["recommender_v2"].bisect == ""
    assert " bisect " in by_kind["text_tagger"].bisect


def test_what_searches_found_stands_in_its_cell_and_files_beside_the_run_are_named_as_they_lie() -> None:
    by_model = {cell.model: cell for cell in red_cells(blocked(), directory="out/run")}
    wrong, loading = by_model["recommender_v2"], by_model["legacy_lstm"]
    words = "softmax_by_parts (exp and sum); needs: float inputs; the old release loads it too"
    assert ("rewrite", f"latency: no difference found (between 0.8 % faster and 1.6 % slower): {words}") in wrong.lines
    assert wrong.found[-1] == "out/run/explained/recommender_v2__backward__alone__cpu__default/bisect.json"
    assert [text for label, text in loading.lines if label == "since"] == ["torch 2.3.0; torch 2.2.2 is good"]
    assert loading.found[-1] == "out/20250114-1-bisect/bisect.json"
    assert by_model["text_tagger"].found == ()


def test_refusals_that_the_static_check_tells_already_are_not_reported_twice() -> None:
    report = blocked()
    cell = next(cell for cell in red_cells(report) if any(label == "static" for label, _ in cell.lines))
    told = Explained(
        cell=cell.cell, model=cell.model, by="bisect", answer="loading", lines=(("refused", "aten::gone"),)
    )
    (again,) = [item for item in red_cells(replace(report, explained=(told,))) if item.cell == cell.cell]
    assert (
        again.lines == next(item for item in red_cells(replace(report, explained=())) if item.cell == cell.cell).lines
    )
