"""Settings mitigate what they can, and nothing else: one that hangs where it is fused, and operators spoilt in the new release."""

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness.search.mitigation.price import PRICED, bills
from harness.search.mitigation.search import MitigationSearch, search
from harness.core.verdict import Mitigation
from harness.core.plan import LatencyBudget
from harness.probing.facts import Effects, Attributed
from harness.serving.settings import mitigations
from harness.serving.settings.mitigations import JIT_SWITCHES, MITIGATIONS
from harness.serving.settings.paste_lines import TRITON
from tests.integration.search.judging import judged
from tests.integration.search.spoiling import spoilt
from tests.programs import stub
from tests.programs.cli import finish, started

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).with_name("mitigating")
ALONE = ("fused", "needs_two", "wrong", "healthy")
JIT = tuple(setting.name for setting in JIT_SWITCHES)
# Every setting is tried in the table's own test; here there are fewer, and fewest where pairs of them are tried.
OTHERS = ("inference mode", "wide inter-op pool", "oneDNN off", "deterministic")
TABLE = (*JIT, *OTHERS)
PAIRED = (*JIT[:2], *OTHERS)
STARTING = ("profiling off", "oneDNN off", "serialized loading", "serialized first calls")


def ready(
    old: str, new: str, folder: Path, *names: str, scenario: str = "alone"
) -> AbstractContextManager[tuple[Attributed, Effects]]:
    """Return what is known of the models, spoilt in the new release, when ``mitigate`` begins to search."""
    return judged(
        FOLDER,
        (old, spoilt(new, FOLDER / "spoilt.py", folder / "spoilt")),
        folder / "runs",
        " or ".join(names),
        floor_s=1,
        scenarios=tuple(dict.fromkeys(("alone", scenario))),
        new_profile="cpu_fusion",
        runtime="python",
    )


def mitigating(found: MitigationSearch) -> list[tuple[str, ...]]:
    return [one.settings for one in found.mitigations if one.mitigates]


def mitigations_by_name(found: MitigationSearch) -> Mapping[str, Mitigation]:
    return {one.name: one for one in found.mitigations}


@pytest.mark.slow
def test_settings_that_mitigate_are_found_and_no_others(
    old_python: str, new_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mitigations, "MITIGATIONS", {name: MITIGATIONS[name] for name in TABLE})
    with ready(old_python, new_python, tmp_path, *ALONE) as (facts, effects):
        quick = {name: search(name, facts, effects, everything=False) for name in ALONE if name != "fused"}
        found = {"fused": search("fused", facts, effects)}
        monkeypatch.setattr(mitigations, "MITIGATIONS", {name: MITIGATIONS[name] for name in PAIRED})
        found |= {name: search(name, facts, effects) for name in ALONE if name != "fused"}

        fused = found["fused"]
        assert sorted(mitigating(fused)) == sorted((name,) for name in JIT)
        assert {one.note for one in fused.mitigations if not one.mitigates} == {"still hang"}
        assert {one.name for one in fused.mitigations if not one.mitigates} == set(TABLE) - set(JIT)
        assert all(one.repeats == 3 for one in fused.mitigations if one.mitigates)  # it hangs in 3 of 3
        assert [TRITON in mitigations_by_name(fused)[name].paste for name in ("profiling off", "fusion depth 0")] == [
            True,
            False,
        ]

        assert mitigating(found["needs_two"]) == [("oneDNN off", "deterministic")]
        both = mitigations_by_name(found["needs_two"])["oneDNN off + deterministic"]
        assert both.minimal
        assert "set_flags(False)" in both.paste["python"]
        assert "use_deterministic_algorithms(True)" in both.paste["python"]
        assert mitigations_by_name(found["needs_two"])["oneDNN off"].note == "still call error"

        assert mitigating(found["wrong"]) == []
        assert found["wrong"].mitigations
        assert not found["wrong"].ended
        assert found["healthy"].cell is None
        assert {name: mitigating(one) for name, one in quick.items()} == dict.fromkeys(quick, [])
        assert {one.name for one in quick["wrong"].mitigations} == set(JIT)

        # Prices: nothing answers without one where it hangs; a model that answers has both.
        budget = LatencyBudget(looks=(1,), blocks=3, block_s=0.005, together_s=0.02)
        (bill,) = bills("healthy", [[MITIGATIONS["profiling off"]]], facts, effects, budget=budget)
        assert not bill.problem
        assert [price.quantity for price in bill.prices] == [name for name in PRICED if name != "device_memory"]
        assert all(price.to_old is not None and price.to_new is not None for price in bill.prices)
        (bill,) = bills("fused", [[MITIGATIONS["fuser off"]]], facts, effects, budget=budget)
        assert {price.quantity: price.to_new for price in bill.prices}["steady"] is None


@pytest.mark.slow
def test_a_start_up_one_after_another_mitigates_what_fails_only_beside_others(
    old_python: str, new_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mitigations, "MITIGATIONS", {name: MITIGATIONS[name] for name in STARTING})
    names = ("crowded_calls", "crowded_start", "healthy")
    with ready(old_python, new_python, tmp_path, *names, scenario="concurrent") as (facts, effects):
        calls = search("crowded_calls", facts, effects, scenario="concurrent")
        assert mitigating(calls) == [("serialized first calls",)]
        assert calls.mitigations[0].repeats >= 3
        start = search("crowded_start", facts, effects, scenario="concurrent")
        assert mitigating(start) == [("serialized loading", "serialized first calls")]
        assert search("healthy", facts, effects, scenario="concurrent").cell is None
        assert search("crowded_calls", facts, effects, scenario="alone").cell is None


SLOW = ("--fixtures", "fixtures/breaks", "--model", "crossed_buckets")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "first"),
    [("mitigate", "prices/*/round-1.json"), ("bisect", "benchmark/round-3.json")],
)
def test_a_killed_search_of_a_slow_cell_goes_on_with_its_rounds_and_ends_in_its_time(
    old_python: str, new_python: str, tmp_path: Path, verb: str, first: str
) -> None:
    def rounds() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/**/round-*.json")}

    slow = ("--latency", "quick") if verb == "bisect" else ("--scenario", "latency")
    sides = ("--env", f"old={old_python}", "--env", f"new={new_python}", "--old", "old", "--new", "new")
    command = [sys.executable, "-m", "harness", verb, "--out", str(tmp_path)]
    process = started([*command, *SLOW, *slow, *sides])
    assert stub.eventually(lambda: bool([*tmp_path.glob(f"*/{first}")]) or process.poll() is not None, within_s=240)
    process.kill()
    finish(process)
    kept = rounds()
    assert kept
    done = finish(started([*command, "--resume", "last"]), within_s=600)
    assert done.returncode in (1, 4), done.stderr
    assert {path: rounds()[path] for path in kept} == kept
    assert "crossed_buckets" in done.stdout
