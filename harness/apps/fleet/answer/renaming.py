"""A result under another artifact's name: what holds a model's name by its type is changed, and no other text. Pure."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from harness.core.comparison import OutputComparison
from harness.core.fleet import FleetResult
from harness.core.measurement import LatencyMeasurement, PairSample
from harness.core.report import Explained, ModelReport, ScenarioReport
from harness.core.verdict import CellVerdict, Fix, Mitigation, RowVerdict

NAMED: Final[Mapping[type, tuple[str, ...]]] = {
    FleetResult: ("name",),
    RowVerdict: ("model",),
    CellVerdict: ("cell", "model"),
    Mitigation: ("cell", "model", "breaks"),
    Fix: ("breaks",),
    ModelReport: ("model", "group"),
    OutputComparison: ("model",),
    LatencyMeasurement: ("model",),
    PairSample: ("model",),
    ScenarioReport: ("group",),
    Explained: ("cell", "model"),
}
"""Fields that hold names of models, ids of cells, which begin with one, or of the group that a model is by itself."""


def renamed(value: FleetResult, new: str) -> FleetResult:
    made: FleetResult = value if value.name == new else _walked(value, value.name, new)
    return made


def _walked(item: Any, old: str, new: str) -> Any:
    made = item
    if is_dataclass(item) and not isinstance(item, type):
        named = NAMED.get(type(item), ())
        now = {field.name: getattr(item, field.name) for field in fields(item)}
        then = {
            name: _named(value, old, new) if name in named else _walked(value, old, new) for name, value in now.items()
        }
        changed = {name: value for name, value in then.items() if value is not now[name]}
        made = replace(item, **changed) if changed else item
    elif isinstance(item, Mapping):
        made = {key: _walked(value, old, new) for key, value in item.items()}
        made = made if any(made[key] is not value for key, value in item.items()) else item
    elif isinstance(item, tuple):
        made = tuple(_walked(value, old, new) for value in item)
        made = made if any(part is not other for part, other in zip(made, item, strict=True)) else item
    return made


def _named(value: Any, old: str, new: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_named(item, old, new) for item in value)
    if value == old:
        return new
    return new + value[len(old) :] if value.startswith(f"{old}/") else value
