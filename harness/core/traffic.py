"""HTTP requests of production and their arrival times, as a file of requests holds them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FORMAT: Final = "torchscript-gate requests"
VERSION: Final = 1
PROTOCOLS: Final = ("v2", "torchserve", "tensorflow", "http")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficHeader:
    """What a file says of all its requests; ``docs/formats/requests.md`` describes it.

    Attributes:
        protocol: one of ``PROTOCOLS``, empty where it is not said.
        source: URL that the requests went to, or how they were made.
        started: UTC time of the first request as ISO 8601 has it; empty where they were not recorded.
        sampled: share of the requests that were written, from 0 (excluded) to 1.
        redacted: names of headers and fields of JSON whose values were removed.
    """

    protocol: str = ""
    source: str = ""
    started: str = ""
    sampled: float = 1.0
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficRequest:
    """One HTTP request.

    Attributes:
        at: seconds since the first request of the file arrived.
        path: as sent, with its query: ``"/v2/models/resnet/infer?x=1"``.
        headers: lower-case names; only those that change what the server does.
        body: as sent, any bytes.
        line: where it stands in its file, counted from 1; 0 where it comes from none; not compared.
    """

    method: str = "POST"
    path: str
    at: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    line: int = field(default=0, compare=False)
