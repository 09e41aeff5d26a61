"""Cures as a reader sees them: what each costs, what does not help, and what to paste."""

from collections.abc import Mapping
from dataclasses import replace

from harness.core.diagnosis import Cure, CureAnswer, Curing, Price, Rewritten
from harness.core.measurement import RatioEstimate
from harness.report.text.cures import cure_lines, render_curing
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.paste_lines import lines_to_paste


def ratio(value: float, spread: float = 0.01) -> RatioEstimate:
    return RatioEstimate(ratio=value, low=value - spread, high=value + spread, pairs=3, detectable=1.02)


def cured(*names: str, prices: Mapping[str, tuple[float, float | None]] | None = None, note: str = "") -> Cure:
    told = prices if prices is not None else {"steady": (1.1, 0.5), "request": (1.25, None), "peak_rss": (1.001, 12.0)}
    return Cure(
        names=names,
        cures=True,
        repeats=5,
        prices=tuple(
            Price(quantity=name, to_old=ratio(old), to_new=None if new is None else ratio(new))
            for name, (old, new) in told.items()
        ),
        paste=lines_to_paste([MITIGATIONS[name] for name in names]),
        note=note,
    )


IN_VAIN = (
    Cure(names=("freeze",), cures=False, note="still hang"),
    Cure(names=("oneDNN off",), cures=False, note="still hang"),
    Cure(names=("inference mode",), cures=False, note="breaks n", breaks=("n",)),
    Cure(names=("fuser off",), cures=False, untestable=True, note="torch 2.6.0 has no such switch"),
)


def curing(*cures: Cure, answer: CureAnswer = CureAnswer.CURED, ended: str = "") -> Curing:
    return Curing(
        model="m",
        old="torch 2.1.2",
        new="torch 2.6.0",
        scenario="alone",
        words="alone",
        answer=answer,
        symptom=("hangs in call 1 of example",),
        cures=cures,
        ended=ended,
    )


def test_a_path_is_never_broken() -> None:
    path = (
        "/a/rather/long/folder/of/reports/2026-11-21T21-51-13-half_on_accelerator-mitigate/reproducers/1-x/reproduce.py"
    )
    text = render_curing(replace(curing(), notes=(f"reproducer {path}, in torch 2.6.0",)), directory="x", width=80)
    assert path in text


def test_short_form_tells_the_price_of_what_cures_and_why_the_rest_does_not() -> None:
    assert list(cure_lines((cured("profiling off", note="in place"), *IN_VAIN))) == [
        (
            "cure",
            "profiling off: latency +10.0 % [+9.0, +11.0], throughput -20.0 % [-20.6, -19.4], memory +0.1 % [-0.9, +1.1] "
            "(in place)",
        ),
        ("no cure", "freeze, oneDNN off: still hang"),
        ("no cure", "inference mode: breaks n"),
        ("untestable", "fuser off: torch 2.6.0 has no such switch"),
    ]


def test_long_form_has_costs_with_intervals_and_lines_to_paste() -> None:
    text = render_curing(curing(cured("profiling off"), *IN_VAIN), directory="reports/x", width=80)
    lines = text.splitlines()
    assert lines[0] == "m, torch 2.1.2 -> torch 2.6.0, alone: 1 cure"
    assert lines[lines.index("1 profiling off, 5 clean runs") + 1 :][:5] == [
        "  cost        to old                  to new",
        "  ----------  ----------------------  ----------------------",
        "  latency     +10.0 % [+9.0, +11.0]   -50.0 % [-51.0, -49.0]",
        "  throughput  -20.0 % [-20.6, -19.4]  -",
        "  memory      +0.1 % [-0.9, +1.1]     x12.0 [12.0, 12.0]",
    ]
    assert "no cure     freeze, oneDNN off: still hang" in lines
    assert "untestable  fuser off: torch 2.6.0 has no such switch" in lines
    assert "1 profiling off, 5 clean runs" in lines
    assert "      torch._C._jit_set_profiling_mode(False)" in lines
    assert '        key: "ENABLE_JIT_PROFILING"' in lines
    assert "  no way known: environment" in lines
    assert lines[-1] == "written     reports/x/mitigate.json"
    assert all(len(line) <= 80 for line in lines)


def test_a_rewrite_is_a_cure_like_any_other() -> None:
    rewrite = Rewritten(rule="sinh", what="sinh as expm1", artifact="rewrites/m.pt", cures=True, repeats=5)
    found = replace(curing(*IN_VAIN), rewrites=(replace(rewrite, steady=ratio(0.2)),))
    lines = render_curing(found, directory="reports/x", width=80).splitlines()
    assert lines[0] == "m, torch 2.1.2 -> torch 2.6.0, alone: 1 cure"
    assert "rewrite     sinh: cures: sinh as expm1" in lines
    assert "patched     reports/x/rewrites/m.pt" in lines
    assert "            against torch 2.1.2" in lines
    elsewhere = replace(found, rewrites=(replace(rewrite, artifact="/run/m.pt"),))
    assert "patched     /run/m.pt" in render_curing(elsewhere, directory="reports/x")


def test_every_combination_fits_in_eighty_columns() -> None:
    names = list(MITIGATIONS)
    every = [cured(name, other) for name, other in zip(names, names[1:], strict=False)]
    text = render_curing(curing(*every), directory="reports/x", width=80)
    assert not [line for line in text.splitlines() if len(line) > 80]
    assert f"{len(every)} {every[-1].names[0]}" in text
    assert "+ plain kernels" in text


def test_where_there_is_an_environment_every_server_has_a_way() -> None:
    text = render_curing(curing(cured("fuser falls back")), directory="x")
    assert "      PYTORCH_TENSOREXPR_FALLBACK=2" in text
    assert "no way known" not in text


def test_without_prices_or_cures_it_says_so() -> None:
    text = render_curing(curing(cured("freeze", prices={})), directory="x")
    assert "No price was measured." in text
    text = render_curing(curing(*IN_VAIN, answer=CureAnswer.NOT_FOUND, ended="5 of 9 were not asked"), directory="x")
    assert text.startswith("m, torch 2.1.2 -> torch 2.6.0, alone: no cure found\n")
    assert "ended early 5 of 9 were not asked" in text
    text = render_curing(curing(answer=CureAnswer.NOTHING), directory="x")
    assert text.startswith("m, torch 2.1.2 -> torch 2.6.0, alone: nothing to cure\n")


def test_what_a_model_says_cannot_break_the_page() -> None:
    bad = Cure(names=("freeze",), cures=False, note="line\none\x1b[31m" + "word " * 60)
    lines = render_curing(curing(bad, answer=CureAnswer.NOT_FOUND), directory="x", width=80).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in "".join(lines)
