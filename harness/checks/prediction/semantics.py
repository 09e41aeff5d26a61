"""Operators that load in both releases and answer differently: a curated table, each entry with its source.

The entries are the documented breaks in ``fixtures/breaks``, which are run and confirmed for the two releases of each
entry, and random numbers, which ``tests/integration/run/draws.py`` draws; the change lies somewhere after the first and
no later than the second. It is no complete list.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from harness.core.findings import NAN_APPEARED, NAN_GONE
from harness.core.verdict import Finding

PULL = "https://github.com/pytorch/pytorch/pull/"
ISSUE = "https://github.com/pytorch/pytorch/issues/"


@dataclass(frozen=True, slots=True)
class SemanticChange:
    """An operator whose answer changed after release ``after`` and not later than ``by``.

    ``shows_as`` are the kinds of findings (``harness/core/findings.py``) that it can lead to. ``nan``: what the newer
    release does of NaN, ``NAN_APPEARED`` or ``NAN_GONE``, where that is all. ``drawn``: it is about
    random numbers, which not every call draws, as in a dropout at rest: only models of which a call drew are concerned.
    """

    operator: str
    after: str
    by: str
    what: str
    source: str
    shows_as: tuple[str, ...]
    nan: str = ""
    drawn: bool = False


NUMBERS = ("values", "late_divergence", "error_limit")
DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
BERNOULLI = (
    *("bernoulli", "bernoulli_", *DROPOUTS, *(f"{name}_" for name in DROPOUTS), "native_dropout"),
    *("scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"),
)
"""What draws from the distribution of Bernoulli with a number as its probability; a tensor of them is as before."""
CHANGES = (
    SemanticChange(
        "aten::adaptive_avg_pool2d",
        "2.1.2",
        "2.6.0",
        "integer tensors on the CPU are refused at the call by the newer one",
        PULL + "110316",
        ("call_error", "concurrent_error"),
    ),
    SemanticChange(
        "aten::upsample_bicubic2d",
        "2.1.2",
        "2.6.0",
        "uint8 without antialiasing gives other values along the border",
        PULL + "118389",
        NUMBERS,
    ),
    SemanticChange(
        "aten::scaled_dot_product_attention",
        "2.1.2",
        "2.6.0",
        "a fully masked row gives 0 in the newer one, NaN in the older",
        PULL + "131060",
        ("nan_placement",),
        nan=NAN_GONE,
    ),
    SemanticChange(
        "aten::softshrink",
        "2.1.2",
        "2.6.0",
        "the newer one keeps NaN, the older gives 0",
        PULL + "138421",
        ("nan_placement",),
        nan=NAN_APPEARED,
    ),
    *(
        SemanticChange(
            f"aten::{name}",
            "2.6.0",
            "2.7.0",
            "the CPU draws another random stream under one seed",
            PULL + "146174",
            NUMBERS,
            drawn=name not in ("multinomial", "exponential_"),
        )
        for name in ("multinomial", "exponential_", *BERNOULLI)
    ),
    *(
        SemanticChange(
            f"aten::{name}",
            "2.6.0",
            "2.7.0",
            "ranges of 2^28 to 2^32 take 64 random bits a number on the CPU, where they took 32",
            ISSUE + "148175",
            NUMBERS,
            drawn=True,
        )
        for name in ("randint", "randint_like", "random_")
    ),
    *(
        SemanticChange(
            f"aten::{name}",
            "2.11.0",
            "2.15.0",
            "float16 and bfloat16 are drawn as float32 on the CPU and then rounded",
            ISSUE + "166853",
            NUMBERS,
            drawn=True,
        )
        for name in ("rand", "rand_like", "uniform", "uniform_", "randn", "randn_like", "normal", "normal_")
    ),
    SemanticChange(
        "aten::arange",
        "2.6.0",
        "2.15.0",
        "dtype int64 with a fractional end may give one element more in the newer one",
        PULL + "185812",
        ("structure",),
    ),
)


def names_operator(text: str, operator: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(operator.rpartition('::')[2])}(?!\w)", text) is not None


def can_show(change: SemanticChange, finding: Finding, old: str, new: str) -> bool:
    """Whether an operator's change can be what a finding shows; NaN that appeared is not of one that removes NaN."""
    if finding.kind not in change.shows_as:
        return False
    way = change.nan
    if way and _version(old) > _version(new):
        way = NAN_GONE if way == NAN_APPEARED else NAN_APPEARED
    return finding.detail.get(way, "") != "0"


def _version(release: str) -> Version:
    return Version(Version(release).public)


def changes_between(old: str, new: str) -> Iterator[tuple[SemanticChange, bool]]:
    """Yield changes between two releases, in either order, and whether surely so; none for an unreadable version."""
    try:
        low, high = sorted((_version(old), _version(new)))
    except InvalidVersion:
        return
    for change in CHANGES:
        after, by = Version(change.after), Version(change.by)
        if low < by and high > after:
            yield change, low <= after and high >= by
