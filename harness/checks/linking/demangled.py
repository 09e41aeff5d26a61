"""Names of C++ symbols for readers, and which of them mean the same in two ABIs."""

import re
from functools import lru_cache

import cxxfilt  # type: ignore[import-untyped]

# (what the compiler writes, what the source has), and what means the same in another release.
# The string ABI changed with torch 2.6 of the registry's CPU builds and 2.7 of its CUDA builds, optional with 2.5.
SPELLED_OUT = (
    (re.compile(r"std::__cxx11::"), "std::"),
    (re.compile(r"\[abi:cxx11\]"), ""),
    (re.compile(r"std::basic_string<char, std::char_traits<char>, std::allocator<char> ?>"), "std::string"),
    (re.compile(r"std::basic_string_view<char, std::char_traits<char> ?>"), "std::string_view"),
)
EQUIVALENT = (
    *SPELLED_OUT,
    (re.compile(r"\bc10::optional<"), "std::optional<"),
    (re.compile(r"\bc10::nullopt_t\b"), "std::nullopt_t"),
    (re.compile(r"\bc10::in_place_t\b"), "std::in_place_t"),
    (re.compile(r"\bc10::(?:variant|either)<"), "std::variant<"),
    (re.compile(r"\bc10::basic_string_view<char>"), "std::string_view"),
)
PARTICLES = re.compile(r"(?:\s*(?:const|volatile|&&?|noexcept|\[clone [^\]]*\]))+$")


@lru_cache(maxsize=1 << 17)
def demangled(symbol: str) -> str:
    """Return the C++ name, or the symbol itself where it is none."""
    try:
        return str(cxxfilt.demangle(symbol))
    except cxxfilt.InvalidName:
        return symbol


def canonical(text: str) -> str:
    """Return a demangled name with one spelling for what means the same."""
    for pattern, spelling in EQUIVALENT:
        text = pattern.sub(spelling, text)
    return text.replace(" >", ">")


def split(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return ``("at::add", ("at::Tensor const&", ...))`` of a function's demangled name; None: it is no function."""
    head = PARTICLES.sub("", text)
    if not head.endswith(")"):
        return text, None
    depth = 0
    for place in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[place], 0)
        if not depth:
            return head[:place], tuple(_parameters(head[place + 1 : -1]))
    return text, None


def _parameters(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [part for part in (*parts, text[begin:].strip()) if part]


def last_names(qualified: str) -> tuple[str, ...]:
    """Return the identifiers of a qualified name without templates, ``("at", "_ops", "add_Tensor", "call")``."""
    plain = qualified
    while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
        plain = shorter
    return tuple(re.findall(r"~?[A-Za-z_]\w*", plain.rsplit(" ", 1)[-1]))


def brief(text: str) -> str:
    """Return a demangled name as its source has it: ``std::string`` for what the compiler spells out."""
    for pattern, spelling in SPELLED_OUT:
        text = pattern.sub(spelling, text)
    text = re.sub(r", std::(?:allocator|hash|equal_to|less|default_delete)<(?:[^<>]|<[^<>]*>)*>", "", text)
    return text.replace("> >", ">>").replace(" >", ">")
