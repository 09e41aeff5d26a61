"""Every key of ``[tool.compat]``: what it becomes, and what a mistake in it says."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from harness.config.load import load_settings
from harness.config.schema import SWITCHES, TOP, Kind, Table, Tables
from harness.core.devices import Device
from harness.core.plan import Deadlines, LatencyBudget, LimitSettings, PolicySettings, Settings
from harness.core.quantities import QUANTITY_LIMITS
from harness.core.probe import ServingProfile
from harness.core.errors import ConfigError, ExitCode
from tests.unit.builders.config import FILE, PAIR, load


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


def test_empty_table_gives_the_defaults_of_the_domain() -> None:
    assert load({}) == Settings(old="", new="")


def test_every_key_arrives_where_it_belongs() -> None:
    table = {
        **PAIR,
        "device": "cuda",
        "jobs": 3,
        "init_threads": 8,
        "init_rounds": 7,
        "runtime": "libtorch",
        "capture_mode": "relaxed",
        "capture_warm_calls": 0,
        "rollback": "probe",
        "explain": 90,
        "scenarios": ["sequential", "cuda_graphs"],
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
        "latency": {
            "budget": "quick",
            "limit": "+7 %",
            "floor_s": 1e-4,
            "common_limit": "4%",
            "looks": [2, 5],
            "blocks": 9,
            "block_s": 0.1,
            "model_s": 3,
            "undecided_limit": 1.5,
            "threads": 4,
            "together_s": 0.2,
            "pin": False,
        },
        "policy": {
            "accepted_mitigations": ["fuser off"],
            "limits": {"load": "x2", "p99": 1.1, "floor_s": 0, "common": 0.06},
            "gates": ["p99"],
            "latency": "own",
            "rollback": "fail",
        },
        "computes_in": {"bert": "float16"},
    }
    assert load(table) == Settings(
        **PAIR,
        device="cuda",
        jobs=3,
        init_threads=8,
        init_rounds=7,
        runtime="libtorch",
        capture_mode="relaxed",
        capture_warm_calls=0,
        rollback="probe",
        explain=90,
        scenarios=("sequential", "cuda_graphs"),
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
        deadlines=Deadlines(floor_s=10, fast_floor_s=10, factor=5, total_s=100, export_s=50),
        latency=LatencyBudget(
            limit=0.07,
            floor_s=1e-4,
            common_limit=0.04,
            looks=(2, 5),
            blocks=9,
            block_s=0.1,
            model_s=3,
            undecided_limit=1.5,
            threads=4,
            together_s=0.2,
            pin=False,
        ),
        policy=PolicySettings(
            accepted_mitigations=("fuser off",),
            limits={"load": 2, "p99": 1.1, "floor_s": 0.0, "common": 1.06},
            gates=("p99",),
            latency="own",
            rollback="fail",
        ),
        computes_in={"bert": "float16"},
    )


def test_automatic_memory_is_what_the_caller_says_and_distinguished_from_what_is_written() -> None:
    def limits(table: dict[str, Any]) -> LimitSettings:
        found = load_settings(table, file="pyproject.toml", overrides={}, mitigations=(), auto_memory_gb=7.5)
        return found.limits

    automatic = LimitSettings(memory_gb=7.5, memory_is_derived=True)
    assert limits({}) == limits({"limits": {"memory_gb": "auto"}}) == automatic
    assert limits({"limits": {"memory_gb": 7.5}}) == LimitSettings(memory_gb=7.5)


def test_auto_jobs_are_what_the_caller_says() -> None:
    assert load({"jobs": "auto"}).jobs == 6


def test_a_device_of_the_configuration_is_a_row_that_a_run_may_name() -> None:
    can = {"streams": True, "events": True, "graphs": True, "nodes": ["/dev/davinci0"]}
    found = load({"devices": {"npu": can}}, device="npu")
    npu = Device(name="npu", words="npu", torch="npu", nodes=("/dev/davinci0",), streams=True, events=True, graphs=True)
    assert (found.device, found.devices) == ("npu", {"npu": npu})
    with pytest.raises(ConfigError, match="command line: --device: expected one of auto, cpu, cuda, rocm, xpu") as no:
        load({}, device="npu")
    assert "[tool.compat.devices.npu]" in no.value.hint


OFF = {"rollback": "off"}
FAIL = {"policy": {"rollback": "fail"}}


def test_a_rollback_that_is_to_decide_and_is_not_looked_at_is_refused() -> None:
    said = refusal({**OFF, **FAIL})
    assert 'tool.compat.policy.rollback: "fail" and tool.compat.rollback = "off"' in said
    assert load({**OFF, **FAIL}, rollback="probe").rollback == "probe"
    assert load(FAIL).policy.rollback == "fail"
    assert load({**OFF, "policy": {"rollback": "warn"}}).rollback == "off"


WRONG_VALUES: list[tuple[str, object, str]] = [
    ("old", 2.6, "expected text in quotes, not empty, got 2.6"),
    ("new", "", 'expected text in quotes, not empty, got ""'),
    ("device", "gpu", 'expected one of auto, cpu, cuda, rocm, xpu, got "gpu"'),
    ("device", "GPU", 'expected the name of a device, such as cuda, got "GPU"'),
    ("devices.npu", True, "expected a table, got true"),
    ("devices.npu.nodes", "/dev/npu", 'expected a list of texts in quotes, got "/dev/npu"'),
    ("devices.npu.streams", 1, "expected true or false, got 1"),
    ("devices.npu.graphs", True, "a graph is captured in a stream and timed by events"),
    ("devices.cuda", {}, "this device is known already"),
    ("jobs", 0, 'expected a whole number >= 1, or "auto", got 0'),
    ("jobs", "all", 'expected a whole number >= 1, or "auto", got "all"'),
    ("jobs", True, 'expected a whole number >= 1, or "auto", got true'),
    ("init_threads", 1, "expected a whole number >= 2, got 1"),
    ("init_rounds", 0, "expected a whole number >= 1, got 0"),
    ("runtime", "cpp", 'expected one of auto, libtorch, python, both, got "cpp"'),
    ("capture_mode", "strict", 'expected one of global, thread_local, relaxed, got "strict"'),
    ("capture_warm_calls", -1, "expected a whole number >= 0, got -1"),
    ("rollback", True, "expected one of static, probe, off, got true"),
    ("migrate", "yes", 'expected true or false, got "yes"'),
    ("explain", -1, "expected a number of seconds >= 0, got -1"),
    ("policy.rollback", "block", 'expected one of warn, fail, got "block"'),
    ("scenarios", "concurrent", "expected a list of scenarios out of alone, sequential, concurrent, "),
    ("scenarios", ["alone", "together"], 'cuda_graphs, got ["alone", "together"]'),
    ("calls", 0, "expected a whole number >= 1, got 0"),
    ("calls", 2.5, "expected a whole number >= 1, got 2.5"),
    ("repeats", 1, "expected a whole number >= 2, got 1"),
    ("noise_threads", [0], "expected a list of whole numbers >= 1, got [0]"),
    ("fixtures", ["a"], 'expected text in quotes, not empty, got ["a"]'),
    ("artifacts", "models/", 'expected a list of texts in quotes, got "models/"'),
    ("releases", ["2.6.0", "newest"], 'expected a list of torch releases such as ["2.6.0"], got ["2.6.0", "newest"]'),
    ("environments", "x", 'expected a table, got "x"'),
    ("environments.index_args", "--pre", 'expected a list of texts in quotes, got "--pre"'),
    ("environments.libraries", "a.so", 'expected a list of texts in quotes, got "a.so"'),
    ("environments.extras", [1], "expected a list of texts in quotes, got [1]"),
    ("environments.python", "3", 'expected a Python such as "3.11", got "3"'),
    ("serving.intra_op_threads", 0, "expected a whole number >= 1, got 0"),
    ("serving.load", "pickle", "expected one of torch.jit.load, torch.load, buffer"),
    ("serving.inter_op_threads", "2", 'expected a whole number >= 1, got "2"'),
    ("serving.numerics.quantized_engine", "mkl", 'expected one of fbgemm, onednn, qnnpack, x86, got "mkl"'),
    ("serving.numerics.matmul_precision", "tf32", 'expected one of highest, high, medium, got "tf32"'),
    ("serving.numerics.cudnn_tf32", 1, "expected true or false, got 1"),
    ("serving.numerics.cudnn", "off", 'expected true or false, got "off"'),
    ("serving.numerics.mkldnn", 0, "expected true or false, got 0"),
    ("serving.numerics.deterministic", "warn", 'expected true or false, got "warn"'),
    ("serving.numerics.flush_denormal", 0, "expected true or false, got 0"),
    ("serving.numerics.autocast", True, "expected one of off, bfloat16, float16, got true"),
    ("serving.switches.profiling", 0, "expected true or false, got 0"),
    ("serving.switches.fusion_depth", True, "expected a whole number >= 0, got true"),
    ("serving.env.OMP_NUM_THREADS", 1, "expected text in quotes, got 1"),
    ("serving.groups.ads", "", 'expected text in quotes, not empty, got ""'),
    ("serving.profiles.fused", 1, "expected a table, got 1"),
    ("serving.profiles.fused.switches.cpu_fusion", "on", 'expected true or false, got "on"'),
    ("deadlines.floor_s", 0, "expected a number > 0, got 0"),
    ("deadlines.fast_floor_s", 0, "expected a number > 0, got 0"),
    ("deadlines.factor", -1, "expected a number > 0, got -1"),
    ("deadlines.total_s", math.inf, "expected a number > 0, got Infinity"),
    ("deadlines.export_s", math.nan, "expected a number > 0, got NaN"),
    ("limits", [], "expected a table, got []"),
    ("limits.memory_gb", "all", 'expected a number > 0, or "auto" (90 % of this machine\'s memory), got "all"'),
    ("limits.cpu_s", 0, "expected a number > 0, got 0"),
    ("limits.file_gb", -1, "expected a number > 0, got -1"),
    ("limits.network", "off", 'expected true or false, got "off"'),
    ("latency", [], "expected a table, got []"),
    ("latency.budget", "fast", 'expected one of off, quick, thorough, got "fast"'),
    ("latency.limit", "-3%", 'expected a limit such as "+5 %" or 0.05, got "-3%"'),
    ("latency.limit", 3, '3 may mean 3 % or +200 %: write "+3 %" or "x3"'),
    ("latency.limit", 1.05, '1.05 may mean 1.05 % or +5 %: write "+1.05 %" or "x1.05"'),
    ("latency.floor_s", -1, "expected a number of seconds >= 0, got -1"),
    ("latency.common_limit", 0, 'expected a limit such as "+5 %" or 0.05, got 0'),
    ("latency.looks", 3, "expected a list of whole numbers >= 2, such as [3, 4, 6, 8], got 3"),
    ("latency.looks", [], "expected a list of whole numbers >= 2, such as [3, 4, 6, 8], got []"),
    ("latency.looks", [1, 3], "expected a list of whole numbers >= 2, such as [3, 4, 6, 8], got [1, 3]"),
    ("latency.looks", [3, 3], "expected numbers that rise, got [3, 3]"),
    ("latency.looks", [4, 3], "expected numbers that rise, got [4, 3]"),
    ("latency.blocks", 0, "expected a whole number >= 1, got 0"),
    ("latency.block_s", 0.0, "expected a number > 0, got 0.0"),
    ("latency.model_s", 0, "expected a number > 0, got 0"),
    ("latency.total_s", 0, "expected a number > 0, got 0"),
    ("latency.threads", 0, "expected a whole number >= 1, got 0"),
    ("latency.together_s", "1", 'expected a number > 0, got "1"'),
    ("latency.pin", 1, "expected true or false, got 1"),
    ("latency.undecided_limit", 1, 'expected a limit such as "+50 %" or 1.5, got 1'),
    ("latency.undecided_limit", 1.02, "expected more than the limit, which is +5 %, got +2 %"),
    ("policy.accepted_mitigations", "fuser off", 'expected a list of texts in quotes, got "fuser off"'),
    *((f"policy.limits.{name}", 1, 'expected a limit such as "+50 %" or 1.5, got 1') for name in QUANTITY_LIMITS),
    ("policy.limits.load", 2, '2 may mean 2 % or +100 %: write "+2 %" or "x2"'),
    ("policy.limits.load", "much", 'expected a limit such as "+50 %" or 1.5, got "much"'),
    (
        "policy.gates",
        ["p98"],
        "expected a list of quantities out of load, first_calls, call_0, call_1, mean, p90, p99, ",
    ),
    ("policy.gates", "p99", 'replay, got "p99"'),
    ("policy.limits.initialization", 1, 'expected a limit such as "+50 %" or 1.5, got 1'),
    ("policy.limits.steady", -0.03, 'expected a limit such as "+50 %" or 1.5, got -0.03'),
    ("policy.limits.floor_s", "20 us", 'expected a number of seconds >= 0, got "20 us"'),
    ("policy.limits.common", True, 'expected a limit such as "+50 %" or 1.5, got true'),
    ("policy.latency", "both", 'expected one of total, own, got "both"'),
    ("policy.limits.error", 2, "expected a number > 0 and < 1, such as 0.001, got 2"),
    ("policy.rollback", "block", 'expected one of warn, fail, got "block"'),
    ("policy.severity", ["values"], 'expected a table, got ["values"]'),
    ("policy.severity.values", "warning", 'expected one of fail, inconclusive, named, warn, info, got "warning"'),
    ("policy.rules", {"models": "bert"}, 'expected a list of tables, got {"models": "bert"}'),
    ("policy.required_scenarios", ["serve"], "expected a list of scenarios out of alone, sequential, concurrent"),
    ("policy.minimum_models", -1, "expected a whole number >= 0, got -1"),
    ("policy.minimum_coverage", 95, "expected a share from 0 to 1, such as 0.95, got 95"),
    ("policy.unused_waivers", True, "expected one of warn, fail, got true"),
    ("computes_in.bert", "half", "expected one of float64, float32, tf32, float16, bfloat16"),
]


@pytest.mark.parametrize(("path", "value", "expected"), WRONG_VALUES)
def test_wrong_value_names_file_key_expectation_and_value(path: str, value: object, expected: str) -> None:
    text = refusal(nested(path, value))
    assert text.startswith(f"{FILE}: tool.compat.{path}: ")
    assert expected in text


def test_every_key_has_a_wrong_value_in_this_file() -> None:
    def paths(schema: Kind | Table | Tables, path: str) -> set[str]:
        if not isinstance(schema, Table):
            return {path}
        return {found for key, part in schema.keys.items() for found in paths(part, f"{path}.{key}".lstrip("."))}

    tried = {path for path, _, _ in WRONG_VALUES}
    other_switches = {f"serving.switches.{name}" for name in SWITCHES}
    assert paths(TOP, "") - other_switches <= tried


@pytest.mark.parametrize(
    ("path", "key", "message"),
    [
        ("devise", "devise", 'unknown key; did you mean "device" or "devices"? allowed: old, new, device, jobs'),
        ("latency.budgett", "latency.budgett", 'unknown key; did you mean "budget"? allowed: budget, limit'),
        ("deadlines.zzz", "deadlines.zzz", "unknown key; allowed: floor_s, fast_floor_s, factor, total_s, export_s"),
        ("latency.pairs", "latency.pairs", "unknown key; "),
        ("policy.accept", "policy.accept", "unknown key; "),
        (
            "policy.limits.loads",
            "policy.limits.loads",
            'unknown key; did you mean "load"? allowed: load, first_calls, call_0',
        ),
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
    settings = load({**PAIR, "jobs": 3}, old="2.2.0", jobs="5", device="cpu", **{"latency.blocks": "9"})
    assert (settings.old, settings.new, settings.jobs, settings.device) == ("2.2.0", "2.6.0", 5, "cpu")
    assert settings.latency.blocks == 9


def test_option_that_was_not_given_changes_nothing() -> None:
    assert load({**PAIR, "jobs": 3}, jobs=None, profile=None, allow_same_torch=None).jobs == 3


def test_wrong_option_names_the_option() -> None:
    assert refusal(PAIR, jobs="0").startswith("command line: --jobs: expected a whole number >= 1")
    assert refusal(PAIR, latency="fast").startswith("command line: --latency: expected one of off, quick")
    assert refusal(PAIR, init_threads="x").startswith("command line: --init-threads: ")
    assert refusal(PAIR, init_rounds="0").startswith("command line: --init-rounds: expected a whole number >= 1")
    assert refusal(PAIR, runtime="cpp").startswith("command line: --runtime: expected one of auto, libtorch")


def test_unknown_option_names_the_nearest() -> None:
    assert 'command line: --job: unknown option; did you mean "jobs"?' in refusal(PAIR, job=2)


# Latency budgets


def test_thorough_budget_measures_longer() -> None:
    latency = load({"latency": {"budget": "thorough"}}).latency
    assert (latency.looks, latency.blocks, latency.model_s) == ((4, 6, 9, 14, 20), 15, 160.0)


def test_thorough_budget_keeps_what_is_written() -> None:
    latency = load({"latency": {"looks": [5]}}, latency="thorough").latency
    assert (latency.budget, latency.looks, latency.blocks) == ("thorough", (5,), 15)


def test_one_look_is_enough() -> None:
    assert load({"latency": {"looks": [4]}}).latency.looks == (4,)


def test_limits_that_are_not_written_stay_the_defaults_of_the_domain() -> None:
    assert load({"policy": {"limits": {"load": "x3"}}}).policy.limits == {"load": 3.0}


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


def test_profile_adds_its_numerics_to_those_of_the_serving_table() -> None:
    serving = {
        "numerics": {"deterministic": True, "autocast": "off"},
        "profiles": {"cast": {"numerics": {"autocast": "bfloat16"}}},
    }
    assert load({"serving": serving}, profile="cast").profile.numerics == {
        "deterministic": True,
        "autocast": "bfloat16",
    }
    assert ServingProfile().numerics == {}


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


@pytest.mark.parametrize(
    ("written", "named", "fixtures", "artifacts"),
    [
        ({}, {}, "fixtures/zoo", ()),
        ({"artifacts": ["m"]}, {}, "", ("m",)),
        ({"artifacts": ["m"], "fixtures": "f"}, {}, "f", ("m",)),
        ({"fixtures": "f"}, {"artifacts": ["n"]}, "", ("n",)),
        ({"artifacts": ["m"], "fixtures": "f"}, {"artifacts": ["n"]}, "", ("n",)),
        ({"artifacts": ["m"]}, {"fixtures": "g"}, "g", ()),
        ({"artifacts": ["m"]}, {"fixtures": "g", "artifacts": ["n"]}, "g", ("n",)),
        ({"artifacts": [], "fixtures": "f"}, {}, "f", ()),
    ],
)
def test_artifacts_stand_in_for_fixtures_unless_both_are_named(
    written: dict[str, object], named: dict[str, object], fixtures: str, artifacts: tuple[str, ...]
) -> None:
    settings = load_settings(written, file=FILE, overrides=named, mitigations=())
    assert (settings.fixtures, settings.artifacts) == (fixtures, artifacts)
