"""Lists in the documentation hold exactly what the code has."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.core import errors
from harness.config.schema import BUDGET_DEFAULTS, DTYPES, TOP, Table
from harness.checks.outputs.tolerances import FACTORS
from harness.core.findings import SEVERITY, Severity
from harness.core.outcome import Decision, Status
from harness.core.plan import (
    CAPTURE_MODES,
    INITIALIZATION_LIMIT,
    NO_QUANTITIES,
    RUNTIMES,
    Deadlines,
    LatencyBudget,
    PolicySettings,
    Settings,
)
from harness.core.quantities import (
    COMMON,
    INITIALIZATION,
    OTHERS_BY_DEFAULT,
    QUANTITIES,
    QUANTITY_LIMITS,
    STEADY,
    Beyond,
)
from harness.serving.scenarios import CYCLES, INITIALIZATIONS, NEW_SIZES, NEW_THREADS, STAGGER_MS, UPDATES
from harness.environments.pythons import LAST_KNOWN_RELEASE, WHEELS, python_range, write_minor
from harness.core.errors import ExitCode, GateError
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.table import Kind, Row, of_kind
from harness.worker import wire
from tests.docs.pages import PROJECT

GUIDE = PROJECT / "docs" / "guide"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def first_columns(text: str) -> list[str]:
    """Return the code spans in the first column of the tables."""
    return [span for row in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE) for span in re.findall(r"`([^`]+)`", row)]


def keys(table: Table, prefix: str = "") -> Iterator[str]:
    """Return every key that may be written; a profile and a release repeat keys that stand there already."""
    for name, part in table.keys.items():
        if isinstance(part, Table) and part.keys:
            yield from keys(part, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_every_configuration_key_has_a_row_and_every_row_is_a_key() -> None:
    documented = first_columns(read(GUIDE / "configuration.md"))
    assert sorted(documented) == sorted([*keys(TOP), "serving.switches"])


def test_switches_and_numerics_of_the_configuration_page_are_the_rows_of_the_table() -> None:
    """On failure, the lines that are missing are the ones to paste into the page."""
    text = read(GUIDE / "configuration.md")
    for kind in (Kind.SWITCH, Kind.NUMERICS):
        lines = [f"| `{row.key}` | {values_in_words(row)} | {row.about} |" for row in of_kind(kind)]
        assert [line for line in text.splitlines() if line.startswith(f"| `serving.{kind}.")] == lines
    assert ", ".join(f"`{name}`" for name in MITIGATIONS) + " |" in text


def values_in_words(row: Row) -> str:
    """Return the type of a setting as the page has it."""
    if isinstance(row.values, tuple):
        return " or ".join([", ".join(f"`{name}`" for name in row.values[:-1]), f"`{row.values[-1]}`"])
    return "true or false" if row.values is bool else f"whole number >= {row.values}"


def test_every_mitigation_has_a_row_on_the_page_of_fixes() -> None:
    section = read(GUIDE / "mitigating.md").partition("\n## The settings\n")[2].partition("\n## ")[0]
    assert first_columns(section) == [*MITIGATIONS]


def test_the_defaults_of_the_configuration_page_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| [^|]* \| ([^|]*) \|", read(GUIDE / "configuration.md"), re.MULTILINE))
    settings = Settings(old="", new="")
    sections: Mapping[str, object] = {
        "deadlines": Deadlines(),
        "latency": LatencyBudget(),
        "policy": PolicySettings(),
        "": settings,
    }
    for key, default in rows.items():
        section, _, name = key.rpartition(".")
        if section not in sections or name in ("old", "new", "releases"):
            continue
        value = getattr(sections[section], name)
        written = json.dumps(value)
        assert default == (f"`{written}`" if written[0] in '"[{' else written), key


def test_the_limits_of_the_configuration_page_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| `policy\.limits\.(\w+)` \| [^|]* \| ([^|]*) \|", read(GUIDE / "configuration.md"), re.MULTILINE
    )
    defaults = {name: default for name, default in rows if name not in (STEADY, *NO_QUANTITIES)}  # these have none
    assert {name: float(default) for name, default in defaults.items()} == {
        **QUANTITY_LIMITS,
        INITIALIZATION: INITIALIZATION_LIMIT,
    }


def test_what_each_limit_does_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| ([^|]*) \| (blocks|named) \| blocks \|$", read(GUIDE / "configuration.md"), re.MULTILINE)
    written = {name: does for names, does in rows for name in names.split(", ")}
    others = {quantity.by_default for quantity in QUANTITIES.values()} | {OTHERS_BY_DEFAULT[INITIALIZATION]}
    assert others == {written.pop("all others below")}
    assert written == {name: does for name, does in OTHERS_BY_DEFAULT.items() if name != INITIALIZATION}
    weights = {STEADY: "latency", COMMON: "common_slowdown", INITIALIZATION: "initialization_time"}
    does = {Beyond.BLOCKS: Severity.FAIL, Beyond.NAMED: Severity.NAMED}
    assert {name: SEVERITY[kind] for name, kind in weights.items()} == {
        n: does[d] for n, d in OTHERS_BY_DEFAULT.items()
    }
    assert all(SEVERITY[quantity.kind] is does[quantity.by_default] for quantity in QUANTITIES.values())


def test_every_finding_about_latency_is_reported_with_its_weight() -> None:
    section = read(GUIDE / "how-verdicts-are-made.md").partition("\n## Latency\n")[2].partition("\n## ")[0]
    written = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", section, re.MULTILINE))
    words = {
        "fail": "FAIL",
        "inconclusive": "INCONCLUSIVE",
        "named": "named",
        "warn": "warning",
        "info": "PASS, reported",
    }
    kinds = {quantity.kind for quantity in QUANTITIES.values()} | {
        "memory_growth",
        "recompilation",
        "recompiles",
        "quantity_lost",
        "not_confirmed",
    }
    kinds |= {"latency", "latency_undecided", "not_measured", "common_slowdown"}
    assert written == {kind: words[SEVERITY[kind]] for kind in kinds}


def test_what_thorough_means_is_reported() -> None:
    text = read(GUIDE / "configuration.md")
    for key, value in BUDGET_DEFAULTS["thorough"].items():
        assert f"`{key}` {value}" in text


def test_every_value_that_a_key_may_hold_is_listed() -> None:
    text = read(GUIDE / "configuration.md")
    values = (*DTYPES, *MITIGATIONS, *RUNTIMES, *CAPTURE_MODES)
    assert not [name for name in values if f"`{name}`" not in text]


def test_every_initialization_is_reported_with_the_numbers_of_the_code() -> None:
    text = read(GUIDE / "initialization.md").partition("\n## Scenarios\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", text.partition("\n### ")[0], re.MULTILINE)
    assert {name: words for name, words, _ in rows} == {name: each.words for name, each in INITIALIZATIONS.items()}
    written = {name: line for name, _, line in rows}
    assert f"{STAGGER_MS} ms" in written["staggered"]
    assert f"{CYCLES} cycles" in written["reinit"]
    assert f"{UPDATES} times" in written["rolling"]
    assert f"{CYCLES} times, {NEW_THREADS} requests" in written["thread_per_request"]
    assert f"{CYCLES * NEW_SIZES} sizes" in written["growing_shapes"]
    native = " and ".join(f"`{name}`" for name, found in INITIALIZATIONS.items() if found.native_only)
    assert f"{native} need the C++ worker" in text


def test_the_pythons_of_each_release_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| ([\d.]+)(?: to ([\d.]+))? \| ([\d.]+)(?: to ([\d.]+))? \|", read(GUIDE / "environments.md"), re.M
    )
    written = {first: (first, last or first, oldest, newest or oldest) for first, last, oldest, newest in rows}
    assert list(written) == [write_minor(since) for since, _, _ in WHEELS]
    for first, last, oldest, newest in written.values():
        for release in (first, last):
            assert tuple(map(write_minor, python_range(release))) == (oldest, newest)
    assert LAST_KNOWN_RELEASE.startswith(f"{rows[-1][1] or rows[-1][0]}.")


def test_the_pythons_of_the_gate_are_those_that_its_tests_run_on() -> None:
    session = re.search(r"@nox\.session\(python=(\[.*\])\)\ndef pythons", read(PROJECT / "noxfile.py"))
    assert session is not None
    pythons = json.loads(session[1])
    assert f"tests run on {', '.join(pythons[:-1])} and {pythons[-1]}." in read(GUIDE / "environments.md")
    assert f'requires-python = ">={pythons[0]}"' in read(PROJECT / "pyproject.toml")
    job = read(PROJECT / ".github" / "workflows" / "tests.yml").partition("\n  pythons:\n")[2]
    assert re.findall(r"^ +(3\.\d+)$", job, re.M) == pythons


def test_every_exit_code_is_in_the_readme() -> None:
    told = " ".join(read(PROJECT / "README.md").partition("\nExit codes: ")[2].partition("\n\n")[0].split())
    codes = [int(code) for code in re.findall(r"(?:^|, |\. )(\d+) \w", told)]
    assert sorted(codes) == sorted(map(int, ExitCode))
    assert "125 is reserved" in told


def test_every_error_class_has_a_row_with_its_exit_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", read(GUIDE / "troubleshooting.md"), re.MULTILINE))
    classes = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, GateError)]
    assert rows == {found.__name__: str(int(found.exit_code)) for found in classes if found is not GateError}


def test_every_decision_and_status_is_explained() -> None:
    page, readme = read(GUIDE / "reading-the-report.md"), read(PROJECT / "README.md")
    assert not [item for item in Decision if f"| `{item}` |" not in readme]
    assert "README.md#what-it-says" in page
    assert not [item for item in Status if f"| {item} |" not in page]


def test_every_tolerance_has_a_row() -> None:
    rows = re.findall(r"^\| ([\w, ]+) \| ([^|]+) \|", read(GUIDE / "how-verdicts-are-made.md"), re.MULTILINE)
    factors = {name: factor for names, factor in rows for name in names.split(", ")}
    for dtype, factor in FACTORS.items():
        written = [part.partition("2^") for part in factors[dtype].split(" x ")]
        assert math.prod(2.0 ** int(power) if mark else float(plain) for plain, mark, power in written) == factor, dtype


def test_every_verb_of_a_worker_and_every_file_of_a_probe_is_described() -> None:
    assert not [verb for verb in wire.VERBS if f"| `{verb}` |" not in read(PROJECT / "docs" / "formats" / "wire.md")]
    page = read(PROJECT / "docs" / "formats" / "run-directory.md")
    names = (wire.REQUEST, wire.EVENTS, wire.STACKS, wire.STDOUT, wire.STDERR, wire.TENSORS_INDEX, wire.TENSORS_BIN)
    assert not [name for name in names if name not in page]
