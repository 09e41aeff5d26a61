"""What a server can set otherwise where a model does not pass, by the names that policy uses; the table has them.

The JIT switches take a natural hang away (docs/evidence.md#natural-hang).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from harness.core.devices import Device
from harness.core.diagnosis import Setting
from harness.core.probe import ServingProfile
from harness.serving.settings.table import ROWS, TABLE, Alternative, Kind, Row, Tried

NOTHING_KNOWN: Final[Mapping[str, Any]] = MappingProxyType({})

_IN_PLACE: Final = "it is in the process's environment; whether the library heeds it, torch cannot be asked"


def _setting(row: Row, alternative: Alternative) -> Setting:
    content: dict[str, Any] = (
        {"order": (row.name,)}
        if row.kind is Kind.ORDER
        else {row.name: alternative.value}
        if row.kind is Kind.POOL
        else {str(row.kind): {row.name: alternative.value}}
    )
    waives = "" if row.read_back else _IN_PLACE
    return Setting(name=alternative.name, about=alternative.about, needs=row.needs, waives=waives, **content)


def _tried(*by: Tried) -> tuple[str, ...]:
    return tuple(item.name for row in ROWS for item in row.mitigations if item.tried in by)


MITIGATIONS: Final[Mapping[str, Setting]] = {item.name: _setting(row, item) for row in ROWS for item in row.mitigations}
# Tried on every red cell of every run; the others can be accepted by policy and are searched by ``mitigate``.
TRIED_BY_DEFAULT: Final = _tried(Tried.EVERY_RUN)
JIT_SWITCHES: Final = tuple(MITIGATIONS[name] for name in _tried(Tried.EVERY_RUN, Tried.EVERY_SEARCH))
# The outcome of these does not depend on how a loaded graph is executed.
NOT_MITIGABLE: Final = ("load_error", "structure", "dtype", "export_error")


def applied(profile: ServingProfile, chosen: Iterable[Setting]) -> ServingProfile:
    for setting in chosen:
        profile = replace(
            profile,
            switches={**profile.switches, **setting.switches},
            env={**profile.env, **setting.env},
            numerics={**profile.numerics, **setting.numerics},
            intra_op_threads=setting.intra_op_threads or profile.intra_op_threads,
            inter_op_threads=setting.inter_op_threads or profile.inter_op_threads,
        )
    return profile


def candidates(
    profile: ServingProfile,
    *,
    device: Device,
    isa: str,
    orders: Collection[str],
    pools: tuple[int, int] | None,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> tuple[Setting, ...]:
    """Return the settings that could matter: of a shared process what orders its threads first, then as in the table.

    Those that change nothing are left out.

    Args:
        isa: what torch's kernels are chosen for here, as a fingerprint has it.
        orders: of loading and calling, those that could be otherwise where the symptom shows, see ``Setting.order``.
        pools: sizes of the pools there, where they are not the profile's.
        old, new: the numeric state of a worker of either release, by the names of ``ServingProfile.numerics``.
    """
    if pools is not None:
        profile = replace(profile, intra_op_threads=pools[0], inter_op_threads=pools[1])
    settings = [
        setting
        for setting in MITIGATIONS.values()
        if device.has(setting.needs)
        and (set(setting.order) <= set(orders) if setting.order else changes(setting, profile, isa, new))
    ]
    settings += [
        as_before(row.name, value)
        for row in ROWS
        if row.as_before and (value := old.get(row.name)) is not None and new.get(row.name) not in (None, value)
    ]
    return tuple(sorted(settings, key=lambda setting: not (orders and _orders_threads(setting))))


def as_before(name: str, value: Any) -> Setting:
    """Return what gives the new side the value that a setting has on the old one; ``name`` as differences call it."""
    row = next((row for row in ROWS if row.fingerprint == name), None)
    same = (item.name for item in (row.mitigations if row else ()) if str(item.value).lower() == str(value).lower())
    known = next(same, None)
    if known is not None:
        return MITIGATIONS[known]
    setting = Setting(name=f"{name} as before", about=f"{value}, as in the old release")
    if row is None:
        return replace(setting, numerics={name: value})
    return replace(setting, env={row.name: str(value).lower()})


def shows(name: str, mitigations: Collection[str]) -> bool:
    """Whether one of these, which mitigate, shows that the setting ``name`` is why numbers differ."""
    rows = [row for row in ROWS if name in (row.name, row.fingerprint)]
    return not {f"{name} as before", *(item.name for row in rows for item in row.mitigations)}.isdisjoint(mitigations)


def _orders_threads(setting: Setting) -> bool:
    pools = setting.intra_op_threads, setting.inter_op_threads
    return bool(setting.order) or pools != (None, None)


def changes(setting: Setting, profile: ServingProfile, isa: str = "", new: Mapping[str, Any] = NOTHING_KNOWN) -> bool:
    if setting.env.get("ATEN_CPU_CAPABILITY") == isa.lower():
        return False
    if setting.numerics and all(new.get(name) == value for name, value in setting.numerics.items()):
        return False
    if any(name not in profile.switches and TABLE[name].default == value for name, value in setting.switches.items()):
        return False
    if setting.inter_op_threads is not None and profile.inter_op_threads >= setting.inter_op_threads:
        return False
    return bool(setting.order) or applied(profile, [setting]) != profile


def get_along(chosen: Sequence[Setting]) -> bool:
    """Whether settings make sense together: no two of them set the same thing, none does the work of another."""
    names = [name for setting in chosen for name in setting.values]
    done = [other for name in names for other in TABLE[name].includes]
    return len(names) == len(set(names)) and not set(done) & set(names)


def orders(chosen: Iterable[Setting]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(order for setting in chosen for order in setting.order))
