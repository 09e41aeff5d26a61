import json
from collections.abc import Iterator

import pytest

from harness.artifacts.traffic_sample import described, sample
from harness.core.traffic import TrafficRequest


def tensor(line: int, shape: list[int], data: list[float], *, path: str = "/v2/models/a/infer") -> TrafficRequest:
    body = {"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": data}]}
    return TrafficRequest(path=path, body=json.dumps(body).encode(), line=line)


def production() -> Iterator[TrafficRequest]:
    """2,000 requests of one shape; in them a rare shape, a rare endpoint, and the extremes of the values."""
    for line in range(2000):
        data = [0.5, 1.0 + line % 7 / 10]
        yield {
            137: tensor(137, [1, 3], [0.5, 0.5, 0.5]),
            501: tensor(501, [1, 2], [0.5, 1e6]),
            777: tensor(777, [1, 2], [-40.0, 1.0]),
            1999: TrafficRequest(method="GET", path="/v2/models/a", line=1999),
        }.get(line, tensor(line, [1, 2], data))


def test_what_is_rare_or_extreme_is_chosen_and_the_rest_is_drawn() -> None:
    chosen = sample(production(), 20)
    assert {137, 501, 777, 1999} < set(chosen.lines)
    assert list(chosen.lines) == sorted(chosen.lines)
    assert (len(chosen.lines), chosen.of) == (20, 2000)
    assert chosen.chosen_kinds == chosen.kinds
    assert sample(production(), 20, seed=1).lines != chosen.lines


def test_few_requests_are_all_chosen_and_too_small_a_sample_takes_frequent_kinds() -> None:
    assert sample([tensor(line, [1, 2], [0.0, 1.0]) for line in range(5)], 20).lines == (0, 1, 2, 3, 4)
    one = sample(production(), 1)
    assert one.lines == (0,)
    assert one.chosen_kinds < one.kinds


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (tensor(0, [1, 2], [0.1, 0.2]), tensor(1, [1, 2], [0.3, 0.4]), True),
        (tensor(0, [1, 2], [0.1, 0.2]), tensor(1, [2, 1], [0.1, 0.2]), False),
        (tensor(0, [1, 2], [0.1, 0.2]), tensor(1, [1, 2], [0.1, 0.2], path="/v2/models/a/infer?x=1"), True),
        (tensor(0, [1, 2], [0.1, 0.2]), tensor(1, [1, 2], [0.1, 0.2], path="/v2/models/b/infer"), False),
        (TrafficRequest(path="/", body=b'{"a": 1}'), TrafficRequest(path="/", body=b'{"a": "1"}'), False),
        (TrafficRequest(path="/", body=b'{"a": [1]}'), TrafficRequest(path="/", body=b'{"a": [1.5]}'), False),
        (TrafficRequest(path="/", body=b"\xff\xd8ab"), TrafficRequest(path="/", body=b"\xff\xd8cd"), True),
        (TrafficRequest(path="/", body=b"{not json"), TrafficRequest(path="/", body=b"{not jsom"), True),
    ],
)
def test_kinds_are_structures_and_not_values(left: TrafficRequest, right: TrafficRequest, same: bool) -> None:
    assert (described(left)[0] == described(right)[0]) is same
