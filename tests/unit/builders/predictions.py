"""Facts and registries for predictions."""

from typing import Any

from harness.archive.schemas import parse_schema
from harness.domain.archive import ArchiveFacts, ArchiveFormat, CodePlace, OperatorRegistry, OperatorUse, Schema

PLACE = CodePlace(member="code/__torch__/m.py", line=7, function="__torch__.m.Net.forward")


def use(name: str, *arguments: str, keywords: tuple[str, ...] = (), results: int = 0) -> OperatorUse:
    return OperatorUse(name=name, arguments=arguments, keywords=keywords, results=results, place=PLACE)


def facts(*uses: OperatorUse, **changes: Any) -> ArchiveFacts:
    given: dict[str, Any] = {
        "path": "net.pt",
        "size_bytes": 1000,
        "format": ArchiveFormat.TORCHSCRIPT,
        "archive_version": "3",
    }
    return ArchiveFacts(**(given | {"operators": uses} | changes))


def schema(text: str) -> Schema:
    return parse_schema(text)[1]


def registry(torch: str, *schemas: str, **changes: Any) -> OperatorRegistry:
    found: dict[str, tuple[Schema, ...]] = {}
    for text in schemas:
        name, parsed = parse_schema(text)
        found[name] = (*found.get(name, ()), parsed)
    given: dict[str, Any] = {
        "torch": torch,
        "operator_version": 10,
        "schemas": found,
        "upgraders": {},
        "custom_classes": frozenset(),
        "dtypes": frozenset(("float32",)),
        "type_names": frozenset(),
    }
    return OperatorRegistry(**(given | changes))
