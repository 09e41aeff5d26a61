import pytest

from harness.core.load import LoadBlock, LoadKind, LoadMeasurement, LoadPlan, LoadQuantity
from harness.core.measurement import CONTROL, NEW, OLD, RatioEstimate
from harness.core.outcome import Status
from harness.verdict.load import failed_status, judged, made_the_rate, suspects


def interval(low: float, ratio: float, high: float) -> RatioEstimate:
    return RatioEstimate(ratio=ratio, low=low, high=high, pairs=6, detectable=high / ratio)


SAME, SLOWER, WIDE = interval(0.98, 1.0, 1.02), interval(1.04, 1.1, 1.17), interval(0.8, 1.1, 1.5)


def quantity(
    ratio: RatioEstimate | None, *, control: RatioEstimate | None = SAME, fresh: RatioEstimate | None = None
) -> LoadQuantity:
    return LoadQuantity(name="p99", old=0.01, new=0.011, ratio=ratio, control=control, fresh=fresh)


def measured(*quantities: LoadQuantity, late: float = 0.0, failing: dict[str, int] | None = None) -> LoadMeasurement:
    blocks = []
    for arm in (OLD, CONTROL, NEW):
        for place in range(18):
            lost = place < (failing or {}).get(arm, 0)
            blocks.append(
                LoadBlock(
                    arm=arm, round=place // 3, kind=LoadKind.STEADY, rate=100, sent=200, answered=200 - lost, refused={},
                    broken=int(lost), unanswered=0, unsent=0, wall_s=2.0, late_p99_s=late,
                )
            )  # fmt: skip
    return LoadMeasurement(
        plan=LoadPlan(), rate=100, rounds=6, quantities=quantities, blocks=tuple(blocks), late_p99_s=late
    )


@pytest.mark.parametrize(
    ("measured_quantity", "status"),
    [
        (quantity(SAME), Status.PASS),
        (quantity(WIDE), Status.INCONCLUSIVE),
        (quantity(None), Status.INCONCLUSIVE),
        (quantity(SLOWER, fresh=SLOWER), Status.FAIL),
        (quantity(SLOWER, fresh=SAME), Status.INCONCLUSIVE),
        (quantity(SLOWER), Status.INCONCLUSIVE),
        (quantity(SLOWER, fresh=SLOWER, control=SLOWER), Status.INCONCLUSIVE),
        (quantity(SAME, control=interval(0.8, 0.9, 0.95)), Status.INCONCLUSIVE),
        (quantity(interval(1.01, 1.02, 1.03)), Status.PASS),
    ],
)
def test_a_quantity_fails_only_if_fresh_servers_show_it_too_and_the_old_release_agrees_with_itself(
    measured_quantity: LoadQuantity, status: Status
) -> None:
    assert judged(measured_quantity, 1.05) is status


def test_what_seems_worse_is_to_be_confirmed() -> None:
    assert suspects(measured(quantity(SLOWER))) == ("p99",)
    assert suspects(measured(quantity(WIDE), quantity(SAME))) == ()


def test_a_generator_that_is_late_has_not_made_the_rate() -> None:
    assert made_the_rate(measured(late=0.9e-3))
    assert not made_the_rate(measured(late=2e-3))


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        ({}, Status.PASS),
        ({OLD: 5}, Status.PASS),
        ({NEW: 1}, Status.INCONCLUSIVE),
        ({NEW: 18}, Status.FAIL),
        ({NEW: 9, OLD: 9, CONTROL: 9}, Status.INCONCLUSIVE),
    ],
)
def test_requests_without_an_answer_count_by_blocks(failing: dict[str, int], status: Status) -> None:
    assert failed_status(measured(failing=failing)) is status
