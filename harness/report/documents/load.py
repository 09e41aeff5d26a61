"""What both releases of a server did under one load, as a part of a document."""

import math
from collections.abc import Iterator

from harness.core.load import LoadMeasurement, LoadQuantity, LoadRow
from harness.core.measurement import limit_words, signed_percent
from harness.core.outcome import Status
from harness.core.shadow import Shadow
from harness.core.text import amount, counted
from harness.report.charts.load_chart import TONES, load_chart
from harness.report.document import DETAIL, MORE, OPEN, Cell, Charts, Fact, Figure, Part, Row, Table, facts
from harness.report.documents.causes import tone
from harness.verdict.load import FAILED, RATES, made_the_rate, unanswered

TITLE = "Under load"
NAMES = {
    "ceiling": "most answers",
    "within_slo": "rate within the limit",
    FAILED: "blocks with errors",
}


def load_parts(shadow: Shadow) -> Iterator[Part]:
    """Yield a row per quantity, what a release costs in machines, and the curve where there is one."""
    if shadow.load_failure is not None:
        failure = shadow.load_failure
        told = f"nothing was measured: the {failure.arm} server was not ready for a round: {failure.ended}"
        yield Part(title=TITLE, blocks=(Fact("", told, tone=OPEN), *facts([("its log", line) for line in failure.log])))
    elif shadow.load is not None:
        yield _part(shadow.load, shadow.load_rows)


def _part(load: LoadMeasurement, rows: tuple[LoadRow, ...]) -> Part:
    by_name = {quantity.name: quantity for quantity in load.quantities}
    table = Table(
        heads=("under load", "old", "new", "new against old", "verdict"),
        rows=tuple(_row(row, by_name.get(row.name), load) for row in rows),
        noun="quantity",
    )
    curve = load_chart(load)
    charts = Charts(draw=lambda: [_figure(load, curve)] if curve else [])
    return Part(title=TITLE, blocks=(*_facts(load), table, *([charts] if curve else [])))


def _row(row: LoadRow, quantity: LoadQuantity | None, load: LoadMeasurement) -> Row:
    if quantity is None:
        old, new = unanswered(load)
        cells = (f"{old[0]} of {old[1]}", f"{new[0]} of {new[1]}", "")
    else:
        cells = (_value(quantity, quantity.old), _value(quantity, quantity.new), _change(quantity))
    return Row(cells=(NAMES.get(row.name, row.name), *cells, Cell(_word(row, quantity, load), tone=tone(row.status))))


def _value(quantity: LoadQuantity, value: float) -> str:
    if not math.isfinite(value):
        return "no answer"
    return f"{value:,.0f}/s" if quantity.name in RATES else amount(value, "s")


def _change(quantity: LoadQuantity) -> str:
    """Return new against old with its interval; a ratio is of worse over better, so rates are turned around."""
    if quantity.ratio is None:
        return "not comparable"
    return (quantity.ratio.inverse if quantity.name in RATES else quantity.ratio).words


def _word(row: LoadRow, quantity: LoadQuantity | None, load: LoadMeasurement) -> str:
    if row.status is not Status.INCONCLUSIVE:
        worse = "more" if quantity is None else "fewer" if row.name in RATES else "slower"
        return worse if row.status is Status.FAIL else "no worse"
    if not made_the_rate(load):
        return "not judged"
    if row.varies:
        return "the old one varies"
    if quantity is not None and quantity.ratio is not None and quantity.ratio.low > 1 and quantity.fresh is not None:
        return "not confirmed"
    return f"not to {limit_words(row.limit)}" if quantity is not None else "a few"


def _facts(load: LoadMeasurement) -> Iterator[Fact]:
    arrivals = "as recorded, scaled" if load.plan.recorded else "at random"
    yield Fact("load", f"{load.rate:,.0f} requests a second, arriving {arrivals}, whatever the answers take")
    servers = f"{counted(load.rounds, 'round')} of fresh ones: old, new, and the old once more as control"
    yield Fact("servers", servers, MORE)
    machines = machines_words(load)
    if machines is not None:
        yield Fact("machines", machines)
    late = f"99 of 100 requests by less than {amount(load.late_p99_s, 's')}"
    if made_the_rate(load):
        yield Fact("sent late", late, DETAIL)
    else:
        told = f"{late}: this machine cannot make the rate beside the servers, so that nothing is judged"
        yield Fact("sent late", f"{told}; write a lower rate, or run it where nothing else does", tone=OPEN)


def machines_words(load: LoadMeasurement) -> str | None:
    """Return what the new release costs in machines at the same traffic; None where it cannot be told from none."""
    slo = load.plan.slo_s
    name = "within_slo" if slo is not None else "ceiling"
    quantity = next((item for item in load.quantities if item.name == name), None)
    if quantity is None or quantity.ratio is None:
        return None
    limit = f"with 99 of 100 requests answered within {amount(slo, 's')}" if slo is not None else "fully used"
    ratio = quantity.ratio
    if ratio.low <= 1 <= ratio.high:
        between = f"{signed_percent(ratio.low)} to {signed_percent(ratio.high)} %"
        return f"as many for the same traffic, {limit} ({between} lies within the noise)"
    return f"{ratio.words} for the same traffic, {limit}"


def _figure(load: LoadMeasurement, svg: str) -> Figure:
    note = f"{counted(load.rounds, 'round')} of fresh servers, at rates drawn in another order each time."
    return Figure(
        title="99th percentile over rate",
        svg=svg,
        note=note,
        legend=tuple((colour, arm) for arm, colour in TONES.items()),
    )
