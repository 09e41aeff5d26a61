"""What an error of a compiler is about, as gcc 12 and clang 14 word it in the C locale."""

import pytest

from harness.checks.compiling.diagnostics import api_of, errors_in

GCC = {
    "'is_enabled' is not a member of 'at::autocast'": "at::autocast::is_enabled",
    "'class c10::Storage' has no member named 'data_ptr'": "c10::Storage::data_ptr",
    "'using Module = struct torch::jit::Module' {aka 'struct torch::jit::Module'} has no member named 'old'": (
        "torch::jit::Module::old"
    ),
    (
        "'using string_view = using string_view = class std::basic_string_view<char>' {aka 'class"
        " std::basic_string_view<char>'} has no member named 'ends_with'"
    ): "std::basic_string_view::ends_with",
    "'variant' in namespace 'c10' does not name a template type": "c10::variant",
    "'optional' in namespace 'c10' does not name a template type": "c10::optional",
    "'C10_UNUSED' does not name a type": "C10_UNUSED",
    "'load' was not declared in this scope": "load",
    "c10/util/variant.h: No such file or directory": "c10/util/variant.h",
    "no matching function for call to 'torch::jit::load(int)'": "torch::jit::load",
    "too few arguments to function 'int at::parse(int, bool)'": "at::parse",
    "use of deleted function 'at::Tensor::Tensor(int)'": "at::Tensor::Tensor",
    "expected ';' before 'x'": "",
}
CLANG = {
    "no member named 'is_enabled' in namespace 'at::autocast'": "at::autocast::is_enabled",
    "no member named 'data_ptr' in 'c10::Storage'": "c10::Storage::data_ptr",
    "no template named 'variant' in namespace 'c10'": "c10::variant",
    "use of undeclared identifier 'load'": "load",
    "unknown type name 'C10_UNUSED'": "C10_UNUSED",
    "no matching function for call to 'load'": "load",
    "'c10/util/variant.h' file not found": "c10/util/variant.h",
}


@pytest.mark.parametrize(("message", "api"), [*GCC.items(), *CLANG.items()])
def test_an_error_names_what_it_is_about(message: str, api: str) -> None:
    assert api_of(message) == api


def test_of_a_line_each_name_counts_once_and_in_a_template_who_asked_for_it() -> None:
    text = """/src/a.cpp: In function 'int f()':
/src/a.cpp:7:3: error: 'x' was not declared in this scope
/src/a.cpp:7:9: error: 'y' was not declared in this scope
/src/a.cpp:7:19: error: 'x' was not declared in this scope
/src/a.cpp:8:1: error: expected ';' before 'x'
/src/a.cpp:8:5: error: expected '}' before 'y'
/torch/b.h: In instantiation of 'void g() [with T = int]':
/src/a.cpp:9:4:   required from here
/torch/b.h:3:1: error: 'struct A' has no member named 'z'
/src/a.cpp:1:10: fatal error: c10/gone.h: No such file or directory
"""
    assert [(error.file, error.line, error.api) for error in errors_in(text)] == [
        ("/src/a.cpp", 7, "x"),
        ("/src/a.cpp", 7, "y"),
        ("/src/a.cpp", 8, ""),
        ("/src/a.cpp", 9, "A::z"),
        ("/src/a.cpp", 1, "c10/gone.h"),
    ]


ABSTRACT = """/src/a.cpp:3:16: error: 'c10::DataPtr Own::allocate(size_t) const' marked 'override', but does not override
/src/a.cpp:5:5: error: cannot declare variable 'own' to be of abstract type 'Own'
/src/a.cpp:2:8: note:   because the following virtual functions are pure within 'Own':
In file included from /src/a.cpp:1:
/torch/Allocator.h:206:16: note:     'virtual void c10::Allocator::copy_data(void*, const void*, std::size_t) const'
/torch/Allocator.h:164:19: note:     'virtual c10::DataPtr c10::Allocator::allocate(size_t)'
/src/a.cpp: In function 'Own* f()':
/src/a.cpp:6:27: error: invalid new-expression of abstract class type 'Own'
"""
CLANG_ABSTRACT = """/src/a.cpp:3:16: error: 'allocate' marked 'override' but does not override any member functions
/src/a.cpp:5:5: error: variable type 'Own' is an abstract class
/torch/Allocator.h:206:16: note: unimplemented pure virtual method 'copy_data' in 'Own'
"""


def test_an_abstract_class_is_refused_for_the_function_that_it_lacks() -> None:
    assert [(error.line, error.api) for error in errors_in(ABSTRACT)] == [
        (3, "Own::allocate"),
        (5, "Own::allocate"),
        (6, "Own::allocate"),
    ]
    lacks_only = ABSTRACT.partition("\n")[2]  # nothing else of the class is refused
    assert {error.api for error in errors_in(lacks_only)} == {"c10::Allocator::copy_data"}
    assert {error.api for error in errors_in(lacks_only.replace("note:", "remark:"))} == {"Own"}
    assert [error.api for error in errors_in(CLANG_ABSTRACT)][1] == "Own::copy_data"
