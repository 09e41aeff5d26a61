"""The search for settings on a release that is made up: what counts as a mitigation, how often it is asked, what is left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.search.mitigation import price
from harness.search.mitigation import search as cure_search
from harness.search.mitigation.price import Bill
from harness.search.mitigation.search import MitigationSearch, known_change, search
from harness.search.mitigation.trial import CLEAN_RUNS_AT_MOST
from harness.core.diagnosis import Setting
from harness.core.measurement import LatencyMeasurement, RatioEstimate
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell, LatencyBudget
from harness.core.probe import ProbeRequest, ProbeResult
from harness.core.verdict import CellVerdict, Finding, Price
from harness.probing.facts import Decided, OldAnswers
from harness.serving.settings import mitigations
from harness.serving.settings.mitigations import JIT_SWITCHES, MITIGATIONS
from tests.unit.builders.mitigating import GOLDEN, ended
from tests.unit.builders.stages import Runner, effects, known, planned, probed, result

JIT = tuple(setting.name for setting in JIT_SWITCHES)

# What becomes of a model under a request: an outcome, or what it answers.
Says = Callable[[ProbeRequest, str], Outcome | int]


def release(folder: Path, says: Says, *, unsupported: tuple[str, ...] = ()) -> Runner:
    """Return a runner that applies every switch but the ``unsupported``."""

    def answer(request: ProbeRequest) -> ProbeResult:
        said = {name: says(request, name) for name in (run.artifact.model for run in request.runs)}
        profile = request.profile
        asked = {
            **profile.switches,
            **profile.numerics,
            **{f"env {name}": value for name, value in profile.env.items()},
        }
        asked |= {"intra_op_threads": profile.intra_op_threads, "inter_op_threads": profile.inter_op_threads}
        told = {
            name: {"requested": value, "supported": False, "reason": "no such name"}
            if name in unsupported
            else {"requested": value, "read_back": value, "supported": True}
            for name, value in asked.items()
        }
        outcome = Outcome.HANG if Outcome.HANG in said.values() else Outcome.COMPLETED
        directory = folder / str(len(runner.asked))
        return ended(said, directory, side=request.side, outcome=outcome, data={"switches": told})

    runner = Runner(answer)
    return runner


def red(kind: str = "hang", scenario: str = "alone", status: Status = Status.FAIL) -> Decided:
    facts = known(planned("m", "n", settings={"latency": LatencyBudget(budget="off")}))
    baselines = {name: replace(found, golden=GOLDEN) for name, found in facts.baselines.items()}

    def verdict(name: str, where: str, sick: bool) -> CellVerdict:
        findings = (Finding(kind=kind, message=f"about {kind}"),) if sick else ()
        cell = Cell(name, where).id
        said = status if sick else Status.PASS
        return CellVerdict(cell=cell, model=name, scenario=where, status=said, findings=findings)

    verdicts = {
        name: tuple(verdict(name, where, name == "m" and where == scenario) for where in ("alone", "concurrent"))
        for name in ("m", "n")
    }
    alone = {**facts.alone, "m": probed(result("m", Outcome.HANG))} if scenario == "alone" else facts.alone
    return replace(facts, baselines=baselines, verdicts=verdicts, alone=alone)


def only_under(*names: str, otherwise: Outcome | int = Outcome.HANG) -> Says:
    """Return a release in which ``m`` is well only where all of the settings hold."""

    def says(request: ProbeRequest, model: str) -> Outcome | int:
        if model.partition("#")[0] != "m" or request.side == "old":
            return 1
        return 1 if all(_holds(name, request) for name in names) else otherwise

    return says


def _holds(name: str, request: ProbeRequest) -> bool:
    setting, profile = MITIGATIONS[name], request.profile
    locked = request.script is not None and {"lock"} <= {
        step[0] for thread in request.script.threads for step in thread
    }
    return (
        setting.switches.items() <= profile.switches.items()
        and setting.numerics.items() <= profile.numerics.items()
        and setting.env.items() <= profile.env.items()
        and (locked or not setting.order)
    )


def mitigating(found: MitigationSearch) -> list[tuple[str, ...]]:
    return [one.settings for one in found.mitigations if one.mitigates]


def table(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(mitigations, "MITIGATIONS", {name: MITIGATIONS[name] for name in names})


def test_only_the_switches_are_tried_and_of_the_model_alone_where_little_is_asked(tmp_path: Path) -> None:
    runner = release(tmp_path, only_under("fuser off"))
    facts = red()
    found = search("m", facts, effects(runner), everything=False)
    # The price is asked of the benchmark, which this release has none of. The one that mitigates is asked again.
    assert [request.verb for request in runner.asked] == ["run"] * (len(JIT) + 4)
    assert not [request for request in runner.asked if request.script is not None]
    assert [(one.settings, one.repeats) for one in found.mitigations if one.mitigates] == [(("fuser off",), 5)]


def test_the_rarer_it_was_seen_to_fail_the_more_clean_runs_it_takes(tmp_path: Path) -> None:
    facts, rare = red(), effects(release(tmp_path, only_under("fuser off")))
    often = [one for one in search("m", facts, rare, everything=False, seen=(3, 3)).mitigations if one.mitigates]
    seldom = [one for one in search("m", facts, rare, everything=False, seen=(1, 12)).mitigations if one.mitigates]
    assert [one.repeats for one in (*often, *seldom)] == [3, CLEAN_RUNS_AT_MOST]
    assert seldom[0].note.startswith(f"only {CLEAN_RUNS_AT_MOST} clean runs of the ")


@pytest.fixture(autouse=True)
def _no_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cure_search, "bills", lambda model, sets, *_, **__: [Bill() for _ in sets])


def test_a_mitigation_is_proven_by_repeats_and_by_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off", "oneDNN off")
    runner = release(tmp_path, only_under("fuser off"))
    found = search("m", red(), effects(runner))
    (mitigated, not_mitigated) = found.mitigations
    assert (mitigated.settings, mitigated.mitigates, mitigated.repeats, mitigated.minimal) == (
        ("fuser off",),
        True,
        3,
        True,
    )
    assert (not_mitigated.settings, not_mitigated.mitigates, not_mitigated.note) == (
        ("oneDNN off",),
        False,
        "still hang",
    )
    under = [request for request in runner.asked if "texpr_fuser" in request.profile.switches]
    assert [request.repeat for request in under if request.script is None] == [0, 1, 2]
    assert [request for request in under if request.script is not None]
    assert "texpr_fuser" in mitigated.paste["python"]


def test_what_shows_in_every_other_run_only_is_not_mitigated_by_a_few_that_are_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(monkeypatch, "fuser off")

    def every_other(request: ProbeRequest, model: str) -> Outcome | int:
        sick = request.repeat % 2 if not request.profile.switches else request.repeat == 3
        return Outcome.HANG if model == "m" and request.script is None and sick else 1

    (tried,) = search("m", red(), effects(release(tmp_path, every_other))).mitigations
    assert (tried.mitigates, tried.note) == (False, "still hang")


def test_two_settings_are_found_where_none_mitigates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "profiling off", "freeze", "optimize for inference", "oneDNN off")
    found = search("m", red(), effects(release(tmp_path, only_under("profiling off", "oneDNN off"))))
    assert mitigating(found) == [("profiling off", "oneDNN off")]
    assert found.mitigations[0].minimal
    assert found.notes == ("4 pairs of the others do not mitigate either",)  # freeze with optimize makes no sense


def wrong(folder: Path) -> Decided:
    """Return facts in which ``m`` answers 2 where it is to answer 1."""
    facts = red("values")
    return replace(facts, alone={**facts.alone, "m": ended({"m": 2}, folder / "unmitigated")})


def off_by_one(request: ProbeRequest, model: str) -> int:
    """Return what a release answers that is off by one, whatever is set; by two with oneDNN off."""
    if request.side == "old" or model != "m":
        return 1
    return 3 if _holds("oneDNN off", request) else 2


@pytest.mark.parametrize(
    ("forced", "expected"),
    [
        (
            False,
            ("3 pairs of the others do not mitigate either", "3 pairs were not tried: neither setting changes a bit"),
        ),
        (True, ("6 pairs of the others do not mitigate either",)),
    ],
)
def test_pairs_of_settings_that_change_no_bit_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forced: bool, expected: tuple[str, ...]
) -> None:
    table(monkeypatch, "profiling off", "fuser off", "deterministic", "oneDNN off")
    facts, world = wrong(tmp_path), effects(release(tmp_path, off_by_one))
    found = search("m", facts, world, pairs=forced)
    assert {one.name for one in found.mitigations if not one.unaffected} == {"oneDNN off"}
    assert all(one.note.endswith(", every bit as without it") == one.unaffected for one in found.mitigations)
    assert found.notes == expected


def test_answers_that_are_wrong_now_and_then_say_nothing_of_what_a_setting_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(monkeypatch, "profiling off", "fuser off")
    world = effects(release(tmp_path, off_by_one))
    found = search("m", wrong(tmp_path), world, seen=(3, 10))
    assert found.notes == ("1 pairs of the others do not mitigate either",)


@pytest.mark.parametrize(
    ("operator", "kind", "known"),
    [
        ("aten::upsample_bicubic2d.vec", "values", True),
        ("aten::upsample_bicubic2d.vec", "nan_placement", False),  # it shows as other numbers
        ("aten::adaptive_avg_pool2d", "call_error", False),  # the error names another operator
        ("aten::add.Tensor", "values", False),
    ],
)
def test_of_a_known_change_of_an_operator_no_pairs_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str, kind: str, known: bool
) -> None:
    table(monkeypatch, "profiling off", "oneDNN off")
    facts = red(kind)
    own = replace(facts.exports["m"], artifact=replace(facts.artifact("m"), operators=(operator,)))
    found = search("m", replace(facts, exports={**facts.exports, "m": own}), effects(release(tmp_path, off_by_one)))
    assert len(found.mitigations) == 2
    assert [note for note in found.notes if note.startswith("known change of aten::upsample_bicubic2d")] == (
        [*found.notes] if known else []
    )
    assert ("pairs of the others" in "".join(found.notes)) != known


@pytest.mark.parametrize("draws", [True, False])
def test_random_numbers_that_changed_explain_a_model_that_draws_some(draws: bool) -> None:
    facts = red("values")
    own = replace(facts.exports["m"], artifact=replace(facts.artifact("m"), operators=("aten::dropout",)))
    new = replace(facts.fingerprints["new"], torch="2.15.0+cu132")
    old = replace(facts.fingerprints["old"], torch="2.6.0+cu124")
    data = {"draws:m": {"set": "example", "call": 0}} if draws else {}
    facts = replace(
        facts,
        exports={**facts.exports, "m": own},
        fingerprints={"old": old, "new": new},
        alone={**facts.alone, "m": replace(facts.alone["m"], data=data)},
    )
    words = known_change(facts.verdicts["m"][0], facts)
    assert words.startswith("known change of aten::dropout, which no setting undoes") == draws
    assert bool(words) == draws


@pytest.mark.parametrize(("pairs", "expected"), [(False, 1), (True, 2)])
def test_pairs_beside_a_single_mitigation_are_tried_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: bool, expected: int
) -> None:
    table(monkeypatch, "fuser off", "profiling off", "oneDNN off")
    one, two = only_under("fuser off"), only_under("profiling off", "oneDNN off")
    either: Says = lambda request, model: 1 if 1 in (one(request, model), two(request, model)) else Outcome.HANG
    assert len(mitigating(search("m", red(), effects(release(tmp_path, either)), pairs=pairs))) == expected


def test_a_switch_that_does_not_exist_is_untestable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off", "profiling off")
    runner = release(tmp_path, only_under(), unsupported=("texpr_fuser",))
    found = {one.name: one for one in search("m", red(), effects(runner)).mitigations}
    assert (found["profiling off"].mitigates, found["fuser off"].mitigates) == (True, False)
    assert found["fuser off"].untestable
    assert found["fuser off"].note.endswith("no such name")


def test_a_machine_that_is_too_busy_says_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off")
    runner = release(tmp_path, only_under("profiling off", otherwise=Outcome.STARVED))
    (tried,) = search("m", red(), effects(runner)).mitigations
    assert (tried.mitigates, tried.untestable) == (False, True)


@pytest.mark.parametrize("kind", ["load_error", "structure", "dtype", "export_error"])
def test_what_no_setting_changes_is_not_tried(tmp_path: Path, kind: str) -> None:
    runner = release(tmp_path, only_under())
    found = search("m", red(kind), effects(runner))
    assert (found.mitigations, runner.asked) == ((), [])
    assert found.notes[0].startswith("no setting of a server changes this")


@pytest.mark.parametrize("status", [Status.PASS, Status.SAME_FAIL, Status.INCONCLUSIVE])
def test_nothing_is_tried_where_nothing_is_red(tmp_path: Path, status: Status) -> None:
    runner = release(tmp_path, only_under())
    assert search("m", red(status=status), effects(runner)).cell is None
    assert search("m", red(status=status), effects(runner), everything=False).mitigations == ()
    assert runner.asked == []


def test_an_initialization_is_mitigated_by_what_makes_it_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(monkeypatch, "serialized loading", "fuser off")

    def crowded(request: ProbeRequest, model: str) -> Outcome | int:
        return only_under("serialized loading")(request, model) if request.script is not None else 1

    runner = release(tmp_path, crowded)
    found = search("m", red(scenario="concurrent"), effects(runner), scenario="concurrent")
    assert mitigating(found) == [("serialized loading",)]
    assert found.mitigations[0].repeats == 5
    assert search("m", red(scenario="concurrent"), effects(runner), scenario="alone").cell is None


def priced(low: float, ratio: float, high: float, memory: float = 1.0) -> Bill:
    def estimate(low: float, ratio: float, high: float) -> RatioEstimate:
        return RatioEstimate(ratio=ratio, low=low, high=high, pairs=3, detectable=1.02)

    return Bill(
        prices=(
            Price(quantity="steady", to_old=estimate(low, ratio, high)),
            Price(quantity="peak_rss", to_old=estimate(memory * 0.99, memory, memory * 1.01)),
        )
    )


def test_mitigations_are_ranked_by_what_is_sure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs: Mapping[str, Bill] = {
        "profiling off": priced(1.0, 1.01, 1.02),  # not sure, so it ranks as no change
        "profiling executor off": priced(0.94, 0.95, 0.96),
        "optimized execution off": priced(1.05, 1.06, 1.07),
        "fusion depth 0": priced(0.98, 0.99, 1.02, memory=1.5),
        "fuser off": Bill(problem="under load: it died", failed=True),
    }

    def bills_of(_: str, sets: Sequence[Sequence[Setting]], *__: object, **___: object) -> list[Bill]:
        return [costs[chosen[0].name] for chosen in sets]

    monkeypatch.setattr(cure_search, "bills", bills_of)
    found = search("m", red(), effects(release(tmp_path, only_under())), everything=False)
    assert [one.name for one in found.mitigations] == [
        "profiling executor off",
        "profiling off",
        "fusion depth 0",
        "optimized execution off",
        "fuser off",
    ]
    assert [(one.mitigates, one.note) for one in found.mitigations[-1:]] == [(False, "under load: it died")]
    assert found.price_note == "the new release does not answer without a mitigation: prices are to the old one"


def test_no_price_is_measured_where_none_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off")
    found = search("m", red(), effects(release(tmp_path, only_under())))
    assert found.price_note == "no price was asked for (--latency off)"
    assert found.mitigations[0].prices == ()


def slow(status: Status = Status.FAIL) -> Decided:
    """Return facts in which ``m`` is slow, waived or not, and well otherwise."""
    facts = red("latency", "latency")
    cell = CellVerdict(
        cell=Cell("m", "latency").id,
        model="m",
        scenario="latency",
        status=status,
        findings=(Finding(kind="latency", message="steady latency +50 %"),),
    )
    return replace(facts, verdicts={**facts.verdicts, "m": (*facts.verdicts["m"], cell)})


def took(low: float, high: float) -> LatencyMeasurement:
    ratio = RatioEstimate(ratio=(low + high) / 2, low=low, high=high, pairs=3, detectable=1.02)
    return LatencyMeasurement(model="m", samples=(), steady=ratio)


@pytest.mark.parametrize("status", [Status.FAIL, Status.XFAIL])
@pytest.mark.parametrize(
    ("screened", "measured", "expected"),
    [
        ((1.4, 1.5), None, (False, False, "still slow: +45.0 % [+40.0, +50.0]")),
        ((0.99, 1.01), None, (True, False, "")),
        ((0.9, 1.2), (0.99, 1.01), (True, False, "")),
        ((0.9, 1.2), (1.1, 1.2), (False, False, "still slow: +15.0 % [+10.0, +20.0]")),
        ((0.9, 1.2), (0.9, 1.2), (False, True, "undecided: +5.0 % [-10.0, +20.0]")),
    ],
    ids=["slow for sure", "fast for sure", "fast when measured", "slow when measured", "never decided"],
)
def test_a_slow_model_is_mitigated_by_time_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    screened: tuple[float, float],
    measured: tuple[float, float] | None,
    expected: tuple[bool, bool, str],
    status: Status,
) -> None:
    table(monkeypatch, "fuser off")
    monkeypatch.setattr(
        cure_search, "bills", lambda model, sets, *_, **__: [Bill(measured=took(*screened)) for _ in sets]
    )
    contests: list[str] = []

    def contest(*_: object, label: str, **__: object) -> Mapping[str, LatencyMeasurement]:
        contests.append(label)
        assert measured is not None
        return {"m": took(*measured)}

    monkeypatch.setattr(price, "contest", contest)
    (tried,) = search("m", slow(status), effects(release(tmp_path, only_under())), scenario="latency").mitigations
    assert (tried.mitigates, tried.untestable, tried.note) == expected
    assert contests == ([] if measured is None else ["time under fuser off"])


def test_a_slow_cell_is_searched_for_a_stated_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off", "profiling off")
    monkeypatch.setattr(cure_search, "SLOW_S", -1.0)
    runner = release(tmp_path, only_under())
    found = search("m", slow(), effects(runner), scenario="latency")
    assert {(one.untestable, one.note) for one in found.mitigations} == {(True, "not tried: the time is over")}
    assert runner.asked == []


@pytest.mark.parametrize(("high", "tried"), [(1.05, 0), (0.9, 1)], ids=["no setting is quicker", "one is"])
def test_pairs_are_timed_where_one_of_them_is_quicker_than_the_unmitigated_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, high: float, tried: int
) -> None:
    table(monkeypatch, "fuser off", "profiling off")

    def bills_of(_: str, sets: Sequence[Sequence[Setting]], *__: object, **___: object) -> list[Bill]:
        to_new = RatioEstimate(ratio=0.85, low=0.8, high=high, pairs=3, detectable=1.02)
        bill = Bill(
            measured=took(1.4, 1.5), prices=(Price(quantity="steady", to_old=took(1.4, 1.5).steady, to_new=to_new),)
        )
        return [bill] * len(sets)

    monkeypatch.setattr(cure_search, "bills", bills_of)
    found = search("m", slow(), effects(release(tmp_path, only_under())), scenario="latency")
    notes = (
        "1 pairs of the others do not mitigate either",
        "1 pairs were not tried: neither setting makes the call quicker",
    )
    assert found.notes == (notes[0] if tried else notes[1],)


def test_what_is_left_undecided_when_the_time_is_up_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off")
    monkeypatch.setattr(cure_search, "DECIDING_S", 0.0)
    monkeypatch.setattr(
        cure_search, "bills", lambda model, sets, *_, **__: [Bill(measured=took(0.9, 1.2)) for _ in sets]
    )
    monkeypatch.setattr(price, "contest", lambda *_, **__: pytest.fail("measured after the time was up"))
    (tried,) = search("m", slow(), effects(release(tmp_path, only_under())), scenario="latency").mitigations
    assert (tried.mitigates, tried.untestable) == (False, True)
    assert tried.note.startswith("undecided: ")


def test_a_model_that_fails_under_a_setting_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "fuser off")
    monkeypatch.setattr(
        cure_search, "bills", lambda model, sets, *_, **__: [Bill() for _ in sets if pytest.fail(str(sets))]
    )
    runner = release(tmp_path, only_under("profiling off", otherwise=Outcome.CRASH))
    (tried,) = search("m", slow(), effects(runner), scenario="latency").mitigations
    assert (tried.mitigates, tried.note) == (False, "crashes the process in start in torch 2.6.0, alone")


def test_what_fails_in_both_releases_is_searched_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old release has no answers to compare with: well is what answers at all. The twin is not searched."""
    table(monkeypatch, "fuser off", "oneDNN off")
    facts = red(status=Status.SAME_FAIL)
    facts = replace(facts, baselines={**facts.baselines, "m": OldAnswers(results=(result("m", Outcome.HANG),) * 2)})
    assert search("m", facts, effects(release(tmp_path / "twin", only_under("fuser off")))).cell is None
    found = search("m", facts, effects(release(tmp_path / "asked", only_under("fuser off"))), anyway=True)
    assert mitigating(found) == [("fuser off",)]
    assert [one.note for one in found.mitigations if not one.mitigates] == ["still hang"]
    assert not any(one.prices for one in found.mitigations)
    assert "the old release fails too" in found.price_note
    never = search("m", facts, effects(release(tmp_path / "never", only_under("AVX2 kernels"))), anyway=True)
    assert never.cell is not None
    assert mitigating(never) == []
