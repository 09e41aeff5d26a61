"""Comparisons, results, estimates, verdicts and waivers as the stages hand them to policy."""

import datetime
from typing import Any

from harness.verdict.waivers.apply import Ran
from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference
from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure, ModelResult
from harness.core.verdict import CellVerdict, Finding, Mitigation, PlantedDefectResult, RowVerdict, Waiver

OLD, NEW = "torch 2.1.2", "torch 2.6.0"


def cell_id(model: str = "m", scenario: str = "alone") -> str:
    """Return a cell's id."""
    return f"{model}/{scenario}"


def tensor(**changes: Any) -> TensorMetrics:
    """Return a tensor that is off by a tenth of its largest value, far beyond its tolerance."""
    defaults: dict[str, Any] = {
        "path": "output",
        "dtype": "float32",
        "elements": 8,
        "bit_equal": False,
        "max_abs": 0.2,
        "max_rel": 0.5,
        "scale": 2.0,
        "tolerance_abs": 2e-5,
        "mismatched": 3,
        "worst_index": (1, 4),
        "worst_expected": "1.5",
        "worst_actual": "1.7",
    }
    return TensorMetrics(**{**defaults, **changes})


def equal(**changes: Any) -> TensorMetrics:
    """Return a tensor whose bytes did not change."""
    return tensor(**{"bit_equal": True, "max_abs": 0.0, "max_rel": 0.0, "mismatched": 0, **changes})


def call(
    *tensors: TensorMetrics, index: int = 0, input_set: str = "example", tree: tuple[TreeDifference, ...] = ()
) -> CallComparison:
    """Return the comparison of one call."""
    return CallComparison(input_set=input_set, call=index, tensors=tensors, tree=tree)


def compared(*calls: CallComparison, **changes: Any) -> OutputComparison:
    """Return the comparison of a model's calls."""
    return OutputComparison(model="m", scenario="alone", calls=calls, **changes)


def difference(path: str = "output[0]", kind: str = "structure") -> TreeDifference:
    """Return a difference of structure."""
    return TreeDifference(path=path, kind=kind, expected="tuple of length 2", actual="tuple of length 3")


def result(outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> ModelResult:
    """Return what happened to model ``m``."""
    return ModelResult(**{"model": "m", "outcome": outcome, **changes})


def load_error(message: str = "Unknown builtin op: aten::gone") -> ModelResult:
    """Return a model that does not load."""
    failure = Failure(type="RuntimeError", message=message, phase="load")
    return result(Outcome.LOAD_ERROR, phase="load", failure=failure)


def ratio(low: float, high: float, value: float | None = None, pairs: int = 3) -> RatioEstimate:
    """Return an estimate with the interval [low, high]."""
    middle = (low + high) / 2 if value is None else value
    return RatioEstimate(ratio=middle, low=low, high=high, pairs=pairs, detectable=1.02)


def measured(steady: RatioEstimate | None, **changes: Any) -> LatencyMeasurement:
    """Return a benchmark with the steady ratio new/old."""
    return LatencyMeasurement(**{"model": "m", "samples": (), "steady": steady, **changes})


def verdict(
    status: Status = Status.PASS, *findings: Finding, model: str = "m", scenario: str = "alone", **changes: Any
) -> CellVerdict:
    """Return one cell's verdict."""
    cell = cell_id(model, scenario)
    return CellVerdict(cell=cell, model=model, scenario=scenario, status=status, findings=findings, **changes)


def finding(kind: str, message: str = "") -> Finding:
    """Return a finding of ``kind``."""
    return Finding(kind=kind, message=message or f"about {kind}")


def mitigated(name: str, model: str = "m", *, mitigates: bool = True, price: RatioEstimate | None = None) -> Mitigation:
    """Return a tried mitigation."""
    return Mitigation(
        cell=cell_id(model), model=model, name=name, switches={"s": False}, mitigates=mitigates, price=price
    )


def mitigation(*settings: str, mitigates: bool = False, **more: Any) -> Mitigation:
    """Return settings that were tried together."""
    return Mitigation(
        cell=cell_id(), model="m", name=" + ".join(settings), settings=settings, mitigates=mitigates, **more
    )


def row(
    status: Status = Status.PASS, model: str = "m", *mitigations: Mitigation, reason: str = "off by 0.1"
) -> RowVerdict:
    """Return a model's row with one cell."""
    return RowVerdict(
        model=model, status=status, cells=(verdict(status, model=model),), reason=reason, mitigations=mitigations
    )


def planted_defect(name: str = "wrong_value", *, caught: bool = True) -> PlantedDefectResult:
    """Return a planted defect's result."""
    return PlantedDefectResult(name=name, expected="values", reported=("values",) if caught else (), caught=caught)


DAY = datetime.date(2026, 11, 21)
RAN = Ran("2.1.2+cu121", "2.6.0+cu124", "cpu", "default")


def waiver(kind: str = "values", **changes: Any) -> Waiver:
    """Return a waiver of ann for ``kind`` on model ``m`` that ends on ``DAY``."""
    defaults = {"model": "m", "kind": kind, "reason": "known drift", "owner": "ann", "expires": DAY}
    return Waiver(**{**defaults, **changes})


def in_days(days: int) -> datetime.date:
    """Return the day so many days after ``DAY``."""
    return DAY + datetime.timedelta(days=days)


def sized(size: float | None, kind: str = "values") -> Finding:
    """Return a finding of that size."""
    base = finding(kind)
    return Finding(kind=kind, message=base.message, size=size)
