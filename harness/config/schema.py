"""What may be written in ``[tool.compat]`` and on the command line: kinds of value, tables of keys, and their reading.

``TOP`` is the whole list of keys; every mistake is named by its full key.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from harness.config.limits import AmbiguousLimit, ratio_of
from harness.config.selection import did_you_mean
from harness.core.devices import CONFIGURED, NAME_PATTERN
from harness.core.environment import AUTO_BACKEND, DEFAULT_BACKEND
from harness.core.errors import ConfigError
from harness.core.plan import CAPTURE_MODES, ERROR, FLOOR, OWN, ROLLBACKS, RUNTIMES, SEVERITIES, TOTAL
from harness.core.probe import LOADERS
from harness.core.quantities import COMMON, INITIALIZATION, QUANTITY_LIMITS, STEADY
from harness.machine.typed import converted
from harness.serving.scenarios import CELL_SCENARIOS, SCENARIOS
from harness.serving.settings import table

ROOT: Final = "tool.compat"
RELEASE_PATTERN: Final = (
    r"\A(\d+\.\d+)(\.\d+)?((?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?)\Z"
)
BUILD_PATTERN: Final = r"cpu|cu\d{2,3}|rocm\d+(?:\.\d+)+|xpu"
ReleaseText = Annotated[str, Meta(pattern=RELEASE_PATTERN)]
WrittenText = Annotated[str, Meta(min_length=1)]


class Kind(NamedTuple):
    """One kind of value: what a message calls it, and the ``target`` type that msgspec converts to."""

    expected: str
    target: Any

    def read(self, value: object, where: str, *, strict: bool = True, error: type[ConfigError] = ConfigError) -> Any:
        """Return ``value`` as this kind, unless ``strict`` from text too. Raises ``error``: ``where: expected ...``."""
        try:
            # msgspec takes a set for a list, in an order that changes with the process.
            return converted(repr(value) if isinstance(value, set) else value, self.target, strict=strict)
        except msgspec.ValidationError:
            raise error(f"{where}: expected {self.expected}, got {shown(value)}") from None

    def accepts(self, value: object) -> bool:
        """Whether ``read`` takes ``value``."""
        try:
            self.read(value, "")
        except ConfigError:
            return False
        return True


class LimitKind(Kind):
    """A limit of a ratio new/old, in any of its notations; ``target`` says whether it is kept as a ratio."""

    def read(self, value: object, where: str, *, strict: bool = True, error: type[ConfigError] = ConfigError) -> float:
        """Return the ratio, or by how much it is above 1. Raises ``error``: no limit, or an ambiguous one."""
        del strict
        try:
            ratio = ratio_of(value, ratios=self.target)
        except AmbiguousLimit as ambiguous:
            raise error(f"{where}: {ambiguous}") from None
        except ValueError:
            raise error(f"{where}: expected {self.expected}, got {shown(value)}") from None
        return ratio if self.target else round(ratio - 1, 12)


class Table(NamedTuple):
    """A table: its keys, and what any ``other`` key holds; those keys are named as ``named`` says."""

    keys: Mapping[str, "Kind | Table | Tables"]
    other: "Kind | Table | None" = None
    named: Kind = Kind("a name", Annotated[str, Meta(pattern=r"\A[\w.+-]+\Z")])


class Tables(NamedTuple):
    """A list of tables, such as TOML's ``[[rules]]``; messages count them from 1."""

    each: Table


def read(value: object, schema: "Kind | Table | Tables", where: str, *, error: type[ConfigError] = ConfigError) -> Any:
    """Return ``value`` as ``schema``, nothing filled in. Raises ``error`` with ``where`` and the path below it."""
    if isinstance(schema, Kind):
        return schema.read(value, where, error=error)
    if isinstance(schema, Tables):
        if not isinstance(value, list | tuple):
            raise error(f"{where}: expected a list of tables, got {shown(value)}")
        return tuple(read(item, schema.each, f"{where}, number {at}", error=error) for at, item in enumerate(value, 1))
    if not isinstance(value, Mapping):
        raise error(f"{where}: expected a table, got {shown(value)}")
    result = {}
    for key, item in value.items():
        path = f"{where}.{key if _is_bare(key) else shown(key)}"
        part = schema.keys.get(key, schema.other if schema.named.accepts(key) else None)
        if part is None:
            allowed = [*schema.keys, *([schema.named.expected] if schema.other else [])]
            raise unknown(path, "key", str(key), schema.keys, allowed=allowed, error=error)
        result[key] = read(item, part, path, error=error)
    return result


def choice(*names: str) -> Kind:
    """Return the kind "one of ``names``"."""
    pattern = "|".join(map(re.escape, names))
    return Kind("one of " + ", ".join(names), Annotated[str, Meta(pattern=rf"\A(?:{pattern})\Z")])


def shown(value: object) -> str:
    """Return ``value`` as a user would have written it, shortened."""
    try:
        text = json.dumps(value, default=repr, ensure_ascii=False)
    except (TypeError, ValueError):
        try:
            text = repr(value)
        except ValueError:  # Python writes no number of thousands of digits
            text = "a number with too many digits"
    return text if len(text) <= 80 else text[:77] + "..."


def unknown(
    where: str,
    what: str,
    name: str,
    known: Collection[str],
    *,
    allowed: Collection[str] = (),
    error: type[ConfigError] = ConfigError,
) -> ConfigError:
    """Return the refusal of ``name``, with the nearest of ``known`` and what is ``allowed``, which is ``known`` too."""
    listed = ", ".join(allowed or known) or "none"
    return error(f"{where}: unknown {what}", f"{did_you_mean(name, known)}allowed: {listed}")


def _is_bare(key: object) -> bool:
    return isinstance(key, str) and re.fullmatch(r"[\w-]+", key, re.ASCII) is not None


# The upper bounds keep infinity out.
POSITIVE: Final = Kind("a number > 0", Annotated[float, Meta(gt=0, le=1e9)])
SECONDS: Final = Kind("a number of seconds >= 0", Annotated[float, Meta(ge=0, le=1e9)])
RATIO_LIMIT: Final = LimitKind('a limit such as "+50 %" or 1.5', target=True)
CHANGE_LIMIT: Final = LimitKind('a limit such as "+5 %" or 0.05', target=False)
COUNT: Final = Kind("a whole number >= 1", Annotated[int, Meta(ge=1)])
SEVERAL: Final = Kind("a whole number >= 2", Annotated[int, Meta(ge=2)])
FLAG: Final = Kind("true or false", bool)
TEXT: Final = Kind("text in quotes, not empty", WrittenText)
TEXTS: Final = Kind("a list of texts in quotes", tuple[WrittenText, ...])
RELEASE: Final = Kind('a torch release in quotes, such as "2.6.0"', ReleaseText)

DTYPES: Final = (
    *("float64", "float32", "tf32", "float16", "bfloat16", "complex128", "complex64", "complex32"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
)


def _kind_of(row: table.Row) -> Kind:
    if row.values is bool:
        return FLAG
    if isinstance(row.values, int):
        return Kind(f"a whole number >= {row.values}", Annotated[int, Meta(ge=row.values)])
    return choice(*row.values) if isinstance(row.values, tuple) else Kind("text in quotes", str)


def _kinds(kind: table.Kind) -> Mapping[str, Kind]:
    return {row.name: _kind_of(row) for row in table.of_kind(kind)}


SWITCHES: Final = _kinds(table.Kind.SWITCH)
NUMERICS: Final = _kinds(table.Kind.NUMERICS)
SERVING: Final[Mapping[str, Kind | Table]] = {
    **_kinds(table.Kind.POOL),
    "load": choice(*LOADERS),
    "switches": Table(SWITCHES),
    "env": Table({}, Kind("text in quotes", str)),
    "numerics": Table(NUMERICS),
}
TORCH_BACKEND: Final = Kind(
    f'"{AUTO_BACKEND}", "{DEFAULT_BACKEND}", or a build of PyTorch\'s index such as "cpu" or "cu126"',
    Annotated[str, Meta(pattern=rf"\A(?:{AUTO_BACKEND}|{DEFAULT_BACKEND}|{BUILD_PATTERN})\Z")],
)
ENVIRONMENT: Final[Mapping[str, Kind]] = {
    "index_args": TEXTS,
    "extras": TEXTS,
    "libraries": TEXTS,
    "python": Kind('a Python such as "3.11"', Annotated[str, Meta(pattern=r"\A3\.\d+\Z")]),
}
DEADLINES: Final = {
    "floor_s": POSITIVE,
    "fast_floor_s": POSITIVE,
    "factor": POSITIVE,
    "total_s": POSITIVE,
    "export_s": POSITIVE,
}
LIMITS: Final[Mapping[str, Kind]] = {
    "memory_gb": Kind(
        'a number > 0, or "auto" (90 % of this machine\'s memory)',
        Annotated[float, Meta(gt=0, le=1e9)] | Literal["auto"],
    ),
    "cpu_s": POSITIVE,
    "file_gb": POSITIVE,
    "network": FLAG,
}
LATENCY: Final[Mapping[str, Kind]] = {
    "budget": choice("off", "quick", "thorough"),
    "limit": CHANGE_LIMIT,
    "floor_s": SECONDS,
    "common_limit": CHANGE_LIMIT,
    "looks": Kind(
        "a list of whole numbers >= 2, such as [3, 4, 6, 8]",
        Annotated[tuple[Annotated[int, Meta(ge=2)], ...], Meta(min_length=1)],
    ),
    "blocks": COUNT,
    "block_s": POSITIVE,
    "model_s": POSITIVE,
    "total_s": POSITIVE,
    "undecided_limit": RATIO_LIMIT,
    "threads": COUNT,
    "together_s": POSITIVE,
    "pin": FLAG,
}
MODEL_LIMITS: Final = Table(
    {
        **dict.fromkeys(QUANTITY_LIMITS, RATIO_LIMIT),
        STEADY: RATIO_LIMIT,
        INITIALIZATION: RATIO_LIMIT,
        FLOOR: SECONDS,
        # An answer that is off by its own largest value is another one: nothing but zeros is off by 1.
        ERROR: Kind("a number > 0 and < 1, such as 0.001", Annotated[float, Meta(gt=0, lt=1)]),
    }
)
POLICY_LIMITS: Final = Table({**MODEL_LIMITS.keys, COMMON: RATIO_LIMIT})
GATES: Final = Kind(
    f"a list of quantities out of {', '.join(QUANTITY_LIMITS)}",
    tuple[Literal[(*QUANTITY_LIMITS,)], ...],  # type: ignore[valid-type]
)
REQUIRED_SCENARIOS: Final = Kind(
    f"a list of scenarios out of {', '.join(CELL_SCENARIOS)}",
    tuple[Literal[(*CELL_SCENARIOS,)], ...],  # type: ignore[valid-type]
)
SEVERITY: Final = Table({}, choice(*SEVERITIES))
POLICY_RULE: Final[Mapping[str, Kind | Table]] = {
    "models": Kind('an expression such as "vision and not quantized"', WrittenText),
    "limits": MODEL_LIMITS,
    "severity": SEVERITY,
    "gates": GATES,
    "required_scenarios": REQUIRED_SCENARIOS,
}
POLICY: Final[Mapping[str, Kind | Table | Tables]] = {
    "accepted_mitigations": TEXTS,
    "limits": POLICY_LIMITS,
    "gates": GATES,
    "latency": choice(TOTAL, OWN),
    "rollback": choice("warn", "fail"),
    "severity": SEVERITY,
    "rules": Tables(Table(POLICY_RULE)),
    "required_scenarios": REQUIRED_SCENARIOS,
    "minimum_models": Kind("a whole number >= 0", Annotated[int, Meta(ge=0, le=10**9)]),
    "minimum_coverage": Kind("a share from 0 to 1, such as 0.95", Annotated[float, Meta(ge=0, le=1)]),
    "unused_waivers": choice("warn", "fail"),
}
DEVICE: Final = Kind("the name of a device, such as cuda", Annotated[str, Meta(pattern=NAME_PATTERN)])
DEVICE_KEYS: Final[Mapping[str, Kind]] = {"nodes": TEXTS, **dict.fromkeys(CONFIGURED, FLAG)}
TOP: Final = Table(
    {
        "old": TEXT,
        "new": TEXT,
        "device": DEVICE,
        "jobs": Kind('a whole number >= 1, or "auto"', Annotated[int, Meta(ge=1)] | Literal["auto"]),
        "init_threads": SEVERAL,
        "init_rounds": COUNT,
        "runtime": choice(*RUNTIMES),
        "capture_mode": choice(*CAPTURE_MODES),
        "capture_warm_calls": Kind("a whole number >= 0", Annotated[int, Meta(ge=0, le=1000)]),
        "rollback": choice(*ROLLBACKS),
        "explain": SECONDS,
        "migrate": FLAG,
        "scenarios": Kind(
            f"a list of scenarios out of {', '.join(SCENARIOS)}",
            tuple[Literal[(*CELL_SCENARIOS, "all")], ...],  # type: ignore[valid-type]
        ),
        "calls": COUNT,
        "repeats": SEVERAL,
        "noise_threads": Kind("a list of whole numbers >= 1", tuple[Annotated[int, Meta(ge=1)], ...]),
        "fixtures": TEXT,
        "artifacts": TEXTS,
        "releases": Kind('a list of torch releases such as ["2.6.0"]', tuple[ReleaseText, ...]),
        "torch_backend": TORCH_BACKEND,
        "environments": Table(ENVIRONMENT, Table(ENVIRONMENT), RELEASE),
        "serving": Table({**SERVING, "groups": Table({}, TEXT), "profiles": Table({}, Table(SERVING))}),
        "devices": Table({}, Table(DEVICE_KEYS), DEVICE),
        "deadlines": Table(DEADLINES),
        "latency": Table(LATENCY),
        "limits": Table(LIMITS),
        "policy": Table(POLICY),
        "computes_in": Table({}, choice(*DTYPES)),
    }
)
# What the command line may set, by option name; ``--latency`` is short for its budget.
OPTIONS: Final[Mapping[str, Kind]] = {
    **{key: kind for key, kind in TOP.keys.items() if isinstance(kind, Kind)},
    **{f"latency.{key}": kind for key, kind in LATENCY.items()},
    **{f"deadlines.{key}": kind for key, kind in DEADLINES.items()},
    "latency": LATENCY["budget"],
    "profile": TEXT,
    "new_profile": TEXT,
    "allow_same_torch": FLAG,
    "fresh": FLAG,
}
# What a budget means for the keys that are not written.
BUDGET_DEFAULTS: Final = {"thorough": {"looks": (4, 6, 9, 14, 20), "blocks": 15, "model_s": 160.0}}
