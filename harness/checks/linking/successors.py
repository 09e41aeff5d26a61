"""What a release exports in place of a symbol that it lacks."""

import difflib
import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.checks.linking import known_symbols
from harness.checks.linking.demangled import canonical, demangled, last_names, split
from harness.checks.linking.libtorch import LibTorch
from harness.core.linking import MissingSymbol, SymbolChange

MOST = 3
# Below that two lists of parameters have hardly a type in common.
ALIKE = 0.3


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    canonical: str
    name: str
    parameters: tuple[str, ...] | None

    @classmethod
    def of(cls, text: str) -> "_Candidate":
        own = canonical(text)
        return cls(text, own, *split(own))


@functools.lru_cache(maxsize=2)
def successors_in(new: LibTorch) -> "Successors":
    """Return what finds them in a release: of a folder's binaries most miss the same symbols."""
    return Successors(new)


class Successors:
    """Finds them in one release, those of each symbol once."""

    def __init__(self, new: LibTorch) -> None:
        self._new = new
        self._known: dict[str, tuple[SymbolChange, Sequence[str]]] = {}

    def missing(self, symbols: Iterable[str], source: Collection[str] | None = None) -> tuple[MissingSymbol, ...]:
        """Return what becomes of each of the symbols that the new release lacks, the gravest first.

        Args:
            source: the words of the code that needs them, None where it is not known.
        """
        found = [self._of(symbol, source) for symbol in symbols]
        order = list(SymbolChange)
        return tuple(sorted(found, key=lambda one: (-order.index(one.change), one.text)))

    def _of(self, symbol: str, source: Collection[str] | None) -> MissingSymbol:
        text = demangled(symbol)
        if symbol not in self._known:
            change, successors = self._successors(text)
            declared = change in (SymbolChange.GONE, SymbolChange.MOVED) and self._new.declares(symbol)
            self._known[symbol] = (SymbolChange.DECLARED, ()) if declared else (change, successors)
        change, successors = self._known[symbol]
        parts = last_names(split(canonical(text))[0])
        return MissingSymbol(
            in_source=None if source is None or not parts else parts[-1].lstrip("~") in source,
            symbol=symbol,
            text=text,
            change=change,
            successors=tuple(successors[:MOST]),
            since=known_symbols.lost_in(symbol),
        )

    def _successors(self, text: str) -> tuple[SymbolChange, Sequence[str]]:
        own = canonical(text)
        name, parameters = split(own)
        kind, parts = _kind(name), last_names(name)
        near = [_Candidate.of(other) for other in self._with(parts[-2:])]
        same = [one.text for one in near if one.canonical == own]
        if same:
            return SymbolChange.OTHER_ABI, same
        here = [one for one in near if one.name == name]
        if by_value := [one.text for one in here if _by_value(one.parameters) == _by_value(parameters)]:
            return SymbolChange.OTHER_ABI, by_value
        if parameters is not None and (
            longer := [one.text for one in here if (one.parameters or ())[: len(parameters)] == parameters]
        ):
            return SymbolChange.ADDED_PARAMETERS, longer
        if here:
            return SymbolChange.OTHER_PARAMETERS, _nearest(parameters, here)
        # A member is looked for by its own name and that of its class, a free function by its name alone.
        elsewhere = [one for one in near if _kind(one.name) == kind and last_names(one.name)[-2:] == parts[-2:]]
        if not elsewhere and parameters:
            free = [_Candidate.of(other) for other in self._with(parts[-1:])]
            elsewhere = [one for one in free if last_names(one.name)[-1:] == parts[-1:]]
            if len({one.name for one in elsewhere}) > 1:  # a common word, not this function
                elsewhere = []
        alike = _nearest(parameters, elsewhere, least=ALIKE)
        return (SymbolChange.MOVED, alike) if alike else (SymbolChange.GONE, ())

    def _with(self, parts: Sequence[str]) -> list[str]:
        """Return the demangled symbols of the new release in whose mangled names all identifiers stand."""
        spelled = [f"{len(part)}{part}" for part in (part.lstrip("~") for part in parts) if part != "operator"]
        return [demangled(symbol) for symbol in self._new.exported if all(word in symbol for word in spelled)]


def _kind(name: str) -> str:
    """Return ``"vtable"`` or the like, empty for what is none."""
    word, joint, _ = name.partition(" for ")
    return word if joint else ""


def _by_value(parameters: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return parameters as callers write them: to take one by value or by constant reference is the same to them."""
    return None if parameters is None else tuple(text.removesuffix(" const&") for text in parameters)


def _nearest(parameters: tuple[str, ...] | None, others: Sequence[_Candidate], *, least: float = 0.0) -> list[str]:
    """Return the others whose parameters are most alike, the nearest first."""

    def likeness(other: tuple[str, ...] | None) -> float:
        if not parameters or not other:
            return float(parameters == other)
        return difflib.SequenceMatcher(a=parameters, b=other, autojunk=False).ratio()

    ranked = sorted(((likeness(one.parameters), one.text) for one in others), key=lambda one: (-one[0], one[1]))
    return [text for ratio, text in ranked if ratio >= least]
