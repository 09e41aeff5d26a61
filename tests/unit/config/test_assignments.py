"""``--set KEY=VALUE``."""

from typing import Any

import pytest

from harness.config.assignments import assigned, merged
from harness.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("latency.limit=0.05", {"latency": {"limit": 0.05}}),
        ("latency.looks = [3, 5]", {"latency": {"looks": [3, 5]}}),
        ("serving.numerics.quantized_engine=fbgemm", {"serving": {"numerics": {"quantized_engine": "fbgemm"}}}),
        ('serving.numerics.quantized_engine="fbgemm"', {"serving": {"numerics": {"quantized_engine": "fbgemm"}}}),
        ("serving.numerics.cudnn_tf32=false", {"serving": {"numerics": {"cudnn_tf32": False}}}),
        ("old=2.6.0", {"old": "2.6.0"}),
        ("serving.env.FLAGS=a=b", {"serving": {"env": {"FLAGS": "a=b"}}}),
        ('environments."2.6.0".python="3.11"', {"environments": {"2.6.0": {"python": "3.11"}}}),
    ],
)
def test_assignment_is_a_line_of_toml_or_plain_text(text: str, table: dict[str, Any]) -> None:
    assert assigned([text]) == table


def test_later_assignment_wins_and_neighbours_stay() -> None:
    assert assigned(["latency.limit=0.05", "latency.blocks=9", "latency.limit=0.07"]) == {
        "latency": {"limit": 0.07, "blocks": 9}
    }
    assert merged({"latency": {"limit": 0.03}, "old": "a"}, {"latency": {"blocks": 9}}) == {
        "latency": {"limit": 0.03, "blocks": 9},
        "old": "a",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency.limit", "--set: expected KEY=VALUE"),
        ("=3", "--set: expected KEY=VALUE"),
        ("a b=3", "--set: expected KEY=VALUE"),
        ("latency.limits=3", "--set.latency.limits: unknown key"),
        ("latency.limit=-1", "--set.latency.limit: expected a limit such as"),
        ("latency=3", "--set.latency: expected a table"),
    ],
)
def test_what_is_no_key_or_no_value_of_it_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("[", r"\[")):
        assigned([text])
