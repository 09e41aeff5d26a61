"""Real executables and libraries, compiled here, against a LibTorch of a few functions that changes as the real one does."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.link_check.link_check import side
from harness.artifacts.shared_objects import SharedObject, read_file
from harness.checks.linking.check import check_binary, check_image
from harness.checks.linking.headers import words_below
from harness.checks.linking.libtorch import LibTorch
from harness.checks.linking.loader import Loader
from harness.core.linking import LinkedBinary, LinkOutcome, SymbolChange
from harness.verdict.linking import outcome_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

OLD = """
#include <string>
namespace c10 { template <class T> struct optional { T value; }; struct Device { int index; }; }
namespace torch { namespace jit {
struct Module { virtual ~Module(); virtual void run(); };
int load(const std::string&, c10::optional<c10::Device>);
int parse(int);
int first();
int by_value(std::string);
int scale(int);
int dropped(int);
int inlined(int);
int two_of_a_macro(int);
int hidden(int);
int kept(int);
extern int names[3];
extern int table[3];
int moved(c10::Device*);
}}
"""
NEW = (
    OLD.replace("template <class T> struct optional { T value; };", "")
    .replace("#include <string>", "#include <string>\n#include <optional>")
    .replace("c10::optional", "std::optional")
    .replace("int parse(int);", "int parse(int, bool);")
    .replace("int first();", "int first(bool);")
    .replace("by_value(std::string)", "by_value(const std::string&)")
    .replace("int scale(int);", "int scale(double);")
    .replace("extern int table[3];\n", "")
    .replace("int dropped(int);\nint inlined(int);\nint two_of_a_macro(int);\n", "")
    .replace("int hidden(int);", '__attribute__((visibility("hidden"))) int hidden(int);')
    .replace("int moved(c10::Device*);\n}}", "}}\nnamespace torch { namespace stable { int moved(c10::Device*); }}\n")
)
NEW_MODULE = NEW.replace("virtual ~Module(); virtual void run();", "void run();")


def _defined(header: str) -> str:
    """Give every function of a header a body, outside of classes as in LibTorch."""
    space, lines = "", [header]
    for line in header.splitlines():
        if "namespace torch" in line:
            space = "torch::stable" if "stable" in line else "torch::jit"
        for part in (
            line.split(";") if line.startswith(("namespace torch { namespace stable", "int ", "__attr")) else ()
        ):
            if "(" in part and ")" in part and "int " in part:
                lines.append(f"int {space}::{part[part.index('int ', part.rfind('{') + 1) + 4 :]} {{ return 1; }}")
    lines.append("torch::jit::Module::~Module() {}" if "virtual" in header else "")
    lines.append("void torch::jit::Module::run() {}")
    lines += [f"int torch::jit::{name}[3];" for name in ("names", "table") if f"extern int {name}" in header]
    return "\n".join(lines)


Compile = Callable[..., Path]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return what compiles a source: (name, source, flags) -> file."""
    folder = tmp_path_factory.mktemp("binaries")

    def compile_(name: str, source: str, *flags: str) -> Path:
        file = folder / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            command = ["g++", "-std=c++17", "-O0", "-fPIC", "-x", "c++", "-", "-x", "none", "-o", str(file), *flags]
            subprocess.run(command, input=source.encode(), check=True)
        return file

    return compile_


@pytest.fixture(scope="module")
def releases(compiled: Compile) -> Mapping[str, LibTorch]:
    flags = ("-shared", "-Wl,-soname,libtorch_cpu.so")
    header = compiled("new/lib/libtorch_cpu.so", _defined(NEW), *flags).parents[1] / "include" / "torch" / "jit.h"
    header.parent.mkdir(parents=True)
    pasted = "#define OLD(name) inline int name##_of_a_macro(int) { return 1; }"
    header.write_text(
        f"namespace torch::jit {{ inline int inlined(int) {{ return 1; }} /* int dropped(int); */\n{pasted}\n}}\n"
    )
    return {
        "old": side(str(compiled("old/lib/libtorch_cpu.so", _defined(OLD), *flags).parents[1])),
        "new": side(str(compiled("new/lib/libtorch_cpu.so", _defined(NEW), *flags).parents[1])),
        "no vtable": side(str(compiled("plain/lib/libtorch_cpu.so", _defined(NEW_MODULE), *flags).parents[1])),
        "old strings": side(
            str(compiled("cow/lib/libtorch_cpu.so", _defined(OLD), *flags, "-D_GLIBCXX_USE_CXX11_ABI=0").parents[1])
        ),
    }


def _server(compiled: Compile, name: str, body: str, *flags: str) -> Path:
    folder = compiled("old/lib/libtorch_cpu.so", _defined(OLD), "-shared", "-Wl,-soname,libtorch_cpu.so").parent
    source = f"{OLD}\nint serve() {{ {body} }}\n"
    return compiled(f"servers/{name}.so", source, "-shared", f"-L{folder}", "-l:libtorch_cpu.so", *flags)


def _checked(file: Path, releases: Mapping[str, LibTorch], new: str = "new") -> LinkedBinary:
    return check_binary(read_file(file), releases["old"], releases[new], Loader(root=Path("/")))


PLANTED = {
    "optional": ("return torch::jit::load(std::string(), {});", SymbolChange.OTHER_ABI, LinkOutcome.RECOMPILE),
    "by_value": ("return torch::jit::by_value(std::string());", SymbolChange.OTHER_ABI, LinkOutcome.RECOMPILE),
    "added": ("return torch::jit::parse(1);", SymbolChange.ADDED_PARAMETERS, LinkOutcome.RECOMPILE),
    "first": ("return torch::jit::first();", SymbolChange.ADDED_PARAMETERS, LinkOutcome.RECOMPILE),
    "parameters": ("return torch::jit::scale(1);", SymbolChange.OTHER_PARAMETERS, LinkOutcome.CHANGE_SOURCE),
    "moved": ("return torch::jit::moved(nullptr);", SymbolChange.MOVED, LinkOutcome.CHANGE_SOURCE),
    "inlined": ("return torch::jit::inlined(1);", SymbolChange.DECLARED, LinkOutcome.RECOMPILE),
    "pasted": ("return torch::jit::two_of_a_macro(1);", SymbolChange.DECLARED, LinkOutcome.RECOMPILE),
    "dropped": ("return torch::jit::dropped(1);", SymbolChange.GONE, LinkOutcome.CHANGE_SOURCE),
    "hidden": ("return torch::jit::hidden(1);", SymbolChange.GONE, LinkOutcome.CHANGE_SOURCE),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_the_new_release_has_in_place_of_a_symbol_decides(
    name: str, compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    body, change, outcome = PLANTED[name]
    checked = _checked(_server(compiled, name, body), releases)
    assert [missing.change for missing in checked.missing] == [change]
    assert outcome_of(checked) is outcome
    assert bool(checked.missing[0].successors) is (change not in (SymbolChange.GONE, SymbolChange.DECLARED))


def test_a_binary_whose_symbols_are_all_there_links(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    file = _server(compiled, "healthy", "torch::jit::Module module; module.run(); return torch::jit::kept(1);")
    checked = _checked(file, releases)
    assert (checked.uses, checked.missing, checked.unresolved) == (4, (), ())  # kept, run, destructor, vtable
    assert outcome_of(checked) is LinkOutcome.LINKS


def test_another_string_abi_asks_for_no_change_of_the_source(
    compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    server = _server(compiled, "optional", PLANTED["optional"][0])
    checked = _checked(server, releases, "old strings")
    assert [(note.kind, "-D_GLIBCXX_USE_CXX11_ABI=0" in note.what_to_do) for note in checked.notes] == [
        ("strings", True)
    ]
    assert [missing.change for missing in checked.missing] == [SymbolChange.OTHER_ABI]
    assert outcome_of(_checked(server, {**releases, "new": releases["old"]})) is LinkOutcome.LINKS


def test_data_that_an_executable_has_copied_is_needed_of_the_library(
    compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    """Without -fPIC the compiler gives it a place in the executable, where it looks as if it were defined there."""
    folder = compiled("old/lib/libtorch_cpu.so", "", "-shared").parent
    body = "int main() {{ return torch::jit::{}; }}"
    flags = ("-fno-pic", "-no-pie", f"-L{folder}", "-l:libtorch_cpu.so")
    for name, change in (("table", [SymbolChange.GONE]), ("names", [])):
        file = compiled(f"servers/copies_{name}", OLD + body.format(f"{name}[0]"), *flags)
        checked = _checked(file, releases)
        assert (checked.uses, [missing.change for missing in checked.missing]) == (1, change)
        assert [note.kind for note in checked.notes] == ["copied"]


def test_what_the_source_does_not_name_asks_for_no_change_of_it(
    compiled: Compile, releases: Mapping[str, LibTorch], tmp_path: Path
) -> None:
    file = _server(compiled, "dropped", PLANTED["dropped"][0])
    (tmp_path / "server.cpp").write_text("// dropped\nint main() { return kept(1); }\n")
    read = read_file(file), releases["old"], releases["new"], Loader(root=Path("/"))
    named = words_below([tmp_path])
    assert outcome_of(check_binary(*read, named)) is LinkOutcome.RECOMPILE
    (tmp_path / "more.hpp").write_text("inline int more() { return torch::jit::dropped(1); }\n")
    assert outcome_of(check_binary(*read, words_below([tmp_path]))) is LinkOutcome.CHANGE_SOURCE
    assert outcome_of(check_binary(*read)) is LinkOutcome.CHANGE_SOURCE


def test_a_binary_of_another_build_is_named(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    """LibTorch's zip with the newer strings, where the registry's wheel had the older ones."""
    server = read_file(_server(compiled, "optional", PLANTED["optional"][0]))
    checked = check_binary(server, releases["old strings"], releases["new"], Loader(root=Path("/")))
    assert [missing.change for missing in checked.missing] == [SymbolChange.OTHER_ABI]
    assert checked.unresolved == ()
    assert [note.kind for note in checked.notes] == ["strings"]
    assert "newer strings" in checked.notes[0].text


def test_a_vtable_that_is_gone_is_reported_as_one(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    file = _server(compiled, "vtable", "torch::jit::Module* module = new torch::jit::Module; delete module; return 0;")
    missing = _checked(file, releases, "no vtable").missing
    assert [(item.text, item.change) for item in missing] == [("vtable for torch::jit::Module", SymbolChange.GONE)]


def test_a_weak_symbol_may_be_missing_and_is_noted(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    declared = 'extern "C" int serve2(); namespace torch { namespace jit { __attribute__((weak)) int dropped(int); }}'
    file = _server(compiled, "weak", f"return 0; }} {declared} int more() {{ return torch::jit::dropped ? 1 : 0;")
    checked = _checked(file, releases)
    assert (checked.missing, outcome_of(checked)) == ((), LinkOutcome.LINKS)
    assert [note.kind for note in checked.notes] == ["weak"]


def test_a_symbol_that_nobody_has_is_no_matter_of_the_release(
    compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    file = _server(compiled, "nobody", "extern int of_a_plugin(int); return of_a_plugin(1);")
    checked = _checked(file, releases)
    assert (checked.unresolved, checked.absent) == (("of_a_plugin(int)",), ())
    assert outcome_of(checked) is LinkOutcome.UNRESOLVED


def test_a_library_that_is_not_here_may_have_it(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    other = compiled(
        "elsewhere/libplugin.so", "int of_a_plugin(int) { return 1; }", "-shared", "-Wl,-soname,libplugin.so"
    )
    body = "extern int of_a_plugin(int); return of_a_plugin(1) + torch::jit::kept(1);"
    file = _server(compiled, "absent", body, f"-L{other.parent}", "-lplugin")
    checked = _checked(file, releases)
    assert (checked.unresolved, checked.absent) == ((), ("libplugin.so",))
    assert outcome_of(checked) is LinkOutcome.UNRESOLVED
    shutil.copy(other, file.parent / "libplugin.so")
    assert _checked(file, releases).absent == ()
    (file.parent / "libplugin.so").unlink()


def test_a_function_that_both_define_is_noted_and_an_inline_one_is_not(
    compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    both = "return 0; } namespace torch { namespace jit { int kept(int) { return 2; }}} int more() { return 0;"
    inline = "return 0; } namespace torch { namespace jit { inline int kept(int) { return 2; }}} int more() { return "
    inline += "torch::jit::kept(1);"
    told = _checked(_server(compiled, "both", both), releases).notes
    assert [(note.kind, "torch::jit::kept(int)" in note.text) for note in told] == [("duplicate", True)]
    assert _checked(_server(compiled, "inline", inline), releases).notes == ()


def test_the_folder_that_the_binary_itself_names_is_noted(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    old = compiled("old/lib/libtorch_cpu.so", "", "-shared").parent
    body = "return torch::jit::kept(1);"
    for name, flag, words in (("run", "--enable-new-dtags", "after"), ("r", "--disable-new-dtags", "before")):
        (note,) = _checked(_server(compiled, name, body, f"-Wl,{flag},-rpath,{old}"), releases).notes
        assert (note.kind, note.subject) == ("run_path", str(old))
        assert f"{words} LD_LIBRARY_PATH" in note.text
    relative = _checked(_server(compiled, "origin", body, "-Wl,-rpath,$ORIGIN/../old/lib"), releases).notes
    assert [note.kind for note in relative] == ["run_path"]
    assert _checked(_server(compiled, "none", body, f"-Wl,-rpath,{old.parent}"), releases).notes == ()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("libgomp-a34b3233.so.1", "libgomp-a34b3233.so.1", "two OpenMP runtimes"),
        ("libgomp-a34b3233.so.1", "libgomp.so.1", "share libgomp.so.1"),
        ("libgomp.so.1", "libgomp.so.1", ""),
    ],
)
def test_openmp_twice_or_shared_since_is_noted(
    before: str, after: str, words: str, compiled: Compile, releases: Mapping[str, LibTorch]
) -> None:
    runtime = compiled("openmp/libgomp.so.1", "int omp_threads() { return 1; }", "-shared", "-Wl,-soname,libgomp.so.1")
    body = "extern int omp_threads(); return omp_threads() + torch::jit::kept(1);"
    server = _server(compiled, "openmp", body, f"-L{runtime.parent}", "-l:libgomp.so.1")
    sides = {side: replace(releases[side], brings=(name,)) for side, name in (("old", before), ("new", after))}
    notes = _checked(server, sides).notes
    assert [note.text for note in notes if words and words in note.text] == [note.text for note in notes]
    assert len(notes) == bool(words)
    without = _checked(_server(compiled, "healthy", "return 0;"), sides)
    assert without.notes == ()


def test_a_runtime_that_is_too_old_stops_the_process(compiled: Compile, releases: Mapping[str, LibTorch]) -> None:
    script = compiled("image/versions", "int main() { return 0; }").with_suffix(".map")
    script.write_text("GLIBCXX_3.4.19 { global: *; };\n")
    root = compiled(
        "image/root/lib64/libstdc++.so.6", "int f() { return 1; }", "-shared", f"-Wl,--version-script={script}"
    ).parents[1]
    old, new = releases["old"], replace(releases["new"], versions={"GLIBCXX": "3.4.30"})
    (note,) = check_image(old, new, Loader(root=root), ())
    assert (note.kind, note.stops) == ("version", True)
    assert "GLIBCXX_3.4.30" in note.text
    assert "GLIBCXX_3.4.19" in note.text
    assert check_image(old, replace(new, versions={"GLIBCXX": "3.4.9"}), Loader(root=root), ()) == ()


def test_a_library_of_an_image_is_found_as_its_own_loader_finds_it(
    compiled: Compile, releases: Mapping[str, LibTorch], tmp_path: Path
) -> None:
    """An absolute link leads within the image, not to this machine's files; folders come from ld.so.conf too."""
    plugin = compiled(
        "plugins/libplugin.so", "int of_a_plugin(int) { return 1; }", "-shared", "-Wl,-soname,libplugin.so"
    )
    body = "extern int of_a_plugin(int); return of_a_plugin(1) + torch::jit::kept(1);"
    server = read_file(_server(compiled, "in_an_image", body, f"-L{plugin.parent}", "-lplugin"))

    def absent() -> tuple[str, ...]:
        return check_binary(server, releases["old"], releases["new"], Loader(root=tmp_path)).absent

    (tmp_path / "opt" / "plugins").mkdir(parents=True)
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    (tmp_path / "usr" / "lib" / "libplugin.so").symlink_to(plugin)
    assert "libplugin.so" in absent()
    (tmp_path / "usr" / "lib" / "libplugin.so").unlink()
    (tmp_path / "usr" / "lib" / "libplugin.so").symlink_to("/opt/plugins/libplugin.so.1")
    assert "libplugin.so" in absent()
    shutil.copy(plugin, tmp_path / "opt" / "plugins" / "libplugin.so.1")
    assert "libplugin.so" not in absent()
    (tmp_path / "usr" / "lib" / "libplugin.so").unlink()
    (tmp_path / "opt" / "plugins" / "libplugin.so.1").rename(tmp_path / "opt" / "plugins" / "libplugin.so")
    assert "libplugin.so" in absent()
    (tmp_path / "etc" / "ld.so.conf.d").mkdir(parents=True)
    (tmp_path / "etc" / "ld.so.conf").write_text("include ld.so.conf.d/*.conf\n")
    (tmp_path / "etc" / "ld.so.conf.d" / "plugins.conf").write_text("# ours\n/opt/plugins\n")
    assert "libplugin.so" not in absent()


def test_another_major_version_of_a_library_is_noted(releases: Mapping[str, LibTorch]) -> None:
    old = replace(releases["old"], needs={"libtorch_cpu.so": ("libcudnn.so.8", "libcublas.so.12")})
    needs: dict[str, tuple[str, ...]] = {
        "libtorch_cpu.so": ("libcudnn.so.9", "libcublas.so.12", "libc.so.6"),
        "libtorch_cuda.so": ("libcufft.so.11",),
    }
    new = replace(releases["new"], needs=needs, versions={})
    server = SharedObject(name="server", file="server", needed=("libtorch_cpu.so",))
    (note,) = check_image(old, new, Loader(root=Path("/")), [server])
    assert note.text.endswith("libcudnn.so.9 (was libcudnn.so.8)")  # what no library of the server's needs is not told
    assert check_image(old, new, Loader(root=Path("/")), [replace(server, needed=("libc10.so",))]) == ()
