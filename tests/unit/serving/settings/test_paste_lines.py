"""Lines to paste as a reader gets them; the integration test runs and compiles them."""

import ast
import re

import pytest

from harness.core.diagnosis import Setting
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.paste_lines import CPP, ENVIRONMENT, FIRST_MODEL, PYTHON, TRITON, lines_to_paste
from harness.serving.settings.table import Kind, of_kind


def of(*names: str, device: str = "cpu") -> dict[str, str]:
    return dict(lines_to_paste([MITIGATIONS[name] for name in names], device=device))


def test_every_key_of_the_field_notes_is_that_of_triton() -> None:
    keys = {
        "profiling off": ("ENABLE_JIT_PROFILING", "false"),
        "profiling executor off": ("ENABLE_JIT_EXECUTOR", "false"),
        "fuser off": ("ENABLE_TENSOR_FUSER", "false"),
        "optimized execution off": ("DISABLE_OPTIMIZED_EXECUTION", "true"),
        "inference mode": ("INFERENCE_MODE", "true"),
        "one intra-op thread": ("INTRA_OP_THREAD_COUNT", "1"),
        "wide inter-op pool": ("INTER_OP_THREAD_COUNT", "32"),
        "cuDNN off": ("DISABLE_CUDNN", "true"),
    }
    for name, (key, value) in keys.items():
        first = f"{FIRST_MODEL}\n" if "THREAD_COUNT" in key else ""
        assert of(name)[TRITON] == first + f'parameters: {{\n  key: "{key}"\n  value: {{ string_value: "{value}" }}\n}}'
    others = [name for name in MITIGATIONS if name not in keys]
    assert not [name for name in others if TRITON in of(name)]


@pytest.mark.parametrize("name", MITIGATIONS)
def test_every_setting_has_some_way_and_its_python_can_be_read(name: str) -> None:
    found = of(name)
    assert found
    ast.parse(found.get(PYTHON, ""))
    assert all(len(line) <= 74 for text in found.values() for line in text.splitlines())


def test_a_set_is_one_program_with_contexts_around_the_same_call() -> None:
    found = of("profiling off", "inference mode", "optimized execution off")
    assert found[PYTHON].splitlines() == [
        "import torch",
        "",
        "torch._C._jit_set_profiling_mode(False)",
        "# in every thread that calls:",
        "with torch.inference_mode(True), torch.jit.optimized_execution(False):",
        "    output = model(*inputs)",
    ]
    assert found[CPP].count("output = model.forward(inputs);") == 1
    assert found[CPP].splitlines()[:2] == [
        "#include <torch/csrc/jit/runtime/graph_executor.h>",
        "#include <c10/core/InferenceMode.h>",
    ]


def test_one_lock_serves_loading_and_first_calls() -> None:
    found = of("serialized loading", "serialized first calls")
    assert found[PYTHON].splitlines() == [
        "import threading",
        "",
        "import torch",
        "",
        "start_up = threading.Lock()  # one for the process",
        "",
        "with start_up:",
        "    model = torch.jit.load(path)",
        "with start_up:",
        "    for _ in range(4):  # the first calls",
        "        model(*inputs)",
    ]
    assert found[CPP].count("static std::mutex start_up;") == 1
    assert found[CPP].count("lock_guard<std::mutex> guard(start_up)") == 2
    assert set(found) == {PYTHON, CPP}


def test_variables_are_reported_beside_the_lines_of_a_program() -> None:
    found = of("fuser falls back", "profiling off")
    assert found[PYTHON].startswith("# in the environment: PYTORCH_TENSOREXPR_FALLBACK=2\nimport torch\n")
    assert found[CPP].startswith("// in the environment: PYTORCH_TENSOREXPR_FALLBACK=2\n#include")
    assert found[TRITON].startswith("# in the environment: PYTORCH_TENSOREXPR_FALLBACK=2\nparameters")
    assert ENVIRONMENT not in found  # profiling has no variable


def test_variables_alone_need_no_program() -> None:
    assert of("fuser falls back", "fuser off")[ENVIRONMENT] == "PYTORCH_TENSOREXPR_FALLBACK=2\nPYTORCH_TENSOREXPR=0"
    assert set(of("AVX2 kernels")) == {ENVIRONMENT}


def test_a_way_that_cannot_make_one_of_a_set_is_left_out() -> None:
    assert TRITON in of("profiling off")
    assert TRITON not in of("profiling off", "oneDNN off")
    assert TRITON not in of("fusion depth 0")


def test_autocast_is_of_the_device() -> None:
    assert 'torch.autocast("cuda", enabled=False)' in of("autocast off", device="cuda")[PYTHON]


def test_switches_that_are_on_are_written_as_such() -> None:
    on = Setting(name="x", about="", switches={"profiling": True, "texpr_fuser": True})
    found = lines_to_paste([on])
    assert "getProfilingMode() = true;" in found[CPP]
    assert "_jit_set_texpr_fuser_enabled(True)" in found[PYTHON]
    assert 'string_value: "true"' in found[TRITON]


def test_every_name_that_a_setting_may_have_has_lines() -> None:
    for row in of_kind(Kind.SWITCH):
        assert PYTHON in lines_to_paste([Setting(name="x", about="", switches={row.name: True})]), row.name
    for row in of_kind(Kind.NUMERICS):
        value = row.values[-1] if isinstance(row.values, tuple) else False
        assert PYTHON in lines_to_paste([Setting(name="x", about="", numerics={row.name: value})]), row.name


def test_templates_are_filled_in_everywhere() -> None:
    more = [
        Setting(name="x", about="", switches={"cpu_fusion": True}),
        *(Setting(name="x", about="", numerics={"autocast": value}) for value in ("off", "bfloat16")),
        Setting(name="x", about="", numerics={"quantized_engine": "x86"}),
    ]
    for setting in (*MITIGATIONS.values(), *more):
        for text in lines_to_paste([setting]).values():
            assert not re.search(r"\{(value|not|bare|BARE|device)\}", text), text
    assert "_jit_set_te_must_use_llvm_cpu(False)" in lines_to_paste(more[:1])[PYTHON]
    assert "at::QEngine::X86" in lines_to_paste(more[3:])[CPP]
