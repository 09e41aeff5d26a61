// An operator library of our own for planted artifacts that end the process or hang: none needs a bug of torch. It is
// that of harness/worker/defects.py, whose docstring says what its operators do.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace gate::defects {

// Nothing is mapped there on any architecture, so the read always faults.
constexpr std::uintptr_t kNowhere = std::uintptr_t{1} << 55;

inline at::Tensor dies(const at::Tensor& x, std::string how) {
  if (how == "wild_read") static_cast<void>(*reinterpret_cast<const volatile char*>(kNowhere));
  if (how == "divides") std::raise(SIGFPE);
  return x.clone();
}

inline at::Tensor owned_by_python(const at::Tensor& x) { return x.clone(); }

// In every process of the worker: nobody else has operators of this name.
TORCH_LIBRARY(gatedefect, library) {
  library.def("dies(Tensor x, str how) -> Tensor", &dies);
  library.def("owned_by_python(Tensor x) -> Tensor", &owned_by_python);
}

}  // namespace gate::defects
