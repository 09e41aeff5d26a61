// What a served model is once it is loaded: something that has methods, and answers calls of them.
#pragma once

#include "standard.hpp"

#include <ATen/core/ivalue.h>

namespace gate {

// A method of a loaded model, which many calls and several threads may use. Its argument is a tuple of fresh values that
// no schema has seen yet.
using ServedMethod = std::function<c10::IValue(const c10::IValue&)>;
using BufferAddresses = std::map<std::string, const void*>;

// A loaded model; copies of it are not made, whoever shares it holds the same.
class ServedModule {
 public:
  virtual ~ServedModule() = default;

  // Throws what Python would where there is no method of that name.
  virtual ServedMethod method(const std::string& name) const = 0;

  // Returns where each buffer lies, by name: a call that binds one anew, instead of writing into it, moves it.
  virtual BufferAddresses buffer_addresses() const { return {}; }
};

}  // namespace gate
