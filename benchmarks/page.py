"""The page of 500 models, and that of a fleet of 5,000 artifacts: how large, how soon made, how soon it answers a reader.

Bars of 500 models: below 5 MB, made within 3 s, and within 1 s it is opened, sorted and searched. Bars of a fleet: opened
within 1 s, and sorted and searched within 0.2 s each, in Chromium. CPU time stands beside each time: on
a machine that does other things it says what an idle one takes.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, sync_playwright

from harness.core.report import RunReport
from tests.integration.conftest import CHROMIUM
from tests.unit.builders.fleets import of_teams
from tests.unit.builders.pages import crowded, fleet
from tests.unit.builders.rendered import render_fleet_html, render_html

MODELS, ROUNDS = 500, 5
MOST_BYTES, BUILT_S, READY_S = 5_000_000, 3.0, 1.0
FLEETS: dict[str, Callable[[], RunReport]] = {
    "one red": lambda: fleet(MODELS, red_every=MODELS),
    "every tenth red": lambda: fleet(MODELS),
    "every second red": lambda: fleet(MODELS, red_every=2),
    "all red": lambda: fleet(MODELS, red_every=1),
    "all red in all stages, long texts": lambda: crowded(MODELS),
}
# Resolves when what was done to the page is on the screen.
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SORT = """() => {
    document.getElementById("models").scrollIntoView({ behavior: "instant" });
    document.querySelector("#table thead th:nth-last-child(2) button").click();
}"""
SEARCH = """() => {
    const search = document.getElementById("search");
    search.value = "model_04";
    search.dispatchEvent(new Event("input"));
}"""
ARTIFACTS, OPEN_S, ANSWER_S = 5000, 1.0, 0.2
FLEET_SORT = """() => {
    document.getElementById("artifacts").scrollIntoView({ behavior: "instant" });
    document.querySelector("#window [role=columnheader] button").click();
}"""
FLEET_SHOWN = ("() => document.getElementById('shown').textContent", f"100 of {ARTIFACTS} shown")
SHOWN = "() => document.querySelectorAll('#table tbody tr:not([hidden])').length"

Spent = tuple[float, float]
"""Seconds that passed, and of CPU."""


def main() -> int:
    """Print a line per fleet; return 0 if every bar is met."""
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        print(f"no {', '.join(CHROMIUM)} here: apt-get install -y --no-install-recommends chromium")
        return 1
    print(f"{f'{MODELS} models; s (of CPU)':34} {'MB':>5}" + "".join(f"{name:>14}" for name in ("built", *ASKED)))
    with sync_playwright() as driver, tempfile.TemporaryDirectory(prefix="gate-page-") as folder:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        met = [_measure(browser, name, make(), Path(folder) / "report.html") for name, make in FLEETS.items()]
        met.append(_measure_fleet(browser, Path(folder) / "fleet.html"))
        print(f"medians of {ROUNDS}; Chromium {browser.version}; load of the machine {os.getloadavg()[0]:.1f}")
        browser.close()
    return int(not all(met))


def _measure(browser: Browser, name: str, report: RunReport, file: Path) -> bool:
    """Print the line of one fleet and return whether it is within the bars."""
    built: list[Spent] = []
    used: list[list[Spent]] = []
    for _ in range(ROUNDS):
        begin = (time.perf_counter(), time.process_time())
        file.write_text(render_html(report))
        built.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    for _ in range(ROUNDS):
        used.append(_use(browser, file.as_uri()))
    times = [_median(built), *(_median(step) for step in zip(*used, strict=True))]
    size, ready_s = file.stat().st_size, sum(passed for passed, _ in times[1:])
    met = size < MOST_BYTES and times[0][0] < BUILT_S and ready_s < READY_S
    row = "".join(f"{f'{passed:.2f} ({cpu:.2f})':>14}" for passed, cpu in times)
    print(f"{name:34} {size / 1e6:5.2f}{row}  {'met' if met else 'MISSED'}", flush=True)
    return met


ASKED: dict[str, Callable[..., object]] = {
    "opened": lambda page, address: page.goto(address, wait_until="domcontentloaded"),
    "sorted": lambda page, address: page.evaluate(SORT),
    "searched": lambda page, address: page.evaluate(SEARCH),
}
"""What a reader does first; each ends when it is on the screen."""


FLEET_STEPS: dict[str, Callable[..., object]] = {
    "opened": lambda page, address: page.goto(address, wait_until="domcontentloaded"),
    "sorted": lambda page, address: page.evaluate(FLEET_SORT),
    "searched": lambda page, address: page.evaluate(SEARCH),
}


def _use(browser: Browser, address: str) -> list[Spent]:
    return _steps_of(browser, address, ASKED, (SHOWN, MODELS // 50))


def _steps_of(
    browser: Browser, address: str, steps: Mapping[str, Callable[..., object]], found: tuple[str, object]
) -> list[Spent]:
    """Return what each step took, of which the last is a search that has ``found`` (script, its answer)."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    spent = []
    for step in steps.values():
        begin = (time.perf_counter(), _cpu_s(session))
        step(page, address)
        page.evaluate(DRAWN)
        spent.append((time.perf_counter() - begin[0], _cpu_s(session) - begin[1]))
    if page.evaluate(found[0]) != found[1]:
        raise RuntimeError("the search did not find what it should")
    page.close()
    return spent


def _measure_fleet(browser: Browser, file: Path) -> bool:
    """Print the line of a fleet and return whether it is within its bars."""
    answer = of_teams(ARTIFACTS)
    begin = (time.perf_counter(), time.process_time())
    file.write_text(render_fleet_html(answer))
    built = (time.perf_counter() - begin[0], time.process_time() - begin[1])
    used = [_steps_of(browser, file.as_uri(), FLEET_STEPS, FLEET_SHOWN) for _ in range(ROUNDS)]
    times = [_median(step) for step in zip(*used, strict=True)]
    met = all(passed < bar for (passed, _), bar in zip(times, (OPEN_S, ANSWER_S, ANSWER_S), strict=True))
    row = "".join(f"{f'{passed:.2f} ({cpu:.2f})':>14}" for passed, cpu in (built, *times))
    name = f"a fleet of {ARTIFACTS} artifacts"
    print(f"{name:34} {file.stat().st_size / 1e6:5.2f}{row}  {'met' if met else 'MISSED'}", flush=True)
    return met


def _cpu_s(session: CDPSession) -> float:
    """Return the CPU time of the page's own thread so far."""
    metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def _median(spent: list[Spent] | tuple[Spent, ...]) -> Spent:
    return statistics.median(one for one, _ in spent), statistics.median(cpu for _, cpu in spent)
