// The tensors of a value, in the order in which torch.export flattens it.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace gate {

inline void add_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) add_tensors(item, tensors);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) add_tensors(item, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) add_tensors(entry.value(), tensors);
  }
}

inline std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  add_tensors(value, tensors);
  return tensors;
}

}  // namespace gate
