#!/bin/sh
# build.sh TORCH SERVER: compiles the server against a LibTorch: its unzipped folder, or site-packages/torch of a wheel.
set -eu
here=$(dirname "$0")
abi=$(grep -o '_GLIBCXX_USE_CXX11_ABI=[01]' "$1/share/cmake/Torch/TorchConfig.cmake" | head -1)
"${CXX:-g++}" -std=c++17 -O2 "-D${abi:-_GLIBCXX_USE_CXX11_ABI=1}" "$here/server.cpp" -o "$2" -pthread \
    -I"$1/include" -I"$1/include/torch/csrc/api/include" -L"$1/lib" "-Wl,-rpath,$1/lib" \
    -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10
