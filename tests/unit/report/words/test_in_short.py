"""What an upgrade costs on average, and what nobody has tested, in a line each."""

import math
from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.report.words.in_short import cost_in_short, mean_of_timed, untested_in_short
from tests.unit.builders.reports import blocked, ratio, upgrade_ok


def timed(*ratios: float | None) -> RunReport:
    report = upgrade_ok()
    measured = report.models[0].latency
    assert measured is not None
    return replace(
        report,
        models=tuple(
            replace(
                report.models[0],
                model=f"m{at}",
                latency=replace(measured, steady=ratio(value), own=None) if value is not None else None,
            )
            for at, value in enumerate(ratios)
        ),
    )


def test_the_mean_is_of_all_timed_models_with_its_interval() -> None:
    mean, models = mean_of_timed(timed(1.1, 1.0, None))
    assert mean is not None and models == 2
    assert mean.ratio == pytest.approx(math.sqrt(1.1))
    assert mean.low == pytest.approx(math.sqrt(ratio(1.1).low * ratio(1.0).low))
    assert mean_of_timed(timed(None)) == (None, 0)


def test_the_cost_has_the_price_of_each_fix() -> None:
    words = cost_in_short(blocked())
    assert words.startswith(
        "a call +4.1 % [+2.6, +5.5], mean of 3 timed models before any fix; softmax_by_parts +0.4 % [-0.8, +1.6]"
    )
    assert words.endswith("; machines: not known without your traffic")
    assert cost_in_short(timed(None)).startswith("not timed; ")


def test_what_was_not_tested_is_named() -> None:
    report = upgrade_ok()
    open_ = replace(report.judgement.rows[0], status=Status.INCONCLUSIVE)
    elsewhere = replace(open_, model="net", status=Status.UNSUPPORTED)
    judgement = replace(
        report.judgement, rows=(open_, *report.judgement.rows[1:], elsewhere), left_out="timing (--latency off)"
    )
    models = (replace(report.models[0], guessed="forward(x)"), *report.models[1:])
    words = untested_in_short(replace(report, rollback=None, judgement=judgement, models=models))
    name = report.models[0].model
    assert (
        words.startswith("GPU; rollback; scenarios ")
        and f"; timing (--latency off); own requests of {name} (gue" in words
    )
    assert words.endswith(f"; net (unsupported here); {open_.model} (undecided)")
    on_gpu = untested_in_short(replace(report, device="cuda"))
    assert not any(word in on_gpu for word in ("GPU", "undecided", "unsupported"))
    assert untested_in_short(replace(report, judgement=replace(report.judgement, of_cell=True))) == ""
