"""Causes that are not the release: settings of a process that change numbers and differ between the sides."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.core.environment import Fingerprint
from harness.core.verdict import CellVerdict, Finding
from harness.serving.settings.table import ROWS, TABLE, Scope

# What of a fingerprint is such a setting.
OF_THE_MACHINE = {row.fingerprint: row for row in ROWS if row.fingerprint}
# Of the thread that converted: they say nothing about an artifact.
NOT_OF_THE_EXPORTER = tuple(row.name for row in ROWS if row.scope is Scope.THREAD)
DIFFERS = "differs"
"""The label of a line about a setting that may be why numbers differ."""
NUMERIC = ("values", "nan_placement", "late_divergence", "input_changed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting as the exporter, the old and the new side have it; None where nobody knows."""

    name: str
    exporter: Any = None
    old: Any = None
    new: Any = None

    @property
    def differs(self) -> bool:
        return self.old is not None and self.new is not None and self.old != self.new

    @property
    def exported_otherwise(self) -> bool:
        """Whether the exporter had another one than the side that is judged."""
        known = self.exporter is not None and self.new is not None
        return known and self.exporter != self.new and self.name not in NOT_OF_THE_EXPORTER


def settings(
    exporter: Mapping[str, Any],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    fingerprints: Mapping[str, Fingerprint],
) -> tuple[Setting, ...]:
    """Return every setting that changes numbers, by name: what workers told, and what the machine gives."""
    names = dict.fromkeys([*new, *old, *exporter])
    found_settings = [
        Setting(name=name, exporter=exporter.get(name), old=old.get(name), new=new.get(name)) for name in names
    ]
    sides = {side: fingerprints.get(side) for side in ("old", "new")}
    machine = [
        Setting(
            name=name,
            **{side: getattr(fingerprint, name) for side, fingerprint in sides.items() if fingerprint is not None},
        )
        for name in OF_THE_MACHINE
    ]
    return (*found_settings, *machine)


def concerning(settings: Sequence[Setting], operators: Sequence[str]) -> tuple[Setting, ...]:
    patterns = {row.name: row.operators for row in ROWS if row.operators}
    return tuple(
        setting
        for setting in settings
        if setting.name not in patterns or any(re.match(patterns[setting.name], name) for name in operators)
    )


def isolating_option(name: str, value: Any) -> str:
    """Return the option with which both sides have ``value`` for the setting ``name``."""
    row = OF_THE_MACHINE.get(name) or TABLE.get(name)
    key = row.key if row is not None else f"serving.numerics.{name}"  # of a record that another gate has made
    lowered = isinstance(value, bool) or name in OF_THE_MACHINE
    return f"--set {key}={str(value).lower() if lowered else value}"


def words(setting: Setting) -> str:
    """Return why a setting may be the cause, in words that say how to find out; empty where it cannot be."""
    if setting.differs:
        return (
            f"{sides(setting)}: numbers may differ for that alone. "
            f"The same command with {isolating_option(setting.name, setting.old)} tells"
        )
    if setting.exported_otherwise:
        return (
            f"{sides(setting)}: it does not travel with the artifact. The same command with "
            f"{isolating_option(setting.name, setting.exporter)} serves it as it was exported"
        )
    return ""


def sides(setting: Setting) -> str:
    if setting.differs:
        return f"{setting.name} is {setting.old} on the old side and {setting.new} on the new side"
    return f"{setting.name} was {setting.exporter} where the model was exported and is {setting.new} where it is served"


def with_differences(verdict: CellVerdict, settings: tuple[Setting, ...]) -> CellVerdict:
    """Return the verdict with every setting that may be why told at its first finding about numbers."""
    telling = [setting for setting in settings if words(setting)]
    lines = tuple((DIFFERS, words(setting)) for setting in telling)
    index = next((index for index, item in enumerate(verdict.findings) if item.kind in NUMERIC), None)
    if not lines or index is None:
        return verdict
    findings: list[Finding] = list(verdict.findings)
    findings[index] = replace(
        findings[index], story=(*findings[index].story, *lines), settings={item.name: sides(item) for item in telling}
    )
    return replace(verdict, findings=tuple(findings))


def notes(settings: tuple[Setting, ...]) -> list[str]:
    return [words(setting) for setting in settings if setting.differs]
