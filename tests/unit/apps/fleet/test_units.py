"""From artifacts to units: each content once, each program once in full, divided alike whoever asks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.fleet import Examination, FleetArtifact, Serving
from harness.core.prediction import Prediction
from harness.core.errors import ConfigError
from harness.apps.fleet.units import (
    DEFAULT_COSTS,
    MOST_IN_A_RUN,
    MOST_S,
    Content,
    content_of,
    examined,
    key_of,
    machines_for,
    read_shard,
    runs_of,
    seconds_of,
    shard_of,
    units_of,
)

COMMON = Content(
    protocol="p",
    releases={"old": "2.1.2", "new": "2.6.0"},
    device="cpu",
    settings="s",
    profiles={"": (), "fast": ("a=1",)},
)


def artifact(name: str, program: str = "P", weights: str = "W", **more: object) -> FleetArtifact:
    made = FleetArtifact(
        name=name,
        path=f"{name}.pt",
        program=program,
        weights=weights,
        predictions={"new": Prediction.LOADS},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def fleet(count: int) -> tuple[FleetArtifact, ...]:
    """Artifacts of which some share a program, and some are copies."""
    made = [artifact(f"m{at:03}", program=f"P{at % 7}", weights=f"W{at % (count // 2 + 1)}") for at in range(count)]
    return examined(made, COMMON, ())


def test_of_each_program_one_is_examined_in_full_and_copies_run_once() -> None:
    found = examined([artifact("a"), artifact("b", weights="X"), artifact("c"), artifact("d", program="Q")], COMMON, ())
    asked = {item.name: item.examination for item in found}
    assert asked == {"a": "full", "b": "weights", "c": "full", "d": "full"}  # c is the same file as a
    units = units_of(found, DEFAULT_COSTS)
    assert sorted(unit.artifacts for unit in units) == [("a", "c"), ("b",), ("d",)]


def test_the_one_with_requests_of_its_own_stands_for_its_program_then_the_tier_that_moves_last() -> None:
    asked = Serving(inputs="b.npz")
    found = examined([artifact("a"), artifact("b", weights="X", serving=asked)], COMMON, ())
    assert [item.examination for item in found] == [Examination.WEIGHTS, Examination.FULL]
    found = examined(
        [artifact("a", tier="batch"), artifact("b", weights="X", tier="online")], COMMON, ("batch", "online")
    )
    assert [item.examination for item in found] == [Examination.WEIGHTS, Examination.FULL]


def test_a_program_that_is_served_or_asked_otherwise_is_examined_again() -> None:
    asked = Serving(requests=({"name": "example", "method": "forward", "arguments": [{"shape": [2, 7]}]},))
    found = examined(
        [
            artifact("a"),
            artifact("b", weights="X", serving=Serving(profile="fast")),
            artifact("c", weights="Y", serving=asked),
            artifact("d", weights="Z", serving=asked),
            artifact("e", weights="U", serving=Serving(inputs="own.npz")),
        ],
        COMMON,
        (),
    )
    asked_of = {item.name: item.examination for item in found}
    assert asked_of == {"a": "weights", "b": "full", "c": "full", "d": "weights", "e": "full"}


def test_every_part_of_the_content_makes_another_key() -> None:
    base = artifact("a", serving=Serving(profile=""))
    key = key_of(content_of(base, Examination.FULL, COMMON))
    others = [
        key_of(content_of(replace(base, program="Q"), Examination.FULL, COMMON)),
        key_of(content_of(replace(base, weights="V"), Examination.FULL, COMMON)),
        key_of(content_of(replace(base, inputs_sha256="1"), Examination.FULL, COMMON)),
        key_of(content_of(replace(base, serving=Serving(seed=1)), Examination.FULL, COMMON)),
        key_of(content_of(replace(base, serving=Serving(profile="fast")), Examination.FULL, COMMON)),
        key_of(content_of(base, Examination.WEIGHTS, COMMON)),
        key_of(content_of(base, Examination.FULL, COMMON._replace(protocol="other"))),
        key_of(content_of(base, Examination.FULL, COMMON._replace(device="other"))),
        key_of(content_of(base, Examination.FULL, COMMON._replace(settings="other"))),
        *(
            key_of(content_of(base, Examination.FULL, COMMON._replace(releases={**COMMON.releases, side: "9"})))
            for side in ("old", "new")
        ),
    ]
    assert len({key, *others}) == 1 + len(others)


def test_a_name_an_owner_and_a_place_are_no_content() -> None:
    one, other = artifact("a"), artifact("b", owner="ads", tier="online", path="elsewhere/b.pt", sha256="1")
    assert content_of(one, Examination.FULL, COMMON) == content_of(other, Examination.FULL, COMMON)


def test_the_riskiest_runs_first_and_of_equal_risk_the_cheapest() -> None:
    found = examined(
        [
            artifact("fine", "A"),
            artifact("doubtful", "B", predictions={"new": Prediction.UNKNOWN}),
            artifact("refused", "C", predictions={"new": Prediction.FAILS}),
            artifact("changed", "D", why="an operator answers otherwise"),
            artifact("large", "E", size_bytes=10**10),
        ],
        COMMON,
        (),
    )
    order = [unit.artifact for unit in units_of(found, DEFAULT_COSTS)]
    assert order == ["refused", "doubtful", "changed", "fine", "large"]


def test_what_is_left_out_is_no_unit() -> None:
    found = examined([artifact("a", left_out="is no TorchScript")], COMMON, ())
    assert found[0].key == "" and units_of(found, DEFAULT_COSTS) == ()


@given(count=st.integers(1, 60), shards=st.integers(1, 9), known=st.integers(0, 60))
def test_shards_are_a_partition_and_alike_in_cost(count: int, shards: int, known: int) -> None:
    artifacts = fleet(count)
    units = units_of(artifacts, DEFAULT_COSTS, {item.key for item in artifacts[:known]})
    parts = [shard_of(units, index, shards) for index in range(1, shards + 1)]
    assert sorted(unit.key for part in parts for unit in part) == sorted(unit.key for unit in units)
    costs = [sum(unit.cost_s for unit in part if not unit.known) for part in parts]
    assert max(costs) - min(costs) <= max((unit.cost_s for unit in units), default=0)


def test_runs_have_one_profile_each_and_a_bounded_number_of_units() -> None:
    many = [artifact(f"m{at}", f"P{at}", serving=Serving(profile="fast" if at % 2 else "")) for at in range(450)]
    runs = runs_of(units_of(examined(many, COMMON, ()), DEFAULT_COSTS))
    assert all(len({unit.profile for unit in run}) == 1 and len(run) <= MOST_IN_A_RUN for run in runs)
    assert sum(map(len, runs)) == 450 and len(runs) == 2
    long = runs_of([replace(unit, cost_s=MOST_S / 4) for unit in units_of(examined(many, COMMON, ()), DEFAULT_COSTS)])
    assert all(len(run) <= 4 for run in long) and sum(map(len, long)) == 450
    (huge,) = runs_of([replace(runs[0][0], cost_s=2 * MOST_S)])
    assert len(huge) == 1


def test_as_many_machines_as_it_takes_and_no_more() -> None:
    units = units_of(fleet(40), DEFAULT_COSTS)
    count = machines_for(units, run_s=10.0, within_s=60.0)
    assert max(seconds_of(shard_of(units, at, count), 10.0) for at in range(1, count + 1)) <= 60
    assert max(seconds_of(shard_of(units, at, count - 1), 10.0) for at in range(1, count)) > 60


def test_a_time_in_which_nothing_can_be_done_is_refused() -> None:
    with pytest.raises(ConfigError, match="one artifact"):
        machines_for(units_of(fleet(3), DEFAULT_COSTS), run_s=60.0, within_s=30.0)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "a/b", "1", "-1/2", "1/2/3", "1.5/2"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--shard .*: expected I/N"):
        read_shard(text)
    assert read_shard("2/8") == (2, 8)
