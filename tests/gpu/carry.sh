#!/usr/bin/env bash
# Carries to a GPU machine without network what the gate needs there, in .carry/, which git ignores.
#
#   tests/gpu/carry.sh wheels            here: the controller's dependencies, in .carry/wheels
#   tests/gpu/carry.sh torch TORCH       here: a second torch, a wheel or a requirement such as torch==2.12.0, in parts
#                                        of 50 MB, in .carry/torch
#   tests/gpu/carry.sh unpack FOLDER     there: the wheels in FOLDER/site, for PYTHONPATH; once all parts of the torch
#                                        have come, in one transfer or in several, FOLDER/torch/bin/python
#
# Then, there, in the root of the repository: PYTHONPATH=FOLDER/site python3 -m tests.gpu.record --help
#
# CARRY_PYTHON is the Python there (3.12), CARRY_PART_BYTES the size of a part. NumPy is not carried: the Python that
# runs the gate there has it, as the one that has torch. The second torch takes all else from there, CUDA's libraries too.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
carry=$here/.carry

fail() {
    echo "error: $1" >&2
    exit 2
}

download() { # FOLDER REQUIREMENT...
    local folder=$1
    shift
    python3 -m pip download -q --disable-pip-version-check --only-binary=:all: --implementation cp \
        --python-version "${CARRY_PYTHON:-3.12}" --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
        --platform manylinux2014_x86_64 -d "$folder" "$@"
}

pack_wheels() {
    local needed
    needed=$(python3 -c '
import sys, tomllib
for line in tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]:
    if not line.startswith("numpy"):
        print(line)
' "$here/pyproject.toml")
    mapfile -t needed <<<"$needed"
    rm -rf "$carry/wheels"
    download "$carry/wheels" "${needed[@]}"
    ls "$carry/wheels"
}

pack_torch() { # WHEEL | REQUIREMENT
    local wheel=$1 name parts
    rm -rf "$carry/torch"
    mkdir -p "$carry/torch"
    if [ ! -f "$wheel" ]; then
        download "$carry/whole" --no-deps "$1"
        wheel=$(echo "$carry"/whole/*.whl)
    fi
    name=$(basename "$wheel")
    split -b "${CARRY_PART_BYTES:-50000000}" -d -a 3 "$wheel" "$carry/torch/$name.part-"
    parts=$(find "$carry/torch" -name "$name.part-*" | wc -l)
    echo "$name $(sha256sum <"$wheel" | cut -d' ' -f1) $parts" | tee "$carry/torch/wheel.txt"
    rm -rf "$carry/whole"
}

unpack() {
    local into=$1 wheel name digest parts have
    mkdir -p "$into/parts" "$into/site"
    for wheel in "$carry"/wheels/*.whl; do
        [ ! -f "$wheel" ] || python3 -m zipfile -e "$wheel" "$into/site"
    done
    [ -f "$carry/torch/wheel.txt" ] && [ ! -x "$into/torch/bin/python" ] || return 0
    read -r name digest parts <"$carry/torch/wheel.txt"
    find "$carry/torch" -maxdepth 1 -name "$name.part-*" -exec cp {} "$into/parts" \;
    have=$(find "$into/parts" -name "$name.part-*" | wc -l)
    echo "$name: $have of $parts parts"
    [ "$have" -eq "$parts" ] || return 0
    cat "$into/parts/$name".part-* >"$into/$name"
    [ "$(sha256sum <"$into/$name" | cut -d' ' -f1)" = "$digest" ] || fail "$into/$name is damaged: carry its parts again"
    rm -r "$into/parts"
    install_torch "$into/$name" "$into/torch"
    rm "$into/$name"
    echo "$into/torch/bin/python"
}

install_torch() { # WHEEL FOLDER
    local beside site
    beside=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    python3 -m venv --without-pip "$2"
    site=$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    python3 -m zipfile -e "$1" "$site"
    echo "$beside" >"$site/beside.pth"
    # Where the wheel looks for CUDA's libraries: beside itself.
    [ ! -d "$beside/nvidia" ] || ln -s "$beside/nvidia" "$site/nvidia"
}

case "${1-} $#" in
"wheels 1") pack_wheels ;;
"torch 2") pack_torch "$2" ;;
"unpack 2") unpack "$2" ;;
*) fail "expected: $0 wheels | torch TORCH | unpack FOLDER" ;;
esac
