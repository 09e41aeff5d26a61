"""Reads binaries and two LibTorches, and says what has to be done with each binary."""

import functools
import io
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from harness.artifacts.shared_objects import DamagedFileError, SharedObject, is_elf, read, read_file
from harness.checks.linking import known_symbols
from harness.checks.linking.check import check_binary, check_image, interface, libtorch_in_run_path, uses_libtorch
from harness.checks.linking.headers import FOLDERS, Headers, texts_below, words_below
from harness.checks.linking.libtorch import LibTorch, of_libraries
from harness.checks.linking.loader import Loader, binaries_in
from harness.core.errors import ConfigError
from harness.core.linking import LIBTORCH, LinkCheck
from harness.machine.files import folder_with
from harness.project import Project
from harness.verdict.linking import outcome_of

# Where LibTorch's libraries lie below what users name: its zip, site-packages/torch, an environment, an image.
PLACES = ("lib", "torch/lib", "lib/python*/site-packages/torch/lib", "usr/local/lib", "opt/libtorch/lib")
LIBRARY = re.compile(r"lib(?:torch|c10|caffe2|shm|gomp|omp|iomp5|nvfuser|cud|cublas)[\w+-]*\.so[.\d]*")
HEADER = re.compile(rf"torch/include/(?:{'|'.join(FOLDERS)})/.*\.h")
IN_A_WHEEL = re.compile(r"torch/lib/lib[^/]*\.so[.\d]*")


def link_check(
    project: Project,
    named: Sequence[Path],
    *,
    old: str | None,
    new: str,
    image: Path | None = None,
    source: Sequence[Path] = (),
) -> LinkCheck:
    """Return what becomes of the binaries when LibTorch ``new`` takes the place of ``old``.

    Args:
        named: executables, shared libraries and folders of them.
        old, new: a known release, a wheel, or a folder with LibTorch; ``old`` None: as the symbols of the binaries say.
        image: unpacked file system in which libraries are looked for, None for this machine.
        source: folders with the code of the binaries: what it does not name is needed by LibTorch's inlined code.

    Raises:
        ConfigError: something named is not there, is not ELF, or is no LibTorch.
    """
    if image is not None and not image.is_dir():
        raise ConfigError(f"--image {image} is no folder", "unpack the image first: skopeo copy, then umoci unpack")
    for folder in source:
        if not folder.is_dir():
            raise ConfigError(f"--source {folder} is no folder", "name the folder with the C++ code of the binaries")
    loader = Loader(root=image or Path("/"))
    project.progress.stage("read symbols")
    after = side(new)
    read_binaries, others, unread = _read(named)
    words = words_below(source) if source else None
    named_old = old or _of_run_path(read_binaries, loader)
    before = side(named_old or _closest(read_binaries, named))
    for binary in [one for one in read_binaries if one.machine != after.machine]:
        unread[binary.file] = f"it is for {binary.machine}, and {after.name} for {after.machine}"
        read_binaries.remove(binary)
    if not read_binaries:
        raise ConfigError(
            "; ".join(f"{file}: {why}" for file, why in unread.items()), "name a LibTorch of that machine"
        )
    project.progress.stage("compare", len(read_binaries))
    checked = []
    for binary in read_binaries:
        checked.append(check_binary(binary, before, after, loader, words))
        project.progress.step(binary.name)
    project.progress.finish()
    return LinkCheck(
        old=before.name,
        new=after.name,
        image=str(image or ""),
        guessed=named_old is None,
        binaries=tuple(checked),
        outcomes={binary.file: outcome_of(binary) for binary in checked},
        others=tuple(others),
        unread=unread,
        notes=check_image(before, after, loader, read_binaries),
    )


def _of_run_path(binaries: Sequence[SharedObject], loader: Loader) -> str | None:
    """Return the known release that the run path of one of the binaries leads to."""
    led = (release for binary in binaries for _, release in libtorch_in_run_path(binary, loader))
    return next((release for release in led if release in known_symbols.known()), None)


def _closest(binaries: Sequence[SharedObject], named: Sequence[Path]) -> str:
    """Return the known release that has most of what the binaries need."""
    closest = known_symbols.closest(symbol for binary in binaries for symbol in interface(binary))
    if closest is None:
        raise ConfigError(
            f"{', '.join(map(str, named))}: nothing there needs LibTorch",
            "name the server's executable or its .so files",
        )
    return closest


def _read(named: Sequence[Path]) -> tuple[list[SharedObject], list[str], dict[str, str]]:
    """Return the binaries that need LibTorch, the files that do not, and those that cannot be read, with why.

    LibTorch's own libraries are none of them.
    """
    binaries, others, unread = [], [], {}
    for path, asked_for in binaries_in(named):
        if not asked_for and LIBRARY.fullmatch(path.name):
            continue
        try:
            binary = read_file(path)
        except ConfigError as error:
            if asked_for:
                raise
            if isinstance(error, DamagedFileError):
                unread[str(path)] = str(error).removeprefix(f"{path} ")
                continue
            others.append(str(path))  # object files, static and 32-bit executables of a folder
            continue
        if uses_libtorch(binary):
            binaries.append(binary)
        else:
            others.append(str(path))
    return binaries, others, unread


def side(name: str) -> LibTorch:
    """Return the LibTorch that a user names: a known release, a wheel, or a folder that has its libraries.

    Raises:
        ConfigError: it is none of these.
    """
    path = Path(name)
    if path.is_dir():
        return _of_folder(path)
    if path.is_file():
        return _of_wheel(path)
    known = known_symbols.known()
    if name not in known:
        raise ConfigError(
            f"{name} is no release whose symbols the gate knows, and no wheel or folder: known are {', '.join(known)}",
            "name one of these, or the folder of a LibTorch: the unpacked zip, or site-packages/torch",
        )
    return known_symbols.release(name)


def _of_folder(path: Path) -> LibTorch:
    folder = folder_with(path, PLACES, LIBTORCH)
    if folder is None:
        raise ConfigError(
            f"{path} has no {LIBTORCH}", "name LibTorch's folder: the unpacked zip, or site-packages/torch"
        )
    include = next((place for place in (folder.parent / "include", folder / "include") if place.is_dir()), None)
    files = sorted(file for file in folder.iterdir() if LIBRARY.fullmatch(file.name) and is_elf(file))
    headers = functools.cache(lambda: Headers(texts_below(include) if include is not None else ()))
    return of_libraries(str(path), map(read_file, files), lambda symbol: headers().declare(symbol))


def _of_wheel(path: Path) -> LibTorch:
    try:
        with zipfile.ZipFile(path) as wheel:
            return of_wheel(path.name, wheel)
    except (zipfile.BadZipFile, OSError) as error:
        raise ConfigError(f"{path} is no wheel: {error}", "name a wheel of torch for Linux") from None


def of_wheel(name: str, wheel: zipfile.ZipFile) -> LibTorch:
    """Read the libraries and headers in an open wheel of torch.

    Raises:
        ConfigError: it has none.
    """
    members = wheel.namelist()
    libraries = [
        read(io.BytesIO(wheel.read(member)), f"{name}: {member}") for member in members if IN_A_WHEEL.fullmatch(member)
    ]
    if not libraries:
        raise ConfigError(f"{name} has no libraries of LibTorch", "name a wheel of torch for Linux")
    headers = Headers(wheel.read(member).decode("utf-8", "replace") for member in members if HEADER.fullmatch(member))
    return of_libraries(name, libraries, headers.declare)
