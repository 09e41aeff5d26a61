"""Opinions on what happened to the GPUs while a run went on. Pure."""

from collections.abc import Iterator

from harness.domain.course import ENDS, ERRORS, TIMES, Event
from harness.domain.host import GpuCard, Gpus
from harness.policy.checkup_gpu import TENANT_MIB, TROUBLES
from harness.policy.machine import HARMLESS


def gpu_events(before: Gpus | None, after: Gpus | None) -> Iterator[Event]:
    """Yield what happened to the GPUs between two looks, both taken while none of the run's own processes lives."""
    if before is None or after is None:
        return
    if after.trouble and after.trouble != before.trouble:
        yield _lost(after.trouble)
    if before.driver and after.driver and before.driver != after.driver:
        yield Event(
            name="GPU driver",
            read=f"{before.driver} before, {after.driver} now",
            so_what="Models were judged under two drivers.",
            do_this="Repeat the run.",
            touches=(TIMES, ENDS, ERRORS),
        )
    cards = {card.uuid: card for card in before.cards}
    for card in after.cards:
        if card.uuid in cards:
            yield from _tenants(cards[card.uuid], card)
        yield from _throttling(card)
    started = sorted({*after.profilers} - {*before.profilers})
    if started:
        yield Event(
            name="profilers",
            read=f"started meanwhile: {', '.join(started)}",
            so_what="Programs that read the GPU's counters slow kernels a little and now and then.",
            do_this="End them (dcgmi profile --pause), and repeat what is red or undecided.",
            touches=(TIMES,),
        )


def _lost(trouble: str) -> Event:
    known = next((item for item in TROUBLES if item[0] in trouble), None)
    so_what, do_this = known[1:] if known else ("Nobody knows how the GPU fares.", "Run nvidia-smi.")
    return Event(
        name="GPU lost",
        read=f"nvidia-smi answered before, and now: {trouble}",
        so_what=f"{so_what} What failed since then is not the release's doing.",
        do_this=f"{do_this} Then repeat what is red.",
        touches=(TIMES, ENDS, ERRORS),
    )


def _tenants(was: GpuCard, now: GpuCard) -> Iterator[Event]:
    more = now.scene.other_processes - was.scene.other_processes
    taken = (now.memory_used_mib or 0) - (was.memory_used_mib or 0)
    if more > 0 or taken > TENANT_MIB:
        yield Event(
            name="GPU tenants",
            read=f"{now.scene.name}: {max(more, 0)} more processes than before, {max(taken, 0)} MiB more taken",
            so_what="They took turns with the models on the same units, and took memory from them.",
            do_this="Wait for them, or set CUDA_VISIBLE_DEVICES to another GPU, and repeat what is red or undecided.",
            touches=(TIMES, ENDS, ERRORS),
        )


def _throttling(card: GpuCard) -> Iterator[Event]:
    held = [reason for reason in card.scene.throttle_reasons if reason not in HARMLESS]
    if held:
        heat = f" at {card.scene.temperature_c} C" if card.scene.temperature_c is not None else ""
        yield Event(
            name="GPU clocks",
            read=f"{card.scene.name}: held down at the end of the run{heat} ({', '.join(held)})",
            so_what="The clock moved while models were timed.",
            do_this="See to cooling and power, or lock it with nvidia-smi --lock-gpu-clocks.",
            touches=(TIMES,),
        )
