"""Data becomes words here, at the very end: findings, numbers and enums as a reader sees them.

Nothing here escapes for a format; ``visible``, of the domain, only makes sure that a text cannot steer a terminal.
"""

import math
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.core.archive import Reach
from harness.core.errors import ExitCode
from harness.core.measurement import FACTORS_FROM, limit_words, signed_percent
from harness.core.outcome import Decision, Outcome, Status
from harness.core.prediction import StaticFinding
from harness.core.text import joined, prose
from harness.core.verdict import Beyond, Finding, Judgement
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.decide import GREEN

if TYPE_CHECKING:
    from harness.core.fleet import FleetReport

NOT_MEASURED = "-"
NO_REASON = "no reason was recorded"

_MINUTE_S, _HOUR_S = 60, 3600
_ROUNDS_TO_ONE, _FACTOR_LIMIT = 0.9995, 999.5
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))

# The order of rows and cells: what can block a run first. XPASS does, until its waiver is removed.
STATUS_ORDER = (
    Status.FAIL,
    Status.XPASS,
    Status.INCONCLUSIVE,
    Status.SAME_FAIL,
    Status.UNSUPPORTED,
    Status.XFAIL,
    Status.PASS,
)

_OUTCOME_WORDS = {
    Outcome.COMPLETED: "ok",
    Outcome.EXPORT_ERROR: "error",
    Outcome.LOAD_ERROR: "error",
    Outcome.RUNTIME_ERROR: "error",
    Outcome.OUT_OF_MEMORY: "memory",
    Outcome.CRASH: "crash",
    Outcome.HANG: "hang",
    Outcome.STARVED: "starved",
    Outcome.UNSUPPORTED: "n/a",
    Outcome.ENV_UNAVAILABLE: "no env",
    Outcome.PROTOCOL_ERROR: "garbled",
    Outcome.NOT_RUN: NOT_MEASURED,
}

REACHES = {
    Reach.STRAIGHT: "",
    Reach.BRANCH: "in a branch",
    Reach.UNCALLED: "in code that no method calls; loading compiles it all the same",
}
_SCENARIO_WORDS = {
    "alone": "load and calls",
    "latency": "latency",
    **{name: scenario.words for name, scenario in INITIALIZATIONS.items()},
}

_EXIT_WORDS = {
    ExitCode.COMPATIBLE: "compatible",
    ExitCode.INCOMPATIBLE: "incompatible",
    ExitCode.CONFIGURATION: "the configuration is wrong",
    ExitCode.ENVIRONMENT: "an environment could not be provisioned",
    ExitCode.INCONCLUSIVE: "not decided, so not green",
    ExitCode.INTERNAL: "a bug of the gate itself",
    ExitCode.UNTESTABLE: "untestable",
    ExitCode.INTERRUPTED: "interrupted",
}


def outcome_word(outcome: Outcome | None) -> str:
    """Return at most seven characters for what happened; ``-`` for what was not measured."""
    return NOT_MEASURED if outcome is None else _OUTCOME_WORDS[outcome]


def scenario_words(scenario: str) -> str:
    """Return the stage a reader knows, e.g. ``"concurrent init"``; an unknown scenario as it is."""
    return _SCENARIO_WORDS.get(scenario, scenario)


def exit_words(code: int) -> str:
    """Return what an exit code means."""
    return _EXIT_WORDS[ExitCode(code)] if code in ExitCode.__members__.values() else "unknown"


def shorten(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` characters: head, ``...``, tail. ``limit`` is at least 5.

    Names that differ differ at their end as often as at their beginning, so both are kept.
    """
    if len(text) <= limit:
        return text
    head = (limit - 2) // 2
    tail = limit - 3 - head
    return f"{text[:head]}...{text[-tail:]}"


def path_in_run(directory: str, path: str) -> str:
    """Return a path as a reader would type it; that of another run lies beside this one's folder."""
    return path if path.startswith("/") else posixpath.normpath(f"{directory}/{path}")


def ending(path: str, room: int) -> str:
    """Return a path in at most ``room`` characters, more than 3: its end says which file it is."""
    return path if len(path) <= room else f"...{path[3 - room :]}"


def _three_digits(value: float) -> str:
    """Return ``value`` >= 0 with about three significant digits and no exponent."""
    for decimals, below in ((2, 9.995), (1, 99.95)):
        if value < below:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def _time_unit(value_s: float) -> tuple[float, str]:
    """Return the factor from seconds and the unit's name."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value_s * factor >= _ROUNDS_TO_ONE:
            return factor, unit
    return 1e6, "us"


def seconds(value_s: float) -> str:
    """Return a duration with its unit: ``118 ms``, ``1.24 s``, ``2 min 05 s``, ``1 h 02 min``."""
    if not math.isfinite(value_s):
        return str(value_s)
    whole = round(value_s)
    if whole >= _HOUR_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    if whole >= _MINUTE_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if value_s == 0:
        return "0 s"
    factor, unit = _time_unit(abs(value_s))
    sign = "-" if value_s < 0 else ""
    return f"{sign}{_three_digits(abs(value_s) * factor)} {unit}"


def seconds_pair(old_s: float, new_s: float) -> str:
    """Return old and new in one unit, e.g. ``118 -> 131 ms``."""
    if not (math.isfinite(old_s) and math.isfinite(new_s)):
        return f"{seconds(old_s)} -> {seconds(new_s)}"
    factor, unit = _time_unit(max(old_s, new_s))
    return f"{_three_digits(old_s * factor)} -> {_three_digits(new_s * factor)} {unit}"


def size(n_bytes: float) -> str:
    """Return a size >= 0 with its unit, in powers of 1024: ``812 KiB``, ``1.24 GiB``."""
    if not math.isfinite(n_bytes):
        return str(n_bytes)
    factor, unit = next(pair for pair in _SIZES if n_bytes >= _ROUNDS_TO_ONE * pair[0] or pair[0] == 1)
    return f"{n_bytes:.0f} B" if factor == 1 else f"{_three_digits(n_bytes / factor)} {unit}"


def growth(n_bytes: float) -> str:
    """Return a change of size with its sign: ``+1.20 MiB``, ``-34.0 KiB``, ``+0 B``."""
    return f"{'-' if n_bytes < 0 else '+'}{size(abs(n_bytes))}"


def times(ratio: float) -> str:
    """Return a ratio new/old as a factor in at most six characters: ``x1.11``, ``x12.3``, ``x>999``."""
    if math.isnan(ratio):
        return "nan"
    return f"x{_three_digits(ratio)}" if ratio < _FACTOR_LIMIT else "x>999"


def percent(ratio: float) -> str:
    """Return a ratio as a change in at most seven characters: ``+2.1 %``; from x10 on as a factor: ``x12.3``."""
    return times(ratio) if math.isnan(ratio) or ratio >= FACTORS_FROM else f"{signed_percent(ratio)} %"


def beyond_words(beyond: Beyond | None, *, brief: bool = False) -> str:
    """Return a value and its limit: ``+28.3 % where +5 % is allowed``, ``off by 0.31 where 3e-05 is allowed``.

    ``brief``: ``+28.3 % (limit +5 %)``; ``no limit`` where there is none to exceed.
    """
    if beyond is None:
        return "no limit"
    value = percent(beyond.value) if beyond.is_ratio else f"{beyond.value:.2g}"
    limit = limit_words(beyond.allowed) if beyond.is_ratio else f"{beyond.allowed:.2g}"
    if brief:
        return f"{value} (limit {limit})"
    return f"{'' if beyond.is_ratio else 'off by '}{value} where {limit} is allowed"


def phrase(finding: Finding) -> str:
    """Return a finding on one line: kind, message, where, and the rule that decided."""
    place = finding.where if finding.where not in finding.message else ""
    context = joined(place, f"rule: {finding.rule}" if finding.rule else "")
    return f"{finding.kind}: {joined(finding.message, finding.advice)}" + (f" [{context}]" if context else "")


def phrase_static(finding: StaticFinding) -> str:
    """Return what reading found on one line: what, where in the archive's code, how it is reached, its source."""
    return "; ".join([f"{finding.subject}: {finding.text}", *_where(finding), *filter(None, [finding.source])])


def _where(finding: StaticFinding) -> Iterator[str]:
    if finding.place is not None:
        calls = f", {finding.count} calls" if finding.count > 1 else ""
        reach = REACHES[finding.reach] if finding.reach is not None else ""
        place = f"at {finding.place.member}:{finding.place.line} in {finding.place.function}{calls}"
        yield f"{place}, {reach.replace(';', ',')}" if reach else place


def but_of(judged: "Judgement | FleetReport") -> str:
    """Return the same of a judgement, or of the answer over a fleet."""
    if judged.decision not in (*GREEN, Decision.CELL_OK) or not judged.exceeded:
        return ""
    more = len(judged.exceeded) - 1
    return f"but {prose(judged.exceeded[0])}{f' (and {more} more)' if more else ''}"
