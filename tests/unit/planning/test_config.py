"""Every key of ``[tool.compat]``: what it becomes, and what a mistake in it says."""

import ast
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.domain.plan import Deadlines, LatencyBudget, PolicySettings, Settings
from harness.domain.probe import ServingProfile
from harness.errors import ConfigError, ExitCode
from harness.numerics.tolerances import FACTORS
from harness.planning import config
from harness.planning.config import direction_of, env_spec, env_specs, load_settings

FILE = "pyproject.toml"
MITIGATIONS = ("profiling off", "fuser off")
PAIR: dict[str, Any] = {"old": "2.1.2", "new": "2.6.0"}


def load(table: Mapping[str, Any], **overrides: object) -> Settings:
    return load_settings(table, file=FILE, overrides=overrides, mitigations=MITIGATIONS, auto_jobs=6)


def nested(path: str, value: object) -> dict[str, Any]:
    key, _, rest = path.partition(".")
    return {key: nested(rest, value) if rest else value}


def refusal(table: Mapping[str, Any], **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load(table, **overrides)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    text = str(caught.value)
    assert "\n" not in text
    return text


def specs_refusal(table: Mapping[str, Any], *env: str, **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        env_specs(table, load(table, **overrides), env)
    return str(caught.value)


def test_empty_table_gives_the_defaults_of_the_domain() -> None:
    assert load({}) == Settings(old="", new="")


def test_every_key_arrives_where_it_belongs() -> None:
    table = {
        **PAIR,
        "device": "cuda",
        "jobs": 3,
        "init_threads": 8,
        "calls": 5,
        "repeats": 4,
        "fixtures": "models",
        "releases": ["2.1.2", "2.6.0"],
        "environments": {"extras": ["numpy<2"]},
        "serving": {
            "intra_op_threads": 2,
            "inter_op_threads": 3,
            "switches": {"profiling": False, "fusion_depth": 0},
            "env": {"OMP_NUM_THREADS": "2"},
            "groups": {"ads": "dlrm or din"},
        },
        "deadlines": {"floor_s": 10, "factor": 5, "total_s": 100, "export_s": 50},
        "latency": {"budget": "quick", "limit": 0.05, "pairs": 4, "blocks": 9, "block_s": 0.1, "confirm_pairs": 2},
        "policy": {"accepted_mitigations": ["fuser off"], "warn_load_ratio": 2, "warn_first_calls_ratio": 3},
        "computes_in": {"bert": "float16"},
    }
    assert load(table) == Settings(
        **PAIR,
        device="cuda",
        jobs=3,
        init_threads=8,
        calls=5,
        repeats=4,
        fixtures="models",
        profile=ServingProfile(
            intra_op_threads=2,
            inter_op_threads=3,
            switches={"profiling": False, "fusion_depth": 0},
            env={"OMP_NUM_THREADS": "2"},
        ),
        groups={"ads": "dlrm or din"},
        deadlines=Deadlines(floor_s=10, factor=5, total_s=100, export_s=50),
        latency=LatencyBudget(limit=0.05, pairs=4, blocks=9, block_s=0.1, confirm_pairs=2),
        policy=PolicySettings(accepted_mitigations=("fuser off",), warn_load_ratio=2, warn_first_calls_ratio=3),
        computes_in={"bert": "float16"},
    )


def test_auto_jobs_are_what_the_caller_says() -> None:
    assert load({"jobs": "auto"}).jobs == 6


WRONG_VALUES: list[tuple[str, object, str]] = [
    ("old", 2.6, "expected text in quotes, not empty, got 2.6"),
    ("new", "", 'expected text in quotes, not empty, got ""'),
    ("device", "gpu", 'expected one of auto, cpu, cuda, got "gpu"'),
    ("jobs", 0, 'expected a whole number >= 1, or "auto", got 0'),
    ("jobs", "all", 'expected a whole number >= 1, or "auto", got "all"'),
    ("jobs", True, 'expected a whole number >= 1, or "auto", got true'),
    ("init_threads", 1, "expected a whole number >= 2, got 1"),
    ("calls", 0, "expected a whole number >= 1, got 0"),
    ("calls", 2.5, "expected a whole number >= 1, got 2.5"),
    ("repeats", 1, "expected a whole number >= 2, got 1"),
    ("fixtures", ["a"], 'expected text in quotes, not empty, got ["a"]'),
    ("releases", ["2.6.0", "newest"], 'expected a list of torch releases such as ["2.6.0"], got ["2.6.0", "newest"]'),
    ("environments", "x", 'expected a table, got "x"'),
    ("environments.index_args", "--pre", 'expected a list of texts in quotes, got "--pre"'),
    ("environments.extras", [1], "expected a list of texts in quotes, got [1]"),
    ("environments.python", "3", 'expected a Python such as "3.11", got "3"'),
    ("serving.intra_op_threads", 0, "expected a whole number >= 1, got 0"),
    ("serving.inter_op_threads", "2", 'expected a whole number >= 1, got "2"'),
    ("serving.switches.profiling", 0, "expected true or false, got 0"),
    ("serving.switches.fusion_depth", True, "expected a whole number >= 0, got true"),
    ("serving.env.OMP_NUM_THREADS", 1, "expected text in quotes, got 1"),
    ("serving.groups.ads", "", 'expected text in quotes, not empty, got ""'),
    ("serving.profiles.fused", 1, "expected a table, got 1"),
    ("serving.profiles.fused.switches.cpu_fusion", "on", 'expected true or false, got "on"'),
    ("deadlines.floor_s", 0, "expected a number > 0, got 0"),
    ("deadlines.factor", -1, "expected a number > 0, got -1"),
    ("deadlines.total_s", math.inf, "expected a number > 0, got Infinity"),
    ("deadlines.export_s", math.nan, "expected a number > 0, got NaN"),
    ("latency", [], "expected a table, got []"),
    ("latency.budget", "fast", 'expected one of off, quick, thorough, got "fast"'),
    ("latency.limit", "3%", 'expected a number > 0 and < 1 (0.03 is 3 %), got "3%"'),
    ("latency.limit", 3, "expected a number > 0 and < 1 (0.03 is 3 %), got 3"),
    ("latency.pairs", 1, "expected a whole number >= 2, got 1"),
    ("latency.blocks", 0, "expected a whole number >= 1, got 0"),
    ("latency.block_s", 0.0, "expected a number > 0, got 0.0"),
    ("latency.confirm_pairs", 1, "expected a whole number >= 2, got 1"),
    ("latency.undecided_limit", 1, "expected a ratio > 1, such as 1.5, got 1"),
    ("latency.undecided_limit", 1.02, "expected a ratio above 1 + limit, which is 1.03, got 1.02"),
    ("policy.accepted_mitigations", "fuser off", 'expected a list of texts in quotes, got "fuser off"'),
    ("policy.warn_load_ratio", 0.5, "expected a ratio > 1, such as 1.5, got 0.5"),
    ("policy.warn_first_calls_ratio", "2", 'expected a ratio > 1, such as 1.5, got "2"'),
    ("computes_in.bert", "half", "expected one of float64, float32, tf32, float16, bfloat16"),
]


@pytest.mark.parametrize(("path", "value", "expected"), WRONG_VALUES)
def test_wrong_value_names_file_key_expectation_and_value(path: str, value: object, expected: str) -> None:
    text = refusal(nested(path, value))
    assert text.startswith(f"{FILE}: tool.compat.{path}: ")
    assert expected in text


def test_every_key_has_a_wrong_value_in_this_file() -> None:
    def paths(schema: config.Kind | config.Table, path: str) -> set[str]:
        if isinstance(schema, config.Kind):
            return {path}
        return {found for key, part in schema.keys.items() for found in paths(part, f"{path}.{key}".lstrip("."))}

    tried = {path for path, _, _ in WRONG_VALUES}
    other_switches = {f"serving.switches.{name}" for name in config.SWITCHES}
    assert paths(config.TOP, "") - other_switches <= tried


@pytest.mark.parametrize(
    ("path", "key", "message"),
    [
        ("devise", "devise", 'unknown key; did you mean "device"? allowed: old, new, device, jobs'),
        ("latency.budgett", "latency.budgett", 'unknown key; did you mean "budget"? allowed: budget, limit'),
        ("deadlines.zzz", "deadlines.zzz", "unknown key; allowed: floor_s, factor, total_s, export_s"),
        ("policy.accept", "policy.accept", "unknown key; "),
        ("serving.switches.profilling", "serving.switches.profilling", 'did you mean "profiling"'),
        ("serving.profiles.a.groups", "serving.profiles.a.groups", "unknown key; "),
        ("serving.profiles.a/b", 'serving.profiles."a/b"', "unknown key; allowed: a name"),
    ],
)
def test_unknown_key_names_the_nearest_and_the_allowed(path: str, key: str, message: str) -> None:
    text = refusal(nested(path, {}))
    assert text.startswith(f"{FILE}: tool.compat.{key}: ")
    assert message in text


def test_release_written_without_quotes_is_explained() -> None:
    text = refusal({"environments": {"2": {"6": {"0": {"python": "3.11"}}}}})
    assert "tool.compat.environments.2: unknown key" in text
    assert 'a torch release in quotes, such as "2.6.0"' in text


def test_key_of_a_release_is_quoted_in_messages() -> None:
    text = refusal({"environments": {"2.6.0": {"python": 3.11}}})
    assert 'tool.compat.environments."2.6.0".python: expected a Python' in text


def test_unknown_mitigation_names_the_known() -> None:
    text = refusal({"policy": {"accepted_mitigations": ["fuser of"]}})
    assert "tool.compat.policy.accepted_mitigations: unknown mitigation" in text
    assert text.endswith('"fuser of"; did you mean "fuser off"? allowed: profiling off, fuser off')


def test_table_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"pyproject.toml: tool.compat: expected a table"):
        load_settings([], file=FILE, overrides={}, mitigations=())  # type: ignore[arg-type]


def test_settings_do_not_share_state_with_the_table() -> None:
    table: dict[str, Any] = {"latency": {"limit": 0.05}, "serving": {"env": {"A": "1"}}}
    load(table, latency="thorough")
    assert table == {"latency": {"limit": 0.05}, "serving": {"env": {"A": "1"}}}


# The command line


def test_command_line_wins_over_the_file() -> None:
    settings = load({**PAIR, "jobs": 3}, old="2.2.0", jobs="5", device="cpu", **{"latency.pairs": "9"})
    assert (settings.old, settings.new, settings.jobs, settings.device) == ("2.2.0", "2.6.0", 5, "cpu")
    assert settings.latency.pairs == 9


def test_option_that_was_not_given_changes_nothing() -> None:
    assert load({**PAIR, "jobs": 3}, jobs=None, profile=None, allow_same_torch=None).jobs == 3


def test_wrong_option_names_the_option() -> None:
    assert refusal(PAIR, jobs="0").startswith("command line: --jobs: expected a whole number >= 1")
    assert refusal(PAIR, latency="fast").startswith("command line: --latency: expected one of off, quick")
    assert refusal(PAIR, init_threads="x").startswith("command line: --init-threads: ")


def test_unknown_option_names_the_nearest() -> None:
    assert 'command line: --job: unknown option; did you mean "jobs"?' in refusal(PAIR, job=2)


# Latency budgets


def test_thorough_budget_measures_longer() -> None:
    latency = load({"latency": {"budget": "thorough"}}).latency
    assert (latency.pairs, latency.blocks, latency.block_s) == (8, 15, 0.06)


def test_thorough_budget_keeps_what_is_written() -> None:
    latency = load({"latency": {"pairs": 5}}, latency="thorough").latency
    assert (latency.budget, latency.pairs, latency.blocks) == ("thorough", 5, 15)


# Serving profiles

PROFILES = {
    "serving": {
        "intra_op_threads": 2,
        "switches": {"profiling": False},
        "env": {"A": "1", "B": "1"},
        "groups": {"g": "bert"},
        "profiles": {"cpu_fusion": {"inter_op_threads": 4, "switches": {"cpu_fusion": True}, "env": {"B": "2"}}},
    }
}


def test_profile_changes_only_what_it_writes() -> None:
    assert load(PROFILES, profile="cpu_fusion").profile == ServingProfile(
        name="cpu_fusion",
        intra_op_threads=2,
        inter_op_threads=4,
        switches={"profiling": False, "cpu_fusion": True},
        env={"A": "1", "B": "2"},
    )


def test_default_profile_is_the_serving_table() -> None:
    profile = load(PROFILES).profile
    assert (profile.name, profile.switches) == ("default", {"profiling": False})
    assert load(PROFILES, profile="default").profile == profile


def test_unknown_profile_names_the_nearest() -> None:
    text = refusal(PROFILES, profile="cpu_fuson")
    assert "tool.compat.serving.profiles: unknown profile" in text
    assert 'did you mean "cpu_fusion"? allowed: default, cpu_fusion' in text


def test_profile_called_default_is_refused() -> None:
    assert "serving.profiles.default: is the name of" in refusal(nested("serving.profiles.default", {}))


def test_profile_that_is_not_selected_is_checked_too() -> None:
    assert "profiles.other.intra_op_threads" in refusal(nested("serving.profiles.other.intra_op_threads", 0))


# Environments


def test_both_sides_are_releases_to_build() -> None:
    table = {**PAIR, "environments": {"index_args": ["--pre"], "extras": ["numpy<2"]}}
    old, new = env_specs(table, load(table), ())
    assert (old.name, old.release, old.index_args, old.extras) == ("torch 2.1.2", "2.1.2", ("--pre",), ("numpy<2",))
    assert (new.name, new.release, new.interpreter, new.python) == ("torch 2.6.0", "2.6.0", None, None)


def test_table_of_a_release_overrides_the_common_one() -> None:
    environments = {"python": "3.10", "extras": ["a"], "2.6": {"python": "3.11"}, "2.6.0+cpu": {"extras": []}}
    table = {"old": "2.1.2", "new": "2.6+cpu", "environments": environments}
    old, new = env_specs(table, load(table), ())
    assert (old.python, old.extras) == ("3.10", ("a",))
    assert (new.release, new.python, new.extras) == ("2.6.0+cpu", "3.11", ())


def test_release_configured_twice_is_refused() -> None:
    table = {**PAIR, "environments": {"2.6": {}, "2.6.0": {}}}
    assert "2.6.0 is configured twice" in specs_refusal(table)


@pytest.mark.parametrize("side", ["old", "new"])
def test_ready_made_interpreter_replaces_its_side(side: Literal["old", "new"]) -> None:
    table = {**PAIR, "environments": {"extras": ["a"]}}
    specs = dict(zip(("old", "new"), env_specs(table, load(table), (f"{side}=/opt/python",)), strict=True))
    spec = specs[side]
    assert (spec.name, spec.release, spec.interpreter, spec.extras) == (side, None, "/opt/python", ())
    assert all(specs[other].interpreter is None for other in specs if other != side)


def test_two_interpreters_need_no_release() -> None:
    old, new = env_specs({}, load({}), ("old=/a/python", "new=/b/python"))
    assert (old.interpreter, new.interpreter) == ("/a/python", "/b/python")


def test_named_environment_is_used_where_a_side_refers_to_it() -> None:
    old, new = env_specs(PAIR, load(PAIR, new="nightly"), ("nightly=/n/python",))
    assert (old.release, new.name, new.interpreter) == ("2.1.2", "nightly", "/n/python")


def test_interpreter_path_may_hold_an_equals_sign() -> None:
    assert env_specs(PAIR, load(PAIR), ("old=/a=b/python",))[0].interpreter == "/a=b/python"


@pytest.mark.parametrize("argument", ["old", "=/p", "old=", "", "old= "])
def test_malformed_environment_argument_is_refused(argument: str) -> None:
    assert f"--env {argument}: expected NAME=PYTHON" in specs_refusal(PAIR, argument)


def test_environment_given_twice_is_refused() -> None:
    assert "old is given twice" in specs_refusal(PAIR, "old=/a", "old=/b")


def test_environment_that_no_side_uses_is_refused() -> None:
    assert "no side uses ood; refer to it with --old ood or --new ood" in specs_refusal(PAIR, "ood=/a")


@pytest.mark.parametrize("side", ["old", "new"])
def test_missing_side_says_how_to_name_it(side: str) -> None:
    text = specs_refusal({key: value for key, value in PAIR.items() if key != side})
    assert text.startswith(f"{FILE}: tool.compat.{side}: missing; write a torch release there, or give --{side}")


@pytest.mark.parametrize("release", ["two", "2", "2.6.0.1", "v2.6.0", "2.6.0+", "2.6.0 ", ">=2.6", "2.6.0\n"])
def test_side_that_is_no_release_is_refused(release: str) -> None:
    assert "expected a torch release" in specs_refusal({**PAIR, "new": release})


def test_wrong_release_names_where_it_was_written() -> None:
    assert specs_refusal({**PAIR, "old": "x"}).startswith(f"{FILE}: tool.compat.old: ")
    assert specs_refusal(PAIR, old="x").startswith("command line: --old: ")


@pytest.mark.parametrize(
    ("release", "full"),
    [("2.6", "2.6.0"), ("2.6+cpu", "2.6.0+cpu"), ("2.7.0.dev20250101", "2.7.0.dev20250101"), ("2.6rc1", "2.6.0rc1")],
)
def test_release_is_written_in_full(release: str, full: str) -> None:
    table = {**PAIR, "new": release}
    assert env_specs(table, load(table), ())[1].release == full


@pytest.mark.parametrize(
    ("table", "env"),
    [
        ({"old": "2.6.0", "new": "2.6.0"}, ()),
        ({"old": "2.6", "new": "2.6.0"}, ()),
        (PAIR, ("old=/a", "new=/a")),
    ],
)
def test_same_torch_on_both_sides_is_refused(table: dict[str, str], env: tuple[str, ...]) -> None:
    assert specs_refusal(table, *env).startswith("same torch on both sides: ")
    old, new = env_specs(table, load(table, allow_same_torch=True), env)
    assert (old.release, old.interpreter) == (new.release, new.interpreter)


def test_one_side_alone_does_not_need_the_other() -> None:
    table = {"new": "2.6.0"}
    assert env_spec(table, load(table), "new", ()).release == "2.6.0"


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ("2.1.2", "2.6.0", "backward"),
        ("2.6.0", "2.1.2", "forward"),
        ("2.9.0", "2.10.0", "backward"),
        ("2.6.0+cpu", "2.6.0", "backward"),
        ("2.6.0", "2.6.0.dev20250101", "forward"),
        (None, "2.6.0", "backward"),
        ("nightly", "2.6.0", "backward"),
    ],
)
def test_direction_follows_the_versions(old: str | None, new: str | None, direction: str) -> None:
    assert direction_of(old, new) == direction


# What other modules say of the same things


@pytest.mark.parametrize(
    ("keys", "domain"),
    [(config.DEADLINES, Deadlines), (config.LATENCY, LatencyBudget), (config.POLICY, PolicySettings)],
)
def test_tables_have_the_keys_of_their_types(keys: Mapping[str, object], domain: Any) -> None:
    assert list(keys) == [field.name for field in dataclasses.fields(domain)]


def test_switches_are_those_that_the_worker_knows() -> None:
    source = Path(config.__file__).parents[1] / "worker" / "switches.py"
    known: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"PROCESS_WIDE", "THREAD_LOCAL"}:
            assert isinstance(node.value, ast.Dict)
            known |= {ast.literal_eval(key) for key in node.value.keys if key is not None}
    assert set(config.SWITCHES) == known


def test_every_dtype_to_compute_in_has_a_tolerance() -> None:
    assert set(config.DTYPES) <= set(FACTORS)
