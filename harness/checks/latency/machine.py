"""Says whether the machine that a benchmark ran on was busy, and what to do about it."""

from collections.abc import Iterator, Sequence

from harness.core.machine import GpuState, MachineState

# Shares of time. What others use of a core is mostly taken between two blocks; what the hypervisor takes and what a
# caller waits stands in the times.
OTHERS_LIMIT = 0.10
STOLEN_LIMIT = 0.05
WAITED_LIMIT = 0.05
CLOCK_LIMIT = 0.90
# Held down on purpose, or not at work: the same for both releases.
HARMLESS = frozenset({"idle", "clocks set by the user"})


def busy_notes(machine_states: Sequence[MachineState], waited: float) -> Iterator[str]:
    """Yield what disturbed the benchmark, each with what to do; none where the machine was quiet.

    ``waited`` is the largest share, 0 to 1, of an arm's blocks in which the caller waited for a core.
    """
    others = max((state.others for state in machine_states), default=0.0)
    if others > OTHERS_LIMIT:
        yield (
            f"other processes used up to {_percent(others)} of the benchmark's cores in a round: repeat it on a "
            "machine that does nothing else"
        )
    stolen = max((state.stolen for state in machine_states), default=0.0)
    if stolen > STOLEN_LIMIT:
        yield (
            f"the hypervisor took up to {_percent(stolen)} of the benchmark's cores in a round: use a machine with "
            "cores of its own, or `--latency thorough`"
        )
    stopped = [state for state in machine_states if state.quota_throttled_s > 0]
    if stopped:
        throttled_s, quota = sum(state.quota_throttled_s for state in stopped), stopped[0].quota_cores
        limit = "" if quota is None else f" of {quota:g} cores"
        yield (
            f"the container's CPU quota{limit} stopped everything for {throttled_s:.1f} s: raise the quota, or lower "
            "the number of threads"
        )
    loose = next((state for state in machine_states if not state.cores), None)
    if loose is not None:
        why = f" ({loose.why_not_pinned})" if loose.why_not_pinned else ""
        yield f"the processes of the benchmark were not pinned{why}: expect wider intervals"
    if waited > WAITED_LIMIT:
        yield (
            f"callers waited for a core, for up to {_percent(waited)} of a model's time: the times hold those waits, "
            "so repeat it on a quiet machine"
        )
    gpus = [state.gpu for state in machine_states if state.gpu]
    if any(gpu.other_processes for gpu in gpus):
        yield "other processes were on this GPU: choose another one with CUDA_VISIBLE_DEVICES, or wait for them"
    slow = [gpu for gpu in gpus if _is_held_down(gpu)]
    if slow:
        worst = min(slow, key=lambda gpu: gpu.sm_clock_mhz or 0)
        reasons = ", ".join(reason for reason in worst.throttle_reasons if reason not in HARMLESS)
        yield (
            f"the GPU ran at {worst.sm_clock_mhz} of {worst.max_sm_clock_mhz} MHz ({reasons}): lock its clocks with "
            "`nvidia-smi --lock-gpu-clocks`, or see to its cooling and power"
        )


def _is_held_down(gpu: GpuState) -> bool:
    if not gpu.sm_clock_mhz or not gpu.max_sm_clock_mhz or set(gpu.throttle_reasons) <= HARMLESS:
        return False
    return gpu.sm_clock_mhz < CLOCK_LIMIT * gpu.max_sm_clock_mhz


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
