"""The table of settings: what each sets, where it can matter, and what a profile becomes under it."""

from typing import Any

import pytest

from harness.config.schema import NUMERICS, SWITCHES
from harness.core.devices import CPU, TABLE as TABLE_OF_DEVICES
from harness.core.probe import ServingProfile
from harness.serving.settings.mitigations import (
    JIT_SWITCHES,
    MITIGATIONS,
    TRIED_BY_DEFAULT,
    applied,
    candidates,
    get_along,
    orders,
)
from harness.serving.settings.table import TABLE, WIDE_POOL

STATE = {"mkldnn": True, "deterministic": False, "matmul_precision": "highest", "autocast": "off", "cudnn": True}
STATE |= {"flush_denormal": False, "cudnn_tf32": True}


def named(**changes: Any) -> list[str]:
    asked: dict[str, Any] = {
        "device": CPU,
        "isa": "AVX512",
        "orders": (),
        "pools": None,
        "old": STATE,
        "new": STATE,
        **changes,
    }
    return [setting.name for setting in candidates(asked.pop("profile", ServingProfile()), **asked)]


def test_what_is_tried_by_default_exists() -> None:
    assert set(TRIED_BY_DEFAULT) <= set(MITIGATIONS)
    assert len(set(TRIED_BY_DEFAULT)) == len(TRIED_BY_DEFAULT) > 0


def test_every_setting_sets_something_that_the_worker_knows() -> None:
    for setting in MITIGATIONS.values():
        assert set(setting.switches) <= set(SWITCHES)
        assert set(setting.numerics) <= set(NUMERICS)
        assert applied(ServingProfile(intra_op_threads=4), [setting]) != ServingProfile(intra_op_threads=4) or (
            setting.order
        ), setting.name


def test_a_variable_of_which_nobody_can_be_asked_says_so() -> None:
    for setting in MITIGATIONS.values():
        assert bool(setting.waives) == any(not TABLE[name].read_back for name in setting.env), setting.name


def test_settings_lie_on_top_of_the_profile_and_the_later_ones_above() -> None:
    profile = ServingProfile(
        intra_op_threads=2, switches={"cpu_fusion": True, "profiling": True}, env={"A": "1"}, numerics={"cudnn": True}
    )
    chosen = [MITIGATIONS[name] for name in ("profiling off", "cuDNN off", "one intra-op thread", "wide inter-op pool")]
    assert applied(profile, chosen) == ServingProfile(
        intra_op_threads=1,
        inter_op_threads=WIDE_POOL,
        switches={"cpu_fusion": True, "profiling": False},
        env={"A": "1"},
        numerics={"cudnn": False},
    )


def test_all_switches_are_candidates_and_nothing_that_changes_nothing_is() -> None:
    found = named()
    assert {setting.name for setting in JIT_SWITCHES} <= set(found)
    assert {"inference mode", "freeze", "oneDNN off", "deterministic", "AVX2 kernels"} <= set(found)
    assert not {"full matmul precision", "autocast off", "denormals kept", "one intra-op thread"} & set(found)
    assert not [name for name in found if MITIGATIONS[name].needs or MITIGATIONS[name].order]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"profile": ServingProfile(intra_op_threads=2)}, "one intra-op thread"),
        ({"pools": (4, 4)}, "one intra-op thread"),
        ({"orders": ("load", "calls")}, "serialized loading"),
        ({"orders": ("load", "calls")}, "serialized first calls"),
        ({"orders": ("fork",)}, "load after the fork"),
        ({"orders": ("forked_threads",)}, "one thread after the fork"),
        ({"orders": ("capture",), "device": TABLE_OF_DEVICES["cuda"]}, "thread-local capture"),
        ({"orders": ("warm_capture",), "device": TABLE_OF_DEVICES["cuda"]}, "warm-up before capture"),
        ({"device": TABLE_OF_DEVICES["cuda"]}, "cuDNN off"),
        ({"device": TABLE_OF_DEVICES["cuda"]}, "eager CUDA modules"),
        ({"device": TABLE_OF_DEVICES["rocm"]}, "cuDNN off"),
        ({"new": {**STATE, "matmul_precision": "medium"}}, "full matmul precision"),
        ({"new": {**STATE, "flush_denormal": True}}, "denormals kept"),
    ],
)
def test_a_setting_is_a_candidate_only_where_it_can_matter(changes: dict[str, Any], name: str) -> None:
    assert name in named(**changes)
    assert name not in named()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"isa": "AVX2"}, "AVX2 kernels"),
        ({"profile": ServingProfile(switches={"profiling": False})}, "profiling off"),
        ({"profile": ServingProfile(inter_op_threads=2 * WIDE_POOL)}, "wide inter-op pool"),
        ({"new": {**STATE, "mkldnn": False}}, "oneDNN off"),
    ],
)
def test_a_setting_that_holds_already_is_no_candidate(changes: dict[str, Any], name: str) -> None:
    assert name not in named(**changes)
    assert name in named()


def test_a_numeric_setting_that_the_releases_have_otherwise_is_offered_as_it_was() -> None:
    assert "quantized_engine as before" in named(
        old={**STATE, "quantized_engine": "fbgemm"}, new={**STATE, "quantized_engine": "x86"}
    )
    same = {**STATE, "quantized_engine": "x86"}
    assert "quantized_engine as before" not in named(old=same, new=same)


def test_what_orders_threads_comes_first_where_there_are_others() -> None:
    threads = named(orders=("load", "calls"))
    assert threads[:3] == ["wide inter-op pool", "serialized loading", "serialized first calls"]
    assert named(orders=("fork",))[:2] == ["wide inter-op pool", "load after the fork"]
    assert named()[0] == JIT_SWITCHES[0].name


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("profiling off", "fuser off"), True),
        (("AVX2 kernels", "plain kernels"), False),
        (("freeze", "optimize for inference"), False),
        (("freeze", "profiling off"), True),
        (("serialized loading", "serialized first calls"), True),
        (("one intra-op thread", "wide inter-op pool"), True),
    ],
)
def test_two_settings_get_along_unless_they_set_the_same(names: tuple[str, str], expected: bool) -> None:
    assert get_along([MITIGATIONS[name] for name in names]) is expected


def test_steps_of_all_settings_are_taken_together() -> None:
    chosen = [MITIGATIONS[name] for name in ("serialized first calls", "fuser off", "serialized loading")]
    assert orders(chosen) == ("calls", "load")


def test_what_every_release_has_anyway_is_tried_only_where_a_profile_has_it_otherwise() -> None:
    assert "oneDNN fusion off" not in named()
    assert "oneDNN fusion off" not in named(profile=ServingProfile(switches={"onednn_fusion": False}))
    assert "oneDNN fusion off" in named(profile=ServingProfile(switches={"onednn_fusion": True}))
