"""GPUs, from texts in the form that ``nvidia-smi`` and the driver print, and from trees of device files."""

from pathlib import Path

import pytest

from harness.domain.machine import GpuCard, GpuState, Gpus
from harness.system import gpu
from harness.system.gpu import cards_in, driver_in, survey, visible_of, without_asking

H200 = "GPU-b6dfbd9a-2ba4-3b33-8d5a-0d3b4f5b8a11"
A10 = "GPU-f15ae561-21b1-6003-c768-861fc285203b"
CARDS = (
    f"{H200}, 9.0, Default, Disabled, 1, 143771, NVIDIA H200, 345, 1980, 0x0000000000000001, 28\n"
    f"{A10}, 8.6, Exclusive_Process, [N/A], 20112, 23028, NVIDIA A10, 1110, 1695, 0x0000000000000024, 86\n"
)
OLD_CARD = f"{A10}, 1, Default, [N/A], 0, 15109, Tesla T4, 300, 1590, 0x0000000000000001, 30\n"
PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3)  Tue Sep 23\n"
    "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04.2)\n"
)
UNKNOWN_FIELD = 'Field "compute_cap" is not a valid field to query.\n'


@pytest.mark.parametrize(("text", "driver"), [(PROPRIETARY, "550.54.14"), (OPEN, "580.95.05"), ("", ""), ("x", "")])
def test_the_driver_is_reported_by_either_kernel_module(text: str, driver: str) -> None:
    assert driver_in(text) == driver


def test_cards_have_capability_mode_memory_and_tenants() -> None:
    first, second = cards_in(CARDS, f"{A10}, 4011\n{A10}, 4012\n{H200}, [N/A]\n")
    assert first == GpuCard(
        uuid=H200,
        capability="9.0",
        compute_mode="Default",
        memory_used_mib=1,
        memory_mib=143771,
        machine_state=GpuState(
            name="NVIDIA H200", sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",), temperature_c=28
        ),
    )
    assert (second.compute_mode, second.mig, second.machine_state.other_processes) == ("Exclusive_Process", False, 2)
    assert second.machine_state.throttle_reasons == ("power cap", "software thermal slowdown")


def test_a_card_that_is_cut_says_so() -> None:
    (card,) = cards_in(CARDS.splitlines()[0].replace("Disabled", "Enabled"), "")
    assert card.mig


@pytest.mark.parametrize("text", ["", "No devices were found\n", f"{H200}, 9.0\n"])
def test_lines_of_another_form_are_no_cards(text: str) -> None:
    assert cards_in(text, "") == ()


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, [H200, A10]),
        ("1", [A10]),
        ("1, 0", [A10, H200]),
        ("GPU-f15a", [A10]),
        ("0,7,1", [H200]),  # CUDA stops at the first that it does not know
        ("", []),
        ("-1", []),
    ],
)
def test_only_visible_cards_count(visible: str | None, left: list[str]) -> None:
    assert [card.uuid for card in visible_of(cards_in(CARDS, ""), visible)] == left


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("nvidia0", "nvidiactl", "nvidia-caps", "null"):
        (folder / name).touch()
    return folder


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    version = tmp_path / "proc" / "driver" / "nvidia" / "version"
    version.parent.mkdir(parents=True)
    version.write_text(PROPRIETARY)
    return tmp_path / "proc"


def install(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")


def test_a_machine_without_device_files_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, f"touch '{tmp_path}/asked'", monkeypatch)
    assert survey(tmp_path / "none", tmp_path / "none") == Gpus()
    assert not (tmp_path / "asked").exists()


def test_files_tell_nodes_driver_and_profilers(proc: Path, dev: Path) -> None:
    for pid, name in (("7", "nv-hostengine"), ("8", "dcgm-exporter"), ("9", "python"), ("10", "nsys-launcher")):
        (proc / pid).mkdir()
        (proc / pid / "comm").write_text(f"{name}\n")
    found = without_asking(proc, dev)
    assert (found.nodes, found.driver) == ((f"{dev}/nvidia0",), "550.54.14")
    assert found.profilers == ("dcgm-exporter", "nsys-launcher", "nv-hostengine")


def test_device_files_without_links_are_named(proc: Path, dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.system.gpu.stat.S_ISCHR", lambda _: True)  # a test may not make device files
    assert without_asking(proc, dev).unlinked == (f"{dev}/nvidia0", f"{dev}/nvidiactl")
    (dev / "char").mkdir()
    (dev / "char" / "0:0").touch()  # the numbers of a plain file
    assert without_asking(proc, dev).unlinked == ()


def test_plain_files_need_no_links(proc: Path, dev: Path) -> None:
    assert without_asking(proc, dev).unlinked == ()


def test_cards_are_asked_for(proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cards").write_text(CARDS)
    install(tmp_path, f'case "$1" in *compute-apps*) echo "{H200}, 11";; *) cat "{tmp_path}/cards";; esac', monkeypatch)
    found = survey(proc, dev)
    assert [card.capability for card in found.cards] == ["9.0", "8.6"]
    assert [card.machine_state.other_processes for card in found.cards] == [1, 0]
    assert found.trouble == ""


def test_a_variable_that_hides_all_cards_is_trouble(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cards").write_text(CARDS)
    install(tmp_path, f"cat '{tmp_path}/cards'", monkeypatch)
    found = survey(proc, dev, visible="")
    assert (found.cards, found.trouble) == ((), "CUDA_VISIBLE_DEVICES hides every GPU")
    assert survey(proc, dev, visible="0").trouble == ""


def test_the_control_device_alone_counts_because_a_run_looks_for_it(proc: Path, dev: Path) -> None:
    (dev / "nvidia0").unlink()
    assert without_asking(proc, dev).nodes == (f"{dev}/nvidiactl",)


def test_a_driver_that_does_not_know_capabilities_is_asked_without(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "card").write_text(OLD_CARD)
    (tmp_path / "unknown").write_text(UNKNOWN_FIELD)
    install(
        tmp_path,
        f'case "$1" in *compute_cap*) cat "{tmp_path}/unknown"; exit 2;; *) cat "{tmp_path}/card";; esac',
        monkeypatch,
    )
    (card,) = survey(proc, dev).cards
    assert (card.machine_state.name, card.capability) == ("Tesla T4", "")


def test_what_nvidia_smi_complains_of_is_kept(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "echo 'Failed to initialize NVML: Unknown Error'; exit 255", monkeypatch)
    assert survey(proc, dev).trouble == "Failed to initialize NVML: Unknown Error"


def test_a_silent_nvidia_smi_is_reported(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "SURVEY_DEADLINE_S", 0.2)
    install(tmp_path, "exec sleep 20", monkeypatch)
    assert survey(proc, dev).trouble == "nvidia-smi did not answer in 0.2 s"


def test_a_missing_nvidia_smi_is_reported(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert survey(proc, dev).trouble == "nvidia-smi cannot be started: No such file or directory"
