"""GPUs, from texts in the form that ``nvidia-smi`` and the driver print, and from trees of device files."""

from pathlib import Path
import pytest
from harness.domain.machine import GpuState
from harness.system import gpu
from harness.system.gpu import look, pids_in, state_in
from harness.domain.machine import GpuCard, Gpus
from harness.system.gpu import cards_in, driver_in, survey, visible_of, without_asking

IDLE = "NVIDIA H200, 345, 1980, 0x0000000000000001, 28\n"
HOT = "NVIDIA A10G, 1110, 1710, 0x0000000000000024, 86\n"
UUID = "GPU-b6dfbd9a-2ba4-3b33-8d5a-0d3b4f5b8a11"
OTHER = "GPU-00000000-2ba4-3b33-8d5a-0d3b4f5b8a11"
UNKNOWN = "Tesla K80, 562, 875, [N/A], [N/A]\n"


def test_reasons_become_words() -> None:
    assert state_in(IDLE, [], [1]) == GpuState(
        name="NVIDIA H200", sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",), temperature_c=28
    )
    hot = state_in(HOT, [], [1])
    assert hot is not None
    assert hot.throttle_reasons == ("power cap", "software thermal slowdown")


def test_what_the_driver_does_not_know_is_left_out() -> None:
    assert state_in(UNKNOWN, [], []) == GpuState(name="Tesla K80", sm_clock_mhz=562, max_sm_clock_mhz=875)


@pytest.mark.parametrize("text", ["", "\n", "No devices were found\n", IDLE + HOT])
def test_text_without_one_gpu_is_no_state(text: str) -> None:
    assert state_in(text, [], []) is None


@pytest.mark.parametrize(
    ("processes", "own", "others"),
    [
        ([11, 12], [11, 12], 0),
        ([11, 12, 99], [11, 12], 1),
        ([4011, 4012, 4099], [11, 12], 1),  # another namespace of numbers
        ([], [11, 12], 0),
    ],
)
def test_other_processes_are_counted(processes: list[int], own: list[int], others: int) -> None:
    machine_state = state_in(IDLE, processes, own)
    assert machine_state is not None
    assert machine_state.other_processes == others


def test_processes_of_other_gpus_do_not_count() -> None:
    assert pids_in(f"{UUID}, 11\n{OTHER}, 12\n{UUID}, [N/A]\n[Insufficient Permissions]\n", UUID) == [11]


def install(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_program_is_asked_for_the_gpu_of_the_run(programs: Path) -> None:
    apps = f"echo {UUID}, 7; echo {UUID}, 8; echo {OTHER}, 9"
    install(programs, f'case "$1$3" in *apps*) {apps};; *--id={UUID}) echo "{HOT.strip()}";; *) exit 6;; esac')
    machine_state = look(UUID, [7])
    assert machine_state is not None
    assert (machine_state.name, machine_state.other_processes) == ("NVIDIA A10G", 1)


def test_of_a_gpu_that_is_not_known_only_its_state_is_reported(programs: Path) -> None:
    install(programs, f'case "$1" in *apps*) echo "{OTHER}, 9";; *) echo "{HOT.strip()}";; esac')
    machine_state = look(None, [7])
    assert machine_state is not None
    assert (machine_state.name, machine_state.other_processes) == ("NVIDIA A10G", 0)
    install(programs, f'echo "{HOT.strip()}"; echo "{IDLE.strip()}"')  # which of the two?
    assert look(None, [7]) is None


def test_driver_with_the_later_name_of_the_reasons_is_understood(programs: Path) -> None:
    install(programs, f'case "$1" in *throttle*) exit 2;; *apps*) ;; *) printf "{IDLE.strip()}\\n";; esac')
    machine_state = look(UUID, [7])
    assert machine_state is not None
    assert machine_state.throttle_reasons == ("idle",)


@pytest.mark.parametrize("script", ["exit 9", "exec sleep 100", "kill -9 $$"])
def test_program_that_fails_is_no_state(programs: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DEADLINE_S", 0.3)
    install(programs, script)
    assert look(UUID, []) is None


def test_machine_without_the_program_has_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look(UUID, []) is None


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


def test_a_machine_without_device_files_is_not_asked(programs: Path) -> None:
    install(programs, f"touch '{programs}/asked'")
    assert survey(programs / "none", programs / "none") == Gpus()
    assert not (programs / "asked").exists()


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


def test_cards_are_asked_for(proc: Path, dev: Path, programs: Path) -> None:
    (programs / "cards").write_text(CARDS)
    install(programs, f'case "$1" in *compute-apps*) echo "{H200}, 11";; *) cat "{programs}/cards";; esac')
    found = survey(proc, dev)
    assert [card.capability for card in found.cards] == ["9.0", "8.6"]
    assert [card.machine_state.other_processes for card in found.cards] == [1, 0]
    assert found.trouble == ""


def test_a_variable_that_hides_all_cards_is_trouble(proc: Path, dev: Path, programs: Path) -> None:
    (programs / "cards").write_text(CARDS)
    install(programs, f"cat '{programs}/cards'")
    found = survey(proc, dev, visible="")
    assert (found.cards, found.trouble) == ((), "CUDA_VISIBLE_DEVICES hides every GPU")
    assert survey(proc, dev, visible="0").trouble == ""


def test_the_control_device_alone_counts_because_a_run_looks_for_it(proc: Path, dev: Path) -> None:
    (dev / "nvidia0").unlink()
    assert without_asking(proc, dev).nodes == (f"{dev}/nvidiactl",)


def test_a_driver_that_does_not_know_capabilities_is_asked_without(proc: Path, dev: Path, programs: Path) -> None:
    (programs / "card").write_text(OLD_CARD)
    (programs / "unknown").write_text(UNKNOWN_FIELD)
    install(
        programs,
        f'case "$1" in *compute_cap*) cat "{programs}/unknown"; exit 2;; *) cat "{programs}/card";; esac',
    )
    (card,) = survey(proc, dev).cards
    assert (card.machine_state.name, card.capability) == ("Tesla T4", "")


def test_what_nvidia_smi_complains_of_is_kept(proc: Path, dev: Path, programs: Path) -> None:
    install(programs, "echo 'Failed to initialize NVML: Unknown Error'; exit 255")
    assert survey(proc, dev).trouble == "Failed to initialize NVML: Unknown Error"


def test_a_silent_nvidia_smi_is_reported(
    proc: Path, dev: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "SURVEY_DEADLINE_S", 0.2)
    install(programs, "exec sleep 20")
    assert survey(proc, dev).trouble == "nvidia-smi did not answer in 0.2 s"


def test_a_missing_nvidia_smi_is_reported(
    proc: Path, dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert survey(proc, dev).trouble == "nvidia-smi cannot be started: No such file or directory"
