"""Opinions on each environment: its Python, glibc, driver, GPU architecture, and whether the index has it. Pure."""

from collections.abc import Iterator, Sequence

from harness.doctor.cuda_support import is_older, minimal_driver, runs_on
from harness.domain.machine import Candidate, CheckStatus, Gpus, IndexAnswer, MachineCheck, Wheel

AREA = "environments"
ON_THE_CPU = "or run with --device cpu"


def environment_checks(
    candidates: Sequence[Candidate], *, glibc: str, gpus: Gpus, uses_gpu: bool, has_installer: bool
) -> Iterator[MachineCheck]:
    """Yield what is to be said of each environment.

    Args:
        glibc: of this machine; empty where it has none.
        uses_gpu: whether a run here would use the GPU.
        has_installer: whether anything can be built here.
    """
    for one in candidates:
        yield _python(one)
        if one.trouble:
            continue
        if one.wheel is None:
            yield _unknown_wheel(one)
        else:
            yield _glibc(one, one.wheel, glibc)
        if uses_gpu and one.wheel is not None:
            yield _driver(one, one.wheel, gpus.driver)
            yield from _architecture(one, one.wheel, gpus)
        if one.index is not None and has_installer:
            yield _index(one, one.index)


def _python(one: Candidate) -> MachineCheck:
    if one.trouble:
        return MachineCheck(
            name="Python",
            area=AREA,
            about=one.name,
            read=one.trouble,
            status=CheckStatus.FAIL,
            so_what=f"{one.name} cannot be provisioned here.",
            do_this=_sentence(one.hint),
            blocks=(one.name,),
        )
    if one.unsuited:
        return MachineCheck(
            name="Python",
            area=AREA,
            about=one.name,
            read=f"{one.python}, as configured; wheels for {one.pythons}",
            status=CheckStatus.WARN,
            so_what="Only an index with wheels of your own can have one for this Python.",
            do_this="Name another Python in [tool.compat.environments], or none.",
        )
    suits = f"; wheels for {one.pythons}" if one.pythons else ""
    built = "; built already" if one.built and one.pythons else ""
    return MachineCheck(name="Python", area=AREA, about=one.name, read=f"{one.python}{suits}{built}")


def _unknown_wheel(one: Candidate) -> MachineCheck:
    return MachineCheck(
        name="wheel",
        area=AREA,
        about=one.name,
        read="this gate does not know what its wheel asks for",
        status=CheckStatus.UNKNOWN,
        so_what="Whether the driver, the GPU and glibc suit it shows only once it is built.",
        do_this="Build it and ask again: python -m harness env RELEASE.",
    )


def _glibc(one: Candidate, wheel: Wheel, glibc: str) -> MachineCheck:
    if not glibc:
        status, read = CheckStatus.FAIL, "this machine's C library is not glibc"
    elif wheel.glibc is None:
        return MachineCheck(name="glibc", area=AREA, about=one.name, read=f"{glibc} here; the wheel does not say")
    else:
        older = is_older(glibc, wheel.glibc)
        status = CheckStatus.UNKNOWN if older is None else CheckStatus.FAIL if older else CheckStatus.OK
        read = f"{glibc} here, {wheel.glibc} needed"
    if status is CheckStatus.OK:
        return MachineCheck(name="glibc", area=AREA, about=one.name, read=read)
    return MachineCheck(
        name="glibc",
        area=AREA,
        about=one.name,
        read=read,
        status=status,
        so_what="The installer takes no wheel, or torch cannot be imported.",
        do_this="Use a newer system or container image: Debian 10, Ubuntu 20.04, RHEL 8 or later have 2.28.",
        blocks=(one.name,) if status is CheckStatus.FAIL else (),
    )


def _driver(one: Candidate, wheel: Wheel, driver: str) -> MachineCheck:
    if wheel.cuda is None:
        return MachineCheck(
            name="CUDA",
            area=AREA,
            about=one.name,
            read=f"a build without CUDA ({wheel.source})",
            status=CheckStatus.FAIL,
            so_what="This machine has a GPU and this build cannot use it, so a run ends before it begins.",
            do_this=f"Name a build with CUDA, {ON_THE_CPU}.",
            blocks=(one.name,),
        )
    least = minimal_driver(wheel.cuda)
    read = f"{driver or 'unknown'} here; CUDA {wheel.cuda} ({wheel.source}) needs {least or '?'}"
    older = is_older(driver, least or "")
    if older is False:
        return MachineCheck(name="GPU driver", area=AREA, about=one.name, read=read)
    return MachineCheck(
        name="GPU driver",
        area=AREA,
        about=one.name,
        read=read,
        status=CheckStatus.FAIL if older else CheckStatus.UNKNOWN,
        so_what="torch sees no GPU with an older driver, so a run ends before it begins.",
        do_this=f"Update the driver to {least} or later, name a +cuXYZ build for an older CUDA, {ON_THE_CPU}."
        if least
        else "Compare them with the table of NVIDIA's CUDA release notes.",
        blocks=(one.name,) if older else (),
    )


def _architecture(one: Candidate, wheel: Wheel, gpus: Gpus) -> Iterator[MachineCheck]:
    if wheel.cuda is None or not gpus.cards:
        return
    told = {card.machine_state.name: runs_on(wheel.architectures, card.capability) for card in gpus.cards}
    missing = [name for name, runs in told.items() if runs is False] if wheel.architectures else []
    capabilities = ", ".join(sorted({card.capability or "unknown" for card in gpus.cards}))
    newest = f"{wheel.architectures[0]} to {wheel.architectures[-1]}" if wheel.architectures else "unknown GPUs"
    read = f"compute capability {capabilities} here; kernels for {newest} ({wheel.source})"
    if not missing and wheel.architectures and None not in told.values():
        yield MachineCheck(name="GPU architecture", area=AREA, about=one.name, read=read)
        return
    every = len(missing) == len(told)
    status = CheckStatus.FAIL if every else CheckStatus.WARN if missing else CheckStatus.UNKNOWN
    yield MachineCheck(
        name="GPU architecture",
        area=AREA,
        about=one.name,
        read=read,
        status=status,
        so_what=f'On {" and ".join(missing) or "such a GPU"} every call would end with "no kernel image is available".',
        do_this=f"Name a release or a +cuXYZ build with that architecture, {ON_THE_CPU}."
        if every
        else "Choose a GPU with CUDA_VISIBLE_DEVICES that the wheel has kernels for.",
        blocks=(one.name,) if every else (),
    )


def _index(one: Candidate, index: IndexAnswer) -> MachineCheck:
    if index.found:
        told = ["the index has it"] * index.reached + ["the cache has all of it"] * index.cached
        return MachineCheck(name="index", area=AREA, about=one.name, read="; ".join(told))
    if index.found is None and index.cached:
        return MachineCheck(
            name="index",
            area=AREA,
            about=one.name,
            read=f"{index.said}; the cache has all of it",
            status=CheckStatus.WARN,
            so_what="uv asks the index even for what its cache has, so a build fails until it answers.",
            do_this="Set UV_OFFLINE=1, and build from the cache.",
        )
    silent = index.found is None and not index.hint
    return MachineCheck(
        name="index",
        area=AREA,
        about=one.name,
        read=index.said,
        status=CheckStatus.WARN if silent else CheckStatus.FAIL,
        so_what=f"{one.name} is not built yet, and cannot be as long as this is so.",
        do_this=_sentence(index.hint or "check the network, proxy and index arguments, or give --env NAME=PYTHON"),
        blocks=() if silent else (one.name,),
    )


def _sentence(text: str) -> str:
    """Return a hint as a sentence of its own."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else "See the message."
