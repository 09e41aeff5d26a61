"""What torch prints of a module's code, as a grammar: anything else may be refused, and nothing is said to load then.

The language is that of torch/csrc/jit/serialization/python_print.cpp: no operators but calls, one way to write each
statement, blocks indented by two spaces. Names are resolved and types compared as far as a file alone shows them; what
a file expects of another one (methods, attributes, functions and their parameters) is kept for ``unmet``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from harness.artifacts.archive.expressions import answer_of, element_of
from harness.artifacts.archive.tokens import Statement, Token

NUMBER = re.compile(r"(\d+)(?:(\.)\d*(?:e[+-]?\d+)?|(e[+-]?\d+))?(j?)")
STRING = re.compile(r'"(?:[^"\\]|\\(?:[\\\'"abfnrtv]|[0-7]{3}))*"')
CONSTANT = re.compile(r"CONSTANTS\.c(\d+)")
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
OPERATOR = re.compile(r"torch\.\w+|ops\.\w+\.\w+|torch\.autograd\.(?:grad|backward)", re.ASCII)
# A tab may stand in the name of an attribute.
FOREIGN_TEXT = re.compile(r'[\0-\x08\x0b-\x1f\x7f]|(?m:^[^"\n]*\t)|^\s*#|\n *#', re.ASCII)
PLAIN = frozenset(("Tensor", "int", "float", "bool", "str", "complex", "NoneType", "Device"))
OTHER_TYPES = frozenset(("number", "Any", "Capsule", "Generator", "Stream", "AnyEnumType", "QScheme", "Layout"))
GENERIC = {"Optional": 1, "List": 1, "Dict": 2, "Tuple": 0, "Union": 0, "Future": 1, "RRef": 1, "Await": 1}
"""How many types are within; 0 where any number may be."""
VAGUE = frozenset(("", "Any", "Optional", "Union", "Future", "RRef", "Await", "number", "AnyEnumType"))
MADE = frozenset(("int", "float", "bool", "str", "complex"))
BASES = frozenset(("Module", "NamedTuple", "Interface", "ModuleInterface", "Enum"))
CUSTOM = "__torch__.torch.classes."
LIST_MARKS = frozenset(("__parameters__", "__buffers__", "__forward_pre_hooks__", "__forward_hooks__"))
CLAIMED = frozenset(
    (
        *("False", "None", "NoneType", "True", "and", "as", "assert", "break", "class", "continue", "def", "del"),
        *("elif", "else", "for", "global", "if", "import", "in", "is", "not", "or", "pass", "raise", "return", "while"),
        "with",
    )
)
"""What TorchScript's own parser takes for itself (torch/csrc/jit/frontend/lexer.h), the same in every release. Python
keeps a few words more, which are names there."""
NAME_REFUSED, CODE_REFUSED = "name_refused", "code_refused"
INT64 = 1 << 63
STEP = 2
"""Spaces that each block is indented by."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function of the archive: name, type as written without spaces, whether it may be left out."""

    name: str
    type: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a line expects of a class or function: an attribute, or a call with so many arguments."""

    owner: str
    attribute: str
    line: int
    call: tuple[int, tuple[str, ...]] | None = None


@dataclass(slots=True)
class Shape:
    """What a file defines and expects.

    Attributes:
        attributes: class -> attribute -> type; for constants too.
        constants: class -> names of attributes that are no part of a module's state.
        bases: class -> what it is made from, empty for a plain one.
        signatures: qualified function -> its parameters, ``self`` included.
        answers: operators, each with a type that its answer must have for the code to be accepted.
        highest_constant: index into ``constants.pkl``, -1 without one.
        constant_types: index into ``constants.pkl``, and a type that the code needs it to have.
        line, why: the first that torch would not print; 0 if there is none.
        refused: what torch prints on that line and reads nowhere, in words; empty if there is nothing such.
        refused_kind: ``NAME_REFUSED`` where that is a name, else ``CODE_REFUSED``.
    """

    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    constants: dict[str, set[str]] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    signatures: dict[str, tuple[Argument, ...]] = field(default_factory=dict)
    needs: set[Need] = field(default_factory=set)
    answers: set[tuple[str, str]] = field(default_factory=set)
    highest_constant: int = -1
    constant_types: set[tuple[int, str]] = field(default_factory=set)
    line: int = 0
    why: str = ""
    refused: str = ""
    refused_kind: str = ""


class _Foreign(Exception):
    """Raised where torch would have printed something else."""


class _Refused(Exception):
    """Raised where torch prints what it does not read; ``kind`` as in ``Shape``."""

    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind


def read_shape(text: str, lines: Iterable[Statement], qualifier: str) -> Shape:
    """Return what the code file ``qualifier`` defines and expects; reading ends at the first line that is foreign."""
    reader = _Reader(list(lines), qualifier)
    odd = FOREIGN_TEXT.search(text)
    if odd is not None:
        reader.shape.line, reader.shape.why = text.count("\n", 0, odd.end()) + 1, "a character"
        return reader.shape
    try:
        reader.module()
    except _Foreign as error:
        reader.shape.line, reader.shape.why = reader.line, str(error)
    except _Refused as error:
        reader.shape.line, reader.shape.refused, reader.shape.refused_kind = reader.line, str(error), error.kind
    return reader.shape


def why_refused(name: str) -> str:
    """Return in words why no release reads a name, or a qualified name; empty where each part may be one."""
    for part in name.split("."):
        if part in CLAIMED:
            return f"{part!r} is a word of TorchScript"
        if part[:1].isdecimal():
            return f"{part!r} begins with a digit"
        if not part.isascii():
            return f"{part!r} is not written in ASCII"
        if not NAME.fullmatch(part):
            return f"{part!r} is no name of TorchScript"
    return ""


def unmet(shapes: Sequence[Shape]) -> Iterator[str]:
    """Yield what no class or function of the archive offers, in words."""
    attributes = {name: members for shape in shapes for name, members in shape.attributes.items()}
    signatures = {name: members for shape in shapes for name, members in shape.signatures.items()}
    bases = {name: base for shape in shapes for name, base in shape.bases.items()}
    for shape in shapes:
        for need in sorted(shape.needs, key=lambda item: (item.line, item.owner, item.attribute)):
            if need.owner.startswith(CUSTOM):
                continue
            name = f"{need.owner}.{need.attribute}" if need.attribute else need.owner
            if need.call is None:
                of_enum = need.attribute in ("name", "value") and bases.get(need.owner) == "Enum"
                if not of_enum and need.attribute not in attributes.get(need.owner, ()) and name not in signatures:
                    yield f"{need.owner} has no {need.attribute}"
            elif name in signatures:
                parameters = signatures[name][1:] if need.attribute else signatures[name]
                if not _takes(parameters, *need.call):
                    yield f"{name} does not take {need.call[0]} arguments"
            elif need.attribute or need.owner not in attributes:  # a class is made, perhaps of a NamedTuple's fields
                yield f"{name} is called and is not there"


def _takes(parameters: Sequence[Argument], positional: int, keywords: Sequence[str]) -> bool:
    left = parameters[positional:]
    named = {item.name for item in left}
    fits = positional <= len(parameters) and len(set(keywords)) == len(keywords) and named >= set(keywords)
    return fits and all(item.optional or item.name in keywords for item in left)


def may_be(declared: str, actual: str) -> bool:
    """Return whether a value of type ``actual`` may be where ``declared`` is expected; True where it is not known."""
    wanted, given = declared.partition("[")[0], actual.partition("[")[0]
    if wanted == "Optional" and given != "Optional":
        return actual == "NoneType" or may_be(declared[9:-1], actual)
    if wanted in VAGUE - {"Optional"} or given in VAGUE - {"Optional"} or "~" in (wanted[:1], given[:1]):
        return True
    if wanted == given:
        within = types_within(declared), types_within(actual)
        if not all(within):  # of unknown elements
            return True
        return len(within[0]) == len(within[1]) and all(map(may_be, *within))
    if given.startswith("__torch__."):  # an interface, or a named tuple
        return wanted.startswith("__torch__.") or wanted == "Tuple"
    return wanted not in PLAIN | GENERIC.keys() and given not in PLAIN | GENERIC.keys()


def types_within(type_: str) -> list[str]:
    """Return the types within one; none of a type that has none, or of which that is not known."""
    types, depth, begin = [], 0, type_.find("[") + 1
    for index in range(begin, len(type_) - 1):
        depth += (type_[index] == "[") - (type_[index] == "]")
        if type_[index] == "," and not depth:
            types.append(type_[begin:index])
            begin = index + 1
    inside = type_[begin:-1] if "[" in type_ else ""
    return [*types, inside] if inside and inside != "()" else types


def merged(first: str | None, other: str | None) -> str | None:
    """Return the type of a name behind an ``if``; None where a branch leaves it without one, "" where it is not known.

    ``unifyTypes`` keeps the type that holds the other one and makes a Union of both where neither does. A Union that is
    made so and holds None is an Optional (``UnionType::create``), which a written Union[..., NoneType] is not.
    """
    if first is None or other is None or first == other:
        return first if first == other else None
    if not first or not other or not (is_union(first) or is_union(other)):
        return ""
    both = held_in(first) | held_in(other)
    for type_ in (first, other):
        if held_in(type_) == both and not any(item.startswith("Optional[Union[") for item in (first, other)):
            return type_
    union = f"Union[{','.join(sorted(both - {'NoneType'}))}]"
    return f"Optional[{union}]" if "NoneType" in both else union


def is_union(type_: str) -> bool:
    """Return whether a type is a Union, or an Optional of one."""
    return type_.startswith(("Union[", "Optional[Union["))


def held_in(type_: str) -> set[str]:
    """Return the types that a Union or an Optional holds; any other type is the only one that it holds."""
    if type_.startswith("Optional["):
        return held_in(type_[9:-1]) | {"NoneType"}
    return set(types_within(type_)) if type_.startswith("Union[") else {type_}


class _Reader:
    """Goes through the statements of a file, then through the tokens of each."""

    def __init__(self, lines: list[Statement], qualifier: str) -> None:
        self.lines = lines
        self.qualifier = qualifier
        self.shape = Shape()
        self.at = 0
        self.tokens: list[Token] = []
        self.place = 0
        self.line = 1
        self.names: dict[str, str] = {}
        self.before: list[dict[str, str | None]] = []  # per open block: names that it has set -> their types before it

    def wrong(self, why: str) -> NoReturn:
        raise _Foreign(why)

    def refused(self, why: str, kind: str = NAME_REFUSED) -> NoReturn:
        raise _Refused(why, kind)

    # Statements

    def here(self, indent: int) -> bool:
        if self.at == len(self.lines) or self.lines[self.at].indent < indent:
            return False
        statement = self.lines[self.at]
        self.tokens, self.place, self.line = statement.tokens, 0, statement.line
        if statement.indent != indent:
            self.wrong("indentation")
        self.at += 1
        return True

    def module(self) -> None:
        while self.here(0):
            first = self.take()
            if first == "op_version_set" and self.at == 1:  # written before torch 1.6
                self.expect("=")
                self.expression()
                self.end()
            elif first == "class":
                self.class_()
            elif first == "def":
                self.function(self.qualifier, 0)
            else:
                self.wrong("neither a class nor a function")

    def class_(self) -> None:
        name = f"{self.qualifier}.{self.name()}"
        base = ""
        if self.peek() == "(":
            self.expect("(")
            base = self.take()
            self.expect(")")
            if base not in BASES:
                self.wrong(f"the class {base}")
        self.expect(":")
        self.end()
        if name in self.shape.attributes:
            self.wrong("a class defined twice")
        self.shape.attributes[name], self.shape.constants[name], self.shape.bases[name] = {}, set(), base
        marked: list[str] = []
        empty = True
        while self.here(STEP):
            empty = False
            first = self.take()
            if first in CLAIMED | LIST_MARKS and self.peek() == ":":
                self.refused(why_refused(first) or f"{first!r} is a name that TorchScript keeps for itself")
            elif first == "def" and base != "NamedTuple":
                self.function(name, STEP, interface="Interface" in base)
            elif first in LIST_MARKS and base == "Module":
                self.expect("=")
                names = self.strings()
                marked += names if first == "__parameters__" else []
            elif first == "__annotations__" and self.peek() == "=":
                self.expect("=")
                self.strings()
            elif first == "__annotations__" and self.peek() == "[":
                self.expect("[")
                attribute = self.string()
                self.expect("]")
                self.expect("=")
                self.attribute(name, attribute, self.type())
            elif first == "pass" and (base in ("Interface", "ModuleInterface")):
                pass
            elif base == "Enum":
                self.place -= 1
                member = self.name()
                self.expect("=")
                self.attribute(name, member, self.member_value())
            elif base not in ("Interface", "ModuleInterface"):
                self.place -= 1
                member = self.name()
                self.expect(":")
                self.member(name, member)
            else:
                self.wrong("no part of a class")
            self.end()
        if empty:
            self.wrong("a class without a body")
        known = self.shape.attributes[name]
        if any(known.get(item) not in ("Tensor", "Optional[Tensor]", "NoneType") for item in marked):
            self.wrong("a parameter that is no tensor")

    def member(self, name: str, attribute: str) -> None:
        if self.peek() == "Final":
            self.take()
            self.expect("[")
            declared = self.type()
            self.expect("]")
            self.expect("=")
            actual = self.literal(declared)
            inside = declared.startswith(("List", "Dict", "Tuple", "__torch__"))
            if actual and declared != actual and not (inside and may_be(declared, actual)):
                self.wrong("a constant of another type")
            self.shape.constants[name].add(attribute)
        else:
            declared = self.type()
        self.attribute(name, attribute, declared)

    def attribute(self, owner: str, attribute: str, declared: str) -> None:
        if attribute in self.shape.attributes[owner] or f"{owner}.{attribute}" in self.shape.signatures:
            self.wrong("an attribute declared twice")
        self.shape.attributes[owner][attribute] = declared

    def function(self, owner: str, indent: int, *, interface: bool = False, nested: bool = False) -> None:
        name = f"{owner}.{self.name()}"
        self.expect("(")
        parameters: list[Argument] = []
        for _ in self.items(")"):
            parameter = self.name()
            if interface and not parameters:  # self, without a type
                parameters.append(Argument(parameter, "", optional=False))
                continue
            self.expect(":")
            declared = self.type()
            optional = self.peek() == "="
            if optional:
                self.expect("=")
                if not may_be(declared, self.literal(declared)):
                    self.wrong("a default of another type")
            elif parameters and parameters[-1].optional:
                self.wrong("a parameter without a default behind one with it")
            if any(item.name == parameter for item in parameters):
                self.wrong("a parameter twice")
            parameters.append(Argument(parameter, declared, optional))
        returned = ""
        if not nested or self.peek() == "->":
            self.expect("->")
            returned = self.type()
        self.expect(":")
        self.end()
        if indent and not nested and not interface and (not parameters or parameters[0].type != owner):
            self.wrong("a method without its own self")
        if not nested:
            if name in self.shape.signatures or name.rpartition(".")[2] in self.shape.attributes.get(owner, ()):
                self.wrong("a function defined twice")
            self.shape.signatures[name] = tuple(parameters)
            self.names = {}
        self.before.append({})
        for item in parameters:
            self.set_name(item.name, item.type)
        if interface:
            if not self.here(indent + STEP) or self.take() != "pass":
                self.wrong("an interface with code")
        else:
            self.body(indent + STEP, returned)
        self.close()
        self.place = len(self.tokens)

    def body(self, indent: int, returned: str) -> None:
        while self.here(indent):
            if self.peek() == "return":
                self.take()
                actual = self.tuple_or_one()
                self.end()
                if not self.fits(returned, actual):
                    self.wrong("another type is returned than declared")
                if self.at < len(self.lines) and self.lines[self.at].indent >= indent:
                    self.wrong("code behind a return")
                return
            self.statement(indent)
        self.wrong("a function without a return")

    def set_name(self, name: str, type_: str | None) -> None:
        """Let a name have a type from here to the end of the innermost block; None: it is not defined."""
        if self.before:
            self.before[-1].setdefault(name, self.names.get(name))
        if type_ is None:
            self.names.pop(name, None)
        else:
            self.names[name] = type_

    def close(self) -> dict[str, str | None]:
        """End the innermost block; return the names that it has set, with the types that it leaves them with."""
        before = self.before.pop()
        left = {name: self.names.get(name) for name in before}
        for name, type_ in before.items():
            if type_ is None:
                self.names.pop(name, None)
            else:
                self.names[name] = type_
        return left

    def block(self, indent: int) -> dict[str, str | None]:
        """Read a block that stands alone; return what ``close`` returns."""
        self.before.append({})
        self.statements(indent)
        return self.close()

    def statements(self, indent: int) -> None:
        empty = True
        while self.here(indent):
            empty = False
            if self.peek() == "pass":
                self.take()
                self.end()
            else:
                self.statement(indent)
        if empty:
            self.wrong("an empty block")

    def with_(self, indent: int) -> None:
        """Read a ``with`` block; what it sets is there behind it."""
        manager = self.expression()
        if manager[:1] == "~" or (manager and not manager.startswith("__torch__.")):
            self.wrong(f"{manager} as a context manager")
        if manager:
            self.shape.needs.add(Need(manager, "__enter__", self.line, (0, ())))
            self.shape.needs.add(Need(manager, "__exit__", self.line, (3, ())))
        if self.peek() == "as":
            self.take()
            self.set_name(self.name(), "")
        self.expect(":")
        self.end()
        self.statements(indent)

    def statement(self, indent: int) -> None:
        first = self.peek()
        if first == "with":
            self.take()
            self.with_(indent + STEP)
            self.place = len(self.tokens)
        elif first == "if":
            self.take()
            self.condition()
            then = self.block(indent + STEP)
            if not self.here(indent) or self.take() != "else":
                self.wrong("if without else")
            self.expect(":")
            self.end()
            other = self.block(indent + STEP)
            for name in then.keys() | other.keys():
                types = [side.get(name, self.names.get(name)) for side in (then, other)]
                self.set_name(name, merged(*types))
            self.place = len(self.tokens)
        elif first == "while":
            self.take()
            self.condition()
            self.block(indent + STEP)
        elif first == "for":
            self.take()
            variable = self.name()
            self.expect("in")
            self.expect("range")
            if "range" in self.names:
                self.hidden("range")
            self.expect("(")
            self.expression()
            self.expect(")")
            self.expect(":")
            self.end()
            before = self.names.get(variable)
            self.set_name(variable, "int")
            self.block(indent + STEP)
            if before is None:
                self.set_name(variable, None)
        elif first == "def":
            self.take()
            name = self.tokens[1].text
            self.function(self.qualifier, indent, nested=True)
            self.set_name(name, "")
        else:
            self.assignment()

    def condition(self) -> None:
        if self.expression().partition("[")[0] in ("str", "List", "Dict", "Tuple", "NoneType"):
            self.wrong("a condition that is no truth value")
        self.expect(":")
        self.end()

    def assignment(self) -> None:
        texts = [token.text for token in self.tokens]
        if texts[1:2] != [":"] and ("=" not in texts or texts.index("=") > _depth_zero(self.tokens)):
            begin = self.place
            self.expression()
            if self.tokens[-1].text != ")" or begin == self.place:
                self.wrong("an expression without a call")
            self.end()
            return
        if len(texts) > 1 and texts[1] == ":":
            name = self.name()
            self.expect(":")
            declared = self.type()
            self.expect("=")
            actual = self.expression()
            if declared == "NoneType" and actual.startswith("Optional["):
                why = "a loop sets a variable to None whose type torch has narrowed to that, and prints both types"
                self.refused(why, CODE_REFUSED)
            if actual.startswith("Optional[Union[") and declared.startswith("Union["):
                why = "torch prints one type as Optional[Union[...]] and as Union[..., NoneType], which it tells apart"
                self.refused(why, CODE_REFUSED)
            if not self.fits(declared, actual):
                self.wrong("a name given another type")
            self.end()
            self.set_name(name, declared)
            return
        targets = [self.target()]
        several = False
        while self.peek() == ",":
            self.expect(",")
            several = True
            if self.peek() != "=":
                targets.append(self.target())
        self.expect("=")
        types = self.several(self.expression)
        self.end()
        if len(types) > 1 and len(types) != len(targets):
            self.wrong("another number of values than of names")
        if several and len(types) == 1:
            types = [element_of(types[0])] * len(targets)
        for (name, declared), actual in zip(targets, types, strict=True):
            if not self.fits(declared, actual):
                self.wrong("a name given another type")
            if "." not in name:
                self.set_name(name, actual)

    def target(self) -> tuple[str, str]:
        name = self.take()
        owner, dot, attribute = name.partition(".")
        if why_refused(name):
            self.refused(why_refused(name))
        if not all(NAME.fullmatch(part) for part in name.split(".")) or name in HELD:
            self.wrong(f"{name!r} is given a value")
        if not dot:
            return name, self.names.get(name, "")
        if "." in attribute or owner not in self.names:
            self.wrong(f"{name} is given a value")
        return name, self.of(self.names[owner], attribute)

    # Expressions

    def tuple_or_one(self) -> str:
        types = self.several(self.expression)
        return types[0] if len(types) == 1 else _tuple_of(types)

    def expression(self) -> str:
        kind, text = self.token()
        if text == "-":
            kind, number = self.token()
            if number not in ("inf", "nan") and kind not in ("number", "complex"):
                self.wrong("a sign before no number")
            type_ = "float" if number in ("inf", "nan") else "complex" if kind == "complex" else self.number(number)
        elif kind == "complex":
            type_ = "complex"
        elif kind == "number":
            type_ = self.number(text)
        elif kind == "string":
            if not STRING.fullmatch(text) or not text.isascii():
                self.wrong("a string")
            type_ = "str"
        elif text == "(":
            type_ = self.parenthesis()
        elif text == "[":
            types = self.alike([self.expression() for _ in self.items("]")])
            element = types.pop() if len(types) == 1 else ""
            type_ = "List" if element[:1] in ("", "~") else f"List[{element}]"
        elif text == "{":
            keys, values = [], []
            for _ in self.items("}"):
                keys.append(self.expression())
                self.expect(":")
                values.append(self.expression())
            self.alike(keys)
            self.alike(values)
            type_ = "Dict"
        elif kind == "name":
            type_ = self.named(text)
        else:
            self.wrong(f"{text!r} where a value should be")
        while self.place < len(self.tokens) and self.tokens[self.place].text in ("[", "."):
            if self.take() == "[":
                type_ = self.element(type_)
                self.expect("]")
            else:
                type_ = self.attributes(type_, self.take())
        return type_

    def element(self, container: str) -> str:
        """Read the index or key by which an element of ``container`` is taken; return the type of that element."""
        kind, within = container.partition("[")[0], types_within(container)
        literal, index = self.peek(), self.expression()
        if kind == "Dict":
            wanted, element = within or ("", "")
        elif kind in ("List", "Tuple", "str") or kind.startswith("__torch__."):  # a named tuple
            wanted, element = "int", {"List": within[0] if within else "", "str": "str"}.get(kind, "")
        elif kind in VAGUE or kind[:1] == "~":
            wanted, element = "str" if kind in VAGUE and index == "str" else "int", ""  # a dict perhaps
        else:
            self.wrong(f"{container} has no elements")
        if not self.fits(wanted, index):
            self.wrong(f"an element of {container or 'a value'} by {index}")
        if kind == "Tuple" and within and literal.isdecimal():
            if int(literal) >= len(within):
                self.wrong(f"element {literal} of {container}")
            return within[int(literal)]
        return element

    def alike(self, types: Sequence[str]) -> set[str]:
        """Return the different types of what stands in a list or dict, which may be of one type only."""
        if len((PLAIN - {"NoneType"}) & set(types)) > 1:
            self.wrong("values of several types in one list or dict")
        return set(types)

    def parenthesis(self) -> str:
        types, comma = [], False
        for _ in self.items(")"):
            types.append(self.expression())
            comma = comma or self.peek() == ","
        return types[0] if len(types) == 1 and not comma else _tuple_of(types)

    def number(self, text: str) -> str:
        match = NUMBER.fullmatch(text)
        if match is None or not text.isascii():
            self.wrong(f"the number {text}")
        if match[4]:
            return "complex"
        if match[2] or match[3]:
            return "float"
        if int(text[:20]) > INT64 or len(text) > 19 + 1:
            self.wrong("a number of more than 64 bits")
        return "int"

    def named(self, name: str) -> str:
        """Read what a name begins."""
        if name in ("True", "False"):
            return "bool"
        if name == "None":
            return "NoneType"
        if name in ("inf", "nan"):
            return "float"
        if OPERATOR.fullmatch(name):
            types, _ = self.arguments()
            if name.startswith("torch.") and "torch" in self.names:  # a method of that value
                if not may_be("Tensor", self.names["torch"]):
                    self.wrong("a value called 'torch' hides the operators")
                types = [self.names["torch"], *types]
            operator = "aten::" + name[6:] if name.startswith("torch.") else "::".join(name.split(".")[1:])
            known = answer_of(operator, types)
            return f"~{operator}" if not known or known[0] == "~" else known
        constant = CONSTANT.fullmatch(name)
        if constant is not None:
            self.shape.highest_constant = max(self.shape.highest_constant, int(constant[1][:9]))
            return ""
        if name.startswith("__torch__.") and "-" in name:
            self.refused(f"{name!r} has a sign in it, which is taken for a subtraction")
        if name.startswith("__torch__.") and why_refused(name):
            self.refused(why_refused(name))
        if name in SPECIAL and name in self.names and self.peek() == "(":
            self.hidden(name)
        if name in SPECIAL and name not in self.names:
            self.expect("(")
            type_ = SPECIAL[name](self)
            self.expect(")")
            return type_
        if name.startswith("__torch__."):
            if name.endswith(".__new__"):  # an object of a plain class before its __init__ is called
                self.expect("(")
                owner = self.type()
                self.expect(")")
                if name != f"{owner}.__new__":
                    self.wrong("an object of another class")
                return owner
            if self.peek() != "(":  # a function, or a value of an enum
                owner, _, attribute = name.rpartition(".")
                self.shape.needs.add(Need(owner, attribute, self.line))
                return f"def {name}"
            return self.call(name, "")
        first, dot, rest = name.partition(".")
        if first not in self.names:
            self.wrong(f"{first} is not defined")
        if dot:
            return self.attributes(self.names[first], rest)
        if self.peek() == "(":
            type_ = self.names[first]
            if type_.startswith("def "):
                return self.call(type_[4:], "")
            if type_:
                self.wrong(f"{first} is called")
            self.arguments()
            return ""
        return self.names[first]

    def hidden(self, name: str) -> NoReturn:
        """End the reading where ``name``, which torch has a meaning for, is a value that would be called."""
        what = f"a value called {name!r} hides what torch means by it"
        type_ = self.names[name]
        if name in TAKES_TYPES or type_.partition("[")[0] in PLAIN | GENERIC.keys() or self.is_module(name):
            self.refused(what)
        self.wrong(what)

    def is_module(self, name: str) -> bool:
        """Return whether the function has called ``forward`` of a value: a module has no ``__call__`` in an archive."""
        called = ["(", name, ")", ".", "forward"]
        for statement in reversed(self.lines[: self.at]):
            texts = [token.text for token in statement.tokens]
            if texts[0] == "def":
                return False
            if any(texts[place : place + len(called)] == called for place in range(len(texts))):
                return True
        return False

    def attributes(self, type_: str, path: str) -> str:
        parts, type_ = path.split("."), "" if type_[:1] == "~" else type_
        for index, attribute in enumerate(parts):
            if attribute and why_refused(attribute):
                self.refused(why_refused(attribute))
            if not NAME.fullmatch(attribute):
                self.wrong("an attribute without a name")
            if index == len(parts) - 1 and self.peek() == "(":
                if type_.startswith("__torch__."):
                    return self.call(type_, attribute)
                if type_ and (attribute != "tolist" or not may_be("Tensor", type_)):
                    self.wrong(f"{type_} has no method {attribute}")
                self.arguments()
                return ""
            type_ = self.of(type_, attribute)
        return type_

    def fits(self, declared: str, actual: str) -> bool:
        """Return what ``may_be`` returns; what an operator must answer for that is kept."""
        if actual[:1] == "~":
            self.shape.answers.add((actual[1:], declared))
        elif declared.startswith("Tuple[") and actual.startswith("Tuple["):
            within = types_within(declared), types_within(actual)
            return len(within[0]) == len(within[1]) and all(map(self.fits, *within))
        return may_be(declared, actual)

    def of(self, type_: str, attribute: str) -> str:
        type_ = "" if type_[:1] == "~" else type_
        if type_.startswith("def ") and attribute in ("name", "value"):  # of a value of an enum
            return ""
        if type_.startswith("__torch__."):
            self.shape.needs.add(Need(type_, attribute, self.line))
            return self.shape.attributes.get(type_, {}).get(attribute, "")
        if type_ and type_.partition("[")[0] not in VAGUE:
            self.wrong(f"{type_} has no attribute {attribute}")
        return ""

    def call(self, owner: str, method: str) -> str:
        types, keywords = self.arguments()
        self.shape.needs.add(Need(owner, method, self.line, (len(types), tuple(keywords))))
        name = f"{owner}.{method}" if method else owner
        signature = self.shape.signatures.get(name, ())
        for item, actual in zip(signature[1:] if method else signature, types, strict=False):
            if actual != "Tensor" and not may_be(item.type, actual) and {item.type, actual} != {"int", "float"}:
                self.wrong(f"{item.name} of {name} is given another type")
        return owner if not method and owner in self.shape.attributes else ""

    def arguments(self) -> tuple[list[str], list[str]]:
        """Read what stands in the brackets of a call: types of positional arguments, names of the others."""
        self.expect("(")
        types: list[str] = []
        keywords: list[str] = []
        for _ in self.items(")"):
            if self.place + 1 < len(self.tokens) and self.tokens[self.place + 1].text == "=":
                keywords.append(self.name())
                self.expect("=")
                self.expression()
            elif keywords:
                self.wrong("an argument without a name behind one with it")
            else:
                types.append(self.expression())
        return types, keywords

    def literal(self, declared: str) -> str:
        """Read a constant that is to be of the type ``declared``; return its type, empty of one in constants.pkl."""
        begin = self.place
        type_ = self.expression()
        words = {text for kind, text in self.tokens[begin : self.place] if kind == "name"}
        for word in words - {"True", "False", "None", "inf", "nan", "torch.device"}:
            constant = CONSTANT.fullmatch(word)
            if constant is None and not word.startswith("__torch__."):
                self.wrong("no constant")
            if constant is not None and begin + 1 == self.place:
                self.shape.constant_types.add((int(constant[1][:9]), declared))
        return type_

    def member_value(self) -> str:
        text = self.peek()
        if text[:1] != '"':
            if self.tokens[-1].text in ("inf", "nan"):
                self.refused(f"a value of an enum is {self.tokens[-1].text}, which is printed as a name")
            return self.literal("")
        self.string()
        if not STRING.fullmatch(text):
            self.refused("a value of an enum has a backslash that begins no known character")
        return "str"

    def type(self, *, within: bool = False) -> str:
        """Read a type; return it without spaces. Only one that stands alone (not ``within``) may have a hyphen."""
        name = self.take()
        if name in GENERIC:
            self.expect("[")
            if name == "Tuple" and self.peek() == "(":
                self.expect("(")
                self.expect(")")
                self.expect("]")
                return "Tuple[()]"
            inner = self.several(lambda: self.type(within=True))
            self.expect("]")
            if GENERIC[name] not in (0, len(inner)):
                self.wrong(f"{name} of {len(inner)} types")
            if name == "Dict" and inner[0] not in PLAIN - {"NoneType"}:
                self.wrong(f"a Dict by {inner[0]}")
            return f"{name}[{','.join(inner)}]"
        if not name.startswith("__torch__."):
            if name not in PLAIN | OTHER_TYPES:
                self.wrong(f"the type {name}")
        elif within and "-" in name:
            self.refused(f"{name!r} has a sign in it, which is taken for a subtraction")
        elif why_refused(name.replace("-", ".")):
            self.refused(why_refused(name.replace("-", ".")))
        return name

    # Tokens

    def peek(self) -> str:
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def token(self) -> Token:
        token = self.tokens[self.place] if self.place < len(self.tokens) else Token("", "")
        self.place += 1
        return token

    def take(self) -> str:
        return self.token().text

    def expect(self, text: str) -> None:
        actual = self.take()
        if actual != text:
            self.wrong(f"{actual!r} where {text!r} should be")

    def name(self) -> str:
        kind, text = self.token()
        if text and why_refused(text) and kind in ("name", "number"):
            self.refused(why_refused(text))
        if not NAME.fullmatch(text):
            self.wrong(f"the name {text!r}")
        return text

    def string(self) -> str:
        """Read a name as torch prints names of attributes: between quotes and otherwise as it is."""
        kind, text = self.token()
        if kind != "string" or text[:1] != '"':
            self.wrong("no string")
        return text[1:-1]

    def strings(self) -> list[str]:
        self.expect("[")
        return [self.string() for _ in self.items("]")]

    def several(self, read: Callable[[], str]) -> list[str]:
        things = [read()]
        while self.peek() == ",":
            self.take()
            things.append(read())
        return things

    def items(self, close: str) -> Iterator[None]:
        """Yield where each of the things that commas separate begins, and take the closing bracket."""
        while self.peek() != close:
            yield
            if self.peek() != close:
                self.expect(",")
        self.expect(close)

    def end(self) -> None:
        if self.place < len(self.tokens):
            self.wrong(f"{self.peek()!r} at the end")


TAKES_TYPES = frozenset(("annotate", "unchecked_cast", "uninitialized", "isinstance"))
"""Of ``SPECIAL``, what is given the name of a type, which nothing else takes."""
HELD = frozenset(("inf", "nan", "infj", "nanj", "ops", "CONSTANTS"))
"""What torch renames where a parameter or a variable is called so."""


def _typed(reader: _Reader) -> str:
    type_ = reader.type()
    reader.expect(",")
    reader.expression()
    return type_


def _isinstance(reader: _Reader) -> str:
    reader.expression()
    reader.expect(",")
    if reader.peek() in ("(", "["):
        close = ")" if reader.take() == "(" else "]"
        for _ in reader.items(close):
            reader.type()
    else:
        reader.type()
    return "bool"


def _getattr(reader: _Reader) -> str:
    type_ = reader.expression()
    reader.expect(",")
    text = reader.peek()
    name = reader.string()
    if not STRING.fullmatch(text) or not text.isascii():  # each byte that is not ASCII is printed as no octal number
        reader.refused("an attribute is not called by a name in ASCII")
    return reader.of(type_, name.encode().decode("unicode_escape"))


def _gives(type_: str) -> Callable[[_Reader], str]:
    """Return what reads a call of any arguments, left at its bracket, that answers with ``type_``."""

    def read(reader: _Reader) -> str:
        for _ in reader.items(")"):
            reader.expression()
        reader.place -= 1
        return type_

    return read


def _sorted(reader: _Reader) -> str:
    type_ = reader.expression()
    if not may_be("List", type_):
        reader.wrong(f"{type_} is sorted")
    return type_


def _made(name: str) -> Callable[[_Reader], str]:
    def read(reader: _Reader) -> str:
        reader.expression()
        return name

    return read


SPECIAL: Mapping[str, Callable[[_Reader], str]] = {
    "annotate": _typed,
    "unchecked_cast": _typed,
    "uninitialized": lambda reader: reader.type(),
    "isinstance": _isinstance,
    "getattr": _getattr,
    "fork": _gives(""),
    "awaitable": _gives(""),
    "print": _gives("NoneType"),
    "sorted": _sorted,
} | {name: _made(name) for name in sorted(MADE)}


def _tuple_of(types: Sequence[str]) -> str:
    return f"Tuple[{','.join(types)}]" if all(types) else "Tuple"


def _depth_zero(tokens: Sequence[Token]) -> int:
    """Return the index of the first bracket: a sign of equality behind it belongs to an argument."""
    return next((index for index, token in enumerate(tokens) if token.kind == "open"), len(tokens))
