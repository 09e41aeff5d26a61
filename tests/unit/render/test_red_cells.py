"""Which commands a red cell shows."""

from dataclasses import replace

from harness.render.red_cells import red_cells
from tests.unit.render.builders import blocked


def test_cell_whose_operator_can_be_found_has_the_command_that_looks_for_it() -> None:
    by_kind = {cell.model: cell for cell in red_cells(blocked())}
    wrong, slow = by_kind["recommender_v2"], by_kind["text_tagger"]
    assert wrong.bisect == wrong.rerun.replace(" rerun ", " bisect ")
    assert slow.bisect == ""
    without_old = replace(blocked(), old=replace(blocked().old, golden=True))
    assert {cell.bisect for cell in red_cells(without_old)} == {""}
