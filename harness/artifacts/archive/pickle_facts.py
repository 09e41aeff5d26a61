"""Describes what a pickle would build, without building it: walks the opcodes and returns plain data.

Nothing is looked up or called: a global is its name, a call is remembered as a call. torch writes protocol 2; up to
protocol 5 is read, to tell what Python wrote.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.archive.limits import CannotRead, Limits


@dataclass(frozen=True, slots=True)
class Global:
    """The name of a class or function: module and name with a dot between them."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """What stands outside of the pickle; ``what`` says which: a storage, as torch describes it."""

    what: Any


@dataclass(slots=True, eq=False)
class Built:
    """A call, or an object made from a class; ``entries`` are set on it like on a dict, ``state`` by ``BUILD``."""

    what: Any
    arguments: Any
    state: Any = None
    entries: list[tuple[Any, Any]] = field(default_factory=list)


def name_of(value: object) -> str:
    return value.what.name if isinstance(value, Built) and isinstance(value.what, Global) else ""


@dataclass(slots=True, eq=False)
class PickledMapping:
    """A dict: its entries in order, keys and values as they came (keys need not be hashable here)."""

    items: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Pickled:
    """What a pickle holds.

    Attributes:
        root: plain Python values, ``Global``, ``Built`` and ``Mapping``.
        persistent: what ``BINPERSID`` referred to, in order: the storages of tensors.
        classes: names of everything that was instantiated, called or named, in order of appearance.
        used: bytes up to and with the final ``STOP``; ``opcodes``: all that were met; ``left``: values beside the root.
    """

    root: Any = None
    persistent: list[Any] = field(default_factory=list)
    classes: dict[str, None] = field(default_factory=dict)
    used: int = 0
    opcodes: set[int] = field(default_factory=set)
    left: int = 0


MARK = object()


def read_pickle(data: bytes, limits: Limits) -> Pickled:
    """Return what ``data`` holds. Raises ``CannotRead``: no pickle, cut off, an unknown opcode, or too many."""
    if len(data) > limits.pickle_bytes:
        raise CannotRead("too_large", f"a pickle of {len(data)} bytes; at most {limits.pickle_bytes} are read")
    try:
        return _Machine(data).run(limits.pickle_steps)
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise CannotRead("damaged", f"a pickle that makes no sense: {type(error).__name__}") from None


class _Machine:
    """Stack, marks and memo of a pickle machine. Every operation costs no more than the bytes that ask for it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.pickled = Pickled()

    def run(self, steps: int) -> Pickled:
        data, opcodes = self.data, self.pickled.opcodes
        for _ in range(steps):
            code = data[self.at]
            opcodes.add(code)
            self.at += 1
            if code == 0x2E:  # STOP
                self.pickled.root = self.stack.pop()
                self.pickled.used, self.pickled.left = self.at, len(self.stack)
                return self.pickled
            step = STEPS.get(code)
            if step is None:
                raise CannotRead("damaged", f"a pickle with the unknown opcode {code:#04x}")
            step(self)
        raise CannotRead("too_large", f"a pickle with more than {steps} steps")

    def take(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise IndexError
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(value)

    def line(self) -> str:
        end = self.data.index(b"\n", self.at)
        text = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return text

    def until_mark(self) -> list[Any]:
        stack = self.stack
        at = len(stack) - 1
        while stack[at] is not MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def global_(self, module: str, name: str) -> None:
        named = Global(f"{module}.{name}")
        self.pickled.classes.setdefault(named.name)
        self.stack.append(named)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        pairs = _pairs(items)
        if isinstance(target, PickledMapping):
            target.items.extend(pairs)
        elif isinstance(target, Built):  # an OrderedDict is called first and filled then
            target.entries.extend(pairs)
        else:
            raise TypeError

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Built):
            raise TypeError

    def build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, Built):
            raise TypeError
        target.state = state

    def call(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = Built(self.stack[-1], arguments)

    def persistent(self) -> None:
        self.pickled.persistent.append(self.stack[-1])
        self.stack[-1] = Stored(self.stack[-1])

    def memoize(self) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.stack.append(items)


def _long(data: bytes) -> int:
    if len(data) > 1024:
        raise CannotRead("too_large", "a pickle with a number of more than a kilobyte")
    return int.from_bytes(data, "little", signed=True)


U1, U2, U4, I4, U8 = (struct.Struct(layout) for layout in ("<B", "<H", "<I", "<i", "<Q"))
F8 = struct.Struct(">d")


def _float(machine: _Machine) -> None:
    machine.stack.append(F8.unpack(machine.take(8))[0])


def _proto(machine: _Machine) -> None:
    if machine.number(U1) > 5:
        raise CannotRead("unsupported", "a pickle of an unknown protocol")
    if machine.at != 2:
        raise CannotRead("damaged", "a pickle that begins twice")


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    if not (isinstance(name, str) and isinstance(module, str)):
        raise TypeError
    machine.global_(module, name)


def _named_persistent(machine: _Machine) -> None:
    machine.stack.append(machine.line())
    machine.persistent()


def _object(machine: _Machine) -> None:
    keywords = machine.stack.pop()
    machine.call()
    machine.stack[-1].arguments = (machine.stack[-1].arguments, keywords)


def _text(layout: struct.Struct) -> Callable[[_Machine], None]:
    # A character of a text that torch took apart is no UTF-8.
    return lambda m: m.stack.append(m.take(m.number(layout)).decode("utf-8", "surrogateescape"))


def _bytes(layout: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(m.take(m.number(layout)))


def _push(make: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(make(m))


def _put(layout: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.memo.__setitem__(m.number(layout), m.stack[-1])


STEPS: dict[int, Callable[[_Machine], object]] = {
    ord("("): _push(lambda _: MARK),
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): lambda m: m.until_mark(),
    ord("2"): _push(lambda m: m.stack[-1]),
    ord("F"): _push(lambda m: float(m.line())),
    ord("G"): _float,
    ord("I"): _push(lambda m: int(m.line()[:32])),
    ord("J"): _push(lambda m: m.number(I4)),
    ord("K"): _push(lambda m: m.number(U1)),
    ord("L"): _push(lambda m: int(m.line()[:1024].rstrip("L"))),
    ord("M"): _push(lambda m: m.number(U2)),
    ord("N"): _push(lambda _: None),
    ord("P"): _named_persistent,
    ord("Q"): lambda m: m.persistent(),
    ord("R"): lambda m: m.call(),
    ord("S"): _push(lambda m: m.line()),
    ord("T"): _bytes(U4),
    ord("U"): _bytes(U1),
    ord("V"): _push(lambda m: m.line()),
    ord("X"): _text(U4),
    ord("a"): lambda m: m.append([m.stack.pop()]),
    ord("b"): lambda m: m.build(),
    ord("c"): lambda m: m.global_(m.line(), m.line()),
    ord("d"): _push(lambda m: PickledMapping(_pairs(m.until_mark()))),
    ord("}"): _push(lambda _: PickledMapping()),
    ord("e"): lambda m: m.append(m.until_mark()),
    ord("g"): _push(lambda m: m.memo[int(m.line()[:32])]),
    ord("h"): _push(lambda m: m.memo[m.number(U1)]),
    ord("j"): _push(lambda m: m.memo[m.number(U4)]),
    ord("l"): _push(lambda m: m.until_mark()),
    ord("]"): _push(lambda _: []),
    ord("p"): lambda m: m.memo.__setitem__(int(m.line()[:32]), m.stack[-1]),
    ord("q"): _put(U1),
    ord("r"): _put(U4),
    ord("s"): lambda m: m.set_items([m.stack.pop(-2), m.stack.pop()]),
    ord("t"): _push(lambda m: tuple(m.until_mark())),
    ord(")"): _push(lambda _: ()),
    ord("u"): lambda m: m.set_items(m.until_mark()),
    0x80: _proto,
    0x81: lambda m: m.call(),
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    0x88: _push(lambda _: True),
    0x89: _push(lambda _: False),
    0x8A: _push(lambda m: _long(m.take(m.number(U1)))),
    0x8B: _push(lambda m: _long(m.take(m.number(I4)))),
    ord("B"): _bytes(U4),
    ord("C"): _bytes(U1),
    0x8C: _text(U1),
    0x8D: _text(U8),
    0x8E: _bytes(U8),
    0x8F: _push(lambda _: []),  # a set: what is in it does not matter here
    0x90: lambda m: m.append(m.until_mark()),
    0x91: _push(lambda m: m.until_mark()),
    0x92: _object,
    0x93: _stack_global,
    0x94: lambda m: m.memoize(),
    0x95: lambda m: m.take(8),
    0x96: _bytes(U8),
}


def _pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    if len(items) % 2:
        raise IndexError
    return [(items[index], items[index + 1]) for index in range(0, len(items), 2)]
