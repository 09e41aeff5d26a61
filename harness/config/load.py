"""``[tool.compat]`` and the command line, as ``Settings``; every mistake named by its full key.

Pure: the caller parses the TOML file and hands over the table. ``schema.TOP`` is the whole list of what may be written.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.config.policy import policy_settings
from harness.config.schema import BUDGET_DEFAULTS, OPTIONS, ROOT, SERVING, TOP, Kind, read, shown, unknown
from harness.core.devices import AUTO, TABLE, Device
from harness.core.errors import ConfigError
from harness.core.measurement import limit_words
from harness.core.plan import Deadlines, LatencyBudget, LimitSettings, PolicySettings, Settings
from harness.core.probe import ServingProfile

DEFAULT_PROFILE: Final = ServingProfile().name
# Keys whose values are those of ``Settings``.
PLAIN_KEYS: Final = (
    {key for key, kind in TOP.keys.items() if isinstance(kind, Kind)} | {"allow_same_torch", "computes_in", "fresh"}
) - {*("old", "new", "releases")}


def load_settings(
    table: Mapping[str, Any],
    *,
    file: str,
    overrides: Mapping[str, object],
    mitigations: Collection[str],
    kinds: Collection[str] = (),
    policy: PolicySettings | None = None,
    auto_jobs: int = 2,
    auto_memory_gb: float | None = None,
) -> Settings:
    """Return the settings of a run; ``old`` and ``new`` are empty where nothing names them.

    Args:
        table: ``[tool.compat]`` as parsed.
        overrides: from the command line, by the names in ``OPTIONS``; None means not given, the rest wins.
        mitigations: names that ``policy.accepted_mitigations`` may list; ``kinds``: those of findings, for
            ``policy.severity``.
        policy: in place of what ``table`` says of it, from a file of its own.
        auto_jobs: what ``jobs = "auto"`` stands for on this machine; ``auto_memory_gb``: likewise for
            ``limits.memory_gb``, None for no limit.

    Raises:
        ConfigError: one line with the file, the full key, what was expected and what was found.
    """
    where = f"{file}: {ROOT}"
    values = read(table, TOP, where)
    for name, value in _read_options(overrides).items():
        section, _, key = ("latency.budget" if name == "latency" else name).rpartition(".")
        (values.setdefault(section, {}) if section else values)[key] = value
    _choose_models(values, overrides)
    serving = values.get("serving", {})
    if policy is None:
        policy = policy_settings(values.get("policy", {}), f"{where}.policy", mitigations=mitigations, kinds=kinds)
    if values.get("jobs") == "auto":
        values["jobs"] = auto_jobs
    if values.get("rollback") == "off" and policy.rollback == "fail":
        raise ConfigError(
            f'{where}.policy.rollback: "fail" and {ROOT}.rollback = "off": nobody would answer what is to decide',
            'write rollback = "static" or "probe", or policy.rollback = "warn"',
        )
    devices = _devices(values.get("devices", {}), f"{where}.devices")
    if "device" in values:
        written = "command line: --device" if overrides.get("device") is not None else f"{where}.device"
        _check_device(values["device"], (AUTO, *TABLE, *devices), written)
    limits = values.get("limits", {})
    if limits.get("memory_gb", "auto") == "auto":
        limits = {**limits, "memory_gb": auto_memory_gb, "memory_is_derived": auto_memory_gb is not None}
    return Settings(
        old=values.get("old", ""),
        new=values.get("new", ""),
        profile=_profile(serving, values.get("profile", DEFAULT_PROFILE), f"{where}.serving.profiles"),
        new_profile=_profile(serving, values["new_profile"], f"{where}.serving.profiles")
        if "new_profile" in values
        else None,
        groups=serving.get("groups", {}),
        deadlines=_deadlines(values.get("deadlines", {})),
        latency=_latency(values.get("latency", {}), f"{where}.latency"),
        policy=policy,
        limits=LimitSettings(**limits),
        devices=devices,
        **{key: values[key] for key in PLAIN_KEYS if key in values},
    )


def _check_device(name: str, known: Sequence[str], where: str) -> None:
    if name not in known:
        raise ConfigError(
            f"{where}: expected one of {', '.join(known)}, got {shown(name)}",
            f"a device outside of torch is described in [{ROOT}.devices.{name}]",
        )


def _devices(written: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Device]:
    devices = {}
    for name, keys in written.items():
        if name in (AUTO, *TABLE):
            raise ConfigError(f"{where}.{name}: this device is known already", "give one of your own another name")
        if keys.get("graphs") and not (keys.get("streams") and keys.get("events")):
            raise ConfigError(
                f"{where}.{name}.graphs: a graph is captured in a stream and timed by events",
                "write streams = true and events = true too",
            )
        devices[name] = Device(name=name, words=name, torch=name, **keys)
    return devices


def _choose_models(values: dict[str, Any], overrides: Mapping[str, object]) -> None:
    """Leave what is meant of fixtures and artifacts: what the command line names alone, else what is written."""
    named = [key for key in ("fixtures", "artifacts") if overrides.get(key)]
    if len(named) == 1:
        values.pop("artifacts" if named == ["fixtures"] else "fixtures", None)
    if values.get("artifacts"):
        values.setdefault("fixtures", "")


# Options that the command line calls otherwise than the configuration calls their key.
SHORT_OPTIONS: Final = {"deadlines.floor_s": "deadline"}


def _read_options(overrides: Mapping[str, object]) -> dict[str, Any]:
    options = {}
    for name, value in overrides.items():
        if value is None:
            continue
        where = "command line: --" + SHORT_OPTIONS.get(name, name).replace("_", "-").replace(".", "-")
        if name not in OPTIONS:
            raise unknown(where, "option", name, OPTIONS)
        options[name] = OPTIONS[name].read(value, where, strict=False)
    return options


def _profile(serving: Mapping[str, Any], name: str, where: str) -> ServingProfile:
    profiles = serving.get("profiles", {})
    if DEFAULT_PROFILE in profiles:
        raise ConfigError(
            f"{where}.{DEFAULT_PROFILE}: is the name of {ROOT}.serving itself", "give the profile another name"
        )
    if name != DEFAULT_PROFILE and name not in profiles:
        raise unknown(where, f"profile {shown(name)}", name, [DEFAULT_PROFILE, *profiles])
    own = profiles.get(name, {})
    merged = {**serving, **own}
    for key in ("switches", "env", "numerics"):
        merged[key] = {**serving.get(key, {}), **own.get(key, {})}
    return ServingProfile(name=name, **{key: merged[key] for key in SERVING if key in merged})


def _deadlines(written: Mapping[str, Any]) -> Deadlines:
    """Return the deadlines; who names a floor means it for fast calls too."""
    deadlines = Deadlines(**written)
    named = deadlines.floor_s != Deadlines().floor_s and "fast_floor_s" not in written
    return replace(deadlines, fast_floor_s=deadlines.floor_s) if named else deadlines


def with_budget(latency: LatencyBudget, name: object) -> LatencyBudget:
    """Return ``latency`` with what the budget ``name`` means; unchanged for None."""
    if name is None:
        return latency
    defaults: Mapping[str, Any] = BUDGET_DEFAULTS.get(str(name), {})
    return replace(latency, budget=str(name), **defaults)


def _latency(written: Mapping[str, Any], where: str) -> LatencyBudget:
    latency = LatencyBudget(**{**BUDGET_DEFAULTS.get(written.get("budget", ""), {}), **written})
    if latency.undecided_limit <= 1 + latency.limit:
        limits = f"more than the limit, which is {limit_words(1 + latency.limit)}"
        message = f"{where}.undecided_limit: expected {limits}, got {limit_words(latency.undecided_limit)}"
        raise ConfigError(message, "raise it, or leave it out")
    if list(latency.looks) != sorted(set(latency.looks)):
        message = f"{where}.looks: expected numbers that rise, got {shown(list(latency.looks))}"
        raise ConfigError(message, "such as [3, 5, 8]")
    return latency
