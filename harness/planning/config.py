"""``[tool.compat]`` and the command line, as ``Settings`` and two ``EnvSpec``; every mistake named by its full key.

Pure: the caller parses the TOML file and hands over the table. ``TOP`` below is the whole list of what may be written.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta
from packaging.version import InvalidVersion, Version

from harness.domain.environment import EnvSpec
from harness.domain.plan import Deadlines, LatencyBudget, PolicySettings, Settings
from harness.domain.probe import ServingProfile
from harness.errors import ConfigError
from harness.planning.selection import did_you_mean

ROOT: Final = "tool.compat"
RELEASE_PATTERN: Final = (
    r"\A(\d+\.\d+)(\.\d+)?((?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?)\Z"
)
ReleaseText = Annotated[str, Meta(pattern=RELEASE_PATTERN)]
WrittenText = Annotated[str, Meta(min_length=1)]


class Kind(NamedTuple):
    """One kind of value: what a message calls it, and the ``target`` type that msgspec converts to."""

    expected: str
    target: Any

    def read(self, value: object, where: str, *, strict: bool = True, error: type[ConfigError] = ConfigError) -> Any:
        """Return ``value`` as this kind; ``strict=False`` takes numbers and booleans from text too.

        Raises:
            ConfigError: or ``error``; ``where: expected ..., got ...``.
        """
        try:
            # msgspec takes a set for a list, in an order that changes with the process.
            return msgspec.convert(repr(value) if isinstance(value, set) else value, self.target, strict=strict)
        except msgspec.ValidationError:
            raise error(f"{where}: expected {self.expected}, got {shown(value)}") from None

    def accepts(self, value: object) -> bool:
        """Whether ``read`` takes ``value``."""
        try:
            self.read(value, "")
        except ConfigError:
            return False
        return True


class Table(NamedTuple):
    """A table: its keys, and what any ``other`` key holds; those keys are named as ``named`` says."""

    keys: Mapping[str, "Kind | Table"]
    other: "Kind | Table | None" = None
    named: Kind = Kind("a name", Annotated[str, Meta(pattern=r"\A[\w.+-]+\Z")])


def read(value: object, schema: Kind | Table, where: str, *, error: type[ConfigError] = ConfigError) -> Any:
    """Return ``value`` as ``schema``, a table as a new dict; nothing is filled in.

    Raises:
        ConfigError: or ``error``, with ``where`` and the path below it.
    """
    if isinstance(schema, Kind):
        return schema.read(value, where, error=error)
    if not isinstance(value, Mapping):
        raise error(f"{where}: expected a table, got {shown(value)}")
    result = {}
    for key, item in value.items():
        path = f"{where}.{key if _is_bare(key) else shown(key)}"
        part = schema.keys.get(key, schema.other if schema.named.accepts(key) else None)
        if part is None:
            allowed = [*schema.keys, *([schema.named.expected] if schema.other else [])]
            raise _unknown(path, "key", str(key), schema.keys, allowed=allowed, error=error)
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
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# The upper bounds keep infinity out.
POSITIVE: Final = Kind("a number > 0", Annotated[float, Meta(gt=0, le=1e9)])
ABOVE_ONE: Final = Kind("a ratio > 1, such as 1.5", Annotated[float, Meta(gt=1, le=1e9)])
COUNT: Final = Kind("a whole number >= 1", Annotated[int, Meta(ge=1)])
SEVERAL: Final = Kind("a whole number >= 2", Annotated[int, Meta(ge=2)])
FLAG: Final = Kind("true or false", bool)
TEXT: Final = Kind("text in quotes, not empty", WrittenText)
TEXTS: Final = Kind("a list of texts in quotes", tuple[WrittenText, ...])
RELEASE: Final = Kind('a torch release in quotes, such as "2.6.0"', ReleaseText)

SWITCHES: Final[Mapping[str, Kind]] = {
    "profiling": FLAG,
    "profiling_executor": FLAG,
    "texpr_fuser": FLAG,
    "optimized_execution": FLAG,
    "fusion_depth": Kind("a whole number >= 0", Annotated[int, Meta(ge=0)]),
    "cpu_fusion": FLAG,
    "inference_mode": FLAG,
}
DTYPES: Final = (
    *("float64", "float32", "tf32", "float16", "bfloat16", "complex128", "complex64", "complex32"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
)
SERVING: Final[Mapping[str, Kind | Table]] = {
    "intra_op_threads": COUNT,
    "inter_op_threads": COUNT,
    "switches": Table(SWITCHES),
    "env": Table({}, Kind("text in quotes", str)),
}
ENVIRONMENT: Final[Mapping[str, Kind]] = {
    "index_args": TEXTS,
    "extras": TEXTS,
    "python": Kind('a Python such as "3.11"', Annotated[str, Meta(pattern=r"\A3\.\d+\Z")]),
}
DEADLINES: Final = {"floor_s": POSITIVE, "factor": POSITIVE, "total_s": POSITIVE, "export_s": POSITIVE}
LATENCY: Final[Mapping[str, Kind]] = {
    "budget": choice("off", "quick", "thorough"),
    "limit": Kind("a number > 0 and < 1 (0.03 is 3 %)", Annotated[float, Meta(gt=0, lt=1)]),
    "pairs": SEVERAL,
    "blocks": COUNT,
    "block_s": POSITIVE,
    "confirm_pairs": SEVERAL,
    "undecided_limit": ABOVE_ONE,
}
POLICY: Final = {"accepted_mitigations": TEXTS, "warn_load_ratio": ABOVE_ONE, "warn_first_calls_ratio": ABOVE_ONE}
TOP: Final = Table(
    {
        "old": TEXT,
        "new": TEXT,
        "device": choice("auto", "cpu", "cuda"),
        "jobs": Kind('a whole number >= 1, or "auto"', Annotated[int, Meta(ge=1)] | Literal["auto"]),
        "init_threads": SEVERAL,
        "calls": COUNT,
        "repeats": SEVERAL,
        "fixtures": TEXT,
        "releases": Kind('a list of torch releases such as ["2.6.0"]', tuple[ReleaseText, ...]),
        "environments": Table(ENVIRONMENT, Table(ENVIRONMENT), RELEASE),
        "serving": Table({**SERVING, "groups": Table({}, TEXT), "profiles": Table({}, Table(SERVING))}),
        "deadlines": Table(DEADLINES),
        "latency": Table(LATENCY),
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
}
DEFAULT_PROFILE: Final = ServingProfile().name
# What a budget means for the keys that are not written.
BUDGET_DEFAULTS: Final = {"thorough": {"pairs": 8, "blocks": 15, "block_s": 0.06}}
PLAIN_KEYS: Final = (
    "device",
    "jobs",
    "init_threads",
    "calls",
    "repeats",
    "fixtures",
    "computes_in",
    "allow_same_torch",
)


def load_settings(
    table: Mapping[str, Any],
    *,
    file: str,
    overrides: Mapping[str, object],
    mitigations: Collection[str],
    auto_jobs: int = 2,
) -> Settings:
    """Return the settings of a run; ``old`` and ``new`` are empty where nothing names them.

    Args:
        table: ``[tool.compat]`` as parsed.
        file: name of the file for messages.
        overrides: from the command line, by the names in ``OPTIONS``; None means not given, the rest wins.
        mitigations: names that ``policy.accepted_mitigations`` may list.
        auto_jobs: what ``jobs = "auto"`` stands for on this machine.

    Raises:
        ConfigError: one line with the file, the full key, what was expected and what was found.
    """
    where = f"{file}: {ROOT}"
    values = read(table, TOP, where)
    for name, value in _read_options(overrides).items():
        section, _, key = ("latency.budget" if name == "latency" else name).rpartition(".")
        (values.setdefault(section, {}) if section else values)[key] = value
    serving, policy = values.get("serving", {}), PolicySettings(**values.get("policy", {}))
    for name in policy.accepted_mitigations:
        if name not in mitigations:
            raise _unknown(f"{where}.policy.accepted_mitigations", f"mitigation {shown(name)}", name, mitigations)
    if values.get("jobs") == "auto":
        values["jobs"] = auto_jobs
    return Settings(
        old=values.get("old", ""),
        new=values.get("new", ""),
        profile=_profile(serving, values.get("profile", DEFAULT_PROFILE), f"{where}.serving.profiles"),
        new_profile=_profile(serving, values["new_profile"], f"{where}.serving.profiles")
        if "new_profile" in values
        else None,
        groups=serving.get("groups", {}),
        deadlines=Deadlines(**values.get("deadlines", {})),
        latency=_latency(values.get("latency", {}), f"{where}.latency"),
        policy=policy,
        **{key: values[key] for key in PLAIN_KEYS if key in values},
    )


def env_specs(
    table: Mapping[str, Any], settings: Settings, env_arguments: Sequence[str], *, file: str = "pyproject.toml"
) -> tuple[EnvSpec, EnvSpec]:
    """Return what to build or use on the old and on the new side.

    Args:
        table: ``[tool.compat]`` as parsed.
        settings: from ``load_settings``; ``old`` and ``new`` are releases or names from ``env_arguments``.
        env_arguments: ``NAME=PYTHON``: a ready-made interpreter. ``old`` and ``new`` replace that side.
        file: name of the file for messages.

    Raises:
        ConfigError: a side is missing or neither release nor name; an argument is malformed, given twice or used by
            no side; both sides are the same torch and ``settings.allow_same_torch`` is not set.
    """
    old, new = (env_spec(table, settings, side, env_arguments, file=file) for side in ("old", "new"))
    if (old.release, old.interpreter) == (new.release, new.interpreter) and not settings.allow_same_torch:
        hint = "it would prove nothing: give another --old or --new, or --allow-same-torch to check the gate itself"
        raise ConfigError(f"same torch on both sides: {old.interpreter or old.name}", hint)
    return old, new


def env_spec(
    table: Mapping[str, Any],
    settings: Settings,
    side: Literal["old", "new"],
    env_arguments: Sequence[str],
    *,
    file: str = "pyproject.toml",
) -> EnvSpec:
    """Return one side only, for a run whose other side is a golden record; arguments and errors as ``env_specs``."""
    wanted = {"old": settings.old, "new": settings.new}
    ready = _ready_made(env_arguments, {*wanted, *wanted.values()})
    text = wanted[side]
    for name in (side, text):
        if name in ready:
            return EnvSpec(name=name, interpreter=ready[name])
    written = f"{file}: {ROOT}.{side}"
    if not text:
        hint = f"write a torch release there, or give --{side} or --env {side}=PYTHON"
        raise ConfigError(f"{written}: missing", hint)
    where = written if text == table.get(side) else f"command line: --{side}"
    release = _in_full(RELEASE.read(text, f"{where}: no --env NAME=PYTHON has this name"))
    options = _environment_options(table.get("environments", {}), release, f"{file}: {ROOT}.environments")
    return EnvSpec(name=f"torch {release}", release=release, **options)


def direction_of(old_release: str | None, new_release: str | None) -> Literal["backward", "forward"]:
    """Return "forward" (a rollback is checked) if the new release is the earlier one, else "backward".

    A build suffix such as ``+cpu`` does not count. A side that is no release (a named environment) gives "backward".
    """
    try:
        old, new = (Version(text or "").public for text in (old_release, new_release))
    except InvalidVersion:
        return "backward"
    return "forward" if Version(new) < Version(old) else "backward"


def _is_bare(key: object) -> bool:
    return isinstance(key, str) and re.fullmatch(r"[\w-]+", key, re.ASCII) is not None


def _unknown(
    where: str,
    what: str,
    name: str,
    known: Collection[str],
    *,
    allowed: Collection[str] = (),
    error: type[ConfigError] = ConfigError,
) -> ConfigError:
    listed = ", ".join(allowed or known) or "none"
    return error(f"{where}: unknown {what}", f"{did_you_mean(name, known)}allowed: {listed}")


def _read_options(overrides: Mapping[str, object]) -> dict[str, Any]:
    options = {}
    for name, value in overrides.items():
        if value is None:
            continue
        where = "command line: --" + name.replace("_", "-").replace(".", "-")
        if name not in OPTIONS:
            raise _unknown(where, "option", name, OPTIONS)
        options[name] = OPTIONS[name].read(value, where, strict=False)
    return options


def _profile(serving: Mapping[str, Any], name: str, where: str) -> ServingProfile:
    profiles = serving.get("profiles", {})
    if DEFAULT_PROFILE in profiles:
        raise ConfigError(
            f"{where}.{DEFAULT_PROFILE}: is the name of {ROOT}.serving itself", "give the profile another name"
        )
    if name != DEFAULT_PROFILE and name not in profiles:
        raise _unknown(where, f"profile {shown(name)}", name, [DEFAULT_PROFILE, *profiles])
    own = profiles.get(name, {})
    merged = {**serving, **own}
    for key in ("switches", "env"):
        merged[key] = {**serving.get(key, {}), **own.get(key, {})}
    return ServingProfile(name=name, **{key: merged[key] for key in SERVING if key in merged})


def _latency(written: Mapping[str, Any], where: str) -> LatencyBudget:
    latency = LatencyBudget(**{**BUDGET_DEFAULTS.get(written.get("budget", ""), {}), **written})
    if latency.undecided_limit <= 1 + latency.limit:
        expected = f"a ratio above 1 + limit, which is {1 + latency.limit:g}"
        raise ConfigError(f"{where}.undecided_limit: expected {expected}, got {latency.undecided_limit:g}")
    return latency


def _ready_made(env_arguments: Sequence[str], used: Collection[str]) -> dict[str, str]:
    ready: dict[str, str] = {}
    for argument in env_arguments:
        name, _, interpreter = argument.partition("=")
        where = f"command line: --env {argument}"
        if not name.strip() or not interpreter.strip():
            raise ConfigError(f"{where}: expected NAME=PYTHON, such as old=/opt/torch21/bin/python")
        if name in ready:
            raise ConfigError(f"{where}: {name} is given twice", "keep one of them")
        if name not in used:
            raise ConfigError(f"{where}: no side uses {name}", f"refer to it with --old {name} or --new {name}")
        ready[name] = interpreter
    return ready


def _in_full(release: str) -> str:
    return re.sub(RELEASE_PATTERN, lambda match: match[1] + (match[2] or ".0") + match[3], release)


def _environment_options(table: object, release: str, where: str) -> dict[str, Any]:
    options: dict[str, Any] = read(table, TOP.keys["environments"], where)
    own: dict[str, dict[str, Any]] = {}
    for key in [key for key in options if key not in ENVIRONMENT]:
        full = _in_full(key)
        if full in own:
            raise ConfigError(f"{where}.{shown(key)}: {full} is configured twice", "keep one of the two tables")
        own[full] = options.pop(key)
    # A table for 2.6.0 holds for its builds too; one for 2.6.0+cpu comes on top.
    return {**options, **own.get(release.partition("+")[0], {}), **own.get(release, {})}
