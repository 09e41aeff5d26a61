// The largest difference between two values of the same structure.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace gate {

// Returns the elements as doubles, complex ones as pairs, on the CPU.
inline at::Tensor as_doubles(at::Tensor tensor) {
  if (tensor.layout() != c10::kStrided) tensor = tensor.to_dense();
  if (tensor.is_quantized()) tensor = tensor.int_repr();
  if (tensor.is_complex()) tensor = at::view_as_real(tensor.resolve_conj());
  return tensor.cpu().to(at::kDouble).contiguous();
}

// Returns max |a - b|, 0 where both are NaN, infinity where one alone is; nothing where the tensors do not fit.
inline std::optional<double> max_abs_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return std::nullopt;
  const at::Tensor left = as_doubles(a), right = as_doubles(b);
  const auto *x = static_cast<const double*>(left.data_ptr()), *y = static_cast<const double*>(right.data_ptr());
  double largest = 0;
  for (std::int64_t i = 0; i < left.numel(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double apart = std::abs(x[i] - y[i]);
    largest = std::max(largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
  }
  return largest;
}

inline std::optional<double> max_abs_difference(const c10::IValue& a, const c10::IValue& b);

template <typename Items>
std::optional<double> max_over(const Items& a, const Items& b) {
  if (a.size() != b.size()) return std::nullopt;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto one = max_abs_difference(a[i], b[i]);
    if (!one) return std::nullopt;
    largest = std::max(largest, *one);
  }
  return largest;
}

// Likewise for any structure. Numbers, strings and the like do not change in a replay: they are left out.
inline std::optional<double> max_abs_difference(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    if (a.toTensor().defined() != b.toTensor().defined()) return std::nullopt;
    return a.toTensor().defined() ? max_abs_difference(a.toTensor(), b.toTensor()) : 0;
  }
  if (a.isTuple() && b.isTuple()) return max_over(a.toTupleRef().elements(), b.toTupleRef().elements());
  if (a.isList() && b.isList()) return max_over(a.toListRef(), b.toListRef());
  if (a.isGenericDict() && b.isGenericDict()) {
    const auto left = a.toGenericDict(), right = b.toGenericDict();
    if (left.size() != right.size()) return std::nullopt;
    double largest = 0;
    for (auto x = left.begin(), y = right.begin(); x != left.end(); ++x, ++y) {
      const auto one = max_abs_difference(x->value(), y->value());
      if (!one) return std::nullopt;
      largest = std::max(largest, *one);
    }
    return largest;
  }
  return a.tagKind() == b.tagKind() ? std::optional<double>(0) : std::nullopt;
}

// Returns the largest finite |x| over all tensors of a value.
inline double largest_magnitude(const c10::IValue& value) {
  double largest = 0;
  const auto over = [&](const auto& items) {
    for (const c10::IValue& item : items) largest = std::max(largest, largest_magnitude(item));
  };
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor elements = as_doubles(value.toTensor());
    const auto* x = static_cast<const double*>(elements.data_ptr());
    for (std::int64_t i = 0; i < elements.numel(); ++i)
      if (std::isfinite(x[i])) largest = std::max(largest, std::abs(x[i]));
  } else if (value.isTuple()) {
    over(value.toTupleRef().elements());
  } else if (value.isList()) {
    over(value.toListRef());
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) largest = std::max(largest, largest_magnitude(entry.value()));
  }
  return largest;
}

}  // namespace gate
