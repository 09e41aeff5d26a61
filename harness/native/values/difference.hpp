// The largest difference between two values of the same structure.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/view_as_real.h>

#include "values/tensors.hpp"

namespace gate {

// Returns the elements as doubles, complex ones as pairs, on the CPU.
inline at::Tensor as_doubles(at::Tensor tensor) {
  if (tensor.layout() != c10::kStrided) tensor = tensor.to_dense();
  if (tensor.is_quantized()) tensor = tensor.int_repr();
  if (tensor.is_complex()) tensor = at::view_as_real(tensor.resolve_conj());
  return tensor.cpu().to(at::kDouble).contiguous();
}

struct Difference {
  double largest = 0;  // max |a - b|: 0 where both are NaN, infinity where one alone is
  double scale = 0;    // the largest finite |a|
};

// Compares all tensors of two values; nothing where they do not fit. Numbers, strings and the like do not change in a
// replay: they are left out.
inline std::optional<Difference> difference_of(const c10::IValue& a, const c10::IValue& b) {
  const std::vector<at::Tensor> expected = tensors_of(a), replayed = tensors_of(b);
  if (expected.size() != replayed.size()) return std::nullopt;
  Difference all;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (expected[k].scalar_type() != replayed[k].scalar_type() || expected[k].sizes() != replayed[k].sizes())
      return std::nullopt;
    const at::Tensor left = as_doubles(expected[k]), right = as_doubles(replayed[k]);
    const auto *x = static_cast<const double*>(left.data_ptr()), *y = static_cast<const double*>(right.data_ptr());
    for (std::int64_t i = 0; i < left.numel(); ++i) {
      if (std::isfinite(x[i])) all.scale = std::max(all.scale, std::abs(x[i]));
      if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
      const double apart = std::abs(x[i] - y[i]);
      all.largest = std::max(all.largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    }
  }
  return all;
}

}  // namespace gate
